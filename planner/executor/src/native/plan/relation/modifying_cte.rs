//! The parts of a statement with WITH: which run, in which order, and when they write.
//!
//! A query in WITH that nobody reads does not run; a part that changes data always does. Those that
//! the statement reads, itself or through others, come before it, the others after it, the last one
//! first: PostgreSQL's order, which decides where several parts are about the same row.

use archipel_engine::id::TreeId;
use archipel_sql::error::Result;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::bound::{BoundStatement, Cte as BoundCte, CteBody};
use crate::native::plan::compiler::Compiler;
use crate::native::run::operator::modifying_cte::Parts;
use crate::native::run::operator::with::Cte;

/// The tables whose rows a statement changes.
pub(crate) fn targets_of(statement: &BoundStatement) -> Vec<u32> {
    let (table, family) = match statement {
        BoundStatement::Insert(insert) => (&insert.table, &insert.family),
        BoundStatement::Update(update) => (&update.table, &update.family),
        BoundStatement::Delete(delete) => (&delete.table, &delete.family),
        BoundStatement::Merge(merge) => (&merge.table, &merge.family),
        BoundStatement::With { statement, .. } => return targets_of(statement),
        BoundStatement::Query(_) | BoundStatement::Call(_) => return Vec::new(),
    };
    match family {
        Some(family) => family.members.iter().map(|member| member.table.tree).collect(),
        None => vec![table.tree],
    }
}

impl Compiler<'_> {
    /// Compiles a WITH and the statement it belongs to, which changes the tables `targets`.
    pub fn parts<T>(
        &mut self,
        ctes: &[BoundCte],
        mut targets: Vec<u32>,
        body: impl FnOnce(&mut Self, &mut [Cte]) -> Result<T>,
    ) -> Result<(Parts, T)> {
        let mut around = std::mem::take(&mut self.ctes_read);
        let (mut compiled, mut reads) = (Vec::with_capacity(ctes.len()), Vec::with_capacity(ctes.len()));
        for cte in ctes {
            compiled.push(self.one_cte(cte)?);
            reads.push(std::mem::take(&mut self.ctes_read));
        }
        let body = body(self, &mut compiled)?;
        let read = std::mem::take(&mut self.ctes_read);
        let ids: Vec<u32> = ctes.iter().map(|cte| cte.id).collect();
        let places = ids.iter().enumerate().map(|(place, id)| (*id, place)).collect();
        let mut order = Order { places, reads: &reads, placed: vec![false; ids.len()] };
        let before = order.with_readers(&read, None);
        let mut after = Vec::new();
        for place in (0..ids.len()).rev().filter(|place| compiled[*place].modifies()) {
            if !order.placed[place] {
                after.extend(order.with_readers(&reads[place], Some(place)));
            }
        }
        for cte in ctes {
            if let CteBody::Modify(statement) = &cte.body {
                targets.extend(targets_of(statement));
            }
        }
        targets.sort_unstable();
        let contested: FxHashSet<u32> =
            targets.windows(2).filter(|pair| pair[0] == pair[1]).map(|pair| pair[0]).collect();
        around.extend(read);
        around.extend(reads.into_iter().flatten());
        self.ctes_read = around;
        let modify = compiled.iter().any(Cte::modifies);
        let contested = contested.into_iter().map(TreeId).collect();
        Ok((Parts { ctes: compiled, before, after, modify, contested }, body))
    }
}

/// Puts CTEs in order: each after those it reads, which stand before it.
struct Order<'c> {
    /// Where each stands, by its id.
    places: FxHashMap<u32, usize>,
    reads: &'c [FxHashSet<u32>],
    placed: Vec<bool>,
}

impl Order<'_> {
    /// What a reader of these still needs, and the reader itself.
    fn with_readers(&mut self, read: &FxHashSet<u32>, reader: Option<usize>) -> Vec<usize> {
        let mut needed = vec![false; self.reads.len()];
        for place in read.iter().filter_map(|id| self.places.get(id)) {
            needed[*place] = true;
        }
        for place in (0..needed.len()).rev() {
            if !needed[place] {
                continue;
            }
            for before in self.reads[place].iter().filter_map(|id| self.places.get(id)) {
                needed[*before] |= *before < place;
            }
        }
        let placed = &mut self.placed;
        let mut places: Vec<usize> =
            (0..needed.len()).filter(|place| needed[*place] && !placed[*place]).collect();
        places.extend(reader);
        for place in &places {
            placed[*place] = true;
        }
        places
    }
}
