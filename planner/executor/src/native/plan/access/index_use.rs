//! Which indexes a scan counts for, and how: what `archipel.indexes` shows, and advice on placement is made of.
//!
//! ```text
//! conditions on          prefixed (tenant, status)    global (status)
//! tenant and status      bound                        bound; missed, if the rows of the tenant are read instead
//! status                 unbound, missed              unbound
//! ```
//!
//! An index is missed if its entries under the other placement would lead to the rows better than what was
//! chosen. Reads through several ways, the arms of an OR, count as the first of them.

use archipel_sql::catalog::Distribution;

use super::choice::{Choice, Restrictions};
use super::path::OnKey;
use crate::native::plan::compiler::Compiler;
use crate::native::run::access::path::CountedIndex;
use crate::route::NotedUse;
use crate::row::other_key;

impl Compiler<'_> {
    /// The indexes that a scan by this path counts for.
    pub(super) fn counted_indexes(
        &mut self,
        on: &Restrictions<'_, '_>,
        choice: &Choice<'_>,
    ) -> Vec<CountedIndex> {
        let uses = self.index_uses(on, choice);
        let counted = uses.into_iter().filter_map(|NotedUse { index, bound, missed }| {
            let uses = on.meta.index(index)?.uses.clone();
            Some(CountedIndex { uses, bound, missed })
        });
        counted.collect()
    }

    /// The index that a path goes by, and the one that it would go by if the entries were elsewhere.
    pub(super) fn index_uses(&mut self, on: &Restrictions<'_, '_>, choice: &Choice<'_>) -> Vec<NotedUse> {
        if on.meta.def.indexes.is_empty() {
            return Vec::new();
        }
        let missed = self.missed_index(on, choice);
        let bound = self.gives_distribution(on);
        let both = [(choice.index, false), (missed, true)];
        let uses = both.into_iter().filter_map(|(place, missed)| {
            let index = on.meta.def.indexes[place?].id;
            Some(NotedUse { index, bound, missed })
        });
        uses.collect()
    }

    fn missed_index(&mut self, on: &Restrictions<'_, '_>, choice: &Choice<'_>) -> Option<usize> {
        let (mut best, mut missed) = (choice.score, None);
        for (place, def) in on.meta.def.indexes.iter().enumerate() {
            let index = on.table.indexes.iter().find(|index| index.tree == def.id.0);
            let Some(key) = index.and_then(|index| other_key(on.table, index)) else { continue };
            let other = self.choice_by(on, Some(place), &key);
            if other.score > best {
                (best, missed) = (other.score, Some(place));
            }
        }
        missed
    }

    /// Whether the conditions give the values of the distribution column.
    fn gives_distribution(&mut self, on: &Restrictions<'_, '_>) -> bool {
        let Distribution::Column { column, .. } = on.table.distribution else { return false };
        let Some(slot) = on.layout.get(usize::from(column)) else { return false };
        self.equality(on, &OnKey::Column(*slot), false).is_some()
    }
}
