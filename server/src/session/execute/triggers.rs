//! Triggers that the session fires itself: those of TRUNCATE, and constraint triggers that were put
//! off. All others fire inside the statement they answer to.

use std::sync::Arc;

use archipel_planner::native::TriggerPart;
use archipel_sql::catalog::{TableRef, TriggerEvent};
use archipel_sql::datum::Datum;
use archipel_sql::error::{Result, SqlError};
use archipel_sql::types::Oid;

use crate::encode::RowsTo;
use crate::run::call::TriggerCall;
use crate::session::Session;
use crate::statement::prepare::empty_query;
use crate::statement::{Body, Code, Origin, Prepared};

impl Session {
    /// Calls the function of a trigger, if its condition (where `asked`) lets it.
    pub(in crate::session) async fn fire(
        &mut self,
        table: &TableRef,
        trigger: Oid,
        event: TriggerEvent,
        rows: [Datum; 2],
        asked: bool,
    ) -> Result<()> {
        self.enter_transaction(false);
        let prepared = self.prepare_trigger(table, trigger, event, rows, asked)?;
        self.run_whole(&prepared).await
    }

    /// Compiles what [`Session::fire`] runs.
    pub(crate) fn prepare_trigger(
        &mut self,
        table: &TableRef,
        trigger: Oid,
        event: TriggerEvent,
        rows: [Datum; 2],
        asked: bool,
    ) -> Result<Arc<Prepared>> {
        let environment = self.environment();
        let linker = self.database.routines.linker(&environment);
        let found = table.triggers.iter().find(|known| known.oid == trigger);
        let found = found.ok_or_else(|| SqlError::internal("a trigger that is about to fire has gone"))?;
        let function = linker.link_trigger(table, found, event, TriggerPart::Function)?;
        let condition = match &found.condition {
            Some(_) if asked => Some(linker.link_trigger(table, found, event, TriggerPart::Condition)?),
            _ => None,
        };
        let origin = Origin::Trigger { table: table.clone(), trigger, event, asked };
        let code = Code::Trigger(TriggerCall { function, condition, rows });
        Ok(self.prepared_code(origin, "", empty_query(), code))
    }

    /// Runs what has neither parameters nor rows for anybody.
    pub(super) async fn run_whole(&mut self, prepared: &Arc<Prepared>) -> Result<()> {
        let Body::Rows(plan) = &prepared.body else { return Ok(()) };
        let run = self.statement_run(plan.clone(), Vec::new(), RowsTo::Nowhere);
        self.run_to_end(prepared, run).await.map(drop)
    }
}
