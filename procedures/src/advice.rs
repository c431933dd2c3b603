//! Where tables should live, by the evidence of all deployed routines.
//!
//! - Tables that a routine reaches through the same argument go into one co-location group, and
//!   what belongs together by several routines goes into one group together.
//! - A table without a key goes to where the rows it is filled beside are, by the column that
//!   gets their argument; one whose primary key has several columns goes by the one that meets most
//!   others ([`crate::columns`]).
//! - A table that meets no other one goes by the column of its key that routes its calls, if the present one
//!   routes fewer.
//! - A small table that routines only read, by whatever key, beside tables that routines write, becomes
//!   a reference table; and a distributed one again once a routine writes it.
//!
//! - Of a table that a routine joins by other columns than the one that distributes it, it tells what
//!   would do: a reference table if it is small and rarely written, another column of its key, or an
//!   index. That is never done by itself: other calls would reach the table otherwise, or writes cost
//!   more.
//!
//! A table that somebody distributed by hand is left as it is, and links nothing. Where the
//! evidence goes, because a routine was dropped, tables stay where they are until other evidence
//! says otherwise: deploying anew often begins with a DROP, and going back would gain nothing.

use std::collections::{BTreeMap, BTreeSet};

use archipel_planner::ddl::{EvidentPlace, encoded_alike};
use archipel_planner::route::key_candidates;
use archipel_sql::catalog::names::quote_identifier;
use archipel_sql::catalog::{Catalog, DistributedBy, Distribution, Table, TableRef};
use archipel_sql::types::Oid;

use crate::columns::{
    self, arguments_on, distribution_column, group_of, is_concerned, is_keyed, is_numbered,
};
use crate::evidence::{Argument, Evidence, Reach};

/// Reference tables are for what is small: more rows than this stay distributed.
pub const REFERENCE_ROWS_MAX: u64 = 1 << 17;

/// What the advisor knows beside the catalog and the routines.
pub trait Sizes {
    /// Rows of a table, about.
    fn rows(&self, table: &Table) -> u64;
    /// Partitions of a group.
    fn partitions(&self, group: u32) -> usize;
    /// Calls of a routine so far.
    fn calls(&self, _routine: Oid) -> u64 {
        0
    }
}

/// A table is written rarely if that many calls read it for each that writes it.
const READS_PER_WRITE: u64 = 100;

/// What is proposed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Colocate,
    Reference,
    /// A reference table that routines write.
    Distribute,
    /// A table by itself, which another column routes.
    Route,
    /// A table that is joined by other columns than the one that distributes it.
    Join,
}

impl Kind {
    /// As the view shows it.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Colocate => "co-locate",
            Kind::Reference => "reference",
            Kind::Distribute => "distribute",
            Kind::Route => "route",
            Kind::Join => "join",
        }
    }
}

/// One piece of advice: what one routine shows of some tables.
#[derive(Clone, Debug)]
pub struct Advice {
    pub kind: Kind,
    /// Its place among the evidence.
    pub evidence: usize,
    pub argument: String,
    /// Tables and the columns that meet.
    pub tables: Vec<(Oid, Option<u16>)>,
    /// Why it cannot be followed, or need not.
    pub refused: Option<String>,
    /// Whether everything is as it says.
    pub applied: bool,
    /// What would do it by hand.
    pub statements: Vec<String>,
}

/// All of it.
#[derive(Debug, Default)]
pub struct Design {
    pub advice: Vec<Advice>,
    /// What follows, in one step.
    pub moves: Vec<(Oid, EvidentPlace)>,
}

/// Puts the evidence of all routines together.
pub fn design(catalog: &Catalog, evidence: &[Evidence], sizes: &dyn Sizes) -> Design {
    let mut advisor =
        Advisor { catalog, evidence, sizes, columns: BTreeMap::new(), design: Design::default() };
    advisor.columns = columns::choose(catalog, evidence, &advisor.everywhere());
    let links = advisor.links();
    advisor.settle_links(&links);
    advisor.advise_links(links);
    advisor.advise_alone();
    advisor.advise_references();
    advisor.advise_joined();
    advisor.design
}

/// Tables that one routine reaches through one argument.
struct Link {
    evidence: usize,
    argument: String,
    tables: Vec<(TableRef, u16)>,
    refused: Option<String>,
}

struct Advisor<'a> {
    catalog: &'a Catalog,
    evidence: &'a [Evidence],
    sizes: &'a dyn Sizes,
    /// For tables without a key, and those that should go by another column of their key: the column
    /// that would distribute them.
    columns: BTreeMap<Oid, u16>,
    design: Design,
}

fn label(table: &Table) -> String {
    match table.schema.as_str() {
        "public" => quote_identifier(&table.name),
        schema => format!("{}.{}", quote_identifier(schema), quote_identifier(&table.name)),
    }
}

fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

impl Advisor<'_> {
    fn table(&self, oid: Oid) -> Option<TableRef> {
        self.catalog.table_by_oid(oid).filter(|table| is_concerned(table))
    }

    /// The column that would distribute a table.
    fn column_of(&self, table: &Table) -> Option<u16> {
        self.columns.get(&table.oid).copied().or_else(|| distribution_column(table))
    }

    /// Whether a table goes by another column of its key than now, and so leaves its group for that
    /// of those it then meets.
    fn leaves(&self, table: &Table) -> bool {
        is_keyed(table)
            && table.distributed_by != DistributedBy::Request
            && self.column_of(table) != distribution_column(table)
    }

    /// The tables that routines reach through the same argument.
    fn links(&self) -> Vec<Link> {
        let mut links = Vec::new();
        for (place, evidence) in self.evidence.iter().enumerate() {
            let mut reached: BTreeMap<&Argument, BTreeMap<Oid, u16>> = BTreeMap::new();
            for reach in &evidence.reaches {
                let Some(table) = self.table(reach.table) else { continue };
                let Some(column) = self.column_of(&table) else { continue };
                for argument in arguments_on(reach, &table, column) {
                    reached.entry(argument).or_default().insert(table.oid, column);
                }
            }
            for (argument, tables) in reached {
                let tables: Vec<(TableRef, u16)> =
                    tables.into_iter().filter_map(|(oid, column)| Some((self.table(oid)?, column))).collect();
                if tables.len() > 1 && tables.iter().any(|(table, _)| is_keyed(table)) {
                    links.extend(divide(place, &argument.text, tables));
                }
            }
        }
        links
    }

    /// Makes groups of what is linked, and says who has to move.
    fn settle_links(&mut self, links: &[Link]) {
        // Which groups belong together: each by the least of its numbers.
        let mut joined: BTreeMap<u32, u32> = BTreeMap::new();
        let root = |joined: &BTreeMap<u32, u32>, mut group: u32| {
            while let Some(&next) = joined.get(&group).filter(|next| **next != group) {
                group = next;
            }
            group
        };
        for link in links.iter().filter(|link| link.refused.is_none()) {
            let staying = link.tables.iter().filter(|(table, _)| !self.leaves(table));
            let groups: Vec<u32> = staying.filter_map(|(table, _)| group_of(table)).collect();
            for pair in groups.windows(2) {
                let (one, other) = (root(&joined, pair[0]), root(&joined, pair[1]));
                joined.insert(one.max(other), one.min(other));
                joined.entry(one.min(other)).or_insert(one.min(other));
            }
        }
        let mut sets: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for group in joined.keys() {
            sets.entry(root(&joined, *group)).or_default().push(*group);
        }
        let mut into: BTreeMap<u32, u32> = BTreeMap::new();
        for (least, groups) in sets.into_iter().filter(|(_, groups)| groups.len() > 1) {
            into.extend(self.join(&groups).map(|group| (least, group)));
        }
        for link in links.iter().filter(|link| link.refused.is_none()) {
            let stays = |table: &Table| is_keyed(table) && !self.leaves(table);
            let beside = link.tables.iter().find(|(table, _)| stays(table));
            let group = beside.and_then(|(table, _)| group_of(table)).map(|group| {
                let least = root(&joined, group);
                into.get(&least).copied().unwrap_or(group)
            });
            self.take_along(link, group);
        }
    }

    /// Moves the tables of a link that go by another column of their key: to the group of the others,
    /// or the first of them to one of its own, where the next look finds it.
    fn take_along(&mut self, link: &Link, group: Option<u32>) {
        for (table, column) in &link.tables {
            if !self.leaves(table) {
                continue;
            }
            if self.design.moves.iter().any(|(oid, _)| *oid == table.oid) {
                if group.is_none() {
                    return;
                }
                continue;
            }
            let column = *column;
            let Some(group) = group else {
                self.design.moves.push((table.oid, EvidentPlace::Column(column)));
                return;
            };
            self.design.moves.push((table.oid, EvidentPlace::Group { column, group }));
        }
    }

    /// Moves what may move of several groups into one of them, and answers which.
    fn join(&mut self, groups: &[u32]) -> Option<u32> {
        let members = |group: u32| {
            let mut members: Vec<TableRef> =
                self.catalog.tables().filter(|table| group_of(table) == Some(group)).cloned().collect();
            members.sort_by_key(|table| table.oid);
            members
        };
        let may_move =
            |group: &u32| members(*group).iter().all(|table| table.distributed_by != DistributedBy::Request);
        // Where the fewest pointers have to move; one that cannot move is where the others go.
        let into = groups
            .iter()
            .filter(|group| !members(**group).iter().any(|table| is_numbered(table)))
            .max_by_key(|group| {
                let rows: u64 = members(**group).iter().map(|table| self.sizes.rows(table)).sum();
                (!may_move(group), self.sizes.partitions(**group), rows, std::cmp::Reverse(**group))
            })
            .copied();
        let into = into?;
        let leaving: Vec<u32> =
            groups.iter().copied().filter(|group| *group != into && may_move(group)).collect();
        let moved: Vec<TableRef> = leaving.into_iter().flat_map(members).collect();
        for table in moved {
            if self.leaves(&table) {
                continue;
            }
            let Some(column) = self.column_of(&table) else { continue };
            self.design.moves.push((table.oid, EvidentPlace::Group { column, group: into }));
        }
        Some(into)
    }

    fn advise_links(&mut self, links: Vec<Link>) {
        for link in links {
            let first = group_of(&link.tables[0].0);
            let applied = link.tables.iter().all(|(table, column)| {
                group_of(table) == first && distribution_column(table) == Some(*column)
            });
            let moving = |table: &Table| self.design.moves.iter().any(|(oid, _)| *oid == table.oid);
            let stays = link.tables.iter().filter(|(table, _)| !moving(table)).count();
            let refused = match &link.refused {
                _ if applied => None,
                Some(refused) => Some(refused.clone()),
                None if stays == link.tables.len() => {
                    Some("a group of theirs has tables that were distributed by hand".to_owned())
                }
                None => None,
            };
            let statements = if applied { Vec::new() } else { by_hand(&link.tables) };
            self.design.advice.push(Advice {
                kind: Kind::Colocate,
                evidence: link.evidence,
                argument: link.argument,
                tables: link.tables.iter().map(|(table, column)| (table.oid, Some(*column))).collect(),
                refused,
                applied,
                statements,
            });
        }
    }

    /// The tables that a routine has shown something of so far.
    fn advised(&self) -> BTreeSet<Oid> {
        self.design.advice.iter().flat_map(|advice| &advice.tables).map(|(oid, _)| *oid).collect()
    }

    /// Tables with a better column that meet no other table by it.
    fn advise_alone(&mut self) {
        let (linked, everywhere) = (self.advised(), self.everywhere());
        let better =
            self.columns.iter().filter(|(oid, _)| !linked.contains(oid) && !everywhere.contains(oid));
        let better: Vec<(TableRef, u16)> =
            better.filter_map(|(oid, column)| Some((self.table(*oid)?, *column))).collect();
        for (table, column) in better {
            if !is_keyed(&table) || !self.is_alone(&table) {
                continue;
            }
            let evidence = self.evidence;
            let shown = evidence.iter().enumerate().find_map(|(place, evidence)| {
                let mut reaches = evidence.reaches.iter().filter(|reach| reach.table == table.oid);
                let argument = reaches.find_map(|reach| arguments_on(reach, &table, column).next())?;
                Some((place, argument.text.clone()))
            });
            let Some((evidence, argument)) = shown else { continue };
            let by_hand = table.distributed_by == DistributedBy::Request;
            let refused = by_hand.then(|| format!("{} was distributed by hand", label(&table)));
            if refused.is_none() {
                self.design.moves.push((table.oid, EvidentPlace::Column(column)));
            }
            self.design.advice.push(Advice {
                kind: Kind::Route,
                evidence,
                argument,
                tables: vec![(table.oid, Some(column))],
                refused,
                applied: false,
                statements: vec![format!("SELECT create_distributed_table({});", named(&table, column))],
            });
        }
    }

    /// What some routine writes.
    fn written(&self) -> BTreeSet<Oid> {
        let reaches = self.evidence.iter().flat_map(|evidence| &evidence.reaches);
        reaches.filter(|reach| reach.write).map(|reach| reach.table).collect()
    }

    /// Tables that need not live beside others: small, and written by no routine.
    fn everywhere(&self) -> BTreeSet<Oid> {
        let written = self.written();
        let reaches = self.evidence.iter().flat_map(|evidence| &evidence.reaches);
        let read: BTreeSet<Oid> =
            reaches.map(|reach| reach.table).filter(|oid| !written.contains(oid)).collect();
        let small = |table: &TableRef| {
            self.is_alone(table)
                && table.distributed_by != DistributedBy::Request
                && self.sizes.rows(table) <= REFERENCE_ROWS_MAX
        };
        read.into_iter().filter(|oid| self.table(*oid).as_ref().is_some_and(small)).collect()
    }

    /// Small tables that are read beside others, and reference tables that are written.
    fn advise_references(&mut self) {
        let written = self.written();
        let linked = self.advised();
        for (place, evidence) in self.evidence.iter().enumerate() {
            let mut told = BTreeSet::new();
            for reach in &evidence.reaches {
                let Some(table) = self.table(reach.table) else { continue };
                let by_evidence = table.distributed_by == DistributedBy::Evidence;
                let reference = table.distribution == Distribution::Reference;
                let kind = if reference && by_evidence && reach.write {
                    Kind::Distribute
                } else if !written.contains(&table.oid)
                    && !linked.contains(&table.oid)
                    && (reference && by_evidence || self.is_alone(&table))
                    && self.reads_beside(evidence, table.oid, &written)
                {
                    Kind::Reference
                } else {
                    continue;
                };
                if !told.insert(table.oid) {
                    continue;
                }
                let rows = self.sizes.rows(&table);
                let refused = if kind == Kind::Distribute || reference {
                    None
                } else if table.distributed_by == DistributedBy::Request {
                    Some(format!("{} was distributed by hand", label(&table)))
                } else if rows > REFERENCE_ROWS_MAX {
                    Some(format!("{} has {rows} rows", label(&table)))
                } else {
                    None
                };
                let applied = reference && kind == Kind::Reference;
                let (function, to) = match kind {
                    Kind::Distribute => ("undistribute_table", EvidentPlace::Keys),
                    _ => ("create_reference_table", EvidentPlace::Reference),
                };
                if !applied
                    && refused.is_none()
                    && !self.design.moves.iter().any(|(oid, _)| *oid == table.oid)
                {
                    self.design.moves.push((table.oid, to));
                }
                let statement = format!("SELECT {function}({});", literal(&label(&table)));
                self.design.advice.push(Advice {
                    kind,
                    evidence: place,
                    argument: reach
                        .argument
                        .as_ref()
                        .map(|argument| argument.text.clone())
                        .unwrap_or_default(),
                    tables: vec![(table.oid, None)],
                    refused,
                    applied,
                    statements: if applied { Vec::new() } else { vec![statement] },
                });
            }
        }
    }

    /// What would let a routine join a table without reading all of its partitions.
    fn advise_joined(&mut self) {
        let advised = self.advised();
        let written = self.written();
        for (place, evidence) in self.evidence.iter().enumerate() {
            let mut joined: BTreeMap<Oid, BTreeSet<u16>> = BTreeMap::new();
            for reach in evidence.reaches.iter().filter(|reach| !reach.joined.is_empty()) {
                joined.entry(reach.table).or_default().extend(&reach.joined);
            }
            for (oid, mut columns) in joined {
                let Some(table) = self.table(oid).filter(|table| group_of(table).is_some()) else {
                    continue;
                };
                // By that one it would be looked up, if the others were not read whole themselves.
                columns.retain(|column| distribution_column(&table) != Some(*column));
                let Some(first) = columns.first().copied() else { continue };
                let free = !advised.contains(&oid) && table.distributed_by != DistributedBy::Request;
                let is_small = self.sizes.rows(&table) <= REFERENCE_ROWS_MAX;
                let other = columns.iter().copied().find(|column| may_distribute(&table, *column));
                let (column, statement) = if free && is_small && self.is_rarely_written(oid, &written) {
                    (None, format!("SELECT create_reference_table({});", literal(&label(&table))))
                } else if let Some(column) = other.filter(|_| free) {
                    (Some(column), format!("SELECT create_distributed_table({});", named(&table, column)))
                } else if self.reaches_others(evidence, oid) {
                    (Some(first), index_on(&table, first))
                } else {
                    continue;
                };
                self.design.advice.push(Advice {
                    kind: Kind::Join,
                    evidence: place,
                    argument: String::new(),
                    tables: vec![(oid, column)],
                    refused: Some("what it costs other calls is for you to say".to_owned()),
                    applied: false,
                    statements: vec![statement],
                });
            }
        }
    }

    /// Whether a routine reaches other tables by values: only then has it rows to look others up by.
    fn reaches_others(&self, evidence: &Evidence, table: Oid) -> bool {
        let by_value = |reach: &Reach| reach.argument.is_some() || reach.constant;
        evidence.reaches.iter().any(|reach| reach.table != table && by_value(reach))
    }

    /// Whether hardly any call writes a table, compared with those that join it.
    fn is_rarely_written(&self, table: Oid, written: &BTreeSet<Oid>) -> bool {
        let calls = |is_it: &dyn Fn(&Reach) -> bool| -> u64 {
            let routines = self
                .evidence
                .iter()
                .filter(|evidence| evidence.reaches.iter().any(|reach| reach.table == table && is_it(reach)));
            routines.map(|evidence| self.sizes.calls(evidence.routine)).sum()
        };
        let (writing, joining) = (calls(&|reach| reach.write), calls(&|reach| !reach.joined.is_empty()));
        !written.contains(&table) || joining > writing.saturating_mul(READS_PER_WRITE)
    }

    /// A table alone in its group.
    fn is_alone(&self, table: &Table) -> bool {
        let Distribution::Column { group, .. } = table.distribution else { return false };
        self.catalog.tables().filter(|other| group_of(other) == Some(group)).count() == 1
    }

    /// Whether a routine reads rows of the table by a key, whatever that is (an argument that leads to no
    /// other table, a constant, what it draws or has read elsewhere), beside tables that routines write:
    /// only then do the routines show who writes what.
    fn reads_beside(&self, evidence: &Evidence, table: Oid, written: &BTreeSet<Oid>) -> bool {
        let by_key = |reach: &Reach| reach.argument.is_some() || reach.keyed;
        evidence.reaches.iter().any(|reach| reach.table == table && by_key(reach))
            && evidence.reaches.iter().any(|reach| reach.table != table && written.contains(&reach.table))
    }
}

/// Divides tables that meet in one argument by what keeps them apart: how their columns are
/// stored, and that somebody distributed one by hand.
fn divide(evidence: usize, argument: &str, tables: Vec<(TableRef, u16)>) -> Vec<Link> {
    let by_hand = tables
        .iter()
        .find(|(table, _)| table.distributed_by == DistributedBy::Request)
        .map(|(table, _)| format!("{} was distributed by hand", label(table)));
    let apart = |reason: String, tables: Vec<(TableRef, u16)>| Link {
        evidence,
        argument: argument.to_owned(),
        tables,
        refused: Some(reason),
    };
    let (free, asked): (Vec<_>, Vec<_>) =
        tables.iter().cloned().partition(|(table, _)| table.distributed_by != DistributedBy::Request);
    let mut classes: Vec<Vec<(TableRef, u16)>> = Vec::new();
    for (table, column) in free {
        let alike = classes.iter_mut().find(|class| {
            let (other, other_column) = &class[0];
            encoded_alike(&table, column, other, *other_column)
        });
        match alike {
            Some(class) => class.push((table, column)),
            None => classes.push(vec![(table, column)]),
        }
    }
    let several = classes.len() > 1;
    let mut links: Vec<Link> = classes
        .into_iter()
        .filter(|class| class.len() > 1)
        .map(|tables| Link { evidence, argument: argument.to_owned(), tables, refused: None })
        .collect();
    if !asked.is_empty() {
        links.push(apart(by_hand.unwrap_or_default(), tables));
    } else if several {
        links.push(apart("their columns are of different types, or may be NULL".to_owned(), tables));
    }
    links
}

/// Whether a table could be distributed by a column that does not do so now.
fn may_distribute(table: &Table, column: u16) -> bool {
    if distribution_column(table) == Some(column) {
        return false;
    }
    match is_numbered(table) {
        true => table.columns.get(usize::from(column)).is_some_and(|column| column.not_null),
        false => key_candidates(table).contains(&column),
    }
}

/// An index that finds rows by a column.
fn index_on(table: &Table, column: u16) -> String {
    let column = table.columns.get(usize::from(column)).map_or("", |column| column.name.as_str());
    format!("CREATE INDEX ON {} ({});", label(table), quote_identifier(column))
}

/// A table and the column that distributes it, as arguments of a call.
fn named(table: &Table, column: u16) -> String {
    let column = table.columns.get(usize::from(column)).map_or("", |column| column.name.as_str());
    format!("{}, {}", literal(&label(table)), literal(&quote_identifier(column)))
}

/// The calls that would co-locate tables with the first of them that has a key and keeps its column.
fn by_hand(tables: &[(TableRef, u16)]) -> Vec<String> {
    let is_there = |(table, column): &&(TableRef, u16)| distribution_column(table) == Some(*column);
    let keyed = || tables.iter().find(|(table, _)| is_keyed(table));
    let Some((first, first_column)) = tables.iter().find(is_there).or_else(keyed) else {
        return Vec::new();
    };
    let others = tables.iter().filter(|(table, column)| {
        table.oid != first.oid
            && (group_of(table) != group_of(first) || distribution_column(table) != Some(*column))
    });
    let mut statements = vec![format!("SELECT create_distributed_table({});", named(first, *first_column))];
    statements.extend(others.map(|(table, column)| {
        format!(
            "SELECT create_distributed_table({}, colocate_with => {});",
            named(table, *column),
            literal(&label(first))
        )
    }));
    statements
}
