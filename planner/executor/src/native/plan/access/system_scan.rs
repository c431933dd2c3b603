//! Scans of system relations: which rows they ask for, and which of them look rows up among those kept by an
//! earlier run.

use archipel_sql::catalog::{Table, TableKind, TableRef};
use archipel_sql::error::Result;
use archipel_sql::function::Intrinsic;
use archipel_sql::system::{is_selective, is_settled};
use archipel_sql::types::Oid;

use crate::bind::visit;
use crate::bound::{BoundExpr, ExprKind};
use crate::comparison::{Comparison, comparison};
use crate::explain::plan::PlanNode;
use crate::native::plan::access::conjunct::{Conjunct, comparable};
use crate::native::plan::compiler::{Compiler, Layout};
use crate::native::plan::relation::node::Planned;
use crate::native::run::access::system_scan::{KeptRows, SoughtBy, SoughtHow, SystemScan};
use crate::native::run::function::large_object::system_rows::tells_of;
use crate::native::run::operator::node::Node;

/// A column of a relation, by its place, and what a condition says that it is equal to.
type Equal<'c, 'b> = (usize, &'c Conjunct<'b>, &'b BoundExpr);

/// What a condition says of a column: how, and what it names.
type Said<'b> = (&'b BoundExpr, SoughtHow, Vec<&'b BoundExpr>);

/// What a condition may say of one of the columns that it reads.
fn said<'b>(conjunct: &Conjunct<'b>) -> Vec<Said<'b>> {
    match &conjunct.expr.kind {
        ExprKind::Call { function, args } => {
            let [left, right] = &args[..] else { return Vec::new() };
            match function.function.intrinsic {
                Some(Intrinsic::Like | Intrinsic::NameLike) => vec![(left, SoughtHow::Like, vec![right])],
                Some(Intrinsic::MatchesRegex) => vec![(left, SoughtHow::Regex, vec![right])],
                _ if comparison(function.function) == Some(Comparison::Eq) && comparable(left, right) => {
                    vec![(left, SoughtHow::Equal, vec![right]), (right, SoughtHow::Equal, vec![left])]
                }
                _ => Vec::new(),
            }
        }
        ExprKind::InList { left, list, equality, negated: false }
            if comparison(equality.function) == Some(Comparison::Eq)
                && list.iter().all(|item| comparable(left, item)) =>
        {
            vec![(left, SoughtHow::Equal, list.iter().collect())]
        }
        ExprKind::ArrayOp { left, array, operator, all: false }
            if comparison(operator.function) == Some(Comparison::Eq) =>
        {
            vec![(left, SoughtHow::Any, vec![array])]
        }
        _ => Vec::new(),
    }
}

/// Whether values may be asked for before a row is made: they are the same for all, and to compute them shows
/// nothing and asks little. What is padded with blanks is equal to more than itself.
fn may_be_sought(values: &[&BoundExpr]) -> bool {
    values.iter().all(|value| {
        let mut asks = false;
        visit::visit_expr(value, 0, &mut |part, _| {
            asks |= matches!(part.kind, ExprKind::Subquery(_));
            !asks
        });
        !asks
            && !visit::is_volatile(value)
            && visit::effort(value) == visit::Effort::Operators
            && !matches!(value.ty.oid, Oid::BPCHAR | Oid::BPCHAR_ARRAY)
    })
}

/// Whether a condition reads other rows than those of these slots.
fn reads_others(conjunct: &Conjunct<'_>, layout: &Layout) -> bool {
    conjunct.slots.iter().any(|slot| !layout.contains(slot))
}

/// Whether a relation's rows may be kept: it has the same ones all the while.
fn may_keep(table: &Table) -> bool {
    table.kind == TableKind::System && is_settled(table)
}

impl Compiler<'_> {
    /// Plans a scan of a system relation.
    pub fn plan_system_scan(
        &mut self,
        table: &TableRef,
        layout: &Layout,
        conjuncts: &[Conjunct<'_>],
    ) -> Result<Planned> {
        let alias = self.plan.alias.take();
        let alias = self.name_table(table, &alias, layout);
        let output = self.shown(layout);
        let node = PlanNode::new("Scan").on(&table.name).within(&table.schema);
        self.line(PlanNode { alias, output, ..node });
        self.describe_filter(conjuncts);
        let columns: Vec<(usize, u32)> = layout.iter().copied().enumerate().collect();
        let columns = self.pruned(columns, |(_, slot)| *slot);
        let kept = self.kept_rows(table, layout, conjuncts)?;
        let sought = self.sought(layout, conjuncts)?;
        let filter = self.all_of(conjuncts)?;
        let more = self.large_objects_in(table)?;
        // What the transaction itself does to large objects is told anew each time.
        let kept = kept.filter(|_| more.is_none());
        Ok(Node::System(SystemScan { table: table.clone(), sought, more, columns, filter, kept }).into())
    }

    /// How a scan's rows are kept, if it may run again and finds the same ones.
    fn kept_rows(
        &mut self,
        table: &Table,
        layout: &Layout,
        conjuncts: &[Conjunct<'_>],
    ) -> Result<Option<KeptRows>> {
        if !may_keep(table) {
            return Ok(None);
        }
        let equal = self.equal_columns(layout, conjuncts, &[]);
        let leads = equal.iter().any(|(column, ..)| is_selective(table, *column));
        // In the outermost query it is read once, but for values of other rows.
        let varies = equal.iter().any(|(_, conjunct, _)| reads_others(conjunct, layout));
        if self.depth() == 0 && !(leads && varies) {
            return Ok(None);
        }
        let mut kept = KeptRows {
            cache: self.cache(),
            columns: Vec::new(),
            values: Vec::new(),
            slots: self.pruned(layout.clone(), |slot| *slot),
            leads,
        };
        for (column, conjunct, value) in equal {
            let value = self.in_conjunct(conjunct, |c| c.source(value))?;
            kept.columns.push(column);
            kept.values.push(value);
        }
        Ok(Some(kept))
    }

    /// What conditions say of rows before they are made.
    fn sought(&mut self, layout: &Layout, conjuncts: &[Conjunct<'_>]) -> Result<Vec<SoughtBy>> {
        let mut sought = Vec::new();
        for conjunct in conjuncts {
            for (column, how, values) in said(conjunct) {
                let Some(column) = self.sought_column(conjunct, column, layout) else { continue };
                let read = |c: &mut Self, value: &BoundExpr| c.value_slots(conjunct, value);
                let own =
                    values.iter().any(|value| read(self, value).iter().any(|slot| layout.contains(slot)));
                if own || !may_be_sought(&values) {
                    continue;
                }
                let values = values.into_iter().map(|value| self.in_conjunct(conjunct, |c| c.source(value)));
                let values = values.collect::<Result<_>>()?;
                sought.push(SoughtBy { column, how, values, varies: reads_others(conjunct, layout) });
                break;
            }
        }
        Ok(sought)
    }

    /// The place of the column of a relation that an expression is.
    fn sought_column(&self, conjunct: &Conjunct<'_>, column: &BoundExpr, layout: &Layout) -> Option<usize> {
        let slot = self.column_slot(conjunct, column)?;
        layout.iter().position(|own| *own == slot)
    }

    /// Whether conditions lead to rows of a system relation by what is known without any other row.
    pub fn is_sought(&self, table: &Table, layout: &Layout, conjuncts: &[Conjunct<'_>]) -> bool {
        table.kind == TableKind::System
            && conjuncts.iter().filter(|conjunct| !reads_others(conjunct, layout)).any(|conjunct| {
                said(conjunct).into_iter().any(|(column, _, values)| {
                    let column = self.sought_column(conjunct, column, layout);
                    column.is_some_and(|column| is_selective(table, column)) && may_be_sought(&values)
                })
            })
    }

    /// Whether rows of a system relation are looked up by values of other rows. `unavailable`: the slots of
    /// rows that are not read yet.
    pub fn is_kept_by_value(
        &mut self,
        table: &Table,
        layout: &Layout,
        conjuncts: &[Conjunct<'_>],
        unavailable: &[u32],
    ) -> bool {
        let outermost = self.depth() == 0;
        // What is told anew each time is told once where it can be.
        may_keep(table)
            && !(outermost && tells_of(table.oid))
            && self.equal_columns(layout, conjuncts, unavailable).iter().any(|(column, conjunct, _)| {
                reads_others(conjunct, layout) && (!outermost || is_selective(table, *column))
            })
    }

    /// The columns that conditions say to be equal to what is known before the relation is read.
    fn equal_columns<'c, 'b>(
        &mut self,
        layout: &Layout,
        conjuncts: &'c [Conjunct<'b>],
        unavailable: &[u32],
    ) -> Vec<Equal<'c, 'b>> {
        let mut found: Vec<Equal<'c, 'b>> = Vec::new();
        for conjunct in conjuncts {
            let ExprKind::Call { function, args } = &conjunct.expr.kind else { continue };
            let [left, right] = &args[..] else { continue };
            let is_equality = comparison(function.function) == Some(Comparison::Eq);
            if !is_equality
                || !comparable(left, right)
                || visit::effort(conjunct.expr) != visit::Effort::Operators
            {
                continue;
            }
            for (column, value) in [(left, right), (right, left)] {
                let place = self
                    .column_slot(conjunct, column)
                    .and_then(|slot| layout.iter().position(|own| *own == slot));
                let Some(place) = place.filter(|place| found.iter().all(|(known, ..)| known != place)) else {
                    continue;
                };
                let read = self.value_slots(conjunct, value);
                if !read.iter().any(|slot| layout.contains(slot) || unavailable.contains(slot)) {
                    found.push((place, conjunct, value));
                    break;
                }
            }
        }
        found
    }
}
