//! Temporary relations: their schema is the session's own, stands first in its search path from
//! the first of them on, and goes with the session.

use std::sync::Arc;

use archipel_sql::ast::{
    CreateSequence, CreateTable, CreateTableAs, CreateView, Drop, ObjectWord, QualifiedName, Statement,
};
use archipel_sql::catalog::names::{quote_qualified, temporary_schema};
use archipel_sql::catalog::{OnCommit, Persistence, TableRef};
use archipel_sql::error::Result;

use super::source::Source;
use crate::encode::Formats;
use crate::run::statement::RowsLeave;
use crate::session::Session;
use crate::statement::Body;

/// The name of what a definition makes, and whether it calls it TEMPORARY.
fn made_by(statement: &Statement) -> Option<(bool, &QualifiedName)> {
    let (temporary, name) = match statement {
        Statement::CreateTable(create) => {
            let CreateTable { persistence, name, .. } = &**create;
            (*persistence == Persistence::Temporary, name)
        }
        Statement::CreateTableAs(create) => {
            let CreateTableAs { persistence, name, .. } = &**create;
            (*persistence == Persistence::Temporary, name)
        }
        Statement::CreateView(create) => {
            let CreateView { temporary, name, .. } = &**create;
            (*temporary, name)
        }
        Statement::CreateSequence(create) => {
            let CreateSequence { persistence, name, .. } = create;
            (*persistence == Persistence::Temporary, name)
        }
        Statement::CreateRoutine(create) => (false, &create.name),
        Statement::CreateAggregate(create) => (false, &create.name),
        Statement::CreateType(create) => (false, &create.name),
        Statement::CreateDomain(create) => (false, &create.name),
        _ => return None,
    };
    Some((temporary, name))
}

/// DROP SCHEMA … CASCADE of a session's temporary schema.
pub(crate) fn drop_schema_statement(schema: &str) -> Statement {
    Statement::Drop(Drop {
        kind: ObjectWord::Schema,
        names: vec![QualifiedName::bare(schema)],
        if_exists: true,
        cascade: true,
        concurrently: false,
    })
}

impl Session {
    /// The name the session's temporary schema has or would have.
    pub(super) fn temporary_schema_name(&self) -> String {
        format!("pg_temp_{}", self.entry().process_id)
    }

    /// Whether a definition makes something temporary.
    pub(super) fn makes_temporary(&mut self, statement: &Statement) -> bool {
        made_by(statement).is_some_and(|(temporary, name)| temporary || self.is_temporary_target(name))
    }

    /// Whether what is made under this name is the session's own without being called TEMPORARY.
    pub(super) fn is_temporary_target(&mut self, name: &QualifiedName) -> bool {
        let path = self.search_path();
        self.catalog_state().catalog.is_temporary_target(name, &path)
    }

    /// Puts the temporary schema into the search path.
    pub(super) fn use_temporary_schema(&mut self) -> Result<()> {
        let path = &self.settings.effective().search_path;
        if temporary_schema(path).is_some() {
            return Ok(());
        }
        let name = self.temporary_schema_name();
        self.change_settings(|all| {
            all.set_temporary_schema(&name);
            Ok(())
        })
    }

    /// Drops what is temporary as the session ends. It waits for whoever defines something meanwhile, whatever
    /// the session has said of waits, and although its client has gone.
    pub(in crate::session) async fn drop_temporary_at_end(&mut self) {
        self.leaves.set(true);
        let unlimited = self.change_settings(|all| all.set("lock_timeout", Some("0"), false));
        let dropped = match unlimited {
            Ok(()) => self.drop_temporary().await,
            Err(error) => Err(error),
        };
        if let Err(error) = dropped {
            tracing::warn!("temporary tables of a session that ended could not be dropped: {error}");
        }
    }

    /// Drops what is temporary: at the end of the session, and for DISCARD.
    pub(in crate::session) async fn drop_temporary(&mut self) -> Result<()> {
        let Some(name) = temporary_schema(&self.settings.effective().search_path).map(str::to_owned) else {
            return Ok(());
        };
        if !self.catalog_state().catalog.schema_exists(&name) {
            return Ok(());
        }
        let source = Source::System(Arc::new(drop_schema_statement(&name)));
        self.run_definition(source, false).await.map(drop)
    }

    /// The session's tables whose rows do not outlive a transaction.
    fn short_lived(&mut self) -> Vec<TableRef> {
        let path = self.settings.effective().search_path.clone();
        let Some(schema) = temporary_schema(&path) else { return Vec::new() };
        let catalog = self.catalog_state().catalog.clone();
        catalog
            .tables()
            .filter(|table| table.schema == schema && table.on_commit != OnCommit::PreserveRows)
            .cloned()
            .collect()
    }

    /// ON COMMIT DELETE ROWS and ON COMMIT DROP, as the last part of the transaction.
    pub(in crate::session) async fn end_temporary(&mut self) -> Result<()> {
        for table in self.short_lived() {
            let name = quote_qualified(&table.schema, &table.name);
            if table.on_commit == OnCommit::Drop {
                let statement =
                    Arc::new(archipel_sql::parser::parse_statement(&format!("DROP TABLE {name}"))?);
                let source = Source::System(statement);
                if self.transaction.is_open() {
                    Box::pin(self.stage_definition(&source)).await?;
                } else {
                    Box::pin(self.run_definition(source, false)).await?;
                }
                continue;
            }
            let text: Arc<str> = format!("DELETE FROM {name}").into();
            let prepared = self.prepare_text(&text, &[]).await?;
            if let Body::Rows(plan) = &prepared.body {
                let alone = !self.transaction.is_open();
                Box::pin(self.run_rows(
                    &prepared,
                    plan.clone(),
                    Vec::new(),
                    &Formats::TEXT,
                    alone,
                    RowsLeave::AtEnd,
                ))
                .await?;
            }
        }
        Ok(())
    }
}
