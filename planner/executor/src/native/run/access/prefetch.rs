//! Rows whose keys are known before a statement reads them: what a routine fetches ahead.

use std::sync::Arc;

use archipel_engine::TableMeta;
use archipel_engine::schema::KeyColumn;
use archipel_engine::storage::KeyBuf;
use archipel_sql::error::Result;

use crate::bound::BoundExpr;
use crate::native::plan::access::path::Meta;
use crate::native::plan::environment::CompileEnv;
use crate::native::plan::expression::compile_source;
use crate::native::run::expression::source::Source;
use crate::native::run::state::context::ExecContext;
use crate::row::Codec;
use super::key_span::append_value;

/// A row that a statement reads or writes by its whole storage key, the key's values over
/// parameters and variables only.
#[derive(Clone)]
pub struct KnownRow {
    meta: Meta,
    columns: Vec<(KeyColumn, Codec)>,
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

    /// Makes it ready to run.
    pub fn compile(&self, env: &CompileEnv<'_>) -> Result<RowAhead> {
        let values = self.values.iter().map(|value| compile_source(value, env)).collect::<Result<_>>()?;
        Ok(RowAhead { meta: self.meta.clone(), columns: self.columns.clone(), values })
    }
}

/// A row to fetch ahead.
pub struct RowAhead {
    meta: Arc<TableMeta>,
    columns: Vec<(KeyColumn, Codec)>,
    values: Vec<Source>,
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
