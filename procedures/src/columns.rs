//! Which columns tables should be distributed by, by the evidence of all deployed routines.
//!
//! A table without a key goes by the column whose arguments reach the most other tables. One whose
//! primary key has several columns is distributed by the first of them unless the routines show
//! another: a stock whose key begins with the item, where every routine says which warehouse it is
//! about, belongs beside its warehouse.
//!
//! ```text
//! stock(s_i_id, s_w_id)    s_i_id = one item after another      meets nothing
//!                          s_w_id = the argument p_w_id         meets warehouse, district, customer
//! ```
//!
//! A column takes another's place if by it the table meets more tables, no call is left without a
//! route for it, and rows are named by both columns where the other is no argument: where nothing at
//! all is said of the other, an index may be what is missing. So does one by which the table meets as
//! many, none perhaps, if it routes more calls to one partition. Each change raises the number of
//! meetings of all tables together, or leaves it and raises that of such calls, so that one look after
//! another comes to an end.

use std::collections::{BTreeMap, BTreeSet};

use archipel_planner::ddl::encoded_alike;
use archipel_planner::route::key_candidates;
use archipel_sql::catalog::{Catalog, DistributedBy, Distribution, Persistence, Table, TableRef};
use archipel_sql::types::Oid;

use crate::evidence::{Argument, Evidence, Reach};

/// Whether evidence may say where a table lives at all.
pub(crate) fn is_concerned(table: &Table) -> bool {
    table.is_stored() && table.persistence != Persistence::Temporary
}

pub(crate) fn group_of(table: &Table) -> Option<u32> {
    match table.distribution {
        Distribution::Column { group, .. } | Distribution::HiddenId { group } => Some(group),
        Distribution::Reference | Distribution::None => None,
    }
}

/// The column that distributes its rows now.
pub(crate) fn distribution_column(table: &Table) -> Option<u16> {
    match table.distribution {
        Distribution::Column { column, .. } => Some(column),
        _ => None,
    }
}

/// Whether its rows are distributed by a column.
pub(crate) fn is_keyed(table: &Table) -> bool {
    distribution_column(table).is_some()
}

/// Whether its rows only have numbers of their own.
pub(crate) fn is_numbered(table: &Table) -> bool {
    matches!(table.distribution, Distribution::HiddenId { .. })
}

/// The arguments on a column of a table that is reached, each as often as it was found.
pub(crate) fn arguments_on<'r>(
    reach: &'r Reach,
    table: &Table,
    column: u16,
) -> impl Iterator<Item = &'r Argument> + use<'r> {
    let own = reach.argument.as_ref().filter(|_| distribution_column(table) == Some(column));
    let others = reach.candidates.iter().filter(move |(known, _)| *known == column);
    own.into_iter().chain(others.map(|(_, argument)| argument))
}

/// The columns that tables should be distributed by where that is another one than now, or there is
/// none. `everywhere`: tables that could be reference tables, which nobody need live beside.
pub(crate) fn choose(
    catalog: &Catalog,
    evidence: &[Evidence],
    everywhere: &BTreeSet<Oid>,
) -> BTreeMap<Oid, u16> {
    let mut chooser = Chooser { catalog, evidence, everywhere, chosen: BTreeMap::new() };
    let by_hand = chooser.choose_among_keys();
    chooser.choose_for_numbered();
    chooser.chosen.extend(by_hand);
    chooser.chosen
}

struct Chooser<'a> {
    catalog: &'a Catalog,
    evidence: &'a [Evidence],
    everywhere: &'a BTreeSet<Oid>,
    chosen: BTreeMap<Oid, u16>,
}

/// What a table meets by one of its columns: other tables, twice where it is one value on both sides
/// and not several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Meetings {
    /// As the other tables are distributed.
    now: u32,
    /// As they could be.
    possible: u32,
}

impl Chooser<'_> {
    fn table(&self, oid: Oid) -> Option<TableRef> {
        self.catalog.table_by_oid(oid).filter(|table| is_concerned(table))
    }

    fn column_of(&self, table: &Table) -> Option<u16> {
        self.chosen.get(&table.oid).copied().or_else(|| distribution_column(table))
    }

    /// For each table with a choice among the columns of its key; answers the better columns of those
    /// that were distributed by hand, which stay as they are.
    fn choose_among_keys(&mut self) -> Vec<(Oid, u16)> {
        let reached: BTreeSet<Oid> =
            self.evidence.iter().flat_map(|evidence| &evidence.reaches).map(|reach| reach.table).collect();
        let mut by_hand = Vec::new();
        for oid in reached {
            let Some(table) = self.table(oid) else { continue };
            // Partitions are where their siblings are.
            let Some(present) = distribution_column(&table).filter(|_| table.partition_of().is_none()) else {
                continue;
            };
            let routed = self.routed(&table, present, false);
            let gain = |column: u16| (self.meetings(&table, column), self.routed(&table, column, true));
            // The first of those that are best.
            let best = key_candidates(&table)
                .iter()
                .rev()
                .filter(|column| **column != present && self.is_shown(&table, **column))
                .filter(|column| self.routed(&table, **column, false) >= routed)
                .map(|column| (gain(*column), *column))
                .max_by_key(|(gain, _)| *gain);
            let Some((_, column)) = best.filter(|(better, _)| *better > gain(present)) else { continue };
            if table.distributed_by == DistributedBy::Request {
                by_hand.push((table.oid, column));
            } else {
                self.chosen.insert(table.oid, column);
            }
        }
        by_hand
    }

    /// Whether some routine names rows by an argument on a column, and by none on the one that
    /// distributes them.
    fn is_shown(&self, table: &Table, column: u16) -> bool {
        let mut reaches = self.evidence.iter().flat_map(|evidence| &evidence.reaches);
        reaches.any(|reach| {
            reach.table == table.oid && reach.scattered && arguments_on(reach, table, column).next().is_some()
        })
    }

    /// In how many ways routines reach the table that a column routes: at all, or to one partition.
    fn routed(&self, table: &Table, column: u16, to_one: bool) -> usize {
        let reaches = self.evidence.iter().flat_map(|evidence| &evidence.reaches);
        let known = |reach: &&Reach| {
            arguments_on(reach, table, column).any(|argument| argument.single || !to_one)
                || reach.constant && distribution_column(table) == Some(column)
        };
        reaches.filter(|reach| reach.table == table.oid).filter(known).count()
    }

    fn meetings(&self, table: &Table, column: u16) -> Meetings {
        let mut meetings = Meetings::default();
        for evidence in self.evidence {
            let reaches_of = |oid: Oid| evidence.reaches.iter().filter(move |reach| reach.table == oid);
            let own: BTreeSet<&Argument> =
                reaches_of(table.oid).flat_map(|reach| arguments_on(reach, table, column)).collect();
            if own.is_empty() {
                continue;
            }
            let others: BTreeSet<Oid> = evidence.reaches.iter().map(|reach| reach.table).collect();
            let others = others.into_iter().filter(|oid| *oid != table.oid && !self.everywhere.contains(oid));
            for other in others.filter_map(|oid| self.table(oid)).filter(|other| is_keyed(other)) {
                let meets = |at: u16| {
                    if !encoded_alike(table, column, &other, at) {
                        return 0;
                    }
                    let arguments = reaches_of(other.oid).flat_map(|reach| arguments_on(reach, &other, at));
                    let weight = |argument: &Argument| if argument.single { 2 } else { 1 };
                    arguments.filter(|argument| own.contains(argument)).map(weight).max().unwrap_or(0)
                };
                meetings.now += self.column_of(&other).map_or(0, meets);
                let could = key_candidates(&other).iter().copied().chain(distribution_column(&other));
                meetings.possible += could.map(meets).max().unwrap_or(0);
            }
        }
        meetings
    }

    /// For each table without a key, the column whose arguments reach the most other tables.
    fn choose_for_numbered(&mut self) {
        let mut scores: BTreeMap<Oid, BTreeMap<u16, usize>> = BTreeMap::new();
        for evidence in self.evidence {
            for reach in &evidence.reaches {
                if !self.table(reach.table).is_some_and(|table| is_numbered(&table)) {
                    continue;
                }
                for (column, argument) in &reach.candidates {
                    let others: BTreeSet<Oid> = evidence
                        .reaches
                        .iter()
                        .filter(|other| {
                            self.table(other.table).filter(|table| is_keyed(table)).is_some_and(|table| {
                                let at = self.column_of(&table);
                                at.is_some_and(|at| {
                                    arguments_on(other, &table, at).any(|own| own == argument)
                                })
                            })
                        })
                        .map(|other| other.table)
                        .collect();
                    *scores.entry(reach.table).or_default().entry(*column).or_default() += others.len();
                }
            }
        }
        for (table, columns) in scores {
            // The first of those that are best.
            let best = columns.into_iter().rev().max_by_key(|(_, score)| *score);
            if let Some((column, _)) = best.filter(|(_, score)| *score > 0) {
                self.chosen.insert(table, column);
            }
        }
    }
}
