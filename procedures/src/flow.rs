//! Flow graphs: the actions of a routine, what depends on what, and where actions meet.
//!
//! An action is one statement's access to one table; in which order a statement reaches several of
//! them is its plan's. Actions without a path between them could run
//! at the same time; where several come together before another can begin is a synchronization
//! point (DORA's rendezvous). `archipel.flow_graphs`, `EXPLAIN (FORMAT JSON) CALL` and
//! `EXPLAIN (FORMAT DOT) CALL` show this.

use std::fmt::Write as _;

use archipel_planner::bound::{BoundExpr, ExprKind, Subscript};
use archipel_planner::route::RouteKey;
use archipel_sql::types::Oid;

use crate::describe::{classify, expression_text, key_names, key_text};
pub use crate::flow_graph::{Action, Graph};
use crate::run::operation::Program;

impl Graph {
    /// Takes out dependencies that others imply, and counts synchronization points.
    pub(crate) fn of(mut actions: Vec<Action>) -> Graph {
        // What each action waits for in the end, in one round.
        let count = actions.len();
        let mut reached: Vec<Reached> = Vec::with_capacity(count);
        for (at, action) in actions.iter().enumerate() {
            let mut here = Reached::none(at);
            // The nearest first: most of the others are behind it.
            for &before in action.depends.iter().rev().filter(|&&before| before < at) {
                if !here.contains(before) {
                    here.add(&reached[before]);
                    here.insert(before);
                }
            }
            reached.push(here);
        }
        for (at, action) in actions.iter_mut().enumerate() {
            let all = action.depends.clone();
            // Another one waits for it already; what the last round has left stands for itself.
            let implied = |before: usize| {
                all.iter().any(|&other| other < at && other > before && reached[other].contains(before))
            };
            action.depends.retain(|&before| before >= at || !implied(before));
        }
        // Along the order of the body: what a loop carries back comes in its next round.
        for at in 0..count {
            let before = actions[at].depends.iter().filter(|&&before| before < at);
            let point = before.map(|&before| actions[before].point + 1).max();
            actions[at].point = point.unwrap_or(0);
        }
        Graph { actions }
    }
}

/// The actions before one that it waits for in the end: a bit each.
struct Reached(Vec<u64>);

impl Reached {
    fn none(actions: usize) -> Reached {
        Reached(vec![0; actions.div_ceil(64)])
    }

    fn contains(&self, action: usize) -> bool {
        self.0.get(action / 64).is_some_and(|word| word >> (action % 64) & 1 == 1)
    }

    fn insert(&mut self, action: usize) {
        self.0[action / 64] |= 1 << (action % 64);
    }

    fn add(&mut self, others: &Reached) {
        self.0.iter_mut().zip(&others.0).for_each(|(here, there)| *here |= there);
    }
}

/// An action in words.
#[derive(Clone, Debug, PartialEq)]
pub struct ActionRow {
    /// From one.
    pub number: usize,
    pub line: u32,
    pub table: String,
    /// Its number; 0 where it is not known which one.
    pub table_oid: Oid,
    pub kind: &'static str,
    /// The distribution column; none of a table that is everywhere.
    pub column: Option<String>,
    pub key: Option<String>,
    /// How many keys at most; `None` where that is not known beforehand.
    pub size: Option<String>,
    pub loops: Vec<u32>,
    pub depends_on: Vec<usize>,
    pub point: usize,
}

/// The actions of a routine in words.
pub fn rows(program: &Program) -> Vec<ActionRow> {
    let names = key_names(program);
    let row = |(at, action): (usize, &Action)| {
        let access = &action.access;
        let routed = access.group.is_some();
        ActionRow {
            number: at + 1,
            line: action.line,
            table: access.table.clone(),
            table_oid: access.oid,
            kind: if access.write { "write" } else { "read" },
            column: routed.then(|| access.column.clone()),
            key: match (&access.key, routed) {
                (RouteKey::Unknown(reason), _) => Some(format!("unknown ({reason})")),
                (_, false) => None,
                (key, true) => Some(key_text(key, &names)),
            },
            size: size_text(&access.key, &names),
            loops: action.loops.clone(),
            depends_on: action.depends.iter().map(|before| before + 1).collect(),
            point: action.point,
        }
    };
    program.flow.graph().actions.iter().enumerate().map(row).collect()
}

/// How many keys an access reaches at most.
fn size_text(key: &RouteKey, names: &[String]) -> Option<String> {
    let text = |expr: &BoundExpr| expression_text(expr, names);
    match key {
        RouteKey::Point(_) => Some("1".to_string()),
        RouteKey::List(list) => Some(list.len().to_string()),
        RouteKey::EachOf(array) => Some(match &array.kind {
            ExprKind::Subscript { subscripts, .. } => match &subscripts[..] {
                [Subscript::Slice { lower: Some(from), upper: Some(to) }] => span_text(from, to, names),
                _ => format!("cardinality({})", text(array)),
            },
            _ => format!("cardinality({})", text(array)),
        }),
        RouteKey::Each { from, to } => Some(span_text(from, to, names)),
        RouteKey::Range { .. } | RouteKey::All | RouteKey::Unknown(_) => None,
    }
}

/// The length of `from .. to`.
fn span_text(from: &BoundExpr, to: &BoundExpr, names: &[String]) -> String {
    let (from, to) = (expression_text(from, names), expression_text(to, names));
    if from == "1" { to } else { format!("{to} - {from} + 1") }
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

/// The graph as a drawing for Graphviz: a box for each synchronization point's actions.
pub fn dot(program: &Program) -> Vec<String> {
    let rows = rows(program);
    let classification = classify(program);
    let label = format!("{}  ({})", program.signature, classification.class.as_str());
    let mut lines = vec![
        format!("digraph {} {{", quoted(&program.routine.name)),
        format!("  label = {}; labelloc = t; rankdir = TB; fontname = Helvetica;", quoted(&label)),
        "  node [shape = box, style = \"rounded,filled\", fontname = Helvetica];".to_string(),
    ];
    let points = rows.iter().map(|row| row.point + 1).max().unwrap_or(0);
    for point in 0..points {
        lines.push("  { rank = same;".to_string());
        for row in rows.iter().filter(|row| row.point == point) {
            let mut label = format!("{}  {} {}", row.number, row.kind, row.table);
            match (&row.column, &row.key) {
                (Some(column), Some(key)) => {
                    let _ = write!(label, "\n{column}: {key}");
                }
                (None, Some(key)) => {
                    let _ = write!(label, "\n{key}");
                }
                _ => label.push_str("\neverywhere"),
            }
            let _ = write!(label, "\nline {}", row.line);
            for line in &row.loops {
                let _ = write!(label, ", in the loop of line {line}");
            }
            let fill = if row.kind == "write" { "#f6d5c2" } else { "#d5e3f0" };
            let text = quoted(&label).replace('\n', "\\n");
            lines.push(format!("    a{} [label = {text}, fillcolor = \"{fill}\"];", row.number));
        }
        lines.push("  }".to_string());
    }
    for row in &rows {
        for before in &row.depends_on {
            // What one round leaves to the next does not order the drawing.
            let back = if *before >= row.number { " [style = dashed, constraint = false]" } else { "" };
            lines.push(format!("  a{before} -> a{}{back};", row.number));
        }
    }
    lines.push("}".to_string());
    lines
}
