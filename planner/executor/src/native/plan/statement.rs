//! A whole statement, compiled.

use archipel_sql::ast::ExplainOptions;
use archipel_sql::catalog::names::is_temporary_schema;
use archipel_sql::catalog::{TableKind, TableRef};
use archipel_sql::error::Result;
use archipel_sql::interrupt;

use super::compiler::Compiler;
use super::environment::CompileEnv;
use super::{constant, walk};
use crate::bound::{BoundStatement, Cte, CteBody, LockStrength, Rel};
use crate::native::plan::explain::name::Describing;
use crate::native::plan::relation::modifying_cte::targets_of;
use crate::native::run::access::row_read::row_columns;
use crate::native::run::operator::node::Node;
use crate::native::run::statement::{Body, CompiledStatement, Output};

/// Compiles a bound statement.
pub fn compile_statement(statement: &BoundStatement, env: &CompileEnv<'_>) -> Result<CompiledStatement> {
    compile(statement, Compiler::new(env))
}

/// The same for an EXPLAIN with these options: the plan tells as much of its columns as they ask for.
pub fn compile_explained(
    statement: &BoundStatement,
    options: ExplainOptions,
    env: &CompileEnv<'_>,
) -> Result<CompiledStatement> {
    let mut compiler = Compiler::new(env);
    compiler.plan.describing = Describing::of(statement, options);
    compiler.plan.watching = options.watches();
    compile(statement, compiler)
}

fn compile(statement: &BoundStatement, mut compiler: Compiler<'_>) -> Result<CompiledStatement> {
    let body = compiler.body(statement)?;
    compiler.settle_outputs(0);
    let shape = compiler.finish();
    let writes = compiler.accesses.iter().any(|access| access.write) || !matches!(body, Body::Query { .. });
    let mut compiled = CompiledStatement {
        columns: statement.columns().to_vec(),
        accesses: compiler.accesses,
        known_rows: compiler.known_rows,
        tables: compiler.tables,
        counts: compiler.plan.watching.is_some(),
        plan: compiler.plan.lines,
        writes,
        refused_read_only: refused_read_only(statement),
        stops_early: stops_early(&body),
        pairs_elsewhere: compiler.pairs_elsewhere,
        row: row_columns(&body),
        shape,
        body,
    };
    if let Some(error) = constant::failure(statement) {
        // What shall end here, or goes on elsewhere, is no statement that fails ever after.
        interrupt::check()?;
        compiled.fail(error);
    }
    Ok(compiled)
}

/// Whether a query's LIMIT ends its scan: nothing in between has to see all rows.
fn stops_early(body: &Body) -> bool {
    fn streams(node: &Node) -> bool {
        match node {
            Node::Scan(_) => true,
            Node::Append(append) => append.parts.iter().all(|part| streams(&part.node)),
            Node::Compute { input, .. } => streams(input),
            Node::Filter { input, .. } => streams(input),
            Node::Watched(watched) => streams(&watched.input),
            Node::Lock(locking) => streams(&locking.input),
            _ => false,
        }
    }
    match body {
        Body::Query { node, .. } => {
            let node = match &**node {
                Node::Compute { input, .. } => input,
                node => node,
            };
            matches!(node, Node::Limit(limit) if limit.limit.is_some() && streams(&limit.input))
        }
        _ => false,
    }
}

/// What a statement that writes or locks is called in the error of a READ ONLY transaction.
/// Routines are asked statement by statement.
fn refused_read_only(statement: &BoundStatement) -> Option<&'static str> {
    match statement {
        BoundStatement::Query(query) => refused_query(&query.rel),
        BoundStatement::Insert(insert) => (!is_own(&insert.table)).then_some("INSERT"),
        BoundStatement::Update(update) => (!is_own(&update.table)).then_some("UPDATE"),
        BoundStatement::Delete(delete) => (!is_own(&delete.table)).then_some("DELETE"),
        BoundStatement::Merge(merge) => (!is_own(&merge.table)).then_some("MERGE"),
        BoundStatement::Call(_) => None,
        BoundStatement::With { ctes, statement } => refused_read_only(statement)
            .or_else(|| ctes.iter().any(changes_others).then(|| command_of(statement)).flatten()),
    }
}

/// Whether rows of a table are the session's own affair: of a temporary one.
fn is_own(table: &TableRef) -> bool {
    is_temporary_schema(&table.schema)
}

/// Whether a query changes rows that are not the session's own affair.
fn changes_others(cte: &Cte) -> bool {
    matches!(&cte.body, CteBody::Modify(statement) if refused_read_only(statement).is_some())
}

fn command_of(statement: &BoundStatement) -> Option<&'static str> {
    match statement {
        BoundStatement::Query(_) => Some("SELECT"),
        BoundStatement::Insert(_) => Some("INSERT"),
        BoundStatement::Update(_) => Some("UPDATE"),
        BoundStatement::Delete(_) => Some("DELETE"),
        BoundStatement::Merge(_) => Some("MERGE"),
        BoundStatement::Call(_) => None,
        BoundStatement::With { statement, .. } => command_of(statement),
    }
}

fn refused_query(rel: &Rel) -> Option<&'static str> {
    let mut refused = None;
    walk::visit_relations(rel, &mut |rel| match rel {
        Rel::Scan { lock: Some(_), table, .. } if is_own(table) => {}
        Rel::Family { lock: Some(_), family, .. } if is_own(&family.root) => {}
        Rel::Scan { lock: Some(lock), .. } | Rel::Family { lock: Some(lock), .. } => {
            refused = Some(match lock.strength {
                LockStrength::KeyShare => "SELECT FOR KEY SHARE",
                LockStrength::Share => "SELECT FOR SHARE",
                LockStrength::NoKeyUpdate => "SELECT FOR NO KEY UPDATE",
                LockStrength::Update => "SELECT FOR UPDATE",
            });
        }
        Rel::With { ctes, .. } if ctes.iter().any(changes_others) => {
            refused = Some("SELECT");
        }
        Rel::Explained { statement, .. } => refused = refused_read_only(statement),
        _ => {}
    });
    refused
}

impl Compiler<'_> {
    /// Compiles what a statement does.
    pub fn body(&mut self, statement: &BoundStatement) -> Result<Body> {
        let width = statement.columns().len();
        Ok(match statement {
            BoundStatement::Query(query) => {
                let slots = self.declare(&query.rel);
                let node = self.relation(&query.rel)?;
                self.mark_all(&slots);
                let output = Output::of(&node, slots);
                Body::Query { node: Box::new(node), output }
            }
            BoundStatement::Insert(insert) if insert.table.kind == TableKind::View => {
                Body::Instead(Box::new(self.instead_of_insert(insert)?), width)
            }
            BoundStatement::Update(update)
                if matches!(update.table.kind, TableKind::View | TableKind::System) =>
            {
                Body::Instead(Box::new(self.instead_of_update(update)?), width)
            }
            BoundStatement::Delete(delete) if delete.table.kind == TableKind::View => {
                Body::Instead(Box::new(self.instead_of_delete(delete)?), width)
            }
            BoundStatement::Insert(insert) => Body::Insert(Box::new(self.insert(insert)?), width),
            BoundStatement::Update(update) => match &update.family {
                Some(family) => Body::Members(Box::new(self.update_members(update, family)?), width),
                None => Body::Update(Box::new(self.update(update)?), width),
            },
            BoundStatement::Delete(delete) => match &delete.family {
                Some(family) => Body::Members(Box::new(self.delete_members(delete, family)?), width),
                None => Body::Delete(Box::new(self.delete(delete)?), width),
            },
            BoundStatement::Merge(merge) => Body::Merge(Box::new(self.merge(merge)?)),
            BoundStatement::Call(call) => {
                let args = self.scoped(&[], |c| c.exprs(&call.args))?;
                let routine = self.scoped(&[], |c| c.link(&call.routine, &call.args))?;
                Body::Call { routine, args, width }
            }
            BoundStatement::With { ctes, statement } => {
                let (parts, body) = self.parts(ctes, targets_of(statement), |c, _| c.body(statement))?;
                Body::With { parts: Box::new(parts), body: Box::new(body) }
            }
        })
    }
}
