//! UPDATE and DELETE of a table whose rows are in others, compiled.

use std::sync::Arc;

use archipel_sql::catalog::TriggerEvent;
use archipel_sql::datum::Datum;
use archipel_sql::error::{Result, SqlError};
use archipel_sql::types::Type;

use super::modify::changes_rows;
use super::trigger::kept_for;
use crate::bound::{BoundCheck, BoundDelete, BoundExpr, BoundInsert, BoundUpdate, CheckKind, Rel};
use crate::native::plan::access::inheritance::shown_as;
use crate::native::plan::compiler::Compiler;
use crate::native::plan::walk::root_columns;
use crate::native::run::change::cross_partition::Moving;
use crate::native::run::change::inheritance::{MemberChange, Members};
use crate::native::run::change::trigger::Triggers;
use crate::native::run::operator::append::Chosen;
use crate::partition::{Family, Member, levels_above};

/// The columns that stand behind a target row for its statement, over a member's scope: its own row, then
/// those of FROM.
fn behind(member: &Member, beside: Option<&Rel>) -> Vec<BoundExpr> {
    let number = BoundExpr::constant(Datum::Oid(member.table.oid), Type::OID);
    let width = member.table.columns.len();
    let types = beside.map(Rel::types).unwrap_or_default();
    let beside = types.into_iter().enumerate().map(|(place, ty)| BoundExpr::column(width + place, ty));
    std::iter::once(number).chain(beside).collect()
}

/// A check of an UPDATE as one of a row that it makes another partition's, where it is inserted: policies still
/// demand of it what they do of what rows become.
fn of_moved_row(check: &BoundCheck) -> BoundCheck {
    let kind = match check.kind {
        CheckKind::PolicyOfUpdate => CheckKind::PolicyOfInsert,
        other => other,
    };
    BoundCheck { kind, ..check.clone() }
}

impl Compiler<'_> {
    /// Which members of a family the condition of a change leaves.
    fn changed_members(
        &mut self,
        family: &Arc<Family>,
        beside: Option<&Rel>,
        filter: Option<&BoundExpr>,
    ) -> Result<Chosen> {
        let rows = Arc::new(Rel::Family { family: family.clone(), lock: None, alias: None });
        self.keep(rows.clone());
        let layout = self.declare(&rows);
        let mut scope = layout.clone();
        let beside = beside.map(|rel| self.declare(rel)).unwrap_or_default();
        scope.extend(&beside);
        let conjuncts = filter.map(|filter| self.conjuncts(filter, &scope)).unwrap_or_default();
        let facts = self.constants_of(&conjuncts);
        self.choose_members(family, &layout, &conjuncts, &facts, &beside)
    }

    /// An UPDATE of the members of a family.
    pub fn update_members(&mut self, update: &BoundUpdate, family: &Arc<Family>) -> Result<Members> {
        let chosen = self.changed_members(family, update.from.as_ref(), update.filter.as_ref())?;
        let columns: Vec<u16> = update.set.iter().map(|(column, _)| *column).collect();
        let keyed = family.nodes.iter().flat_map(|node| &node.key).flat_map(root_columns);
        let mut keyed: Vec<u16> = keyed.collect();
        // What makes a row leave the table itself is found out on its way, too.
        for level in levels_above(self.env.catalog, &family.root)? {
            keyed.extend(level.key.iter().flat_map(root_columns));
        }
        let triggered = |member: &Member| changes_rows(&member.table);
        let moves = !family.nodes.is_empty()
            && (columns.iter().any(|column| keyed.contains(column)) || family.members.iter().any(triggered));
        if moves && family.has_numbers() {
            let what = "ctid in an UPDATE that may move rows between partitions without a primary key";
            return Err(SqlError::unsupported(what));
        }
        let triggers = self.statement_triggers(&update.table, TriggerEvent::Update, Some(&columns))?;
        let line = self.open_change("Update", &family.root, &update.alias);
        let compiled = self.update_each(update, family, &chosen, moves, &triggers);
        self.close();
        self.describe_change(line, &family.root, None, &[], None);
        let changes = compiled?;
        let returning = update.returning.as_ref().map_or(0, |returning| returning.exprs.len());
        Ok(Members { changes, selection: chosen.selection, triggers, returning })
    }

    fn update_each(
        &mut self,
        update: &BoundUpdate,
        family: &Arc<Family>,
        chosen: &Chosen,
        moves: bool,
        triggers: &Option<Box<Triggers>>,
    ) -> Result<Vec<(usize, MemberChange)>> {
        let moving = match moves {
            false => None,
            true => {
                let slots = self.slots(family.root.columns.len());
                self.mark_all(&slots);
                let insert = BoundInsert {
                    table: family.root.clone(),
                    alias: None,
                    family: None,
                    source: Rel::Unit,
                    given: Vec::new(),
                    checks: update.checks.iter().map(of_moved_row).collect(),
                    on_conflict: None,
                    returning: None,
                };
                Some(Arc::new(Moving::new(self, &insert, family, slots)?))
            }
        };
        let mut changes = Vec::with_capacity(family.members.len());
        for (place, member) in family.members.iter().enumerate().filter(|(place, _)| chosen.left[*place]) {
            let places = member.places(behind(member, update.from.as_ref()));
            // Where a row may move, RETURNING finds the number of its table behind everything else.
            let mut told = behind(member, update.from.as_ref());
            if moving.is_some() {
                told[0] = BoundExpr::column(member.table.columns.len() + told.len() - 1, Type::OID);
            }
            let told = member.places(told);
            let (table, numbered) = member.changed();
            let own = Arc::new(BoundUpdate {
                table,
                alias: self.changed_alias(&update.alias, &update.table),
                family: None,
                numbered,
                from: update.from.clone(),
                filter: update.filter.as_ref().map(|filter| member.over(filter, &places)),
                set: member.set(&update.set, &places),
                checks: self.member_checks(&update.checks, member)?,
                returning: member.returning(update.returning.as_ref(), &told),
            });
            self.keep(own.clone());
            let (accesses, rows) = (self.accesses.len(), self.known_rows.len());
            let kept = kept_for(family, member, TriggerEvent::Update, triggers);
            let keeping = std::mem::replace(&mut self.keeping, kept.into_iter().collect());
            let shown = std::mem::replace(&mut self.shown_as, shown_as(family, member));
            let compiled = self.update_of(&own, moving.as_ref().map(|moving| (moving, place)));
            (self.keeping, self.shown_as) = (keeping, shown);
            let compiled = compiled?;
            self.known_rows.truncate(rows);
            self.among(accesses, place, chosen);
            changes.push((place, MemberChange::Update(Box::new(compiled))));
        }
        Ok(changes)
    }

    /// A DELETE of the members of a family.
    pub fn delete_members(&mut self, delete: &BoundDelete, family: &Arc<Family>) -> Result<Members> {
        let chosen = self.changed_members(family, delete.using.as_ref(), delete.filter.as_ref())?;
        let triggers = self.statement_triggers(&delete.table, TriggerEvent::Delete, None)?;
        let line = self.open_change("Delete", &family.root, &delete.alias);
        let compiled = self.delete_each(delete, family, &chosen, &triggers);
        self.close();
        self.describe_change(line, &family.root, None, &[], None);
        let changes = compiled?;
        let returning = delete.returning.as_ref().map_or(0, |returning| returning.exprs.len());
        Ok(Members { changes, selection: chosen.selection, triggers, returning })
    }

    fn delete_each(
        &mut self,
        delete: &BoundDelete,
        family: &Arc<Family>,
        chosen: &Chosen,
        triggers: &Option<Box<Triggers>>,
    ) -> Result<Vec<(usize, MemberChange)>> {
        let mut changes = Vec::with_capacity(family.members.len());
        for (place, member) in family.members.iter().enumerate().filter(|(place, _)| chosen.left[*place]) {
            let places = member.places(behind(member, delete.using.as_ref()));
            let (table, numbered) = member.changed();
            let own = Arc::new(BoundDelete {
                table,
                alias: self.changed_alias(&delete.alias, &delete.table),
                family: None,
                numbered,
                using: delete.using.clone(),
                filter: delete.filter.as_ref().map(|filter| member.over(filter, &places)),
                returning: member.returning(delete.returning.as_ref(), &places),
                alone: delete.alone,
            });
            self.keep(own.clone());
            let (accesses, rows) = (self.accesses.len(), self.known_rows.len());
            let kept = kept_for(family, member, TriggerEvent::Delete, triggers);
            let keeping = std::mem::replace(&mut self.keeping, kept.into_iter().collect());
            let compiled = self.delete(&own);
            self.keeping = keeping;
            let compiled = compiled?;
            self.known_rows.truncate(rows);
            self.among(accesses, place, chosen);
            changes.push((place, MemberChange::Delete(Box::new(compiled))));
        }
        Ok(changes)
    }
}
