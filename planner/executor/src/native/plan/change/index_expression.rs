//! What rows store for indexes alone: the parts of their keys that are no plain columns.

use archipel_sql::catalog::TableRef;
use archipel_sql::error::Result;

use crate::bind::reference::bind_index_expressions;
use crate::native::plan::compiler::Compiler;
use crate::native::plan::walk;
use crate::native::run::expression::source::Source;
use crate::row::Codec;

/// Why nobody knows beforehand where an index's entry is.
pub(crate) const OF_EXPRESSION: &str = "the key of an index is an expression over the row";

/// What a row stores for one part of an index's key.
pub(crate) struct StoredPart {
    pub slot: u32,
    pub codec: Codec,
    pub source: Source,
}

impl Compiler<'_> {
    /// What a new row with these slots stores for indexes, where `changed` columns (or any) make a
    /// difference.
    pub fn stored_for_indexes(
        &mut self,
        table: &TableRef,
        row: &[u32],
        changed: Option<&[u16]>,
    ) -> Result<Vec<Option<StoredPart>>> {
        let parts = bind_index_expressions(self.env.catalog, table)?;
        let mut found = Vec::with_capacity(parts.len());
        for part in parts {
            let used = walk::root_columns(&part.stored);
            if changed.is_some_and(|changed| !used.iter().any(|column| changed.contains(column))) {
                found.push(None);
                continue;
            }
            used.iter().for_each(|column| self.mark(row[usize::from(*column)]));
            let source = self.scoped(row, |c| c.source(&part.stored))?;
            let slot = self.slot();
            self.mark(slot);
            if let Some(value) = self.scoped(row, |c| Ok(c.row_free(&part.stored)))? {
                self.known.insert(slot, value);
            }
            found.push(Some(StoredPart { slot, codec: Codec::of(part.stored.ty), source }));
        }
        Ok(found)
    }
}
