//! The columns and conditions of a plan, told while it is compiled: for EXPLAIN (VERBOSE) and for its
//! documents. Other statements are compiled without any of this.
//!
//! Every slot that a row of the plan has gets the name that PostgreSQL would print for it: a column of a
//! relation, or the text of what a node below has computed, which stands in parentheses above that node.

use std::sync::Arc;

use archipel_sql::catalog::Table;
use archipel_sql::catalog::names::quote_identifier;
use archipel_sql::types::Type;

use super::name::{ColumnNames, Name, Prefix};
use crate::bound::{Alias, BoundExpr, ConflictArbiter, Cte, OnConflict, RelationName, Returning, SortKey};
use crate::explain;
use crate::explain::document::Value;
use crate::explain::plan::{PlanNode, Shown};
use crate::explain::width_of;
use crate::native::plan::access::conjunct::{Conjunct, in_order};
use crate::native::plan::compiler::{Compiler, passed_through};

impl Compiler<'_> {
    /// Whether columns and conditions are told.
    pub fn is_describing(&self) -> bool {
        self.plan.describing.is_some()
    }

    /// What a table in FROM is called, its columns being in these slots; without an alias, nothing is told
    /// of it where columns are not told.
    pub fn name_table(&mut self, table: &Table, alias: &Alias, slots: &[u32]) -> Option<String> {
        let Some(describing) = &mut self.plan.describing else {
            return alias.as_ref().map(|alias| alias.name.clone());
        };
        let name = describing.unique(alias.as_ref().map_or(&table.name, |alias| &alias.name));
        describing.name_columns(slots, &name, columns_of(table, alias));
        Some(name)
    }

    /// Gives the columns of a family their names back, which those of its members had.
    pub fn name_family(&mut self, name: &str, table: &Table, alias: &Alias, slots: &[u32]) {
        if let Some(describing) = &mut self.plan.describing {
            describing.name_columns(slots, name, columns_of(table, alias));
        }
    }

    /// What the members of a family are called whose columns are in these slots: as the family is, with
    /// numbers.
    pub fn member_alias(&self, slots: &[u32], root: &Table) -> Alias {
        let name = self.changed_name(root, slots)?;
        Some(Arc::new(RelationName { name, columns: None }))
    }

    /// The same where a statement changes the members.
    pub fn changed_alias(&self, alias: &Alias, root: &Table) -> Alias {
        let name = alias.as_ref().map_or(&root.name, |alias| &alias.name).clone();
        self.is_describing().then(|| Arc::new(RelationName { name, columns: None }))
    }

    /// Names what is no table: a function, a query of WITH, rows of VALUES.
    pub fn name_rows(&mut self, alias: &Alias, other: &str, slots: &[u32], types: &[Type]) -> Option<String> {
        let describing = self.plan.describing.as_mut()?;
        let name = describing.unique(alias.as_ref().map_or(other, |alias| &alias.name));
        let named = alias.as_ref().and_then(|alias| alias.columns.clone()).unwrap_or_default();
        let columns = types.iter().enumerate().map(|(place, ty)| {
            let column = named.get(place).cloned();
            (column.unwrap_or_else(|| format!("column{}", place + 1)), *ty)
        });
        describing.name_columns(slots, &name, columns);
        Some(name)
    }

    /// What a query of WITH is called.
    pub fn name_cte(&mut self, cte: &Cte) {
        if let Some(describing) = &mut self.plan.describing {
            describing.ctes.insert(cte.id, cte.name.clone());
        }
    }

    /// What that of this id is called.
    pub fn cte_name(&self, id: u32) -> Option<String> {
        self.plan.describing.as_ref()?.ctes.get(&id).cloned()
    }

    /// The relation that a slot is a column of.
    pub fn relation_of_slot(&self, slot: Option<&u32>) -> Option<String> {
        self.plan.describing.as_ref()?.names.get(slot?)?.relation.clone()
    }

    /// The columns in these slots, as far as anybody reads them.
    pub fn shown(&self, slots: &[u32]) -> Vec<Shown> {
        let Some(describing) = &self.plan.describing else { return Vec::new() };
        let prefix = describing.in_output();
        let shown = |slot: &u32| {
            let width = describing.names.get(slot)?.width;
            Some(Shown { slot: Some(*slot), text: describing.text(*slot, prefix)?, width })
        };
        slots.iter().filter_map(shown).collect()
    }

    /// An expression over the row in scope. What the node at hand computes, it does not put in
    /// parentheses.
    fn told(&self, expr: &BoundExpr, prefix: Prefix<'_>, own: &[Shown]) -> String {
        let name = |depth, index| self.column_told(depth, index, prefix, own);
        explain::typed(expr, &name, &self.env.session())
    }

    fn column_told(&self, depth: u16, index: u16, prefix: Prefix<'_>, own: &[Shown]) -> String {
        let slot = self.peek(depth, index);
        let computed = slot.and_then(|slot| {
            let name = self.plan.describing.as_ref()?.names.get(&slot)?;
            let here = name.relation.is_none() && own.iter().any(|column| column.slot == Some(slot));
            here.then(|| name.plain(slot, prefix).to_owned())
        });
        let named = || self.plan.describing.as_ref()?.text(slot?, prefix);
        computed.or_else(named).unwrap_or_else(|| format!("column {}", index + 1))
    }

    /// What `tell` makes of the row in scope, for VERBOSE alone.
    pub fn verbose_text(&self, tell: &dyn Fn(ColumnNames<'_>) -> String) -> Option<String> {
        let describing = self.plan.describing.as_ref().filter(|describing| describing.verbose)?;
        let prefix = describing.in_keys();
        Some(tell(&|depth, index| self.column_told(depth, index, prefix, &[])))
    }

    /// Names a slot after what is computed into it.
    fn name_computed(&mut self, slot: u32, bare: String, qualified: String, ty: Type) {
        if let Some(describing) = &mut self.plan.describing {
            let width = width_of(ty);
            describing.names.insert(slot, Name { relation: None, bare, qualified, width });
        }
    }

    /// Names what is computed over the row in scope by `tell`, which is handed a name for each column;
    /// answers it as the node's Output tells it.
    pub fn describe_computed(
        &mut self,
        slot: u32,
        ty: Type,
        tell: &dyn Fn(ColumnNames<'_>) -> String,
    ) -> Option<Shown> {
        let output = self.plan.describing.as_ref()?.in_output();
        let text = |prefix| tell(&|depth, index| self.column_told(depth, index, prefix, &[]));
        let (bare, qualified) = (text(Prefix::None), text(Prefix::All));
        let text = if matches!(output, Prefix::All) { qualified.clone() } else { bare.clone() };
        self.name_computed(slot, bare, qualified, ty);
        Some(Shown { slot: Some(slot), text, width: width_of(ty) })
    }

    /// Gives a slot the name of another one.
    pub fn name_as(&mut self, slot: u32, other: Option<u32>) {
        if let Some(describing) = &mut self.plan.describing
            && let Some(name) = other.and_then(|other| describing.names.get(&other)).cloned()
        {
            describing.names.insert(slot, name);
        }
    }

    /// The node that was told last at this depth, if it was since there were `since` lines.
    fn last_node(&self, since: usize) -> Option<usize> {
        let depth = self.plan.depth();
        let lines = self.plan.lines.iter().enumerate().skip(since);
        lines.rev().find(|(_, (deep, node))| *deep == depth && !node.is_aside()).map(|(at, _)| at)
    }

    /// The node that was opened last and not closed.
    fn opened_node(&mut self) -> Option<&mut PlanNode> {
        let depth = self.plan.depth().checked_sub(1)?;
        self.plan.lines.iter_mut().rev().find(|(deep, _)| *deep == depth).map(|(_, node)| node)
    }

    /// What a projection computes is what the node below it hands up. In scope: the row of that node,
    /// which is `below`.
    pub fn describe_projection(&mut self, since: usize, exprs: &[BoundExpr], below: &[u32], layout: &[u32]) {
        let Some(describing) = &self.plan.describing else { return };
        let Some(at) = self.last_node(since) else { return };
        let prefix = describing.in_output();
        let own = std::mem::take(&mut self.plan.lines[at].1.output);
        let mut output = Vec::with_capacity(exprs.len());
        for (expr, slot) in exprs.iter().zip(layout) {
            let text = self.told(expr, prefix, &own);
            let passed = passed_through(expr, below).is_some();
            // A slot that is passed keeps its name, and the node that fills it tells it as it is.
            if !passed {
                let bare = self.told(expr, Prefix::None, &own);
                let qualified = self.told(expr, Prefix::All, &own);
                self.name_computed(*slot, bare, qualified, expr.ty);
            }
            output.push(Shown { slot: Some(*slot), text, width: width_of(expr.ty) });
        }
        self.plan.lines[at].1.output = output;
    }

    /// The same of a projection that is computed above a join: the join hands up its other columns, too.
    pub fn describe_postponed(&mut self, since: usize, exprs: &[BoundExpr], below: &[u32], layout: &[u32]) {
        let Some(at) = self.last_node(since).filter(|_| self.is_describing()) else { return };
        let mut others = self.plan.lines[at].1.output.clone();
        self.describe_projection(since, exprs, below, layout);
        others.retain(|shown| shown.slot.is_none_or(|slot| !layout.contains(&slot)));
        self.plan.lines[at].1.output.extend(others);
    }

    /// Conditions that are asked of each row of the node told last.
    pub fn describe_filter(&mut self, conjuncts: &[Conjunct<'_>]) {
        let Some(describing) = self.plan.describing.as_ref().filter(|_| !conjuncts.is_empty()) else {
            return;
        };
        let Some(at) = self.last_node(0) else { return };
        let prefix = describing.in_keys();
        let own = self.plan.lines[at].1.output.clone();
        let texts = self.conditions(&in_order(conjuncts), prefix, &own);
        let node = &mut self.plan.lines[at].1;
        let name = if node.what == "Result" { "One-Time Filter" } else { "Filter" };
        let texts = match node.properties.iter().position(|(known, _)| *known == name) {
            Some(place) => match node.properties.remove(place).1 {
                Value::Text(before) => [vec![before], texts].concat(),
                _ => texts,
            },
            None => texts,
        };
        node.properties.push((name, explain::typed_all(&texts).into()));
    }

    fn conditions(&mut self, conjuncts: &[Conjunct<'_>], prefix: Prefix<'_>, own: &[Shown]) -> Vec<String> {
        let told = |c: &mut Self, conjunct: &Conjunct<'_>| {
            c.in_conjunct(conjunct, |c| Ok(c.told(conjunct.expr, prefix, own)))
        };
        conjuncts.iter().filter_map(|conjunct| told(self, conjunct).ok()).collect()
    }

    /// The conditions of a scan whose columns are in these slots.
    pub fn scan_conditions(&mut self, conjuncts: &[&Conjunct<'_>], slots: &[u32]) -> Vec<String> {
        let verbose = self.plan.describing.as_ref().is_some_and(|describing| describing.verbose);
        let prefix = if verbose { Prefix::All } else { Prefix::AllBut(slots) };
        let conjuncts: Vec<Conjunct<'_>> = conjuncts.iter().map(|conjunct| (*conjunct).clone()).collect();
        self.conditions(&conjuncts, prefix, &[])
    }

    /// What a join compares, as properties of its node.
    pub fn join_properties(
        &mut self,
        hashed: &[Conjunct<'_>],
        conjuncts: &[Conjunct<'_>],
    ) -> Vec<(&'static str, Value)> {
        let mut properties = Vec::new();
        let Some(describing) = &self.plan.describing else { return properties };
        let prefix = describing.in_keys();
        let hashed = self.conditions(hashed, prefix, &[]);
        if !hashed.is_empty() {
            properties.push(("Hash Cond", explain::typed_all(&hashed).into()));
        }
        let filter = self.conditions(conjuncts, prefix, &[]);
        if !filter.is_empty() {
            properties.push(("Join Filter", explain::typed_all(&filter).into()));
        }
        properties
    }

    /// Says of the join that is being planned what it compares.
    pub fn describe_join(&mut self, hashed: &[Conjunct<'_>], conjuncts: &[Conjunct<'_>]) {
        let properties = self.join_properties(hashed, conjuncts);
        if let Some(node) = self.opened_node() {
            node.properties.extend(properties);
        }
    }

    /// Puts the join of all that was told since there were `since` lines above it.
    pub fn wrap_in_join(&mut self, since: usize, hashed: &[Conjunct<'_>], conjuncts: &[Conjunct<'_>]) {
        if !self.is_describing() {
            return;
        }
        let mut node = PlanNode::new(if hashed.is_empty() { "Nested Loop" } else { "Hash Join" });
        node.properties = self.join_properties(hashed, conjuncts);
        self.plan.wrap(since, node);
    }

    /// The keys of a sort or an aggregation of the row in these slots.
    pub fn describe_sort_keys(&mut self, line: usize, slots: &[u32], keys: &[SortKey]) {
        let Some(describing) = &self.plan.describing else { return };
        let prefix = describing.in_keys();
        let session = self.env.session();
        let texts = self.scoped(slots, |c| {
            let name = |depth, index| c.column_told(depth, index, prefix, &[]);
            Ok(keys.iter().map(|key| explain::sort_key(key, &name, &session)).collect::<Vec<_>>())
        });
        if let (Ok(texts), Some((_, node))) = (texts, self.plan.lines.get_mut(line)) {
            node.properties.push(("Sort Key", texts.into()));
        }
    }

    /// Expressions over the row in scope as the keys of a node.
    pub fn keys_told(&self, exprs: &[BoundExpr]) -> Vec<String> {
        let Some(describing) = &self.plan.describing else { return Vec::new() };
        let prefix = describing.in_keys();
        exprs.iter().map(|expr| self.told(expr, prefix, &[])).collect()
    }

    /// What an INSERT, UPDATE or DELETE changes and answers. `behind`: the slots of what stands behind the
    /// table's row in RETURNING.
    pub fn describe_change(
        &mut self,
        line: usize,
        table: &Table,
        alias: Option<String>,
        behind: &[u32],
        returning: Option<&Returning>,
    ) {
        let Some(describing) = &self.plan.describing else { return };
        let known = self.plan.lines.get(line).and_then(|(_, node)| node.alias.clone());
        let relation = alias.or(known).unwrap_or_else(|| table.name.clone());
        let prefix = describing.in_output();
        let name = |depth: u16, index: u16| {
            let place = usize::from(index);
            match (depth, table.columns.get(place)) {
                (0, Some(column)) => column_text(&relation, &column.name, prefix),
                (0, None) => behind
                    .get(place - table.columns.len())
                    .and_then(|slot| describing.text(*slot, prefix))
                    .unwrap_or_else(|| format!("column {}", place + 1)),
                _ => format!("column {}", place + 1),
            }
        };
        let session = self.env.session();
        let exprs = returning.map_or(&[][..], |returning| &returning.exprs[..]);
        let output: Vec<Shown> = exprs
            .iter()
            .map(|expr| Shown {
                slot: None,
                text: explain::typed(expr, &name, &session),
                width: width_of(expr.ty),
            })
            .collect();
        if let Some((_, node)) = self.plan.lines.get_mut(line) {
            node.output = output;
            node.alias = Some(relation);
        }
    }

    /// What an INSERT does about rows that are there.
    pub fn describe_conflict(&mut self, line: usize, table: &Table, conflict: Option<&OnConflict>) {
        let (true, Some(conflict)) = (self.is_describing(), conflict) else { return };
        let session = self.env.session();
        let resolution = if conflict.update.is_some() { "UPDATE" } else { "NOTHING" };
        let arbiter = conflict.target.and_then(|target| match target {
            ConflictArbiter::Primary => table.primary_key.as_ref().map(|key| key.name.clone()),
            ConflictArbiter::Index(oid) => {
                table.indexes.iter().find(|index| index.oid == oid).map(|index| index.name.clone())
            }
        });
        let Some((_, node)) = self.plan.lines.get_mut(line) else { return };
        node.properties.push(("Conflict Resolution", resolution.into()));
        if let Some(arbiter) = arbiter {
            node.properties.push(("Conflict Arbiter Indexes", vec![arbiter].into()));
        }
        let filter = conflict.update.as_ref().and_then(|(_, filter)| filter.as_ref());
        if let Some(filter) = filter {
            let relation = node.alias.clone().unwrap_or_else(|| table.name.clone());
            let width = table.columns.len();
            let name = |_: u16, index: u16| {
                let place = usize::from(index);
                let relation = if place < width { relation.as_str() } else { "excluded" };
                match table.columns.get(place % width.max(1)) {
                    Some(column) => column_text(relation, &column.name, Prefix::All),
                    None => format!("column {}", place + 1),
                }
            };
            node.properties.push(("Conflict Filter", explain::typed(filter, &name, &session).into()));
        }
    }

    /// Leaves what somebody reads in the Output of the nodes told since there were `since` lines, and tells
    /// that of those which only pass on what is below them.
    pub fn settle_outputs(&mut self, since: usize) {
        let Some(describing) = &self.plan.describing else { return };
        let prefix = describing.in_output();
        let is_read = |slot: &u32| self.used.get(*slot as usize).copied().unwrap_or(true);
        let lines = &mut self.plan.lines;
        for at in (since..lines.len()).rev() {
            let (depth, what, told) = (lines[at].0, lines[at].1.what, !lines[at].1.output.is_empty());
            let passes = matches!(
                what,
                "Sort" | "Limit" | "Unique" | "LockRows" | "Hash" | "Nested Loop" | "Hash Join"
            );
            if told || !passes {
                lines[at].1.output.retain(|column| column.slot.as_ref().is_none_or(is_read));
                continue;
            }
            let below = lines[at + 1..].iter().take_while(|(deep, _)| *deep > depth);
            let inputs = below.filter(|(deep, node)| *deep == depth + 1 && !node.is_aside());
            let columns = inputs.flat_map(|(_, node)| &node.output);
            let output = columns.map(|column| {
                let text = column.slot.and_then(|slot| describing.text(slot, prefix));
                Shown { text: text.unwrap_or_else(|| column.text.clone()), ..column.clone() }
            });
            lines[at].1.output = output.collect();
        }
    }
}

/// The columns of a table as a query calls them.
fn columns_of(table: &Table, alias: &Alias) -> impl Iterator<Item = (String, Type)> {
    let named = alias.as_ref().and_then(|alias| alias.columns.clone()).unwrap_or_default();
    let columns = table.columns.iter().enumerate().map(move |(place, column)| {
        (named.get(place).cloned().unwrap_or_else(|| column.name.clone()), column.ty)
    });
    columns.chain(std::iter::once(("tableoid".to_owned(), Type::OID)))
}

fn column_text(relation: &str, column: &str, prefix: Prefix<'_>) -> String {
    match prefix {
        Prefix::None => quote_identifier(column),
        _ => format!("{}.{}", quote_identifier(relation), quote_identifier(column)),
    }
}
