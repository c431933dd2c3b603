//! Rows whose keys are known before a statement reads them: what a routine fetches ahead.

use std::sync::Arc;

use archipel_engine::TableMeta;
use archipel_engine::schema::KeyColumn;
use archipel_engine::storage::KeyBuf;

use super::key_span::append_value;
use super::path::Meta;
use crate::bound::BoundExpr;
use crate::native::run::expression::source::Source;
use crate::native::run::state::context::ExecContext;
use crate::row::Codec;

/// A row that a statement reads or writes by its whole storage key, the key's values over
/// parameters and variables only.
#[derive(Clone)]
pub struct KnownRow {
    pub(crate) meta: Meta,
    pub(crate) columns: Vec<(KeyColumn, Codec)>,
    /// One for each key column.
    pub values: Vec<BoundExpr>,
}

impl KnownRow {
    pub(crate) fn new(meta: Meta, columns: Vec<(KeyColumn, Codec)>, values: Vec<BoundExpr>) -> KnownRow {
        KnownRow { meta, columns, values }
    }

    /// Whether both are spelled alike.
    pub fn is_same(&self, other: &KnownRow) -> bool {
        self.meta.def.id == other.meta.def.id && self.values == other.values
    }
}

/// A row to fetch ahead.
pub struct RowAhead {
    pub(crate) meta: Arc<TableMeta>,
    pub(crate) columns: Vec<(KeyColumn, Codec)>,
    pub(crate) values: Vec<Source>,
}

impl RowAhead {
    /// The key as the variables stand; `None` where it cannot be computed or no row can have it.
    pub fn key(&self, ctx: &mut ExecContext<'_, '_>) -> Option<KeyBuf> {
        let mut key = KeyBuf::new();
        for (value, (column, codec)) in self.values.iter().zip(&self.columns) {
            let fits = match value {
                Source::Operand(operand) => append_value(&mut key, operand.get(ctx), column, *codec),
                Source::Code(code) => append_value(&mut key, &code(ctx).ok()?, column, *codec),
            };
            if !fits {
                return None;
            }
        }
        Some(key)
    }

    /// The table's name.
    pub fn table(&self) -> &str {
        &self.meta.def.name
    }

    /// Asks the memory for the rows under these keys.
    pub fn fetch(&self, ctx: &mut ExecContext<'_, '_>, keys: &[KeyBuf]) {
        ctx.txn.fetch_ahead(&self.meta, keys);
    }
}
