//! Keys of rows that are known before a statement runs, compiled.

use archipel_sql::error::Result;

use crate::native::plan::environment::CompileEnv;
use crate::native::plan::expression::compile_source;
use crate::native::run::access::prefetch::{KnownRow, RowAhead};

impl KnownRow {
    /// Makes it ready to run.
    pub fn compile(&self, env: &CompileEnv<'_>) -> Result<RowAhead> {
        let values = self.values.iter().map(|value| compile_source(value, env)).collect::<Result<_>>()?;
        Ok(RowAhead { meta: self.meta.clone(), columns: self.columns.clone(), values })
    }
}
