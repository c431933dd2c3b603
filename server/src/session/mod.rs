//! One session: what a connected client has set, prepared and begun.
//!
//! - [`protocol`]    messages: the loop of a connection, simple and extended queries, pipelines
//! - [`execute`]     one prepared statement, whatever it is: by whom it runs, until when, DO, EXPLAIN, triggers
//! - [`transaction`] BEGIN … COMMIT, implicit transactions, savepoints; constraints and notifications that wait for COMMIT
//! - [`definition`]  DDL, on its own and in blocks; its locks; maintenance
//! - [`copy`]        COPY
//! - [`cursor`]      DECLARE, FETCH, MOVE, CLOSE; portals; rows that come when they are fetched
//! - [`large_object`] statements about large objects; files that they come from and go to
//! - [`utility`]     statements that neither read nor write rows
//! - [`backup`]      BASE_BACKUP
//! - [`migration`]      a session that goes to another executor, with its [`belongings`]
//! - [`role`]        in whose name
//! - [`host`]        what SQL functions may ask of the session; [`memory`] what it keeps for them
//! - [`role_setting`] the settings that are roles
//!
//! Invariant: a session lives on one executor thread from one transaction to the next; whatever
//! travels to other threads (a program, the host, a session that moves) owns its data.

mod backup;
pub(crate) mod belongings;
mod copy;
pub(crate) mod cursor;
pub(crate) mod definition;
pub(crate) mod execute;
pub mod host;
pub(crate) mod large_object;
mod memory;
pub mod migration;
pub mod protocol;
mod random;
pub(crate) mod role;
pub(crate) mod role_setting;
mod transaction;
mod utility;

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use archipel_engine::id::Epoch;
use archipel_planner::native::cursors::Cursors;
use archipel_sql::encoding::Encoding;
use archipel_sql::error::SqlError;
use archipel_sql::stack;
use rustc_hash::FxHashMap;

use crate::catalog::CatalogState;
use crate::database::Database;
use crate::executor::Executor;
use crate::notifications::Listener;
use crate::replies::Replies;
use crate::server::{Counters, EngineDurability, Server};
use crate::sessions::{CancelReason, Registered, SessionEntry};
use crate::settings::SessionSettings;
use crate::settings::session::Effective;
use crate::statement::Prepared;
use crate::wire::output::{Output, Severity, Status};
use copy::state::{CopyIn, CopyTo};
use cursor::portal_state::Portal;
use host::Host;
use protocol::pipeline_state::Pipeline;
use transaction::Transaction;

/// The state of one session. See the module's head.
pub struct Session {
    pub(crate) server: Arc<Server>,
    pub(crate) executor: Rc<Executor>,
    /// The one its client has asked for.
    pub(crate) database: Arc<Database>,
    /// Its catalog, fetched anew when another one is in force.
    catalog: RefCell<Arc<CatalogState>>,
    /// Gives the place among the sessions back when the session ends.
    registered: Registered,
    pub(crate) settings: SessionSettings,
    pub(crate) output: Output,
    replies: Rc<Replies<EngineDurability>>,
    /// The newest epoch the messages in `output` depend on.
    depends_on: Epoch,
    transaction: Transaction,
    statements: FxHashMap<String, Arc<Prepared>>,
    unnamed_statement: Option<Arc<Prepared>>,
    portals: FxHashMap<String, Portal>,
    unnamed_portal: Option<Portal>,
    pipeline: Pipeline,
    cursors: Cursors,
    /// The cycle this session was the victim of, until its error tells it.
    deadlock: RefCell<Option<String>>,
    /// The block whose definition runs beside it, in no transaction: it keeps its locks while that waits.
    beside: std::cell::Cell<Option<archipel_engine::id::TxnId>>,
    /// An error in the extended protocol: everything up to Sync is skipped.
    skip_until_sync: bool,
    /// When the simple message came that is being run: there a transaction of its own begins.
    message_start: Option<i64>,
    copy_in: Option<Box<CopyIn>>,
    /// Where the rows of the COPY that runs go, if not to the client.
    copy_to: Option<Box<CopyTo>>,
    /// The host of the current settings and catalog, made anew when either changes.
    pub(crate) host: Option<Arc<Host>>,
    /// What functions keep for the session: last values of sequences, the random seed.
    memory: Arc<host::Memory>,
    /// Cancels the running statement at its `statement_timeout`.
    timer: Option<Timer>,
    /// The text `pg_stat_activity` shows.
    told: Arc<str>,
    /// How long the last statement ran, where that was measured.
    took: Option<Duration>,
    /// What is said while a statement runs that a routine has left, to be told with its context.
    overheard: Option<Vec<(Severity, SqlError)>>,
    /// The client has closed the connection while a statement ran.
    client_gone: std::cell::Cell<bool>,
    /// Whether it does what is left to be done at its end, for which no client is needed.
    leaves: std::cell::Cell<bool>,
    /// Set while the session listens to something.
    listener: Option<Listener>,
    /// The settings that the client has been told of.
    told_settings: Arc<Effective>,
    /// Whether the output holds a notice, which does not wait for what comes after it.
    told_notice: bool,
    /// How many notices the checks raised that the statement at hand has put off to the end of its transaction:
    /// they come behind its rows.
    late_notices: usize,
    /// Whether the statements of a text that has several are running.
    in_script: bool,
    /// Whether the statement at hand has found, before it did anything, that what it was prepared for is
    /// no more: other columns, or none at all.
    reshaped: bool,
    /// How often the output has been handed over: what was written before can no longer be changed.
    flushes: u64,
}

/// Results larger than this do not wait for the end of a script or a pipeline.
const EARLY_BYTES_MIN: usize = 64 << 10;

/// How often a session whose client does not read looks whether it shall end.
const TERMINATION_LOOKED_FOR_EVERY: Duration = Duration::from_millis(100);

/// A task of the front thread that ends when dropped.
struct Timer(tokio::task::JoinHandle<()>);

impl Drop for Timer {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Session {
    pub(crate) fn entry(&self) -> &Arc<SessionEntry> {
        &self.registered.entry
    }

    /// Adds to one of the executor's counters.
    pub(crate) fn count(&self, counter: fn(&Counters) -> &AtomicU64, by: u64) {
        if let Some(counters) = self.server.counters.get(usize::from(self.executor.number)) {
            counter(counters).fetch_add(by, Ordering::Relaxed);
        }
    }

    /// What the client reads and writes text in.
    pub(crate) fn encoding(&self) -> Encoding {
        self.settings.effective().style.encoding
    }

    /// The status ReadyForQuery tells.
    fn status(&self) -> Status {
        self.transaction.status()
    }

    /// Notes that what is in the output buffer may leave only when `epoch` is durable.
    pub(crate) fn depend_on(&mut self, epoch: Epoch) {
        if self.settings.effective().synchronous_commit {
            self.depends_on = self.depends_on.max(epoch);
        }
    }

    /// Hands the output buffer over.
    async fn flush(&mut self) {
        self.told_notice = false;
        self.flushes += 1;
        let depends_on = std::mem::replace(&mut self.depends_on, Epoch(0));
        self.replies.send(&mut self.output, depends_on);
        if self.replies.presses() {
            tokio::select! {
                biased;
                () = self.replies.back_pressure() => {}
                // Of a session that ends nobody need read the rest.
                () = self.terminated() => {}
            }
        }
    }

    /// Hands over a part of an answer that goes on. Who does not read holds up a statement, which can
    /// be asked to stop meanwhile.
    pub(super) async fn flush_part(&mut self) -> Result<(), SqlError> {
        let (depends_on, entry) = (self.depends_on, self.entry().clone());
        let taken = tokio::select! {
            biased;
            () = self.flush() => true,
            () = entry.cancel_asked() => false,
        };
        // What comes depends on it as well.
        self.depends_on = depends_on;
        if self.replies.is_broken() {
            self.client_gone.set(true);
            entry.cancel(CancelReason::ClientGone);
        }
        if taken && !self.client_gone.get() { Ok(()) } else { Err(entry.cancel_error()) }
    }

    /// Resolves when somebody wants the session to end.
    async fn terminated(&self) {
        while !self.entry().is_terminated() {
            tokio::time::sleep(TERMINATION_LOOKED_FOR_EVERY).await;
        }
    }

    /// Between two statements, or where a procedure has ended a transaction: what was said so far is
    /// not said again, so notices leave, as PostgreSQL sends them, and so do large results, which would
    /// pile up until Sync. Answers that statements still to be run come between wait.
    pub(super) async fn flush_early(&mut self) {
        let presses = self.told_notice || self.output.len() >= EARLY_BYTES_MIN;
        if presses && self.overheard.is_none() && !self.has_put_off() {
            self.flush().await;
        }
    }

    /// Tells the client something that is no error, if it wants to hear it.
    pub(crate) fn notice(&mut self, severity: Severity, notice: &SqlError) {
        if let Some(overheard) = &mut self.overheard {
            overheard.push((severity, notice.clone()));
            return;
        }
        let least = self.settings.effective().client_min_messages;
        // INFO reaches the client whatever the setting says.
        if severity >= least || severity == Severity::Info {
            self.output.report(severity, notice);
            self.told_notice = true;
        }
    }

    /// Tells the client about reported settings that are not what it was told of them, as it is about to be
    /// asked for another query.
    fn report_changes(&mut self) {
        let now = self.settings.effective().clone();
        if Arc::ptr_eq(&now, &self.told_settings) {
            return;
        }
        let told = std::mem::replace(&mut self.told_settings, now.clone());
        for ((name, value), (_, old)) in now.reported().zip(told.reported()) {
            if value != old
                && let Err(untranslatable) = self.output.parameter_status(name, &value)
            {
                self.output.report(Severity::Error, &untranslatable);
            }
        }
    }

    /// Changes settings through `change`. What clients must know of it they are told when they are asked for
    /// another query.
    pub(crate) fn change_settings<T>(
        &mut self,
        change: impl FnOnce(&mut SessionSettings) -> Result<T, SqlError>,
    ) -> Result<T, SqlError> {
        let before = self.settings.effective().clone();
        let result = change(&mut self.settings);
        if !Arc::ptr_eq(&before, self.settings.effective()) {
            stack::set_depth(self.settings.effective().stack_depth_kb);
            self.output.set_encoding(self.encoding());
            self.host = None;
            let named = "application_name";
            if self.settings.effective().value(named) != before.value(named) {
                let shown = self.settings.effective().show(named).unwrap_or_default();
                self.entry().activity.set_application_name(&shown);
            }
        }
        result
    }

    /// Takes up the server's settings if they have been read again, between two transactions.
    fn take_up_settings(&mut self) {
        if self.server.live.version() != self.settings.version() && !self.transaction.is_open() {
            let live = self.server.live.now();
            let taken = self.change_settings(|settings| {
                settings.take_up(live.values.clone(), live.version);
                Ok(())
            });
            debug_assert!(taken.is_ok());
        }
    }

    /// Begins a statement: what `pg_stat_activity` shows, and a clean cancel flag.
    fn begin_statement(&mut self, text: &Arc<str>) {
        self.timer = None;
        self.see_definitions();
        self.entry().begin_statement();
        self.start_timer();
        self.took = None;
        self.show_activity(text);
    }

    /// Lets `pg_stat_activity` show that the session works on a text.
    fn show_activity(&mut self, text: &Arc<str>) {
        if !Arc::ptr_eq(&self.told, text) {
            self.entry().activity.set_query(text);
            self.told = text.clone();
        }
        self.entry().activity.begin(crate::clock::now());
    }

    /// A message of the extended protocol begins to be worked on: reading, planning and binding can be
    /// asked to stop as running can, and `statement_timeout` is theirs too.
    fn begin_work(&mut self) {
        if self.timer.is_none() {
            self.entry().begin_statement();
            self.start_timer();
        }
    }

    /// Lets `statement_timeout` begin.
    fn start_timer(&mut self) {
        self.timer = None;
        let timeout = self.settings.effective().statement_timeout_ms;
        if timeout > 0 {
            let entry = self.entry().clone();
            // On another thread, so that it fires while this one computes.
            let timer = self.server.front.spawn(async move {
                tokio::time::sleep(std::time::Duration::from_millis(timeout)).await;
                entry.cancel(CancelReason::StatementTimeout);
            });
            self.timer = Some(Timer(timer));
        }
    }

    /// The statement is over, unless it is a COPY that takes data: nothing is left to be timed.
    fn stop_timer(&mut self) {
        if self.copy_in.is_none() {
            self.timer = None;
        }
    }

    /// The session waits for its client again.
    fn become_idle(&mut self) {
        self.timer = None;
        let entry = self.entry();
        entry.end_statement();
        entry.activity.end(self.took, self.transaction.activity());
    }
}
