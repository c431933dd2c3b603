//! System views over the running server.

use std::collections::BTreeMap;
use std::sync::Arc;

use archipel_engine::id::{GroupId, PartitionId, TreeId};
use archipel_sql::catalog::{Column, Index, Table, TableKind, TableRef};
use archipel_sql::datum::Datum;
use archipel_sql::error::Result;
use archipel_sql::types::{Oid, Type};

use super::cells::{big, count, optional, text};
use super::groups::GroupKeys;
use super::visibility::{Sight, examine_setting};
use super::{authentication, durability, monitor};
use crate::database::Database;
use crate::session::host::Host;
use crate::settings::foreign;
use crate::settings::table::{Context, SETTINGS, SettingId};
use crate::settings::value::Kind;

struct View {
    schema: &'static str,
    name: &'static str,
    columns: &'static [(&'static str, Type)],
    rows: fn(&Host) -> Vec<Vec<Datum>>,
}

/// The views' numbers: apart from those of the dialect's tables and of users' objects.
const FIRST_OID: u32 = 13_500;

/// What PostgreSQL counts of tables, and of their blocks; here nothing but the tables is known.
#[rustfmt::skip]
const TABLE_STATISTICS: &[(&str, Type)] = &[("relid", Type::OID), ("schemaname", Type::NAME), ("relname", Type::NAME), ("seq_scan", Type::INT8), ("seq_tup_read", Type::INT8), ("idx_scan", Type::INT8), ("idx_tup_fetch", Type::INT8), ("n_tup_ins", Type::INT8), ("n_tup_upd", Type::INT8), ("n_tup_del", Type::INT8), ("n_tup_hot_upd", Type::INT8), ("n_live_tup", Type::INT8), ("n_dead_tup", Type::INT8), ("n_mod_since_analyze", Type::INT8), ("n_ins_since_vacuum", Type::INT8), ("last_vacuum", Type::TIMESTAMPTZ), ("last_autovacuum", Type::TIMESTAMPTZ), ("last_analyze", Type::TIMESTAMPTZ), ("last_autoanalyze", Type::TIMESTAMPTZ), ("vacuum_count", Type::INT8), ("autovacuum_count", Type::INT8), ("analyze_count", Type::INT8), ("autoanalyze_count", Type::INT8)];
#[rustfmt::skip]
const TABLE_BLOCKS: &[(&str, Type)] = &[("relid", Type::OID), ("schemaname", Type::NAME), ("relname", Type::NAME), ("heap_blks_read", Type::INT8), ("heap_blks_hit", Type::INT8), ("idx_blks_read", Type::INT8), ("idx_blks_hit", Type::INT8), ("toast_blks_read", Type::INT8), ("toast_blks_hit", Type::INT8), ("tidx_blks_read", Type::INT8), ("tidx_blks_hit", Type::INT8)];

#[rustfmt::skip]
const INDEX_STATISTICS: &[(&str, Type)] = &[("relid", Type::OID), ("indexrelid", Type::OID), ("schemaname", Type::NAME), ("relname", Type::NAME), ("indexrelname", Type::NAME), ("idx_scan", Type::INT8), ("idx_tup_read", Type::INT8), ("idx_tup_fetch", Type::INT8)];

// Their numbers are their places: new ones come last.
#[rustfmt::skip]
static VIEWS: &[View] = &[
    View { schema: "archipel", name: "islands", columns: &[("island", Type::INT4), ("executors", Type::INT4), ("cores", Type::TEXT), ("partitions", Type::INT4), ("state", Type::TEXT), ("since", Type::TIMESTAMPTZ), ("memory_node", Type::INT4), ("memory_followed", Type::FLOAT8)], rows: super::islands::islands },
    View { schema: "archipel", name: "executors", columns: &[("executor", Type::INT4), ("island", Type::INT4), ("core", Type::INT4), ("sessions", Type::INT4), ("partitions", Type::INT4), ("queued_partitions", Type::INT4), ("slices", Type::INT8), ("actions_served", Type::INT8), ("stolen", Type::INT8), ("statements", Type::INT8), ("state", Type::TEXT), ("since", Type::TIMESTAMPTZ), ("speed", Type::FLOAT8)], rows: super::islands::executors },
    View { schema: "archipel", name: "partitions", columns: &[("partition", Type::INT4), ("group_id", Type::INT4), ("tables", Type::TEXT), ("low", Type::TEXT), ("high", Type::TEXT), ("executor", Type::INT4), ("rows", Type::INT8), ("bytes", Type::INT8), ("actions", Type::INT8), ("busy_us", Type::INT8), ("queued", Type::INT4), ("queued_total", Type::INT8), ("load", Type::FLOAT8), ("pinned", Type::BOOL), ("frozen", Type::BOOL), ("memory_node", Type::INT4), ("memory_followed", Type::FLOAT8), ("datname", Type::NAME)], rows: partitions },
    View { schema: "archipel", name: "routing", columns: &[("group_id", Type::INT4), ("distribution_column", Type::TEXT), ("low", Type::TEXT), ("high", Type::TEXT), ("partition", Type::INT4), ("executor", Type::INT4), ("datname", Type::NAME)], rows: routing },
    View { schema: "archipel", name: "repartitions", columns: &[("at", Type::TIMESTAMPTZ), ("action", Type::TEXT), ("group_id", Type::INT4), ("tables", Type::TEXT), ("partition", Type::INT4), ("other_partition", Type::INT4), ("key", Type::TEXT), ("executor", Type::INT4), ("reason", Type::TEXT), ("duration_us", Type::INT8), ("decision", Type::INT8), ("datname", Type::NAME)], rows: repartitions },
    View { schema: "archipel", name: "monitor_decisions", columns: monitor::DECISIONS, rows: monitor::decisions },
    View { schema: "archipel", name: "sync_points", columns: monitor::SYNC_POINTS, rows: monitor::sync_points },
    View { schema: "archipel", name: "actions", columns: monitor::ACTIONS, rows: monitor::actions },
    View { schema: "archipel", name: "routines", columns: &[("schema", Type::TEXT), ("name", Type::TEXT), ("kind", Type::TEXT), ("language", Type::TEXT), ("class", Type::TEXT), ("routing", Type::TEXT), ("reason", Type::TEXT), ("tables", Type::TEXT), ("calls", Type::INT8), ("mispredicted", Type::INT8), ("restarts", Type::INT8), ("multi_partition", Type::INT8), ("partitions", Type::INT8), ("interactive", Type::INT8), ("rows", Type::INT8), ("total_time", Type::FLOAT8)], rows: routines },
    View { schema: "archipel", name: "flow_graphs", columns: super::flow_graphs::COLUMNS, rows: super::flow_graphs::rows },
    View { schema: "archipel", name: "log", columns: durability::LOG, rows: durability::log },
    View { schema: "archipel", name: "snapshots", columns: &[("epoch", Type::INT8), ("pid", Type::INT4), ("taken", Type::TIMESTAMPTZ), ("cancelled", Type::BOOL)], rows: snapshots },
    View { schema: "archipel", name: "checkpoints", columns: durability::CHECKPOINTS, rows: durability::checkpoints },
    View { schema: "pg_catalog", name: "pg_stat_activity", columns: &[("datid", Type::OID), ("datname", Type::NAME), ("pid", Type::INT4), ("leader_pid", Type::INT4), ("usesysid", Type::OID), ("usename", Type::NAME), ("application_name", Type::TEXT), ("client_addr", Type::INET), ("client_hostname", Type::TEXT), ("client_port", Type::INT4), ("backend_start", Type::TIMESTAMPTZ), ("xact_start", Type::TIMESTAMPTZ), ("query_start", Type::TIMESTAMPTZ), ("state_change", Type::TIMESTAMPTZ), ("wait_event_type", Type::TEXT), ("wait_event", Type::TEXT), ("state", Type::TEXT), ("backend_xid", Type::XID), ("backend_xmin", Type::XID), ("query_id", Type::INT8), ("query", Type::TEXT), ("backend_type", Type::TEXT)], rows: super::activity::rows },
    View { schema: "pg_catalog", name: "pg_settings", columns: &[("name", Type::TEXT), ("setting", Type::TEXT), ("unit", Type::TEXT), ("category", Type::TEXT), ("short_desc", Type::TEXT), ("extra_desc", Type::TEXT), ("context", Type::TEXT), ("vartype", Type::TEXT), ("source", Type::TEXT), ("min_val", Type::TEXT), ("max_val", Type::TEXT), ("enumvals", Type::TEXT_ARRAY), ("boot_val", Type::TEXT), ("reset_val", Type::TEXT), ("sourcefile", Type::TEXT), ("sourceline", Type::INT4), ("pending_restart", Type::BOOL)], rows: settings },
    View { schema: "pg_catalog", name: "pg_stat_user_tables", columns: TABLE_STATISTICS, rows: |host| known_tables(host, TABLE_STATISTICS, false) },
    View { schema: "archipel", name: "island_distances", columns: &[("from_island", Type::INT4), ("to_island", Type::INT4), ("line_ns", Type::FLOAT8), ("source", Type::TEXT)], rows: super::islands::distances },
    View { schema: "archipel", name: "design_advice", columns: crate::design::view::COLUMNS, rows: crate::design::view::rows },
    View { schema: "archipel", name: "statement_cache", columns: super::statements::COLUMNS, rows: super::statements::rows },
    View { schema: "pg_catalog", name: "pg_prepared_statements", columns: super::statements::PREPARED, rows: super::statements::prepared },
    View { schema: "pg_catalog", name: "pg_stat_user_functions", columns: &[("funcid", Type::OID), ("schemaname", Type::NAME), ("funcname", Type::NAME), ("calls", Type::INT8), ("total_time", Type::FLOAT8), ("self_time", Type::FLOAT8)], rows: user_functions },
    View { schema: "pg_catalog", name: "pg_stat_all_tables", columns: TABLE_STATISTICS, rows: |host| known_tables(host, TABLE_STATISTICS, true) },
    View { schema: "pg_catalog", name: "pg_statio_all_tables", columns: TABLE_BLOCKS, rows: |host| known_tables(host, TABLE_BLOCKS, true) },
    View { schema: "pg_catalog", name: "pg_statio_user_tables", columns: TABLE_BLOCKS, rows: |host| known_tables(host, TABLE_BLOCKS, false) },
    View { schema: "pg_catalog", name: "pg_cursors", columns: super::statements::CURSORS, rows: super::statements::cursors },
    View { schema: "pg_catalog", name: "pg_stat_gssapi", columns: &[("pid", Type::INT4), ("gss_authenticated", Type::BOOL), ("principal", Type::TEXT), ("encrypted", Type::BOOL)], rows: super::activity::gssapi },
    View { schema: "pg_catalog", name: "pg_stat_ssl", columns: &[("pid", Type::INT4), ("ssl", Type::BOOL), ("version", Type::TEXT), ("cipher", Type::TEXT), ("bits", Type::INT4), ("client_dn", Type::TEXT), ("client_serial", Type::NUMERIC), ("issuer_dn", Type::TEXT)], rows: super::activity::ssl },
    View { schema: "pg_catalog", name: "pg_stat_replication", columns: &[("pid", Type::INT4), ("usesysid", Type::OID), ("usename", Type::NAME), ("application_name", Type::TEXT), ("client_addr", Type::INET), ("client_hostname", Type::TEXT), ("client_port", Type::INT4), ("backend_start", Type::TIMESTAMPTZ), ("backend_xmin", Type::XID), ("state", Type::TEXT), ("sent_lsn", Type::PG_LSN), ("write_lsn", Type::PG_LSN), ("flush_lsn", Type::PG_LSN), ("replay_lsn", Type::PG_LSN), ("write_lag", Type::INTERVAL), ("flush_lag", Type::INTERVAL), ("replay_lag", Type::INTERVAL), ("sync_priority", Type::INT4), ("sync_state", Type::TEXT), ("reply_time", Type::TIMESTAMPTZ)], rows: |_| Vec::new() },
    View { schema: "pg_catalog", name: "pg_stat_database", columns: &[("datid", Type::OID), ("datname", Type::NAME), ("numbackends", Type::INT4), ("xact_commit", Type::INT8), ("xact_rollback", Type::INT8), ("blks_read", Type::INT8), ("blks_hit", Type::INT8), ("tup_returned", Type::INT8), ("tup_fetched", Type::INT8), ("tup_inserted", Type::INT8), ("tup_updated", Type::INT8), ("tup_deleted", Type::INT8), ("conflicts", Type::INT8), ("temp_files", Type::INT8), ("temp_bytes", Type::INT8), ("deadlocks", Type::INT8), ("checksum_failures", Type::INT8), ("checksum_last_failure", Type::TIMESTAMPTZ), ("blk_read_time", Type::FLOAT8), ("blk_write_time", Type::FLOAT8), ("session_time", Type::FLOAT8), ("active_time", Type::FLOAT8), ("idle_in_transaction_time", Type::FLOAT8), ("sessions", Type::INT8), ("sessions_abandoned", Type::INT8), ("sessions_fatal", Type::INT8), ("sessions_killed", Type::INT8), ("stats_reset", Type::TIMESTAMPTZ)], rows: super::activity::databases },
    View { schema: "pg_catalog", name: "pg_stat_all_indexes", columns: INDEX_STATISTICS, rows: |host| known_indexes(host, true) },
    View { schema: "pg_catalog", name: "pg_stat_user_indexes", columns: INDEX_STATISTICS, rows: |host| known_indexes(host, false) },
    View { schema: "pg_catalog", name: "pg_hba_file_rules", columns: authentication::HBA_FILE_RULES, rows: authentication::hba_file_rules },
    View { schema: "pg_catalog", name: "pg_ident_file_mappings", columns: authentication::IDENT_FILE_MAPPINGS, rows: authentication::ident_file_mappings },
    View { schema: "pg_catalog", name: "pg_stat_database_conflicts", columns: &[("datid", Type::OID), ("datname", Type::NAME), ("confl_tablespace", Type::INT8), ("confl_lock", Type::INT8), ("confl_snapshot", Type::INT8), ("confl_bufferpin", Type::INT8), ("confl_deadlock", Type::INT8)], rows: super::activity::conflicts },
    View { schema: "archipel", name: "indexes", columns: super::indexes::COLUMNS, rows: super::indexes::rows },
];

/// The views as catalog tables.
pub(super) fn tables() -> Vec<Table> {
    VIEWS
        .iter()
        .zip(FIRST_OID..)
        .map(|(view, oid)| {
            // Row types take the numbers that follow a table's own.
            let oid = Oid(FIRST_OID + (oid - FIRST_OID) * 4);
            Table {
                columns: view.columns.iter().map(|(name, ty)| Column::new(*name, *ty)).collect(),
                version: 1,
                ..Table::new(oid, view.schema, view.name, TableKind::System)
            }
        })
        .collect()
}

/// The rows of one of these views; `None` if `table` is none of them.
pub(super) fn rows(host: &Host, table: &Table) -> Option<Result<Vec<Vec<Datum>>>> {
    let view = VIEWS.iter().find(|view| view.schema == table.schema && view.name == table.name)?;
    Some(Ok((view.rows)(host)))
}

/// What the role in force is shown of a group, for all rows about it.
struct ShownGroup {
    tables: String,
    /// None for that of the reference tables of all databases.
    database: Option<Arc<str>>,
    keys: GroupKeys,
    /// Whether it may see values of the keys.
    values: bool,
}

impl ShownGroup {
    fn of(sight: &Sight<'_>, group: GroupId) -> Option<ShownGroup> {
        let seen = sight.group(group)?;
        let (tables, keys) = (seen.tables.join(", "), sight.groups().keys(group));
        let database = sight.groups().database(group).map(Database::name);
        Some(ShownGroup { tables, database, keys, values: seen.keys })
    }

    /// A boundary as a value.
    fn show(&self, key: &[u8]) -> Option<String> {
        if self.values { self.keys.show(key) } else { None }
    }
}

fn repartitions(host: &Host) -> Vec<Vec<Datum>> {
    let sight = Sight::of(host);
    let mut groups = BTreeMap::new();
    let row = |done: archipel_engine::RepartitionView| {
        let group = groups.entry(done.group).or_insert_with(|| ShownGroup::of(&sight, done.group)).as_ref();
        let table = done.table.and_then(|tree| sight.groups().relations().table(tree));
        let (tables, database) = match (table, group) {
            (Some((of, table)), _) if sight.table_of(of, table.oid) => (table.name.clone(), Some(of.name())),
            (None, Some(group)) => (group.tables.clone(), group.database.clone()),
            _ => return None,
        };
        Some(vec![
            Datum::TimestampTz(done.at),
            text(done.kind.name()),
            Datum::Int4(done.group.0 as i32),
            text(tables),
            Datum::Int4(done.partition.0 as i32),
            done.other.map_or(Datum::Null, |other| Datum::Int4(other.0 as i32)),
            optional(group.and_then(|group| group.show(done.key.as_deref()?))),
            Datum::Int4(i32::from(done.home.0)),
            text(done.reason),
            big(done.duration_nanos / 1_000),
            if done.decision == 0 { Datum::Null } else { big(done.decision) },
            optional(database),
        ])
    };
    host.server.engine.repartitions().into_iter().filter_map(row).collect()
}

fn partitions(host: &Host) -> Vec<Vec<Datum>> {
    let loads = host.server.engine.partition_loads();
    let loads: BTreeMap<PartitionId, f64> =
        loads.into_iter().map(|load| (load.partition, load.share)).collect();
    let sight = Sight::of(host);
    let mut groups = BTreeMap::new();
    host.server
        .engine
        .partitions()
        .into_iter()
        .filter_map(|partition| {
            let of = partition.group;
            let group = groups.entry(of).or_insert_with(|| ShownGroup::of(&sight, of)).as_ref()?;
            Some(vec![
                Datum::Int4(partition.id.0 as i32),
                Datum::Int4(partition.group.0 as i32),
                text(group.tables.as_str()),
                optional(group.show(&partition.low)),
                optional(partition.high.as_deref().and_then(|high| group.show(high))),
                Datum::Int4(i32::from(partition.home.0)),
                big(partition.rows),
                big(partition.bytes),
                big(partition.actions),
                big(partition.busy_nanos / 1_000),
                count(partition.queued),
                big(partition.queued_total),
                loads.get(&partition.id).map_or(Datum::Null, |share| Datum::Float8(*share)),
                Datum::Bool(partition.pinned),
                Datum::Bool(partition.frozen),
                partition.memory_node.map_or(Datum::Null, |node| Datum::Int4(i32::from(node))),
                Datum::Float8(partition.memory_followed),
                optional(group.database.as_ref()),
            ])
        })
        .collect()
}

fn routing(host: &Host) -> Vec<Vec<Datum>> {
    let sight = Sight::of(host);
    let mut groups = BTreeMap::new();
    host.server
        .engine
        .partitions()
        .into_iter()
        .filter_map(|partition| {
            let of = partition.group;
            let group = groups.entry(of).or_insert_with(|| ShownGroup::of(&sight, of)).as_ref()?;
            Some(vec![
                Datum::Int4(partition.group.0 as i32),
                optional(group.keys.column()),
                optional(group.show(&partition.low)),
                optional(partition.high.as_deref().and_then(|high| group.show(high))),
                Datum::Int4(partition.id.0 as i32),
                Datum::Int4(i32::from(partition.home.0)),
                optional(group.database.as_ref()),
            ])
        })
        .collect()
}

fn routines(host: &Host) -> Vec<Vec<Datum>> {
    use archipel_sql::catalog::{Language, RoutineKind};
    let environment = host.environment();
    let sight = Sight::of(host);
    host.catalog
        .catalog
        .routines_all()
        .filter(|routine| routine.kind != RoutineKind::Aggregate && sight.routine(routine.oid))
        .map(|routine| {
            let (class, routing, reason, tables) = match host.database.routines.program(routine, &environment)
            {
                Ok(program) => {
                    let found = archipel_procedures::classify(&program);
                    (
                        text(found.class.as_str()),
                        text(found.routing),
                        text(found.reason),
                        text(found.tables.join(", ")),
                    )
                }
                Err(error) => (Datum::Null, Datum::Null, text(error.message()), Datum::Null),
            };
            let counts = host.database.calls.sum(routine.oid);
            vec![
                text(&routine.schema),
                text(&routine.name),
                text(if routine.kind == RoutineKind::Procedure { "procedure" } else { "function" }),
                text(if routine.language == Language::PlPgSql { "plpgsql" } else { "sql" }),
                class,
                routing,
                reason,
                tables,
                big(counts.calls),
                big(counts.mispredicted),
                big(counts.restarts),
                big(counts.multi_partition),
                big(counts.partitions),
                big(counts.interactive),
                big(counts.rows),
                Datum::Float8(counts.nanos as f64 / 1e6),
            ]
        })
        .collect()
}

/// Those whose calls `track_functions` has had counted since the start.
fn user_functions(host: &Host) -> Vec<Vec<Datum>> {
    let routines = host.catalog.catalog.routines_all();
    let used = routines.filter_map(|routine| Some((routine, host.database.calls.used(routine.oid)?)));
    let millis = |nanos: u64| Datum::Float8(nanos as f64 / 1e6);
    used.map(|(routine, used)| {
        vec![
            Datum::Oid(routine.oid),
            text(&routine.schema),
            text(&routine.name),
            big(used.calls),
            millis(used.total_nanos),
            millis(used.self_nanos),
        ]
    })
    .collect()
}

fn snapshots(host: &Host) -> Vec<Vec<Datum>> {
    let row = |snapshot: archipel_engine::SnapshotView| {
        vec![
            big(snapshot.epoch.0),
            i32::try_from(snapshot.holder).ok().filter(|pid| *pid != 0).map_or(Datum::Null, Datum::Int4),
            Datum::TimestampTz(snapshot.opened_micros),
            Datum::Bool(snapshot.cancelled),
        ]
    };
    host.server.engine.snapshots().into_iter().map(row).collect()
}

pub(super) fn settings(host: &Host) -> Vec<Vec<Datum>> {
    let live = host.server.live.values();
    let mut rows: Vec<Vec<Datum>> = SETTINGS
        .iter()
        .enumerate()
        // PostgreSQL, too, shows it to nobody but SHOW.
        .filter(|(_, setting)| setting.kind != Kind::Seed)
        .filter(|(_, setting)| examine_setting(host, setting.name).is_ok())
        .map(|(index, setting)| {
            let reset = setting.kind.plain(&live[index]);
            let value = match setting.context {
                Context::Reload => reset.clone(),
                _ => host.settings.plain(SettingId(index)),
            };
            let (unit, min, max) = match setting.kind {
                Kind::Integer { min, max, unit } => {
                    (unit.name(), Some(min.to_string()), Some(max.to_string()))
                }
                Kind::Real { min, max } => (None, Some(real(min)), Some(real(max))),
                _ => (None, None, None),
            };
            // What has one value here only has more in PostgreSQL, which is no list.
            let (vartype, choices) = match setting.kind {
                Kind::Enum(["on" | "off"]) => ("bool", Datum::Null),
                Kind::Enum([_]) => ("string", Datum::Null),
                Kind::Enum(choices) => ("enum", crate::system::cells::text_array(choices)),
                _ => (setting.kind.name(), Datum::Null),
            };
            let source = match setting.context {
                Context::User | Context::Superuser if value != reset => "session",
                Context::SuperuserBackend if value != reset => "client",
                _ if reset == setting.default => "default",
                _ => "configuration file",
            };
            vec![
                text(setting.name),
                text(value),
                optional(unit),
                text(setting.category),
                text(setting.description),
                Datum::Null,
                text(setting.context.as_str()),
                text(vartype),
                text(source),
                optional(min),
                optional(max),
                choices,
                text(setting.default),
                text(reset),
                Datum::Null,
                Datum::Null,
                Datum::Bool(host.server.live.is_pending(SettingId(index))),
            ]
        })
        .collect();
    let seen = foreign::all().iter().filter(|known| examine_setting(host, known.name).is_ok());
    rows.extend(seen.map(|known| foreign_row(host, known)));
    rows.sort_by_key(|row| match &row[0] {
        Datum::Text(name) => name.as_str().to_ascii_lowercase(),
        _ => String::new(),
    });
    rows
}

/// A bound of a setting, with the digits that PostgreSQL gives the largest number.
fn real(bound: f64) -> String {
    if bound == f64::MAX { "1.79769e+308".to_owned() } else { bound.to_string() }
}

/// A row of pg_settings about a setting without an effect.
fn foreign_row(host: &Host, known: &foreign::Foreign) -> Vec<Datum> {
    let own = host.settings.own_text(known.name);
    let (min, max) = match known.kind {
        Kind::Integer { min, max, .. } => (Some(min.to_string()), Some(max.to_string())),
        Kind::Real { min, max } => (Some(real(min)), Some(real(max))),
        _ => (None, None),
    };
    vec![
        text(known.name),
        text(own.unwrap_or(known.default)),
        optional(known.unit),
        text(known.category),
        text(known.description),
        if known.extra.is_empty() { Datum::Null } else { text(known.extra) },
        text(known.context),
        text(known.vartype),
        text(if own.is_some_and(|own| own != known.default) { "session" } else { "default" }),
        optional(min),
        optional(max),
        match known.kind {
            Kind::Enum(choices) if known.vartype == "enum" => crate::system::cells::text_array(choices),
            _ => Datum::Null,
        },
        text(known.default),
        text(known.default),
        Datum::Null,
        Datum::Null,
        Datum::Bool(false),
    ]
}

/// Whether statistics tell of a table: one of users, or (`all`) one of the system, which may have rows of its own.
fn is_counted(table: &TableRef, all: bool) -> bool {
    let of_users = table.is_stored() && table.schema != "pg_catalog";
    of_users || all && (table.is_stored() || table.kind == TableKind::System)
}

/// The tables by number and name, with NULL for what is not counted; `all`: those of the system, too.
fn known_tables(host: &Host, columns: &[(&str, Type)], all: bool) -> Vec<Vec<Datum>> {
    let tables = host.catalog.catalog.tables();
    let row = |table: &TableRef| {
        let mut row = vec![Datum::Oid(table.oid), text(&table.schema), text(&table.name)];
        row.resize(columns.len(), Datum::Null);
        row
    };
    tables.filter(|table| is_counted(table, all)).map(row).collect()
}

/// The indexes of the tables, with NULL for what is not counted: uses of primary keys, which are the tables, and
/// of indexes without entries. `all`: those of the system's tables, too.
fn known_indexes(host: &Host, all: bool) -> Vec<Vec<Datum>> {
    let mut rows = Vec::new();
    let tables = host.catalog.catalog.tables();
    for table in tables.filter(|table| is_counted(table, all)) {
        let meta = host.server.engine.table(TreeId(table.tree));
        let counted = |index: &Index| Some(meta.as_ref()?.index(TreeId(index.tree))?.uses.sum());
        let primary = table.primary_key.iter().map(|key| (key.oid, &key.name, None));
        let others = table.indexes.iter().map(|index| (index.oid, &index.name, counted(index)));
        for (oid, name, counts) in primary.chain(others) {
            let mut row = vec![Datum::Oid(table.oid), Datum::Oid(oid)];
            row.extend([text(&table.schema), text(&table.name), text(name)]);
            if let Some(counts) = counts {
                row.extend([big(counts.served()), big(counts.entries), big(counts.rows)]);
            }
            row.resize(INDEX_STATISTICS.len(), Datum::Null);
            rows.push(row);
        }
    }
    rows
}
