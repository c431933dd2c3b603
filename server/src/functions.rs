//! Functions whose meaning lies in the session or the server, by pg_proc.prosrc.
//!
//! Catalog functions (`pg_get_indexdef`, `regclassin`, …) are answered by the dialect from the
//! catalog; what is left asks the session: who and where it is, its sequences, its settings.
//! Distribution functions are definitions, and repartitioning functions are actions: both are
//! kept and run when the statement is over.

mod signal;
mod wait;

use std::time::Duration;

use archipel_planner::ddl::DistributionCall;
use archipel_planner::native::LAST_SEQUENCE;
use archipel_sql::catalog::{Numbered, Privileges, SessionRoles};
use archipel_sql::datum::Datum;
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::function::{SessionHost, Snapshot};
use archipel_sql::io::may_be;
use archipel_sql::types::Oid;
use archipel_sql::{interrupt, memory};

use self::wait::waiting;
use crate::server::row_places::KeyOf;
use crate::session::host::{Host, PendingSetting};
use crate::session::large_object::file;
use crate::session::role_setting;
use crate::system::Source;
use crate::system::cells;
use crate::system::cells::array;

/// About what a change of a setting takes that is kept, beside its value.
const PENDING_BYTES: usize = 128;

/// Answers the function `name`.
pub fn call(host: &Host, name: &str, args: &[Datum]) -> Result<Datum> {
    if let Some(call) = distribution_call(name, args) {
        let call = call?;
        host.asked.note(|asked| asked.definitions.push(call));
        return Ok(Datum::Null);
    }
    if let Some(change) = crate::system::repartition::from_function(host, name, args) {
        require_superuser(host, name)?;
        let change = change?;
        host.asked.note(|asked| asked.repartitions.push(change));
        return Ok(Datum::Null);
    }
    Ok(match name {
        "currval" | "currval_oid" => return current_value(host, args),
        "lastval" => return last_value(host),
        LAST_SEQUENCE => last_sequence(host).map_or(Datum::Null, |sequence| Datum::Oid(Oid(sequence))),
        "current_database" => Datum::text(&host.entry.database),
        "current_user" => Datum::text(&role_name(host, host.roles().current)),
        "session_user" => Datum::text(&role_name(host, host.roles().session)),
        "current_schema" => {
            current_schemas(host, false).first().map_or(Datum::Null, |name| Datum::text(name))
        }
        "current_schemas" => text_array(&current_schemas(host, args.first() == Some(&Datum::Bool(true)))),
        "current_query" => Datum::text(&host.entry.activity.view().query),
        "pg_backend_pid" => Datum::Int4(host.entry.process_id),
        "pg_postmaster_start_time" | "pg_conf_load_time" => Datum::TimestampTz(host.server.started_at),
        "pg_is_in_recovery" => Datum::Bool(false),
        "inet_client_addr" => cells::address(host.entry.client.map(|client| client.ip())),
        "inet_server_addr" => cells::address(host.entry.server_address),
        "inet_server_port" => match host.entry.client {
            Some(_) => Datum::Int4(i32::from(host.server.config.listen.port)),
            None => Datum::Null,
        },
        "inet_client_port" => match host.entry.client {
            Some(client) => Datum::Int4(i32::from(client.port())),
            None => Datum::Null,
        },
        "set_config_by_name" => return set_config(host, args),
        "pg_cancel_backend" => return signal::cancel(host, args),
        "setseed" => return host.memory.random.set_seed(args),
        "pg_sleep" => return waiting(|| sleep(host, args)),
        "archipel_new_oid" => return new_oid(host),
        "be_lo_import" => return waiting(|| file::read(host, args)),
        "be_lo_export" => return waiting(|| file::write(host, args)),
        "pg_terminate_backend" => return signal::terminate(host, args),
        "pg_blocking_pids" => blocking_pids(host, args),
        // What PostgreSQL's isolation tester asks: whether one of its own sessions is in the way.
        "pg_isolation_test_session_is_blocked" => is_blocked_by_tested(host, args),
        "pg_current_xact_id" => Datum::Int8(host.memory.transaction.assigned(&host.server.transaction_ids)),
        "archipel_catalog_version" => {
            Datum::Oid(Oid(host.database.catalog_xid(&host.server.transaction_ids) as u32))
        }
        "archipel_row_place" => return row_place(host, args),
        "archipel_place_key" => place_key(host, args),
        "xid_age" => match args {
            [Datum::Oid(id)] => Datum::Int4(host.server.transaction_ids.age(id.0)),
            _ => Datum::Null,
        },
        "show_all_settings" => {
            let rows = crate::system::settings(host).into_iter();
            array(Oid::RECORD, rows.map(|row| Datum::Record(row.into())).collect())
        }
        "pg_export_snapshot" => {
            interrupt::once()?;
            Datum::text(&export_snapshot(host))
        }
        "pg_current_xact_id_if_assigned" => host.memory.transaction.id().map_or(Datum::Null, Datum::Int8),
        "pg_current_snapshot" => Datum::text(&current_snapshot(host).to_string()),
        "pg_xact_status" => match args {
            [Datum::Int8(id)] => host.server.transaction_ids.status(*id)?.map_or(Datum::Null, Datum::text),
            _ => Datum::Null,
        },
        "pg_trigger_depth" => Datum::Int4(0),
        "pg_notification_queue_usage" => Datum::Float8(host.database.notifications.usage()),
        "pg_listening_channels" => {
            let channels = host.memory.listening.lock().iter().map(|name| Datum::text(name)).collect();
            array(Oid::TEXT, channels)
        }
        "pg_reload_conf" => {
            require_superuser(host, name)?;
            host.asked.note(|asked| asked.reload = true);
            Datum::Bool(true)
        }
        "pg_relation_size" | "pg_total_relation_size" | "pg_table_size" | "pg_indexes_size" | "sql_2325" => {
            return crate::system::relation_size::relation_size(host, name, args);
        }
        "pg_database_size_oid" | "pg_database_size_name" => {
            return crate::system::database_size::database_size(host, args);
        }
        "pg_tablespace_size_oid" | "pg_tablespace_size_name" => {
            return crate::system::database_size::tablespace_size(host, args);
        }
        _ => return from_catalog(host, name, args),
    })
}

/// A function that the catalog answers.
fn from_catalog(host: &Host, name: &str, args: &[Datum]) -> Result<Datum> {
    let source = Source(host);
    let value = archipel_sql::system::call(name, args, &source)
        .unwrap_or_else(|| Err(SqlError::unsupported(format_args!("function {name}"))))?;
    if !host.catalog.added_labels.is_empty()
        && matches!(name, "enum_in" | "enum_first" | "enum_last" | "enum_range")
    {
        match &value {
            Datum::Array(labels) => host.catalog.check_labels(&labels.values)?,
            label => host.catalog.check_labels([label])?,
        }
    }
    Ok(value)
}

fn require_superuser(host: &Host, name: &str) -> Result<()> {
    if !host.rights().is_superuser() {
        let message = format!("permission denied for function {name}");
        return Err(SqlError::new(SqlState::INSUFFICIENT_PRIVILEGE, message));
    }
    Ok(())
}

fn blocking_pids(host: &Host, args: &[Datum]) -> Datum {
    match args {
        [Datum::Int4(process)] => {
            let blocking = crate::system::activity::blocking(host, *process);
            array(Oid::INT4, blocking.into_iter().map(Datum::Int4).collect())
        }
        _ => Datum::Null,
    }
}

fn is_blocked_by_tested(host: &Host, args: &[Datum]) -> Datum {
    match args {
        [Datum::Int4(process), Datum::Array(tested)] => {
            let blocking = crate::system::activity::blocking(host, *process);
            let tested = |process| tested.values.contains(&Datum::Int4(process));
            Datum::Bool(blocking.into_iter().any(tested))
        }
        _ => Datum::Null,
    }
}

/// Lets others see what the transaction sees; outside of a block it is over before anybody can.
fn export_snapshot(host: &Host) -> String {
    let snapshot = host.entry.engine.export_snapshot();
    let snapshot = snapshot.unwrap_or_else(|| host.server.engine.snapshot_for(host.entry.process_id as u64));
    let (name, kept) = host.server.exported.export(host.database.oid, snapshot);
    host.memory.transaction.keep_exported(kept);
    name
}

/// The place of a row whose key is no small integer.
fn row_place(host: &Host, args: &[Datum]) -> Result<Datum> {
    let [Datum::Oid(constraint), _, key @ ..] = args else { return Ok(Datum::Null) };
    let asker = host.memory.transaction.keep_places(&host.server.row_places);
    host.server.row_places.place(asker, KeyOf { database: host.database.oid, constraint: *constraint }, key)
}

/// A column of the key of the row at a place, if it is still of the type that is asked for.
fn place_key(host: &Host, args: &[Datum]) -> Datum {
    let [Datum::Int8(place), Datum::Oid(constraint), _, _, Datum::Int4(column), Datum::Oid(ty)] = args else {
        return Datum::Null;
    };
    let Ok(column) = usize::try_from(*column) else { return Datum::Null };
    let asker = host.memory.transaction.keep_places(&host.server.row_places);
    let of = KeyOf { database: host.database.oid, constraint: *constraint };
    let value = host.server.row_places.key_column(asker, of, *place, column);
    if may_be(&value, *ty) { value } else { Datum::Null }
}

/// Which transactions are over: for one that reads a single snapshot, when it first asked.
fn current_snapshot(host: &Host) -> Snapshot {
    let isolation = host.setting("transaction_isolation");
    let kept = isolation.is_some_and(|level| matches!(&*level, "repeatable read" | "serializable"));
    host.memory.transaction.snapshot(&host.server.transaction_ids, kept)
}

/// The name of a role as it is now.
fn role_name(host: &Host, role: Oid) -> String {
    host.catalog.catalog.role_by_oid(role).map_or_else(|| role.to_string(), |role| role.name.clone())
}

fn text_array(items: &[String]) -> Datum {
    array(Oid::NAME, items.iter().map(|item| Datum::text(item)).collect())
}

/// The schemas of the search path that exist; with `implicit`, pg_catalog and the session's own in their places.
fn current_schemas(host: &Host, implicit: bool) -> Vec<String> {
    let catalog = &host.catalog.catalog;
    let names = catalog.current_schemas(&host.search_path, implicit);
    names.into_iter().map(str::to_owned).collect()
}

fn current_value(host: &Host, args: &[Datum]) -> Result<Datum> {
    let Some(Datum::Oid(sequence)) = args.first() else { return Ok(Datum::Null) };
    host.require_sequence(*sequence, Privileges::USAGE | Privileges::SELECT)?;
    match host.memory.sequence_values.lock().get(&sequence.0) {
        Some(value) => Ok(Datum::Int8(*value)),
        None => {
            let name = host
                .catalog
                .catalog
                .sequence_by_oid(*sequence)
                .map_or_else(|| sequence.to_string(), |sequence| sequence.name.clone());
            Err(SqlError::new(
                SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
                format!("currval of sequence \"{name}\" is not yet defined in this session"),
            ))
        }
    }
}

/// The sequence that gave a number last, as long as it is there.
fn last_sequence(host: &Host) -> Option<u32> {
    let exists = |sequence: &u32| host.catalog.catalog.sequence_by_oid(Oid(*sequence)).is_some();
    (*host.memory.last_sequence.lock()).filter(exists)
}

fn last_value(host: &Host) -> Result<Datum> {
    let last = last_sequence(host);
    if let Some(sequence) = last {
        host.require_sequence(Oid(sequence), Privileges::USAGE | Privileges::SELECT)?;
    }
    let value = last.and_then(|sequence| host.memory.sequence_values.lock().get(&sequence).copied());
    value.map(Datum::Int8).ok_or_else(|| {
        SqlError::new(
            SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
            "lastval is not yet defined in this session",
        )
    })
}

fn set_config(host: &Host, args: &[Datum]) -> Result<Datum> {
    let [Datum::Text(name), value, local] = args else {
        return Err(SqlError::new(SqlState::NULL_VALUE_NOT_ALLOWED, "SET requires parameter name"));
    };
    let text = match value {
        Datum::Text(text) => text.to_string(),
        _ => String::new(),
    };
    // They are kept until the statement is over, however many there are.
    memory::require(PENDING_BYTES + text.len(), "GUCMemoryContext")?;
    if role_setting::is_role_setting(name) {
        if host.settings.is_acting() {
            let message =
                format!("cannot set parameter \"{}\" within security-definer function", name.to_lowercase());
            return Err(SqlError::new(SqlState::INSUFFICIENT_PRIVILEGE, message));
        }
        let roles = host.roles();
        let (catalog, client) = (&host.catalog.catalog, host.entry.role);
        let chosen = role_setting::check_role(catalog, roles, client, &name.to_lowercase(), &text)?;
        let roles = match chosen.map(|role| role.oid) {
            Some(role) if name.eq_ignore_ascii_case(role_setting::ROLE) => {
                SessionRoles { current: role, ..roles }
            }
            Some(role) => SessionRoles { current: role, session: role },
            None => SessionRoles { current: roles.session, ..roles },
        };
        let (name, value, local) = (name.to_string(), text.clone(), *local == Datum::Bool(true));
        let setting = PendingSetting { name, value, local };
        host.asked.note(|asked| asked.set_roles(setting, roles));
        return Ok(Datum::text(&text));
    }
    role_setting::require_right(name, &host.rights())?;
    // Checked now, on a copy; the session takes it over when the statement has succeeded.
    let mut scratch = crate::settings::SessionSettings::new(host.server.live.values());
    scratch.set(name, Some(&text), false)?;
    let shown = scratch.effective().show(name).unwrap_or(text.clone());
    let (name, local) = (name.to_string(), *local == Datum::Bool(true));
    host.asked.note(|asked| asked.settings.push(PendingSetting { name, value: text, local }));
    Ok(Datum::text(&shown))
}

/// A number for an object that no catalog knows: its maker looks whether another such object has it.
fn new_oid(host: &Host) -> Result<Datum> {
    let drawn = host.database.catalog.numbers().draw(Numbered::Oid, 1);
    let none_left = || {
        let message = "there are no numbers left for new objects";
        SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message)
    };
    Ok(Datum::Oid(Oid(drawn.ok_or_else(none_left)?)))
}

fn sleep(host: &Host, args: &[Datum]) -> Result<Datum> {
    let seconds = match args {
        // As good as for ever, and a length that the clock can add.
        [Datum::Float8(seconds)] if !seconds.is_nan() => seconds.clamp(0.0, 1e9),
        _ => return Ok(Datum::Null),
    };
    let end = std::time::Instant::now() + Duration::from_secs_f64(seconds);
    while std::time::Instant::now() < end {
        if host.interrupted() {
            return Err(host.entry.cancel_error());
        }
        std::thread::sleep(
            Duration::from_millis(5).min(end.saturating_duration_since(std::time::Instant::now())),
        );
    }
    // void
    Ok(Datum::Text(Default::default()))
}

fn distribution_call(name: &str, args: &[Datum]) -> Option<Result<DistributionCall>> {
    if !(name.starts_with("create_") || name == "undistribute_table") {
        return None;
    }
    DistributionCall::from_function(name, args)
}
