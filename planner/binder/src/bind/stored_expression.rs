//! Texts that the catalog keeps: defaults, conditions, what columns and indexes are computed from.
//! They mean the same whoever runs the statement: in the place of names stand ids
//! ([`archipel_sql::catalog::stored_name`]), which [`text_with_ids`] puts there when a definition is written;
//! what has none is PostgreSQL's own.

use std::cell::RefCell;
use std::sync::Arc;

use archipel_sql::catalog::{Catalog, TableRef, TypesAlong};
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::function::{CastContext, FunctionContext};
use archipel_sql::types::{Oid, Type};
use sqlparser::ast::Expr;

use super::binder::{BindEnv, Binder};
use super::clause::Clause;
use super::from::combine;
use super::level::{Level, LevelKind, Relation, ScopeColumn};
use super::meaning::with_ids;
use crate::bound::{BoundExpr, ExprKind};

/// Where the names in a definition are looked up that have no ids: they are PostgreSQL's own.
pub const DEFINITION_PATH: &[String] = &[];

/// What a text speaks of.
#[derive(Clone, Debug)]
pub enum About {
    Nothing,
    /// A row of a table.
    Row(TableRef),
    /// A trigger's OLD and NEW.
    OldAndNew(TableRef),
    /// A domain's VALUE, of this type.
    Value(Type),
}

impl Binder<'_, '_> {
    /// A text that the catalog keeps.
    pub(crate) fn kept(&mut self, text: &str, about: &About, clause: Clause) -> Result<BoundExpr> {
        let relations = self.names_about(about)?;
        let mut env = BindEnv::new(self.env.catalog, DEFINITION_PATH, self.env.context);
        env.shown_to = Some(self.env.display_path());
        let bound = Binder::new(&mut env).catalog_expression(text, relations, clause)?;
        self.env.session_dependent |= env.session_dependent;
        let needed = std::mem::take(&mut env.required);
        self.env.need_of(needed);
        Ok(bound)
    }

    /// As [`Self::named_by`], once for all texts of a table that come one after the other.
    fn names_about(&mut self, about: &About) -> Result<Vec<Relation>> {
        let About::Row(table) = about else { return self.named_by(about) };
        if !self.row.as_ref().is_some_and(|(known, _)| Arc::ptr_eq(known, table)) {
            self.row = Some((table.clone(), self.table_relation(table, None, None)?));
        }
        Ok(self.row.iter().map(|(_, relation)| relation.clone()).collect())
    }

    /// A text whose names are looked up on the binder's own path.
    fn text(&mut self, text: &str, about: &About, clause: Clause) -> Result<BoundExpr> {
        let relations = self.named_by(about)?;
        self.catalog_expression(text, relations, clause)
    }

    /// An expression by itself, which reads a row of these relations.
    pub(crate) fn parsed_text(
        &mut self,
        parsed: &Expr,
        relations: Vec<Relation>,
        clause: Clause,
    ) -> Result<BoundExpr> {
        self.levels.push(Level::new(LevelKind::Plain, relations));
        let bound = self.clause_expr(parsed, clause);
        self.levels.pop();
        bound
    }

    /// What the names of a kept text stand for.
    pub(super) fn named_by(&self, about: &About) -> Result<Vec<Relation>> {
        Ok(match about {
            About::Nothing => Vec::new(),
            About::Row(table) => vec![self.table_relation(table, None, None)?],
            About::OldAndNew(table) => {
                let named = |name: &str| -> Result<Relation> {
                    let mut relation = self.table_relation(table, None, None)?;
                    relation.name = Some(name.to_owned());
                    Ok(relation)
                };
                combine(vec![named("old")?], vec![named("new")?], table.columns.len())?
            }
            About::Value(ty) => {
                let value = ScopeColumn {
                    name: "value".to_owned(),
                    expr: BoundExpr::column(0, *ty),
                    source: None,
                    hidden: false,
                };
                vec![Relation::new(None, vec![value])]
            }
        })
    }
}

/// A text with its names looked up on this path.
pub fn bind_text(
    catalog: &Catalog,
    path: &[String],
    text: &str,
    about: &About,
    clause: Clause,
) -> Result<BoundExpr> {
    let names = TypesAlong { catalog, search_path: path };
    let context = FunctionContext { now: 0, session: &names };
    let mut env = BindEnv::new(catalog, path, &context);
    // What a literal is to a session is asked of nobody here: labels in arrays, local times.
    env.late_literals = true;
    Binder::new(&mut env).text(text, about, clause)
}

/// A text as a session writes it, with ids in the place of the names in it. `target` is what the whole of it is
/// assigned to, if anything.
pub fn text_with_ids(
    catalog: &Catalog,
    path: &[String],
    text: &str,
    (about, clause, target): (&About, Clause, Option<Type>),
    context: &FunctionContext<'_>,
) -> Result<String> {
    let parsed = archipel_sql::parser::parse_expression(text)?;
    let mut env = BindEnv::new(catalog, path, context);
    env.text = text;
    env.meanings = Some(RefCell::default());
    (env.params_fixed, env.is_settled) = (true, true);
    let mut binder = Binder::new(&mut env);
    let relations = binder.named_by(about)?;
    let bound = binder.parsed_text(&parsed, relations, clause)?;
    if let Some(target) = target {
        // Whoever assigns it tells what does not fit.
        let _ = binder.coerce(bound, target, CastContext::Assignment);
    }
    let meanings = env.meanings.take().map(RefCell::into_inner).unwrap_or_default();
    with_ids(text, &meanings, catalog)
}

/// What a text means on a path to a session, as it is assigned to `target` if it is that.
pub fn meaning_of_text(
    catalog: &Catalog,
    path: &[String],
    text: &str,
    (about, clause, target): (&About, Clause, Option<Type>),
    context: &FunctionContext<'_>,
) -> Result<BoundExpr> {
    let mut env = BindEnv::new(catalog, path, context);
    let mut binder = Binder::new(&mut env);
    let bound = binder.text(text, about, clause)?;
    match (target, bound.ty.oid) {
        // The others are what they are whatever they go to.
        (Some(target), Oid::UNKNOWN | Oid::RECORD) => {
            let unknown = bound.clone();
            Ok(binder.coerce(bound, target, CastContext::Assignment)?.unwrap_or(unknown))
        }
        _ => Ok(bound),
    }
}

/// As [`bind_text`], with literals read as a session reads them.
pub fn bind_text_in(
    catalog: &Catalog,
    path: &[String],
    text: &str,
    about: &About,
    clause: Clause,
    context: &FunctionContext<'_>,
) -> Result<BoundExpr> {
    let mut env = BindEnv::new(catalog, path, context);
    Binder::new(&mut env).text(text, about, clause)
}

/// Binds a text as it is written in a statement, for errors to tell places in it: a condition is boolean.
pub fn check_written(
    catalog: &Catalog,
    path: &[String],
    text: &str,
    about: &About,
    clause: Clause,
    context: &FunctionContext<'_>,
) -> Result<()> {
    let mut env = BindEnv::new(catalog, path, context);
    env.text = text;
    let mut binder = Binder::new(&mut env);
    let bound = binder.text(text, about, clause)?;
    let what = match clause {
        Clause::Check => "CHECK",
        Clause::IndexPredicate => "WHERE",
        Clause::TriggerWhen => "WHEN",
        Clause::Policy => "POLICY",
        _ => return Ok(()),
    };
    binder.boolean(bound, what).map_err(|error| error.at(Some(1))).map(drop)
}

/// Binds the condition of a COPY FROM as it is written: over the columns of a new row.
pub fn copied_condition(
    catalog: &Catalog,
    path: &[String],
    text: &str,
    table: &TableRef,
    context: &FunctionContext<'_>,
) -> Result<BoundExpr> {
    let mut env = BindEnv::new(catalog, path, context);
    env.text = text;
    // The parameters of the INSERT are the row's values.
    env.params_fixed = true;
    let mut binder = Binder::new(&mut env);
    let bound = binder.text(text, &About::Row(table.clone()), Clause::CopyWhere)?;
    let bound = binder.boolean(bound, "WHERE").map_err(|error| error.at(Some(1)))?;
    let mut read: Vec<usize> = Vec::new();
    super::visit::visit_expr(&bound, 0, &mut |part, depth| {
        if let ExprKind::Column { depth: of, index } = &part.kind
            && *of == depth
        {
            read.push(usize::from(*index));
        }
        true
    });
    read.sort_unstable();
    for place in read {
        match table.columns.get(place) {
            // It is computed from the row that is inserted.
            Some(column) if column.generated.is_some() => {
                let message = "generated columns are not supported in COPY FROM WHERE conditions";
                let detail = format!("Column \"{}\" is a generated column.", column.name);
                return Err(SqlError::new(SqlState::INVALID_COLUMN_REFERENCE, message).with_detail(detail));
            }
            Some(_) => {}
            None => return Err(SqlError::unsupported("a system column in COPY FROM … WHERE")),
        }
    }
    Ok(bound)
}

/// As [`check_written`], of a default for a value of this type; the type that it is of where it cannot be
/// assigned.
pub fn check_written_default(
    catalog: &Catalog,
    path: &[String],
    text: &str,
    target: Type,
    context: &FunctionContext<'_>,
) -> Result<Option<Type>> {
    let mut env = BindEnv::new(catalog, path, context);
    env.text = text;
    let mut binder = Binder::new(&mut env);
    let bound = binder.text(text, &About::Nothing, Clause::Default)?;
    let given = bound.declared();
    let value = binder.coerce(bound, target, CastContext::Assignment)?;
    Ok(value.is_none().then_some(given))
}

fn forget_names(expr: &mut BoundExpr) {
    super::visit::visit_expr_mut(expr, 0, &mut |part, _| {
        let is_named_type = part.ty.oid != Oid::RECORD;
        match &mut part.kind {
            // What the columns of a table are called is nothing to an expression that takes its row.
            ExprKind::Row(_, names) if is_named_type => *names = None,
            ExprKind::Domain { conditions, .. } => std::sync::Arc::make_mut(conditions).domain.clear(),
            // A walk does not go into what these make of their parts.
            ExprKind::ArrayConvert { element, .. } => forget_names(element),
            ExprKind::RowConvert { fields, .. } => fields.iter_mut().for_each(forget_names),
            _ => {}
        }
        true
    });
}

/// Whether two expressions mean the same. How a domain is named in its error depends on who asks.
pub fn mean_the_same(a: &BoundExpr, b: &BoundExpr) -> bool {
    let unnamed = |expr: &BoundExpr| {
        let mut expr = expr.clone();
        forget_names(&mut expr);
        expr
    };
    unnamed(a).is_same(&unnamed(b))
}
