//! The columns of a finished relation become those of another type, as INSERT … SELECT and set operations
//! want them.

use archipel_sql::error::Result;
use archipel_sql::types::{Oid, Type};

use crate::bind::binder::Binder;
use crate::bound::*;

impl Binder<'_, '_> {
    /// Converts the columns of a finished relation. Unknown literals are found where they stand,
    /// so that they are read as the new type.
    pub(crate) fn coerce_columns(&mut self, rel: Rel, types: &[Type], what: &str) -> Result<Rel> {
        let current = rel.types();
        if current.iter().zip(types).all(|(from, to)| from.oid == to.oid) {
            return Ok(rel);
        }
        match rel {
            Rel::Project { input, mut exprs } => {
                let input = Box::new(self.coerce_below(*input, &mut exprs, types, what)?);
                let exprs = exprs
                    .into_iter()
                    .zip(types)
                    .map(|(expr, ty)| self.coerce_common(expr, *ty, what))
                    .collect::<Result<Vec<_>>>()?;
                Ok(Rel::Project { input, exprs })
            }
            // Below these the rows are the same; only unknown columns must change further down.
            Rel::Sort { input, keys } if unknowns_only(&current, types) => {
                let input = Box::new(self.coerce_columns(*input, types, what)?);
                Ok(Rel::Sort { input, keys })
            }
            Rel::Limit { input, limit, offset, with_ties } if unknowns_only(&current, types) => {
                let input = Box::new(self.coerce_columns(*input, types, what)?);
                Ok(Rel::Limit { input, limit, offset, with_ties })
            }
            Rel::Lock { input } if unknowns_only(&current, types) => {
                Ok(Rel::Lock { input: Box::new(self.coerce_columns(*input, types, what)?) })
            }
            Rel::With { ctes, body } => {
                let body = Box::new(self.coerce_columns(*body, types, what)?);
                Ok(Rel::With { ctes, body })
            }
            // Beside a set-returning function, too.
            Rel::ProjectSet { input, items } if differ_in_unknown_scalars(&items, types) => {
                let items = items
                    .into_iter()
                    .zip(types)
                    .map(|(item, ty)| match item {
                        SetItem::Scalar(expr) => self.coerce_common(expr, *ty, what).map(SetItem::Scalar),
                        set => Ok(set),
                    })
                    .collect::<Result<Vec<_>>>()?;
                self.coerce_columns(Rel::ProjectSet { input, items }, types, what)
            }
            Rel::Values { rows, .. } => {
                let rows = rows
                    .into_iter()
                    .map(|row| {
                        row.into_iter()
                            .zip(types)
                            .map(|(expr, ty)| self.coerce_common(expr, *ty, what))
                            .collect()
                    })
                    .collect::<Result<Vec<Vec<_>>>>()?;
                Ok(Rel::Values { rows, types: types.to_vec() })
            }
            other => {
                let exprs = current
                    .iter()
                    .enumerate()
                    .zip(types)
                    .map(|((i, from), to)| self.coerce_common(BoundExpr::column(i, *from), *to, what))
                    .collect::<Result<Vec<_>>>()?;
                Ok(Rel::Project { input: Box::new(other), exprs })
            }
        }
    }

    /// Unknown columns that a projection hands on, as it does where sort keys that are no columns of the query
    /// are left out again, become those of their types where they stand.
    fn coerce_below(
        &mut self,
        input: Rel,
        exprs: &mut [BoundExpr],
        types: &[Type],
        what: &str,
    ) -> Result<Rel> {
        let mut below = input.types();
        for (expr, ty) in exprs.iter_mut().zip(types).filter(|(expr, _)| expr.ty.oid == Oid::UNKNOWN) {
            let ExprKind::Column { depth: 0, index } = expr.kind else { continue };
            if let Some(column) = below.get_mut(usize::from(index)) {
                // One that is handed on twice has the first one's type.
                if column.oid == Oid::UNKNOWN {
                    *column = *ty;
                }
                expr.ty = *column;
            }
        }
        self.coerce_columns(input, &below, what)
    }
}

/// Whether a column of another type than it is to have is an unknown literal or parameter.
fn differ_in_unknown_scalars(items: &[SetItem], types: &[Type]) -> bool {
    let is_one = |(item, ty): (&SetItem, &Type)| {
        matches!(item, SetItem::Scalar(expr) if expr.ty.oid == Oid::UNKNOWN) && ty.oid != Oid::UNKNOWN
    };
    items.iter().zip(types).any(is_one)
}

fn unknowns_only(current: &[Type], types: &[Type]) -> bool {
    current.iter().zip(types).all(|(from, to)| from.oid == to.oid || from.oid == Oid::UNKNOWN)
}
