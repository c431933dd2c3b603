//! The names that a plan calls its columns and relations by.

use archipel_sql::ast::ExplainOptions;
use archipel_sql::catalog::names::quote_identifier;
use archipel_sql::types::Type;
use rustc_hash::FxHashMap;

use crate::bound::{BoundChild, BoundStatement, ExprKind, Rel};
use crate::explain::width_of;
use crate::native::plan::walk::{visit_relations, visit_statement};

/// Says what a column is called, by the level it is of and its place.
pub(crate) type ColumnNames<'a> = &'a dyn Fn(u16, u16) -> String;

/// What is known of the names in a plan.
pub(crate) struct Describing {
    pub(crate) verbose: bool,
    /// Whether the statement has several relations: then columns are told with theirs.
    several: bool,
    pub(crate) names: FxHashMap<u32, Name>,
    /// What relations are called, and how often others were to be called so.
    taken: FxHashMap<String, usize>,
    /// Queries of WITH, by their ids.
    pub(crate) ctes: FxHashMap<u32, String>,
}

/// What a slot is called.
#[derive(Clone)]
pub(crate) struct Name {
    /// The relation that it is a column of.
    pub(crate) relation: Option<String>,
    pub(crate) bare: String,
    pub(crate) qualified: String,
    pub(crate) width: u32,
}

/// Which columns are told with their relations.
#[derive(Clone, Copy)]
pub(crate) enum Prefix<'s> {
    None,
    All,
    AllBut(&'s [u32]),
}

impl Name {
    /// What is in its slot, without parentheses.
    pub(crate) fn plain(&self, slot: u32, prefix: Prefix<'_>) -> &str {
        let with_relation = match prefix {
            Prefix::None => false,
            Prefix::All => true,
            Prefix::AllBut(own) => !own.contains(&slot),
        };
        if with_relation { &self.qualified } else { &self.bare }
    }
}

impl Describing {
    /// For a statement whose columns are asked for.
    pub fn of(statement: &BoundStatement, options: ExplainOptions) -> Option<Describing> {
        options.tells_columns().then(|| Describing {
            verbose: options.verbose,
            several: relations_in(statement) > 1,
            names: FxHashMap::default(),
            taken: FxHashMap::default(),
            ctes: FxHashMap::default(),
        })
    }

    /// A name for a relation that no other one in the plan has.
    pub(crate) fn unique(&mut self, name: &str) -> String {
        let mut unique = name.to_owned();
        while self.taken.contains_key(&unique) {
            let again = self.taken.entry(name.to_owned()).or_insert(0);
            *again += 1;
            unique = format!("{name}_{again}");
        }
        self.taken.insert(unique.clone(), 0);
        unique
    }

    pub(crate) fn name_columns(
        &mut self,
        slots: &[u32],
        relation: &str,
        columns: impl Iterator<Item = (String, Type)>,
    ) {
        for (slot, (column, ty)) in slots.iter().zip(columns) {
            let bare = quote_identifier(&column);
            let qualified = format!("{}.{bare}", quote_identifier(relation));
            let relation = Some(relation.to_owned());
            self.names.insert(*slot, Name { relation, bare, qualified, width: width_of(ty) });
        }
    }

    pub(crate) fn text(&self, slot: u32, prefix: Prefix<'_>) -> Option<String> {
        let name = self.names.get(&slot)?;
        let text = name.plain(slot, prefix);
        Some(if name.relation.is_some() { text.to_owned() } else { format!("({text})") })
    }

    /// How columns are told in Output.
    pub(crate) fn in_output(&self) -> Prefix<'static> {
        if self.several { Prefix::All } else { Prefix::None }
    }

    /// And in the keys and conditions of what is no scan.
    pub(crate) fn in_keys(&self) -> Prefix<'static> {
        if self.several || self.verbose { Prefix::All } else { Prefix::None }
    }
}

/// How many relations a statement names.
fn relations_in(statement: &BoundStatement) -> usize {
    let mut count = named_in(statement);
    visit_statement(statement, 0, &mut |expr, _| {
        if let ExprKind::Subquery(subquery) = &expr.kind {
            count += relations_of(&subquery.rel);
        }
    });
    count
}

/// The same of what is in no expression.
fn named_in(statement: &BoundStatement) -> usize {
    let mut count = match statement {
        BoundStatement::Query(query) => values_within(&query.rel),
        BoundStatement::Insert(_) | BoundStatement::Update(_) | BoundStatement::Delete(_) => 1,
        BoundStatement::Merge(_) => return 2,
        BoundStatement::Call(_) | BoundStatement::With { .. } => 0,
    };
    statement.for_each_child(|child, _| {
        count += match child {
            BoundChild::Expr(_) => 0,
            BoundChild::Rel(rel) => relations_of(rel),
            BoundChild::Statement(statement) => named_in(statement),
        };
    });
    count
}

/// Rows of VALUES in FROM: what they are the rows of counts as a relation besides.
fn values_within(rel: &Rel) -> usize {
    let mut count = 0;
    visit_relations(rel, &mut |part| {
        count += usize::from(matches!(part, Rel::Values { rows, .. } if rows.len() > 1));
    });
    if matches!(rel, Rel::Values { .. }) { 0 } else { count }
}

fn relations_of(rel: &Rel) -> usize {
    let mut count = 0;
    visit_relations(rel, &mut |rel| {
        count += usize::from(match rel {
            Rel::Scan { .. } | Rel::Family { .. } | Rel::Function { .. } | Rel::CteScan { .. } => true,
            // PostgreSQL counts one row of constants as a relation, too.
            Rel::Values { .. } | Rel::Unit => true,
            _ => false,
        });
    });
    count
}
