//! EXPLAIN: plans and expressions as text and as documents.
//!
//! A plan is told line by line while it is compiled ([`plan`]), and becomes a tree ([`tree`]), which is
//! printed as text or as JSON, YAML and XML ([`document`]). [`expression`] writes expressions,
//! [`estimate`] says what costs tools are shown, [`run`] what ANALYZE adds.

pub mod document;
mod estimate;
mod expression;
pub mod plan;
pub mod run;
mod tree;

use std::borrow::Cow;
use std::time::Duration;

use archipel_sql::ast::{ExplainFormat, ExplainOptions};
use archipel_sql::error::SqlError;

use crate::native::CompiledStatement;
use crate::route::{Access, Classification, classify_accesses};
use document::{Properties, Value, add};
use plan::PlanNode;
use run::Run;
use tree::PlanTree;

pub(crate) use estimate::width_of;
pub(crate) use expression::{aggregate, set_call, sort_key, typed, typed_all, window_call};
pub use expression::{expression, expression_of, expression_over};

/// What is told beside a plan.
#[derive(Clone, Debug, Default)]
pub struct Telling {
    pub options: ExplainOptions,
    /// How long planning took.
    pub planning: Duration,
    /// What ANALYZE found.
    pub run: Option<Run>,
    /// Whether the analytical executor would run it.
    pub analytic: bool,
    /// Settings that are not what they are by default, as far as plans could depend on them.
    pub settings: Vec<(String, String)>,
}

/// The lines of EXPLAIN for a statement.
pub fn statement(statement: &CompiledStatement) -> Vec<String> {
    of_plan(&statement.plan, &statement.accesses, &Telling::default())
}

/// What EXPLAIN with these options answers for a statement, whose plan was compiled with
/// [`ExplainOptions::tells_columns`] in mind: lines of text, or one document.
pub fn told(statement: &CompiledStatement, telling: &Telling) -> Vec<String> {
    of_plan(&statement.plan, &statement.accesses, telling)
}

/// The same of a plan of these accesses.
pub(crate) fn of_plan(plan: &[(usize, PlanNode)], accesses: &[Access], telling: &Telling) -> Vec<String> {
    let mut tops = tree::tops(plan);
    if telling.run.is_none() || !tops.iter().any(tree::PlanTree::has_run) {
        tops = tops.into_iter().map(tree::PlanTree::uncounted).collect();
    }
    let partitions = partitions(&classify_accesses(accesses));
    match telling.options.format {
        ExplainFormat::Text => text(&tops, &partitions, telling),
        format => vec![document::query(format, &whole(tops, partitions, telling))],
    }
}

fn text(tops: &[PlanTree], partitions: &str, telling: &Telling) -> Vec<String> {
    let options = telling.options;
    let mut lines = Vec::new();
    if telling.analytic {
        let how = match telling.run {
            None => "natively, if it cannot be lowered",
            // Whose nodes are counted.
            Some(_) => "natively for ANALYZE",
        };
        lines.push(format!("Analytic: DataFusion over a snapshot; {how}:"));
    }
    for top in tops {
        let first = lines.len();
        top.lines(None, options, &mut lines);
        let figures = telling.run.and_then(|run| top.figures_of_run(run));
        if let (Some(figures), Some(line)) = (figures, lines.get_mut(first)) {
            line.push_str(&format!(" {}", figures.text(options)));
        }
    }
    lines.push(format!("Partitions: {partitions}"));
    if options.settings == Some(true) && !telling.settings.is_empty() {
        let settings = telling.settings.iter().map(|(name, value)| format!("{name} = '{value}'"));
        lines.push(format!("Settings: {}", settings.collect::<Vec<_>>().join(", ")));
    }
    if run::is_summed_up(options) {
        lines.push(format!("Planning Time: {:.3} ms", run::milliseconds(telling.planning)));
    }
    lines.extend(telling.run.iter().flat_map(|run| run.lines(options)));
    lines
}

/// A document of a query: PostgreSQL's properties, then those that it does not have.
fn whole(mut tops: Vec<PlanTree>, partitions: String, telling: &Telling) -> Properties {
    let options = telling.options;
    let top = match tops.len() {
        1 => tops.remove(0).with_members_together().top(telling),
        _ => {
            let plans = tops.iter().map(|top| top.top(telling)).collect();
            let mut top = Properties::new();
            add(&mut top, "Node Type", "Result");
            add(&mut top, "Plans", Value::Groups("Plan", plans));
            top
        }
    };
    let mut whole = Properties::new();
    add(&mut whole, "Plan", Value::Group(top));
    if options.settings == Some(true) {
        let settings = telling.settings.iter();
        let settings = settings.map(|(name, value)| (Cow::Owned(name.clone()), Value::from(value.as_str())));
        add(&mut whole, "Settings", Value::Group(settings.collect()));
    }
    if options.buffers == Some(true) {
        let mut planning = Properties::new();
        tree::add_buffers(&mut planning);
        add(&mut whole, "Planning", Value::Group(planning));
    }
    if run::is_summed_up(options) {
        add(&mut whole, "Planning Time", Value::decimal(run::milliseconds(telling.planning), 3));
    }
    if options.analyze {
        add(&mut whole, "Triggers", Value::Groups("Trigger", Vec::new()));
    }
    if let Some(run) = telling.run {
        if run::is_summed_up(options) {
            add(&mut whole, "Execution Time", Value::decimal(run::milliseconds(run.elapsed), 3));
        }
        add(&mut whole, "Rows", run.rows);
    }
    add(&mut whole, "Partitions", partitions);
    add(&mut whole, "Analytic", telling.analytic);
    whole
}

/// What EXPLAIN says of a statement that has no plan.
pub fn utility(format: ExplainFormat) -> Result<Vec<String>, SqlError> {
    match format {
        ExplainFormat::Text => Ok(vec!["Utility statements have no plan structure".to_owned()]),
        ExplainFormat::Dot => Err(unsupported(format, "a utility statement")),
        format => Ok(vec![document::utility(format).to_owned()]),
    }
}

/// That `what` is not explained in a format.
pub fn unsupported(format: ExplainFormat, what: &str) -> SqlError {
    let format = format!("{format:?}").to_uppercase();
    SqlError::unsupported(format_args!("EXPLAIN (FORMAT {format}) of {what}"))
}

/// `single-partition, routed by w_id = $1`.
fn partitions(classification: &Classification) -> String {
    let mut line = classification.class().to_string();
    if let Some(routing) = &classification.routing {
        line.push_str(&format!(", routed by {routing}"));
    }
    if let Some(reason) = &classification.reason {
        line.push_str(&format!(" ({reason})"));
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_become_a_tree() {
        let join = PlanNode { join: Some("Left"), ..PlanNode::new("Nested Loop") };
        let mut scan = PlanNode::new("Index Scan").using("sale_part_idx").on("sale on credit");
        scan.properties.push(("Index Cond", Value::from("(part = \"x\")")));
        let lines = [
            (0, PlanNode::new("CTE").named("c")),
            (1, PlanNode::new("Result")),
            (0, join),
            (1, PlanNode::new("Seq Scan").on("part")),
            (1, PlanNode::new("SubPlan")),
            (2, PlanNode::new("Result")),
            (1, scan),
        ];
        let told = |format| {
            let options = ExplainOptions { format, ..ExplainOptions::default() };
            of_plan(&lines, &[], &Telling { options, ..Telling::default() })
        };
        let text = told(ExplainFormat::Text);
        let expected = [
            "Nested Loop Left Join",
            "  CTE c",
            "    ->  Result",
            "  ->  Seq Scan on part",
            "        SubPlan 2",
            "          ->  Result",
            "  ->  Index Scan using sale_part_idx on \"sale on credit\"",
            "        Index Cond: (part = \"x\")",
        ];
        assert_eq!(text[..expected.len()], expected);
        let document: serde_json::Value = serde_json::from_str(&told(ExplainFormat::Json)[0]).unwrap();
        let top = &document[0]["Plan"];
        assert_eq!(top["Node Type"], "Nested Loop");
        assert_eq!(top["Join Type"], "Left");
        assert_eq!(top["Plans"][0]["Parent Relationship"], "InitPlan");
        assert_eq!(top["Plans"][0]["Subplan Name"], "CTE c");
        assert_eq!(top["Plans"][1]["Relation Name"], "part");
        assert_eq!(top["Plans"][1]["Parent Relationship"], "Outer");
        assert_eq!(top["Plans"][1]["Plans"][0]["Subplan Name"], "SubPlan 2");
        assert_eq!(top["Plans"][2]["Parent Relationship"], "Inner");
        assert_eq!(top["Plans"][2]["Index Name"], "sale_part_idx");
        assert_eq!(top["Plans"][2]["Relation Name"], "sale on credit");
        assert_eq!(top["Plans"][2]["Index Cond"], "(part = \"x\")");
    }
}
