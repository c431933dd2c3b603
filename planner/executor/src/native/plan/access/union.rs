//! The paths of an OR: each of its arms by one of its own, where all of them lead to fewer rows than the
//! best path for the conditions around it does.
//!
//! Arms that are served by one tree are one walk over the ranges of all of them, which then are in order
//! and do not overlap. Those of several trees are walked one tree after the other, and each leaves out
//! what an arm before has shown: no row comes twice.

use archipel_sql::catalog::TableRef;
use archipel_sql::error::Result;

use super::choice::{Arm, Choice, Restrictions, Union};
use super::conjunct::{Conjunct, split};
use crate::bound::{Alias, BoundExpr, ExprKind};
use crate::explain::plan::PlanNode;
use crate::native::plan::compiler::{Compiler, Layout};
use crate::native::plan::relation::node::{Planned, ScanUse};
use crate::native::run::access::path::Path;
use crate::native::run::expression::code::CompiledPredicate;
use crate::native::run::operator::node::Node;
use crate::native::run::operator::set_operation::SetOperation;
use crate::native::run::state::context::ExecContext;
use crate::native::run::state::error::ExecResult;
use crate::route::RouteKey;

/// The same with other conditions, in any order.
fn restricted<'s, 'b>(on: &Restrictions<'s, 'b>, conjuncts: &'s [Conjunct<'b>]) -> Restrictions<'s, 'b> {
    Restrictions {
        table: on.table,
        meta: on.meta,
        layout: on.layout,
        conjuncts,
        unavailable: on.unavailable,
        facts: on.facts,
        wanted: &[],
        mixed: on.mixed,
    }
}

/// Whether one of some conditions holds.
fn any(conditions: &[CompiledPredicate], ctx: &mut ExecContext<'_, '_>) -> ExecResult<bool> {
    for condition in conditions {
        if condition(ctx)? == Some(true) {
            return Ok(true);
        }
    }
    Ok(false)
}

impl Compiler<'_> {
    /// The best union, if one is better than a single path.
    pub(super) fn choose_union<'b>(
        &mut self,
        on: &Restrictions<'_, 'b>,
        single: &Choice<'b>,
    ) -> Option<Choice<'b>> {
        if single.unique {
            return None;
        }
        let mut best: Option<Choice<'b>> = None;
        for (position, conjunct) in on.conjuncts.iter().enumerate() {
            let ExprKind::Or(arms) = &conjunct.expr.kind else { continue };
            if conjunct.reads_any(on.layout) {
                let above = best.as_ref().map_or(single.score, |best| best.score);
                best = self.union_of(on, position, arms, above).or(best);
            }
        }
        best
    }

    fn union_of<'b>(
        &mut self,
        on: &Restrictions<'_, 'b>,
        position: usize,
        arms: &'b [BoundExpr],
        above: u32,
    ) -> Option<Choice<'b>> {
        let conjunct = &on.conjuncts[position];
        let others = on.conjuncts.iter().enumerate().filter(|(other, _)| *other != position);
        let others: Vec<Conjunct<'b>> = others.map(|(_, other)| other.clone()).collect();
        let (mut score, mut joined) = (u32::MAX, false);
        let mut chosen: Vec<Arm<'b>> = Vec::with_capacity(arms.len());
        for arm in arms {
            let mut parts = Vec::new();
            split(arm, &mut parts);
            let mut conjuncts: Vec<Conjunct<'b>> =
                parts.into_iter().map(|part| self.part_of(conjunct, part)).collect();
            let own = conjuncts.len();
            conjuncts.extend(others.iter().cloned());
            let choice = self.choose_tree(&restricted(on, &conjuncts));
            let narrow = !choice.equals.is_empty() || choice.low.is_some() || choice.high.is_some();
            // One row of each arm is not one row of all.
            score = score.min(choice.score - if choice.unique { 1000 } else { 0 });
            let another = chosen.last().is_some_and(|last| last.choice.index != choice.index);
            if !narrow || score <= above || (another && !on.mixed) {
                return None;
            }
            joined |= choice.joined;
            chosen.push(Arm { conjuncts, own, choice });
        }
        let index = chosen.first()?.choice.index;
        let union = Union { position, arms: chosen };
        let mixed = union.is_mixed();
        let mut choice = Choice { score, joined, ..Choice::of(index) };
        if !mixed
            && !on.wanted.is_empty()
            && let Some(reverse) = self.order_of(on, super::path::key_of(on.meta, index), &choice)
        {
            (choice.ordered, choice.reverse) = (true, reverse);
        }
        Some(Choice { union: Some(Box::new(union)), ..choice })
    }

    /// Compiles paths of one tree as one; whether its rows are exactly those that pass one of the arms.
    fn compile_arms(
        &mut self,
        on: &Restrictions<'_, '_>,
        arms: &[&Arm<'_>],
        reverse: bool,
    ) -> Result<Option<(Path, bool)>> {
        let mut exact = true;
        let mut paths = Vec::with_capacity(arms.len());
        for arm in arms {
            let (path, implied) = self.compile_path(&restricted(on, &arm.conjuncts), &arm.choice)?;
            exact &= (0..arm.own).all(|part| implied.contains(&part));
            paths.push(Path { unique: false, ..path });
        }
        let mut paths = paths.into_iter();
        let first = paths.next();
        Ok(first.map(|first| (Path { also: paths.collect(), reverse, ..first }, exact)))
    }

    /// As [`Compiler::compile_path`], of a union over one tree.
    pub(super) fn compile_union(
        &mut self,
        on: &Restrictions<'_, '_>,
        union: &Union<'_>,
        reverse: bool,
    ) -> Result<Option<(Path, Vec<usize>)>> {
        let arms: Vec<&Arm<'_>> = union.arms.iter().collect();
        let compiled = self.compile_arms(on, &arms, reverse)?;
        Ok(compiled.map(|(path, exact)| (path, if exact { vec![union.position] } else { Vec::new() })))
    }

    /// What the arms touch, for routing: of one tree the values of all of them together.
    pub(super) fn note_union(&mut self, on: &Restrictions<'_, '_>, union: &Union<'_>, write: bool) {
        let mut routes = Vec::with_capacity(union.arms.len());
        for arm in &union.arms {
            let route = self.route_of(&restricted(on, &arm.conjuncts), &arm.choice);
            routes.push((arm.choice.index, route));
        }
        let is_value = |route: &RouteKey| matches!(route, RouteKey::Point(_) | RouteKey::List(_));
        if union.is_mixed() || !routes.iter().all(|(_, route)| is_value(route)) {
            for (index, route) in routes {
                self.note_route(on, index, route, write);
            }
            return;
        }
        let index = routes.first().and_then(|(index, _)| *index);
        let mut values: Vec<BoundExpr> = Vec::with_capacity(routes.len());
        for (_, route) in routes {
            match route {
                RouteKey::Point(value) => values.push(value),
                RouteKey::List(list) => values.extend(list),
                _ => {}
            }
        }
        values.dedup();
        self.note_route(on, index, RouteKey::List(values), write);
    }

    /// Plans the scans of a union over several trees, one after the other.
    pub fn plan_branches(
        &mut self,
        (table, layout, alias): (&TableRef, &Layout, &Alias),
        on: &Restrictions<'_, '_>,
        choice: &Choice<'_>,
        union: &Union<'_>,
        usage: ScanUse,
    ) -> Result<Planned> {
        let others = on.conjuncts.iter().enumerate().filter(|(other, _)| *other != union.position);
        let others: Vec<Conjunct<'_>> = others.map(|(_, other)| other.clone()).collect();
        let mut trees: Vec<Option<usize>> = Vec::new();
        for arm in &union.arms {
            if !trees.contains(&arm.choice.index) {
                trees.push(arm.choice.index);
            }
        }
        let name = if usage.reference { None } else { self.name_table(table, alias, layout) };
        let node = PlanNode::new("BitmapOr").on(&table.name).within(&table.schema);
        self.open(PlanNode { alias: name.clone(), ..node });
        let mut nodes = Vec::with_capacity(trees.len());
        for (place, tree) in trees.iter().enumerate() {
            let of = |tree: Option<usize>| union.arms.iter().filter(move |arm| arm.choice.index == tree);
            let arms: Vec<&Arm<'_>> = of(*tree).collect();
            let Some((path, _)) = self.compile_arms(on, &arms, false)? else { continue };
            if !usage.reference {
                self.explain_scan(table, on, choice, &path, alias);
            }
            let rest = self.all_of(&others)?;
            let own = self.conditions_of_arms(&arms)?;
            let before: Vec<&Arm<'_>> = trees[..place].iter().flat_map(|tree| of(*tree)).collect();
            let before = self.conditions_of_arms(&before)?;
            let filter: CompiledPredicate = Box::new(move |ctx| {
                if let Some(rest) = &rest
                    && rest(ctx)? != Some(true)
                {
                    return Ok(Some(false));
                }
                Ok(Some(any(&own, ctx)? && !any(&before, ctx)?))
            });
            nodes.push(self.scan_node(table, layout, on.meta, path, Some(filter), usage));
        }
        self.close();
        // The scans have told its columns under names of their own.
        if let Some(name) = name {
            self.name_family(&name, table, alias, layout);
        }
        Ok(Node::SetOperation(SetOperation::in_turn(nodes)).into())
    }

    /// What some arms ask for themselves.
    fn conditions_of_arms(&mut self, arms: &[&Arm<'_>]) -> Result<Vec<CompiledPredicate>> {
        let mut conditions = Vec::with_capacity(arms.len());
        for arm in arms {
            conditions.extend(self.all_of(&arm.conjuncts[..arm.own])?);
        }
        Ok(conditions)
    }
}
