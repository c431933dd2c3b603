//! What PostgreSQL would expect of a plan over tables that it has never analyzed: tools sort and draw by
//! these numbers. No plan here is chosen by them.

use archipel_sql::type_table::fixed_length;
use archipel_sql::types::{Oid, Type};

use super::plan::{PlanNode, ScanFacts};

/// Costs in units of a page that is read, rows, and bytes a row.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Estimate {
    pub startup: f64,
    pub total: f64,
    pub rows: f64,
    pub width: u32,
}

/// Pages that a table is taken to have.
const PAGES: f64 = 10.0;
const PAGE_BYTES: u32 = 8168;
/// The header of a row and its pointer.
const ROW_BYTES: u32 = 28;
/// PostgreSQL's cpu_tuple_cost, cpu_operator_cost and the part of the rows that an equality and any
/// other condition are taken to leave.
const ROW_COST: f64 = 0.01;
const OPERATOR_COST: f64 = 0.0025;
const EQUAL: f64 = 0.005;
const ANY_CONDITION: f64 = 1.0 / 3.0;
/// Groups that there are taken to be, rows of a function, and rows of a named query.
const GROUPS: f64 = 200.0;
const FUNCTION_ROWS: f64 = 1000.0;
const NAMED_ROWS: f64 = 100.0;

/// What is expected of a node over these.
pub(super) fn of_node(node: &PlanNode, below: &[Estimate]) -> Estimate {
    let first = below.first().copied().unwrap_or_default();
    let second = below.get(1).copied().unwrap_or_default();
    let handed_up: u32 = node.output.iter().map(|column| column.width).sum();
    let width = if node.output.is_empty() && !node.is_change() { first.width } else { handed_up };
    let mut expected = match (node.what, node.scan) {
        (_, Some(facts)) => of_scan(node, facts),
        ("Result", _) if below.is_empty() => Estimate { total: ROW_COST, rows: 1.0, ..first },
        ("Function Scan", _) => Estimate { total: FUNCTION_ROWS * ROW_COST, rows: FUNCTION_ROWS, ..first },
        ("CTE Scan" | "WorkTable Scan", _) => {
            Estimate { total: NAMED_ROWS * 2.0 * ROW_COST, rows: NAMED_ROWS, ..first }
        }
        ("Aggregate", _) => {
            let startup = first.total + first.rows * OPERATOR_COST;
            Estimate { startup, total: startup + ROW_COST, rows: 1.0, ..first }
        }
        ("HashAggregate" | "MixedAggregate" | "Unique", _) => {
            let rows = first.rows.min(GROUPS);
            let startup = first.total + first.rows * OPERATOR_COST;
            Estimate { startup, total: startup + rows * ROW_COST, rows, ..first }
        }
        ("Sort", _) => {
            let compared = first.rows.max(2.0) * first.rows.max(2.0).log2();
            let startup = first.total + compared * 2.0 * OPERATOR_COST;
            Estimate { startup, total: startup + first.rows * OPERATOR_COST, ..first }
        }
        ("Hash", _) => Estimate { startup: first.total, ..first },
        ("Nested Loop", _) => {
            let rows = first.rows.max(1.0) * second.rows.max(1.0);
            let total = first.total + first.rows.max(1.0) * second.total + rows * ROW_COST;
            Estimate { startup: first.startup + second.startup, total, rows, ..first }
        }
        ("Hash Join", _) => {
            let rows = (first.rows * second.rows * EQUAL).max(1.0);
            let total = first.total + second.total + rows * ROW_COST;
            Estimate { startup: first.startup + second.total, total, rows, ..first }
        }
        ("Append" | "Recursive Union", _) => below.iter().fold(Estimate::default(), |sum, part| Estimate {
            startup: sum.startup,
            total: sum.total + part.total,
            rows: sum.rows + part.rows,
            width: sum.width,
        }),
        _ => first,
    };
    expected.rows = expected.rows.round().max(1.0);
    if node.is_change() && node.output.is_empty() {
        expected.rows = 0.0;
    }
    Estimate { width, ..expected }
}

fn of_scan(node: &PlanNode, facts: ScanFacts) -> Estimate {
    if let Some(rows) = facts.rows {
        let rows = rows as f64;
        return Estimate { total: rows * (ROW_COST + OPERATOR_COST), rows, ..Estimate::default() };
    }
    let a_page = (PAGE_BYTES / (facts.width.next_multiple_of(8) + ROW_BYTES)).max(1);
    let all = f64::from(a_page) * PAGES;
    let passed = if facts.filters > 0 { ANY_CONDITION } else { 1.0 };
    let asked = facts.filters as f64 * OPERATOR_COST;
    if node.index.is_none() && facts.conditions == 0 {
        let total = PAGES + all * (ROW_COST + asked);
        return Estimate { total, rows: all * passed, ..Estimate::default() };
    }
    let found = match facts {
        ScanFacts { unique: true, .. } => 1.0,
        ScanFacts { conditions: 0, .. } => all,
        _ => (all * EQUAL).max(1.0),
    };
    let pages = if facts.conditions == 0 { PAGES } else { 2.0 };
    let (startup, a_row) = (0.15, ROW_COST + OPERATOR_COST + asked);
    let total = startup + pages * 4.0 + found * a_row;
    Estimate { startup, total, rows: if facts.unique { 1.0 } else { found * passed }, ..Estimate::default() }
}

/// Bytes that PostgreSQL takes a value to have, of a type of which none has more than so many.
fn usual_width(most: u32) -> u32 {
    match most {
        0..=32 => most,
        33..=999 => 32 + (most - 32) / 2,
        _ => 516,
    }
}

/// Bytes that PostgreSQL takes a value of a type to have (get_typavgwidth).
pub(crate) fn width_of(ty: Type) -> u32 {
    match ty.oid {
        Oid::VARCHAR | Oid::BPCHAR if ty.typmod > 4 => usual_width(ty.typmod as u32),
        Oid::BIT | Oid::VARBIT if ty.typmod > 0 => usual_width(8 + (ty.typmod as u32).div_ceil(8)),
        other => fixed_length(other).unwrap_or(32),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scan(facts: ScanFacts) -> PlanNode {
        PlanNode { scan: Some(facts), ..PlanNode::new("Seq Scan") }
    }

    #[test]
    fn a_table_nobody_analyzed_has_ten_pages() {
        let facts = ScanFacts { width: 40, unique: false, rows: None, conditions: 0, filters: 0 };
        let told = |facts| {
            let expected = of_node(&scan(facts), &[]);
            format!("{:.2} {}", expected.total, expected.rows)
        };
        assert_eq!(told(facts), "22.00 1200");
        assert_eq!(told(ScanFacts { filters: 1, ..facts }), "25.00 400");
    }

    #[test]
    fn widths_are_those_of_the_types() {
        assert_eq!(width_of(Type::INT4), 4);
        assert_eq!(width_of(Type { oid: Oid::VARCHAR, typmod: 14 }), 14);
        assert_eq!(width_of(Type { oid: Oid::VARCHAR, typmod: 104 }), 68);
        assert_eq!(width_of(Type::TEXT), 32);
    }
}
