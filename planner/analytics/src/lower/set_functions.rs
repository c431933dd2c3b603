//! Set-returning functions of constants: their rows, as they are.

use archipel_planner::bound::{BoundExpr, SetCall, SetItem};
use archipel_sql::datum::Datum;
use archipel_sql::function::SetFunction;
use archipel_sql::types::Type;

use super::lowering::{Lowering, unsupported};
use crate::lower::{Lowered, Lowerer};

/// A row of so many columns: the fields of the composite value that it is, if it is one.
pub(crate) fn spread(row: Vec<Datum>, width: usize) -> Vec<Datum> {
    let mut row = match <[Datum; 1]>::try_from(row) {
        Ok([Datum::Record(record)]) => record.to_vec(),
        Ok(value) => value.into(),
        Err(row) => row,
    };
    row.resize(width, Datum::Null);
    row
}

impl Lowerer<'_> {
    /// All rows that a call answers.
    pub(crate) fn set(&self, function: &SetFunction, args: &[BoundExpr]) -> Lowering<Vec<Vec<Datum>>> {
        let args = args.iter().map(|arg| self.constant(arg)).collect::<Lowering<Vec<_>>>()?;
        if function.strict && args.iter().any(Datum::is_null) {
            return Ok(Vec::new());
        }
        Ok((function.eval)(&self.context.functions(), &args)?)
    }

    /// Sets side by side (chapter 38.5.8): as many rows as the longest has, beside NULL where
    /// another has ended, beside the same value everywhere where it is none.
    pub(crate) fn sets(&mut self, items: &[SetItem]) -> Lowering<Lowered> {
        let types: Vec<Type> = items.iter().map(SetItem::ty).collect();
        let mut scalars = Vec::with_capacity(items.len());
        let mut rows: Vec<Vec<Datum>> = Vec::new();
        for (place, item) in items.iter().enumerate() {
            let (function, args) = match item {
                SetItem::Scalar(expr) => {
                    scalars.push((place, self.constant(expr)?));
                    continue;
                }
                SetItem::Set { call: SetCall::Builtin { function, args }, .. }
                    if function.columns.len() <= 1 =>
                {
                    (function, args)
                }
                SetItem::Set { .. } => return unsupported("a set of rows in a SELECT list"),
            };
            for (at, row) in self.set(function, args)?.into_iter().enumerate() {
                if at == rows.len() {
                    rows.push(vec![Datum::Null; items.len()]);
                }
                let Ok([value]) = <[Datum; 1]>::try_from(row) else {
                    return unsupported("a set of rows in a SELECT list");
                };
                rows[at][place] = value;
            }
        }
        for row in &mut rows {
            for (place, value) in &scalars {
                row[*place] = value.clone();
            }
        }
        self.table_of(&rows, &types)
    }
}
