//! Plans as EXPLAIN tells them: nodes with what belongs to them, printed as text or as JSON.

/// A line of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlanLine {
    Node(PlanNode),
    /// Of the node above it: `Filter: (a > 1)`.
    Detail {
        name: &'static str,
        value: String,
    },
}

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
    pub relation: Option<String>,
}

/// What reads all rows of a table.
pub const SEQ_SCAN: &str = "Seq Scan";

impl PlanNode {
    pub fn new(what: &'static str) -> PlanNode {
        PlanNode { what, join: None, backward: false, named: None, index: None, relation: None }
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

    /// As a text plan shows it: `Index Scan Backward using i on t`, `Nested Loop Left Join`.
    pub fn text(&self) -> String {
        let mut text = self.what.to_owned();
        if let Some(join) = self.join {
            // `Hash Join` has its word already.
            text = format!("{} {join} Join", text.trim_end_matches(" Join"));
        }
        if self.backward {
            text.push_str(" Backward");
        }
        for (word, name) in [("", &self.named), ("using ", &self.index), ("on ", &self.relation)] {
            if let Some(name) = name {
                text.push_str(&format!(" {word}{name}"));
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
        assert_eq!(scan.using("i").on("t").text(), "Index Scan Backward using i on t");
        let join = PlanNode { join: Some("Full"), ..PlanNode::new("Hash Join") };
        assert_eq!(join.text(), "Hash Full Join");
        assert_eq!(PlanNode::new("CTE").named("c").text(), "CTE c");
    }
}
