//! The latches of definitions: that of a database, and that of what all databases share.
//!
//! Definitions of one database run one at a time, and so do those that change roles, databases and what is
//! said of them, of whichever database. Order: the shared latch first, then those of databases in the order of
//! their oids. Nobody who holds a database's waits for the shared one.

use archipel_sql::ast::{CommentObject, GrantObjects, Statement};
use archipel_sql::catalog::CatalogChange;
use archipel_sql::error::Result;
use tokio::sync::MutexGuard;

use super::source::Source;
use crate::database::Database;
use crate::session::Session;

/// What is held while a definition is planned, run and published.
pub(super) struct Latches<'d> {
    shared: Option<MutexGuard<'d, ()>>,
    _own: MutexGuard<'d, ()>,
}

impl Latches<'_> {
    /// Whether all that these changes are about is held.
    pub(super) fn cover(&self, changes: &[CatalogChange]) -> bool {
        self.shared.is_some() || !any_shared(changes)
    }
}

/// Whether changes are about what all databases share.
pub(super) fn any_shared(changes: &[CatalogChange]) -> bool {
    changes.iter().any(CatalogChange::is_shared)
}

/// Whether a definition may change what all databases share.
pub(super) fn may_change_shared(source: &Source) -> bool {
    let (Source::Statement(statement, _) | Source::System(statement)) = source else { return false };
    match &**statement {
        Statement::CreateRole(_)
        | Statement::AlterRole(_)
        | Statement::DropRole(_)
        | Statement::GrantRole(_)
        | Statement::OwnedObjects(_) => true,
        Statement::Grant(grant) => matches!(grant.objects, GrantObjects::Databases(_)),
        Statement::Comment(comment) => {
            matches!(comment.object, CommentObject::Role(_) | CommentObject::Database(_))
        }
        _ => false,
    }
}

impl Session {
    /// Waits for the latch of the database's definitions, with `shared` after that of what all databases share.
    pub(super) async fn latch_definitions<'d>(
        &self,
        database: &'d Database,
        shared: bool,
    ) -> Result<Latches<'d>> {
        let latched = async {
            let shared = match shared {
                true => Some(database.catalog.shared().definitions.lock().await),
                false => None,
            };
            Latches { shared, _own: database.definitions.lock().await }
        };
        tokio::select! {
            biased;
            latches = latched => Ok(latches),
            () = self.entry().cancel_asked() => Err(self.entry().cancel_error()),
            () = self.client_lost() => Err(self.entry().cancel_error()),
        }
    }
}
