//! The state of one compilation.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use archipel_planner::bound::BoundExpr;
use archipel_planner::native::RoutineLinker;
use archipel_planner::route::Access;
use archipel_sql::catalog::{Requirement, RoutineRef};

use super::environment::Environment;
use super::hoist::answers;
use super::record::variable::Storage;
use super::statement::result_columns::Columns;
use super::trace::Trace;
use super::trace::flow::Flow;
use super::trigger::rows;
use crate::plpgsql::ast::{Body, VariableId};
use crate::run::operation::{OperationKind, Place, ReferenceRead};

/// Whether the arguments are the first registers, in order.
pub(super) fn is_plain(arguments: &[Place]) -> bool {
    arguments
        .iter()
        .enumerate()
        .all(|(index, place)| matches!(place, Place::Scalar { register, .. } if *register as usize == index))
}

/// The state of one compilation.
pub(crate) struct Compiler<'a> {
    pub routine: &'a RoutineRef,
    pub body: &'a Body,
    pub environment: &'a Environment,
    pub linker: &'a Arc<dyn RoutineLinker + Send + Sync>,
    /// Where each variable lives.
    pub storage: Vec<Storage>,
    pub registers: u32,
    pub columns: Columns,
    /// The record variables that several statements give rows.
    pub given_often: Vec<VariableId>,
    pub trace: Trace,
    pub accesses: Vec<Access>,
    /// Rows whose keys are known before their statements run.
    pub foreseen: Vec<crate::compile::trace::row_request::Foreseen>,
    /// Which of them are fetched ahead, for EXPLAIN.
    pub ahead_text: Vec<String>,
    pub reference_reads: Vec<ReferenceRead>,
    pub failures: Vec<(u32, String)>,
    /// Loops and labelled blocks around the statement, innermost last.
    pub labels: Vec<OpenLabel>,
    pub numbers: u32,
    /// How often a record variable was made NULL, in the registers known by then.
    pub nulled: u32,
    /// Set for the function of a trigger.
    pub trigger: Option<rows::Rows>,
    /// Told by name look-ups, too.
    pub flow: RefCell<Flow>,
    /// Whether GET DIAGNOSTICS asks for callers.
    pub asks: bool,
    /// Values under names no SQL can spell.
    pub hidden: Vec<BoundExpr>,
    /// What the statement being compiled needs to be allowed.
    pub needed: RefCell<Vec<Requirement>>,
    /// Calls that are made before their statements.
    pub answers: answers::Answers,
    /// Whether the statement follows a COMMIT or ROLLBACK.
    pub begins: bool,
    /// Whether it is an assignment, not a declaration's.
    pub assigns: bool,
    /// Which parameters of type `record` have registers for their fields.
    pub structured: Vec<VariableId>,
    /// The registers where the values of such come.
    pub arrivals: Vec<(VariableId, u32)>,
    /// What puts fields that the statement at hand is given back into the rows that they are parts of: the
    /// values of domains over composite types, each in one register.
    pub parts_put: Vec<OperationKind>,
    /// Those of which fields were asked for without that.
    pub asked: Rc<RefCell<Vec<VariableId>>>,
}

pub(crate) struct OpenLabel {
    pub label: Option<String>,
    pub number: u32,
    pub is_loop: bool,
    /// The structures of the records where it is left, and where its next round is begun.
    pub left: Vec<Vec<crate::compile::record::variable::RecordState>>,
    pub continued: Vec<Vec<crate::compile::record::variable::RecordState>>,
    /// Whether it is a loop over the rows of a statement that changes them.
    pub changing: bool,
}
