//! What names mean and what they are called now: tables of FROM, a routine's arguments.

use archipel_sql::catalog::{Routine, TableRef};
use archipel_sql::style::Quoting;
use archipel_sql::types::Type;
use sqlparser::ast::helpers::attached_token::AttachedToken;
use sqlparser::ast::{Expr, FunctionArg, FunctionArgExpr};

use crate::bind::binder::{VariableConflict, VariableScope};
use crate::bound::{BoundExpr, ExprKind};

/// The arguments of a routine, as its statements name them.
pub struct Arguments<'r> {
    pub(super) routine: &'r str,
    inputs: Vec<(Option<&'r str>, Type)>,
}

impl Arguments<'_> {
    /// Those of a routine.
    pub fn of(routine: &Routine) -> Arguments<'_> {
        let inputs = routine.input_args().map(|arg| (arg.name.as_deref(), arg.ty)).collect();
        Arguments { routine: &routine.name, inputs }
    }

    fn value(&self, number: usize) -> BoundExpr {
        BoundExpr::new(ExprKind::Param(number as u16), self.inputs[number].1)
    }

    /// The one with this number, behind the routine's name if relations are in sight whose columns may
    /// get the same name one day.
    pub(super) fn shown(&self, number: u16, among_relations: bool, quoting: Quoting) -> Option<String> {
        let (name, _) = self.inputs.get(usize::from(number))?;
        Some(match name {
            Some(name) if among_relations => quoting.qualified(self.routine, name),
            Some(name) => quoting.name(name),
            None => format!("${}", number + 1),
        })
    }
}

impl VariableScope for Arguments<'_> {
    fn resolve(&self, parts: &[&str]) -> Option<BoundExpr> {
        let name = match parts {
            [name] => name,
            [routine, name] if *routine == self.routine => name,
            _ => return None,
        };
        let number = self.inputs.iter().position(|(own, _)| own.as_ref() == Some(name))?;
        Some(self.value(number))
    }

    fn row(&self, parts: &[&str]) -> Option<BoundExpr> {
        self.resolve(parts)
    }

    fn parameter(&self, number: u16) -> Option<BoundExpr> {
        let number = usize::from(number);
        (number < self.inputs.len()).then(|| self.value(number))
    }

    fn conflict(&self) -> VariableConflict {
        VariableConflict::Column
    }
}

/// What a table in FROM is called.
pub(super) struct CurrentName {
    /// Where its columns are bound.
    pub(super) bound: String,
    pub(super) shown: String,
    /// Whose columns have the names they have now; `None` for those that an alias names.
    pub(super) table: Option<TableRef>,
    /// The names of its columns, where they have to be the old ones.
    pub(super) listed: Option<Vec<String>>,
}

/// `relation.*` as an argument.
pub(super) fn starred_argument(arg: &FunctionArg) -> Option<Expr> {
    match arg {
        FunctionArg::Unnamed(FunctionArgExpr::QualifiedWildcard(name)) => {
            Some(Expr::QualifiedWildcard(name.clone(), AttachedToken::empty()))
        }
        _ => None,
    }
}
