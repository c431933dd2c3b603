//! LOCK TABLE, and the locks definitions take.

use archipel_engine::id::TreeId;
use archipel_engine::txn::{Interactive, Isolation};
use archipel_engine::{DdlOp, LockTables, LockTag, LockWait, ObjectLock, ObjectMode, Stop, SubmitOptions};
use archipel_sql::ast::{LockTable, TableLockMode};
use archipel_sql::catalog::{Privileges, TableKind};
use archipel_sql::error::{Result, SqlError, SqlState};

use super::Session;
use crate::statement::{Code, RowPlan};

fn mode_of(mode: TableLockMode) -> ObjectMode {
    match mode {
        TableLockMode::AccessShare => ObjectMode::AccessShare,
        TableLockMode::RowShare => ObjectMode::RowShare,
        TableLockMode::RowExclusive => ObjectMode::RowExclusive,
        TableLockMode::ShareUpdateExclusive => ObjectMode::ShareUpdateExclusive,
        TableLockMode::Share => ObjectMode::Share,
        TableLockMode::ShareRowExclusive => ObjectMode::ShareRowExclusive,
        TableLockMode::Exclusive => ObjectMode::Exclusive,
        TableLockMode::AccessExclusive => ObjectMode::AccessExclusive,
    }
}

/// The lock PostgreSQL's definitions take on a table that is there.
fn lock_of(operation: &DdlOp) -> Option<(TreeId, ObjectMode)> {
    match operation {
        DdlOp::CreateIndex { table, .. } => Some((*table, ObjectMode::Share)),
        DdlOp::AlterTable { def, .. } => Some((def.id, ObjectMode::AccessExclusive)),
        DdlOp::DropIndex { table, .. } => Some((*table, ObjectMode::AccessExclusive)),
        DdlOp::DropTable(tree) | DdlOp::Truncate(tree) => Some((*tree, ObjectMode::AccessExclusive)),
        // Whoever copies a table has locked it.
        DdlOp::CopyTable { .. }
        | DdlOp::CatchUp { .. }
        | DdlOp::CreateTable(_)
        | DdlOp::CreateSequence(_)
        | DdlOp::AlterSequence { .. }
        | DdlOp::DropSequence(_) => None,
    }
}

impl Session {
    /// A lock as the detail of a deadlock names it.
    pub(super) fn describe_lock(&self, lock: ObjectLock) -> String {
        let database = crate::system::activity::DATABASE;
        let what = match lock.tag {
            LockTag::Table(tree) => {
                let catalog = self.server.catalog.current().catalog.clone();
                let oid = catalog.tables().find(|table| table.tree == tree.0).map_or(0, |table| table.oid.0);
                format!("relation {oid} of database {database}")
            }
            LockTag::Advisory(first, second, two) => {
                format!("advisory lock [{database},{first},{second},{}]", if two { 2 } else { 1 })
            }
        };
        format!("{} on {what}", lock.mode.name())
    }

    /// Waits until nobody uses the tables that definitions change, and keeps others away until
    /// the answer is dropped.
    pub(super) async fn lock_for_definitions(
        &mut self,
        operations: impl Iterator<Item = &DdlOp>,
    ) -> Result<Option<Interactive>> {
        let mut wanted: Vec<(TreeId, ObjectMode)> = operations.filter_map(lock_of).collect();
        wanted.sort_unstable();
        // The strongest mode of each, which the order puts last.
        wanted.reverse();
        wanted.dedup_by_key(|(tree, _)| *tree);
        wanted.retain(|(tree, _)| self.server.engine.table(*tree).is_some());
        wanted.reverse();
        if wanted.is_empty() {
            return Ok(None);
        }
        let client = self.entry().engine.clone();
        let guard = self.server.engine.begin_for(&client, Isolation::ReadCommitted, false);
        for (tree, mode) in wanted {
            let program = LockTables::new(vec![tree], mode, LockWait::Wait);
            let options = SubmitOptions {
                transaction: Some(&guard),
                client: Some(&client),
                ..SubmitOptions::default()
            };
            let submission = self.server.engine.submit(program, options);
            match self.cancellable(submission).await.outcome.result {
                // A table that went meanwhile is missed when the definition is planned.
                Ok(()) | Err(Stop::Recompile) => {}
                Err(stop) => return Err(self.stop_error(stop)),
            }
        }
        Ok(Some(guard))
    }

    /// Takes the ACCESS SHARE locks of a query over a snapshot: for the open transaction, or
    /// until the answer is dropped. A query on its own takes none while no table is locked
    /// against anybody.
    pub(super) async fn lock_for_reading(&mut self, plan: &RowPlan) -> Result<Option<Interactive>> {
        let Code::Native(compiled) = &plan.code else { return Ok(None) };
        let client = self.entry().engine.clone();
        let guard = match self.transaction.interactive() {
            Some(_) => None,
            None if !self.server.engine.has_table_locks() => return Ok(None),
            None => Some(self.server.engine.begin_for(&client, Isolation::ReadCommitted, true)),
        };
        let tables = compiled.tables.iter().map(|(tree, _)| *tree).collect();
        let options = SubmitOptions {
            transaction: guard.as_ref().or(self.transaction.interactive()),
            client: Some(&client),
            ..SubmitOptions::default()
        };
        let program = LockTables::new(tables, ObjectMode::AccessShare, LockWait::Wait);
        let submission = self.server.engine.submit(program, options);
        match self.cancellable(submission).await.outcome.result {
            // Who reads tables that changed finds out when it reads them.
            Ok(()) | Err(Stop::Recompile) => Ok(guard),
            Err(stop) => Err(self.stop_error(stop)),
        }
    }

    pub(super) async fn lock_tables(&mut self, lock: &LockTable, alone: bool) -> Result<()> {
        if alone && !self.transaction.is_open() {
            return Err(SqlError::new(
                SqlState::NO_ACTIVE_SQL_TRANSACTION,
                "LOCK TABLE can only be used in transaction blocks",
            ));
        }
        let mode = mode_of(lock.mode);
        if self.is_read_only() && mode > ObjectMode::RowShare {
            return Err(SqlError::new(
                SqlState::READ_ONLY_SQL_TRANSACTION,
                "cannot execute LOCK TABLE in a read-only transaction",
            ));
        }
        let catalog = self.host().catalog.catalog.clone();
        let path = self.search_path();
        let mut tables: Vec<(TreeId, String)> = Vec::new();
        for name in &lock.tables {
            let table = catalog.require_table(name, &path)?;
            if table.kind == TableKind::View {
                return Err(SqlError::unsupported("LOCK TABLE of a view"));
            }
            if table.kind != TableKind::Table {
                return Err(SqlError::new(
                    SqlState::WRONG_OBJECT_TYPE,
                    format!("cannot lock relation \"{}\"", table.name),
                )
                .with_detail("This operation is not supported for system catalogs."));
            }
            // LockTableAclCheck.
            let changes = Privileges::UPDATE | Privileges::DELETE | Privileges::TRUNCATE;
            let enough = match mode {
                ObjectMode::AccessShare => Privileges::SELECT,
                ObjectMode::RowExclusive => changes | Privileges::INSERT,
                _ => changes,
            };
            self.require_one_of(table.oid, enough)?;
            tables.push((TreeId(table.tree), table.name.clone()));
        }
        self.enter_transaction(alone);
        let wait = if lock.nowait { LockWait::NoWait } else { LockWait::Wait };
        let program = LockTables::new(tables.iter().map(|(id, _)| *id).collect(), mode, wait);
        let options = SubmitOptions {
            transaction: self.transaction.interactive(),
            client: Some(&self.entry().engine),
            ..SubmitOptions::default()
        };
        let submission = self.server.engine.submit(program, options);
        let completed = self.cancellable(submission).await;
        match completed.outcome.result {
            Ok(()) => Ok(()),
            Err(Stop::LockNotAvailable) if completed.program.refused.is_some() => {
                let refused = completed.program.refused;
                let name = tables.iter().find(|(id, _)| Some(*id) == refused).map(|(_, name)| name.as_str());
                Err(SqlError::new(
                    SqlState::LOCK_NOT_AVAILABLE,
                    format!("could not obtain lock on relation \"{}\"", name.unwrap_or_default()),
                ))
            }
            Err(Stop::Recompile) => {
                Err(SqlError::new(SqlState::UNDEFINED_TABLE, "a table to be locked was dropped meanwhile"))
            }
            Err(stop) => Err(self.stop_error(stop)),
        }
    }
}
