//! FETCH, MOVE and WHERE CURRENT OF.

use std::sync::Arc;

use archipel_planner::bound::OutputColumn;
use archipel_sql::ast::FetchDirection;
use archipel_sql::error::SqlError;
use archipel_sql::function::SessionHost;
use archipel_sql::types::Oid;

use super::expression::Compiled;
use crate::run::place::Targets;

/// The variable that holds a cursor's name.
pub struct CursorPlace {
    pub register: u32,
    /// Of the variable.
    pub name: Box<str>,
    /// Why it cannot take the name of a portal, if it is a constant.
    pub constant: Option<SqlError>,
}

/// FETCH, and MOVE without `into`.
pub struct FetchPlan {
    pub cursor: CursorPlace,
    pub direction: Movement,
    pub into: Option<FetchInto>,
}

pub enum Movement {
    Fixed(FetchDirection),
    Counted(fn(i64) -> FetchDirection, Compiled),
}

pub struct FetchInto {
    /// One for each structure that rows have had here.
    pub targets: Vec<Targets>,
    /// Where a value stands while it is cast.
    pub scratch: Vec<u32>,
    /// Whether a row is one value, a record, on its way into a variable of a domain over rows.
    pub gathers: bool,
    pub casts: Arc<dyn FetchCasts>,
}

/// Casts of a fetched row, over scratch registers; `None` where the type is right already.
pub type CastList = Arc<Vec<Option<Compiled>>>;

/// Finds the casts for the columns a cursor turns out to have.
pub trait FetchCasts: Send + Sync {
    /// Which of the targets take such rows, and the casts to them.
    fn of(
        &self,
        columns: &[OutputColumn],
        session: &dyn SessionHost,
    ) -> archipel_planner::native::ExecResult<(usize, CastList)>;
}

/// WHERE CURRENT OF.
pub struct CurrentOfPlan {
    pub cursor: CursorName,
    pub table: Oid,
    pub table_name: Box<str>,
    /// Where the key of the row goes.
    pub registers: Vec<u32>,
    /// The statement as written.
    pub text: Box<str>,
}

pub enum CursorName {
    In(CursorPlace),
    Is(Box<str>),
}
