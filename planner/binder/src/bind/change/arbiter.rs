//! The key that ON CONFLICT means: by its columns, by what infers it, or by its constraint.

use archipel_sql::catalog::{Index, Privileges, TableRef};
use archipel_sql::datum::Datum;
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::function::{ResolvedFunction, lookup_functions};
use archipel_sql::types::Type;
use sqlparser::ast;
use sqlparser::ast::ObjectName;

use super::reference::bind_index_expressions;
use super::target::ChangeTarget;
use crate::bind::binder::Binder;
use crate::bind::clause::Clause;
use crate::bind::from::barrier::all_of;
use crate::bind::level::{Level, LevelKind, Relation};
use crate::bind::query::select::filtered;
use crate::bound::*;
use crate::implication::implied;

/// The unique key a list of conflict columns means.
pub(super) fn plain_arbiter(table: &TableRef, columns: &[u16]) -> Result<ConflictArbiter> {
    let same = |key: &[u16]| key.len() == columns.len() && key.iter().all(|column| columns.contains(column));
    if table.primary_key.as_ref().is_some_and(|key| same(&key.columns)) {
        return Ok(ConflictArbiter::Primary);
    }
    let of = |index: &Index| index.columns.iter().map(|column| column.column).collect::<Vec<u16>>();
    let found = table.indexes.iter().find(|index| index.is_plain_key() && same(&of(index)));
    found.map(|index| ConflictArbiter::Index(index.oid)).ok_or_else(no_arbiter)
}

const NO_ARBITER: &str = "there is no unique or exclusion constraint matching the ON CONFLICT specification";

/// 42P10.
pub fn no_arbiter() -> SqlError {
    SqlError::new(SqlState::INVALID_COLUMN_REFERENCE, NO_ARBITER)
}

pub(super) fn constraint_arbiter(table: &TableRef, name: &str) -> Result<ConflictArbiter> {
    if table.primary_key.as_ref().is_some_and(|key| key.name == name) {
        return Ok(ConflictArbiter::Primary);
    }
    let named = |index: &&Index| index.name == name && index.unique && index.constraint;
    table.indexes.iter().find(named).map(|index| ConflictArbiter::Index(index.oid)).ok_or_else(|| {
        SqlError::new(
            SqlState::UNDEFINED_OBJECT,
            format!("constraint \"{name}\" for table \"{}\" does not exist", table.name),
        )
    })
}

/// Whether all of these expressions are among those.
fn are_among(these: &[BoundExpr], those: &[BoundExpr]) -> bool {
    these.iter().all(|one| those.iter().any(|other| one.is_same(other)))
}

/// Rows that are inserted where these conditions on parameters hold; 42P10 where they do not: the key that was
/// inferred with their help is another one, or none.
pub(super) fn where_inferred(source: Rel, conditions: Vec<BoundExpr>) -> Result<Rel> {
    let [function, ..] = lookup_functions("archipel_inference_check") else {
        return Err(SqlError::internal("there is no archipel_inference_check"));
    };
    let function = ResolvedFunction { function, result: Type::BOOL };
    let message = BoundExpr::constant(Datum::text(NO_ARBITER), Type::TEXT);
    let check = |condition| {
        BoundExpr::new(ExprKind::Call { function, args: vec![condition, message.clone()] }, Type::BOOL)
    };
    Ok(filtered(source, all_of(conditions.into_iter().map(check).collect())))
}

impl Binder<'_, '_> {
    /// Whoever names a key by its constraint reads its columns.
    pub(super) fn need_arbiter(&mut self, to: &ChangeTarget, arbiter: ConflictArbiter) {
        let columns: Vec<u16> = match (arbiter, &to.table.primary_key) {
            (ConflictArbiter::Primary, Some(key)) => key.columns.iter().map(|column| column + 1).collect(),
            (ConflictArbiter::Primary, None) => Vec::new(),
            (ConflictArbiter::Index(oid), _) => {
                let index = to.table.indexes.iter().find(|index| index.oid == oid);
                let parts = index.iter().flat_map(|index| &index.columns);
                parts.map(|part| part.column + 1).collect()
            }
        };
        let (table, acting) = to.below().unwrap_or((to.named(), self.env.acting));
        self.need_columns(table, Privileges::SELECT, &columns, acting);
    }

    /// The name of a column is none of a variable, unless columns come first.
    pub(super) fn must_be_a_column(&mut self, relation: &Relation, column: &ast::Ident) -> Result<()> {
        let level = Level::new(LevelKind::Plain, vec![relation.clone()]);
        let expr = ast::Expr::Identifier(column.clone());
        match self.with_level(level, |binder| binder.clause_expr(&expr, Clause::IndexExpression)) {
            Err(error) if error.state() == SqlState::AMBIGUOUS_COLUMN => Err(error),
            // What is missing is told of the column.
            _ => Ok(()),
        }
    }

    /// The unique index over the same columns and expressions, whose condition the given one
    /// implies (infer_arbiter_indexes). With it what must hold of parameters for that.
    pub(super) fn inferred_arbiter(
        &mut self,
        table: &TableRef,
        relation: &Relation,
        inference: &str,
    ) -> Result<(ConflictArbiter, Vec<BoundExpr>)> {
        let (elements, condition) = archipel_sql::parser::parse_inference(inference)?;
        let level = Level::new(LevelKind::Plain, vec![relation.clone()]);
        let ((keys, condition), _) = self.with_level(level, |binder| {
            let keys = elements
                .iter()
                .map(|element| binder.clause_expr(element, Clause::IndexExpression))
                .collect::<Result<Vec<_>>>()?;
            let condition = match &condition {
                Some(condition) => {
                    let bound = binder.clause_expr(condition, Clause::IndexPredicate)?;
                    Some(binder.boolean(bound, "WHERE")?)
                }
                None => None,
            };
            Ok((keys, condition))
        })?;
        let plain: Option<Vec<u16>> = keys
            .iter()
            .map(|key| match key.kind {
                ExprKind::Column { depth: 0, index } => Some(index),
                _ => None,
            })
            .collect();
        // A condition may be given to a key that has none.
        if let Some(columns) = &plain
            && let Ok(found) = plain_arbiter(table, columns)
        {
            return Ok((found, Vec::new()));
        }
        let stored = bind_index_expressions(self.env.catalog, table)?;
        let parts: Vec<_> = table.index_expressions().map(|(index, part)| (index.oid, part.place)).collect();
        let mut conditional = None;
        for index in table.indexes.iter().filter(|index| index.unique) {
            let mut proved = index.predicate.is_none().then(Vec::new);
            let mut wanted = Vec::with_capacity(index.columns.len());
            for (place, column) in index.columns.iter().enumerate() {
                let part = parts.iter().position(|known| *known == (index.oid, place as u16));
                wanted.push(match part.map(|at| &stored[at]) {
                    Some(part) => {
                        if let Some(predicate) = &part.predicate {
                            proved = condition.as_ref().and_then(|given| implied(given, predicate));
                        }
                        part.expr.clone()
                    }
                    None => {
                        let at = usize::from(column.column);
                        BoundExpr::column(at, table.columns[at].ty)
                    }
                });
            }
            let Some(conditions) = proved else { continue };
            if are_among(&wanted, &keys) && are_among(&keys, &wanted) {
                let found = (ConflictArbiter::Index(index.oid), conditions);
                // What holds whatever parameters are is better.
                match found.1.is_empty() {
                    true => return Ok(found),
                    false => conditional = conditional.or(Some(found)),
                }
            }
        }
        conditional.ok_or_else(no_arbiter)
    }
}

/// What ON CONFLICT (…) WHERE … says, where it is more than columns.
pub(super) fn inference_of(name: &ObjectName) -> Option<&str> {
    let [part] = &name.0[..] else { return None };
    part.as_ident()?.value.strip_prefix(archipel_sql::parser::INFERENCE)
}
