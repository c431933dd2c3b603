//! Set-returning functions, in FROM and in a SELECT list.
//!
//! A call is compiled to a [`SetCode`], whose rows come as they are asked for where they can be.

use std::ops::ControlFlow;
use std::sync::Arc;

use archipel_sql::datum::Datum;
use archipel_sql::function::{FunctionContext, SetFunction, SetPage};
use archipel_sql::io::record::Fields;
use archipel_sql::stack;
use archipel_sql::types::Oid;

use super::node::{Node, Out};
use crate::array::Values;
use crate::native::run::expression::row_shape::RowShape;
use crate::native::run::expression::source::{Source, eval_all};
use crate::native::run::function::column_definition::DefinedRow;
use crate::native::run::routine::CompiledRoutine;
use crate::native::run::state::context::ExecContext;
use crate::native::run::state::error::ExecResult;

/// A compiled call that answers rows.
pub(crate) enum SetCode {
    Builtin {
        function: &'static SetFunction,
        args: Vec<Source>,
    },
    Routine {
        compiled: Arc<dyn CompiledRoutine>,
        args: Vec<Source>,
        /// It is not called with a NULL; whether it then answers one row of NULLs.
        strict: Option<bool>,
        volatile: bool,
    },
    Scalar(Source),
}

/// How many rows of a set are made at once.
const PAGE_ROWS: usize = 1024;

/// The rows of a call, made as they are asked for where they can be.
pub(crate) struct SetRows {
    rows: std::vec::IntoIter<Vec<Datum>>,
    /// Where there are more: the next page begins with the last row of this one.
    more: Option<(SetPage, Values)>,
}

impl SetRows {
    fn of(rows: Vec<Vec<Datum>>) -> SetRows {
        SetRows { rows: rows.into_iter(), more: None }
    }

    pub fn next(&mut self, ctx: &mut ExecContext<'_, '_>) -> ExecResult<Option<Vec<Datum>>> {
        if let Some(row) = self.rows.next() {
            if let (0, Some((page, args))) = (self.rows.len(), &mut self.more) {
                args[0] = row.first().cloned().unwrap_or(Datum::Null);
                let mut rows = page(&ctx.functions, args, PAGE_ROWS + 1)?;
                if rows.len() <= PAGE_ROWS {
                    self.more = None;
                }
                self.rows = rows.split_off(1.min(rows.len())).into_iter();
            }
            return Ok(Some(row));
        }
        Ok(None)
    }
}

impl SetCode {
    /// As CONTEXT lines name a routine.
    fn signature(&self) -> Option<&str> {
        match self {
            SetCode::Routine { compiled, .. } => compiled.signature(),
            _ => None,
        }
    }

    /// The rows of a call.
    pub fn rows(&self, ctx: &mut ExecContext<'_, '_>) -> ExecResult<SetRows> {
        let any_null = |args: &Values| args.iter().any(Datum::is_null);
        match self {
            SetCode::Builtin { function, args } => {
                let args = eval_all(args, ctx)?;
                if function.strict && any_null(&args) {
                    return Ok(SetRows::of(Vec::new()));
                }
                let Some(page) = function.page else {
                    return Ok(SetRows::of((function.eval)(&ctx.functions, &args)?));
                };
                let rows = page(&ctx.functions, &args, PAGE_ROWS)?;
                let more = (rows.len() == PAGE_ROWS).then_some((page, args));
                Ok(SetRows { rows: rows.into_iter(), more })
            }
            SetCode::Routine { compiled, args, strict, volatile } => {
                let args = eval_all(args, ctx)?;
                if let Some(one_row) = strict.filter(|_| any_null(&args)) {
                    return Ok(SetRows::of(if one_row { vec![Vec::new()] } else { Vec::new() }));
                }
                let mut rows: Vec<Vec<Datum>> = Vec::new();
                if *volatile {
                    ctx.outside_view(|ctx| compiled.call(ctx, &args, &mut rows))?;
                } else {
                    compiled.call(ctx, &args, &mut rows)?;
                }
                Ok(SetRows::of(rows))
            }
            SetCode::Scalar(source) => Ok(SetRows::of(vec![vec![source.eval(ctx)?]])),
        }
    }
}

/// A function in FROM.
pub(crate) struct SetSource {
    pub(crate) source: SetCode,
    pub(crate) slots: Vec<u32>,
    pub(crate) ordinality: bool,
    /// Whether its rows are composite values, also where they have but one field.
    pub(crate) composites: bool,
    /// What its rows must be, where the query alone says so.
    pub(crate) defined: Option<DefinedRow>,
}

impl SetSource {
    /// A row that is what the query defines. That of a function which was not called for a NULL has no
    /// value.
    fn checked(&self, row: Vec<Datum>, names: &FunctionContext<'_>) -> ExecResult<Vec<Datum>> {
        if let Some(defined) = self.defined.as_ref().filter(|_| !row.is_empty()) {
            defined.check_of(&row, None, self.source.signature(), names)?;
        }
        Ok(row)
    }

    pub fn run(&self, ctx: &mut ExecContext<'_, '_>, out: &mut Out<'_>) -> ExecResult<ControlFlow<()>> {
        let width = self.slots.len() - usize::from(self.ordinality);
        let mut rows = self.source.rows(ctx)?;
        let mut number = 0;
        while let Some(row) = rows.next(ctx)? {
            number += 1;
            let records = self.defined.as_ref().is_some_and(|defined| defined.records);
            let row = match <[Datum; 1]>::try_from(row) {
                // A composite in one column is spread over several.
                Ok([Datum::Record(record)]) if width > 1 || records || self.composites => {
                    if let Some(defined) = &self.defined {
                        let fields = Fields::of(&record, Oid::RECORD, &ctx.functions);
                        defined.check_of(&record, Some(&fields), self.source.signature(), &ctx.functions)?;
                    }
                    record.to_vec()
                }
                Ok([Datum::Null]) if records => Vec::new(),
                Ok([value]) => self.checked(vec![value], &ctx.functions)?,
                Err(row) => self.checked(row, &ctx.functions)?,
            };
            let mut values = row.into_iter();
            for slot in &self.slots[..width] {
                ctx.frame.slots[*slot as usize] = values.next().unwrap_or(Datum::Null);
            }
            ctx.tick()?;
            if self.ordinality {
                ctx.frame.slots[self.slots[width] as usize] = Datum::Int8(number);
            }
            if out(ctx)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }
}

/// Set-returning functions in a SELECT list, in step; the shorter ones are padded with NULL.
pub(crate) struct Expansion {
    pub(crate) input: Box<Node>,
    pub(crate) scalars: Vec<(u32, Source)>,
    pub(crate) sets: Vec<(u32, SetCode, RowShape)>,
}

impl Expansion {
    pub fn run(&self, ctx: &mut ExecContext<'_, '_>, out: &mut Out<'_>) -> ExecResult<ControlFlow<()>> {
        self.input.run(ctx, &mut |ctx| {
            let mut sets = Vec::with_capacity(self.sets.len());
            for (_, set, _) in &self.sets {
                sets.push(set.rows(ctx)?);
            }
            for step in 0.. {
                let mut rows = Vec::with_capacity(sets.len());
                for set in &mut sets {
                    rows.push(set.next(ctx)?);
                }
                if !rows.is_empty() && rows.iter().all(Option::is_none) {
                    break;
                }
                if step == 0 {
                    for (slot, source) in &self.scalars {
                        let value = source.eval(ctx)?;
                        ctx.frame.slots[*slot as usize] = value;
                    }
                }
                for ((slot, _, shape), row) in self.sets.iter().zip(&rows) {
                    if let Some(row) = row {
                        stack::check_fields(row)?;
                    }
                    let value = row.as_ref().map_or(Datum::Null, |row| shape.value(row));
                    ctx.frame.slots[*slot as usize] = value;
                }
                ctx.tick()?;
                if out(ctx)?.is_break() {
                    return Ok(ControlFlow::Break(()));
                }
                if rows.is_empty() {
                    break;
                }
            }
            Ok(ControlFlow::Continue(()))
        })
    }
}
