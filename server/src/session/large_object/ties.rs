//! Which large objects a role owns or has rights on, in any database: it is not dropped as long as there are some.

use std::ops::ControlFlow;

use archipel_engine::cell::Cell;
use archipel_engine::id::{GroupId, TreeId};
use archipel_engine::schema::Placement;
use archipel_engine::{
    ClaimSet, Direction, KeyRange, Program, RoutingTable, Start, Stop, SubmitOptions, Txn,
};
use archipel_sql::ast::{DropRole, RoleName};
use archipel_sql::catalog::LargeObject;
use archipel_sql::catalog::large_object::{LARGE_OBJECTS, read_acl};
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::types::Oid;

use crate::database::Database;
use crate::session::Session;

/// Objects that are told one by one (MAX_REPORTED_DEPS).
const TOLD_MAX: usize = 100;

/// Looks through the rows of large objects for those that name a role.
struct TieScan {
    tree: TreeId,
    group: Option<GroupId>,
    role: Oid,
    /// The first of them, and whether the role owns each.
    told: Vec<(Oid, bool)>,
    count: usize,
}

impl Program for TieScan {
    fn predict(&mut self, _routing: &RoutingTable, claims: &mut ClaimSet) {
        if let Some(group) = self.group {
            claims.add_group(group);
        }
    }

    fn run(&mut self, txn: &mut Txn<'_>) -> std::result::Result<(), Stop> {
        self.told.clear();
        self.count = 0;
        let Some(table) = txn.table(self.tree) else { return Ok(()) };
        txn.scan(&table, KeyRange::ALL, Direction::Ascending, &mut |_, row| {
            let cell = |place| table.layout.get(row, place);
            if let (Cell::Int8(object), Cell::Int8(owner)) = (cell(0), cell(1)) {
                let acl = match cell(2) {
                    Cell::Bytes(stored) => std::str::from_utf8(stored).ok().map(read_acl),
                    _ => None,
                };
                let known = LargeObject { acl, ..LargeObject::of_owner(Oid(owner as u32)) };
                if known.names(self.role) {
                    self.count += 1;
                    if self.told.len() < TOLD_MAX {
                        self.told.push((Oid(object as u32), known.owner == self.role));
                    }
                }
            }
            ControlFlow::Continue(())
        })
    }
}

impl Session {
    /// 2BP01 for a role that DROP ROLE names and that large objects hang on.
    pub(in crate::session) async fn require_no_large_objects(&mut self, drop: &DropRole) -> Result<()> {
        let host = self.host();
        if !host.rights().creates_roles() {
            return Ok(());
        }
        for name in &drop.roles {
            let RoleName::Name(name) = name else { continue };
            let Some(role) = host.catalog.catalog.role(name) else { continue };
            let mut databases = self.server.databases.all();
            // What is told one by one comes before what is only counted.
            databases.sort_by_key(|database| database.oid != self.database.oid);
            let mut lines = Vec::new();
            for database in databases {
                lines.extend(self.large_object_lines(&database, role.oid).await?);
            }
            if !lines.is_empty() {
                let message = format!("role \"{name}\" cannot be dropped because some objects depend on it");
                let error = SqlError::new(SqlState::DEPENDENT_OBJECTS_STILL_EXIST, message);
                return Err(error.with_detail(lines.join("\n")));
            }
        }
        Ok(())
    }

    /// What there is of a role in a database, a line each, as PostgreSQL's DETAIL names it.
    async fn large_object_lines(&mut self, database: &Database, role: Oid) -> Result<Vec<String>> {
        let catalog = database.catalog.current();
        let Some(objects) = catalog.catalog.table_by_oid(LARGE_OBJECTS) else { return Ok(Vec::new()) };
        let tree = TreeId(objects.tree);
        let group = self.server.engine.table(tree).and_then(|table| match table.def.placement {
            Placement::Distributed { group } => Some(group),
            Placement::Reference => None,
        });
        let scan = TieScan { tree, group, role, told: Vec::new(), count: 0 };
        let client = self.entry().engine.clone();
        let options = SubmitOptions {
            client: Some(&client),
            read_only: true,
            start: Start::apart_if(true),
            ..SubmitOptions::default()
        };
        let scanned = self.server.engine.submit(scan, options).await;
        self.depend_on(scanned.outcome.depends_on);
        scanned.outcome.result.map_err(|stop| self.stop_error(stop))?;
        let TieScan { told, count, .. } = scanned.program;
        if count == 0 {
            return Ok(Vec::new());
        }
        if database.oid != self.database.oid {
            let objects = if count == 1 { "object" } else { "objects" };
            return Ok(vec![format!("{count} {objects} in database {}", catalog.catalog.database_name())]);
        }
        let line = |(object, owns): &(Oid, bool)| {
            let how = if *owns { "owner of" } else { "privileges for" };
            format!("{how} large object {object}")
        };
        Ok(told.iter().map(line).collect())
    }
}
