//! New rows of a partitioned table: each goes to the partition its key is for.

use std::sync::Arc;

use archipel_sql::catalog::{Index, TableRef, TriggerEvent};
use archipel_sql::datum::Datum;
use archipel_sql::error::Result;
use archipel_sql::types::Type;

use super::trigger::kept_for;
use crate::bind::arbiter::no_arbiter;
use crate::bind::reference::bind_checks;
use crate::bind::system_column::place_by_key;
use crate::bound::{
    BoundCheck, BoundChecks, BoundExpr, BoundInsert, CheckKind, ConflictArbiter, OnConflict, Rel,
};
use crate::native::plan::access::inheritance::shown_as;
use crate::native::plan::compiler::Compiler;
use crate::native::plan::constraint::placing::Placing;
use crate::native::run::change::insert::RowInsert;
use crate::native::run::change::trigger::Triggers;
use crate::native::run::change::tuple_routing::{RoutedInsert, Router};
use crate::native::run::operator::append::Chosen;
use crate::partition::{Family, Member};
use crate::pruning::{Among, PartCondition, Pruning};
use crate::route::RouteKey;

impl Compiler<'_> {
    /// What finds the partition of a row of a family's root in these slots.
    pub fn router(&mut self, family: &Arc<Family>, slots: &[u32]) -> Result<Router> {
        let mut keys = Vec::with_capacity(family.nodes.len());
        let mut hashes = Vec::with_capacity(family.nodes.len());
        for node in &family.nodes {
            keys.push(self.scoped(slots, |c| c.exprs(&node.key))?);
            let asked = node.hashes.as_ref();
            hashes.push(self.scoped(slots, |c| asked.map(|asked| c.exprs(asked)).transpose())?);
        }
        let check = self.partition_check(&family.root, slots, None)?;
        self.mark_all(slots);
        Ok(Router { family: family.clone(), keys, hashes, check, slots: slots.to_vec() })
    }

    /// What is known beforehand of the partitions of rows in these slots.
    pub fn placed_members(&mut self, family: &Arc<Family>, slots: &[u32]) -> Result<Chosen> {
        let mut values: Vec<Option<BoundExpr>> = Vec::new();
        let mut conditions = Vec::with_capacity(family.nodes.len());
        for node in &family.nodes {
            let mut parts = Vec::with_capacity(node.key.len());
            for key in &node.key {
                let known = self.scoped(slots, |c| Ok(c.row_free(key)))?;
                let column = match &key.kind {
                    crate::bound::ExprKind::Column { depth: 0, index } => slots.get(usize::from(*index)),
                    _ => None,
                };
                let several = match column.and_then(|slot| self.in_turn.get(slot)) {
                    Some(RouteKey::List(values)) => Some(values.clone()),
                    _ => None,
                };
                let at = values.len();
                parts.push(match (known, several) {
                    (Some(value), _) => {
                        values.push(Some(value));
                        // A row may have a NULL, which its condition says by itself.
                        PartCondition::Given(at)
                    }
                    (None, Some(several)) => {
                        values.extend(several.into_iter().map(Some));
                        PartCondition::Each((at..values.len()).collect())
                    }
                    (None, None) => PartCondition::Any,
                });
            }
            conditions.push(parts);
        }
        let pruning = Arc::new(Pruning { family: family.clone(), conditions });
        let among = pruning.restricts().then(|| Arc::new(Among { pruning, values }));
        Ok(Chosen { left: vec![true; family.members.len()], selection: None, among })
    }

    /// What takes the rows of an INSERT into a partitioned table from these slots.
    pub fn routed_insert(
        &mut self,
        insert: &BoundInsert,
        family: &Arc<Family>,
        slots: &[u32],
    ) -> Result<RoutedInsert> {
        let router = self.router(family, slots)?;
        let table = &insert.table;
        let inserts = self.statement_triggers(table, TriggerEvent::Insert, None)?;
        let update = insert.on_conflict.as_ref().and_then(|conflict| conflict.update.as_ref());
        let updates = match update {
            Some((set, _)) => {
                let columns: Vec<u16> = set.iter().map(|(column, _)| *column).collect();
                self.statement_triggers(table, TriggerEvent::Update, Some(&columns))?
            }
            None => None,
        };
        let triggers = [inserts, updates];
        let members = self.member_inserts(insert, family, slots, &triggers)?;
        let mut kept: Vec<u32> = members.iter().flat_map(|member| member.kept.iter().copied()).collect();
        kept.sort_unstable();
        kept.dedup();
        Ok(RoutedInsert { router, members, triggers, kept })
    }

    /// What takes rows into each member of a family, the rows being the root's.
    pub fn member_inserts(
        &mut self,
        insert: &BoundInsert,
        family: &Arc<Family>,
        slots: &[u32],
        triggers: &[Option<Box<Triggers>>; 2],
    ) -> Result<Vec<RowInsert>> {
        let chosen = self.placed_members(family, slots)?;
        let mut members = Vec::with_capacity(family.members.len());
        for (place, member) in family.members.iter().enumerate() {
            let own = Arc::new(self.member_insert(insert, member)?);
            self.keep(own.clone());
            let layout = self.member_layout(family, place, slots);
            let accesses = self.accesses.len();
            let fires = |trigger: &archipel_sql::catalog::Trigger| {
                trigger.before && trigger.row && trigger.answers(TriggerEvent::Insert, &member.table, None)
            };
            let placing = match member.table.triggers.iter().any(fires) {
                true => Placing::Checked,
                false => Placing::Done,
            };
            let before = std::mem::replace(&mut self.placing, placing);
            let shown = std::mem::replace(&mut self.shown_as, shown_as(family, member));
            let kept = kept_for(family, member, TriggerEvent::Insert, &triggers[0]);
            let updated = kept_for(family, member, TriggerEvent::Update, &triggers[1]);
            let keeping = std::mem::replace(&mut self.keeping, kept.into_iter().chain(updated).collect());
            let row = self.row_insert(&own, &layout);
            self.keeping = keeping;
            self.placing = before;
            self.shown_as = shown;
            members.push(row?);
            self.among(accesses, place, &chosen);
        }
        Ok(members)
    }

    /// An INSERT into a partitioned table as one into one of its partitions.
    fn member_insert(&self, insert: &BoundInsert, member: &Member) -> Result<BoundInsert> {
        let number = BoundExpr::constant(Datum::Oid(member.table.oid), Type::OID);
        let width = member.table.columns.len();
        let excluded = member.columns.iter().map(|place| {
            let ty = member.table.columns[usize::from(*place)].ty;
            BoundExpr::column(width + usize::from(*place), ty)
        });
        let locker = BoundExpr::column(width, Type::XID);
        let place = place_by_key(self.env.catalog, &member.table)?;
        let place = place.unwrap_or_else(|| BoundExpr::column(width + 1, Type::TID));
        let alone = member.places([number.clone(), locker, place]);
        let beside = member.places(std::iter::once(number).chain(excluded));
        let on_conflict = match &insert.on_conflict {
            None => None,
            Some(conflict) => Some(OnConflict {
                target: match &conflict.target {
                    None => None,
                    Some(arbiter) => Some(member_arbiter(&insert.table, member, *arbiter)?),
                },
                update: conflict.update.as_ref().map(|(set, filter)| {
                    let filter = filter.as_ref().map(|filter| member.over(filter, &beside));
                    (member.set(set, &beside), filter)
                }),
                met_before: conflict.met_before,
            }),
        };
        Ok(BoundInsert {
            table: member.table.clone(),
            alias: None,
            family: None,
            source: Rel::Unit,
            given: insert.given.iter().map(|column| member.columns[usize::from(*column)]).collect(),
            checks: self.member_checks(&insert.checks, member)?,
            on_conflict,
            returning: member.returning(insert.returning.as_ref(), &alone),
        })
    }

    /// A member's own conditions, and what views and policies demand beside.
    pub fn member_checks(&self, checks: &BoundChecks, member: &Member) -> Result<BoundChecks> {
        let number = BoundExpr::constant(Datum::Oid(member.table.oid), Type::OID);
        let places = member.places([number]);
        let mut own = bind_checks(self.env.catalog, &member.table)?;
        own.extend(
            checks
                .iter()
                .filter(|check| check.kind != CheckKind::Constraint)
                .map(|check| BoundCheck { expr: member.over(&check.expr, &places), ..check.clone() }),
        );
        Ok(own)
    }
}

/// A unique key of a partitioned table as one of its partition's.
fn member_arbiter(root: &TableRef, member: &Member, arbiter: ConflictArbiter) -> Result<ConflictArbiter> {
    let own = |column: u16| member.columns[usize::from(column)];
    let (key, oid): (Vec<u16>, _) = match arbiter {
        ConflictArbiter::Primary => {
            let key = root.primary_key.as_ref();
            let columns = key.map(|key| key.columns.iter().map(|column| own(*column)).collect());
            (columns.unwrap_or_default(), key.map(|key| key.oid))
        }
        ConflictArbiter::Index(oid) => {
            let index = root.indexes.iter().find(|index| index.oid == oid);
            let columns = index.map(|index| index.columns.iter().map(|part| own(part.column)).collect());
            (columns.unwrap_or_default(), Some(oid))
        }
    };
    let same = |columns: &[u16]| columns.len() == key.len() && columns.iter().all(|c| key.contains(c));
    if member.table.primary_key.as_ref().is_some_and(|own| same(&own.columns)) {
        return Ok(ConflictArbiter::Primary);
    }
    let columns = |index: &Index| index.columns.iter().map(|part| part.column).collect::<Vec<u16>>();
    let mut indexes = member.table.indexes.iter().filter(|index| index.unique);
    let found = indexes
        .clone()
        .find(|index| index.parent.is_some() && index.parent == oid)
        .or_else(|| indexes.find(|index| same(&columns(index))));
    found.map(|index| ConflictArbiter::Index(index.oid)).ok_or_else(no_arbiter)
}
