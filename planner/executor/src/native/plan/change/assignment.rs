//! What an UPDATE makes of a row: how new values are computed, checked and written, and what they
//! must satisfy.

use archipel_engine::schema::KeyColumn;
use archipel_sql::catalog::TableRef;
use archipel_sql::error::Result;

use super::index_expression::OF_EXPRESSION;
use crate::bind::reference::bind_generated;
use crate::bound::{BoundChecks, BoundExpr, ExprKind};
use crate::native::plan::compiler::{Compiler, Layout};
use crate::native::plan::walk;
use crate::native::run::access::path::Meta;
use crate::native::run::change::assignment::{Change, NewValue};
use crate::route::RouteKey;
use crate::row::Codec;

impl Compiler<'_> {
    /// Compiles SET over `scope` (the old row first).
    pub fn change(
        &mut self,
        table: &TableRef,
        meta: &Meta,
        old: &[u32],
        scope: &Layout,
        set: &[(u16, BoundExpr)],
        checks: &BoundChecks,
    ) -> Result<Change> {
        let mut columns: Vec<u16> = set.iter().map(|(column, _)| *column).collect();
        // Columns that only triggers may change stand in the set as themselves.
        let stays = |column: u16, value: &BoundExpr| matches!(value.kind, ExprKind::Column { depth: 0, index } if index == column);
        let given = set.iter().filter(|(column, value)| !stays(*column, value));
        let given = given.map(|(column, _)| *column).collect();
        let mut row = old.to_vec();
        let mut set = self.assigned(table, meta, scope, set)?;
        for (column, slot, ..) in &set {
            row[usize::from(*column)] = *slot;
        }
        let mut generated = self.generate_anew(table, meta, &mut set, &mut columns, &mut row)?;
        let moves = meta.def.key.iter().any(|part| columns.contains(&part.column));
        if moves {
            // The row is written anew, so all of it is needed.
            self.mark_all(old);
            let key = match meta.def.key.first() {
                Some(first) if usize::from(first.column) < row.len() => {
                    self.route_of_slot(row[usize::from(first.column)])
                }
                _ => RouteKey::Unknown("the row keeps its number".to_owned()),
            };
            self.note_table(table, meta, true, key);
        }
        let for_indexes = self.stored_for_indexes(table, &row, (!moves).then_some(&columns))?;
        let slots: Vec<Option<u32>> =
            for_indexes.iter().map(|part| part.as_ref().map(|part| part.slot)).collect();
        for (place, part) in for_indexes.into_iter().enumerate() {
            let Some(part) = part else { continue };
            let hidden = usize::from(crate::row::has_hidden_id(table));
            let column = table.columns.len() + place;
            let codec = part.codec.written(&meta.def, (column + hidden) as u16);
            set.push((column as u16, part.slot, codec, part.source));
            generated += 1;
        }
        let for_indexes = slots;
        self.note_changed_indexes(table, meta, (old, &row), &columns, &for_indexes, moves);
        let checks = self.row_checks(table, &row, checks, Some(&columns), given)?;
        let parents = self.parent_checks(table, &row, Some(&columns))?;
        let children = self.child_checks(table, old, Some((&columns, &row)))?;
        for check in &parents {
            self.mark_all(&check.slots);
        }
        for check in &children {
            self.mark_all(check.sources());
        }
        let acts = children.iter().any(|child| child.acts());
        let old = old.to_vec();
        Ok(Change { set, generated, for_indexes, old, row, checks, parents, children, acts, moves })
    }

    /// The new values that SET gives, in slots of their own.
    fn assigned(
        &mut self,
        table: &TableRef,
        meta: &Meta,
        scope: &Layout,
        set: &[(u16, BoundExpr)],
    ) -> Result<Vec<NewValue>> {
        set.iter()
            .map(|(column, expr)| {
                let source = self.scoped(scope, |c| c.source(expr))?;
                let slot = self.slot();
                self.mark(slot);
                if let Some(value) = self.scoped(scope, |c| Ok(c.row_free(expr)))? {
                    self.known.insert(slot, value);
                }
                let codec = Codec::of(table.columns[usize::from(*column)].ty);
                Ok((*column, slot, codec.written(&meta.def, *column), source))
            })
            .collect()
    }

    /// Adds the generated columns that depend on what changes: they are computed from the new `row`, after
    /// what it is made of. Answers how many there are.
    fn generate_anew(
        &mut self,
        table: &TableRef,
        meta: &Meta,
        set: &mut Vec<NewValue>,
        columns: &mut Vec<u16>,
        row: &mut [u32],
    ) -> Result<usize> {
        let mut generated = 0;
        for (column, expr) in bind_generated(self.env.catalog, table)? {
            let uses_changed = walk::root_columns(&expr).iter().any(|used| columns.contains(used));
            if !uses_changed && !columns.contains(&column) {
                continue;
            }
            let source = self.scoped(row, |c| c.source(&expr))?;
            let slot = self.slot();
            self.mark(slot);
            let codec = Codec::of(table.columns[usize::from(column)].ty).written(&meta.def, column);
            set.retain(|(known, ..)| *known != column);
            set.push((column, slot, codec, source));
            generated += 1;
            row[usize::from(column)] = slot;
            if !columns.contains(&column) {
                columns.push(column);
            }
        }
        Ok(generated)
    }

    /// Notes which entries of indexes that are partitioned by themselves change.
    fn note_changed_indexes(
        &mut self,
        table: &TableRef,
        meta: &Meta,
        (old, row): (&[u32], &[u32]),
        columns: &[u16],
        for_indexes: &[Option<u32>],
        moves: bool,
    ) {
        for index in &meta.def.indexes {
            let expression = |part: &KeyColumn| part.column.checked_sub(table.plain_width()).map(usize::from);
            let changed = moves
                || index.key.iter().any(|part| match expression(part) {
                    Some(at) => for_indexes.get(at).is_some_and(Option::is_some),
                    None => columns.contains(&part.column),
                });
            if let archipel_engine::schema::IndexPlacement::Global { group } = index.placement
                && changed
                && let Some(first) = index.key.first()
            {
                let (old, new) = match expression(first) {
                    Some(at) => (None, for_indexes.get(at).copied().flatten()),
                    None => (Some(old[usize::from(first.column)]), Some(row[usize::from(first.column)])),
                };
                for slot in [old, new] {
                    let key = match slot {
                        Some(slot) => self.route_of_slot(slot),
                        None => RouteKey::Unknown(OF_EXPRESSION.to_owned()),
                    };
                    self.note_index(table, meta, *first, group, key);
                }
            }
        }
    }
}
