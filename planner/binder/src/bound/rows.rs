//! The rows that operators produce: how many columns, and of which types; what rows say of themselves; those
//! that statements answer.

use std::sync::Arc;

use archipel_sql::record::RecordDescriptor;
use archipel_sql::types::{Oid, Type};

use super::{BoundExpr, BoundStatement, FieldNames, OutputColumn, Rel, Returning, SetItem};

/// What rows made of these items say of themselves: nothing where the plan knows their type.
pub fn row_descriptor(ty: Type, items: &[BoundExpr], names: &FieldNames) -> Option<Arc<RecordDescriptor>> {
    if ty.oid != Oid::RECORD {
        return None;
    }
    let types = items.iter().map(|item| item.ty);
    Some(match names {
        Some(names) => RecordDescriptor::of(names.iter().zip(types)),
        None => RecordDescriptor::of_row(types),
    })
}

impl Rel {
    /// Whether it computes more than one row of constants, which PostgreSQL does as it plans.
    pub fn is_over_rows(&self) -> bool {
        match self {
            Rel::Unit | Rel::Values { .. } => false,
            Rel::Project { input, .. }
            | Rel::Filter { input, .. }
            | Rel::Sort { input, .. }
            | Rel::Limit { input, .. } => input.is_over_rows(),
            _ => true,
        }
    }

    /// The types of the columns this operator produces.
    pub fn types(&self) -> Vec<Type> {
        match self {
            Rel::Unit => Vec::new(),
            Rel::Values { types, .. } | Rel::CteScan { types, .. } => types.clone(),
            Rel::Function { types, ordinality, .. } => {
                let mut types = types.clone();
                if *ordinality {
                    types.push(Type::INT8);
                }
                types
            }
            Rel::Explained { .. } => vec![Type::TEXT],
            Rel::Scan { table, .. } => table.columns.iter().map(|column| column.ty).collect(),
            Rel::Family { family, .. } => {
                let columns = family.root.columns.iter().map(|column| column.ty);
                columns.chain(std::iter::once(Type::OID)).collect()
            }
            Rel::Filter { input, .. }
            | Rel::Sort { input, .. }
            | Rel::Distinct { input, .. }
            | Rel::Lock { input }
            | Rel::Limit { input, .. } => input.types(),
            Rel::Project { exprs, .. } => exprs.iter().map(|expr| expr.ty).collect(),
            Rel::ProjectSet { items, .. } => items.iter().map(SetItem::ty).collect(),
            Rel::Join { left, right, .. } => {
                let mut types = left.types();
                types.extend(right.types());
                types
            }
            Rel::Aggregate { group_by, aggregates, groupings, .. } => {
                let groups = group_by.iter().map(|expr| expr.ty);
                let calls = aggregates.iter().map(|call| call.result);
                groups.chain(calls).chain(groupings.iter().map(|_| Type::INT4)).collect()
            }
            Rel::Window { input, calls } => {
                let mut types = input.types();
                types.extend(calls.iter().map(|call| call.result));
                types
            }
            Rel::SetOp { left, .. } => left.types(),
            Rel::With { body, .. } => body.types(),
        }
    }

    /// How many columns this operator produces.
    pub fn width(&self) -> usize {
        match self {
            Rel::Unit => 0,
            Rel::Values { types, .. } | Rel::CteScan { types, .. } => types.len(),
            Rel::Function { types, ordinality, .. } => types.len() + usize::from(*ordinality),
            Rel::Explained { .. } => 1,
            Rel::Scan { table, .. } => table.columns.len(),
            Rel::Family { family, .. } => family.root.columns.len() + 1,
            Rel::Filter { input, .. }
            | Rel::Sort { input, .. }
            | Rel::Distinct { input, .. }
            | Rel::Lock { input }
            | Rel::Limit { input, .. } => input.width(),
            Rel::Project { exprs, .. } => exprs.len(),
            Rel::ProjectSet { items, .. } => items.len(),
            Rel::Join { left, right, .. } => left.width() + right.width(),
            Rel::Aggregate { group_by, aggregates, groupings, .. } => {
                group_by.len() + aggregates.len() + groupings.len()
            }
            Rel::Window { input, calls } => input.width() + calls.len(),
            Rel::SetOp { left, .. } => left.width(),
            Rel::With { body, .. } => body.width(),
        }
    }
}

impl SetItem {
    /// The type of the column the item fills.
    pub fn ty(&self) -> Type {
        match self {
            SetItem::Scalar(expr) => expr.ty,
            SetItem::Set { ty, .. } => *ty,
        }
    }
}

impl BoundStatement {
    /// The columns of the rows it answers.
    pub fn columns(&self) -> &[OutputColumn] {
        match self {
            BoundStatement::Query(query) => &query.columns,
            BoundStatement::Call(call) => &call.columns,
            BoundStatement::With { statement, .. } => statement.columns(),
            _ => match self.returning() {
                Some(returning) => &returning.columns,
                None => &[],
            },
        }
    }

    /// RETURNING, below a WITH, too.
    pub fn returning(&self) -> Option<&Returning> {
        match self {
            BoundStatement::Insert(insert) => insert.returning.as_ref(),
            BoundStatement::Update(update) => update.returning.as_ref(),
            BoundStatement::Delete(delete) => delete.returning.as_ref(),
            BoundStatement::With { statement, .. } => statement.returning(),
            BoundStatement::Query(_) | BoundStatement::Merge(_) | BoundStatement::Call(_) => None,
        }
    }

    /// Where its RETURNING is or would be; `None` of a statement that has none.
    pub fn returning_mut(&mut self) -> Option<&mut Option<Returning>> {
        match self {
            BoundStatement::Insert(insert) => Some(&mut insert.returning),
            BoundStatement::Update(update) => Some(&mut update.returning),
            BoundStatement::Delete(delete) => Some(&mut delete.returning),
            BoundStatement::With { statement, .. } => statement.returning_mut(),
            BoundStatement::Query(_) | BoundStatement::Merge(_) | BoundStatement::Call(_) => None,
        }
    }
}
