//! INSERT, with ON CONFLICT and RETURNING, compiled.

use archipel_sql::catalog::{Distribution, Table, TableRef, Trigger, TriggerEvent};
use archipel_sql::error::{Result, SqlError};

use super::index_expression::OF_EXPRESSION;
use super::target::has_subquery;
use crate::bind::reference::bind_generated;
use crate::bound::{BoundExpr, BoundInsert, ConflictArbiter, ExprKind, OnConflict, Rel, Returning};
use crate::native::plan::compiler::{Compiler, Layout};
use crate::native::plan::constraint::placing::Placing;
use crate::native::plan::walk;
use crate::native::run::access::path::Meta;
use crate::native::run::access::scan::scan_columns;
use crate::native::run::change::insert::{Arbiter, Conflict, ConflictUpdate, Destination, Insert, RowInsert};
use crate::native::run::change::write::Target;
use crate::native::run::expression::source::Source;
use crate::native::run::operator::node::Node;
use crate::route::{RouteKey, key_candidates};

impl Compiler<'_> {
    /// The columns that a table without a key could be distributed by, as far as their values
    /// are known before the run.
    fn candidates(&self, table: &Table, slots: &[u32]) -> Vec<(u16, RouteKey)> {
        let columns = table.columns.iter().zip(slots).enumerate();
        let required = columns.filter(|(_, (column, _))| column.not_null);
        let routed = required.map(|(place, (_, slot))| (place as u16, self.route_of_slot(*slot)));
        routed.filter(|(_, key)| matches!(key, RouteKey::Point(_))).collect()
    }

    /// The columns of a primary key that could distribute the rows, with what is known of their values
    /// before the run.
    fn given_key_columns(&self, table: &Table, slots: &[u32]) -> Vec<(u16, RouteKey)> {
        let given = |column: &u16| {
            let slot = slots.get(usize::from(*column))?;
            Some((*column, self.route_of_slot(*slot)))
        };
        key_candidates(table).iter().filter_map(given).collect()
    }

    pub fn insert(&mut self, insert: &BoundInsert) -> Result<Insert> {
        let line = self.open_change("Insert", &insert.table, &insert.alias);
        let source = self.relation(&insert.source);
        self.close();
        self.describe_change(line, &insert.table, None, &[], insert.returning.as_ref());
        self.describe_conflict(line, &insert.table, insert.on_conflict.as_ref());
        let source = source?;
        let source_slots = self.declare(&insert.source);
        self.mark_all(&source_slots);
        let into = match &insert.family {
            None => Destination::Table(Box::new(self.row_insert(insert, &source_slots)?)),
            Some(family) => {
                Destination::Partitions(Box::new(self.routed_insert(insert, family, &source_slots)?))
            }
        };
        let one = is_one_row(&insert.source);
        let waits = match &into {
            Destination::Table(row) => row.waits(one),
            Destination::Partitions(routed) => routed.waits(one),
        };
        let straight = match (&into, &source) {
            (Destination::Table(row), Node::Values { slots, .. }) => row.is_straight(slots),
            _ => false,
        };
        Ok(Insert {
            source,
            source_slots,
            collected: reads_anything(&insert.source),
            waits,
            asks: asks_for_rows(insert),
            straight,
            into,
        })
    }

    /// What takes rows from these slots into the table of an INSERT.
    pub fn row_insert(&mut self, insert: &BoundInsert, source_slots: &[u32]) -> Result<RowInsert> {
        let table = &insert.table;
        let meta = self.table(table)?;
        let source_slots = source_slots.to_vec();
        let mut slots = source_slots.clone();
        let mut generated = self.generated(table, &mut slots)?;
        self.note_new_rows(table, &meta, &slots);
        let triggers = self.triggers(table, TriggerEvent::Insert, None, None, Some(&slots))?;
        if triggers.as_ref().is_some_and(|triggers| triggers.changes_rows()) {
            let mut own = self.slots_like(&slots);
            generated = self.generated(table, &mut own)?;
            slots = own;
        }
        let mut for_indexes = Vec::new();
        for part in self.stored_for_indexes(table, &slots, None)?.into_iter().flatten() {
            for_indexes.push(part.slot);
            generated.push((part.slot, part.source));
        }
        self.note_global_indexes(table, &meta, &slots, &for_indexes);
        let checks = self.row_checks(table, &slots, &insert.checks, None, insert.given.clone())?;
        let of_parent = |trigger: &&Trigger| {
            let fires = trigger.before && trigger.row && trigger.parent.is_some();
            fires && trigger.answers(TriggerEvent::Insert, table, None)
        };
        let stays = table.triggers.iter().rfind(of_parent).map(|trigger| trigger.name.clone());
        let parents = self.parent_checks(table, &slots, None)?;
        let target = Target::new(table, meta);
        let conflict = match &insert.on_conflict {
            None => None,
            Some(on_conflict) => Some(self.conflict(insert, on_conflict, &target, &slots)?),
        };
        let updates = conflict.as_ref().and_then(|conflict| conflict.update.as_ref());
        let shown = updates.is_some().then(|| self.slots(table.columns.len()));
        let row = shown.as_ref().unwrap_or(&slots).clone();
        let Returned { exprs: returning, locker, number } =
            self.returned_row(insert.returning.as_ref(), row)?;
        if let Some(update) = updates.filter(|_| returning.is_some()) {
            // The updated row is shown whole.
            self.mark_all(&update.existing);
        }
        let mut kept = [&slots[..], &for_indexes].concat();
        kept.extend(number);
        if let Some(update) = updates {
            kept.extend(&update.existing);
            kept.extend(update.change.computed());
        }
        kept.sort_unstable();
        kept.dedup();
        Ok(RowInsert {
            target,
            source_slots,
            slots,
            generated,
            for_indexes,
            checks,
            parents,
            conflict,
            triggers,
            stays,
            returning,
            shown,
            locker,
            number,
            kept,
        })
    }

    /// Notes that rows in these slots are written to a table, and what is known of where they go.
    fn note_new_rows(&mut self, table: &TableRef, meta: &Meta, slots: &[u32]) {
        let key = match meta.def.key.first() {
            Some(first) if usize::from(first.column) < slots.len() => {
                self.route_of_slot(slots[usize::from(first.column)])
            }
            _ => RouteKey::Unknown("the row gets a number of its own".to_owned()),
        };
        let numbered = matches!(key, RouteKey::Unknown(_));
        self.note_table(table, meta, true, key);
        let candidates = match table.distribution {
            Distribution::HiddenId { .. } if numbered => self.candidates(table, slots),
            _ => self.given_key_columns(table, slots),
        };
        if let Some(access) = self.accesses.last_mut() {
            access.candidates = candidates;
        }
    }

    /// As many slots, of which the same is known before the run.
    fn slots_like(&mut self, slots: &[u32]) -> Layout {
        let own = self.slots(slots.len());
        self.mark_all(&own);
        for (from, to) in slots.iter().zip(&own) {
            if let Some(value) = self.known.get(from).cloned() {
                self.known.insert(*to, value);
            }
            if let Some(values) = self.in_turn.get(from).cloned() {
                self.in_turn.insert(*to, values);
            }
        }
        own
    }

    /// Notes what is written to indexes that are partitioned by themselves. `for_indexes`: where the values
    /// of expressions are.
    fn note_global_indexes(&mut self, table: &TableRef, meta: &Meta, slots: &[u32], for_indexes: &[u32]) {
        for index in &meta.def.indexes {
            if let archipel_engine::schema::IndexPlacement::Global { group } = index.placement
                && let Some(first) = index.key.first()
            {
                let place = usize::from(first.column);
                let at = || for_indexes.get(place - usize::from(table.plain_width())).copied();
                let key = match slots.get(place).copied().or_else(at) {
                    Some(slot) => self.route_of_slot(slot),
                    None => RouteKey::Unknown(OF_EXPRESSION.to_owned()),
                };
                self.note_index(table, meta, *first, group, key);
            }
        }
    }

    /// What ON CONFLICT does with rows proposed in these slots.
    pub(crate) fn conflict(
        &mut self,
        insert: &BoundInsert,
        on_conflict: &OnConflict,
        target: &Target,
        slots: &[u32],
    ) -> Result<Conflict> {
        let arbiter = match &on_conflict.target {
            None => Arbiter::Any,
            Some(wanted) => self.arbiter(target, wanted)?,
        };
        let update = match &on_conflict.update {
            None => None,
            Some((set, filter)) => {
                let change = (&set[..], filter.as_ref());
                Some(self.conflict_update(insert, change, on_conflict.met_before, target, slots)?)
            }
        };
        Ok(Conflict { arbiter, update })
    }

    /// DO UPDATE, where it reads the row that is there and then the proposed one in these slots.
    fn conflict_update(
        &mut self,
        insert: &BoundInsert,
        (set, filter): (&[(u16, BoundExpr)], Option<&BoundExpr>),
        met_before: bool,
        target: &Target,
        slots: &[u32],
    ) -> Result<ConflictUpdate> {
        let table = &insert.table;
        let existing = self.slots(table.columns.len());
        let mut scope = existing.clone();
        scope.extend(slots);
        let filter = filter.map(|filter| self.scoped(&scope, |c| c.predicate(filter))).transpose()?;
        let columns = self.updated_columns(table, set)?;
        let set = self.set_with_triggers(table, &target.meta, set)?;
        let before = std::mem::replace(&mut self.placing, Placing::Stays);
        let change = self.change(table, &target.meta, &existing, &scope, &set, &insert.checks);
        self.placing = before;
        let mut change = change?;
        change.checks.also_given(&insert.given);
        let triggers =
            self.triggers(table, TriggerEvent::Update, Some(&columns), Some(&existing), Some(&change.row))?;
        let columns = scan_columns(table, &target.meta, &existing);
        let columns = self.pruned(columns, |column| column.slot);
        Ok(ConflictUpdate { existing, columns, filter, change, triggers, met_before })
    }

    /// What RETURNING answers of a row in these slots, behind which it finds who has locked the row, and its
    /// number.
    fn returned_row(&mut self, returning: Option<&Returning>, mut row: Layout) -> Result<Returned> {
        let Some(Returning { exprs, .. }) = returning else { return Ok(Returned::default()) };
        let width = row.len() as u16;
        let asks = |place: u16| exprs.iter().any(|expr| walk::root_columns(expr).contains(&place));
        let mut behind = |place: u16| {
            let slot = self.slot();
            row.push(slot);
            asks(place).then(|| {
                self.mark(slot);
                slot
            })
        };
        let (locker, number) = (behind(width), behind(width + 1));
        let exprs = Some(self.scoped(&row, |c| c.exprs(exprs))?);
        Ok(Returned { exprs, locker, number })
    }

    /// Gives generated columns slots of their own, and what they are computed from.
    pub(crate) fn generated(&mut self, table: &TableRef, slots: &mut [u32]) -> Result<Vec<(u32, Source)>> {
        let mut generated = Vec::new();
        for (column, expr) in bind_generated(self.env.catalog, table)? {
            let source = self.scoped(slots, |c| c.source(&expr))?;
            let slot = self.slot();
            self.mark(slot);
            slots[usize::from(column)] = slot;
            generated.push((slot, source));
        }
        Ok(generated)
    }

    pub(crate) fn arbiter(&self, target: &Target, wanted: &ConflictArbiter) -> Result<Arbiter> {
        let index = match wanted {
            ConflictArbiter::Primary => return Ok(Arbiter::Primary),
            ConflictArbiter::Index(oid) => target.table.indexes.iter().find(|index| index.oid == *oid),
        };
        index
            .and_then(|index| target.meta.def.indexes.iter().find(|def| def.id.0 == index.tree))
            .map(|def| Arbiter::Index(def.clone()))
            .ok_or_else(|| SqlError::internal("an index that decides conflicts is not there"))
    }
}

/// RETURNING of an INSERT, and the slots of what it asks of a new row beside its columns.
#[derive(Default)]
struct Returned {
    exprs: Option<Vec<Source>>,
    locker: Option<u32>,
    number: Option<u32>,
}

/// Whether a source never has a second row, which the first could reference.
fn is_one_row(rel: &Rel) -> bool {
    match rel {
        Rel::Unit => true,
        Rel::Values { rows, .. } => rows.len() <= 1,
        Rel::Project { input, .. } => is_one_row(input),
        _ => false,
    }
}

/// Whether what is done with the rows of the source asks for others.
fn asks_for_rows(insert: &BoundInsert) -> bool {
    let returning = insert.returning.iter().flat_map(|returning| &returning.exprs);
    let update = insert.on_conflict.iter().filter_map(|conflict| conflict.update.as_ref());
    let mut update = update.flat_map(|(set, filter)| set.iter().map(|(_, value)| value).chain(filter));
    returning.clone().any(has_subquery) || update.any(has_subquery)
}

/// Whether a source must be run to its end before the first row is written.
fn reads_anything(rel: &Rel) -> bool {
    let mut reads = !matches!(rel, Rel::Values { .. } | Rel::Unit);
    if let Rel::Project { input, .. } = rel {
        reads = !matches!(**input, Rel::Unit | Rel::Values { .. });
    }
    walk::visit_rel(rel, 0, &mut |expr, _| {
        reads |= matches!(expr.kind, ExprKind::Subquery(_) | ExprKind::Routine { .. });
    });
    reads
}
