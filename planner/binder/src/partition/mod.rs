//! Tables whose rows are kept by others: which tables a statement over one of them is about, and in
//! which of them a row belongs.
//!
//! - [`Family`] a table with all that have rows of it
//! - `lookup`   from a partition key to a partition
//!
//! Everything is settled when a statement is compiled; a table without heirs has no family, and costs
//! nothing.

pub(crate) mod lookup;

use std::sync::Arc;

use archipel_sql::catalog::{
    Catalog, Column, PartitionBound, PartitionKeyPart, ROW_PLACE, Table, TableRef, TypesAlong,
};
use archipel_sql::datum::Datum;
use archipel_sql::error::{Result, SqlError};
use archipel_sql::function::FunctionContext;
use archipel_sql::types::{Oid, Type};

use crate::bind::binder::Binder;
use crate::bind::reference::bind_definition;
use crate::bind::system_column::place_by_key;
use crate::bind::target::over;
use crate::bind::{BindEnv, Clause};
use crate::bound::{Alias, BoundExpr, ExprKind, Rel, Returning, SetOp};
pub use crate::bound::{Child, Family, Member, PartitionNode};
use lookup::Lookup;

impl PartialEq for Family {
    fn eq(&self, other: &Family) -> bool {
        self.root == other.root
            && self.members.len() == other.members.len()
            && self.members.iter().zip(&other.members).all(|(a, b)| a.table.oid == b.table.oid)
    }
}

/// Where a table has another's columns: they go by their names.
pub fn columns_of(root: &Table, table: &Table) -> Result<Vec<u16>> {
    let place = |name: &str| {
        let missing =
            || SqlError::internal(format!("column {name} of {} is not in {}", root.name, table.name));
        table.column_index(name).ok_or_else(missing)
    };
    root.columns.iter().map(|column| place(&column.name)).collect()
}

/// A partitioned table's key over its own row.
fn key_of(catalog: &Catalog, table: &TableRef) -> Result<Vec<BoundExpr>> {
    let parts = table.partitioned_by.iter().flat_map(|key| &key.parts);
    parts
        .map(|part| match part {
            PartitionKeyPart::Column(column) => {
                let place = usize::from(*column);
                Ok(BoundExpr::column(place, table.columns[place].ty))
            }
            PartitionKeyPart::Expression { text, .. } => {
                bind_definition(catalog, table, text, Clause::IndexExpression)
            }
        })
        .collect()
}

/// The parts of a key as a lookup by functions takes them: the hashes of those that have an operator
/// class of users'. `None` where the lookup takes the key itself.
fn hashes_of(catalog: &Catalog, table: &TableRef, key: &[BoundExpr]) -> Result<Option<Vec<BoundExpr>>> {
    let Some(by) = table.partitioned_by.as_ref().filter(|by| !by.classes.is_empty()) else {
        return Ok(None);
    };
    let names = TypesAlong { catalog, search_path: &[] };
    let context = FunctionContext { now: 0, session: &names };
    let mut env = BindEnv::new(catalog, &[], &context);
    let mut binder = Binder::new(&mut env);
    let hashes = key.iter().enumerate().map(|(place, part)| match by.class(place) {
        Some(class) => binder.hashed_part(part.clone(), class),
        None => Ok(part.clone()),
    });
    hashes.collect::<Result<_>>().map(Some)
}

/// The other way round: which of a member's columns each expression over its row reads, over the root's.
fn over_root(exprs: Vec<BoundExpr>, columns: &[u16], width: usize) -> Vec<BoundExpr> {
    let mut places: Vec<BoundExpr> =
        (0..width).map(|_| BoundExpr::constant(Datum::Null, Type::TEXT)).collect();
    for (place, column) in columns.iter().enumerate() {
        if let Some(at) = places.get_mut(usize::from(*column)) {
            *at = BoundExpr::column(place, Type::TEXT);
        }
    }
    exprs
        .into_iter()
        .map(|mut expr| {
            crate::bind::visit::visit_expr_mut(&mut expr, 0, &mut |part, nesting| {
                if let ExprKind::Column { depth, index } = &mut part.kind
                    && *depth == nesting
                    && let Some(ExprKind::Column { index: place, .. }) =
                        places.get(usize::from(*index)).map(|place| &place.kind)
                {
                    *index = *place;
                }
                true
            });
            expr
        })
        .collect()
}

impl Family {
    /// A table's family; `None` for one that has but its own rows.
    pub fn of(catalog: &Catalog, table: &TableRef) -> Result<Option<Arc<Family>>> {
        let mut family = Family { root: table.clone(), members: Vec::new(), nodes: Vec::new() };
        if table.is_partitioned() {
            family.add_node(catalog, table)?;
        } else if catalog.has_heirs(table.oid) {
            family.add_member(table)?;
            for heir in catalog.descendants(table.oid).into_iter().filter(|heir| heir.is_stored()) {
                family.add_member(&heir)?;
            }
        } else {
            return Ok(None);
        }
        Ok(Some(Arc::new(family)))
    }

    /// A partitioned table's own rows: it has none.
    pub fn without_rows(table: &TableRef) -> Family {
        Family { root: table.clone(), members: Vec::new(), nodes: Vec::new() }
    }

    fn add_member(&mut self, table: &TableRef) -> Result<Child> {
        let columns = columns_of(&self.root, table)?;
        let mut own = table.clone();
        if own.triggers.iter().any(|trigger| !trigger.row) {
            // The triggers of a statement are those of the table it names.
            Arc::make_mut(&mut own).triggers.retain(|trigger| trigger.row);
        }
        self.members.push(Member { table: own, columns });
        Ok(Child::Member(self.members.len() - 1))
    }

    fn add_node(&mut self, catalog: &Catalog, table: &TableRef) -> Result<Child> {
        let partitions = catalog.children(table.oid);
        let columns = columns_of(&self.root, table)?;
        let key = over_root(key_of(catalog, table)?, &columns, table.columns.len());
        let lookup = Lookup::of(catalog, table, &partitions)?;
        let place = self.nodes.len();
        let hashes = hashes_of(catalog, table, &key)?;
        self.nodes.push(PartitionNode { table: table.clone(), key, hashes, lookup, children: Vec::new() });
        for partition in &partitions {
            let child = if partition.is_partitioned() {
                self.add_node(catalog, partition)?
            } else {
                self.add_member(partition)?
            };
            self.nodes[place].children.push(child);
        }
        Ok(Child::Node(place))
    }

    /// A table's family with the numbers of rows (`ctid`) as one more column of the root's, and of each member's;
    /// `None` for a table that has but its own rows, and where those of a member are kept by a key.
    pub fn with_numbers(catalog: &Catalog, table: &TableRef) -> Result<Option<Arc<Family>>> {
        let Some(mut family) = Family::of(catalog, table)?.and_then(Arc::into_inner) else { return Ok(None) };
        for member in &mut family.members {
            let Some(numbered) = member.table.with_numbers() else { return Ok(None) };
            member.columns.push(member.table.columns.len() as u16);
            member.table = Arc::new(numbered);
        }
        let root = Arc::make_mut(&mut family.root);
        root.columns.push(Column { not_null: true, ..Column::new(ROW_PLACE, Type::TID) });
        root.primary_key = None;
        Ok(Some(Arc::new(family)))
    }

    /// The rows of a table's family with their places and the numbers of their tables behind the columns, where
    /// members keep them by keys of their own and so have no numbers: a UNION ALL of the members, to be read alone.
    pub fn with_places(&self, catalog: &Catalog, alias: &Alias) -> Result<Rel> {
        let arm = |member: &Member| {
            let place = place_by_key(catalog, &member.table)?;
            let numbered = if place.is_none() { member.table.with_numbers() } else { None };
            let place = place.unwrap_or_else(|| BoundExpr::column(member.table.columns.len(), Type::TID));
            let number = BoundExpr::constant(Datum::Oid(member.table.oid), Type::OID);
            let table = numbered.map_or_else(|| member.table.clone(), Arc::new);
            let input = Box::new(Rel::Scan { table, lock: None, alias: alias.clone() });
            Ok(Rel::Project { input, exprs: member.places([place, number]) })
        };
        let arms = self.members.iter().map(arm).collect::<Result<Vec<Rel>>>()?;
        Ok(union_all(arms, &self.root))
    }

    /// Whether [`Family::with_numbers`] made it.
    pub fn has_numbers(&self) -> bool {
        self.root.columns.last().is_some_and(|column| column.name == ROW_PLACE)
    }

    /// The place of a member.
    pub fn place_of(&self, table: Oid) -> Option<usize> {
        self.members.iter().position(|member| member.table.oid == table)
    }
}

/// All rows of these, one behind the other; as deep as the logarithm of how many there are.
fn union_all(mut arms: Vec<Rel>, root: &Table) -> Rel {
    let right = arms.split_off(arms.len() / 2);
    match (arms.is_empty(), right.len()) {
        (true, 0) => {
            let types = root.columns.iter().map(|column| column.ty);
            Rel::Values { rows: Vec::new(), types: types.chain([Type::TID, Type::OID]).collect() }
        }
        (true, 1) => right.into_iter().next().unwrap_or(Rel::Unit),
        _ => {
            let (left, right) = (Box::new(union_all(arms, root)), Box::new(union_all(right, root)));
            Rel::SetOp { op: SetOp::Union, all: true, left, right }
        }
    }
}

impl Member {
    /// The table that a change of its rows is about, and the one with their numbers if the statement reads them.
    pub fn changed(&self) -> (TableRef, Option<TableRef>) {
        match self.table.without_numbers() {
            Some(table) => (Arc::new(table), Some(self.table.clone())),
            None => (self.table.clone(), None),
        }
    }

    /// Whether its rows are as the root's.
    pub fn is_plain(&self, root: &Table) -> bool {
        self.table.columns.len() == root.columns.len()
            && self.columns.iter().enumerate().all(|(place, column)| place == usize::from(*column))
    }

    /// What the columns of the root's row are over the member's, and those behind them.
    pub fn places(&self, behind: impl IntoIterator<Item = BoundExpr>) -> Vec<BoundExpr> {
        let own = self.columns.iter().map(|column| {
            let place = usize::from(*column);
            BoundExpr::column(place, self.table.columns[place].ty)
        });
        own.chain(behind).collect()
    }

    /// RETURNING of the root as the member's.
    pub fn returning(&self, returning: Option<&Returning>, places: &[BoundExpr]) -> Option<Returning> {
        returning.map(|returning| Returning {
            exprs: returning.exprs.iter().map(|expr| self.over(expr, places)).collect(),
            columns: returning.columns.clone(),
        })
    }

    /// SET of the root as the member's.
    pub fn set(&self, set: &[(u16, BoundExpr)], places: &[BoundExpr]) -> Vec<(u16, BoundExpr)> {
        let own = |(column, value): &(u16, BoundExpr)| {
            (self.columns[usize::from(*column)], self.over(value, places))
        };
        set.iter().map(own).collect()
    }

    /// An expression over the root's row as one over the member's.
    pub fn over(&self, expr: &BoundExpr, places: &[BoundExpr]) -> BoundExpr {
        over(expr, places)
    }
}

/// What a row must be to lie in a partition, as far as one of the tables above says it.
#[derive(Debug)]
pub struct PartitionLevel {
    /// The key over the partition's own row.
    pub key: Vec<BoundExpr>,
    /// As [`PartitionNode::hashes`].
    pub hashes: Option<Vec<BoundExpr>>,
    /// The bounds of the partition on the way; of all that there are, if it takes the rest.
    pub lookup: Lookup,
    /// That partition, as the lookup counts it.
    pub child: usize,
}

/// What makes a row one of a partition's: nothing for a table that is none.
pub fn levels_above(catalog: &Catalog, table: &TableRef) -> Result<Vec<PartitionLevel>> {
    let mut levels = Vec::new();
    let mut below = table.clone();
    for parent in catalog.partition_ancestors(table.oid) {
        // Only what takes the rest has to know what all others take.
        let partitions = match below.bound {
            Some(PartitionBound::Default) => catalog.children(parent.oid),
            _ => vec![below.clone()],
        };
        let child = partitions.iter().position(|partition| partition.oid == below.oid);
        let child = child.ok_or_else(|| SqlError::internal("a partition that its parent does not know"))?;
        let columns = columns_of(table, &parent)?;
        let key = over_root(key_of(catalog, &parent)?, &columns, parent.columns.len());
        let (hashes, lookup) =
            (hashes_of(catalog, &parent, &key)?, Lookup::of(catalog, &parent, &partitions)?);
        levels.push(PartitionLevel { key, hashes, lookup, child });
        below = parent;
    }
    // PostgreSQL asks the outermost table first.
    levels.reverse();
    Ok(levels)
}
