//! Plans as the compiler tells them: nodes with what belongs to them, one after the other with how deep
//! they stand. [`tree`](super::tree) makes a tree of them.

use archipel_sql::catalog::names::{quote_identifier, quote_qualified};

use super::document::Value;
use super::run::WatchedBy;

/// A plan: its nodes, outermost first, with their depth.
pub type PlanLines = Vec<(usize, PlanNode)>;

/// A node of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanNode {
    /// `Sort`, `Index Scan`, `Insert`.
    pub what: &'static str,
    /// `Left`, `Full`: a join that is not an inner one.
    pub join: Option<&'static str>,
    pub backward: bool,
    /// What a CTE is called.
    pub named: Option<String>,
    pub index: Option<String>,
    /// What is scanned or changed: a table, a function, a CTE.
    pub relation: Option<String>,
    pub schema: Option<String>,
    /// What the query calls it, if it is one that has a name there.
    pub alias: Option<String>,
    /// What a scan finds, for estimates.
    pub scan: Option<ScanFacts>,
    /// Its columns, where that is asked for.
    pub output: Vec<Shown>,
    /// `Filter: (a > 1)`.
    pub properties: Vec<(&'static str, Value)>,
    /// What it does when it runs, where that is counted.
    pub watched: Option<WatchedBy>,
}

/// A column that a node hands up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    /// The slot that it is in; if nobody reads it, it is not handed up.
    pub slot: Option<u32>,
    pub text: String,
    /// Bytes that PostgreSQL takes such a value to have.
    pub width: u32,
}

/// What is known of the rows that a scan finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScanFacts {
    /// Bytes that PostgreSQL takes a row of the table to have.
    pub width: u32,
    /// Whether it finds one row at most.
    pub unique: bool,
    /// How many there are, where that is known.
    pub rows: Option<usize>,
    /// Conditions that the index answers, and those asked of each row.
    pub conditions: usize,
    pub filters: usize,
}

/// What reads all rows of a table.
pub const SEQ_SCAN: &str = "Seq Scan";
/// A query in an expression, and one that is computed once.
pub const SUB_PLAN: &str = "SubPlan";
pub const INIT_PLAN: &str = "InitPlan";
/// The query of a WITH.
pub const CTE: &str = "CTE";

impl PlanNode {
    pub fn new(what: &'static str) -> PlanNode {
        PlanNode {
            what,
            join: None,
            backward: false,
            named: None,
            index: None,
            relation: None,
            schema: None,
            alias: None,
            scan: None,
            output: Vec::new(),
            properties: Vec::new(),
            watched: None,
        }
    }

    pub fn on(self, relation: impl Into<String>) -> PlanNode {
        PlanNode { relation: Some(relation.into()), ..self }
    }

    pub fn using(self, index: impl Into<String>) -> PlanNode {
        PlanNode { index: Some(index.into()), ..self }
    }

    pub fn named(self, name: impl Into<String>) -> PlanNode {
        PlanNode { named: Some(name.into()), ..self }
    }

    pub fn within(self, schema: impl Into<String>) -> PlanNode {
        PlanNode { schema: Some(schema.into()), ..self }
    }

    /// Whether it is no step of the plan itself, but holds one that a step asks.
    pub fn is_aside(&self) -> bool {
        matches!(self.what, SUB_PLAN | INIT_PLAN | CTE)
    }

    /// Whether it changes rows.
    pub fn is_change(&self) -> bool {
        matches!(self.what, "Insert" | "Update" | "Delete" | "Merge")
    }

    /// Whether it finds its rows as another one does, other values in its conditions aside.
    pub fn finds_as(&self, other: &PlanNode) -> bool {
        let names = |node: &PlanNode| node.properties.iter().map(|(name, _)| *name).collect::<Vec<_>>();
        self.what == other.what
            && self.what != SEQ_SCAN
            && (self.join, self.backward) == (other.join, other.backward)
            && self.named == other.named
            && self.index == other.index
            && self.relation == other.relation
            && names(self) == names(other)
    }

    /// As a text plan shows it: `Index Scan Backward using i on t`, `Nested Loop Left Join`. What is
    /// `qualified` has its schema.
    pub fn text(&self, qualified: bool) -> String {
        let mut text = self.what.to_owned();
        if let Some(join) = self.join {
            // `Hash Join` has its word already.
            text = format!("{} {join} Join", text.trim_end_matches(" Join"));
        }
        if self.backward {
            text.push_str(" Backward");
        }
        if let Some(name) = &self.named {
            text.push_str(&format!(" {name}"));
        }
        if let Some(index) = &self.index {
            text.push_str(&format!(" using {}", quote_identifier(index)));
        }
        if let Some(relation) = &self.relation {
            let name = match &self.schema {
                Some(schema) if qualified || self.what == "Scan" => quote_qualified(schema, relation),
                _ => quote_identifier(relation),
            };
            text.push_str(&format!(" on {name}"));
            if let Some(alias) = self.alias.as_ref().filter(|alias| *alias != relation) {
                text.push_str(&format!(" {}", quote_identifier(alias)));
            }
        }
        text
    }
}

impl From<&'static str> for PlanNode {
    fn from(what: &'static str) -> PlanNode {
        PlanNode::new(what)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_read_as_postgresql_prints_them() {
        let scan = PlanNode { backward: true, ..PlanNode::new("Index Scan") };
        assert_eq!(scan.using("i").on("t").text(false), "Index Scan Backward using i on t");
        let scan = PlanNode { alias: Some("a".to_owned()), ..PlanNode::new("Seq Scan").on("T").within("s") };
        assert_eq!(scan.text(false), "Seq Scan on \"T\" a");
        assert_eq!(scan.text(true), "Seq Scan on s.\"T\" a");
        let join = PlanNode { join: Some("Full"), ..PlanNode::new("Hash Join") };
        assert_eq!(join.text(false), "Hash Full Join");
        assert_eq!(PlanNode::new("CTE").named("c").text(false), "CTE c");
    }
}
