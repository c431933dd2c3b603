//! Functions that ask the session or the server: sequences, settings, catalog definitions,
//! privileges, distribution. What this crate can answer itself it does; the rest goes through
//! [`SessionHost::call`](super::SessionHost::call) under the name given here.

use crate::datum::Datum;
use crate::encoding::Encoding;
use crate::error::{Result, SqlState};
use crate::function::Eval;
use crate::function::args::*;
use crate::io::natural_type;
use crate::type_table::{BuiltIn, TypeNames, fixed_length};
use crate::types::{Oid, Type};

/// Functions the host answers, under pg_proc.prosrc of the function.
macro_rules! hosted {
    ($($name:literal)*) => {
        &[$(($name, |c, v| c.session.call($name, v)),)*]
    };
}

pub(in crate::function) const HOSTED: &[(&str, Eval)] = hosted! {
    "archipel_sequence_row" "nextval_oid" "currval_oid" "lastval" "setval_oid" "setval3_oid" "pg_sequence_last_value" "pg_sequence_parameters"
    "current_database" "current_schema" "current_schemas" "current_user" "session_user" "current_query"
    "pg_backend_pid" "pg_get_userbyid" "pg_postmaster_start_time" "pg_conf_load_time" "pg_is_in_recovery" "inet_server_port" "inet_client_port"
    "inet_client_addr" "inet_server_addr"
    "pg_get_expr" "pg_get_expr_ext" "pg_get_indexdef" "pg_get_indexdef_ext" "pg_get_constraintdef" "pg_get_constraintdef_ext"
    "pg_get_functiondef" "pg_get_function_arguments" "pg_get_function_identity_arguments" "pg_get_function_result"
    "pg_get_function_arg_default" "pg_get_function_sqlbody" "pg_get_viewdef" "pg_get_viewdef_ext" "pg_get_viewdef_name"
    "pg_get_viewdef_name_ext" "pg_get_viewdef_wrap" "pg_get_triggerdef" "pg_get_triggerdef_ext" "pg_get_ruledef" "pg_get_ruledef_ext"
    "pg_get_serial_sequence" "pg_get_partkeydef" "pg_partition_root" "pg_get_partition_constraintdef" "pg_get_statisticsobjdef_columns" "pg_get_replica_identity_index"
    "pg_table_is_visible" "pg_function_is_visible" "pg_operator_is_visible" "pg_type_is_visible"
    "sql_1348" "sql_1215" "sql_1216" "sql_1993"
    "sql_2325" "pg_relation_size" "pg_total_relation_size" "pg_table_size" "pg_indexes_size" "pg_database_size_oid" "pg_database_size_name"
    "pg_tablespace_size_oid" "pg_tablespace_size_name"
    "pg_relation_filenode" "pg_relation_is_publishable" "pg_relation_is_updatable" "pg_column_is_updatable" "pg_describe_object"
    "pg_identify_object" "pg_relation_filepath" "pg_indexam_has_property" "pg_index_has_property" "pg_index_column_has_property"
    "set_config_by_name" "pg_sleep" "pg_cancel_backend" "pg_terminate_backend" "pg_reload_conf" "pg_notify" "pg_notification_queue_usage"
    "pg_advisory_lock_int8" "pg_advisory_unlock_int8" "pg_try_advisory_lock_int8" "pg_advisory_xact_lock_int8" "pg_try_advisory_xact_lock_int8"
    "pg_advisory_lock_int4" "pg_advisory_unlock_int4" "pg_try_advisory_lock_int4" "pg_advisory_xact_lock_int4" "pg_try_advisory_xact_lock_int4"
    "pg_advisory_lock_shared_int8" "pg_advisory_unlock_shared_int8" "pg_try_advisory_lock_shared_int8" "pg_advisory_xact_lock_shared_int8" "pg_try_advisory_xact_lock_shared_int8"
    "pg_advisory_lock_shared_int4" "pg_advisory_unlock_shared_int4" "pg_try_advisory_lock_shared_int4" "pg_advisory_xact_lock_shared_int4" "pg_try_advisory_xact_lock_shared_int4"
    "pg_advisory_unlock_all" "pg_blocking_pids" "pg_isolation_test_session_is_blocked"
    "be_lo_open" "be_lo_close" "be_loread" "be_lowrite" "be_lo_lseek" "be_lo_lseek64" "be_lo_tell" "be_lo_tell64"
    "be_lo_truncate" "be_lo_truncate64" "be_lo_creat" "be_lo_create" "be_lo_unlink" "be_lo_from_bytea" "be_lo_get"
    "be_lo_get_fragment" "be_lo_put" "be_lo_import" "be_lo_import_with_oid" "be_lo_export"
    "archipel_large_object_grant" "archipel_large_object_owner" "archipel_large_object_comment"
    "archipel_large_objects_of_roles"
    "archipel_catalog_version" "xid_age" "pg_export_snapshot" "pg_get_statisticsobjdef"
    "pg_current_xact_id" "pg_current_xact_id_if_assigned" "pg_current_snapshot" "pg_xact_status" "pg_trigger_depth" "row_security_active" "row_security_active_name"
    "to_regclass" "to_regproc" "to_regprocedure" "to_regoper" "to_regoperator" "to_regnamespace" "to_regrole"
    "has_table_privilege_name_name" "has_table_privilege_name_id" "has_table_privilege_id_name" "has_table_privilege_id_id" "has_table_privilege_name" "has_table_privilege_id"
    "has_sequence_privilege_name_name" "has_sequence_privilege_name_id" "has_sequence_privilege_id_name" "has_sequence_privilege_id_id" "has_sequence_privilege_name" "has_sequence_privilege_id"
    "has_column_privilege_name_name_name" "has_column_privilege_name_name_attnum" "has_column_privilege_name_id_name" "has_column_privilege_name_id_attnum" "has_column_privilege_id_name_name" "has_column_privilege_id_name_attnum"
    "has_column_privilege_id_id_name" "has_column_privilege_id_id_attnum" "has_column_privilege_name_name" "has_column_privilege_name_attnum" "has_column_privilege_id_name" "has_column_privilege_id_attnum"
    "has_any_column_privilege_name_name" "has_any_column_privilege_name_id" "has_any_column_privilege_id_name" "has_any_column_privilege_id_id" "has_any_column_privilege_name" "has_any_column_privilege_id"
    "has_schema_privilege_name_name" "has_schema_privilege_name_id" "has_schema_privilege_id_name" "has_schema_privilege_id_id" "has_schema_privilege_name" "has_schema_privilege_id"
    "has_database_privilege_name_name" "has_database_privilege_name_id" "has_database_privilege_id_name" "has_database_privilege_id_id" "has_database_privilege_name" "has_database_privilege_id"
    "has_function_privilege_name_name" "has_function_privilege_name_id" "has_function_privilege_id_name" "has_function_privilege_id_id" "has_function_privilege_name" "has_function_privilege_id"
    "has_type_privilege_name_name" "has_type_privilege_name_id" "has_type_privilege_id_name" "has_type_privilege_id_id" "has_type_privilege_name" "has_type_privilege_id"
    "has_language_privilege_name_name" "has_language_privilege_name_id" "has_language_privilege_id_name" "has_language_privilege_id_id" "has_language_privilege_name" "has_language_privilege_id"
    "has_tablespace_privilege_name_name" "has_tablespace_privilege_name_id" "has_tablespace_privilege_id_name" "has_tablespace_privilege_id_id" "has_tablespace_privilege_name" "has_tablespace_privilege_id"
    "has_parameter_privilege_name_name" "has_parameter_privilege_id_name" "has_parameter_privilege_name"
    "has_server_privilege_name_name" "has_server_privilege_name_id" "has_server_privilege_id_name" "has_server_privilege_id_id" "has_server_privilege_name" "has_server_privilege_id"
    "has_foreign_data_wrapper_privilege_name_name" "has_foreign_data_wrapper_privilege_name_id" "has_foreign_data_wrapper_privilege_id_name" "has_foreign_data_wrapper_privilege_id_id"
    "has_foreign_data_wrapper_privilege_name" "has_foreign_data_wrapper_privilege_id"
    "makeaclitem" "pg_collation_actual_version" "pg_database_collation_actual_version"
    "pg_has_role_name_name" "pg_has_role_name_id" "pg_has_role_id_name" "pg_has_role_id_id" "pg_has_role_name" "pg_has_role_id"
    "create_distributed_table" "create_reference_table" "create_distributed_function" "undistribute_table"
    "split_partition" "merge_partitions" "move_partition"
    "pin_partition" "unpin_partition" "freeze_partition" "unfreeze_partition"
};

/// Set-returning functions of the session.
pub(in crate::function) const SETS: &[(&str, crate::function::SetEval)] = &[
    ("pg_listening_channels", |c, v| match c.session.call("pg_listening_channels", v)? {
        Datum::Array(channels) => Ok(channels.values.iter().map(|name| vec![name.clone()]).collect()),
        _ => Ok(Vec::new()),
    }),
    ("show_all_settings", |c, v| records(c.session.call("show_all_settings", v)?)),
    ("pg_available_extensions", |c, v| records(c.session.call("pg_available_extensions", v)?)),
    ("pg_available_extension_versions", |c, v| {
        records(c.session.call("pg_available_extension_versions", v)?)
    }),
];

/// The records of an array as rows.
fn records(value: Datum) -> Result<Vec<Vec<Datum>>> {
    let Datum::Array(records) = value else { return Ok(Vec::new()) };
    let row = |record: &Datum| match record {
        Datum::Record(fields) => fields.to_vec(),
        other => vec![other.clone()],
    };
    Ok(records.values.iter().map(row).collect())
}

/// Text of the server's version, as `version()` begins in PostgreSQL: drivers parse it.
pub const VERSION_TEXT: &str = concat!("PostgreSQL 15.0 (Archipel ", env!("CARGO_PKG_VERSION"), ")");

fn size_pretty(bytes: i128) -> String {
    // Halves away from zero at each step, and bytes up to 10 kB, as PostgreSQL.
    let mut value = bytes;
    for (i, unit) in ["bytes", "kB", "MB", "GB", "TB", "PB"].iter().enumerate() {
        if value.abs() < if i == 0 { 10 * 1024 } else { 20 * 1024 } || i == 5 {
            if i > 0 {
                value = (value + value.signum()) / 2;
            }
            return format!("{value} {unit}");
        }
        value >>= if i == 0 { 9 } else { 10 };
    }
    format!("{bytes} bytes")
}

fn size_bytes(text: &str) -> crate::error::Result<i64> {
    let wrong = || invalid_parameter(format!("invalid size: \"{text}\""));
    let trimmed = text.trim();
    let split =
        trimmed.find(|c: char| c.is_ascii_alphabetic() && c != 'e' && c != 'E').unwrap_or(trimmed.len());
    let (number, unit) = trimmed.split_at(split);
    let factor: i64 = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" | "bytes" => 1,
        "kb" => 1 << 10,
        "mb" => 1 << 20,
        "gb" => 1 << 30,
        "tb" => 1 << 40,
        "pb" => 1 << 50,
        _ => {
            return Err(wrong()
                .with_detail(format!("Invalid size unit: \"{}\".", unit.trim()))
                .with_hint("Valid units are \"bytes\", \"B\", \"kB\", \"MB\", \"GB\", \"TB\", and \"PB\"."));
        }
    };
    let value: crate::numeric::Numeric = number.trim().parse().map_err(|_| wrong())?;
    value.mul(&crate::numeric::Numeric::from(factor))?.to_i64()
}

pub(in crate::function) const FUNCTIONS: &[(&str, Eval)] = &[
    ("acldefault_sql", |c, v| match text(v, 0)?.chars().next() {
        // The kinds of object there are; roles have their names from the catalog.
        Some('c' | 'r' | 's' | 'd' | 'f' | 'l' | 'L' | 'n' | 'p' | 't' | 'F' | 'S' | 'T') => {
            c.session.call("acldefault_sql", v)
        }
        other => Err(crate::error::SqlError::internal(format!(
            "unrecognized objtype abbreviation: {}",
            other.unwrap_or_default()
        ))),
    }),
    ("pgsql_version", |_, _| Ok(text_datum(VERSION_TEXT))),
    ("show_config_by_name", |c, v| {
        let name = text(v, 0)?;
        c.session.examined_setting(name)?.map(text_datum).ok_or_else(|| {
            crate::error::SqlError::new(
                SqlState::UNDEFINED_OBJECT,
                format!("unrecognized configuration parameter \"{name}\""),
            )
        })
    }),
    ("show_config_by_name_missing_ok", |c, v| {
        let name = text(v, 0)?;
        match c.session.examined_setting(name)? {
            Some(value) => Ok(text_datum(value)),
            None if boolean(v, 1)? => Ok(Datum::Null),
            None => Err(crate::error::SqlError::new(
                SqlState::UNDEFINED_OBJECT,
                format!("unrecognized configuration parameter \"{name}\""),
            )),
        }
    }),
    ("format_type", |c, v| match any(v, 0)? {
        Datum::Null => Ok(Datum::Null),
        _ => {
            let typmod = match v.get(1) {
                Some(Datum::Int4(n)) => *n,
                _ => -1,
            };
            let oid = oid(v, 0)?;
            if oid.0 == 0 {
                return Ok(text_datum("-"));
            }
            // Row types are the session's to name.
            if crate::type_table::type_info(oid).is_none() {
                return Ok(c.session.call("format_type", v).unwrap_or_else(|_| text_datum("???")));
            }
            // A modifier of -1 that was asked for (not NULL) shows the internal spelling.
            Ok(text_datum(match v.get(1) {
                Some(Datum::Null) => BuiltIn.type_name(oid),
                _ => BuiltIn.format_type(Type { oid, typmod }),
            }))
        }
    }),
    ("to_regtype", |c, v| match crate::type_table::type_by_name(&text(v, 0)?.to_ascii_lowercase()) {
        Some(info) => Ok(Datum::Oid(info.oid)),
        None => c.session.call("to_regtype", v),
    }),
    // pg_typeof folds in the binder, which knows the type; a value alone shows its own.
    ("pg_typeof", |_, v| Ok(Datum::Oid(crate::io::natural_type(any(v, 0)?).oid))),
    ("pg_collation_for", |_, _| Ok(text_datum("\"default\""))),
    ("pg_column_size", |_, v| Ok(Datum::Int4(column_size(any(v, 0)?)))),
    ("pg_size_pretty", |_, v| Ok(text_datum(size_pretty(i128::from(int8(v, 0)?))))),
    ("pg_size_pretty_numeric", |_, v| Ok(text_datum(size_pretty(i128::from(numeric(v, 0)?.to_i64()?))))),
    ("pg_size_bytes", |_, v| Ok(Datum::Int8(size_bytes(text(v, 0)?)?))),
    ("PG_encoding_to_char", |_, v| Ok(text_datum(Encoding::of_code(int4(v, 0)?).map_or("", Encoding::name)))),
    ("PG_char_to_encoding", |_, v| Ok(Datum::Int4(Encoding::named(text(v, 0)?).map_or(-1, Encoding::code)))),
    ("getdatabaseencoding", |_, _| Ok(text_datum("UTF8"))),
    ("pg_client_encoding", |c, _| Ok(text_datum(c.style().encoding.name()))),
    ("pg_my_temp_schema", |_, _| Ok(Datum::Oid(Oid(0)))),
    ("pg_is_other_temp_schema", |_, _| Ok(Datum::Bool(false))),
    ("pg_jit_available", |_, _| Ok(Datum::Bool(false))),
    // Everything built in lives in pg_catalog, which is always on the path.
    ("pg_collation_is_visible", |_, _| Ok(Datum::Bool(true))),
    ("pg_conversion_is_visible", |_, _| Ok(Datum::Bool(true))),
    ("pg_opclass_is_visible", |_, _| Ok(Datum::Bool(true))),
    ("pg_opfamily_is_visible", |_, _| Ok(Datum::Bool(true))),
    ("pg_ts_config_is_visible", |_, _| Ok(Datum::Bool(true))),
    ("pg_ts_dict_is_visible", |_, _| Ok(Datum::Bool(true))),
    ("pg_ts_parser_is_visible", |_, _| Ok(Datum::Bool(true))),
    ("pg_ts_template_is_visible", |_, _| Ok(Datum::Bool(true))),
    ("pg_statistics_obj_is_visible", |_, _| Ok(Datum::Bool(true))),
    ("pg_tablespace_location", |_, _| Ok(text_datum(""))),
    ("pg_encoding_max_length_sql", |_, v| {
        let encoding = Encoding::of_code(int4(v, 0)?);
        Ok(encoding.map_or(Datum::Null, |encoding| Datum::Int4(encoding.character_bytes_max())))
    }),
];

fn column_size(value: &Datum) -> i32 {
    match value {
        Datum::Null => 0,
        Datum::Text(text) | Datum::Bpchar(text) | Datum::Jsonb(text) => {
            text.len() as i32 + if text.len() < 127 { 1 } else { 4 }
        }
        Datum::Bytea(bytes) => bytes.len() as i32 + if bytes.len() < 127 { 1 } else { 4 },
        // With a length in bits before them.
        Datum::Bits(bits) => bits.bytes().len() as i32 + if bits.bytes().len() < 123 { 5 } else { 8 },
        Datum::Numeric(number) => {
            let mut wire = Vec::new();
            number.write_binary(&mut wire);
            wire.len() as i32 - 5
        }
        Datum::Array(array) => 24 + array.values.iter().map(column_size).sum::<i32>(),
        Datum::Record(fields) => 24 + fields.iter().map(column_size).sum::<i32>(),
        // Behind a length of one byte.
        Datum::Inet(inet) => inet.stored().len() as i32 + 1,
        fixed => fixed_length(natural_type(fixed).oid).map_or(4, |length| length as i32),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_read_well() {
        assert_eq!(size_pretty(10_239), "10239 bytes");
        assert_eq!(size_pretty(10_240), "10 kB");
        assert_eq!(size_pretty(1 << 30), "1024 MB");
        assert_eq!(size_bytes("1.5 kB"), Ok(1536));
    }
}
