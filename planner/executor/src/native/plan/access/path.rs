//! How a table is reached: which tree, and which of its keys.
//!
//! From the conjuncts that restrict single columns, a path takes equalities for a prefix of a
//! key, then at most one range on the next column. Values may come from parameters, constants
//! and rows already read (an index lookup join), but never from the table itself. Every tree
//! of the table is considered; more bound columns win, a unique key wins over all, the storage
//! key wins over an index that would only add a lookup.

use archipel_engine::TableMeta;
use archipel_engine::schema::{IndexPlacement, KeyColumn, Placement};
use archipel_sql::catalog::Table;
use archipel_sql::error::Result;

use super::choice::{Choice, ChosenPart, Restrictions};
use super::conjunct::{Conjunct, Restriction, split};
use super::selectivity::share_kept;
use crate::bound::BoundExpr;
use crate::comparison::Comparison;
use crate::native::plan::compiler::Compiler;
use crate::native::plan::walk;
use crate::native::run::access::path::{KeyPart, Meta, Path, Tree};
use crate::native::run::access::prefetch::KnownRow;
use crate::route::{Access, RouteKey, key_candidates};
use crate::row::{Codec, stored_name, stored_type};

/// The key of a table's tree, or of one of its indexes'.
pub(crate) fn key_of(meta: &Meta, index: Option<usize>) -> &[KeyColumn] {
    match index {
        None => &meta.def.key,
        Some(index) => &meta.def.indexes[index].key,
    }
}

/// What conditions on a part of a key are about.
pub(super) enum OnKey {
    Column(u32),
    /// Over the table's row.
    Expression(Box<BoundExpr>),
}

impl Compiler<'_> {
    /// The best path for a scan.
    pub fn choose_path<'b>(&mut self, on: &Restrictions<'_, 'b>) -> Choice<'b> {
        let single = self.choose_tree(on);
        self.choose_union(on, &single).unwrap_or(single)
    }

    /// The best path that takes each condition as a whole.
    pub(crate) fn choose_tree<'b>(&mut self, on: &Restrictions<'_, 'b>) -> Choice<'b> {
        let mut best = self.choice_for(on, None);
        for index in 0..on.meta.def.indexes.len() {
            let choice = self.choice_for(on, Some(index));
            if choice.score > best.score {
                best = choice;
            }
        }
        best
    }

    fn choice_for<'b>(&mut self, on: &Restrictions<'_, 'b>, index: Option<usize>) -> Choice<'b> {
        self.choice_by(on, index, key_of(on.meta, index))
    }

    /// The path by a tree if its keys were these.
    pub(super) fn choice_by<'b>(
        &mut self,
        on: &Restrictions<'_, 'b>,
        index: Option<usize>,
        key: &[KeyColumn],
    ) -> Choice<'b> {
        let unique_tree = index.is_none_or(|index| on.meta.def.indexes[index].unique);
        let mut choice = Choice::of(index);
        let mut single = true;
        for column in key {
            let Some(part) = self.key_part(on, *column) else { break };
            let Some(codec) = stored_type(on.table, column.column).map(Codec::of) else { break };
            if !codec.ordered_in(column) {
                break;
            }
            if let Some(part) = self.equality(on, &part, column.nullable) {
                single &= matches!(part, ChosenPart::Value(..) | ChosenPart::Known(_));
                choice.joined |= self.part_is_joined(on, &part);
                choice.equals.push(part);
                continue;
            }
            self.range(on, &part, &mut choice);
            break;
        }
        choice.unique = unique_tree && choice.equals.len() == key.len() && single;
        choice.score = choice.equals.len() as u32 * 10
            + 3 * (u32::from(choice.low.is_some()) + u32::from(choice.high.is_some()))
            + if choice.unique { 1000 } else { 0 };
        // A walk over a whole index only pays for its order.
        let narrowed = choice.score > 0;
        if !on.wanted.is_empty()
            && let Some(reverse) = self.order_of(on, key, &choice)
        {
            choice.ordered = true;
            choice.reverse = reverse;
            choice.score += 4;
        }
        if index.is_none() {
            choice.score += 1;
        } else if !narrowed && !choice.ordered {
            choice.score = 0;
        }
        choice
    }

    /// What a part of a key is of, where conditions can be about it: an expression of a partial
    /// unique index only where they say that its rows are meant.
    fn key_part(&mut self, on: &Restrictions<'_, '_>, column: KeyColumn) -> Option<OnKey> {
        if let Some(slot) = on.layout.get(usize::from(column.column)) {
            return Some(OnKey::Column(*slot));
        }
        let at = column.column.checked_sub(on.table.plain_width())?;
        let parts = self.index_parts(on.table)?;
        let part = parts.get(usize::from(at))?;
        let mut needed = Vec::new();
        if let Some(predicate) = &part.predicate {
            split(predicate, &mut needed);
        }
        let holds = |wanted: &&BoundExpr| {
            on.conjuncts.iter().any(|conjunct| conjunct.is_over(conjunct.expr, on.layout, wanted))
        };
        needed.iter().all(holds).then(|| OnKey::Expression(Box::new(part.expr.clone())))
    }

    fn restriction_of<'b>(
        &self,
        on: &Restrictions<'_, 'b>,
        conjunct: &Conjunct<'b>,
        part: &OnKey,
    ) -> Option<Restriction<'b>> {
        match part {
            OnKey::Column(slot) if !conjunct.slots.contains(slot) => None,
            OnKey::Column(slot) => self.restriction(conjunct, *slot),
            OnKey::Expression(wanted) => {
                self.restriction_where(conjunct, &|expr| conjunct.is_over(expr, on.layout, wanted))
            }
        }
    }

    pub(super) fn equality<'b>(
        &mut self,
        on: &Restrictions<'_, 'b>,
        part: &OnKey,
        nullable: bool,
    ) -> Option<ChosenPart<'b>> {
        let mut list = None;
        for (position, conjunct) in on.conjuncts.iter().enumerate() {
            match self.restriction_of(on, conjunct, part) {
                Some(Restriction::Compare(Comparison::Eq, value)) if self.available(on, conjunct, value) => {
                    return Some(ChosenPart::Value(position, value));
                }
                Some(Restriction::In(items))
                    if items.iter().all(|item| self.available(on, conjunct, item)) =>
                {
                    list.get_or_insert(ChosenPart::In(position, items));
                }
                Some(Restriction::Any(array)) if self.available(on, conjunct, array) => {
                    list.get_or_insert(ChosenPart::Any(position, array));
                }
                Some(Restriction::IsNull) if nullable => {
                    list.get_or_insert(ChosenPart::Null(position));
                }
                _ => {}
            }
        }
        if list.is_none()
            && let OnKey::Column(slot) = part
        {
            return on.facts.get(slot).map(|known| ChosenPart::Known(known.clone()));
        }
        list
    }

    fn range<'b>(&mut self, on: &Restrictions<'_, 'b>, part: &OnKey, choice: &mut Choice<'b>) {
        for (position, conjunct) in on.conjuncts.iter().enumerate() {
            let Some(Restriction::Compare(comparison, value)) = self.restriction_of(on, conjunct, part)
            else {
                continue;
            };
            if matches!(comparison, Comparison::Eq | Comparison::Ne) || !self.available(on, conjunct, value) {
                continue;
            }
            let bound = match comparison {
                Comparison::Lt | Comparison::Le => &mut choice.high,
                _ => &mut choice.low,
            };
            if bound.is_none() {
                *bound = Some((position, value, matches!(comparison, Comparison::Le | Comparison::Ge)));
                let slots = self.value_slots(conjunct, value);
                choice.joined |= !slots.is_empty();
            }
        }
    }

    /// Whether a value can be computed when the scan starts: it reads no unfilled slot.
    fn available(&mut self, on: &Restrictions<'_, '_>, conjunct: &Conjunct<'_>, value: &BoundExpr) -> bool {
        if crate::bind::visit::is_volatile(value) {
            return false;
        }
        let slots = self.value_slots(conjunct, value);
        slots.iter().all(|slot| !on.layout.contains(slot) && on.unavailable.binary_search(slot).is_err())
    }

    fn part_is_joined(&mut self, on: &Restrictions<'_, '_>, part: &ChosenPart<'_>) -> bool {
        match part {
            ChosenPart::Value(position, value) | ChosenPart::Any(position, value) => {
                !self.value_slots(&on.conjuncts[*position], value).is_empty()
            }
            ChosenPart::In(position, values) => {
                values.iter().any(|value| !self.value_slots(&on.conjuncts[*position], value).is_empty())
            }
            ChosenPart::Known(_) | ChosenPart::Null(_) => false,
        }
    }

    /// Whether walking the path yields the wanted order, and if so whether backwards.
    pub(crate) fn order_of(
        &self,
        on: &Restrictions<'_, '_>,
        key: &[KeyColumn],
        choice: &Choice<'_>,
    ) -> Option<bool> {
        let fixed = |slot: u32| {
            key.iter().zip(&choice.equals).any(|(column, part)| {
                matches!(part, ChosenPart::Value(..) | ChosenPart::Known(_) | ChosenPart::Null(_))
                    && on.layout.get(usize::from(column.column)) == Some(&slot)
            })
        };
        let mut wanted = on.wanted.iter().filter(|key| !fixed(key.slot));
        let mut walked = key.iter().enumerate().filter(|(position, column)| {
            on.layout.get(usize::from(column.column)).is_none_or(|slot| !fixed(*slot))
                || choice.equals.get(*position).is_none()
        });
        let mut reverse: Option<bool> = None;
        if choice.unique {
            return Some(false);
        }
        for want in wanted.by_ref() {
            let Some((_, column)) = walked.next() else {
                // All key columns are used up: at most one row is left if the key is unique.
                return (choice.index.is_none()).then_some(reverse.unwrap_or(false));
            };
            let slot = on.layout.get(usize::from(column.column)).copied()?;
            if slot != want.slot {
                return None;
            }
            if !stored_type(on.table, column.column).is_some_and(|ty| Codec::of(ty).ordered_in(column)) {
                return None;
            }
            let backwards = column.descending != want.descending;
            if column.nullable && (column.nulls_first != want.nulls_first) != backwards {
                return None;
            }
            if reverse.is_some_and(|reverse| reverse != backwards) {
                return None;
            }
            reverse = Some(backwards);
        }
        Some(reverse.unwrap_or(false))
    }

    /// Compiles a choice. The second result are positions of conjuncts that need no checking
    /// afterwards because the path holds exactly the keys that satisfy them; an entry of an index may
    /// be out of date, which its scan asks about (`Scan::fetch_entry`).
    pub fn compile_path(
        &mut self,
        on: &Restrictions<'_, '_>,
        choice: &Choice<'_>,
    ) -> Result<(Path, Vec<usize>)> {
        if let Some(union) = &choice.union
            && let Some(compiled) = self.compile_union(on, union, choice.reverse)?
        {
            return Ok(compiled);
        }
        let (tree, key) = match choice.index {
            None => (Tree::Storage, &on.meta.def.key),
            Some(index) => {
                let index = &on.meta.def.indexes[index];
                (Tree::Index(index.clone()), &index.key)
            }
        };
        let columns = key
            .iter()
            .map(|column| {
                let codec = stored_type(on.table, column.column).map_or(Codec::Int8, Codec::of);
                (*column, codec.in_key(column))
            })
            .collect::<Vec<_>>();
        let mut implied = Vec::new();
        let mut equals = Vec::new();
        // What is computed for an index is compared again.
        let is_stored = |column: &KeyColumn| {
            matches!(tree, Tree::Storage) || usize::from(column.column) < on.table.columns.len()
        };
        for (part, (column, _)) in choice.equals.iter().zip(&columns) {
            let exact = is_stored(column);
            equals.push(match part {
                ChosenPart::Value(position, value) => {
                    if exact {
                        implied.push(*position);
                    }
                    KeyPart::One(self.in_conjunct(&on.conjuncts[*position], |c| c.source(value))?)
                }
                ChosenPart::Known(value) => KeyPart::One(self.source(value)?),
                ChosenPart::In(position, values) => {
                    if exact {
                        implied.push(*position);
                    }
                    KeyPart::Each(self.in_conjunct(&on.conjuncts[*position], |c| c.exprs(values))?)
                }
                ChosenPart::Any(position, array) => {
                    KeyPart::Elements(self.in_conjunct(&on.conjuncts[*position], |c| c.source(array))?)
                }
                ChosenPart::Null(position) => {
                    if exact {
                        implied.push(*position);
                    }
                    KeyPart::Null
                }
            });
        }
        let mut bound = |c: &mut Self, bound: &Option<(usize, &BoundExpr, bool)>| {
            bound
                .map(|(position, value, inclusive)| {
                    // A bound that is not representable in the column (12.345 for numeric(_,2))
                    // leaves that side open, so the condition is checked again; so it is where there
                    // are NULLs beside the values, or the order is turned.
                    let exact = columns.get(choice.equals.len()).is_some_and(|(column, codec)| {
                        is_stored(column) && column.is_plain() && !matches!(codec, Codec::Scaled(_))
                    });
                    if exact {
                        implied.push(position);
                    }
                    Ok((c.in_conjunct(&on.conjuncts[position], |c| c.source(value))?, inclusive))
                })
                .transpose()
        };
        let low = bound(self, &choice.low)?;
        let high = bound(self, &choice.high)?;
        let (unique, reverse) = (choice.unique, choice.reverse);
        let counted = self.counted_indexes(on, choice);
        Ok((Path { tree, columns, equals, low, high, unique, reverse, also: Vec::new(), counted }, implied))
    }

    /// What the path touches, for routing.
    pub fn note_accesses(&mut self, on: &Restrictions<'_, '_>, choice: &Choice<'_>, write: bool) {
        if let Some(union) = &choice.union {
            return self.note_union(on, union, write);
        }
        let route = self.route_of(on, choice);
        self.note_known_row(on, choice);
        self.note_route(on, choice.index, route, write);
        let uses = self.index_uses(on, choice);
        if let Some(access) = self.accesses.last_mut().filter(|access| access.oid == on.table.oid) {
            access.uses = uses;
        }
    }

    /// Notes what is known of the first column of a tree's key.
    pub(crate) fn note_route(
        &mut self,
        on: &Restrictions<'_, '_>,
        index: Option<usize>,
        route: RouteKey,
        write: bool,
    ) {
        let candidates = self.bound_key_columns(on);
        let joined = match route {
            RouteKey::All => self.joined_columns(on),
            _ => Vec::new(),
        };
        let first = key_of(on.meta, index).first().copied();
        let through = index.map(|index| &on.meta.def.indexes[index]);
        if let (Some(index), Some(first)) = (through, first)
            && let IndexPlacement::Global { group } = index.placement
        {
            let access = self.access_to(on.table, on.meta, first, Some(group), false, route);
            self.accesses.push(access);
            let reason = format!("found through index {}", index.name);
            self.note_table(on.table, on.meta, write, RouteKey::Unknown(reason));
        } else {
            self.note_table(on.table, on.meta, write, route);
        }
        if let Some(access) = self.accesses.last_mut().filter(|access| access.oid == on.table.oid) {
            access.candidates = candidates;
            access.joined = joined;
            access.kept = share_kept(on.conjuncts, on.layout);
        }
    }

    /// The columns of a table that are equal to those of others ([`Compiler::note_joined`]).
    fn joined_columns(&self, on: &Restrictions<'_, '_>) -> Vec<u16> {
        let slots = on.layout.iter().take(on.table.columns.len()).enumerate();
        slots.filter(|(_, slot)| self.joined.contains(*slot)).map(|(place, _)| place as u16).collect()
    }

    /// What is said of the columns of a primary key, whichever of them the path goes by: any of them
    /// could distribute the rows. Where nothing is known of a column's value, that is said.
    fn bound_key_columns(&mut self, on: &Restrictions<'_, '_>) -> Vec<(u16, RouteKey)> {
        let mut bound = Vec::new();
        for column in key_candidates(on.table) {
            let Some(slot) = on.layout.get(usize::from(*column)) else { continue };
            let mut keys: Vec<RouteKey> = Vec::new();
            for (position, conjunct) in on.conjuncts.iter().enumerate() {
                let part = match self.restriction_of(on, conjunct, &OnKey::Column(*slot)) {
                    Some(Restriction::Compare(Comparison::Eq, value)) => ChosenPart::Value(position, value),
                    Some(Restriction::In(values)) => ChosenPart::In(position, values),
                    Some(Restriction::Any(array)) => ChosenPart::Any(position, array),
                    _ => continue,
                };
                keys.push(self.route_of_part(on, &part));
            }
            keys.extend(on.facts.get(slot).map(|known| RouteKey::Point(known.clone())));
            // One value says more than several, and several more than that nothing is known.
            keys.sort_by_key(|key| match key {
                RouteKey::Point(_) => 0,
                RouteKey::Unknown(_) => 2,
                _ => 1,
            });
            bound.extend(keys.into_iter().map(|key| (*column, key)));
        }
        bound
    }

    /// Notes a row that is found by its whole storage key, if no row has to be read for that.
    fn note_known_row(&mut self, on: &Restrictions<'_, '_>, choice: &Choice<'_>) {
        if !choice.unique || choice.index.is_some() || choice.joined {
            return;
        }
        let key = &on.meta.def.key;
        let mut values = Vec::with_capacity(key.len());
        for part in &choice.equals {
            let value = match part {
                ChosenPart::Value(position, value) => {
                    self.in_conjunct(&on.conjuncts[*position], |c| Ok(c.row_free(value))).ok().flatten()
                }
                ChosenPart::Known(value) => Some(value.clone()),
                _ => None,
            };
            let Some(value) = value else { return };
            values.push(value);
        }
        let codec = |column: &KeyColumn| {
            on.table.columns.get(usize::from(column.column)).map(|c| Codec::of(c.ty).in_key(column))
        };
        let columns = key.iter().map(|column| Some((*column, codec(column)?))).collect::<Option<_>>();
        if let Some(columns) = columns {
            self.known_rows.push(KnownRow::new(on.meta.clone(), columns, values));
        }
    }

    /// An access to the rows of a table.
    pub fn note_table(&mut self, table: &Table, meta: &TableMeta, write: bool, key: RouteKey) {
        let Some(first) = meta.def.key.first().copied() else { return };
        let group = match meta.def.placement {
            Placement::Distributed { group } => Some(group),
            Placement::Reference => None,
        };
        let access = self.access_to(table, meta, first, group, write, key);
        self.accesses.push(access);
    }

    /// A write to the entries of a global index.
    pub fn note_index(
        &mut self,
        table: &Table,
        meta: &TableMeta,
        first: KeyColumn,
        group: archipel_engine::id::GroupId,
        key: RouteKey,
    ) {
        let access = self.access_to(table, meta, first, Some(group), true, key);
        self.accesses.push(access);
    }

    fn access_to(
        &self,
        table: &Table,
        meta: &TableMeta,
        first: KeyColumn,
        group: Option<archipel_engine::id::GroupId>,
        write: bool,
        key: RouteKey,
    ) -> Access {
        let position = usize::from(first.column);
        let name = if table.schema == "public" {
            table.name.clone()
        } else {
            format!("{}.{}", table.schema, table.name)
        };
        Access {
            group,
            table: name,
            oid: table.oid,
            column: stored_name(table, first.column),
            write,
            key_column: first,
            kind: meta.def.columns[position],
            codec: stored_type(table, first.column).map_or(Codec::Int8, Codec::of).in_key(&first),
            key,
            among: None,
            kept: 1.0,
            candidates: Vec::new(),
            joined: Vec::new(),
            uses: Vec::new(),
        }
    }

    pub(crate) fn route_of(&mut self, on: &Restrictions<'_, '_>, choice: &Choice<'_>) -> RouteKey {
        if let Some(part) = choice.equals.first() {
            return self.route_of_part(on, part);
        }
        let mut bound = |bound: &Option<(usize, &BoundExpr, bool)>| {
            bound.and_then(|(position, value, inclusive)| {
                Some((self.free_in(on, position, value)?, inclusive))
            })
        };
        let (low, high) = (bound(&choice.low), bound(&choice.high));
        if low.is_none() && high.is_none() { RouteKey::All } else { RouteKey::Range { low, high } }
    }

    /// A value of a conjunct over parameters, variables and constants alone.
    fn free_in(
        &mut self,
        on: &Restrictions<'_, '_>,
        position: usize,
        value: &BoundExpr,
    ) -> Option<BoundExpr> {
        self.in_conjunct(&on.conjuncts[position], |c| Ok(c.row_free(value))).ok().flatten()
    }

    /// Which keys a condition on a column leaves.
    fn route_of_part(&mut self, on: &Restrictions<'_, '_>, part: &ChosenPart<'_>) -> RouteKey {
        match part {
            ChosenPart::Value(position, value) => match self.free_in(on, *position, value) {
                Some(value) => RouteKey::Point(value),
                None => {
                    let slots = self.value_slots(&on.conjuncts[*position], value);
                    match slots.as_slice() {
                        [slot] if self.in_turn.contains_key(slot) => self.route_of_slot(*slot),
                        _ => RouteKey::Unknown(self.why_unknown(&on.conjuncts[*position], value)),
                    }
                }
            },
            ChosenPart::Known(value) => RouteKey::Point(value.clone()),
            ChosenPart::In(position, values) => {
                let values =
                    values.iter().map(|value| self.free_in(on, *position, value)).collect::<Option<Vec<_>>>();
                values.map_or_else(
                    || RouteKey::Unknown("the IN list is computed from rows".to_owned()),
                    RouteKey::List,
                )
            }
            ChosenPart::Any(position, array) => match self.free_in(on, *position, array) {
                Some(array) => RouteKey::EachOf(array),
                None => RouteKey::Unknown(self.why_unknown(&on.conjuncts[*position], array)),
            },
            ChosenPart::Null(_) => RouteKey::All,
        }
    }

    fn why_unknown(&self, _conjunct: &Conjunct<'_>, value: &BoundExpr) -> String {
        let mut reads_query = false;
        walk::visit_expr(value, 0, &mut |inner, _| {
            reads_query |= matches!(inner.kind, crate::bound::ExprKind::Subquery(_));
        });
        if reads_query { "the key is the result of a query" } else { "the key comes from a row read before" }
            .to_owned()
    }
}
