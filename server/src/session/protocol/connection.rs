//! The connection loop: handshake, then messages one after the other until the client leaves.
//!
//! Everything a client has pipelined is worked off before the socket is read again; replies are
//! handed over at Sync, Flush and the end of a simple query, never message by message; errors and
//! notices at once, as clients that send no Sync before they have seen an answer rely on. After a
//! few messages the session yields, so that the executor's partitions and its other sessions
//! get their turn.

use std::cell::RefCell;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use archipel_engine::id::Epoch;
use archipel_planner::ddl::database::undefined_database;
use archipel_sql::error::{SqlError, SqlState};
use archipel_sql::{interrupt, memory};
use futures::FutureExt;
use rustc_hash::FxHashMap;

use super::startup_settings::{set_as_asked, set_as_said};
use crate::authentication::names::names_of;
use crate::database::Database;
use crate::database::door::Entering;
use crate::executor::Executor;
use crate::front::{Arrival, NewClient};
use crate::replies::Replies;
use crate::run::panic_error;
use crate::server::{EngineDurability, Server};
use crate::session::belongings::{Belongings, MovingSession};
use crate::session::transaction::Transaction;
use crate::session::{Session, role, role_setting};
use crate::sessions::{NewSession, Secret, SessionEntry};
use crate::settings::SessionSettings;
use crate::settings::value::Value;
use crate::wire::frame::Input;
use crate::wire::output::{Output, Severity};
use crate::wire::socket::{Socket, Transport};

/// How long the last replies to a client that does not read keep a session that was ended.
const DRAINED_WITHIN: Duration = Duration::from_secs(5);

/// How often who waits at the door of a database looks whether the server goes down.
const LOOKED_FOR_EVERY: Duration = Duration::from_millis(100);

/// Messages handled before other work on this thread gets a turn.
const MESSAGES_PER_TURN: usize = 64;

/// What ended the wait for the client.
enum Received {
    /// So many bytes; none: it has left.
    Bytes(usize),
    /// Somebody asks something of the session, or has something to tell its client.
    Request,
}

/// What becomes of the connection after a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::session) enum Flow {
    Continue,
    Close,
}

/// What becomes of a session when its work on this thread is done.
enum Done {
    Ended,
    /// It goes to another executor.
    Leaves(Transport),
}

/// Serves one client until its session ends, or goes to another executor.
pub async fn serve(server: Arc<Server>, executor: Rc<Executor>, arrival: Arrival, closing: Rc<Closing>) {
    let (transport, arrived) = match arrival {
        Arrival::Client(NewClient { transport, client, minor_version, parameters, rest }) => {
            let mut input = Input::new(server.config.integer("max_message_size") as usize);
            input.append(&rest);
            (transport, Arrived::Client(input, client, minor_version, parameters))
        }
        Arrival::Session(moving) => {
            let MovingSession { transport, input, belongings } = *moving;
            (transport, Arrived::Session(input, belongings))
        }
    };
    let Ok(socket) = Socket::register(transport) else { return };
    let durability = EngineDurability(server.engine.clone());
    let replies = Replies::new(socket, durability, executor.outbox.clone());
    closing.attach(&replies);
    let writer = tokio::task::spawn_local(replies.clone().write_queued());
    let doors = server.doors.clone();
    let opened = match arrived {
        Arrived::Client(input, client, minor_version, parameters) => {
            let asked = (client, minor_version, &parameters[..]);
            let opened = Session::open(server, executor, replies.clone(), &closing, asked).await;
            opened.map(|session| (session, input))
        }
        Arrived::Session(input, belongings) => {
            Ok((Session::arrive(server, executor, replies.clone(), belongings), input))
        }
    };
    match opened {
        Ok((mut session, mut input)) => {
            closing.belongs_to(session.entry());
            interrupt::work_for(session.entry().clone());
            // What was asked of it while it was between two threads.
            closing.pass_on_requests();
            session.flush().await;
            match session.work(&mut input, &closing).await {
                Done::Ended => {
                    session.leave().await;
                    session.log_disconnection();
                }
                Done::Leaves(transport) => {
                    closing.forget();
                    doors.forward(session.depart(transport, input));
                }
            }
        }
        Err(error) => {
            let mut output = Output::new();
            // It is known who the client is: what it asks for is refused.
            output.authentication_ok();
            output.report(Severity::Fatal, &error);
            replies.send(&mut output, Epoch(0));
        }
    }
    replies.close();
    // The last replies may still wait for durability or for the client to read.
    let _ = tokio::time::timeout(Duration::from_secs(30), writer).await;
    replies.socket().end_encryption();
}

/// Who came through the door, its socket aside.
enum Arrived {
    Client(Input, Option<std::net::SocketAddr>, u16, Vec<(String, String)>),
    Session(Input, Box<Belongings>),
}

/// How an executor tells a session that the server goes down, or that it shall go elsewhere.
#[derive(Default)]
pub struct Closing {
    asked: std::cell::Cell<bool>,
    /// The session's task, while it waits for its client.
    waiting: std::cell::RefCell<Option<Waker>>,
    replies: std::cell::RefCell<Option<Rc<Replies<EngineDurability>>>>,
    entry: std::cell::OnceCell<Arc<SessionEntry>>,
}

impl Closing {
    fn attach(&self, replies: &Rc<Replies<EngineDurability>>) {
        *self.replies.borrow_mut() = Some(replies.clone());
    }

    fn belongs_to(&self, entry: &Arc<SessionEntry>) {
        // Set once: a connection has one session.
        let _ = self.entry.set(entry.clone());
    }

    /// Lets go of the connection: the session is elsewhere.
    fn forget(&self) {
        self.replies.borrow_mut().take();
    }

    /// Ends the session if somebody asked for that, or lets it see that it shall go elsewhere.
    pub fn pass_on_requests(&self) {
        let Some(entry) = self.entry.get() else { return };
        if entry.is_terminated() {
            self.ask();
        } else if entry.destination().is_some()
            && let Some(waiting) = self.waiting.borrow_mut().take()
        {
            waiting.wake();
        }
    }

    /// Wakes the task of this context when something is asked of the session.
    fn wait(&self, context: &Context<'_>) {
        let mut waiting = self.waiting.borrow_mut();
        if !waiting.as_ref().is_some_and(|waiting| waiting.will_wake(context.waker())) {
            *waiting = Some(context.waker().clone());
        }
    }

    /// Ends the session when its running statement is over: the socket reads as finished.
    pub fn ask(&self) {
        self.asked.set(true);
        if let Some(replies) = &*self.replies.borrow() {
            let _ = replies.socket().shutdown(std::net::Shutdown::Read);
        }
    }

    pub(super) fn is_asked(&self) -> bool {
        self.asked.get()
    }
}

/// The database of a name, which is not dropped or renamed before its door is let go.
async fn enter(
    server: &Server,
    name: &str,
    closing: &Closing,
) -> Result<(Arc<Database>, Entering), SqlError> {
    loop {
        let database = server.databases.named(name).ok_or_else(|| undefined_database(name))?;
        let entering = loop {
            match tokio::time::timeout(LOOKED_FOR_EVERY, database.door.enter()).await {
                Ok(entering) => break entering,
                Err(_) if closing.is_asked() => {
                    let message = "the database system is shutting down";
                    return Err(SqlError::new(SqlState::CANNOT_CONNECT_NOW, message));
                }
                Err(_) => {}
            }
        };
        if server.databases.named(name).is_some_and(|now| Arc::ptr_eq(&now, &database)) {
            return Ok((database, entering));
        }
    }
}

impl Session {
    /// Checks who the client is and greets it.
    async fn open(
        server: Arc<Server>,
        executor: Rc<Executor>,
        replies: Rc<Replies<EngineDurability>>,
        closing: &Closing,
        (client, minor_version, parameters): (Option<std::net::SocketAddr>, u16, &[(String, String)]),
    ) -> Result<Session, SqlError> {
        let (user, database_name) = names_of(parameters)?;
        let role = role::admit(&server, &user)?;
        let (database, entering) = enter(&server, &database_name, closing).await?;
        role::require_connect(&database, &role)?;
        let row = database.catalog.current().catalog.database(database.oid);
        let registered = server.sessions.register(NewSession {
            user,
            role: role.oid,
            superuser: role.superuser,
            role_limit: role.connection_limit,
            database_oid: database.oid,
            database: database.name().to_string(),
            database_limit: row.map_or(-1, |row| row.connection_limit),
            client,
            server_address: replies.socket().server_address(),
            tls: replies.socket().shared_tls(),
            executor: executor.number,
            now: crate::clock::now(),
            secret: Secret::draw(minor_version)?,
            engine: &|number| server.engine.client(number),
        })?;
        drop(entering);
        let live = server.live.now();
        let mut settings = SessionSettings::new(live.values.clone()).at_version(live.version);
        settings.set_user(role_setting::role_value(&role));
        let mut cut = Vec::new();
        set_as_said(&mut settings, &role, &database, &mut cut);
        set_as_asked(&mut settings, &role, &database, parameters, &mut cut)?;
        settings.started();
        // As long as the greeting: a client that stays idle keeps it.
        let mut output = Output::in_encoding(settings.effective().style.encoding);
        output.authentication_ok();
        if Severity::Notice >= settings.effective().client_min_messages {
            cut.iter().for_each(|notice| output.report(Severity::Notice, notice));
        }
        for (name, value) in settings.effective().reported() {
            output.parameter_status(name, &value)?;
        }
        let (process_id, secret) = registered.key();
        output.backend_key_data(process_id, secret);
        output.ready_for_query(crate::wire::output::Status::Idle);
        let application = settings.effective().show("application_name").unwrap_or_default();
        registered.entry.activity.set_application_name(&application);
        let told_settings = settings.effective().clone();
        Ok(Session {
            server,
            executor,
            catalog: RefCell::new(database.catalog.current()),
            database,
            registered,
            settings,
            output,
            replies,
            depends_on: Epoch(0),
            transaction: Transaction::default(),
            statements: FxHashMap::default(),
            unnamed_statement: None,
            portals: FxHashMap::default(),
            unnamed_portal: None,
            pipeline: Default::default(),
            cursors: Default::default(),
            deadlock: Default::default(),
            beside: Default::default(),
            skip_until_sync: false,
            message_start: None,
            copy_in: None,
            copy_to: None,
            host: None,
            memory: Arc::default(),
            timer: None,
            told: Arc::default(),
            took: None,
            overheard: None,
            client_gone: Default::default(),
            leaves: Default::default(),
            listener: None,
            told_settings,
            told_notice: false,
            late_notices: 0,
            in_script: false,
            reshaped: false,
            flushes: 0,
        })
    }

    async fn work(&mut self, input: &mut Input, closing: &Closing) -> Done {
        let mut handled = 0;
        loop {
            match input.frame() {
                Ok(Some((frame, length))) => {
                    let rest = &input.pending()[length..];
                    let flow = match AssertUnwindSafe(self.frame(frame, rest)).catch_unwind().await {
                        Ok(flow) => flow,
                        // Nobody knows what it has left: the client is told, and the session ends as
                        // others do, with its socket and what it holds.
                        Err(payload) => {
                            self.output.report(Severity::Fatal, &panic_error(&*payload));
                            self.flush().await;
                            return Done::Ended;
                        }
                    };
                    input.consume(length);
                    let gone = self.replies.is_broken() || self.client_gone.get();
                    if flow == Flow::Close || gone || closing.is_asked() {
                        break;
                    }
                    handled += 1;
                    if handled % MESSAGES_PER_TURN == 0 {
                        tokio::task::yield_now().await;
                    }
                    continue;
                }
                Ok(None) => {
                    let allows = |bytes| memory::require(bytes, "MessageContext");
                    if let Some((kind, error)) = input.refuse_large(allows) {
                        self.refuse_message(kind, error).await;
                    }
                }
                Err(desynchronized) => {
                    self.lose_frames(desynchronized).await;
                    return Done::Ended;
                }
            }
            if self.may_leave()
                && let Some(transport) = self.pack().await
            {
                return Done::Leaves(transport);
            }
            if self.has_deliveries() {
                self.deliver().await;
                self.flush().await;
                if self.client_gone.get() {
                    return Done::Ended;
                }
            }
            let received = self.receive(input, closing).await;
            self.take_up_settings();
            match received {
                Ok(Received::Bytes(0)) => break,
                Ok(Received::Bytes(_)) => {}
                Ok(Received::Request) => self.end_stopped_wait().await,
                Err(Some(error)) => {
                    self.output.report(Severity::Fatal, &error);
                    self.flush().await;
                    return Done::Ended;
                }
                Err(None) => return Done::Ended,
            }
        }
        if closing.is_asked() && !self.replies.is_broken() {
            let error = SqlError::new(
                SqlState::ADMIN_SHUTDOWN,
                "terminating connection due to administrator command",
            );
            self.output.report(Severity::Fatal, &error);
            self.flush().await;
        }
        Done::Ended
    }

    /// Reads what has arrived, waiting if nothing has. `Err(Some(…))` ends the session with an
    /// error for the client, `Err(None)` without.
    async fn receive(&mut self, input: &mut Input, closing: &Closing) -> Result<Received, Option<SqlError>> {
        let replies = self.replies.clone();
        let arrived = {
            let mut read = std::pin::pin!(replies.socket().read(input.room()));
            match futures::poll!(read.as_mut()) {
                Poll::Ready(arrived) => arrived,
                Poll::Pending => {
                    // A COPY that waits for data is a statement that runs, and the time of one whose
                    // messages have not all come goes on.
                    let runs = self.copy_in.is_some() || self.timer.is_some();
                    if !runs {
                        self.become_idle();
                    }
                    let session = &*self;
                    let mut stopped = std::pin::pin!(session.wait_stopped());
                    let next = std::future::poll_fn(|context| {
                        if let Some(listener) = &session.listener {
                            listener.mailbox.wait(context.waker());
                        }
                        if session.may_leave() || session.has_deliveries() {
                            return Poll::Ready(None);
                        }
                        closing.wait(context);
                        if let Poll::Ready(arrived) = read.as_mut().poll(context) {
                            return Poll::Ready(Some(arrived));
                        }
                        stopped.as_mut().poll(context).map(|()| None)
                    });
                    let arrived = match session.idle_limit() {
                        _ if runs => next.await,
                        (None, ..) => next.await,
                        (Some(limit), state, message) => match tokio::time::timeout(limit, next).await {
                            Ok(arrived) => arrived,
                            Err(_) => return Err(Some(SqlError::new(state, message))),
                        },
                    };
                    let Some(arrived) = arrived else { return Ok(Received::Request) };
                    arrived
                }
            }
        };
        let count = arrived.map_err(|_| None)?;
        input.received(count);
        Ok(Received::Bytes(count))
    }

    /// How long the client may stay silent now, and the error when it does.
    fn idle_limit(&self) -> (Option<Duration>, SqlState, &'static str) {
        let effective = self.settings.effective();
        let (limit_ms, state, message) = if self.transaction.is_open() {
            (
                effective.idle_in_transaction_timeout_ms,
                SqlState(*b"25P03"),
                "terminating connection due to idle-in-transaction timeout",
            )
        } else {
            (
                effective.idle_session_timeout_ms,
                SqlState(*b"57P05"),
                "terminating connection due to idle-session timeout",
            )
        };
        ((limit_ms > 0).then(|| Duration::from_millis(limit_ms)), state, message)
    }

    /// ReadyForQuery, and everything leaves.
    pub(super) async fn finish_query(&mut self) {
        if self.has_deliveries() {
            self.deliver().await;
        }
        if !self.entry().is_terminated() && !self.client_gone.get() {
            self.report_changes();
            let status = self.status();
            self.output.ready_for_query(status);
        }
        self.flush().await;
    }

    /// `log_disconnections`
    fn log_disconnection(&self) {
        if self.settings.effective().value("log_disconnections") != Some(&Value::Bool(true)) {
            return;
        }
        let entry = self.entry();
        let took_us = crate::clock::now().saturating_sub(entry.backend_start);
        tracing::info!(
            user = ?entry.user,
            database = ?entry.database,
            host = entry.client.map_or_else(|| "[local]".to_owned(), |client| client.ip().to_string()),
            seconds = took_us as f64 / 1e6,
            "disconnection"
        );
    }

    /// Ends the session: whatever it had begun is undone.
    async fn leave(&mut self) {
        self.copy_in = None;
        self.copy_to = None;
        self.abandon_transaction().await;
        // What has ended the statement does not end what is left to be done.
        self.become_idle();
        self.entry().forget_cancellation();
        self.drop_temporary_at_end().await;
        self.entry().engine.release();
        self.entry().leave_database();
        let drained = self.replies.drained();
        if self.entry().is_terminated() {
            // A client that does not read does not keep a session that was ended.
            let _ = tokio::time::timeout(DRAINED_WITHIN, drained).await;
        } else {
            drained.await;
        }
    }
}
