//! MERGE: what all its actions are about is found first, then they write.

use archipel_sql::error::{Result, SqlError, SqlState};
use rustc_hash::FxHashSet;

use super::compile::Compiler;
use super::context::{ExecContext, ExecResult};
use super::statement::{Body, Deferred};
use super::with::Cte;
use crate::bound::BoundMerge;

pub(crate) struct Merge {
    source: Vec<Cte>,
    actions: Vec<Body>,
}

impl Compiler<'_> {
    pub fn merge(&mut self, merge: &BoundMerge) -> Result<Merge> {
        self.open(format!("Merge on {}", merge.table.name));
        let compiled = self.merge_parts(merge);
        self.close();
        compiled
    }

    fn merge_parts(&mut self, merge: &BoundMerge) -> Result<Merge> {
        let source = self.ctes(std::slice::from_ref(&merge.source))?;
        let actions = merge.actions.iter().map(|action| self.body(action)).collect::<Result<Vec<_>>>()?;
        if actions.iter().any(Body::fires) {
            return Err(SqlError::unsupported("MERGE into a table with triggers"));
        }
        Ok(Merge { source, actions })
    }
}

impl Merge {
    pub fn run(&self, ctx: &mut ExecContext<'_, '_>) -> ExecResult<u64> {
        for cte in &self.source {
            cte.prepare(ctx)?;
        }
        let mut found = Vec::with_capacity(self.actions.len());
        let mut touched: FxHashSet<Vec<u8>> = FxHashSet::default();
        for action in &self.actions {
            let (_, deferred) =
                action.find(ctx)?.ok_or_else(|| SqlError::internal("an action of MERGE writes at once"))?;
            if let Deferred::Change(change) = &deferred {
                let twice = change.repeated || change.keys.iter().any(|key| !touched.insert(key.to_vec()));
                if twice {
                    return Err(SqlError::new(
                        SqlState::CARDINALITY_VIOLATION,
                        "MERGE command cannot affect row a second time",
                    )
                    .with_hint("Ensure that not more than one source row matches any one target row.")
                    .into());
                }
            }
            found.push(deferred);
        }
        // Keys are judged by what all clauses together leave.
        super::action::with_queue(ctx, |ctx| {
            let mut count = 0;
            for (action, deferred) in self.actions.iter().zip(found) {
                count += action.write(ctx, deferred)?;
            }
            Ok(count)
        })
    }
}
