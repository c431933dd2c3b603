//! The latches of definitions: that of a database, and that of what all databases share.
//!
//! Definitions of one database run one at a time, and so do those that change roles, databases and what is
//! said of them, of whichever database. Who drops a role looks for it in all databases: nobody may give it
//! anything in one of them until it is gone.
//!
//! Order: the shared latch first, then those of databases in the order of their oids. Nobody who holds a
//! database's waits for the shared one.
//!
//! A template's latch is held while its rows are copied, and a database's while a table of it is written anew:
//! minutes, perhaps. Whoever needs such a one lets all others go while it waits for it, lest what is shared be
//! shut to everybody meanwhile, and begins again:
//!
//! ```text
//!   DROP ROLE      shared, a, b?busy ─► lets go ─► waits for b, lets it go ─► shared, a, b ─► plans
//!   CREATE ROLE    (in a)               shared, a ─► done
//! ```

use std::sync::Arc;
use std::time::Duration;

use archipel_engine::Stop;
use archipel_sql::ast::{CommentObject, GrantObjects, Statement};
use archipel_sql::catalog::{Catalog, CatalogChange, ObjectKind};
use archipel_sql::error::Result;
use tokio::sync::OwnedMutexGuard;

use super::source::Source;
use crate::database::Database;
use crate::session::Session;

/// How often latches are asked for that others may take before; then their turns are waited for.
const ROUNDS: usize = 8;

/// What a definition may change; each has what those before it have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Scope {
    /// What is its database's own.
    Own,
    /// What all databases share.
    Shared,
    /// What objects of any database hang on.
    All,
}

impl Scope {
    /// That of a definition, by its statement.
    pub(super) fn of(source: &Source) -> Scope {
        let (Source::Statement(statement, _) | Source::System(statement)) = source else { return Scope::Own };
        let shared = match &**statement {
            Statement::DropRole(_) => return Scope::All,
            Statement::CreateRole(_)
            | Statement::AlterRole(_)
            | Statement::GrantRole(_)
            | Statement::AlterDatabase(_)
            | Statement::AlterRoleSetting(_)
            | Statement::OwnedObjects(_) => true,
            Statement::Grant(grant) => {
                matches!(grant.objects, GrantObjects::Databases(_) | GrantObjects::Parameters(_))
            }
            Statement::Comment(comment) => {
                matches!(comment.object, CommentObject::Role(_) | CommentObject::Database(_))
            }
            _ => false,
        };
        if shared { Scope::Shared } else { Scope::Own }
    }

    /// That of definitions, by what they change.
    pub(super) fn of_changes<'c>(changes: impl IntoIterator<Item = &'c CatalogChange>) -> Scope {
        let scopes = changes.into_iter().map(|change| match change {
            CatalogChange::Drop(ObjectKind::Role, _) => Scope::All,
            change if change.is_shared() => Scope::Shared,
            _ => Scope::Own,
        });
        scopes.max().unwrap_or(Scope::Own)
    }
}

/// What is held while a definition is planned, run and published.
pub(super) struct Latches {
    scope: Scope,
    _shared: Option<OwnedMutexGuard<()>>,
    _databases: Vec<OwnedMutexGuard<()>>,
}

impl Latches {
    /// Whether all that these changes are about is held.
    pub(super) fn cover(&self, changes: &[CatalogChange]) -> bool {
        self.scope >= Scope::of_changes(changes)
    }
}

impl Session {
    /// The catalogs in force in the other databases.
    pub(super) fn other_catalogs(&self) -> Vec<Catalog> {
        let others = self.server.databases.all().into_iter();
        let others = others.filter(|other| other.oid != self.database.oid);
        others.map(|other| other.catalog.current().catalog.clone()).collect()
    }

    /// Waits for the latches of definitions of this scope.
    pub(super) async fn latch_definitions(&self, scope: Scope) -> Result<Latches> {
        self.latch(scope, &self.database).await
    }

    /// Waits for the latch of another database.
    pub(super) async fn latch_own(&self, database: &Arc<Database>) -> Result<Latches> {
        self.latch(Scope::Own, database).await
    }

    /// Waits for the latches of what all databases share and of a database, which comes, goes or is copied.
    pub(super) async fn latch_database(&self, database: &Arc<Database>) -> Result<Latches> {
        self.latch(Scope::Shared, database).await
    }

    async fn latch(&self, scope: Scope, database: &Arc<Database>) -> Result<Latches> {
        let latched = async {
            // Who waits for its own database alone is in nobody's way.
            let rounds = if scope == Scope::Own { 0 } else { ROUNDS };
            for _ in 0..rounds {
                match self.try_latch(scope, database).await {
                    Ok(latches) => return latches,
                    Err(busy) => drop(busy.definitions.clone().lock_owned().await),
                }
            }
            // Others come in between again and again: it keeps its turns from now on.
            let shared = self.latch_shared(scope).await;
            let mut held = Vec::new();
            for database in self.databases_of(scope, database) {
                held.push(database.definitions.clone().lock_owned().await);
            }
            Latches { scope, _shared: shared, _databases: held }
        };
        self.waiting_for_lock(latched).await
    }

    async fn latch_shared(&self, scope: Scope) -> Option<OwnedMutexGuard<()>> {
        match scope {
            Scope::Own => None,
            Scope::Shared | Scope::All => {
                Some(self.database.catalog.shared().definitions.clone().lock_owned().await)
            }
        }
    }

    /// The databases whose latches a scope needs. Nobody makes or drops one while the shared latch is held.
    fn databases_of(&self, scope: Scope, database: &Arc<Database>) -> Vec<Arc<Database>> {
        match scope {
            Scope::Own | Scope::Shared => vec![database.clone()],
            Scope::All => self.server.databases.all(),
        }
    }

    /// The latches of a scope, of which none of a database is waited for: answers the one that is busy.
    async fn try_latch(
        &self,
        scope: Scope,
        database: &Arc<Database>,
    ) -> std::result::Result<Latches, Arc<Database>> {
        let shared = self.latch_shared(scope).await;
        let mut held = Vec::new();
        for database in self.databases_of(scope, database) {
            match database.definitions.clone().try_lock_owned() {
                Ok(latch) => held.push(latch),
                Err(_) => return Err(database),
            }
        }
        Ok(Latches { scope, _shared: shared, _databases: held })
    }

    /// Waits for a latch or a door, as long as `lock_timeout` lets it; cancelling the statement ends it, too.
    pub(super) async fn waiting_for_lock<T>(&self, wait: impl Future<Output = T>) -> Result<T> {
        let limit = self.settings.effective().lock_timeout_ms;
        let out_of_time = async {
            match limit {
                0 => std::future::pending().await,
                limit => tokio::time::sleep(Duration::from_millis(limit)).await,
            }
        };
        tokio::select! {
            biased;
            waited = wait => Ok(waited),
            () = self.entry().cancel_asked() => Err(self.entry().cancel_error()),
            () = self.client_lost() => Err(self.entry().cancel_error()),
            () = out_of_time => Err(self.stop_error(Stop::LockNotAvailable)),
        }
    }
}

#[cfg(test)]
mod tests {
    use archipel_sql::catalog::{Object, Role, Schema};
    use archipel_sql::types::Oid;

    use super::*;

    fn of(text: &str) -> Scope {
        let statement = archipel_sql::parser::parse_statement(text).expect("a statement");
        Scope::of(&Source::System(Arc::new(statement)))
    }

    #[test]
    fn statements_say_what_they_may_change() {
        for text in ["CREATE TABLE t (a int)", "GRANT SELECT ON t TO a", "COMMENT ON SCHEMA s IS 'x'"] {
            assert_eq!(of(text), Scope::Own, "{text}");
        }
        for text in [
            "CREATE ROLE a",
            "ALTER ROLE a SET search_path = s",
            "ALTER ROLE a RENAME TO b",
            "GRANT a TO b",
            "REVOKE a FROM b",
            "GRANT CREATE ON DATABASE archipel TO a",
            "GRANT SET ON PARAMETER work_mem TO a",
            "ALTER ROLE ALL SET work_mem = '5MB'",
            "COMMENT ON ROLE a IS 'x'",
            "COMMENT ON DATABASE archipel IS 'x'",
            "ALTER DATABASE archipel SET search_path = s",
            "ALTER ROLE a IN DATABASE archipel RESET ALL",
            "REASSIGN OWNED BY a TO b",
            "DROP OWNED BY a",
        ] {
            assert_eq!(of(text), Scope::Shared, "{text}");
        }
        assert_eq!(of("DROP ROLE a"), Scope::All);
    }

    #[test]
    fn changes_need_what_the_widest_of_them_needs() {
        let schema = CatalogChange::Put(Object::Schema(Schema { oid: Oid(20_000), name: "s".to_owned() }));
        let role = CatalogChange::Put(Object::Role(Role::new(Oid(20_001), "a")));
        let dropped = CatalogChange::Drop(ObjectKind::Role, Oid(20_001));
        assert_eq!(Scope::of_changes(&[]), Scope::Own);
        assert_eq!(Scope::of_changes(std::slice::from_ref(&schema)), Scope::Own);
        assert_eq!(Scope::of_changes(&[schema.clone(), role.clone()]), Scope::Shared);
        assert_eq!(Scope::of_changes(&[schema, dropped, role]), Scope::All);
    }
}
