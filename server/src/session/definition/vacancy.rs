//! Waiting until nobody else is in a database: whoever copies, renames or drops one shuts its door and lets
//! those who are leaving go.

use std::sync::Arc;
use std::time::{Duration, Instant};

use archipel_engine::Stop;
use archipel_planner::ddl::Copies;
use archipel_planner::ddl::database::require_database;
use archipel_sql::ast::{AlterDatabase, DatabaseAction, Statement};
use archipel_sql::catalog::role::SIGNAL_BACKEND;
use archipel_sql::error::{Result, SqlError, SqlState};

use super::source::Source;
use crate::database::Database;
use crate::database::door::Shut;
use crate::session::Session;

/// How long others may take to leave (PostgreSQL's CountOtherDBBackends).
const OTHERS_LEAVE_WITHIN: Duration = Duration::from_secs(5);
const LOOKED_FOR_EVERY: Duration = Duration::from_millis(10);

/// 55006; `what` is "source " where a database is copied.
fn busy(what: &str, name: &str, others: usize) -> SqlError {
    let message = format!("{what}database \"{name}\" is being accessed by other users");
    let detail = match others {
        1 => "There is 1 other session using the database.".to_owned(),
        others => format!("There are {others} other sessions using the database."),
    };
    SqlError::new(SqlState::OBJECT_IN_USE, message).with_detail(detail)
}

impl Session {
    /// Waits for something that the statement may be cancelled at.
    async fn waiting<T>(&self, wait: impl Future<Output = T>) -> Result<T> {
        tokio::select! {
            biased;
            waited = wait => Ok(waited),
            () = self.entry().cancel_asked() => Err(self.entry().cancel_error()),
            () = self.client_lost() => Err(self.entry().cancel_error()),
        }
    }

    /// Lets nobody into a database any more.
    pub(super) async fn shut_door(&self, database: &Arc<Database>) -> Result<Shut> {
        self.waiting_for_lock(database.door.shut()).await
    }

    /// Waits until nobody else is in a database, for a while: 55006 if somebody stays. Its door is shut.
    pub(super) async fn wait_for_others(&self, database: &Database, what: &str) -> Result<()> {
        let began = Instant::now();
        loop {
            let others = self.server.sessions.others_in(database.oid, self.entry().process_id).len();
            if others == 0 {
                return Ok(());
            }
            if began.elapsed() >= OTHERS_LEAVE_WITHIN {
                return Err(busy(what, &database.name(), others));
            }
            self.waiting(tokio::time::sleep(LOOKED_FOR_EVERY)).await?;
        }
    }

    /// WITH (FORCE): ends the sessions of others in a database, or none of them where the role in force may
    /// not end one (TerminateOtherDBBackends).
    pub(super) fn end_others(&mut self, database: &Database) -> Result<()> {
        let host = self.host();
        let rights = host.rights();
        let others = self.server.sessions.others_in(database.oid, self.entry().process_id);
        for other in &others {
            let role = rights.catalog.role_by_oid(other.role);
            let message = if role.is_some_and(|role| role.superuser) && !rights.is_superuser() {
                "must be a superuser to terminate superuser process"
            } else if !rights.acts_as(other.role) && !rights.acts_as(SIGNAL_BACKEND) {
                "must be a member of the role whose process is being terminated or member of pg_signal_backend"
            } else {
                continue;
            };
            return Err(SqlError::new(SqlState::INSUFFICIENT_PRIVILEGE, message));
        }
        for other in &others {
            self.server.sessions.terminate_backend(other.process_id);
        }
        Ok(())
    }

    /// ALTER DATABASE … RENAME: what is wrong with it is said at once; then nobody may be in the database.
    pub(super) async fn vacate_renamed(
        &mut self,
        statement: &Statement,
        source: &Source,
    ) -> Result<Option<Shut>> {
        let Statement::AlterDatabase(AlterDatabase { name, action: DatabaseAction::RenameTo(_) }) = statement
        else {
            return Ok(None);
        };
        self.require_writable(statement.tag())?;
        let catalog = self.catalog_state().catalog.clone();
        self.plan_definition(source, &catalog, &Copies::default())?;
        let renamed = require_database(name, &catalog)?;
        let Some(database) = self.server.databases.numbered(renamed.oid) else { return Ok(None) };
        // Those that the block has shut before it would wait for itself at, or for another that waits for them.
        let holds = self.transaction.staged().map_or(&[][..], |staged| &staged.doors[..]);
        if holds.iter().any(|door| door.is_of(&database.door)) {
            return Ok(None);
        }
        let shut = match holds.is_empty() {
            true => self.shut_door(&database).await?,
            false => {
                let deadlock = Duration::from_millis(self.settings.effective().deadlock_timeout_ms);
                let shut = tokio::time::timeout(deadlock, self.shut_door(&database)).await;
                shut.map_err(|_| self.stop_error(Stop::Deadlock))??
            }
        };
        self.wait_for_others(&database, "").await?;
        Ok(Some(shut))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_and_several_who_are_in_the_way_are_told() {
        let error = busy("source ", "d", 1);
        assert_eq!(error.message(), "source database \"d\" is being accessed by other users");
        assert_eq!(error.fields().detail.as_deref(), Some("There is 1 other session using the database."));
        let error = busy("", "d", 3);
        assert_eq!(error.message(), "database \"d\" is being accessed by other users");
        assert_eq!(error.fields().detail.as_deref(), Some("There are 3 other sessions using the database."));
    }
}
