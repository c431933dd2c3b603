//! The rows of a template, copied for a new database that nobody knows yet.
//!
//! ```text
//! make    all tables, empty, in one commit; their groups split where the template's are
//! fill    some rows at a time, each slice one transaction, in key order
//! end     the catalog rows and the sequences, in one commit ([`super::database`])
//! ```
//!
//! Nobody is in the template, so what is read first is still true at the end. Everybody else goes on
//! meanwhile. An error drops the tables; a crash leaves them to the next start, which drops what no catalog
//! knows.

use archipel_engine::id::{GroupId, TreeId};
use archipel_engine::schema::{IndexPlacement, Placement, TableDef};
use archipel_engine::txn::CopySlice;
use archipel_engine::{ColumnSource, DdlOp, Engine, Start, SubmitOptions};
use archipel_sql::catalog::{DatabaseCopy, Table};
use archipel_sql::error::{Result, SqlError};

use crate::run::definition::DefinitionRun;
use crate::session::Session;

/// Rows of a slice: about a millisecond of an executor.
const SLICE_ROWS: usize = 512;

/// A table of the engine as the copy has it.
fn definition_of(engine: &Engine, old: &Table, new: &Table) -> Result<TableDef> {
    let unknown = || SqlError::internal(format!("the template's table \"{}\" cannot be copied", old.name));
    let known = engine.table(TreeId(old.tree)).ok_or_else(unknown)?;
    let mut def = known.def.clone();
    def.id = TreeId(new.tree);
    if let Placement::Distributed { group } = &mut def.placement {
        *group = GroupId(new.group().ok_or_else(unknown)?);
    }
    for index in &mut def.indexes {
        let place = old.indexes.iter().position(|known| known.tree == index.id.0).ok_or_else(unknown)?;
        let copied = new.indexes.get(place).ok_or_else(unknown)?;
        index.id = TreeId(copied.tree);
        if let IndexPlacement::Global { group } = &mut index.placement {
            *group = GroupId(copied.global_group.ok_or_else(unknown)?);
        }
    }
    Ok(def)
}

/// The groups of tables and indexes, and those of their copies.
fn groups(copy: &DatabaseCopy) -> Vec<(GroupId, GroupId)> {
    let mut pairs = Vec::new();
    for (old, new) in &copy.tables {
        pairs.extend(old.group().zip(new.group()));
        let indexes = old.indexes.iter().zip(&new.indexes);
        pairs.extend(indexes.filter_map(|(old, new)| old.global_group.zip(new.global_group)));
    }
    pairs.sort_unstable();
    pairs.dedup();
    pairs.into_iter().map(|(old, new)| (GroupId(old), GroupId(new))).collect()
}

impl Session {
    /// Makes the tables of a new database and fills them with its template's rows.
    pub(super) async fn copy_template_rows(&mut self, copy: &DatabaseCopy) -> Result<()> {
        let engine = self.server.engine.clone();
        let defs = copy.tables.iter().map(|(old, new)| definition_of(&engine, old, new));
        let operations = defs.map(|def| def.map(DdlOp::CreateTable)).collect::<Result<Vec<DdlOp>>>()?;
        if operations.is_empty() {
            return Ok(());
        }
        let run = DefinitionRun::of_operations(copy.catalog.database_oid(), operations, Vec::new());
        self.run_definitions(run, None).await?;
        for (old, new) in groups(copy) {
            let routing = engine.routing();
            let lows: Vec<_> = routing.routes(old).iter().skip(1).map(|route| route.low.clone()).collect();
            if !lows.is_empty() {
                // A group that cannot be split now will be split by size.
                let _ = engine.pre_split(new, lows).await;
            }
        }
        for (old, new) in &copy.tables {
            self.copy_template_table(TreeId(old.tree), TreeId(new.tree)).await?;
        }
        Ok(())
    }

    /// Copies the rows of one table, slice by slice.
    async fn copy_template_table(&mut self, from: TreeId, to: TreeId) -> Result<()> {
        let engine = self.server.engine.clone();
        let Some((old, new)) = engine.table(from).zip(engine.table(to)) else {
            return Err(SqlError::internal("a table of the template is not there"));
        };
        let columns: Vec<ColumnSource> =
            (0..old.def.columns.len()).map(|column| ColumnSource::Kept(column as u16)).collect();
        let client = self.entry().engine.clone();
        let mut after = None;
        loop {
            let slice = CopySlice {
                from,
                to,
                groups: Some((old.group(), new.group())),
                columns: columns.clone(),
                after,
                rows_max: SLICE_ROWS,
                last: None,
            };
            let options = SubmitOptions { client: Some(&client), ..SubmitOptions::default() };
            let copied = self.cancellable(engine.submit(slice, options)).await;
            self.depend_on(copied.outcome.depends_on);
            copied.outcome.result.map_err(|stop| self.stop_error(stop))?;
            if self.entry().is_cancelled() {
                return Err(self.entry().cancel_error());
            }
            match copied.program.last {
                Some(last) => after = Some(last),
                None => return Ok(()),
            }
        }
    }

    /// Drops the tables of a database that has come to nothing. What an error leaves is dropped at the next
    /// start.
    pub(super) async fn drop_copied_rows(&self, copy: &DatabaseCopy) {
        let engine = &self.server.engine;
        let made = copy.tables.iter().map(|(_, new)| TreeId(new.tree));
        let operations: Vec<DdlOp> =
            made.filter(|tree| engine.table(*tree).is_some()).map(DdlOp::DropTable).collect();
        if operations.is_empty() {
            return;
        }
        let run = DefinitionRun::of_operations(copy.catalog.database_oid(), operations, Vec::new());
        let start = Start::apart_if(run.goes_far(engine));
        let _ = engine.submit(run, SubmitOptions { start, ..SubmitOptions::default() }).await;
    }
}
