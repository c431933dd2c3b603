//! Plans as JSON, with PostgreSQL's property names.

use serde_json::{Map, Value, json};

use super::plan::{PlanLine, PlanNode};
use crate::native::CompiledStatement;
use crate::route::{Access, classify_accesses};

type Properties = Map<String, Value>;

/// The answer of EXPLAIN (FORMAT JSON) for a statement: the plan as a tree, what partitions it takes, and
/// what else is said of the whole.
pub fn statement(statement: &CompiledStatement, whole: Properties) -> String {
    of_plan(&statement.plan, &statement.accesses, whole)
}

/// The same of a plan of these accesses.
pub(crate) fn of_plan(plan: &[(usize, PlanLine)], accesses: &[Access], mut whole: Properties) -> String {
    whole.insert("Partitions".to_owned(), super::partitions(&classify_accesses(accesses)).into());
    document(plan, whole)
}

/// What is said of a statement that has no plan.
pub(super) fn utility() -> String {
    format!("{:#}", json!(["Utility Statement"]))
}

fn document(lines: &[(usize, PlanLine)], mut whole: Properties) -> String {
    let mut at = 0;
    let mut roots = Vec::new();
    while at < lines.len() {
        roots.extend(node(lines, &mut at));
    }
    let plan = match roots.len() {
        1 => roots.remove(0),
        0 => json!({ "Node Type": "Result" }),
        _ => json!({ "Node Type": "Result", "Plans": roots }),
    };
    whole.insert("Plan".to_owned(), plan);
    format!("{:#}", json!([whole]))
}

/// The node at a line, with the details and the nodes below it.
fn node(lines: &[(usize, PlanLine)], at: &mut usize) -> Option<Value> {
    let (indent, line) = &lines[*at];
    *at += 1;
    let PlanLine::Node(of) = line else { return None };
    let mut properties = of_node(of);
    let mut plans = Vec::new();
    while let Some((deeper, line)) = lines.get(*at) {
        match line {
            PlanLine::Detail { name, value } if deeper >= indent => {
                properties.insert((*name).to_owned(), value.as_str().into());
                *at += 1;
            }
            PlanLine::Node(_) if deeper > indent => plans.extend(node(lines, at)),
            _ => break,
        }
    }
    if !plans.is_empty() {
        properties.insert("Plans".to_owned(), plans.into());
    }
    Some(Value::Object(properties))
}

fn of_node(node: &PlanNode) -> Properties {
    let mut found = Properties::new();
    let mut add = |name: &str, value: &str| drop(found.insert(name.to_owned(), value.into()));
    match node.what {
        "Insert" | "Update" | "Delete" | "Merge" => {
            add("Node Type", "ModifyTable");
            add("Operation", node.what);
        }
        what => add("Node Type", what),
    }
    if node.what == "Index Scan" {
        add("Scan Direction", if node.backward { "Backward" } else { "Forward" });
    }
    if let Some(join) = node.join {
        add("Join Type", join);
    }
    if let Some(name) = &node.named {
        add("Subplan Name", &format!("{} {name}", node.what));
    }
    if let Some(index) = &node.index {
        add("Index Name", index);
    }
    if let Some(relation) = &node.relation {
        add("Relation Name", relation);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_become_a_tree() {
        let join = PlanNode { join: Some("Left"), ..PlanNode::new("Nested Loop") };
        let scan = PlanNode::new("Index Scan").using("sale_part_idx").on("sale on credit");
        let lines = [
            (0, PlanLine::Node(join)),
            (1, PlanLine::Node(PlanNode::new("Seq Scan").on("part"))),
            (1, PlanLine::Node(scan)),
            (1, PlanLine::Detail { name: "Index Cond", value: "(part = \"x\")".to_owned() }),
        ];
        let whole = Properties::from_iter([("Rows".to_owned(), json!(3))]);
        let value: Value = serde_json::from_str(&document(&lines, whole)).unwrap();
        assert_eq!(value[0]["Plan"]["Node Type"], "Nested Loop");
        assert_eq!(value[0]["Plan"]["Join Type"], "Left");
        assert_eq!(value[0]["Plan"]["Plans"][0]["Relation Name"], "part");
        assert_eq!(value[0]["Plan"]["Plans"][1]["Index Name"], "sale_part_idx");
        assert_eq!(value[0]["Plan"]["Plans"][1]["Relation Name"], "sale on credit");
        assert_eq!(value[0]["Plan"]["Plans"][1]["Index Cond"], "(part = \"x\")");
        assert_eq!(value[0]["Rows"], 3);
    }
}
