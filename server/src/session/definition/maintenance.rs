//! VACUUM, ANALYZE, REINDEX and CLUSTER. There is nothing to vacuum, to gather but a count of rows, to
//! rebuild or to reorder: rows are updated in place, and a table lies in the order of its key. Names and rights
//! are checked, so that a mistake does not pass; and what would wait for others in PostgreSQL waits
//! for them here, so that scripts which rely on that keep their order.

use std::sync::Arc;

use archipel_engine::ObjectMode;
use archipel_engine::id::TreeId;
use archipel_sql::ast::{QualifiedName, Vacuum};
use archipel_sql::catalog::authority::must_be_owner;
use archipel_sql::catalog::names::quote_qualified;
use archipel_sql::catalog::{Relation, Table, TableKind, TableRef};
use archipel_sql::datum::Datum;
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::types::Oid;

use crate::encode::RowsTo;
use crate::run::statement::RowsLeave;
use crate::session::Session;
use crate::session::execute::analytic::Analytic;
use crate::statement::Body;
use crate::wire::output::Severity;

/// The columns named for statistics are the table's, each named once.
fn check_columns(table: &Table, columns: &[String]) -> Result<()> {
    for (place, column) in columns.iter().enumerate() {
        let wrong = if table.column_index(column).is_none() {
            (SqlState::UNDEFINED_COLUMN, "does not exist")
        } else if columns[..place].contains(column) {
            (SqlState::DUPLICATE_COLUMN, "appears more than once")
        } else {
            continue;
        };
        let message = format!("column \"{column}\" of relation \"{}\" {}", table.name, wrong.1);
        return Err(SqlError::new(wrong.0, message));
    }
    Ok(())
}

impl Session {
    /// Whether the current user may maintain a relation.
    fn maintains(&mut self, relation: Oid) -> bool {
        let host = self.host();
        host.rights().owns(relation) || host.rights().owns_database(host.database.oid)
    }

    /// Waits at a table, if it is one whose rows others may be using.
    async fn wait_at_table(&mut self, table: &Table, mode: ObjectMode) -> Result<()> {
        if table.kind != TableKind::Table {
            return Ok(());
        }
        if table.is_partitioned() {
            let catalog = self.host().catalog.catalog.clone();
            for leaf in catalog.leaves(table.oid) {
                self.wait_at(TreeId(leaf.tree), mode).await?;
            }
            return Ok(());
        }
        self.wait_at(TreeId(table.tree), mode).await
    }

    /// VACUUM and ANALYZE.
    pub(super) async fn maintain(&mut self, vacuum: &Vacuum, tag: &str) -> Result<()> {
        let catalog = self.host().catalog.catalog.clone();
        let path = self.search_path();
        if !vacuum.analyzes && vacuum.tables.iter().any(|(_, columns)| !columns.is_empty()) {
            let message = "ANALYZE option must be specified when a column list is provided";
            return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message));
        }
        for (name, columns) in &vacuum.tables {
            self.require_schema_of(name)?;
            let table = catalog.require_table(name, &path)?;
            if self.maintains(table.oid) {
                check_columns(&table, columns)?;
                self.wait_at_table(&table, ObjectMode::ShareUpdateExclusive).await?;
                self.measure(&table).await?;
                continue;
            }
            let message = format!(
                "skipping \"{}\" --- only table or database owner can {} it",
                table.name,
                tag.to_lowercase()
            );
            self.notice(Severity::Warning, &SqlError::new(SqlState::WARNING, message));
        }
        Ok(())
    }

    /// Counts a table's rows over a snapshot, for whoever asks `pg_class` how many there are; in a
    /// block nothing is counted.
    async fn measure(&mut self, table: &TableRef) -> Result<()> {
        if table.kind != TableKind::Table || self.transaction.is_open() {
            return Ok(());
        }
        let text: Arc<str> =
            format!("SELECT count(*) FROM {}", quote_qualified(&table.schema, &table.name)).into();
        let prepared = self.prepare_text(&text, &[]).await?;
        let Body::Rows(plan) = &prepared.body else { return Ok(()) };
        if !self.is_analytic(plan) {
            return Ok(());
        }
        if let Analytic::Ran(_, rows) =
            self.run_analytic(plan, Vec::new(), &RowsTo::Kept, RowsLeave::AtEnd).await?
            && let Some([Datum::Int8(rows)]) = rows.first().map(Vec::as_slice)
        {
            self.database.sizes.note(&self.database.catalog.current().catalog, table, *rows);
        }
        Ok(())
    }

    /// REINDEX of an index, of a table or of the tables of a schema.
    pub(super) async fn reindex(
        &mut self,
        what: &str,
        name: Option<&QualifiedName>,
        concurrently: bool,
    ) -> Result<()> {
        let catalog = self.host().catalog.catalog.clone();
        let tables: Vec<TableRef> = match (what, name) {
            ("index" | "table", Some(name)) => {
                self.require_schema_of(name)?;
                let relation = catalog.require_relation(name, &self.search_path())?;
                let (table, what) = match &relation {
                    Relation::Index(table, _) | Relation::PrimaryKey(table) | Relation::Nominal(table, _) => {
                        (Some(table.clone()), "index")
                    }
                    other => (catalog.table_by_oid(other.oid()), catalog.kind_and_name(other.oid()).0),
                };
                let owned = table.as_ref().map_or(relation.oid(), |table| table.oid);
                if !self.maintains(owned) {
                    return Err(must_be_owner(what, relation.name()));
                }
                table.into_iter().collect()
            }
            ("schema", Some(name)) => {
                let mut tables: Vec<_> =
                    catalog.tables().filter(|table| table.schema == name.name).cloned().collect();
                tables.sort_by_key(|table| table.oid.0);
                tables
            }
            ("database" | "system", Some(name)) => {
                self.require_own_database(&name.name)?;
                Vec::new()
            }
            _ => Vec::new(),
        };
        for table in tables {
            // One that was dropped while this waited is passed over.
            if concurrently && table.is_stored() && !self.transaction.is_open() {
                self.wait_for_users(TreeId(table.tree)).await?;
            } else {
                self.wait_at_table(&table, ObjectMode::Share).await?;
            }
        }
        Ok(())
    }

    /// CLUSTER of a table.
    pub(super) async fn cluster(&mut self, table: &QualifiedName, index: Option<&str>) -> Result<()> {
        let catalog = self.host().catalog.catalog.clone();
        self.require_schema_of(table)?;
        let table = catalog.require_table(table, &self.search_path())?;
        if !self.maintains(table.oid) {
            return Err(must_be_owner("table", &table.name));
        }
        let Some(index) = index else {
            let message = format!("there is no previously clustered index for table \"{}\"", table.name);
            return Err(SqlError::new(SqlState::UNDEFINED_OBJECT, message));
        };
        let is_primary = table.primary_key.as_ref().is_some_and(|key| key.name == index);
        if !is_primary && !table.indexes.iter().any(|known| known.name == index) {
            let message = format!("index \"{index}\" for table \"{}\" does not exist", table.name);
            return Err(SqlError::new(SqlState::UNDEFINED_OBJECT, message));
        }
        self.wait_at_table(&table, ObjectMode::AccessExclusive).await
    }
}
