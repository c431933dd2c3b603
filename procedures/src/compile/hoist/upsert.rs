//! Calls in ON CONFLICT DO UPDATE.
//!
//! Such a statement is run as two. An UPDATE from the rows that are proposed changes those of the table that
//! they meet, with the calls and the triggers that it has; then the INSERT meets them again, and leaves
//! them as they are. So it answers all rows in their order, and finds those that it would affect a second
//! time. A row that others commit between the two was not updated, and is an error (40001).

use archipel_planner::bound::{
    BoundExpr, BoundInsert, BoundStatement, BoundUpdate, ConflictArbiter, ExprKind, OnConflict,
};
use archipel_planner::native;
use archipel_sql::catalog::{Table, TriggerEvent};
use archipel_sql::error::Result;
use archipel_sql::types::Type;

use super::condition::{all_of, holds_call};
use super::state::{EachRow, Walk};
use super::trigger::Fires;

impl Walk<'_, '_> {
    /// Whether an INSERT is run so: its DO UPDATE calls something, or fires row triggers that may leave a
    /// statement to the session.
    pub(super) fn is_upsert_in_parts(&self, insert: &BoundInsert, firing: &[Fires]) -> bool {
        let Some(OnConflict { target: Some(target), update: Some((set, None)), .. }) = &insert.on_conflict
        else {
            return false;
        };
        let table = &insert.table;
        let generated = table.columns.iter().any(|column| column.generated.is_some());
        // What is proposed is known before the statement.
        let before = |fires: &Fires| !fires.before && fires.has_before_rows(table);
        if self.blocked || insert.family.is_some() || generated || firing.first().is_none_or(before) {
            return false;
        }
        let Some(key) = key_of(insert) else { return false };
        // The INSERT meets the same rows: they keep their key, as the storage key is kept by triggers.
        let keeps = set.iter().all(|(column, _)| key.iter().all(|(place, _)| *place != usize::from(*column)));
        let fires = self.fires_for_updated(insert);
        let by_index = matches!(target, ConflictArbiter::Index(_));
        // Triggers of the statement would be told the rows as they are by then.
        let keeps = keeps && !(by_index && fires.has_before_rows(table)) && !fires.name_rows(table);
        let called = fires.any() || set.iter().any(|(_, value)| holds_call(value));
        called && keeps && untouched(insert).is_some()
    }

    /// The row triggers of the UPDATE.
    fn fires_for_updated(&self, insert: &BoundInsert) -> Fires {
        let update = insert.on_conflict.as_ref().and_then(|conflict| conflict.update.as_ref());
        let set = update.map(|(set, _)| set.iter().map(|(column, _)| *column).collect());
        self.fires(&insert.table, TriggerEvent::Update, set).of_rows()
    }

    /// Runs the UPDATE, which leaves the INSERT.
    pub(super) fn upsert(&mut self, insert: &mut BoundInsert, firing: &[Fires]) -> Result<()> {
        let fires = [self.fires_for_updated(insert)];
        self.insert(insert, firing)?;
        let (Some(key), Some(untouched)) = (key_of(insert), untouched(insert)) else { return Ok(()) };
        self.keep(&mut insert.source)?;
        let width = insert.table.columns.len();
        let Some((set, _)) = insert.on_conflict.as_mut().and_then(|conflict| conflict.update.as_mut()) else {
            return Ok(());
        };
        let columns: Vec<u16> = set.iter().map(|(column, _)| *column).collect();
        let mut conditions = Vec::with_capacity(key.len());
        for (place, ty) in key {
            let function = native::equality(ty.oid, ty.oid)?;
            let args = vec![BoundExpr::column(place, ty), BoundExpr::column(width + place, ty)];
            conditions.push(BoundExpr::new(ExprKind::Call { function, args }, Type::BOOL));
        }
        let mut update = BoundUpdate {
            table: fires_for(&insert.table, true, &columns).into(),
            alias: None,
            family: None,
            numbered: None,
            from: Some(insert.source.clone()),
            filter: Some(all_of(conditions)),
            // Existing row ++ proposed row, as it is there.
            set: std::mem::take(set),
            checks: insert.checks.clone(),
            returning: None,
        };
        *set = vec![untouched];
        if let Some(conflict) = &mut insert.on_conflict {
            conflict.met_before = true;
        }
        insert.table = fires_for(&insert.table, false, &columns).into();
        let joined = self.update(&mut update, &fires)?;
        let mut statement = BoundStatement::Update(update);
        self.after_rows(&mut statement, &fires, joined)?;
        let types: Vec<Type> = statement.columns().iter().map(|column| column.ty).collect();
        let row = EachRow::of(types.len());
        let statement = self.among_ctes(statement);
        self.answered_rows(&statement, types, row)?;
        // What stayed in it has run by then.
        self.blocked = false;
        Ok(())
    }
}

/// The columns whose values meet; `None` where they are not columns alone.
fn key_of(insert: &BoundInsert) -> Option<Vec<(usize, Type)>> {
    let table = &insert.table;
    let columns: Vec<u16> = match insert.on_conflict.as_ref()?.target? {
        ConflictArbiter::Primary => table.primary_key.as_ref()?.columns.clone(),
        ConflictArbiter::Index(oid) => {
            let index = table.indexes.iter().find(|index| index.oid == oid)?;
            if !index.expressions.is_empty() || index.predicate.is_some() {
                return None;
            }
            index.columns.iter().map(|column| column.column).collect()
        }
    };
    let columns = columns.into_iter().map(usize::from);
    columns.map(|place| Some((place, table.columns.get(place)?.ty))).collect()
}

/// What changes nothing of a row: a column that is not of its key set to itself.
fn untouched(insert: &BoundInsert) -> Option<(u16, BoundExpr)> {
    let table = &insert.table;
    let key = table.storage_key();
    let place = (0..table.columns.len()).find(|place| !key.contains(&(*place as u16)))?;
    Some((place as u16, BoundExpr::column(place, table.columns[place].ty)))
}

/// A table that fires the triggers of UPDATE for rows alone, or for statements alone: those that an UPDATE
/// of these columns fires, whichever it sets.
fn fires_for(table: &Table, rows: bool, columns: &[u16]) -> Table {
    let mut own = table.clone();
    for trigger in &mut own.triggers {
        if trigger.row == rows && trigger.answers(TriggerEvent::Update, table, Some(columns)) {
            trigger.columns.clear();
        } else {
            trigger.events.retain(|event| *event != TriggerEvent::Update);
        }
    }
    own
}
