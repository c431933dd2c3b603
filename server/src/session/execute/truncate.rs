//! TRUNCATE of tables with TRUNCATE triggers: they fire before and after, in one transaction with it.

use std::sync::Arc;

use archipel_engine::DdlOp;
use archipel_engine::id::TreeId;
use archipel_planner::bound::{BoundDelete, BoundStatement};
use archipel_planner::ddl::{named_for_truncate, require_user_table, truncated_tables};
use archipel_sql::ast::{TransactionModes, Truncate};
use archipel_sql::catalog::names::quote_qualified;
use archipel_sql::catalog::{Privileges, Table, TableRef, Trigger, TriggerEvent};
use archipel_sql::datum::Datum;
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::parser::parse_statement;

use crate::session::Session;
use crate::session::definition::source::Source;
use crate::statement::{Origin, Prepared};
use crate::wire::output::Severity;

/// What a TRUNCATE empties.
pub(super) struct Truncated {
    /// All of it.
    tables: Vec<TableRef>,
    /// What CASCADE adds to the tables it names.
    reached: Vec<TableRef>,
}

impl Session {
    /// The tables a TRUNCATE empties.
    pub(super) fn truncated(&mut self, truncate: &Truncate) -> Result<Truncated> {
        let path = self.search_path();
        let catalog = self.catalog_state().catalog.clone();
        let mut named = Vec::with_capacity(truncate.tables.len());
        for name in &truncate.tables {
            let table = catalog.require_table(name, &path)?;
            require_user_table(&table)?;
            self.require_one_of(table.oid, Privileges::TRUNCATE)?;
            named.push(table);
        }
        let named = named_for_truncate(&catalog, named, &truncate.only)?;
        let tables = truncated_tables(&catalog, &named, truncate.cascade)?;
        for table in tables.iter().filter(|table| !named.iter().any(|named| named.oid == table.oid)) {
            self.require_one_of(table.oid, Privileges::TRUNCATE)?;
        }
        let reached = tables.iter().filter(|table| !named.iter().any(|named| named.oid == table.oid));
        let reached = reached.cloned().collect();
        Ok(Truncated { tables, reached })
    }

    pub(in crate::session) fn fires_truncate(&mut self, truncate: &Truncate) -> Result<bool> {
        let replica = self.settings.effective().replica;
        let fires = |table: &TableRef| {
            let mut triggers = table.triggers.iter();
            triggers.any(|trigger| fires_at_truncate(trigger, table, replica))
        };
        Ok(self.truncated(truncate)?.tables.iter().any(fires))
    }

    pub(in crate::session) async fn truncate_with_triggers(
        &mut self,
        truncate: &Truncate,
        alone: bool,
    ) -> Result<String> {
        if self.joins_transaction(alone) {
            return self.truncate_and_fire(truncate).await;
        }
        self.commit_implicit().await?;
        self.begin(&TransactionModes::default())?;
        match self.truncate_and_fire(truncate).await {
            Ok(tag) => {
                self.commit_transaction().await?;
                Ok(tag)
            }
            Err(error) => {
                self.rollback_transaction().await;
                Err(error)
            }
        }
    }

    async fn truncate_and_fire(&mut self, truncate: &Truncate) -> Result<String> {
        let Truncated { tables, reached } = self.truncated(truncate)?;
        self.tell_reached(&reached);
        self.lock_emptied(&tables).await?;
        self.fire_truncate(&tables, true).await?;
        self.delete_all_rows(&tables).await?;
        self.restart_identities(truncate, &tables).await?;
        self.fire_truncate(&tables, false).await?;
        Ok("TRUNCATE TABLE".to_owned())
    }

    /// Keeps everybody else from the tables until the transaction ends.
    async fn lock_emptied(&mut self, tables: &[TableRef]) -> Result<()> {
        let stored = tables.iter().filter(|table| table.is_stored());
        let trees = stored.map(|table| DdlOp::Truncate(TreeId(table.tree)));
        let operations: Vec<DdlOp> = trees.collect();
        let wanted = self.locks_of(operations.iter().map(|operation| (operation, None)), None);
        self.lock_in_block(wanted).await
    }

    /// RESTART IDENTITY, if it was asked for.
    async fn restart_identities(&mut self, truncate: &Truncate, tables: &[TableRef]) -> Result<()> {
        if !truncate.restart_identity {
            return Ok(());
        }
        let catalog = self.catalog_state().catalog.clone();
        for sequence in tables.iter().flat_map(|table| catalog.owned_sequences(table.oid)) {
            let name = quote_qualified(&sequence.schema, &sequence.name);
            let restart = parse_statement(&format!("ALTER SEQUENCE {name} RESTART"))?;
            Box::pin(self.stage_definition(&Source::Statement(Arc::new(restart), Arc::from("")))).await?;
        }
        Ok(())
    }

    fn tell_reached(&mut self, reached: &[TableRef]) {
        for reached in reached {
            let message = format!("truncate cascades to table \"{}\"", reached.name);
            self.notice(Severity::Notice, &SqlError::new(SqlState::SUCCESSFUL_COMPLETION, message));
        }
    }

    /// TRUNCATE in a transaction block, of tables without triggers of it.
    pub(in crate::session) async fn truncate_in_block(&mut self, truncate: &Truncate) -> Result<()> {
        let Truncated { tables, reached } = self.truncated(truncate)?;
        self.tell_reached(&reached);
        self.lock_emptied(&tables).await?;
        self.delete_all_rows(&tables).await?;
        self.restart_identities(truncate, &tables).await
    }

    /// TRUNCATE in a transaction block: rows go as by DELETE, with the block's other changes. DELETE
    /// triggers do not answer to it.
    async fn delete_all_rows(&mut self, tables: &[TableRef]) -> Result<()> {
        // What references one of them is one of them.
        for table in tables.iter().filter(|table| table.is_stored()) {
            let prepared = self.prepare_emptying(table)?;
            self.enter_transaction(false);
            self.run_whole(&prepared).await?;
            self.transaction.note_emptied(table.oid);
        }
        Ok(())
    }

    /// Compiles a DELETE of all rows that no trigger answers to.
    pub(crate) fn prepare_emptying(&mut self, table: &TableRef) -> Result<Arc<Prepared>> {
        let untriggered = Table { triggers: Vec::new(), ..(**table).clone() };
        let delete = || {
            let table = Arc::new(untriggered.clone());
            BoundStatement::Delete(BoundDelete {
                table,
                alias: None,
                family: None,
                numbered: None,
                using: None,
                filter: None,
                returning: None,
                alone: true,
            })
        };
        let plan = self.compile_rows(delete())?;
        Ok(self.prepared_code(Origin::Emptied(table.clone()), "", delete(), plan.code))
    }

    async fn fire_truncate(&mut self, tables: &[TableRef], before: bool) -> Result<()> {
        for table in tables {
            let replica = self.settings.effective().replica;
            let fires =
                |trigger: &&Trigger| trigger.before == before && fires_at_truncate(trigger, table, replica);
            for trigger in table.triggers.iter().filter(fires) {
                let rows = [Datum::Null, Datum::Null];
                self.fire(table, trigger.oid, TriggerEvent::Truncate, rows, true).await?;
            }
        }
        Ok(())
    }
}

/// Whether a trigger fires in this session when its table is emptied.
fn fires_at_truncate(trigger: &Trigger, table: &TableRef, replica: bool) -> bool {
    trigger.fires_in().session(replica) && trigger.answers(TriggerEvent::Truncate, table, None)
}
