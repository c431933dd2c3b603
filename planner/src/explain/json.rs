//! Plans as JSON: the tree that the lines of a text plan draw, with PostgreSQL's property names.

use serde_json::{Map, Value, json};

type Properties = Map<String, Value>;

/// The answer of EXPLAIN (FORMAT JSON): the plan's lines as a tree, and what is said of the whole.
pub fn document(lines: &[(usize, String)], mut whole: Properties) -> String {
    let mut at = 0;
    let mut roots = Vec::new();
    while at < lines.len() {
        roots.push(node(lines, &mut at));
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
fn node(lines: &[(usize, String)], at: &mut usize) -> Value {
    let (indent, text) = &lines[*at];
    let mut properties = of_line(text.trim_start_matches('\u{1}'));
    let mut plans = Vec::new();
    *at += 1;
    while let Some((deeper, text)) = lines.get(*at) {
        if let Some(detail) = text.strip_prefix('\u{1}').filter(|_| deeper >= indent) {
            let (name, value) = detail.split_once(": ").unwrap_or(("Detail", detail));
            properties.insert(name.to_owned(), value.into());
            *at += 1;
        } else if deeper > indent {
            plans.push(node(lines, at));
        } else {
            break;
        }
    }
    if !plans.is_empty() {
        properties.insert("Plans".to_owned(), plans.into());
    }
    Value::Object(properties)
}

/// What a node's line says: `Index Scan Backward using i on t`, `Insert on t`, `Sort`.
fn of_line(text: &str) -> Properties {
    let mut found = Properties::new();
    let mut add = |name: &str, value: &str| drop(found.insert(name.to_owned(), value.into()));
    let (what, relation) = text.split_once(" on ").map_or((text, None), |(what, of)| (what, Some(of)));
    let (what, index) = what.split_once(" using ").map_or((what, None), |(what, of)| (what, Some(of)));
    match what {
        "Insert" | "Update" | "Delete" | "Merge" => {
            add("Node Type", "ModifyTable");
            add("Operation", what);
        }
        "Index Scan" | "Index Scan Backward" => {
            add("Node Type", "Index Scan");
            add("Scan Direction", if what.ends_with("Backward") { "Backward" } else { "Forward" });
        }
        _ if what.starts_with("CTE ") => {
            add("Node Type", "CTE");
            add("Subplan Name", what);
        }
        _ => match what.strip_suffix(" Join").and_then(|what| what.rsplit_once(' ')) {
            Some((method, kind @ ("Left" | "Full" | "Right"))) => {
                add("Node Type", if method == "Hash" { "Hash Join" } else { method });
                add("Join Type", kind);
            }
            _ => add("Node Type", what),
        },
    }
    if let Some(index) = index {
        add("Index Name", index);
    }
    if let Some(relation) = relation {
        add("Relation Name", relation);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_become_a_tree() {
        let lines = [
            (0, "Nested Loop Left Join".to_owned()),
            (1, "Seq Scan on part".to_owned()),
            (1, "Index Scan using sale_part_idx on sale".to_owned()),
            (1, "\u{1}Index Cond: (part = \"x\")".to_owned()),
        ];
        let whole = Properties::from_iter([("Rows".to_owned(), json!(3))]);
        let value: Value = serde_json::from_str(&document(&lines, whole)).unwrap();
        assert_eq!(value[0]["Plan"]["Node Type"], "Nested Loop");
        assert_eq!(value[0]["Plan"]["Join Type"], "Left");
        assert_eq!(value[0]["Plan"]["Plans"][0]["Relation Name"], "part");
        assert_eq!(value[0]["Plan"]["Plans"][1]["Index Name"], "sale_part_idx");
        assert_eq!(value[0]["Plan"]["Plans"][1]["Index Cond"], "(part = \"x\")");
        assert_eq!(value[0]["Rows"], 3);
    }
}
