//! What a routine answers: its rows, on their way to the sink.

use std::ops::ControlFlow;
use std::sync::Arc;

use archipel_planner::native::{ExecContext, ExecResult};
use archipel_sql::datum::Datum;

use super::ending::Flow;
use super::invocation::Invocation;
use super::operation::expression::Compiled;
use super::operation::site::Site;
use super::operation::*;
use super::sink::{FirstRow, Row};

impl Invocation<'_, '_> {
    pub(crate) fn send(&mut self, row: &mut [Datum]) -> ExecResult<()> {
        self.sent += 1;
        // A routine runs to its end, whether or not somebody still wants its rows.
        let _: ControlFlow<()> = self.sink.given(row)?;
        Ok(())
    }

    /// Sends the OUT, INOUT or TABLE columns as they stand.
    pub(super) fn send_columns(&mut self, ctx: &mut ExecContext<'_, '_>) -> ExecResult<()> {
        let mut row = self.columns(&mut ctx.variables[..], |register| register.clone());
        self.send(&mut row)
    }

    /// The same as the routine's last act: nobody reads them afterwards.
    pub(super) fn give_columns(&mut self, ctx: &mut ExecContext<'_, '_>) -> ExecResult<()> {
        if let Some(at) = &self.program.columns_at {
            return self.send(&mut ctx.variables[at.clone()]);
        }
        let mut row = self.columns(&mut ctx.variables[..], Datum::take);
        self.send(&mut row)
    }

    /// The OUT, INOUT or TABLE columns as a row; `read` copies a register, or empties it.
    fn columns(&self, variables: &mut [Datum], read: fn(&mut Datum) -> Datum) -> Row {
        let record = |variables: &mut [Datum], registers: &[u32], present: &Option<u32>| {
            let is_there = present.is_none_or(|present| !variables[present as usize].is_null())
                || registers.iter().any(|register| !variables[*register as usize].is_null());
            let fields: Row =
                registers.iter().map(|register| read(&mut variables[*register as usize])).collect();
            (is_there, fields)
        };
        match &self.program.columns[..] {
            [OutColumn::Row { registers, present, spread: true }] => {
                let (is_there, fields) = record(variables, registers, present);
                // One row of a set is there in any case.
                if is_there || self.program.routine.returns_set { fields } else { Row::new() }
            }
            [OutColumn::Spread(register)] => match read(&mut variables[*register as usize]) {
                Datum::Record(fields) => fields.iter().cloned().collect(),
                _ => {
                    let mut row = Row::new();
                    if self.program.routine.returns_set {
                        row.resize(self.program.width as usize, Datum::Null);
                    }
                    row
                }
            },
            columns => {
                let mut row = Row::new();
                for column in columns {
                    row.push(match column {
                        OutColumn::Register(register) | OutColumn::Spread(register) => {
                            read(&mut variables[*register as usize])
                        }
                        OutColumn::Row { registers, present, .. } => {
                            match record(variables, registers, present) {
                                (true, fields) => Datum::Record(fields.into_vec().into()),
                                (false, _) => Datum::Null,
                            }
                        }
                    });
                }
                row
            }
        }
    }

    pub(super) fn send_values(
        &mut self,
        ctx: &mut ExecContext<'_, '_>,
        values: &[Compiled],
        site: Site,
    ) -> ExecResult<()> {
        if let [value] = values {
            let value = value(ctx).map_err(|e| self.at(e, site))?;
            return self.send(&mut [value]);
        }
        let mut row = Row::new();
        for value in values {
            row.push(value(ctx).map_err(|e| self.at(e, site))?);
        }
        self.send(&mut row)
    }

    pub(super) fn send_record(
        &mut self,
        ctx: &mut ExecContext<'_, '_>,
        value: &Compiled,
        width: Option<u32>,
        site: Site,
    ) -> ExecResult<()> {
        let value = value(ctx).map_err(|e| self.at(e, site))?;
        let Some(width) = width else {
            return match value {
                Datum::Null if !self.program.routine.returns_set => self.send(&mut []),
                record => self.send(&mut [record]),
            };
        };
        let mut row: Row = match value {
            Datum::Record(fields) => fields.iter().cloned().collect(),
            // NULL is no row: the trigger's own row is dropped.
            _ if self.program.at_end == AtEnd::MissingOfTrigger => return Ok(()),
            // NULL of a composite type, and not a row of NULLs.
            _ if !self.program.routine.returns_set => return self.send(&mut []),
            _ => Row::new(),
        };
        row.resize(width as usize, Datum::Null);
        self.send(&mut row)
    }

    /// RETURN of values.
    pub(super) fn return_row(
        &mut self,
        ctx: &mut ExecContext<'_, '_>,
        values: &[Compiled],
        site: Site,
    ) -> ExecResult<Flow> {
        self.send_values(ctx, values, site)?;
        Ok(Flow::Return)
    }

    /// RETURN of a record.
    pub(super) fn return_record(
        &mut self,
        ctx: &mut ExecContext<'_, '_>,
        value: &Compiled,
        width: Option<u32>,
        site: Site,
    ) -> ExecResult<Flow> {
        self.send_record(ctx, value, width, site)?;
        Ok(Flow::Return)
    }

    /// RETURN of a value that is cast when the routine has ended, out of a register.
    pub(super) fn return_cast(
        &mut self,
        ctx: &mut ExecContext<'_, '_>,
        value: &Compiled,
        register: u32,
        cast: &Arc<Compiled>,
        site: Site,
    ) -> ExecResult<Flow> {
        ctx.variables[register as usize] = value(ctx).map_err(|e| self.at(e, site))?;
        self.returned = Some(cast.clone());
        Ok(Flow::Return)
    }

    /// RETURN QUERY.
    pub(super) fn return_query(
        &mut self,
        ctx: &mut ExecContext<'_, '_>,
        statement: &SqlStatement,
        spread: bool,
        site: Site,
    ) -> ExecResult<()> {
        let sent = self.run_to_sink(ctx, statement, spread, site)?;
        self.set_found(ctx, sent);
        Ok(())
    }

    /// The last statement of a SQL function that returns one row: its first row, or NULLs.
    pub(super) fn first_row(
        &mut self,
        ctx: &mut ExecContext<'_, '_>,
        statement: &SqlStatement,
        spread: bool,
        site: Site,
    ) -> ExecResult<Flow> {
        let mut first = FirstRow::new(1, std::mem::take(&mut self.buffer));
        self.run_statement(ctx, statement, &mut first, site)?;
        match &mut first.row[..] {
            [Datum::Record(fields)] if spread => {
                let mut row: Row = fields.iter().cloned().collect();
                self.send(&mut row)?;
            }
            // NULL of a composite type.
            _ if spread || (first.count == 0 && self.program.width > 1) => self.send(&mut [])?,
            _ => {
                if first.count == 0 {
                    first.row.resize(self.program.width.max(1) as usize, Datum::Null);
                }
                self.send(&mut first.row)?;
            }
        }
        Ok(Flow::Return)
    }
}
