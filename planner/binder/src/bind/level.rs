//! What is in scope: relations with their columns, WITH queries, windows, level by level.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use archipel_sql::catalog::Table;
use archipel_sql::types::{Oid, Type};
use sqlparser::ast::TableAlias;
use sqlparser::tokenizer::Span;

use super::clause::Clause;
use super::visit::shift_columns;
use crate::bound::{
    AggregateCall, Alias, BoundExpr, ExprKind, Frame, OutputColumn, RelationName, SetCall, SortKey,
    WindowCall,
};

/// One entry of a FROM clause (ParseNamespaceItem).
#[derive(Clone, Debug)]
pub struct Relation {
    /// The name it is referred by: its alias or the table's name. A join without alias has none.
    pub name: Option<String>,
    /// The schema, if the name is the table's own.
    pub schema: Option<String>,
    pub columns: ScopeColumns,
    /// Whether `name.column` finds it.
    pub qualified: bool,
    /// Whether a bare column name finds its columns.
    pub unqualified: bool,
    /// The table, if it is one: for row locks, functional dependencies and whole-row values.
    pub table: Option<archipel_sql::catalog::TableRef>,
    /// What was named, where the columns tell no table.
    pub named: Option<Oid>,
    /// Whether an outer join may put NULLs in the place of its rows.
    pub nullable: bool,
    /// The type of its rows where it is a function in FROM that answers those of a named type.
    pub row_type: Option<Oid>,
    /// A function in FROM of one scalar column: its name alone means that column.
    pub scalar_function: bool,
    /// A join under a name, or what it merged: its columns are those of the tables in it.
    pub joined: bool,
    /// What the rows are made of that its columns of type `record` hold, by their places, where that
    /// is known.
    pub records: Vec<(usize, Fields)>,
}

/// Names and types of a row's fields.
pub type Fields = Vec<(String, Type)>;

/// A column of a [`Relation`].
#[derive(Clone, Debug)]
pub struct ScopeColumn {
    pub name: String,
    /// A column of the level's row, or the merged value of a FULL JOIN … USING.
    pub expr: BoundExpr,
    /// The table column behind it.
    pub source: Option<(Oid, u16)>,
    /// Left out by `*`.
    pub hidden: bool,
}

/// The columns of a [`Relation`]. Copies share them until one is changed: the names of a wide table are in
/// sight of each of its conditions.
#[derive(Clone, Debug, Default)]
pub struct ScopeColumns(Arc<Vec<ScopeColumn>>);

impl From<Vec<ScopeColumn>> for ScopeColumns {
    fn from(columns: Vec<ScopeColumn>) -> ScopeColumns {
        ScopeColumns(Arc::new(columns))
    }
}

impl Deref for ScopeColumns {
    type Target = Vec<ScopeColumn>;

    fn deref(&self) -> &Vec<ScopeColumn> {
        &self.0
    }
}

impl DerefMut for ScopeColumns {
    fn deref_mut(&mut self) -> &mut Vec<ScopeColumn> {
        Arc::make_mut(&mut self.0)
    }
}

impl IntoIterator for ScopeColumns {
    type Item = ScopeColumn;
    type IntoIter = std::vec::IntoIter<ScopeColumn>;

    fn into_iter(self) -> Self::IntoIter {
        Arc::unwrap_or_clone(self.0).into_iter()
    }
}

impl<'c> IntoIterator for &'c ScopeColumns {
    type Item = &'c ScopeColumn;
    type IntoIter = std::slice::Iter<'c, ScopeColumn>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

impl Relation {
    /// A relation whose columns start at place 0 of the row.
    pub fn new(name: Option<String>, columns: Vec<ScopeColumn>) -> Relation {
        Relation {
            name,
            schema: None,
            columns: columns.into(),
            qualified: true,
            unqualified: true,
            table: None,
            named: None,
            nullable: false,
            row_type: None,
            scalar_function: false,
            joined: false,
            records: Vec::new(),
        }
    }

    /// The name of a column of its own that is this one of the level's row, after its own name.
    pub(super) fn name_of(&self, column: &BoundExpr) -> Option<String> {
        let name = self.name.as_ref().filter(|_| !self.joined)?;
        let ExprKind::Column { index: wanted, .. } = &column.kind else { return None };
        let is_it =
            |own: &&ScopeColumn| matches!(&own.expr.kind, ExprKind::Column { index, .. } if index == wanted);
        let found = self.columns.iter().find(is_it)?;
        Some(format!("{name}.{}", found.name))
    }

    /// What the bound tree says of the name of a table under an alias.
    pub fn as_aliased(&self, alias: Option<&TableAlias>) -> Alias {
        let renamed = !alias?.columns.is_empty();
        Some(Arc::new(RelationName {
            name: self.name.clone()?,
            columns: renamed.then(|| self.column_names()),
        }))
    }

    /// The same of what has no names but those that the query gives it.
    pub fn as_named(&self) -> Alias {
        let name = self.name.clone()?;
        Some(Arc::new(RelationName { name, columns: Some(self.column_names()) }))
    }

    /// The same of the table that a statement changes.
    pub fn as_target(&self, table: &Table) -> Alias {
        let name = self.name.clone().filter(|name| self.table.is_some() && *name != table.name)?;
        Some(Arc::new(RelationName { name, columns: None }))
    }

    fn column_names(&self) -> Vec<String> {
        self.columns.iter().map(|column| column.name.clone()).collect()
    }

    /// Columns of a subquery or CTE, in order.
    pub fn of_output(name: Option<String>, columns: &[OutputColumn]) -> Relation {
        let columns = columns
            .iter()
            .enumerate()
            .map(|(i, column)| ScopeColumn {
                name: column.name.clone(),
                expr: BoundExpr::column(i, column.ty),
                source: column.source,
                hidden: false,
            })
            .collect();
        Relation::new(name, columns)
    }

    /// Whether its rows are those of several tables: the table's own, and those of its heirs or
    /// partitions.
    pub(super) fn reads_family(&self) -> bool {
        self.columns.iter().any(|column| column.hidden && column.name == TABLE_NUMBER)
    }

    /// Whether rows of tables that inherit from it are among its rows. The keys of a partitioned table
    /// are its partitions' too; those of a table with heirs are its own alone.
    pub(crate) fn reads_heirs(&self) -> bool {
        self.reads_family() && self.table.as_ref().is_some_and(|table| !table.is_partitioned())
    }

    /// Moves the relation to the right: its row follows one of `offset` columns.
    pub fn shift(&mut self, offset: usize) {
        for column in self.columns.iter_mut() {
            shift_columns(&mut column.expr, offset as u16);
        }
    }
}

/// What a level stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LevelKind {
    /// A query's FROM row: aggregates and windows may gather here.
    Query,
    /// The left row of a join, seen from its lateral right side.
    Lateral,
    /// Anything else: a VALUES list, a table's row in CHECK, an UPDATE.
    Plain,
}

/// Why an entry of FROM may not refer to what it sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// A RIGHT or FULL JOIN is between.
    Combining,
    /// The table that UPDATE or DELETE changes.
    Changed,
}

/// A column reference found while binding, for the errors about ungrouped columns.
#[derive(Clone, Debug)]
pub struct Reference {
    pub index: u16,
    pub name: String,
    pub span: Span,
    /// Whether it stands in a subquery of the level's query.
    pub nested: bool,
}

/// One nesting of scope.
#[derive(Debug)]
pub struct Level {
    pub kind: LevelKind,
    /// What is being bound against this level.
    pub(crate) clause: Clause,
    /// A lateral level that the part being bound may not look at.
    pub hidden: bool,
    /// The first level of the FROM clause that a lateral level is of: all of those are one namespace.
    pub from_start: Option<usize>,
    /// Why nothing may refer to this lateral level, if so.
    pub refusal: Option<Refusal>,
    pub relations: Vec<Relation>,
    /// Whether anything inside referred to this level.
    pub used: bool,
    /// Calls gathered for the operators above the FROM row.
    pub aggregates: Vec<AggregateCall>,
    /// Where each of them stands first.
    pub aggregate_positions: Vec<Option<u32>>,
    /// Their arguments that are evaluated once for a group: these must be grouped.
    pub direct_arguments: Vec<BoundExpr>,
    pub groupings: Vec<Vec<BoundExpr>>,
    pub windows: Vec<WindowCall>,
    /// Where each of them stands.
    pub window_positions: Vec<Option<u32>>,
    pub sets: Vec<(SetCall, Type)>,
    /// The form whose parts are bound, of which some may not be evaluated.
    pub conditional: Option<&'static str>,
    /// Above zero while an aggregate's arguments are bound.
    pub in_aggregate: u32,
    /// References outside of aggregates.
    pub references: Vec<Reference>,
    /// WINDOW clause definitions.
    pub named_windows: Vec<(String, WindowDefinition)>,
}

impl Level {
    pub fn new(kind: LevelKind, relations: Vec<Relation>) -> Level {
        Level {
            kind,
            clause: Clause::Expression,
            hidden: false,
            from_start: None,
            refusal: None,
            relations,
            used: false,
            aggregates: Vec::new(),
            aggregate_positions: Vec::new(),
            direct_arguments: Vec::new(),
            groupings: Vec::new(),
            windows: Vec::new(),
            window_positions: Vec::new(),
            sets: Vec::new(),
            conditional: None,
            in_aggregate: 0,
            references: Vec::new(),
            named_windows: Vec::new(),
        }
    }
}

/// A resolved column.
#[derive(Clone, Debug)]
pub struct FoundColumn {
    pub expr: BoundExpr,
    pub source: Option<(Oid, u16)>,
}

/// A CTE in sight.
pub(crate) struct VisibleCte {
    pub name: String,
    pub id: u32,
    pub columns: Vec<OutputColumn>,
    /// So many of them a star stands for: its own recursive term does not ask for those of SEARCH
    /// and CYCLE.
    pub shown: usize,
    /// Whether it has rows: not so for INSERT, UPDATE, DELETE without RETURNING.
    pub returns: bool,
    /// Whether who sees it is its own recursive term.
    pub itself: bool,
    /// What the rows in its columns are made of, by the columns' places.
    pub records: Vec<(usize, Fields)>,
}

/// A window: named in a WINDOW clause or written after OVER.
#[derive(Clone, Debug)]
pub struct WindowDefinition {
    pub partition_by: Vec<BoundExpr>,
    pub order_by: Vec<SortKey>,
    pub frame: Frame,
    /// Whether the frame was written out: such a window cannot be copied and refined.
    pub framed: bool,
}

/// The system column with the number of the table a row is in.
pub(crate) const TABLE_NUMBER: &str = "tableoid";

/// The columns a bare name finds, in order, moved right by `offset`.
pub(super) fn visible_columns(relations: &[Relation], offset: usize) -> Vec<ScopeColumn> {
    relations
        .iter()
        .filter(|relation| relation.unqualified)
        .flat_map(|relation| relation.columns.iter().cloned())
        .map(|mut column| {
            super::visit::shift_columns(&mut column.expr, offset as u16);
            column
        })
        .collect()
}
