//! EXPLAIN ANALYZE of a statement as rows of another one, compiled.

use std::time::Instant;

use archipel_sql::ast::ExplainOptions;
use archipel_sql::error::Result;

use super::name::Describing;
use crate::bound::BoundStatement;
use crate::native::plan::compiler::Compiler;
use crate::native::run::operator::explain_analyze::Explained;

impl Compiler<'_> {
    /// A statement to be run and told of.
    pub fn explained(
        &mut self,
        statement: &BoundStatement,
        options: ExplainOptions,
        slot: u32,
    ) -> Result<Explained> {
        let began = Instant::now();
        let (lines, accesses) = (self.plan.lines.len(), self.accesses.len());
        let own = Describing::of(statement, options);
        let outer = std::mem::replace(&mut self.plan.describing, own);
        let watching = std::mem::replace(&mut self.plan.watching, options.watches());
        let body = self.body(statement);
        self.settle_outputs(lines);
        (self.plan.describing, self.plan.watching) = (outer, watching);
        let (body, plan) = (body?, self.plan.lines[lines..].to_vec());
        let (accesses, planning) = (self.accesses[accesses..].to_vec(), began.elapsed());
        Ok(Explained { body, plan, accesses, planning, options, slot })
    }
}
