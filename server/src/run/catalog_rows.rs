//! The rows of the system catalog: the database that each is of, or 0 where it is of what all share; what kind
//! of object it holds, and the object.
//!
//! Before there could be several databases, the rows of the only one lay in a table of their own
//! ([`EARLIER_CATALOG_TREE`]), without a number of it. They are read as if they lay where they lie now
//! ([`CatalogScan`]), and are put there in one commit ([`FirstRows`]): a crash leaves either the one table or
//! the other, and a start goes by which there is.

use std::ops::{Bound, ControlFlow};

use archipel_engine::cell::Cell;
use archipel_engine::storage::{KeyBuf, RowLayout};
use archipel_engine::{
    CATALOG_TREE, ClaimSet, DdlOp, Direction, EARLIER_CATALOG_TREE, Inserted, KeyRange, Program,
    RoutingTable, Stop, TableMeta, Txn,
};
use archipel_planner::native::{ExecError, ExecResult};
use archipel_sql::catalog::{CatalogChange, DATABASE, Numbers, Object, ObjectKind, earlier_form};
use archipel_sql::error::{Result, SqlError};
use archipel_sql::types::Oid;

use super::stop_with;

/// The number that stands for no database: of what all share.
const SHARED: Oid = Oid(0);

/// Whether rows of this kind are of no database by itself.
fn is_of_all(kind: ObjectKind) -> bool {
    kind.is_shared() || kind == ObjectKind::Numbers
}

/// Where a row of this kind is kept that a definition in `database` writes.
fn place_of(kind: ObjectKind, database: Oid) -> Oid {
    if is_of_all(kind) { SHARED } else { database }
}

/// A row, and the key that it has.
pub(super) fn catalog_row(
    catalog: &TableMeta,
    database: Oid,
    (kind, oid): (ObjectKind, Oid),
    payload: &[u8],
) -> (Vec<u8>, KeyBuf) {
    let cells = [
        Cell::Int4(place_of(kind, database).0 as i32),
        Cell::Bytes(kind.as_str().as_bytes()),
        Cell::Int4(oid.0 as i32),
        Cell::Bytes(payload),
    ];
    let mut row = Vec::new();
    catalog.layout.encode(&cells, &mut row);
    let mut key = KeyBuf::new();
    catalog.storage_key(&row, &mut key);
    (row, key)
}

/// What a row holds, and whose it is.
pub(super) fn object_of(layout: &RowLayout, row: &[u8]) -> Result<(Oid, Object)> {
    let (Cell::Int4(database), Cell::Bytes(kind), Cell::Bytes(payload)) =
        (layout.get(row, 0), layout.get(row, 1), layout.get(row, 3))
    else {
        return Err(SqlError::internal("a catalog row is not what it should be"));
    };
    let (database, object) = (Oid(database as u32), Object::from_payload(kind_of(kind)?, payload)?);
    if (database == SHARED) != is_of_all(object.kind()) {
        let kind = object.kind().as_str();
        return Err(SqlError::internal(format!("a catalog row of kind {kind} is of database {database}")));
    }
    Ok((database, object))
}

/// The same of a row that says no database.
fn objects_of_earlier(layout: &RowLayout, row: &[u8]) -> Result<Vec<Object>> {
    let (Cell::Bytes(kind), Cell::Bytes(payload)) = (layout.get(row, 0), layout.get(row, 2)) else {
        return Err(SqlError::internal("a catalog row is not what it should be"));
    };
    earlier_form::objects_of_row(kind_of(kind)?, payload)
}

fn kind_of(kind: &[u8]) -> Result<ObjectKind> {
    ObjectKind::parse(kind).ok_or_else(|| {
        SqlError::internal(format!("unknown kind of catalog row: {}", String::from_utf8_lossy(kind)))
    })
}

/// Reads all rows of the system catalog.
#[derive(Default)]
pub struct CatalogScan {
    /// What they hold, each with its database; 0: all share it.
    pub rows: Vec<(Oid, Object)>,
    /// Whether they still lie where the rows of the only database did.
    pub earlier: bool,
    pub error: Option<SqlError>,
}

impl CatalogScan {
    fn read(&mut self, txn: &mut Txn<'_>) -> ExecResult<()> {
        if let Some(catalog) = txn.table(EARLIER_CATALOG_TREE) {
            self.earlier = true;
            let mut objects = Vec::new();
            each_row(txn, &catalog, |row| {
                objects.extend(objects_of_earlier(&catalog.layout, row)?);
                Ok(())
            })?;
            let placed = earlier_form::in_place(objects).into_iter();
            self.rows.extend(placed.map(|object| (place_of(object.kind(), DATABASE), object)));
        } else if let Some(catalog) = txn.table(CATALOG_TREE) {
            let rows = &mut self.rows;
            each_row(txn, &catalog, |row| {
                rows.push(object_of(&catalog.layout, row)?);
                Ok(())
            })?;
        }
        Ok(())
    }
}

/// Deletes all rows of a database.
pub(super) fn drop_rows(txn: &mut Txn<'_>, catalog: &TableMeta, database: Oid) -> ExecResult<()> {
    // What keys of a database begin with comes before all of them.
    let first = |database: u32| {
        let cells = [Cell::Int4(database as i32), Cell::Bytes(b""), Cell::Int4(i32::MIN), Cell::Bytes(b"")];
        let (mut row, mut key) = (Vec::new(), KeyBuf::new());
        catalog.layout.encode(&cells, &mut row);
        catalog.storage_key(&row, &mut key);
        key
    };
    let (low, high) = (first(database.0), first(database.0 + 1));
    let range = KeyRange { low: Bound::Included(&low), high: Bound::Excluded(&high) };
    let mut keys = Vec::new();
    txn.scan(catalog, range, Direction::Ascending, &mut |key, _| {
        keys.push(KeyBuf::from_slice(key));
        ControlFlow::Continue(())
    })?;
    for key in keys {
        txn.delete(catalog, &key)?;
    }
    Ok(())
}

/// Goes through the rows of a catalog; the first that cannot be read ends it.
fn each_row(
    txn: &mut Txn<'_>,
    catalog: &TableMeta,
    mut read: impl FnMut(&[u8]) -> Result<()>,
) -> ExecResult<()> {
    let mut failed = None;
    txn.scan(catalog, KeyRange::ALL, Direction::Ascending, &mut |_, row| match read(row) {
        Ok(()) => ControlFlow::Continue(()),
        Err(error) => {
            failed = Some(error);
            ControlFlow::Break(())
        }
    })?;
    failed.map_or(Ok(()), |error| Err(ExecError::Sql(error)))
}

impl Program for CatalogScan {
    fn predict(&mut self, _routing: &RoutingTable, _claims: &mut ClaimSet) {}

    fn run(&mut self, txn: &mut Txn<'_>) -> std::result::Result<(), Stop> {
        *self = CatalogScan::default();
        self.read(txn).map_err(|error| stop_with(error, &mut self.error))
    }
}

/// Writes rows into a catalog that has none, and drops the one of before there could be several databases.
pub struct FirstRows {
    /// Each with its database.
    pub rows: Vec<(Oid, Object)>,
    pub error: Option<SqlError>,
}

impl FirstRows {
    fn write(&self, txn: &mut Txn<'_>) -> ExecResult<()> {
        if txn.table(EARLIER_CATALOG_TREE).is_some()
            && txn.ddl(DdlOp::DropTable(EARLIER_CATALOG_TREE))? != Inserted::Ok
        {
            return Err(SqlError::internal("the earlier catalog could not be dropped").into());
        }
        let catalog =
            txn.table(CATALOG_TREE).ok_or_else(|| SqlError::internal("there is no system catalog"))?;
        for (database, object) in &self.rows {
            apply(txn, &catalog, *database, &CatalogChange::Put(object.clone()))?;
        }
        Ok(())
    }
}

impl Program for FirstRows {
    fn predict(&mut self, _routing: &RoutingTable, claims: &mut ClaimSet) {
        claims.everything();
    }

    fn run(&mut self, txn: &mut Txn<'_>) -> std::result::Result<(), Stop> {
        self.error = None;
        self.write(txn).map_err(|error| stop_with(error, &mut self.error))
    }
}

/// Writes a change of a database's catalog, or of what all share.
pub(super) fn apply(
    txn: &mut Txn<'_>,
    catalog: &TableMeta,
    database: Oid,
    change: &CatalogChange,
) -> ExecResult<()> {
    match change {
        CatalogChange::Put(object) => {
            let payload = match object {
                Object::Numbers(numbers) => Object::Numbers(lifted(txn, catalog, *numbers)?).to_payload()?,
                other => other.to_payload()?,
            };
            let (row, key) = catalog_row(catalog, database, (object.kind(), object.oid()), &payload);
            txn.delete(catalog, &key)?;
            match txn.insert(catalog, &key, &row)? {
                Inserted::Ok => Ok(()),
                other => {
                    Err(SqlError::internal(format!("a catalog row could not be written: {other:?}")).into())
                }
            }
        }
        CatalogChange::Drop(kind, oid) => {
            let (_, key) = catalog_row(catalog, database, (*kind, *oid), b"");
            txn.delete(catalog, &key)?;
            Ok(())
        }
    }
}

/// The larger ones of these numbers and of those that are written: definitions commit in another order
/// than they draw.
fn lifted(txn: &mut Txn<'_>, catalog: &TableMeta, numbers: Numbers) -> ExecResult<Numbers> {
    let (_, key) = catalog_row(catalog, Oid(0), (ObjectKind::Numbers, Oid(0)), b"");
    let Some(row) = txn.get_newest(catalog, &key)? else {
        return Ok(numbers.max(Numbers::FIRST));
    };
    match object_of(&catalog.layout, row)? {
        (_, Object::Numbers(written)) => Ok(written.max(numbers)),
        _ => Err(SqlError::internal("the row of numbers says none").into()),
    }
}
