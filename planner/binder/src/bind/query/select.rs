//! One SELECT: binds its clauses in PostgreSQL's order, then stacks the operators that answer it.
//!
//! ```text
//! FROM ─ WHERE ─ Aggregate ─ HAVING ─ Window ─ Project(Set) ─ DISTINCT ─ Sort ─ Lock ─ Limit ─ Project
//! ```
//!
//! Sort keys that are no output columns are computed beside them ("junk") and dropped at the end.

use archipel_sql::ast::RowLockClause;
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::parser::{is_no_column, starred};
use archipel_sql::types::{Oid, Type};
use sqlparser::ast;
use sqlparser::ast::{
    Distinct, Expr, Ident, ObjectName, OrderByExpr, Select, SelectFlavor, SelectItem,
    SelectItemQualifiedWildcardKind, WildcardAdditionalOptions,
};
use sqlparser::tokenizer::Span;

use super::grouping::output_target;
use super::postpone::{postpone, project_behind};
use super::project_set::{expanded_groups, place_sets, projected, share_sets};
use super::set_operation::Options;
use super::target_list::{Grouping, Order, Parts, Target, replace_placeholders};
use crate::bind::binder::Binder;
use crate::bind::clause::Clause;
use crate::bind::expression::disjunction::{simplified_over, widths};
use crate::bind::from::barrier::with_comparisons;
use crate::bind::from::lock::{require_lockable, skips_locked};
use crate::bind::level::{Level, LevelKind};
use crate::bind::name::{figure_column_name, ident_name, object_name_parts, object_name_span};
use crate::bind::scope::{SET_BASE, WINDOW_BASE, check_targets};
use crate::bind::span::{first_span, item_span, unnest};
use crate::bind::visit::same_expr;
use crate::bound::*;

impl Binder<'_, '_> {
    pub(crate) fn select(
        &mut self,
        select: &Select,
        options: Options<'_>,
        resolve_unknowns: bool,
        inherited: Vec<RowLockClause>,
    ) -> Result<BoundQuery> {
        if let Some(into) = &select.into {
            // Where INTO may stand, the parser has made a table of it.
            return Err(SqlError::new(SqlState::SYNTAX_ERROR, "SELECT ... INTO is not allowed here")
                .at(self.position(object_name_span(&into.name))));
        }
        refuse_foreign_clauses(select)?;
        let locks = self.row_locks(options.locks, inherited)?;
        let outer = std::mem::replace(&mut self.locks, locks);
        let outer_reads = std::mem::take(&mut self.reads_itself);
        let source = self.bind_from_clause(&select.from);
        let reads_itself = std::mem::replace(&mut self.reads_itself, outer_reads);
        let locks = std::mem::replace(&mut self.locks, outer);
        let (rel, relations) = source?;
        self.require_locked_names(options.locks, &relations)?;
        let level = Level::new(LevelKind::Query, relations);
        let (parts, level) =
            self.with_level(level, |binder| binder.select_parts(select, options, resolve_unknowns))?;
        self.check_aggregates(reads_itself, &level)?;
        if let Some(lock) = locks.last() {
            require_lockable(lock, &rel, &parts, &level)?;
        }
        self.assemble(rel, parts, level, options, !locks.is_empty())
    }

    /// `TABLE name`.
    pub(crate) fn select_all(
        &mut self,
        name: ObjectName,
        options: Options<'_>,
        inherited: Vec<RowLockClause>,
    ) -> Result<BoundQuery> {
        let locks = self.row_locks(options.locks, inherited)?;
        let locked = !locks.is_empty();
        let outer = std::mem::replace(&mut self.locks, locks);
        let factor = ast::TableFactor::Table {
            name,
            alias: None,
            args: None,
            with_hints: Vec::new(),
            version: None,
            with_ordinality: false,
            partitions: Vec::new(),
            json_path: None,
            sample: None,
            index_hints: Vec::new(),
        };
        let source = self.bind_from_clause(&[ast::TableWithJoins { relation: factor, joins: Vec::new() }]);
        self.locks = outer;
        let (rel, relations) = source?;
        let (parts, level) = self.with_level(Level::new(LevelKind::Query, relations), |binder| {
            let mut targets = binder.expand_star(Span::empty())?;
            let order = binder.order_by(options.order_by, &mut targets)?;
            Ok(Parts {
                targets,
                filter: None,
                having: None,
                order,
                grouping: None,
                distinct_on: None,
                distinct: false,
            })
        })?;
        self.assemble(rel, parts, level, options, locked)
    }

    /// The clauses in the order PostgreSQL looks at them, which decides what parameters become.
    fn select_parts(
        &mut self,
        select: &Select,
        options: Options<'_>,
        resolve_unknowns: bool,
    ) -> Result<Parts> {
        self.named_windows(&select.named_window)?;
        let mut targets = self.select_list(&select.projection, Clause::Select)?;
        let known = self.level()?.references.len();
        let filter = match &select.selection {
            Some(selection) => {
                let filter = self.where_clause(selection)?;
                self.level()?.references.truncate(known);
                Some(filter)
            }
            None => None,
        };
        let having = match &select.having {
            Some(having) => {
                let position = self.start(having);
                let bound = self.clause_expr(having, Clause::Having)?;
                Some(self.boolean(bound, "HAVING").map_err(|error| error.at(position))?)
            }
            None => None,
        };
        let mut order = self.order_by(options.order_by, &mut targets)?;
        let has_group_by = match &select.group_by {
            ast::GroupByExpr::Expressions(exprs, modifiers) => !exprs.is_empty() || !modifiers.is_empty(),
            ast::GroupByExpr::All(_) => true,
        };
        let grouping = if has_group_by { Some(self.group_by(&select.group_by, &mut targets)?) } else { None };
        let mut distinct = false;
        let mut distinct_on = None;
        match &select.distinct {
            None | Some(Distinct::All) => {}
            Some(Distinct::Distinct) => {
                distinct = true;
                for target in &mut targets {
                    // Rows are told apart by values of a type (addTargetToSortList).
                    let unknown = std::mem::replace(&mut target.expr, Self::null(Type::TEXT));
                    target.expr = self.resolve_unknown(unknown)?;
                    self.require_equality(target.expr.ty)?;
                }
                if targets.iter().any(|target| target.junk) {
                    return Err(SqlError::new(
                        SqlState::INVALID_COLUMN_REFERENCE,
                        "for SELECT DISTINCT, ORDER BY expressions must appear in select list",
                    )
                    .at(options.order_by.first().and_then(|key| self.start(&key.expr))));
                }
            }
            Some(Distinct::On(exprs)) => {
                distinct_on = Some(self.distinct_on(exprs, &mut targets, &mut order)?)
            }
        }
        if resolve_unknowns {
            for target in &mut targets {
                if target.expr.ty.oid == Oid::UNKNOWN {
                    let expr = std::mem::replace(&mut target.expr, Self::null(Type::TEXT));
                    target.expr = self.resolve_unknown(expr)?;
                }
            }
        }
        Ok(Parts { targets, filter, having, order, grouping, distinct_on, distinct })
    }

    pub(crate) fn where_clause(&mut self, selection: &Expr) -> Result<BoundExpr> {
        let position = self.start(selection);
        let bound = self.clause_expr(selection, Clause::Where)?;
        self.boolean(bound, "WHERE").map_err(|error| error.at(position))
    }

    /// The SELECT list or RETURNING, wildcards expanded.
    pub(crate) fn select_list(&mut self, items: &[SelectItem], clause: Clause) -> Result<Vec<Target>> {
        let mut targets = Vec::with_capacity(items.len());
        for item in items {
            match item {
                item if is_no_column(item) => {}
                SelectItem::UnnamedExpr(expr) => match (starred(expr), unnest(expr)) {
                    // `(relation.*)`: the parentheses say nothing.
                    (None, Expr::QualifiedWildcard(name, _)) => targets.extend(self.expand_relation(name)?),
                    (None, _) => targets.push(self.target(expr, None, clause)?),
                    (Some(row), _) => {
                        let record = self.clause_expr(&row, clause)?;
                        let fields = self.all_fields(record, first_span(expr))?;
                        targets.extend(fields.into_iter().map(|(name, expr)| Target::of_value(expr, name)));
                    }
                },
                SelectItem::ExprWithAlias { expr, alias } => {
                    targets.push(self.target(expr, Some(alias), clause)?)
                }
                SelectItem::Wildcard(options) => {
                    refuse_wildcard_options(options)?;
                    targets.extend(self.expand_star(item_span(item))?);
                }
                SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), options) => {
                    refuse_wildcard_options(options)?;
                    targets.extend(self.expand_relation(name)?);
                }
                SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::Expr(_), _) => {
                    return Err(SqlError::unsupported("a star behind an expression"));
                }
                SelectItem::ExprWithAliases { .. } => {
                    return Err(SqlError::unsupported("several aliases for one expression"));
                }
            }
        }
        check_targets(targets.len())?;
        Ok(targets)
    }

    fn target(&mut self, expr: &Expr, alias: Option<&Ident>, clause: Clause) -> Result<Target> {
        // A plain column keeps its table column, for RowDescription.
        let source = match unnest(expr) {
            Expr::Identifier(ident) => Some(std::slice::from_ref(ident)),
            Expr::CompoundIdentifier(parts) => Some(&parts[..]),
            _ => None,
        };
        let name = alias.map_or_else(|| figure_column_name(expr), ident_name);
        Ok(match source {
            Some(parts) => {
                let outer = std::mem::replace(&mut self.level()?.clause, clause);
                let found = self.named_value(parts);
                self.level()?.clause = outer;
                Target::of_column(found?, name)
            }
            None => Target::of_value(self.clause_expr(expr, clause)?, name),
        })
    }

    /// `*`.
    pub(crate) fn expand_star(&mut self, span: Span) -> Result<Vec<Target>> {
        let place = self.levels.len() - 1;
        let relations: Vec<usize> = self.levels[place]
            .relations
            .iter()
            .enumerate()
            .filter(|(_, relation)| relation.unqualified)
            .map(|(i, _)| i)
            .collect();
        if self.levels[place].relations.is_empty() {
            return Err(SqlError::new(
                SqlState::SYNTAX_ERROR,
                "SELECT * with no tables specified is not valid",
            )
            .at(self.position(span)));
        }
        let mut targets = Vec::new();
        for relation in relations {
            targets.extend(self.relation_targets(place, relation, span));
        }
        Ok(targets)
    }

    fn relation_targets(&mut self, place: usize, relation: usize, span: Span) -> Vec<Target> {
        let columns: Vec<(usize, String)> = self.levels[place].relations[relation]
            .columns
            .iter()
            .enumerate()
            .filter(|(_, column)| !column.hidden)
            .map(|(i, column)| (i, column.name.clone()))
            .collect();
        columns
            .into_iter()
            .map(|(column, name)| Target::of_column(self.reference(place, relation, column, span), name))
            .collect()
    }

    /// `relation.*`, `record_variable.*`, `column.*`.
    fn expand_relation(&mut self, name: &ObjectName) -> Result<Vec<Target>> {
        let span = object_name_span(name);
        let parts = object_name_parts(name)?;
        let (schema, relation) = match &parts[..] {
            [relation] => (None, relation),
            [schema, relation] | [_, schema, relation] => (Some(schema.as_str()), relation),
            _ => {
                return Err(SqlError::new(
                    SqlState::SYNTAX_ERROR,
                    format!("improper qualified name (too many dotted names): {}", parts.join(".")),
                ));
            }
        };
        if let Some((place, relation)) = self.find_relation(schema, relation, span)? {
            return Ok(self.relation_targets(place, relation, span));
        }
        let names: Vec<&str> = parts.iter().map(String::as_str).collect();
        if let Some(fields) = self.variable_fields(&names)? {
            return Ok(fields.into_iter().map(|(name, expr)| Target::of_value(expr, name)).collect());
        }
        Err(self.missing_relation(relation, self.position(span)))
    }

    /// ORDER BY: an output name, an ordinal, or an expression over the input.
    fn order_by(&mut self, keys: &[OrderByExpr], targets: &mut Vec<Target>) -> Result<Vec<Order>> {
        let mut order: Vec<Order> = Vec::with_capacity(keys.len());
        for OrderByExpr { expr, options, with_fill } in keys {
            if with_fill.is_some() {
                return Err(SqlError::unsupported("WITH FILL"));
            }
            let position = self.start(expr);
            let target = self.sort_target(expr, targets, Clause::OrderBy)?;
            let unknown = std::mem::replace(&mut targets[target].expr, Self::null(Type::TEXT));
            targets[target].expr = self.resolve_unknown(unknown)?;
            self.require_ordering(targets[target].expr.ty).map_err(|error| error.at(position))?;
            // A second key on the same value never decides.
            if order.iter().any(|known| known.target == target) {
                continue;
            }
            let descending = options.asc == Some(false);
            order.push(Order { target, descending, nulls_first: options.nulls_first.unwrap_or(descending) });
        }
        Ok(order)
    }

    /// Finds or adds the target an ORDER BY or DISTINCT ON entry means (findTargetlistEntrySQL92).
    fn sort_target(&mut self, expr: &Expr, targets: &mut Vec<Target>, clause: Clause) -> Result<usize> {
        let position = self.start(expr);
        let found = match unnest(expr) {
            Expr::Identifier(ident) => output_target(targets, &ident_name(ident), clause.describe())
                .map_err(|error| error.at(position))?,
            other => {
                self.ordinal(other, targets.iter().filter(|target| !target.junk).count(), clause.describe())?
            }
        };
        if let Some(found) = found {
            return Ok(found);
        }
        let bound = self.clause_expr(expr, clause)?;
        if let Some(known) = self.known_set(&bound, targets) {
            return Ok(known);
        }
        if let Some(known) = targets.iter().position(|target| same_expr(&target.expr, &bound)) {
            return Ok(known);
        }
        targets.push(Target { expr: bound, name: String::new(), source: None, junk: true });
        Ok(targets.len() - 1)
    }

    /// The target that is the set which has just been gathered for an expression, written once more: there is
    /// one of it then.
    fn known_set(&mut self, bound: &BoundExpr, targets: &[Target]) -> Option<usize> {
        let place_of = |expr: &BoundExpr| match expr.kind {
            ExprKind::Column { depth: 0, index } if index >= SET_BASE => Some(usize::from(index - SET_BASE)),
            _ => None,
        };
        let own = place_of(bound)?;
        let sets = &mut self.levels.last_mut()?.sets;
        let (call, _) = sets.last().filter(|_| own + 1 == sets.len())?;
        let is_it = |target: &Target| {
            place_of(&target.expr).is_some_and(|other| other != own && sets[other].0 == *call)
        };
        let known = targets.iter().position(is_it)?;
        sets.pop();
        Some(known)
    }

    /// DISTINCT ON: its expressions are the first sort keys, in any order among themselves.
    fn distinct_on(
        &mut self,
        exprs: &[Expr],
        targets: &mut Vec<Target>,
        order: &mut Vec<Order>,
    ) -> Result<Vec<usize>> {
        let mut on: Vec<usize> = Vec::with_capacity(exprs.len());
        let mut places = Vec::with_capacity(exprs.len());
        for expr in exprs {
            let target = self.sort_target(expr, targets, Clause::DistinctOn)?;
            let unknown = std::mem::replace(&mut targets[target].expr, Self::null(Type::TEXT));
            targets[target].expr = self.resolve_unknown(unknown)?;
            if !on.contains(&target) {
                on.push(target);
                places.push(self.start(expr));
            }
        }
        let mismatch = |position| {
            SqlError::new(
                SqlState::INVALID_COLUMN_REFERENCE,
                "SELECT DISTINCT ON expressions must match initial ORDER BY expressions",
            )
            .at(position)
        };
        let leading = order.iter().take_while(|key| on.contains(&key.target)).count();
        if leading < order.len() && leading < on.len() {
            // The one that is sorted by too late, else the first that is not sorted by at all.
            let (first, rest) = order.split_at(leading);
            let late = rest.iter().find_map(|key| on.iter().position(|target| *target == key.target));
            let missing = || on.iter().position(|target| !first.iter().any(|key| key.target == *target));
            return Err(mismatch(late.or_else(missing).and_then(|place| places[place])));
        }
        for &target in &on {
            if !order.iter().any(|key| key.target == target) {
                self.require_ordering(targets[target].expr.ty)?;
                order.push(Order { target, descending: false, nulls_first: false });
            }
        }
        Ok(on)
    }

    /// Stacks the operators.
    fn assemble(
        &mut self,
        rel: Rel,
        mut parts: Parts,
        mut level: Level,
        options: Options<'_>,
        locked: bool,
    ) -> Result<BoundQuery> {
        let filter = parts.filter.take().map(|filter| self.by_keys(filter)).transpose()?;
        let filter = filter.map(|filter| simplified_over(filter, &widths(&rel)));
        let mut rel = filtered(with_comparisons(rel, filter.as_ref()), filter);
        let mut windows = std::mem::take(&mut level.windows);
        let mut sets = std::mem::take(&mut level.sets);
        let grouped = parts.grouping.is_some()
            || parts.having.is_some()
            || !level.aggregates.is_empty()
            || !level.groupings.is_empty();
        // HAVING alone makes one group of whatever there is: nothing need be read for it.
        let degenerate =
            grouped && parts.grouping.is_none() && level.aggregates.is_empty() && level.groupings.is_empty();
        if degenerate {
            rel = Rel::Unit;
        }
        if grouped {
            (rel, sets) = self.group_rows(rel, &mut parts, &mut level, &mut windows, sets)?;
        }
        rel = windowed(rel, windows, &mut parts.targets, &mut sets);
        let columns: Vec<OutputColumn> = parts
            .targets
            .iter()
            .filter(|target| !target.junk)
            .map(|target| OutputColumn {
                name: target.name.clone(),
                ty: target.expr.ty,
                source: target.source,
            })
            .collect();
        let junk = parts.targets.iter().any(|target| target.junk);
        let mut exprs: Vec<BoundExpr> = parts.targets.into_iter().map(|target| target.expr).collect();
        let types: Vec<Type> = exprs.iter().map(|expr| expr.ty).collect();
        let keys: Vec<usize> = parts.order.iter().map(|key| key.target).collect();
        let distinct = parts.distinct || parts.distinct_on.is_some();
        let postponed =
            if distinct || !sets.is_empty() { None } else { postpone(&mut exprs, columns.len(), &keys) };
        rel = projected(rel, exprs, sets);
        if parts.distinct {
            rel = Rel::Distinct { input: Box::new(rel), on: None };
        }
        rel = sorted(rel, &parts.order, &types);
        if let Some(on) = parts.distinct_on {
            let on = on.into_iter().map(|target| BoundExpr::column(target, types[target])).collect();
            rel = Rel::Distinct { input: Box::new(rel), on: Some(on) };
        }
        if locked {
            if options.with_ties && options.locks.iter().any(skips_locked) {
                return Err(SqlError::new(
                    SqlState::FEATURE_NOT_SUPPORTED,
                    "SKIP LOCKED and WITH TIES options cannot be used together",
                ));
            }
            rel = Rel::Lock { input: Box::new(rel) };
        }
        rel = self.limit(rel, options, level.relations)?;
        if let Some(exprs) = postponed {
            project_behind(&mut rel, exprs);
        } else if junk {
            // Junk follows the output columns: sorting added it last.
            let exprs =
                columns.iter().enumerate().map(|(i, column)| BoundExpr::column(i, column.ty)).collect();
            rel = Rel::Project { input: Box::new(rel), exprs };
        }
        Ok(BoundQuery { rel, columns })
    }

    /// The groups of rows, and what is left of the calls that return sets: those in what is grouped by
    /// are answered below. All that is asked of the groups reads their columns from now on.
    fn group_rows(
        &self,
        rel: Rel,
        parts: &mut Parts,
        level: &mut Level,
        windows: &mut [WindowCall],
        mut sets: Vec<(SetCall, Type)>,
    ) -> Result<(Rel, Vec<(SetCall, Type)>)> {
        let mut grouping = match parts.grouping.take() {
            Some(grouping) => grouping,
            None => Grouping { sets: vec![Vec::new()], ..Grouping::default() },
        };
        self.add_dependent_columns(level, &mut grouping);
        let rel = filtered(rel, self.sink_having(&mut parts.having, &grouping));
        for mut direct in std::mem::take(&mut level.direct_arguments) {
            self.regroup(&mut direct, &grouping, level).map_err(|error| {
                error.with_detail(
                    "Direct arguments of an ordered-set aggregate must use only grouped columns.",
                )
            })?;
        }
        let below = grouping.has_sets().then(|| {
            let places = share_sets(&mut sets);
            let targets = parts.targets.iter_mut().map(|target| &mut target.expr);
            let groups = grouping.exprs.iter_mut().chain(level.groupings.iter_mut().flatten());
            targets.chain(groups).for_each(|expr| place_sets(expr, &places));
            sets.clone()
        });
        for target in &mut parts.targets {
            self.regroup(&mut target.expr, &grouping, level)?;
        }
        if let Some(having) = &mut parts.having {
            self.regroup(having, &grouping, level)?;
        }
        for call in windows.iter_mut() {
            for expr in window_exprs(call) {
                self.regroup(expr, &grouping, level)?;
            }
        }
        let sets = self.regroup_sets(sets, &mut parts.targets, &grouping, level)?;
        let groupings = self.grouping_bits(level, &grouping)?;
        let (input, group_by) = match below {
            Some(sets) => expanded_groups(rel, grouping.exprs, sets),
            None => (rel, grouping.exprs),
        };
        let rel = Rel::Aggregate {
            input: Box::new(input),
            group_by,
            sets: grouping.sets,
            aggregates: std::mem::take(&mut level.aggregates),
            groupings,
        };
        Ok((filtered(rel, parts.having.take()), sets))
    }
}

/// The rows with what calls of window functions answer; targets and sets read that behind the columns
/// of the rows.
fn windowed(rel: Rel, calls: Vec<WindowCall>, targets: &mut [Target], sets: &mut [(SetCall, Type)]) -> Rel {
    if calls.is_empty() {
        return rel;
    }
    let width = rel.width() as u16;
    for target in targets {
        replace_placeholders(&mut target.expr, WINDOW_BASE, SET_BASE, width);
    }
    for (call, _) in sets {
        for expr in call.args_mut() {
            replace_placeholders(expr, WINDOW_BASE, SET_BASE, width);
        }
    }
    Rel::Window { input: Box::new(rel), calls }
}

/// The rows in an order of their columns, whose types are these.
fn sorted(rel: Rel, order: &[Order], types: &[Type]) -> Rel {
    if order.is_empty() {
        return rel;
    }
    let keys = order
        .iter()
        .map(|key| SortKey {
            expr: BoundExpr::column(key.target, types[key.target]),
            descending: key.descending,
            nulls_first: key.nulls_first,
        })
        .collect();
    Rel::Sort { input: Box::new(rel), keys }
}

pub(crate) fn filtered(rel: Rel, predicate: Option<BoundExpr>) -> Rel {
    match predicate {
        Some(predicate) => Rel::Filter { input: Box::new(rel), predicate },
        None => rel,
    }
}

fn window_exprs(call: &mut WindowCall) -> impl Iterator<Item = &mut BoundExpr> {
    call.args
        .iter_mut()
        .chain(&mut call.partition_by)
        .chain(call.order_by.iter_mut().map(|key| &mut key.expr))
        .chain(&mut call.filter)
}

/// Every field of a SELECT that belongs to another dialect.
fn refuse_foreign_clauses(select: &Select) -> Result<()> {
    let Select {
        select_token: _,
        optimizer_hints: _,
        distinct: _,
        select_modifiers,
        top,
        top_before_distinct: _,
        projection: _,
        exclude,
        into: _,
        from: _,
        lateral_views,
        prewhere,
        selection: _,
        connect_by,
        group_by: _,
        cluster_by,
        distribute_by,
        sort_by,
        having: _,
        named_window: _,
        qualify,
        window_before_qualify: _,
        value_table_mode,
        flavor,
    } = select;
    let foreign = select_modifiers.is_some()
        || top.is_some()
        || exclude.is_some()
        || !lateral_views.is_empty()
        || prewhere.is_some()
        || !connect_by.is_empty()
        || !cluster_by.is_empty()
        || !distribute_by.is_empty()
        || !sort_by.is_empty()
        || qualify.is_some()
        || value_table_mode.is_some()
        || !matches!(flavor, SelectFlavor::Standard);
    if foreign {
        return Err(SqlError::unsupported("a SELECT clause of another dialect"));
    }
    Ok(())
}

fn refuse_wildcard_options(options: &WildcardAdditionalOptions) -> Result<()> {
    let WildcardAdditionalOptions {
        wildcard_token: _,
        opt_ilike,
        opt_exclude,
        opt_except,
        opt_replace,
        opt_rename,
        opt_alias,
    } = options;
    if opt_ilike.is_some()
        || opt_exclude.is_some()
        || opt_except.is_some()
        || opt_replace.is_some()
        || opt_rename.is_some()
        || opt_alias.is_some()
    {
        return Err(SqlError::unsupported("options of a * in a SELECT list"));
    }
    Ok(())
}
