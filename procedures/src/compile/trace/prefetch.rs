//! Rows to fetch ahead: those whose keys the trace knows as expressions over the arguments, or
//! over the arguments and a loop's counter. The first kind is asked for when the call begins,
//! the second some rounds before its turn ([`crate::run`], `ahead`).

use archipel_planner::bind::visit;
use archipel_planner::bound::{BoundExpr, ExprKind};
use archipel_planner::native::prefetch::{KnownRow, RowAhead};

use super::COUNTER_BASE;
use super::row_request::Foreseen;
use super::symbols::Symbol;
use crate::compile::compiler::Compiler;
use crate::compile::record::variable::Storage;

/// Fewer rows known from the arguments are not worth looking for beforehand: the first access
/// comes at once.
const ROWS_MIN: usize = 3;
/// More are not asked for together.
const ROWS_MAX: usize = 16;

/// The counter that some expressions read; `Err` if there are several.
fn counter_of(values: &[BoundExpr]) -> Result<Option<u32>, ()> {
    let mut counter = None;
    let mut several = false;
    for value in values {
        visit::visit_expr(value, 0, &mut |part, _| {
            if let ExprKind::Variable(number) = part.kind {
                several |= counter.is_some_and(|known| known != number);
                counter = Some(number);
            }
            true
        });
    }
    if several { Err(()) } else { Ok(counter) }
}

impl Compiler<'_> {
    /// Notes a row that a statement will read or write.
    pub(in crate::compile) fn foresee(&mut self, row: &KnownRow) {
        let mut row = row.clone();
        for value in &mut row.values {
            match self.trace.symbol(value) {
                Symbol::Known(known) => *value = known,
                _ => return,
            }
        }
        let Ok(counter) = counter_of(&row.values) else { return };
        if counter.is_some_and(|counter| counter < COUNTER_BASE) {
            return;
        }
        let mut alike = self.foreseen.iter().filter(|other| other.counter == counter);
        // No more are asked for.
        let enough = alike.clone().count() >= ROWS_MAX;
        if !enough && !alike.any(|other| other.row.is_same(&row)) {
            self.foreseen.push(Foreseen { counter, row });
        }
    }

    /// The rows foreseen over a loop's counter, which lives in `register`.
    pub(in crate::compile) fn rows_of_counter(
        &mut self,
        counter: u32,
        register: u32,
        name: &str,
    ) -> Vec<RowAhead> {
        let rows = self.rows_ahead(Some(counter), Some(register));
        self.tell(&rows, &format!("for each {name}: "));
        rows
    }

    /// The rows foreseen over the arguments alone.
    pub(in crate::compile) fn rows_of_arguments(&mut self) -> Vec<RowAhead> {
        let mut rows = self.rows_ahead(None, None);
        if rows.len() < ROWS_MIN {
            rows.clear();
        }
        self.tell(&rows, "");
        rows
    }

    fn tell(&mut self, rows: &[RowAhead], each: &str) {
        if !rows.is_empty() {
            let tables: Vec<&str> = rows.iter().map(RowAhead::table).collect();
            self.ahead_text.push(format!("{each}{}", tables.join(", ")));
        }
    }

    fn rows_ahead(&mut self, counter: Option<u32>, register: Option<u32>) -> Vec<RowAhead> {
        let (mine, others) =
            std::mem::take(&mut self.foreseen).into_iter().partition(|row: &Foreseen| row.counter == counter);
        self.foreseen = others;
        let mine: Vec<Foreseen> = mine;
        let mut rows = Vec::new();
        for Foreseen { mut row, .. } in mine.into_iter().take(ROWS_MAX) {
            let placed = row.values.iter_mut().all(|value| self.put_registers(value, counter, register));
            // A key that cannot be computed beforehand is found when its statement runs.
            if let (true, Ok(row)) = (placed, self.native(|env| row.compile(env))) {
                rows.push(row);
            }
        }
        rows
    }

    /// Puts registers in the place of arguments and the counter; false if one has none.
    fn put_registers(&self, value: &mut BoundExpr, counter: Option<u32>, register: Option<u32>) -> bool {
        let mut placed = true;
        visit::visit_expr_mut(value, 0, &mut |part, _| {
            let register = match part.kind {
                ExprKind::Param(number) => self.register_of_argument(number),
                ExprKind::Variable(number) if Some(number) == counter => register,
                _ => return placed,
            };
            match register {
                Some(register) => part.kind = ExprKind::Variable(register),
                None => placed = false,
            }
            false
        });
        placed
    }

    fn register_of_argument(&self, number: u16) -> Option<u32> {
        let inputs = self.routine.args.iter().zip(&self.body.parameters);
        let (_, variable) = inputs
            .filter(|(arg, _)| crate::compile::environment::is_input(arg.mode))
            .nth(usize::from(number))?;
        match &self.storage[*variable as usize] {
            Storage::Scalar { register, .. } => Some(*register),
            _ => None,
        }
    }
}
