//! Which message may come when, and where each of them goes.
//!
//! A message is looked at in the session's state before it is read, as in PostgreSQL (SocketBackend,
//! CopyGetData): what is passed over may hold anything, and what nobody waits for is told by its kind, whatever
//! is in it. `tests/protocol` has every message in every state beside PostgreSQL.

use archipel_sql::error::SqlError;
use archipel_sql::stack;

use super::connection::Flow;
use crate::session::Session;
use crate::statement::prepare::failed_transaction;
use crate::wire::frame::{Desynchronized, Frame};
use crate::wire::message::Message;
use crate::wire::output::Severity;

impl Session {
    /// One message; `rest` is what has come behind it.
    pub(super) async fn frame(&mut self, frame: Frame<'_>, rest: &[u8]) -> Flow {
        stack::set_depth(self.settings.effective().stack_depth_kb);
        let encoding = self.encoding();
        let recoded = if encoding.is_servers() { Ok(None) } else { frame.recoded(encoding) };
        let body = recoded.as_ref().ok().and_then(Option::as_deref).unwrap_or(frame.body);
        let frame = Frame { body, ..frame };
        if self.copy_in.is_some() {
            let flow = self.copy_message(frame).await;
            self.stop_timer();
            return flow;
        }
        if self.passes_over(frame.kind) {
            return Flow::Continue;
        }
        match recoded.as_ref().map_err(Clone::clone).and(frame.message()) {
            Ok(message) => self.message(message, rest).await,
            Err(error) => {
                self.malformed(frame.kind, error).await;
                Flow::Continue
            }
        }
    }

    /// Whether a message of this kind is passed over now, outside of a COPY.
    fn passes_over(&self, kind: u8) -> bool {
        match kind {
            b'S' | b'X' => false,
            // After a failed COPY the client's data may still be underway.
            b'd' | b'c' | b'f' => true,
            _ => self.skip_until_sync,
        }
    }

    /// A message whose bounds were known and whose content was not: an error as for any
    /// statement, and the session goes on.
    async fn malformed(&mut self, kind: u8, error: SqlError) {
        match kind {
            b'Q' | b'F' => {
                // A transaction that has failed calls no function, whatever the message says.
                let refused = kind == b'F' && self.in_failed_transaction();
                let error = self.first_error(if refused { failed_transaction() } else { error }).await;
                self.fail(&error).await;
                self.end_script().await;
            }
            b'S' => {
                let error = self.first_error(error).await;
                self.fail(&error).await;
                self.skip_until_sync = false;
                self.end_pipeline();
                self.end_script().await;
            }
            _ => self.refuse(error).await,
        }
    }

    /// A message that there is no memory for: an error like any other of that message.
    pub(super) async fn refuse_message(&mut self, kind: u8, error: SqlError) {
        if self.copy_in.is_some() {
            self.fail_copy(error).await;
        } else if !self.passes_over(kind) {
            self.malformed(kind, error).await;
        }
    }

    /// Tells a client whose next message cannot be found that its session ends. One whose kind there is not is
    /// no row of a COPY, either.
    pub(super) async fn lose_frames(&mut self, desynchronized: Desynchronized) {
        if let (Desynchronized::Kind(kind), true) = (desynchronized, self.copy_in.is_some()) {
            self.lose_step(kind).await;
            return;
        }
        self.output.report(Severity::Fatal, &desynchronized.error());
        self.flush().await;
    }

    async fn message(&mut self, message: Message<'_>, rest: &[u8]) -> Flow {
        match message {
            Message::Terminate => return Flow::Close,
            Message::Sync => {
                self.skip_until_sync = false;
                self.sync().await;
                self.stop_timer();
            }
            Message::Flush => {
                if self.has_put_off()
                    && let Err(error) = self.run_apart().await
                {
                    self.refuse(error).await;
                }
                self.flush().await;
            }
            Message::Query(text) => {
                self.simple_query(text).await;
                self.stop_timer();
            }
            Message::FunctionCall(call) => {
                self.function_call(&call).await;
                self.stop_timer();
            }
            extended => {
                if let Err(error) = self.extended(extended, rest).await {
                    self.refuse(error).await;
                } else if self.copy_in.is_some() {
                    // The client waits to be asked for the data before it sends any.
                    self.flush().await;
                } else {
                    self.flush_early().await;
                }
            }
        }
        Flow::Continue
    }

    /// Tells the error of a message of the extended protocol, at once: clients wait for it before
    /// they send Sync. What comes until then is skipped.
    pub(in crate::session) async fn refuse(&mut self, error: SqlError) {
        self.timer = None;
        let error = self.first_error(error).await;
        self.fail(&error).await;
        self.skip_until_sync = true;
        self.flush().await;
    }
}
