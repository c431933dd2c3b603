//! The queries of views as PostgreSQL shows them (get_query_def): one clause a line, every column with
//! the name of its relation, every type said. A query with a part that is not known here is shown as it
//! was written.

use archipel_sql::catalog::{Table, View};
use archipel_sql::parser::is_no_column;
use rustc_hash::FxHashMap;
use sqlparser::ast::{
    Distinct, OrderByExpr, Query, Select, SelectItem, SelectItemQualifiedWildcardKind, SetExpr, SetOperator,
    With,
};

use super::*;
use crate::bind::name::{figure_column_name, schema_and_name};
use crate::bind::query::set_operation::{Options, options, set_quantifier};
use crate::bind::scope::AGGREGATE_BASE;

/// How much further in a query's clauses, joined tables and listed items stand.
pub(super) const CLAUSE: i32 = 8;
pub(super) const ITEM: i32 = 4;

/// A view's query as PostgreSQL shows it to a session with this search path; `None` for one that is
/// shown as it was written.
pub fn deparse_view(
    table: &Table,
    catalog: &Catalog,
    search_path: &[String],
    context: &FunctionContext<'_>,
    pretty: bool,
) -> Option<String> {
    let view = table.view.as_ref()?;
    let query = archipel_sql::parser::parse_query(&view.query).ok()?;
    let mut env = environment(view, catalog, context);
    let binder = Binder::new(&mut env);
    let new = Deparser::new(binder, Clause::Select, catalog, search_path);
    let mut shower = Deparser { pretty, names_relations: true, ..new };
    let names: Vec<String> = table.columns.iter().map(|column| column.name.clone()).collect();
    let mut page = Page::default();
    if shower.query(&query, Some(&names), &mut page).is_some() {
        return Some(page.text + ";");
    }
    let own = Binder::new(&mut environment(view, catalog, context)).query(&query, true).ok()?.columns;
    if own.iter().map(|column| &column.name).eq(&names) {
        return None;
    }
    // Written, it does not say what its columns are called.
    let written = view.query_text(catalog, search_path).ok()?;
    let quoting = context.style().quoting;
    let names: Vec<String> = names.iter().map(|name| quoting.name(name)).collect();
    Some(format!(" SELECT * FROM ({written}) {}({});", quoting.name(&table.name), names.join(", ")))
}

/// What the query of a view is bound in.
fn environment<'a>(view: &'a View, catalog: &'a Catalog, context: &'a FunctionContext<'a>) -> BindEnv<'a> {
    let mut env = BindEnv::new(catalog, &view.search_path, context);
    env.references = &view.references;
    env.params_fixed = true;
    env.is_settled = true;
    env
}

/// Text under construction, and how far in its next line begins.
#[derive(Default)]
pub(super) struct Page {
    pub(super) text: String,
    pub(super) indent: i32,
}

impl Page {
    /// Begins a line with a word (appendContextKeyword).
    pub(super) fn line(&mut self, word: &str, before: i32, after: i32, more: i32) {
        self.indent += before;
        self.text.truncate(self.text.trim_end_matches(' ').len());
        self.text.push('\n');
        let blanks = self.indent.max(0) + more;
        self.text.extend(std::iter::repeat_n(' ', blanks as usize));
        self.text.push_str(word);
        self.indent = (self.indent + after).max(0);
    }

    /// A line of the query that is being written.
    pub(super) fn clause(&mut self, word: &str, more: i32) {
        self.line(word, -CLAUSE, CLAUSE, more);
    }

    /// Appends a text; behind one that begins a line no blanks stay.
    pub(super) fn push(&mut self, text: &str) {
        if text.starts_with('\n') {
            self.text.truncate(self.text.trim_end_matches(' ').len());
        }
        self.text.push_str(text);
    }
}

/// What the columns of a set operation are of, by where it stands.
type SetTypes = FxHashMap<*const SetExpr, Vec<Type>>;

/// A WITH whose queries are in sight.
#[derive(Clone, Copy)]
pub(super) struct WithClause<'q> {
    pub(super) with: &'q With,
    /// How many others there are in sight.
    pub(super) before: usize,
}

/// A result column: what it is, and what it would be called by itself.
pub(super) struct Shown {
    text: String,
    /// The name of a plain column.
    column: Option<String>,
    name: String,
    /// Whether it takes parentheses as a key of GROUP BY and ORDER BY.
    composed: bool,
}

impl Deparser<'_, '_> {
    pub(super) fn query(&mut self, query: &Query, names: Option<&[String]>, page: &mut Page) -> Option<()> {
        let indent = page.indent;
        let with = query.with.as_ref();
        self.among_ctes(with, |shower, before| {
            shower.body(query, with.map(|with| WithClause { with, before }), names, page)
        })?;
        page.indent = indent;
        Some(())
    }

    fn body(
        &mut self,
        query: &Query,
        with: Option<WithClause<'_>>,
        names: Option<&[String]>,
        page: &mut Page,
    ) -> Option<()> {
        let options = options(query).ok()?;
        match query.body.as_ref() {
            SetExpr::Select(select) => self.select(select, &options, with, names, page),
            SetExpr::SetOperation { .. } => {
                if !options.locks.is_empty() {
                    return None;
                }
                self.with_clause(with, page)?;
                let mut types = SetTypes::default();
                self.set_types(query.body.as_ref(), &mut types)?;
                let outputs = self.set_operation((query.body.as_ref(), None), names, &types, page)?;
                self.order_by_numbers(options.order_by, &outputs, page)?;
                self.limits(&options, page)
            }
            SetExpr::Values(_) if options.locks.is_empty() => {
                self.with_clause(with, page)?;
                let outputs = self.values_query(query.body.as_ref(), names, page)?;
                self.order_by_values(options.order_by, &outputs, page)?;
                self.limits(&options, page)
            }
            _ => None,
        }
    }

    /// The expression that a query is of which has no clauses.
    pub(super) fn only_target(&mut self, query: &Query) -> Option<String> {
        let SetExpr::Select(select) = query.body.as_ref() else { return None };
        if query.with.is_some() {
            return None;
        }
        self.over(&[], |shower| match &shower.targets(select)?[..] {
            [only] => Some(only.text.clone()),
            _ => None,
        })
    }

    /// The first result column of a SELECT over one table that is in sight: its columns are called by their names
    /// alone.
    pub(super) fn first_target(&mut self, select: &Select) -> Option<String> {
        let first = self.targets(select)?.into_iter().next()?;
        Some(first.column.map_or(first.text, |column| self.identifier(&column)))
    }

    /// What the columns of the set operations in a query are of, each after those within it.
    fn set_types(&mut self, body: &SetExpr, found: &mut SetTypes) -> Option<Vec<Type>> {
        let SetExpr::SetOperation { left, right, .. } = body else {
            let operand = self.binder.set_operand(body).ok()?;
            return Some(operand.columns.iter().map(|column| column.ty).collect());
        };
        let left = self.set_types(unwrapped(left), found)?;
        let right = self.set_types(unwrapped(right), found)?;
        let pairs = left.iter().zip(&right);
        let common = pairs.map(|(left, right)| self.binder.common_type(&[*left, *right], "UNION").ok());
        let common = common.collect::<Option<Vec<Type>>>()?;
        found.insert(std::ptr::from_ref(body), common.clone());
        Some(common)
    }

    /// A set operation, written a query a line, beside what unknown literals of its operands become; the
    /// names that its columns have by themselves, by which it is sorted, whatever the view calls them.
    fn set_operation(
        &mut self,
        (body, literals): (&SetExpr, Option<&[Type]>),
        names: Option<&[String]>,
        types: &SetTypes,
        page: &mut Page,
    ) -> Option<Vec<String>> {
        let SetExpr::SetOperation { left, op, set_quantifier: quantifier, right } = body else {
            return self.set_operand(body, literals, names, page);
        };
        let own = types.get(&std::ptr::from_ref(body)).map(Vec::as_slice);
        let all = set_quantifier(*quantifier).ok()?;
        let same = |inner: &SetExpr| match inner {
            SetExpr::SetOperation { op: own, set_quantifier: quantifier, .. } => {
                own == op && set_quantifier(*quantifier).ok() == Some(all)
            }
            _ => true,
        };
        let left = unwrapped(left);
        let deeper = if same(left) { 0 } else { CLAUSE };
        if deeper > 0 {
            page.push("(");
            page.line("", deeper, 0, 0);
        }
        let outputs = self.set_operation((left, own), names, types, page)?;
        page.line(if deeper > 0 { ") " } else { "" }, -deeper, 0, 0);
        page.push(match op {
            SetOperator::Union => "UNION ",
            SetOperator::Intersect => "INTERSECT ",
            SetOperator::Except | SetOperator::Minus => "EXCEPT ",
        });
        if all {
            page.push("ALL ");
        }
        let right = unwrapped(right);
        let nested = matches!(right, SetExpr::SetOperation { .. });
        let deeper = if nested { CLAUSE } else { 0 };
        if nested {
            page.push("(");
        }
        page.line("", deeper, 0, 0);
        // The names of the result are those of the first query.
        let visible = std::mem::replace(&mut self.columns_visible, false);
        let shown = self.set_operation((right, own), names, types, page);
        self.columns_visible = visible;
        shown?;
        page.indent -= deeper;
        if nested {
            page.line(")", 0, 0, 0);
        }
        Some(outputs)
    }

    fn set_operand(
        &mut self,
        body: &SetExpr,
        literals: Option<&[Type]>,
        names: Option<&[String]>,
        page: &mut Page,
    ) -> Option<Vec<String>> {
        let indent = page.indent;
        let columns = self.binder.set_operand(body).ok()?.columns;
        self.literals = literals.map(<[Type]>::to_vec);
        match body {
            SetExpr::Select(select) => self.select(select, &Options::default(), None, names, page)?,
            SetExpr::Values(_) => {
                self.values_query(body, names, page)?;
            }
            SetExpr::Query(query) => {
                page.push("(");
                self.query(query, names, page)?;
                page.push(")");
            }
            _ => return None,
        }
        page.indent = indent;
        Some(columns.into_iter().map(|column| column.name).collect())
    }

    fn select(
        &mut self,
        select: &Select,
        options: &Options<'_>,
        with: Option<WithClause<'_>>,
        names: Option<&[String]>,
        page: &mut Page,
    ) -> Option<()> {
        if select.into.is_some() {
            return None;
        }
        self.over(&select.from, |shower| {
            shower.with_clause(with, page)?;
            shower.clauses(select, options, names, page)?;
            shower.locks(options.locks, &select.from, page)
        })
    }

    fn clauses(
        &mut self,
        select: &Select,
        options: &Options<'_>,
        names: Option<&[String]>,
        page: &mut Page,
    ) -> Option<()> {
        page.indent += CLAUSE;
        self.indent = page.indent as usize;
        page.push(" SELECT");
        let targets = self.targets(select)?;
        let mut sorted = Vec::with_capacity(options.order_by.len());
        for key in options.order_by {
            sorted.push(self.key(&key.expr, &targets, Clause::OrderBy)?);
        }
        match &select.distinct {
            None | Some(Distinct::All) => {}
            Some(Distinct::Distinct) => page.push(" DISTINCT"),
            Some(Distinct::On(exprs)) => {
                let keys = self.distinct_keys(exprs, &sorted, &targets)?;
                page.push(&format!(" DISTINCT ON ({})", keys.join(", ")));
            }
        }
        for (place, target) in targets.iter().enumerate() {
            match place {
                0 => page.push(" "),
                _ => {
                    page.push(",");
                    if !target.text.starts_with('\n') {
                        page.clause("", ITEM);
                    }
                }
            }
            page.push(&target.text);
            let name = names.and_then(|names| names.get(place)).unwrap_or(&target.name);
            let own = match &target.column {
                Some(column) => Some(column.as_str()),
                None => (!self.columns_visible).then_some("?column?"),
            };
            if own != Some(name.as_str()) {
                page.push(&format!(" AS {}", self.identifier(name)));
            }
        }
        for (place, item) in select.from.iter().enumerate() {
            match place {
                0 => page.clause(" FROM ", 2),
                _ => {
                    page.push(",");
                    page.clause("", ITEM);
                }
            }
            self.joined_item(item, page)?;
        }
        if let Some(condition) = &select.selection {
            page.clause(" WHERE ", 1);
            let text = self.condition(condition, Clause::Where)?;
            page.push(&text);
        }
        self.group_by(&select.group_by, &targets, page)?;
        if let Some(condition) = &select.having {
            page.clause(" HAVING ", 0);
            let text = self.condition(condition, Clause::Having)?;
            page.push(&text);
        }
        self.window_clause(&select.named_window, page)?;
        for (place, (key, text)) in options.order_by.iter().zip(&sorted).enumerate() {
            match place {
                0 => page.clause(" ORDER BY ", 1),
                _ => page.push(", "),
            }
            page.push(text);
            page.push(direction(key)?);
        }
        self.limits(options, page)
    }

    fn targets(&mut self, select: &Select) -> Option<Vec<Shown>> {
        self.clause = Clause::Select;
        self.binder.named_windows(&select.named_window).ok()?;
        let literals = self.literals.take().unwrap_or_default();
        let mut targets: Vec<Shown> = Vec::new();
        for item in &select.projection {
            let literal = literals.get(targets.len()).copied().unwrap_or(Type::TEXT);
            match item {
                item if is_no_column(item) => {}
                SelectItem::UnnamedExpr(expr) => {
                    targets.push(self.target(expr, figure_column_name(expr), literal)?);
                }
                SelectItem::ExprWithAlias { expr, alias } => {
                    targets.push(self.target(expr, ident_name(alias), literal)?);
                }
                SelectItem::Wildcard(_) => {
                    let relations = self.binder.levels.last()?.relations.iter();
                    let columns: Vec<(String, BoundExpr)> = relations
                        .filter(|relation| relation.unqualified)
                        .flat_map(|relation| &relation.columns)
                        .filter(|column| !column.hidden)
                        .map(|column| (column.name.clone(), column.expr.clone()))
                        .collect();
                    for (name, bound) in columns {
                        targets.push(self.column_target(name, bound)?);
                    }
                }
                SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), _) => {
                    let (None, name) = schema_and_name(name).ok()? else { return None };
                    let relations = &self.binder.levels.last()?.relations;
                    let mut named = relations.iter().filter(|relation| relation.qualified);
                    let relation = named.find(|relation| relation.name.as_ref() == Some(&name))?;
                    let shown = relation.columns.iter().filter(|column| !column.hidden);
                    let columns: Vec<(String, BoundExpr)> =
                        shown.map(|column| (column.name.clone(), column.expr.clone())).collect();
                    for (name, bound) in columns {
                        targets.push(self.column_target(name, bound)?);
                    }
                }
                _ => return None,
            }
        }
        Some(targets)
    }

    fn column_target(&mut self, name: String, bound: BoundExpr) -> Option<Shown> {
        let (text, (_, column)) = (self.qualified(&bound)?, self.named_now(&bound)?);
        Some(Shown { text, column: Some(column), name, composed: false })
    }

    /// `literal`: what it becomes if it is of no type yet.
    pub(super) fn target(&mut self, expr: &Expr, name: String, literal: Type) -> Option<Shown> {
        let mut bound = self.bind(expr)?;
        if bound.ty.oid == Oid::UNKNOWN {
            bound = self.binder.coerce(bound, Type::of(literal.oid), CastContext::Implicit).ok()??;
        }
        if let Some((relation, column)) = self.system_column(unnest(expr)) {
            let text = format!("{}.{column}", self.identifier(&relation));
            return Some(Shown { text, column: Some(column), name, composed: false });
        }
        let is_column = matches!(bound.kind, ExprKind::Column { index, .. } if index < AGGREGATE_BASE);
        // A column behind COLLATE is an expression.
        let is_column = is_column && !matches!(unnest(expr), Expr::Collate { .. });
        if is_column && let Some((_, column)) = self.named_now(&bound) {
            if !matches!(unnest(expr), Expr::Identifier(_) | Expr::CompoundIdentifier(_)) {
                return None;
            }
            let text = self.qualified(&bound)?;
            return Some(Shown { text, column: Some(column), name, composed: false });
        }
        let piece = self.piece(expr, &bound, true)?;
        let is_call = match bound.kind {
            ExprKind::Call { .. } | ExprKind::Routine { .. } => true,
            ExprKind::Column { index, .. } => {
                index >= AGGREGATE_BASE && !(GROUPING_BASE..WINDOW_BASE).contains(&index)
            }
            _ => false,
        };
        let composed = self.pretty || piece.kind == Kind::Simple && is_call;
        Some(Shown { text: self.alone(piece), column: None, name, composed })
    }

    pub(super) fn condition(&mut self, condition: &Expr, clause: Clause) -> Option<String> {
        let outer = std::mem::replace(&mut self.clause, clause);
        let bound = self.bind(condition)?;
        let piece = self.piece(condition, &bound, false)?;
        self.clause = outer;
        Some(self.alone(piece))
    }

    /// A key of GROUP BY or ORDER BY: a result column's text, or its own.
    pub(super) fn key(&mut self, expr: &Expr, targets: &[Shown], clause: Clause) -> Option<String> {
        let found = match unnest(expr) {
            Expr::Value(value) => match &value.value {
                Value::Number(digits, _) => Some(digits.parse::<usize>().ok()?.checked_sub(1)?),
                _ => return None,
            },
            Expr::Identifier(ident) => {
                let name = ident_name(ident);
                let named = || targets.iter().position(|target| target.name == name);
                // GROUP BY looks among the columns of FROM first.
                match clause == Clause::GroupBy && self.bind(expr).is_some() {
                    true => None,
                    false => named(),
                }
            }
            _ => None,
        };
        let own;
        let target = match found {
            Some(place) => targets.get(place)?,
            None => {
                let outer = std::mem::replace(&mut self.clause, clause);
                own = self.target(expr, String::new(), Type::TEXT)?;
                self.clause = outer;
                &own
            }
        };
        Some(match (target.column.is_some(), target.composed) {
            (false, true) => format!("({})", target.text),
            _ => target.text.clone(),
        })
    }

    /// ORDER BY of a set operation: its result columns by their numbers.
    fn order_by_numbers(&self, keys: &[OrderByExpr], outputs: &[String], page: &mut Page) -> Option<()> {
        for (place, key) in keys.iter().enumerate() {
            match place {
                0 => page.clause(" ORDER BY ", 1),
                _ => page.push(", "),
            }
            let number = match unnest(&key.expr) {
                Expr::Identifier(ident) => {
                    let name = ident_name(ident);
                    outputs.iter().position(|output| *output == name)? + 1
                }
                Expr::Value(value) => match &value.value {
                    Value::Number(digits, _) => digits.parse().ok()?,
                    _ => return None,
                },
                _ => return None,
            };
            page.push(&number.to_string());
            page.push(direction(key)?);
        }
        Some(())
    }

    fn limits(&mut self, options: &Options<'_>, page: &mut Page) -> Option<()> {
        if let Some(offset) = options.offset {
            page.clause(" OFFSET ", 0);
            let text = self.count(offset)?;
            page.push(&text);
        }
        let Some(limit) = options.limit else { return Some(()) };
        if options.with_ties {
            page.clause(" FETCH FIRST ", 0);
            let text = self.count(limit)?;
            page.push(&format!("({text}) ROWS WITH TIES"));
            return Some(());
        }
        page.clause(" LIMIT ", 0);
        let is_null = matches!(unnest(limit), Expr::Value(value) if value.value == Value::Null);
        let text = if is_null { "ALL".to_owned() } else { self.count(limit)? };
        page.push(&text);
        Some(())
    }

    /// A count of rows: what it is converted from is not shown.
    fn count(&mut self, expr: &Expr) -> Option<String> {
        let outer = std::mem::replace(&mut self.clause, Clause::Limit);
        let bound = self.bind(expr)?;
        let piece = self.piece(expr, &bound, false)?;
        self.clause = outer;
        Some(match bound.ty.oid {
            Oid::INT8 => self.alone(piece),
            _ => self.within(piece, &Around::Other),
        })
    }
}

/// The query inside parentheses that say nothing.
fn unwrapped(body: &SetExpr) -> &SetExpr {
    match body {
        SetExpr::Query(query)
            if query.with.is_none()
                && query.order_by.is_none()
                && query.limit_clause.is_none()
                && query.fetch.is_none()
                && query.locks.is_empty() =>
        {
            unwrapped(&query.body)
        }
        body => body,
    }
}

pub(super) fn direction(key: &OrderByExpr) -> Option<&'static str> {
    if key.with_fill.is_some() {
        return None;
    }
    Some(match (key.options.asc == Some(false), key.options.nulls_first) {
        (true, Some(false)) => " DESC NULLS LAST",
        (true, _) => " DESC",
        (false, Some(true)) => " NULLS FIRST",
        (false, _) => "",
    })
}
