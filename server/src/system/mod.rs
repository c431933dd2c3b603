//! What SQL and HTTP can ask about the running server.
//!
//! - [`views`] the system views that show the server: `archipel.*`, `pg_settings`
//! - [`activity`] `pg_stat_activity`, and who waits for whom
//! - [`flow_graphs`] `archipel.flow_graphs`
//! - [`durability`] `archipel.log` and `archipel.checkpoints`
//! - [`indexes`] `archipel.indexes`
//! - [`islands`] `archipel.islands` and `archipel.executors`
//! - [`monitor`] `archipel.monitor_decisions`, `sync_points` and `actions`
//! - [`locks`] `pg_locks`
//! - [`relations`] whose the engine's tables are; [`groups`] co-location groups in words
//! - [`authentication`] `pg_hba_file_rules` and `pg_ident_file_mappings`
//! - [`sizes`] how large tables were found to be; [`relation_size`] and [`database_size`] how large relations and
//!   databases are
//! - [`visibility`] who is shown what of all this
//! - [`repartition`] the functions that change partitions
//! - [`statements`] `archipel.statement_cache`
//! - [`facts`] the same for HTTP: metrics and the live page
//! - [`cells`] the cells of their rows
//!
//! `pg_catalog` and `information_schema` otherwise show the catalog alone, and come from the
//! dialect.

pub mod activity;
mod authentication;
pub(crate) mod cells;
pub mod database_size;
mod durability;
mod facts;
mod flow_graphs;
mod groups;
mod indexes;
mod islands;
mod locks;
mod monitor;
pub mod relation_size;
pub(crate) mod relations;
pub mod repartition;
pub mod sizes;
mod statements;
mod views;
pub(crate) mod visibility;

use archipel_engine::id::SequenceId;
use archipel_sql::catalog::{Catalog, Privileges, Routine, SessionRoles, Table, View};
use archipel_sql::datum::Datum;
use archipel_sql::error::{Result, SqlError};
use archipel_sql::function::{FunctionContext, SessionHost};
use archipel_sql::style::Quoting;
use archipel_sql::system::{Changeable, KeptExpression, Sought, SystemSource};
use archipel_sql::types::Oid;

pub use facts::Facts;

use crate::session::host::Host;

/// All system tables: the dialect's, then the server's own.
pub fn tables() -> Vec<Table> {
    let mut tables = archipel_sql::system::tables();
    tables.extend(views::tables());
    tables
}

/// The rows of a system table: those that are sought, and perhaps others.
pub fn rows(host: &Host, table: &Table, sought: &Sought) -> Result<Vec<Vec<Datum>>> {
    if let Some(rows) = views::rows(host, table) {
        return rows;
    }
    archipel_sql::system::rows(table, sought, &Source(host)).unwrap_or_else(|| {
        Err(SqlError::unsupported(format_args!("reading {}.{}", table.schema, table.name)))
    })
}

/// The server as the dialect's system tables and functions see it.
pub struct Source<'h>(pub &'h Host);

impl SystemSource for Source<'_> {
    fn catalog(&self) -> &Catalog {
        &self.0.catalog.catalog
    }

    fn search_path(&self) -> &[String] {
        &self.0.search_path
    }

    fn roles(&self) -> SessionRoles {
        self.0.roles()
    }

    fn other_catalogs(&self) -> Vec<Catalog> {
        let others = self.0.server.databases.all().into_iter();
        let others = others.filter(|other| other.oid != self.0.database.oid);
        others.map(|other| other.catalog.current().catalog.clone()).collect()
    }

    fn locks(&self) -> Vec<Vec<Datum>> {
        locks::rows(self.0)
    }

    fn shown(&self, expression: &KeptExpression<'_>) -> Option<String> {
        let catalog = self.catalog();
        let path = self.search_path();
        archipel_planner::bind::deparse::deparse_expression(expression, catalog, path, &self.0.context())
            .or_else(|| expression.as_written(catalog, path))
    }

    fn shown_view(&self, view: &Table, pretty: bool) -> Option<String> {
        let catalog = self.catalog();
        archipel_planner::bind::deparse::deparse_view(
            view,
            catalog,
            self.search_path(),
            &self.0.context(),
            pretty,
        )
    }

    fn shown_policy(&self, query: &View) -> Option<String> {
        let catalog = self.catalog();
        archipel_planner::bind::deparse::deparse_policy(query, catalog, self.search_path(), &self.0.context())
    }

    fn changeable(&self, view: &Table) -> Changeable {
        archipel_planner::bind::changeable(view, self.catalog(), self.search_path(), &self.0.context())
    }

    fn shown_body(&self, routine: &Routine) -> Option<String> {
        let catalog = self.catalog();
        archipel_planner::bind::deparse::deparse_body(routine, catalog, self.search_path(), &self.0.context())
    }

    fn context(&self) -> FunctionContext<'_> {
        self.0.context()
    }

    fn quoting(&self) -> Quoting {
        self.0.settings.style.quoting
    }

    fn row_count(&self, table: &Table) -> Option<f32> {
        self.0.database.sizes.of(table).map(|size| size.rows)
    }

    fn sequence_last_value(&self, sequence: Oid) -> Option<i64> {
        let Source(host) = self;
        host.require_sequence(sequence, Privileges::USAGE | Privileges::SELECT).ok()?;
        host.server.engine.sequence(SequenceId(host.sequence_file(sequence)?))?.last_value()
    }

    fn sequence_position(&self, sequence: Oid) -> Option<i64> {
        let Source(host) = self;
        let running = host.server.engine.sequence(SequenceId(host.sequence_file(sequence)?))?;
        Some(running.position().last)
    }

    fn page_count(&self, table: &Table) -> Option<i32> {
        self.0.database.sizes.of(table).map(|size| size.pages)
    }
}

/// The rows of pg_settings.
pub fn settings(host: &Host) -> Vec<Vec<Datum>> {
    views::settings(host)
}
