//! The rows that a trigger's function is about: NEW, OLD, and tables of them.

use archipel_planner::bind::VariableScope;
use archipel_planner::bound::{BoundExpr, ExprKind};
use archipel_sql::catalog::TableRef;
use archipel_sql::types::{Oid, Type};

use crate::plpgsql::ast::VariableId;

/// The rows a trigger's function is about.
pub(crate) struct Rows {
    /// Those of OLD and NEW that are NULL: there is no such row, or the trigger is a statement's.
    pub(super) absent: Vec<VariableId>,
    /// The registers of their fields.
    pub(super) absent_fields: Vec<Vec<u32>>,
    /// The tables it names.
    pub transitions: Transitions,
}

/// Tables of old and new rows, as a trigger names them.
#[derive(Clone)]
pub(crate) struct Transitions {
    /// Registers of arrays.
    pub(super) named: Vec<(String, u32)>,
    pub(super) table: TableRef,
}

/// What is known of the rows of a trigger's call.
pub(crate) struct TriggerRows<'t> {
    /// Which of OLD and NEW are rows.
    pub present: [bool; 2],
    /// Whether what is generated from the new row is yet to be computed.
    pub before: bool,
    /// What it calls the tables of old and new rows.
    pub named: &'t [&'t str],
    pub table: &'t TableRef,
}

impl Transitions {
    /// The rows of a table that the trigger names.
    pub fn table(&self, name: &str) -> Option<(BoundExpr, TableRef)> {
        let (_, register) = self.named.iter().find(|(known, _)| known == name)?;
        let rows = BoundExpr::new(ExprKind::Variable(*register), Type::of(Oid::RECORD_ARRAY));
        Some((rows, self.table.clone()))
    }
}

/// What a text that is bound at run time sees of a routine: no variables, but these tables.
impl VariableScope for Transitions {
    fn resolve(&self, _parts: &[&str]) -> Option<BoundExpr> {
        None
    }

    fn relation(&self, name: &str) -> Option<(BoundExpr, TableRef)> {
        self.table(name)
    }
}
