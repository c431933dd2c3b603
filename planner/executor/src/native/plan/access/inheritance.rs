//! Reading a family: its members' scans one after the other, into the same slots, so that conditions
//! sink into each of them. What conditions say of the partition key leaves members out, when the
//! statement is compiled if they are about constants, and when it runs.

use std::sync::Arc;

use archipel_sql::catalog::TableRef;
use archipel_sql::datum::Datum;
use archipel_sql::error::Result;
use archipel_sql::function::FunctionContext;
use rustc_hash::FxHashMap;

use super::choice::Restrictions;
use super::conjunct::{Conjunct, Restriction, comparable, split};
use crate::bind::visit::is_volatile;
use crate::bound::{BoundExpr, ExprKind};
use crate::comparison::{Comparison, comparison};
use crate::explain::plan::PlanNode;
use crate::native::plan::compiler::{Compiler, Layout};
use crate::native::plan::relation::node::{Planned, ScanUse};
use crate::native::run::access::path::OrderKey;
use crate::native::run::expression::source::Source;
use crate::native::run::operator::append::{Append, Chosen, Part, Selection};
use crate::native::run::operator::node::Node;
use crate::partition::Family;
use crate::pruning::{Among, PartCondition, Pruning};
use crate::route::{RouteInputs, evaluate, is_row_free};

impl Compiler<'_> {
    /// The slots of a member's columns: those of the root where it has them.
    pub fn member_layout(&mut self, family: &Family, member: usize, layout: &[u32]) -> Layout {
        let member = &family.members[member];
        let mut own: Vec<Option<u32>> = vec![None; member.table.columns.len()];
        for (place, slot) in member.columns.iter().zip(layout) {
            own[usize::from(*place)] = Some(*slot);
        }
        own.into_iter().map(|slot| slot.unwrap_or_else(|| self.slot())).collect()
    }

    /// The tables that a table's rows are in: itself, or its partitions.
    pub fn rows_in(&self, table: &TableRef) -> Result<Vec<TableRef>> {
        if !table.is_partitioned() {
            return Ok(vec![table.clone()]);
        }
        let family = Family::of(self.env.catalog, table)?;
        Ok(family.iter().flat_map(|family| &family.members).map(|member| member.table.clone()).collect())
    }

    /// A member whose paths tell how a family is best reached.
    pub fn first_member(&mut self, family: &Family, layout: &[u32]) -> Option<(usize, Layout)> {
        if family.members.is_empty() {
            return None;
        }
        Some((0, self.member_layout(family, 0, layout)))
    }

    /// What conditions say of a family's partition keys.
    pub fn choose_members(
        &mut self,
        family: &Arc<Family>,
        layout: &[u32],
        conjuncts: &[Conjunct<'_>],
        facts: &FxHashMap<u32, BoundExpr>,
        unavailable: &[u32],
    ) -> Result<Chosen> {
        let all = vec![true; family.members.len()];
        let mut values: Vec<(Source, Option<BoundExpr>)> = Vec::new();
        let mut conditions = Vec::with_capacity(family.nodes.len());
        for node in &family.nodes {
            let mut parts = Vec::with_capacity(node.key.len());
            for key in &node.key {
                let on = (layout, conjuncts, unavailable);
                parts.push(self.part_condition(key, on, facts, &mut values)?);
            }
            conditions.push(parts);
        }
        let pruning = Arc::new(Pruning { family: family.clone(), conditions });
        if !pruning.restricts() {
            return Ok(Chosen { left: all, selection: None, among: None });
        }
        let (sources, values): (Vec<_>, Vec<_>) = values.into_iter().unzip();
        let functions = FunctionContext::detached();
        let nothing = RouteInputs { params: &[], variables: &[], functions: &functions };
        let constants: Vec<Option<Datum>> = values
            .iter()
            .map(|value| value.as_ref().filter(|value| is_settled(value)).and_then(|v| evaluate(v, &nothing)))
            .collect();
        let left = pruning.members(&constants);
        if constants.iter().all(Option::is_some) {
            return Ok(Chosen { left, selection: None, among: None });
        }
        let among =
            values.iter().any(Option::is_some).then(|| Arc::new(Among { pruning: pruning.clone(), values }));
        Ok(Chosen { left, selection: Some(Selection { pruning, values: sources }), among })
    }

    fn part_condition(
        &mut self,
        key: &BoundExpr,
        (layout, conjuncts, unavailable): (&[u32], &[Conjunct<'_>], &[u32]),
        facts: &FxHashMap<u32, BoundExpr>,
        values: &mut Vec<(Source, Option<BoundExpr>)>,
    ) -> Result<PartCondition> {
        let column = match &key.kind {
            ExprKind::Column { depth: 0, index } => layout.get(usize::from(*index)).copied(),
            _ => None,
        };
        let (mut low, mut high, mut found) = (None, None, PartCondition::Any);
        for conjunct in conjuncts {
            let restriction = match column {
                Some(slot) => self.restriction(conjunct, slot),
                None => self.restriction_where(conjunct, &|expr| conjunct.is_over(expr, layout, key)),
            };
            let Some(restriction) = restriction else { continue };
            let mut value = |c: &mut Self, expr: &BoundExpr| -> Result<Option<usize>> {
                let slots = c.value_slots(conjunct, expr);
                if is_volatile(expr)
                    || slots
                        .iter()
                        .any(|slot| layout.contains(slot) || unavailable.binary_search(slot).is_ok())
                {
                    return Ok(None);
                }
                let (source, known) = c.in_conjunct(conjunct, |c| Ok((c.source(expr)?, c.row_free(expr))))?;
                values.push((source, known));
                Ok(Some(values.len() - 1))
            };
            match restriction {
                Restriction::Compare(Comparison::Eq, expr) => {
                    if let Some(value) = value(self, expr)? {
                        return Ok(PartCondition::One(value));
                    }
                }
                Restriction::Compare(Comparison::Ne, _) => {}
                Restriction::Compare(comparison, expr) => {
                    let side = match comparison {
                        Comparison::Lt | Comparison::Le => &mut high,
                        _ => &mut low,
                    };
                    if side.is_none()
                        && let Some(value) = value(self, expr)?
                    {
                        *side = Some((value, matches!(comparison, Comparison::Le | Comparison::Ge)));
                    }
                }
                Restriction::In(items) => {
                    let each =
                        items.iter().map(|item| value(self, item)).collect::<Result<Option<Vec<_>>>>()?;
                    if let Some(each) = each {
                        found = PartCondition::Each(each);
                    }
                }
                Restriction::Any(array) => {
                    if let Some(array) = value(self, array)? {
                        found = PartCondition::Elements(array);
                    }
                }
                Restriction::IsNull => found = PartCondition::Null,
            }
        }
        if let Some(known) = column.and_then(|slot| facts.get(&slot)) {
            let source = self.source(known)?;
            values.push((source, Some(known.clone())));
            return Ok(PartCondition::One(values.len() - 1));
        }
        Ok(match found {
            PartCondition::Any if low.is_some() || high.is_some() => PartCondition::Between(low, high),
            found => found,
        })
    }

    /// Plans the scans of a family.
    pub fn plan_family<'b>(
        &mut self,
        family: &Arc<Family>,
        layout: &Layout,
        conjuncts: &[Conjunct<'b>],
        facts: &FxHashMap<u32, BoundExpr>,
        wanted: &[OrderKey],
        usage: ScanUse,
    ) -> Result<Planned> {
        let backwards = in_order(family, layout, wanted);
        let wanted = if backwards.is_some() { wanted } else { &[] };
        let chosen = self.choose_members(family, layout, conjuncts, facts, &[])?;
        let number = match layout.get(family.root.columns.len()) {
            Some(number) => *number,
            None => self.slot(),
        };
        let alias = self.plan.alias.take();
        let name = if usage.reference { None } else { self.name_table(&family.root, &alias, layout) };
        let line = (!usage.reference).then(|| self.open(PlanNode::new("Append")));
        let parts = self.plan_members(family, layout, (conjuncts, facts), wanted, usage, &chosen);
        if let Some(name) = name {
            self.name_family(&name, &family.root, &alias, layout);
        }
        if line.is_some() {
            self.close();
        }
        let (mut parts, ordered) = parts?;
        if backwards == Some(true) {
            parts.reverse();
        }
        // A slot that nobody reads is there all the same.
        self.mark(number);
        let node = Node::Append(Append { parts, selection: chosen.selection, number });
        Ok(Planned { node, ordered: ordered && backwards.is_some() })
    }

    fn plan_members<'b>(
        &mut self,
        family: &Arc<Family>,
        layout: &Layout,
        (conjuncts, facts): (&[Conjunct<'b>], &FxHashMap<u32, BoundExpr>),
        wanted: &[OrderKey],
        usage: ScanUse,
        chosen: &Chosen,
    ) -> Result<(Vec<Part>, bool)> {
        let mut ordered = true;
        let mut parts = Vec::with_capacity(family.members.len());
        let called = self.member_alias(layout, &family.root);
        for (place, member) in family.members.iter().enumerate().filter(|(place, _)| chosen.left[*place]) {
            let own = self.member_layout(family, place, layout);
            let (accesses, rows) = (self.accesses.len(), self.known_rows.len());
            let locks = self.locking_scans();
            self.plan.alias = called.clone();
            let planned =
                self.counted(|c| c.plan_scan(&member.table, &own, conjuncts, facts, wanted, usage))?;
            ordered &= planned.ordered;
            let keys = self.with_lock_slots(&[], locks);
            self.among(accesses, place, chosen);
            // Which of them it will be is not known beforehand.
            self.known_rows.truncate(rows);
            let number = Datum::Oid(member.table.oid);
            parts.push(Part { member: place, number, node: planned.node, keys });
        }
        Ok((parts, ordered))
    }

    /// Says of the accesses since there were `before` that they are a member's.
    pub fn among(&mut self, before: usize, member: usize, chosen: &Chosen) {
        let Some(among) = &chosen.among else { return };
        for access in &mut self.accesses[before..] {
            access.among.get_or_insert_with(|| (among.clone(), member));
        }
    }

    /// How well conditions lead to the rows of a family: its score, and whether they take values from
    /// rows read before.
    pub fn family_score(
        &mut self,
        family: &Arc<Family>,
        layout: &[u32],
        conjuncts: &[Conjunct<'_>],
        unavailable: &[u32],
        facts: &FxHashMap<u32, BoundExpr>,
    ) -> Result<(u32, bool)> {
        let Some((place, own)) = self.first_member(family, layout) else { return Ok((18, false)) };
        let table = &family.members[place].table;
        let meta = self.table(table)?;
        let choice = self.choose_path(&Restrictions {
            table,
            meta: &meta,
            layout: &own,
            conjuncts,
            unavailable,
            facts,
            wanted: &[],
            mixed: false,
        });
        Ok((choice.score, choice.joined))
    }
}

/// Whether the members of a family, each in an order, are so one after the other, and if so whether from
/// the last to the first: those of ranges that no default partition joins.
fn in_order(family: &Family, layout: &[u32], wanted: &[OrderKey]) -> Option<bool> {
    let [node] = &family.nodes[..] else { return None };
    if wanted.is_empty() || !node.lookup.is_ordered() {
        return None;
    }
    let slot = |part: &BoundExpr| match &part.kind {
        ExprKind::Column { depth: 0, index } => layout.get(usize::from(*index)).copied(),
        _ => None,
    };
    let descending = wanted[0].descending;
    let mut pairs = wanted.iter().zip(&node.key);
    // Rows of one value of a key of several parts may be in several ranges.
    let enough = node.key.len() == 1 || wanted.len() <= node.key.len();
    let follows = pairs.all(|(key, part)| slot(part) == Some(key.slot) && key.descending == descending);
    (enough && follows).then_some(descending)
}

/// Which members of a family a condition over its rows leaves, as far as it is about values that are
/// known by now: for those who read the members their own way.
pub fn members_left(family: &Arc<Family>, condition: &BoundExpr, inputs: &RouteInputs<'_>) -> Vec<bool> {
    if family.nodes.is_empty() {
        return vec![true; family.members.len()];
    }
    let mut conjuncts = Vec::new();
    split(condition, &mut conjuncts);
    let mut values = Vec::new();
    let mut conditions = Vec::with_capacity(family.nodes.len());
    for node in &family.nodes {
        let parts = node.key.iter().map(|part| known_condition(part, &conjuncts, inputs, &mut values));
        conditions.push(parts.collect());
    }
    Pruning { family: family.clone(), conditions }.members(&values)
}

/// What conditions say of a part of a partition key over the row they are about.
fn known_condition(
    part: &BoundExpr,
    conjuncts: &[&BoundExpr],
    inputs: &RouteInputs<'_>,
    values: &mut Vec<Option<Datum>>,
) -> PartCondition {
    let column = |expr: &BoundExpr| match &expr.kind {
        ExprKind::Column { depth: 0, index } => Some(*index),
        _ => None,
    };
    let Some(wanted) = column(part) else { return PartCondition::Any };
    let is_it = |expr: &BoundExpr| match &expr.kind {
        ExprKind::Relabel(inner) => column(inner) == Some(wanted),
        _ => column(expr) == Some(wanted),
    };
    let mut known = |expr: &BoundExpr| {
        let value = is_row_free(expr).then(|| evaluate(expr, inputs)).flatten()?;
        values.push(Some(value));
        Some(values.len() - 1)
    };
    let (mut low, mut high, mut found) = (None, None, PartCondition::Any);
    for conjunct in conjuncts {
        match &conjunct.kind {
            ExprKind::Call { function, args } if args.len() == 2 => {
                let Some(comparison) = comparison(function.function) else { continue };
                let (comparison, value) = if is_it(&args[0]) && comparable(&args[0], &args[1]) {
                    (comparison, &args[1])
                } else if is_it(&args[1]) && comparable(&args[1], &args[0]) {
                    (comparison.flip(), &args[0])
                } else {
                    continue;
                };
                let side = match comparison {
                    Comparison::Eq => match known(value) {
                        Some(value) => return PartCondition::One(value),
                        None => continue,
                    },
                    Comparison::Ne => continue,
                    Comparison::Lt | Comparison::Le => &mut high,
                    Comparison::Gt | Comparison::Ge => &mut low,
                };
                if side.is_none() {
                    let included = matches!(comparison, Comparison::Le | Comparison::Ge);
                    *side = known(value).map(|value| (value, included));
                }
            }
            ExprKind::InList { left, list, equality, negated: false }
                if comparison(equality.function) == Some(Comparison::Eq)
                    && is_it(left)
                    && list.iter().all(|item| comparable(left, item)) =>
            {
                if let Some(each) = list.iter().map(&mut known).collect::<Option<Vec<usize>>>() {
                    found = PartCondition::Each(each);
                }
            }
            ExprKind::IsNull(inner) if is_it(inner) => return PartCondition::Null,
            _ => {}
        }
    }
    match found {
        PartCondition::Any if low.is_some() || high.is_some() => PartCondition::Between(low, high),
        found => found,
    }
}

/// What the rows of a member are shown as in errors, if not as themselves.
pub(crate) fn shown_as(family: &Family, member: &crate::partition::Member) -> Option<(TableRef, Vec<u16>)> {
    if member.is_plain(&family.root) {
        return None;
    }
    let (mut root, mut columns) = (family.root.clone(), member.columns.clone());
    if let Some(plain) = root.without_numbers() {
        root = Arc::new(plain);
        columns.pop();
    }
    Some((root, columns))
}

/// Whether an expression is made of constants alone, and means the same in every session.
pub(crate) fn is_settled(expr: &BoundExpr) -> bool {
    match &expr.kind {
        ExprKind::Const(_) => true,
        ExprKind::Relabel(inner) => is_settled(inner),
        ExprKind::Call { function, args } => {
            function.function.volatility == archipel_sql::function::Volatility::Immutable
                && args.iter().all(is_settled)
        }
        _ => false,
    }
}
