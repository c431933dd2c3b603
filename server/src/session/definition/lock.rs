//! LOCK TABLE, and the locks definitions take.

use std::sync::Arc;
use std::time::{Duration, Instant};

use archipel_engine::id::{TreeId, TxnId};
use archipel_engine::txn::{Interactive, Isolation};
use archipel_engine::{
    DdlOp, Engine, LockAdvisory, LockSequence, LockTables, LockTag, LockWait, ObjectLock, ObjectMode,
    Refused, Stop, SubmitOptions, TableMeta, WaitOn,
};
use archipel_sql::ast::{
    AlterTableAction, ColumnOption, LockTable, Statement, TableConstraintKind, TableLockMode,
};
use archipel_sql::catalog::{Privileges, TableKind};
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::types::Oid;

use super::operations::keeps_rows;
use super::source::Source;
use crate::session::Session;
use crate::statement::{Code, RowPlan};
use crate::system::relations::Relations;

/// How often CONCURRENTLY looks whether those it waits for have ended.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// How often it waits for those who use its table.
const CONCURRENT_PHASES: usize = 2;

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

/// The lock PostgreSQL's definitions take on a table that is there; `weaker` is what one asks for
/// that only adds to what is said of a table, whose rows and indexes stay.
fn lock_of(operation: &DdlOp, weaker: Option<ObjectMode>, engine: &Engine) -> Option<(LockTag, ObjectMode)> {
    let table = |tree: TreeId, mode| Some((LockTag::Table(tree), mode));
    match operation {
        DdlOp::CreateIndex { table: of, .. } => table(*of, ObjectMode::Share),
        DdlOp::AlterTable { def, .. } => {
            let indexes = |table: Arc<TableMeta>| table.def.indexes == def.indexes;
            let adds = keeps_rows(operation, engine) && engine.table(def.id).is_some_and(indexes);
            table(def.id, weaker.filter(|_| adds).unwrap_or(ObjectMode::AccessExclusive))
        }
        DdlOp::DropIndex { table: of, .. } => table(*of, ObjectMode::AccessExclusive),
        DdlOp::DropTable(tree) | DdlOp::Truncate(tree) => table(*tree, ObjectMode::AccessExclusive),
        DdlOp::AlterSequence { def, .. } => Some((LockTag::Sequence(def.id), ObjectMode::ShareRowExclusive)),
        DdlOp::DropSequence(id) => Some((LockTag::Sequence(*id), ObjectMode::AccessExclusive)),
        // Whoever copies a table, or fills an index, has locked it.
        DdlOp::CopyTable { .. }
        | DdlOp::BuildIndex { .. }
        | DdlOp::CatchUp { .. }
        | DdlOp::CreateTable(_)
        | DdlOp::CreateSequence(_) => None,
    }
}

/// The mode of a definition that needs less than to have its tables for itself, as PostgreSQL's
/// `AlterTableGetLockLevel` and `CreateTrigger` have it.
pub(super) fn weaker_mode(source: &Source) -> Option<ObjectMode> {
    let Source::Statement(statement, _) = source else { return None };
    match &**statement {
        // Of a table that a new one references.
        Statement::CreateTrigger(_) | Statement::CreateTable(_) => Some(ObjectMode::ShareRowExclusive),
        Statement::AlterTable(alter) => {
            let modes = alter.actions.iter().map(|action| match action {
                AlterTableAction::ValidateConstraint(_)
                | AlterTableAction::SetOptions(_)
                | AlterTableAction::SetColumnOption {
                    option: ColumnOption::Statistics(_) | ColumnOption::Estimates,
                    ..
                } => Some(ObjectMode::ShareUpdateExclusive),
                AlterTableAction::SetTrigger { .. }
                | AlterTableAction::AttachPartition { .. }
                | AlterTableAction::Inherit(_) => Some(ObjectMode::ShareRowExclusive),
                AlterTableAction::AddConstraint(constraint) => match &constraint.kind {
                    TableConstraintKind::ForeignKey { .. } => Some(ObjectMode::ShareRowExclusive),
                    _ => None,
                },
                _ => None,
            });
            modes.collect::<Option<Vec<_>>>()?.into_iter().max()
        }
        _ => None,
    }
}

impl Session {
    /// A lock as the detail of a deadlock names it.
    pub(in crate::session) fn describe_lock(&self, lock: ObjectLock) -> String {
        let what = match lock.tag {
            LockTag::Table(_) | LockTag::Sequence(_) => {
                let relations = Relations::of(&self.server);
                let known = relations.locked(lock.tag).map(|(database, relation)| (database.oid, relation));
                let (database, relation) = known.unwrap_or((self.database.oid, Oid(0)));
                format!("relation {relation} of database {database}")
            }
            LockTag::Advisory { database, first, second, two } => {
                format!("advisory lock [{database},{first},{second},{}]", if two { 2 } else { 1 })
            }
        };
        format!("{} on {what}", lock.mode.name())
    }

    /// Waits until nobody uses the tables that definitions change, and keeps others away until
    /// the answer is dropped.
    pub(super) async fn lock_for_definitions(
        &mut self,
        wanted: Vec<(LockTag, ObjectMode)>,
    ) -> Result<Option<Interactive>> {
        if wanted.is_empty() {
            return Ok(None);
        }
        let guard = self.guard();
        self.lock_also(&guard, wanted).await?;
        Ok(Some(guard))
    }

    /// The same, with what is held already.
    pub(super) async fn lock_also(
        &self,
        guard: &Interactive,
        wanted: Vec<(LockTag, ObjectMode)>,
    ) -> Result<()> {
        for (tag, mode) in wanted {
            self.lock_under(Some(guard), tag, mode).await?;
        }
        Ok(())
    }

    /// Waits for what a definition has ended at. A lock is kept with those that definitions have; of a
    /// row it is waited for those who have it, since it is the definition's run that has to lock it.
    pub(super) async fn wait_at_refused(
        &mut self,
        locks: &mut Option<Interactive>,
        refused: Refused,
    ) -> Result<()> {
        let guard = locks.take().unwrap_or_else(|| self.guard());
        let waited = match refused.on {
            WaitOn::Object(lock) => self.lock_under(Some(&guard), lock.tag, lock.mode).await,
            WaitOn::Row(_) => {
                let waited = self.wait_for_ends(&guard, refused.on, refused.blockers).await;
                self.waits_no_more(&guard);
                // Who ends lets go a little later than it is said to have ended.
                tokio::time::sleep(LOOK_EVERY).await;
                waited
            }
        };
        *locks = Some(guard);
        waited
    }

    /// The locks that definitions take on tables that are there: the one `named` first, the others
    /// in their order.
    pub(in crate::session) fn locks_of<'o>(
        &self,
        operations: impl Iterator<Item = (&'o DdlOp, Option<ObjectMode>)>,
        named: Option<LockTag>,
    ) -> Vec<(LockTag, ObjectMode)> {
        let engine = &self.server.engine;
        let mut wanted: Vec<(LockTag, ObjectMode)> =
            operations.filter_map(|(operation, weaker)| lock_of(operation, weaker, engine)).collect();
        wanted.sort_unstable();
        // The strongest mode of each, which the order puts last.
        wanted.reverse();
        wanted.dedup_by_key(|(tag, _)| *tag);
        wanted.retain(|(tag, _)| match tag {
            LockTag::Table(tree) => engine.table(*tree).is_some(),
            LockTag::Sequence(id) => engine.sequence(*id).is_some(),
            LockTag::Advisory { .. } => false,
        });
        wanted.reverse();
        // A statement locks what it names before what that refers to.
        wanted.sort_by_key(|(tag, _)| Some(*tag) != named);
        wanted
    }

    /// The table that a definition names.
    pub(super) fn named_table(&mut self, source: &Source) -> Option<LockTag> {
        let Source::Statement(statement, _) = source else { return None };
        let name = match &**statement {
            Statement::AlterTable(alter) => &alter.name,
            Statement::CreateTrigger(create) => &create.table,
            _ => return None,
        };
        let path = self.search_path();
        let catalog = self.catalog_state().catalog.clone();
        catalog.require_table(name, &path).ok().map(|table| LockTag::Table(TreeId(table.tree)))
    }

    /// A transaction that holds locks until it is dropped.
    fn guard(&self) -> Interactive {
        self.server.engine.begin_for(&self.entry().engine, Isolation::ReadCommitted, false)
    }

    /// Locks what is no row for a guard, or for the open transaction.
    async fn lock_under(&self, guard: Option<&Interactive>, tag: LockTag, mode: ObjectMode) -> Result<()> {
        let options = SubmitOptions {
            transaction: guard.or(self.transaction.interactive()),
            client: Some(&self.entry().engine),
            ..SubmitOptions::default()
        };
        let engine = &self.server.engine;
        let result = match tag {
            LockTag::Table(tree) => {
                let program = LockTables::new(vec![tree], mode, LockWait::Wait);
                self.cancellable(engine.submit(program, options)).await.outcome.result
            }
            LockTag::Sequence(id) => {
                self.cancellable(engine.submit(LockSequence { id, mode }, options)).await.outcome.result
            }
            LockTag::Advisory { .. } => {
                self.cancellable(engine.submit(LockAdvisory { tag, mode }, options)).await.outcome.result
            }
        };
        match result {
            // One that went meanwhile is missed when what it was locked for is planned.
            Ok(()) | Err(Stop::Recompile) => Ok(()),
            Err(stop) => Err(self.stop_error(stop)),
        }
    }

    /// Locks tables for the rest of the block, as its definitions do in PostgreSQL.
    pub(in crate::session) async fn lock_in_block(
        &mut self,
        wanted: Vec<(LockTag, ObjectMode)>,
    ) -> Result<()> {
        if !wanted.is_empty() {
            self.enter_transaction(false);
        }
        for (tag, mode) in wanted {
            self.lock_under(None, tag, mode).await?;
        }
        Ok(())
    }

    /// Waits for its turn at a table, and lets go of it unless there is a transaction to keep it:
    /// maintenance that has nothing to do here waits for whom PostgreSQL's would wait.
    pub(super) async fn wait_at(&mut self, tree: TreeId, mode: ObjectMode) -> Result<()> {
        if self.transaction.is_open() {
            return self.lock_in_block(vec![(LockTag::Table(tree), mode)]).await;
        }
        let guard = self.guard();
        self.lock_under(Some(&guard), LockTag::Table(tree), mode).await
    }

    /// As [`Session::wait_at`] for CONCURRENTLY: waits until all who use the table have ended their
    /// transactions, and keeps nobody from it but others of its kind. As PostgreSQL does before and
    /// after it builds, it then waits for those who came meanwhile.
    pub(super) async fn wait_for_users(&mut self, tree: TreeId) -> Result<()> {
        let guard = self.guard();
        self.lock_under(Some(&guard), LockTag::Table(tree), ObjectMode::ShareUpdateExclusive).await?;
        let lock = ObjectLock { tag: LockTag::Table(tree), mode: ObjectMode::ShareUpdateExclusive };
        let mut waited = Ok(());
        for _ in 0..CONCURRENT_PHASES {
            let users = self.users_of(tree);
            waited = self.wait_for_ends(&guard, WaitOn::Object(lock), users).await;
            if waited.is_err() {
                break;
            }
        }
        self.waits_no_more(&guard);
        waited
    }

    /// Nobody is told any more that a guard waits.
    fn waits_no_more(&self, guard: &Interactive) {
        self.entry().engine.tell_wait(None);
        self.server.engine.waits().forget(guard.id());
    }

    /// The open transactions of others that have used a table.
    fn users_of(&self, tree: TreeId) -> Vec<TxnId> {
        let tag = LockTag::Table(tree);
        let held = self.server.engine.object_locks();
        let mut users = Vec::new();
        for session in self.server.sessions.list() {
            let Some((id, _)) = session.engine.transaction() else { continue };
            let weak = session.engine.weak_locks().iter().any(|(noted, _)| *noted == tag);
            let number = session.engine.number();
            let strong =
                held.iter().any(|view| view.granted && view.lock.tag == tag && view.client == number);
            if (weak || strong) && session.process_id != self.entry().process_id {
                users.push(id);
            }
        }
        users
    }

    /// Waits until these transactions have ended.
    async fn wait_for_ends(&self, guard: &Interactive, on: WaitOn, mut left: Vec<TxnId>) -> Result<()> {
        let effective = self.settings.effective();
        let limit = effective.lock_timeout_ms;
        let deadlock_timeout = Duration::from_millis(effective.deadlock_timeout_ms);
        let mut next_search = deadlock_timeout;
        let begun = Instant::now();
        let mut lost = std::pin::pin!(self.client_lost());
        loop {
            let sessions = self.server.sessions.list();
            let is_starved = |id: &TxnId| self.server.engine.is_starved(*id);
            let is_open = |id: &TxnId| {
                sessions
                    .iter()
                    .any(|session| session.engine.transaction().is_some_and(|(open, _)| open == *id))
            };
            left.retain(|id| is_starved(id) || is_open(id));
            if left.is_empty() {
                return Ok(());
            }
            // Whoever closes a cycle of waits finds it.
            self.server.engine.waits().publish(guard.id(), left.clone());
            self.entry().engine.tell_wait(Some((on.clone(), left.clone())));
            tokio::select! {
                biased;
                () = self.entry().cancel_asked() => return Err(self.entry().cancel_error()),
                () = &mut lost => return Err(self.entry().cancel_error()),
                () = tokio::time::sleep(LOOK_EVERY) => {}
            }
            if limit > 0 && begun.elapsed() >= Duration::from_millis(limit) {
                return Err(self.stop_error(Stop::LockNotAvailable));
            }
            if begun.elapsed() >= next_search {
                next_search += deadlock_timeout;
                // They may have begun to wait for what the guard holds, and looked, before this waited. Who is
                // starved looks again, and lets go.
                if !left.iter().all(is_starved) && self.ends_a_cycle(guard) {
                    return Err(self.stop_error(Stop::Deadlock));
                }
            }
        }
    }

    /// Whether a guard that waits is part of a cycle of waits, which is no more then.
    fn ends_a_cycle(&self, guard: &Interactive) -> bool {
        let waits = self.server.engine.waits();
        let own = self.entry().engine.wait();
        let cycle = {
            let _alone = waits.search();
            waits.break_cycle(guard.id())
        };
        let Some(cycle) = cycle else { return false };
        *self.deadlock.borrow_mut() = Some(self.describe_cycle(&cycle, own));
        true
    }

    /// Takes the ACCESS SHARE locks of a query over a snapshot: for the open transaction, or
    /// until the answer is dropped. A query on its own takes none while no table is locked
    /// against anybody.
    pub(in crate::session) async fn lock_for_reading(
        &mut self,
        plan: &RowPlan,
    ) -> Result<Option<Interactive>> {
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

    pub(in crate::session) async fn lock_tables(&mut self, lock: &LockTable, alone: bool) -> Result<()> {
        if alone && !self.transaction.is_open() {
            return Err(SqlError::new(
                SqlState::NO_ACTIVE_SQL_TRANSACTION,
                "LOCK TABLE can only be used in transaction blocks",
            ));
        }
        let mode = mode_of(lock.mode);
        let catalog = self.host().catalog.catalog.clone();
        let path = self.search_path();
        let mut tables: Vec<(TreeId, String)> = Vec::new();
        for name in &lock.tables {
            self.require_schema_of(name)?;
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
            // Its heirs are locked with it; a partitioned table is locked by its partitions.
            let family = std::iter::once(table.clone()).chain(catalog.descendants(table.oid));
            for table in family.filter(|table| table.is_stored()) {
                let tree = TreeId(table.tree);
                if !tables.iter().any(|(known, _)| *known == tree) {
                    tables.push((tree, table.name.clone()));
                }
            }
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
