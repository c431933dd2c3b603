//! Records that take the structure of a value, which shows when the value is there.

use archipel_planner::native::{ExecContext, ExecResult};
use archipel_sql::datum::Datum;
use archipel_sql::function::FunctionContext;
use archipel_sql::io::natural_type;
use archipel_sql::io::record::Fields;
use archipel_sql::record::Record;
use archipel_sql::types::{Oid, Type};

use super::condition::null_refused;
use super::invocation::Invocation;
use super::operation::FoundRecord;
use super::operation::site::Site;
use super::rows::store_row;
use super::sink::Row;
use crate::compile::record::shape::Columns;

/// What a record's fields are called, and their types. A literal that stayed one is text.
fn columns_of(record: &Record, ctx: &FunctionContext<'_>) -> Columns {
    if let Some(columns) = Fields::of(record, Oid::RECORD, ctx).named() {
        return columns;
    }
    let shown = |value: &Datum| if value.is_null() { Type::TEXT } else { natural_type(value) };
    let fields = record.iter().enumerate();
    fields.map(|(place, value)| (format!("f{}", place + 1), shown(value))).collect()
}

impl Invocation<'_, '_> {
    /// Stores the fields of a record where those of its structure are.
    pub(super) fn assign_found(
        &mut self,
        ctx: &mut ExecContext<'_, '_>,
        found: &FoundRecord,
        site: Site,
    ) -> ExecResult<()> {
        let value = (found.value)(ctx).map_err(|e| self.at(e, site))?;
        let Datum::Record(record) = value else {
            if let Some(name) = &found.not_null {
                return Err(self.at(null_refused(name).into(), site));
            }
            for register in &found.registers {
                ctx.variables[*register as usize] = Datum::Null;
            }
            return Ok(());
        };
        let columns = columns_of(&record, &ctx.functions);
        let at = found.shapes.find(found.place, &found.structures, columns)?;
        let mut row: Row = record.iter().cloned().collect();
        store_row(ctx, &found.targets[at], &mut row).map_err(|e| self.at(e, site))
    }
}
