//! The table of settings. PostgreSQL's names keep PostgreSQL's types and meanings; what is
//! ours is called `archipel.…`.

use super::value::{Kind, Unit};

/// Who may change a setting, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Context {
    /// A fact about this server.
    Internal,
    /// On the command line, in the configuration file or the environment, before the start.
    Server,
    /// There too, and with ALTER SYSTEM; taken up while the server runs.
    Reload,
    /// The same, for sessions that begin; a superuser's client may say otherwise as it connects.
    SuperuserBackend,
    /// Any session of a superuser.
    Superuser,
    /// Any session.
    User,
}

impl Context {
    /// As `pg_settings.context` shows it.
    pub fn as_str(self) -> &'static str {
        match self {
            Context::Internal => "internal",
            Context::Server => "postmaster",
            Context::Reload => "sighup",
            Context::SuperuserBackend => "superuser-backend",
            Context::Superuser => "superuser",
            Context::User => "user",
        }
    }
}

/// One setting.
#[derive(Debug)]
pub struct Setting {
    pub name: &'static str,
    pub kind: Kind,
    pub context: Context,
    pub default: &'static str,
    pub category: &'static str,
    pub description: &'static str,
}

/// Index into [`SETTINGS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SettingId(pub usize);

impl SettingId {
    pub fn setting(self) -> &'static Setting {
        &SETTINGS[self.0]
    }
}

const fn setting(
    name: &'static str,
    kind: Kind,
    context: Context,
    default: &'static str,
    category: &'static str,
    description: &'static str,
) -> Setting {
    Setting { name, kind, context, default, category, description }
}

const MILLISECONDS: Kind = Kind::Integer { min: 0, max: i32::MAX as i64, unit: Unit::Milliseconds };
/// -1 is never.
const LOGGED_FROM: Kind = Kind::Integer { min: -1, max: i32::MAX as i64, unit: Unit::Milliseconds };
const ON_ONLY: Kind = Kind::Enum(&["on"]);
const OFF_ONLY: Kind = Kind::Enum(&["off"]);
const MESSAGE_LEVELS: Kind = Kind::Enum(&[
    "debug5", "debug4", "debug3", "debug2", "debug1", "debug", "log", "info", "notice", "warning", "error",
]);
const ISOLATION: Kind =
    Kind::Enum(&["read committed", "read uncommitted", "repeatable read", "serializable"]);

const fn count(min: i64, max: i64) -> Kind {
    Kind::Integer { min, max, unit: Unit::None }
}

const CLIENT: &str = "Client Connection Defaults";
const CONNECT: &str = "Connections and Authentication";
const SSL: &str = "Connections and Authentication / SSL";
const RESOURCE: &str = "Resource Usage";
const LOG: &str = "Write-Ahead Log";
const COMPATIBILITY: &str = "Version and Platform Compatibility";
/// Rows are updated in place and carry no transaction ids.
const UNFROZEN: &str = "A hint to PostgreSQL's VACUUM; there is nothing to freeze here.";
const TUNING: &str = "Query Tuning";
const PRESET: &str = "Preset Options";
const LOGGING: &str = "Reporting and Logging";
const STATISTICS: &str = "Statistics";
const OURS: &str = "Archipel";

use Context::{Internal, Reload, Server, Superuser, SuperuserBackend, User};

/// The version of PostgreSQL whose behaviour this server follows.
pub const SERVER_VERSION: &str = concat!("15.0 (Archipel ", env!("CARGO_PKG_VERSION"), ")");

/// What the settings of PostgreSQL's planner are here.
const HINT: &str = "A hint to PostgreSQL's planner, which this server's does not take.";

/// Every setting, by name in `pg_settings` order (case-insensitive).
#[rustfmt::skip]
pub static SETTINGS: &[Setting] = &[
    setting("application_name", Kind::Text, User, "", "Reporting and Logging", "Sets the application name to be reported in statistics and logs."),
    setting("archipel.adaptive", Kind::Bool, Reload, "on", OURS, "Splits, merges and moves partitions as the load asks for it; off only tells what it would do."),
    setting("archipel.adaptive_action_delay", Kind::Integer { min: 0, max: 10_000, unit: Unit::Milliseconds }, Reload, "1ms", OURS, "Time between two actions of one repartitioning."),
    setting("archipel.adaptive_confidence", Kind::Real { min: 0.0, max: 100.0 }, Reload, "2", OURS, "Standard deviations of what chance shows that the gain of a repartitioning must be above."),
    setting("archipel.adaptive_deviation", Kind::Real { min: 0.01, max: 1.0 }, Reload, "0.1", OURS, "How far throughput may be from the mean of the last five intervals before the monitor evaluates."),
    setting("archipel.adaptive_gain_min", Kind::Real { min: 0.0, max: 10.0 }, Reload, "0.05", OURS, "Gain of throughput that a repartitioning must promise, as a fraction."),
    setting("archipel.adaptive_hot_key_share", Kind::Real { min: 0.01, max: 1.0 }, Reload, "0.3", OURS, "A key with more than this fraction of its partition's transactions is given a partition of its own if that helps."),
    setting("archipel.adaptive_imbalance", Kind::Real { min: 0.01, max: 100.0 }, Reload, "0.25", OURS, "How much more than the average the busiest executor may have before the monitor evaluates, as a fraction."),
    setting("archipel.adaptive_interval_max", Kind::Integer { min: 100, max: 3_600_000, unit: Unit::Milliseconds }, Reload, "8s", OURS, "Longest time between two evaluations of the throughput; reached while nothing changes."),
    setting("archipel.adaptive_interval_min", Kind::Integer { min: 100, max: 3_600_000, unit: Unit::Milliseconds }, Reload, "1s", OURS, "Shortest time between two evaluations of the throughput."),
    setting("archipel.adaptive_mix_shift", Kind::Real { min: 0.01, max: 1.0 }, Reload, "0.2", OURS, "Fraction of the load that may shift between partitions before the monitor evaluates."),
    setting("archipel.adaptive_partitions_max", count(4, 1_024), Reload, "16", OURS, "Partitions a table may have for each executor before the monitor merges cold ones that it split."),
    setting("archipel.adaptive_sample_interval", Kind::Integer { min: 10, max: 60_000, unit: Unit::Milliseconds }, Reload, "250ms", OURS, "Time between two looks at throughput, mix and balance."),
    setting("archipel.adaptive_samples_min", count(1, 1_000_000), Reload, "100", OURS, "Measured transactions in two windows, below which the monitor decides nothing."),
    setting("archipel.atomic_copy", Kind::Bool, User, "off", OURS, "Makes a COPY of any size outside of a transaction block all or nothing, in memory until its end."),
    setting("archipel.auto_design", OFF_ONLY, User, "off", OURS, "Applies design advice online (not available yet)."),
    setting("archipel.checkpoint_bytes", Kind::Integer { min: 1 << 20, max: i64::MAX, unit: Unit::Bytes }, Server, "1GB", OURS, "A checkpoint begins when the log has this length, or earlier if archipel.restart_target asks for it; it is paced to end before four times this."),
    setting("archipel.colocate", Kind::Bool, Reload, "on", OURS, "Puts tables that deployed routines reach through the same argument into one co-location group, unless somebody has distributed them."),
    setting("archipel.core_speed_interval", Kind::Integer { min: 100, max: 3_600_000, unit: Unit::Milliseconds }, Reload, "2s", OURS, "Time between two measurements of how fast the cores are."),
    setting("archipel.core_speeds", Kind::Bool, Reload, "on", OURS, "Measures how fast each executor's core is, for archipel.adaptive; off takes them for equal."),
    setting("archipel.executors", count(0, 4096), Server, "0", OURS, "Number of executor threads; 0 takes one for each core allowed, and follows when cores come and go."),
    setting("archipel.http_hosts", Kind::Text, Reload, "", OURS, "Names, beside addresses and localhost, under which HTTP requests may know this server."),
    setting("archipel.http_tls", Kind::Bool, Reload, "off", OURS, "Serves HTTP over TLS alone, with the certificate of ssl_cert_file."),
    setting("archipel.http_token_file", Kind::Text, Reload, "", OURS, "File of the token that HTTP requests from elsewhere than this machine show (Authorization: Bearer) to be told more than the server's health."),
    setting("archipel.island", Kind::Enum(&["auto", "core", "l3", "socket", "machine"]), Server, "auto", OURS, "How large an island of executors is: one core, the cores of a last-level cache, of a socket, or all; auto begins with what the hardware suggests and goes by what runs cost near and far."),
    setting("archipel.log_store", Kind::Enum(&["rocksdb", "discard-unsynced"]), Server, "rocksdb", OURS, "Where the log lives; discard-unsynced keeps it in memory until it is synced, so that a crash test loses what a power cut would."),
    setting("archipel.max_version_memory", Kind::Integer { min: 1 << 20, max: i64::MAX, unit: Unit::Bytes }, Server, "1GB", OURS, "Memory for old row versions; beyond it the oldest snapshots are cancelled."),
    setting("archipel.memory_follow_delay", Kind::Integer { min: 0, max: 10_000, unit: Unit::Milliseconds }, Reload, "10ms", OURS, "Rest between two pieces of memory that follow a partition, while its executor has other work."),
    setting("archipel.memory_follow_size", Kind::Integer { min: 4 << 10, max: 64 << 20, unit: Unit::Bytes }, Reload, "128kB", OURS, "Size of a piece of memory that follows a partition; the partition waits that long."),
    setting("archipel.memory_follows", Kind::Bool, Reload, "on", OURS, "Moves the memory of a partition that has moved to another memory node after it, piece by piece."),
    setting("archipel.monitor", Kind::Bool, Reload, "on", OURS, "Measures one transaction in thirty-two, for archipel.adaptive and the views."),
    setting("archipel.one_shot_budget", MILLISECONDS, Server, "20ms", OURS, "Longest run of a one-shot before it becomes interactive."),
    setting("archipel.partition_rows_max", count(1_000, i64::MAX), Server, "100000", OURS, "A partition one of whose tables has more rows than this is split, while there are fewer than 16 of them for each executor."),
    setting("archipel.require_route", Kind::Bool, User, "off", OURS, "Refuses statements and calls that would touch every partition for want of a route."),
    setting("archipel.restart_target", Kind::Integer { min: 1, max: 86_400, unit: Unit::Seconds }, Server, "15s", OURS, "How long recovery may take after a crash; bounds the log by the measured speed of recovery."),
    setting("archipel.route", Kind::Text, User, "", OURS, "In SET of a routine: the argument whose value routes calls whose statements prove no route, or table(argument)."),
    setting("archipel.statement_memory", Kind::Integer { min: 1 << 20, max: i64::MAX, unit: Unit::Bytes }, Server, "1GB", OURS, "Memory for the values of a statement's routines: variables, and rows on their way."),
    setting("archipel.topology", Kind::Text, Server, "auto", OURS, "Hardware to plan for: auto, or synthetic: and a description."),
    setting("authentication_timeout", Kind::Integer { min: 1, max: 600, unit: Unit::Seconds }, Reload, "1min", CONNECT, "Sets the maximum allowed time to complete client authentication."),
    setting("auto_explain.log_min_duration", LOGGED_FROM, Superuser, "-1", "Customized Options", "Sets the minimum execution time above which plans will be logged, those of calls with their routes; -1 logs none."),
    setting("autovacuum", Kind::Bool, Internal, "on", RESOURCE, "Old versions of rows are always collected in the background."),
    setting("backslash_quote", Kind::Enum(&["safe_encoding", "on", "off"]), User, "safe_encoding", COMPATIBILITY, "Sets whether \"\\'\" is allowed in string literals."),
    setting("block_size", count(8192, 8192), Internal, "8192", PRESET, "Shows the size of a disk block."),
    setting("bytea_output", Kind::Enum(&["hex", "escape"]), User, "hex", CLIENT, "Sets the output format for bytea."),
    setting("check_function_bodies", Kind::Bool, User, "on", CLIENT, "Checks routine bodies during CREATE FUNCTION and CREATE PROCEDURE."),
    setting("client_encoding", Kind::Text, User, "UTF8", CLIENT, "Sets the client's character set encoding."),
    setting("client_min_messages", MESSAGE_LEVELS, User, "notice", CLIENT, "Sets the message levels that are sent to the client."),
    setting("constraint_exclusion", Kind::Enum(&["partition", "on", "off"]), User, "partition", TUNING, HINT),
    setting("cpu_index_tuple_cost", Kind::Real { min: 0.0, max: f64::MAX }, User, "0.005", TUNING, HINT),
    setting("cpu_operator_cost", Kind::Real { min: 0.0, max: f64::MAX }, User, "0.0025", TUNING, HINT),
    setting("cpu_tuple_cost", Kind::Real { min: 0.0, max: f64::MAX }, User, "0.01", TUNING, HINT),
    setting("cursor_tuple_fraction", Kind::Real { min: 0.0, max: 1.0 }, User, "0.1", TUNING, HINT),
    setting("data_directory", Kind::Text, Server, "", "File Locations", "Sets the server's data directory."),
    setting("DateStyle", Kind::Text, User, "ISO, MDY", CLIENT, "Sets the display format for date and time values."),
    setting("deadlock_timeout", Kind::Integer { min: 1, max: i32::MAX as i64, unit: Unit::Milliseconds }, User, "1s", "Lock Management", "Sets the time to wait on a lock before checking for deadlock."),
    setting("default_statistics_target", count(1, 10_000), User, "100", TUNING, HINT),
    setting("default_table_access_method", Kind::TableAccessMethod, User, "heap", CLIENT, "Sets the default table access method for new tables."),
    setting("default_tablespace", Kind::Tablespace, User, "", CLIENT, "Sets the default tablespace to create tables and indexes in."),
    setting("default_transaction_deferrable", Kind::Bool, User, "off", CLIENT, "Sets the default deferrable status of new transactions."),
    setting("default_transaction_isolation", ISOLATION, User, "read committed", CLIENT, "Sets the transaction isolation level of each new transaction."),
    setting("default_transaction_read_only", Kind::Bool, User, "off", CLIENT, "Sets the default read-only status of new transactions."),
    setting("default_with_oids", OFF_ONLY, User, "off", COMPATIBILITY, "Tables are not created with OIDs; this can only be off."),
    setting("effective_cache_size", Kind::Integer { min: 8, max: i64::MAX, unit: Unit::Kilobytes }, User, "4GB", TUNING, HINT),
    setting("effective_io_concurrency", count(0, 1000), User, "1", TUNING, HINT),
    setting("enable_async_append", Kind::Bool, User, "on", TUNING, HINT),
    setting("enable_bitmapscan", Kind::Bool, User, "on", TUNING, HINT),
    setting("enable_gathermerge", Kind::Bool, User, "on", TUNING, HINT),
    setting("enable_hashagg", Kind::Bool, User, "on", TUNING, HINT),
    setting("enable_hashjoin", Kind::Bool, User, "on", TUNING, HINT),
    setting("enable_incremental_sort", Kind::Bool, User, "on", TUNING, HINT),
    setting("enable_indexonlyscan", Kind::Bool, User, "on", TUNING, HINT),
    setting("enable_indexscan", Kind::Bool, User, "on", TUNING, HINT),
    setting("enable_material", Kind::Bool, User, "on", TUNING, HINT),
    setting("enable_memoize", Kind::Bool, User, "on", TUNING, HINT),
    setting("enable_mergejoin", Kind::Bool, User, "on", TUNING, HINT),
    setting("enable_nestloop", Kind::Bool, User, "on", TUNING, HINT),
    setting("enable_parallel_append", Kind::Bool, User, "on", TUNING, HINT),
    setting("enable_parallel_hash", Kind::Bool, User, "on", TUNING, HINT),
    setting("enable_partition_pruning", Kind::Bool, User, "on", TUNING, HINT),
    setting("enable_partitionwise_aggregate", Kind::Bool, User, "off", TUNING, HINT),
    setting("enable_partitionwise_join", Kind::Bool, User, "off", TUNING, HINT),
    setting("enable_seqscan", Kind::Bool, User, "on", TUNING, HINT),
    setting("enable_sort", Kind::Bool, User, "on", TUNING, HINT),
    setting("enable_tidscan", Kind::Bool, User, "on", TUNING, HINT),
    setting("escape_string_warning", Kind::Bool, User, "on", COMPATIBILITY, "Warns about backslash escapes in ordinary string literals."),
    setting("extra_float_digits", count(-15, 3), User, "1", CLIENT, "Sets the number of digits displayed for floating-point values."),
    setting("force_parallel_mode", Kind::Enum(&["off", "on", "regress"]), User, "off", TUNING, HINT),
    setting("from_collapse_limit", count(1, i32::MAX as i64), User, "8", TUNING, HINT),
    setting("geqo", Kind::Bool, User, "on", TUNING, HINT),
    setting("geqo_effort", count(1, 10), User, "5", TUNING, HINT),
    setting("geqo_threshold", count(2, i32::MAX as i64), User, "12", TUNING, HINT),
    setting("hash_mem_multiplier", Kind::Real { min: 1.0, max: 1000.0 }, User, "2", TUNING, HINT),
    setting("hba_file", Kind::Text, Server, "", "File Locations", "Sets the server's \"hba\" configuration file."),
    setting("ident_file", Kind::Text, Server, "", "File Locations", "Sets the server's \"ident\" configuration file."),
    setting("idle_in_transaction_session_timeout", MILLISECONDS, User, "0", CLIENT, "Sets the maximum allowed idle time between queries, when in a transaction."),
    setting("idle_session_timeout", MILLISECONDS, User, "0", CLIENT, "Sets the maximum allowed idle time between queries, when not in a transaction."),
    setting("in_hot_standby", OFF_ONLY, Internal, "off", PRESET, "Shows whether hot standby is currently active."),
    setting("integer_datetimes", ON_ONLY, Internal, "on", PRESET, "Shows whether datetimes are integer based."),
    setting("IntervalStyle", Kind::Enum(&["postgres", "postgres_verbose", "sql_standard", "iso_8601"]), User, "postgres", CLIENT, "Sets the display format for interval values."),
    setting("is_superuser", Kind::Bool, Internal, "on", PRESET, "Shows whether the current user is a superuser."),
    setting("jit", OFF_ONLY, User, "off", TUNING, "Allows JIT compilation (statements are always compiled to closures)."),
    setting("jit_above_cost", Kind::Real { min: -1.0, max: f64::MAX }, User, "100000", TUNING, HINT),
    setting("jit_inline_above_cost", Kind::Real { min: -1.0, max: f64::MAX }, User, "500000", TUNING, HINT),
    setting("jit_optimize_above_cost", Kind::Real { min: -1.0, max: f64::MAX }, User, "500000", TUNING, HINT),
    setting("join_collapse_limit", count(1, i32::MAX as i64), User, "8", TUNING, HINT),
    setting("lc_collate", Kind::Enum(&["C"]), Internal, "C", PRESET, "Shows the collation order locale."),
    setting("lc_ctype", Kind::Enum(&["C"]), Internal, "C", PRESET, "Shows the character classification and case conversion locale."),
    setting("lc_messages", Kind::Enum(&["C", "POSIX", "C.UTF-8", "en_US.UTF-8", "en_US.utf8"]), User, "C", CLIENT, "Sets the language in which messages are displayed."),
    setting("lc_monetary", Kind::Enum(&["C", "POSIX", "C.UTF-8", "en_US.UTF-8", "en_US.utf8"]), User, "C", CLIENT, "Sets the locale for formatting monetary amounts."),
    setting("lc_numeric", Kind::Enum(&["C", "POSIX", "C.UTF-8", "en_US.UTF-8", "en_US.utf8"]), User, "C", CLIENT, "Sets the locale for formatting numbers."),
    setting("lc_time", Kind::Enum(&["C", "POSIX", "C.UTF-8", "en_US.UTF-8", "en_US.utf8"]), User, "C", CLIENT, "Sets the locale for formatting date and time values."),
    setting("listen_addresses", Kind::Text, Server, "127.0.0.1", CONNECT, "Sets the host name or IP address(es) to listen to."),
    setting("lock_timeout", MILLISECONDS, User, "0", CLIENT, "Sets the maximum allowed duration of any wait for a lock."),
    setting("log_connections", Kind::Bool, SuperuserBackend, "off", LOGGING, "Logs each successful connection."),
    setting("log_disconnections", Kind::Bool, SuperuserBackend, "off", LOGGING, "Logs end of a session, including duration."),
    setting("log_min_duration_statement", LOGGED_FROM, Superuser, "-1", LOGGING, "Sets the minimum execution time above which all statements will be logged; -1 logs none."),
    setting("maintenance_work_mem", Kind::Integer { min: 1024, max: i32::MAX as i64, unit: Unit::Kilobytes }, User, "64MB", RESOURCE, "Sets the maximum memory to be used for maintenance operations."),
    setting("max_connections", count(1, 100_000), Server, "1000", CONNECT, "Sets the maximum number of concurrent connections."),
    setting("max_identifier_length", count(63, 63), Internal, "63", PRESET, "Shows the maximum identifier length."),
    setting("max_index_keys", count(32, 32), Internal, "32", PRESET, "Shows the maximum number of index keys."),
    setting("max_memory", Kind::Integer { min: 64 << 20, max: i64::MAX, unit: Unit::Bytes }, Server, "0", RESOURCE, "Memory for rows, indexes, transactions and statements; the default is three quarters of what the machine or container has."),
    setting("max_message_size", Kind::Integer { min: 10_000, max: i32::MAX as i64, unit: Unit::Bytes }, Server, "256MB", CONNECT, "Longest message a client may send."),
    setting("max_parallel_maintenance_workers", count(0, 1024), User, "2", TUNING, HINT),
    setting("max_parallel_workers", count(0, 1024), User, "8", TUNING, HINT),
    setting("max_parallel_workers_per_gather", count(0, 1024), User, "2", TUNING, HINT),
    setting("max_stack_depth", Kind::Integer { min: 100, max: i32::MAX as i64, unit: Unit::Kilobytes }, Superuser, "2MB", RESOURCE, "Sets the maximum stack depth, in kilobytes."),
    setting("min_parallel_index_scan_size", Kind::Integer { min: 0, max: i32::MAX as i64, unit: Unit::Kilobytes }, User, "512kB", TUNING, HINT),
    setting("min_parallel_table_scan_size", Kind::Integer { min: 0, max: i32::MAX as i64, unit: Unit::Bytes }, User, "8MB", TUNING, HINT),
    setting("parallel_leader_participation", Kind::Bool, User, "on", TUNING, HINT),
    setting("parallel_setup_cost", Kind::Real { min: 0.0, max: f64::MAX }, User, "1000", TUNING, HINT),
    setting("parallel_tuple_cost", Kind::Real { min: 0.0, max: f64::MAX }, User, "0.1", TUNING, HINT),
    setting("password_encryption", Kind::Enum(&["md5", "scram-sha-256"]), User, "scram-sha-256", CONNECT, "Chooses the algorithm for encrypting passwords."),
    setting("plan_cache_mode", Kind::Enum(&["auto", "force_generic_plan", "force_custom_plan"]), User, "auto", TUNING, HINT),
    setting("plpgsql.check_asserts", Kind::Bool, User, "on", "Customized Options", "Perform checks given in ASSERT statements."),
    setting("plpgsql.extra_errors", Kind::Text, User, "none", "Customized Options", "List of programming constructs that should produce an error."),
    setting("plpgsql.extra_warnings", Kind::Text, User, "none", "Customized Options", "List of programming constructs that should produce a warning."),
    setting("plpgsql.print_strict_params", Kind::Bool, User, "off", "Customized Options", "Print information about parameters in the DETAIL part of the error messages generated on INTO ... STRICT failures."),
    setting("plpgsql.variable_conflict", Kind::Enum(&["error", "use_variable", "use_column"]), User, "error", "Customized Options", "Sets handling of conflicts between PL/pgSQL variable names and table column names."),
    setting("port", count(0, 65_535), Server, "5432", CONNECT, "Sets the TCP port the server listens on."),
    setting("random_page_cost", Kind::Real { min: 0.0, max: f64::MAX }, User, "4", TUNING, HINT),
    setting("role", Kind::Text, Internal, "none", PRESET, "Sets the current role."),
    setting("row_security", Kind::Bool, User, "on", CLIENT, "Enable row security."),
    setting("search_path", Kind::Text, User, "\"$user\", public", CLIENT, "Sets the schema search order for names that are not schema-qualified."),
    setting("seed", Kind::Seed, User, "0", CLIENT, "Sets the seed for random-number generation."),
    setting("seq_page_cost", Kind::Real { min: 0.0, max: f64::MAX }, User, "1", TUNING, HINT),
    setting("server_encoding", Kind::Enum(&["UTF8"]), Internal, "UTF8", PRESET, "Shows the server (database) character set encoding."),
    setting("server_version", Kind::Text, Internal, SERVER_VERSION, PRESET, "Shows the server version."),
    setting("server_version_num", count(150_000, 150_000), Internal, "150000", PRESET, "Shows the server version as an integer."),
    setting("session_authorization", Kind::Text, Internal, "archipel", PRESET, "Shows the session user name."),
    setting("session_replication_role", Kind::Enum(&["origin", "replica", "local"]), Superuser, "origin", "Client Connection Defaults / Statement Behavior", "Sets the session's behavior for triggers and rewrite rules."),
    setting("ssl", Kind::Bool, Reload, "off", SSL, "Enables SSL connections."),
    setting("ssl_ca_file", Kind::Text, Reload, "", SSL, "Location of the SSL certificate authority file."),
    setting("ssl_cert_file", Kind::Text, Reload, "server.crt", SSL, "Location of the SSL server certificate file."),
    setting("ssl_ciphers", Kind::Text, Reload, "HIGH:MEDIUM:+3DES:!aNULL", SSL, "Sets the list of allowed SSL ciphers."),
    setting("ssl_crl_dir", Kind::Text, Reload, "", SSL, "Location of the SSL certificate revocation list directory."),
    setting("ssl_crl_file", Kind::Text, Reload, "", SSL, "Location of the SSL certificate revocation list file."),
    setting("ssl_dh_params_file", Kind::Text, Reload, "", SSL, "Location of the SSL DH parameters file (without effect: keys are agreed on by elliptic curves)."),
    setting("ssl_ecdh_curve", Kind::Text, Reload, "X25519:prime256v1:secp384r1", SSL, "Sets the curve to use for ECDH."),
    setting("ssl_key_file", Kind::Text, Reload, "server.key", SSL, "Location of the SSL server private key file."),
    setting("ssl_library", Kind::Enum(&["rustls"]), Internal, "rustls", PRESET, "Shows the name of the SSL library."),
    setting("ssl_max_protocol_version", Kind::Enum(&["", "TLSv1.2", "TLSv1.3"]), Reload, "", SSL, "Sets the maximum SSL/TLS protocol version to use."),
    setting("ssl_min_protocol_version", Kind::Enum(&["TLSv1.2", "TLSv1.3"]), Reload, "TLSv1.2", SSL, "Sets the minimum SSL/TLS protocol version to use."),
    setting("ssl_passphrase_command", Kind::Text, Reload, "", SSL, "Command to obtain passphrases for SSL."),
    setting("ssl_passphrase_command_supports_reload", Kind::Bool, Reload, "off", SSL, "Controls whether ssl_passphrase_command is called during server reload."),
    setting("ssl_prefer_server_ciphers", Kind::Bool, Reload, "on", SSL, "Give priority to server ciphersuite order."),
    setting("standard_conforming_strings", Kind::Bool, User, "on", COMPATIBILITY, "Causes '...' strings to treat backslashes literally."),
    setting("statement_timeout", MILLISECONDS, User, "0", CLIENT, "Sets the maximum allowed duration of any statement."),
    setting("superuser_reserved_connections", count(0, 262_143), Server, "3", CONNECT, "Sets the number of connection slots reserved for superusers."),
    setting("synchronize_seqscans", Kind::Bool, User, "on", COMPATIBILITY, "Lets scans of a table begin where another one is (every scan here begins at the first key)."),
    setting("synchronous_commit", Kind::Enum(&["on", "local", "remote_write", "remote_apply", "off"]), User, "on", LOG, "Sets whether a reply waits until what it depends on is durable."),
    setting("TimeZone", Kind::Text, User, "UTC", CLIENT, "Sets the time zone for displaying and interpreting time stamps."),
    setting("track_functions", Kind::Enum(&["none", "pl", "all"]), Superuser, "none", STATISTICS, "Collects function-level statistics on database activity."),
    setting("transaction_deferrable", Kind::Bool, User, "off", CLIENT, "Sets the current transaction's deferrable status."),
    setting("transaction_isolation", ISOLATION, User, "read committed", CLIENT, "Sets the current transaction's isolation level."),
    setting("transaction_read_only", Kind::Bool, User, "off", CLIENT, "Sets the current transaction's read-only status."),
    setting("unix_socket_directories", Kind::Text, Server, "", CONNECT, "Sets the directories where Unix-domain sockets will be created."),
    setting("unix_socket_group", Kind::Text, Server, "", CONNECT, "Sets the owning group of the Unix-domain socket."),
    setting("unix_socket_permissions", Kind::Text, Server, "0770", CONNECT, "Sets the access permissions of the Unix-domain socket."),
    setting("vacuum_freeze_min_age", count(0, 1_000_000_000), User, "50000000", CLIENT, UNFROZEN),
    setting("vacuum_freeze_table_age", count(0, 2_000_000_000), User, "150000000", CLIENT, UNFROZEN),
    setting("vacuum_multixact_freeze_min_age", count(0, 1_000_000_000), User, "5000000", CLIENT, UNFROZEN),
    setting("vacuum_multixact_freeze_table_age", count(0, 2_000_000_000), User, "150000000", CLIENT, UNFROZEN),
    setting("wal_writer_delay", Kind::Integer { min: 1, max: 10_000, unit: Unit::Milliseconds }, Server, "200ms", LOG, "Longest time between flushes of asynchronous commits; what a crash may lose is at most three times this."),
    setting("work_mem", Kind::Integer { min: 64, max: i32::MAX as i64, unit: Unit::Kilobytes }, User, "64MB", RESOURCE, "Sets the memory to be used for analytical statements."),
    setting("xmloption", Kind::Enum(&["content", "document"]), User, "content", CLIENT, "Sets whether XML data is considered documents or content fragments."),
];

/// Finds a setting by name, in any letter case; `TIME ZONE` is spelled by its setting's name.
pub fn find(name: &str) -> Option<SettingId> {
    SETTINGS.iter().position(|setting| setting.name.eq_ignore_ascii_case(name)).map(SettingId)
}

/// A setting's name as it is kept: a phrase as the name it stands for, one of the server's own in its letter
/// case, another one in lower case.
pub fn setting_name(name: &str) -> String {
    match name.to_ascii_lowercase().as_str() {
        "time zone" => "TimeZone".to_owned(),
        "transaction isolation level" => "transaction_isolation".to_owned(),
        "session authorization" => "session_authorization".to_owned(),
        other => find(other).map_or_else(|| other.to_owned(), |id| id.setting().name.to_owned()),
    }
}

/// Settings whose changes are told to the client (ParameterStatus), in the order a new
/// connection learns them.
pub static REPORTED: &[&str] = &[
    "application_name",
    "client_encoding",
    "DateStyle",
    "default_transaction_read_only",
    "in_hot_standby",
    "integer_datetimes",
    "IntervalStyle",
    "is_superuser",
    "server_encoding",
    "server_version",
    "session_authorization",
    "standard_conforming_strings",
    "TimeZone",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_default_is_a_valid_value() {
        for setting in SETTINGS {
            if setting.name == "max_memory" {
                continue; // computed from the machine at the start
            }
            setting.kind.parse(setting.name, setting.default).unwrap();
        }
    }

    #[test]
    fn names_are_unique() {
        for (index, setting) in SETTINGS.iter().enumerate() {
            assert_eq!(find(setting.name), Some(SettingId(index)), "{}", setting.name);
        }
        for name in REPORTED {
            assert!(find(name).is_some(), "{name}");
        }
    }
}
