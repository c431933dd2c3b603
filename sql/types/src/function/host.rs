//! What a function may ask of the statement and the session it runs in.

use std::sync::Arc;

use super::system_info::extra_checks::ExtraChecks;
use crate::datum::Datum;
use crate::error::{Result, SqlError, SqlState};
use crate::interrupt::Interruptible;
use crate::record::RowType;
use crate::rights::{Privileges, Requirement};
use crate::style::{Quoting, Style};
use crate::type_table::{BuiltIn, TypeNames};
use crate::types::{Oid, Type};

/// What a function may ask of the statement and session it runs in.
#[derive(Clone, Copy)]
pub struct FunctionContext<'a> {
    /// Transaction start, microseconds since 2000-01-01 UTC: `now()`.
    pub now: i64,
    pub session: &'a dyn SessionHost,
}

impl<'a> FunctionContext<'a> {
    /// The session's rules for text.
    pub fn style(&self) -> &'a Style {
        self.session.style()
    }

    /// Fails with 57014 when the statement was asked to stop. Loops within one call count
    /// [`crate::interrupt::steps`].
    pub fn check_interrupts(&self) -> Result<()> {
        self.session.interruption().map_or(Ok(()), Err)
    }
}

/// As the session names them.
impl TypeNames for FunctionContext<'_> {
    fn user_type(&self, ty: Type) -> Option<String> {
        self.session.type_names().user_type(ty)
    }

    fn quoting(&self) -> Quoting {
        self.session.type_names().quoting()
    }
}

impl FunctionContext<'static> {
    /// A context without a session or a clock: constant folding, tests.
    pub fn detached() -> FunctionContext<'static> {
        FunctionContext { now: 0, session: &NoSession }
    }
}

/// A prepared statement.
#[derive(Clone, Debug)]
pub struct PreparedText {
    /// As the client wrote it: for PREPARE, with that word.
    pub text: Arc<str>,
    /// Of its parameters.
    pub types: Arc<[Type]>,
}

/// Numbers that a session has drawn ahead from a sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CachedNumbers {
    /// Which running sequence they are of.
    pub incarnation: u64,
    /// How many were drawn at once: where that is another number now, they are good no more.
    pub cache: i64,
    pub next: i64,
    pub last: i64,
    pub increment: i64,
}

impl CachedNumbers {
    /// The next number, and what is left behind it.
    #[must_use]
    pub fn taken(self) -> (i64, Option<CachedNumbers>) {
        let next = self.next.checked_add(self.increment).filter(|_| self.next != self.last);
        (self.next, next.map(|next| CachedNumbers { next, ..self }))
    }
}

/// The session and server as functions see them. Methods answer "not here" by default, so
/// that tests and constant folding can use [`NoSession`]; those that allow something refuse it.
pub trait SessionHost: Interruptible + Sync {
    /// Settings that govern text: time zone, date style, bytea output.
    fn style(&self) -> &Style {
        Style::standard()
    }
    /// What the literal of this number of a routine was read as, if the session has come to it.
    fn literal(&self, _number: i64) -> Option<Arc<str>> {
        None
    }
    /// Keeps that for the next time.
    fn keep_literal(&self, _number: i64, _read: &str) {}
    /// Fails on a label of an enum that is not committed. A host that cannot tell refuses every one;
    /// one whose catalog holds committed labels only says so.
    fn check_label(&self, _label: Oid) -> Result<()> {
        Err(SqlError::unsupported("a label of an enum in this context"))
    }
    /// The number of the session's database: advisory locks are its own.
    fn database_oid(&self) -> Result<Oid> {
        Err(SqlError::unsupported("advisory locks in this context"))
    }
    /// The wall clock, microseconds since 2000-01-01 UTC: `clock_timestamp()`.
    fn clock(&self) -> Option<i64> {
        None
    }
    /// Whether the running statement was asked to stop: loops and scans look now and then, and
    /// answer the engine's cancellation.
    fn interrupted(&self) -> bool {
        false
    }
    /// The error of a statement that was asked to stop, whether a handler may take it or not.
    fn interruption(&self) -> Option<SqlError> {
        if !self.interrupted() {
            return None;
        }
        Some(self.cancellation().unwrap_or_else(|| {
            let message = "canceling statement due to user request";
            SqlError::new(SqlState::QUERY_CANCELED, message)
        }))
    }
    fn setting(&self, _name: &str) -> Option<String> {
        None
    }
    /// A setting's name as it is kept: in the letter case of the server's own, else in lower case.
    fn setting_name(&self, name: &str) -> String {
        name.to_lowercase()
    }
    /// Whether the role in force may have others begin with a value of this setting. A host that cannot tell
    /// says no.
    fn may_give_setting(&self, _name: &str) -> bool {
        false
    }
    /// A setting's value for who asks for it by name; 42501 where the role in force may not see it.
    fn examined_setting(&self, _name: &str) -> Result<Option<String>> {
        Ok(None)
    }
    /// A statement that the session has prepared under a name.
    fn prepared_statement(&self, _name: &str) -> Option<PreparedText> {
        None
    }
    /// Whether functions have changed settings that the server itself knows, and the session has not
    /// taken them over yet.
    fn has_settings_to_take(&self) -> bool {
        false
    }
    /// Whether the session applies what another server has done (`session_replication_role = replica`): of
    /// triggers only those fire that are said to, and foreign keys are not looked at.
    fn is_replica(&self) -> bool {
        false
    }
    /// The checks of PL/pgSQL that the session asks for.
    fn extra_checks(&self) -> ExtraChecks {
        ExtraChecks::default()
    }
    /// This session with other values of some settings: what a routine with SET clauses sees.
    fn with_settings(&self, _settings: &[(String, String)]) -> Result<Option<&dyn SessionHost>> {
        Err(SqlError::unsupported("a routine with SET clauses in this context"))
    }
    /// This session in the name of a routine's owner: what a SECURITY DEFINER routine sees.
    fn as_owner_of(&self, _routine: Oid, _settings: &[(String, String)]) -> Result<Option<&dyn SessionHost>> {
        Err(SqlError::unsupported("a SECURITY DEFINER routine in this context"))
    }
    /// The role in force and its setting of `row_security`: whose policies count. `None` where nobody knows, and
    /// what was planned for somebody is refused.
    fn policy_reader(&self) -> Option<(Oid, bool)> {
        None
    }
    /// A number for the role in force, its setting of `row_security` and the version of the catalog: whoever has found out what
    /// it may need not ask again. 0: there is no such number, and every run asks.
    fn authority(&self) -> u64 {
        0
    }
    /// How many settings functions of the statement have changed: for [`SessionHost::undo_settings`].
    fn changed_settings(&self) -> usize {
        0
    }
    /// Takes back what was changed beyond the first so many: a block that did has failed.
    fn undo_settings(&self, _kept: usize) {}
    /// The error of a statement that was asked to stop, if a handler may take it.
    fn cancellation(&self) -> Option<SqlError> {
        None
    }
    /// A handler has taken it: the statement goes on.
    fn forget_cancellation(&self) {}
    /// 42501 unless the role in force may do all this. A host that knows no roles allows nothing;
    /// one that shall allow everything says so.
    fn require(&self, needed: &[Requirement]) -> Result<()> {
        if needed.is_empty() { Ok(()) } else { Err(nobody()) }
    }
    /// 42501 unless the role in force has one of these rights on a sequence. As with
    /// [`SessionHost::require`], whoever knows no roles allows nothing.
    fn require_sequence(&self, _sequence: Oid, _one_of: Privileges) -> Result<()> {
        Err(nobody())
    }
    /// The engine's number of a sequence, where the session knows the sequence.
    fn sequence_file(&self, _sequence: Oid) -> Option<u32> {
        None
    }
    /// How many numbers of a sequence its session draws at once.
    fn sequence_cache(&self, _sequence: Oid) -> i64 {
        1
    }
    /// The next of the numbers that the session has drawn ahead from a running sequence.
    fn take_cached(&self, _sequence: Oid, _incarnation: u64) -> Option<i64> {
        None
    }
    /// Keeps numbers that were drawn ahead from a running sequence for the session's next calls; without
    /// any, forgets those that it has.
    fn keep_cached(&self, _sequence: Oid, _numbers: Option<CachedNumbers>) {}
    /// The name of a relation, where the session knows it.
    fn relation_name(&self, _relation: Oid) -> Option<String> {
        None
    }
    /// The catalog that the running statement sees, where the session knows it: what is looked up
    /// only when a plan runs is looked up there.
    fn current_catalog(&self) -> Option<&(dyn std::any::Any + Send + Sync)> {
        None
    }
    /// Who names types in messages: along the session's path, where the session knows one.
    fn type_names(&self) -> &dyn TypeNames {
        &BuiltIn
    }
    /// The relation whose columns are the fields of a composite type, where the session knows it.
    fn row_type(&self, _ty: Oid) -> Option<Arc<dyn RowType>> {
        None
    }
    /// Whether a relation is the session's own: a temporary one.
    fn is_temporary(&self, _relation: Oid) -> bool {
        false
    }
    /// A random number in [0, 1), deterministic under the simulator.
    fn random(&self) -> f64 {
        0.0
    }
    /// Calls a function whose meaning lies outside this crate (sequences, catalog functions,
    /// distribution functions), by its registered name.
    fn call(&self, name: &str, _args: &[Datum]) -> Result<Datum> {
        Err(SqlError::unsupported(format_args!("function {name} in this context")))
    }
}

impl<H: SessionHost> Interruptible for H {
    fn asked_to_stop(&self) -> Option<SqlError> {
        self.interruption()
    }
}

/// 42501 of hosts that know no roles.
fn nobody() -> SqlError {
    SqlError::new(SqlState::INSUFFICIENT_PRIVILEGE, "permission denied: there is no role here")
}

/// A host that knows nothing, and in whose name nothing is allowed.
pub struct NoSession;

impl SessionHost for NoSession {
    // Nobody adds labels in no session.
    fn check_label(&self, _label: Oid) -> Result<()> {
        Ok(())
    }
}
