//! `pg_notify` and NOTIFY: what a transaction has to tell sessions that listen.
//!
//! Running code only notes it, in order and once. Whoever ends the transaction delivers it with
//! the commit, or forgets it: a run that is undone or begins anew has told nobody anything.

use std::sync::Arc;

use archipel_sql::datum::Datum;
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::function::{Intrinsic, ScalarFunction};
use rustc_hash::FxHashSet;

use crate::native::run::expression::code::CompiledExpr;
use crate::native::run::expression::source::{Source, eval_all};

/// A channel's name is shorter than this, in bytes (NAMEDATALEN).
const CHANNEL_BYTES: usize = 64;
/// And a payload than this.
const PAYLOAD_BYTES: usize = 8_000;
/// What a notification takes besides its texts.
const OVERHEAD_BYTES: usize = 64;

/// What may wait to be delivered, in all sessions together and in a transaction.
pub const QUEUE_BYTES_MAX: usize = 64 << 20;

/// 54000: there are listeners who do not take what was sent to them.
pub fn queue_full() -> SqlError {
    SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, "too many notifications in the NOTIFY queue")
}

/// A message for all who listen to a channel.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Notification {
    pub channel: Arc<str>,
    pub payload: Arc<str>,
}

impl Notification {
    /// Checks name and payload as PostgreSQL does (22023).
    pub fn new(channel: &str, payload: &str) -> Result<Notification> {
        let problem = if channel.is_empty() {
            "channel name cannot be empty"
        } else if channel.len() >= CHANNEL_BYTES {
            "channel name too long"
        } else if payload.len() >= PAYLOAD_BYTES {
            "payload string too long"
        } else {
            return Ok(Notification { channel: channel.into(), payload: payload.into() });
        };
        Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, problem))
    }

    /// What it takes of the queue.
    pub fn bytes(&self) -> usize {
        self.channel.len() + self.payload.len() + OVERHEAD_BYTES
    }
}

/// The notifications of a transaction, in order; equal ones are sent once.
#[derive(Clone, Debug, Default)]
pub struct Notifications {
    list: Vec<Notification>,
    seen: FxHashSet<Notification>,
    bytes: usize,
}

impl Notifications {
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// How many there are, for [`Notifications::rollback_to`].
    pub fn mark(&self) -> usize {
        self.list.len()
    }

    /// What they take of the queue.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Adds one, unless it is there already: whatever takes back the one that is there came
    /// before this one and takes this one back, too.
    pub fn add(&mut self, notification: Notification) -> Result<()> {
        if self.seen.contains(&notification) {
            return Ok(());
        }
        let bytes = self.bytes + notification.bytes();
        if bytes > QUEUE_BYTES_MAX {
            return Err(queue_full());
        }
        self.bytes = bytes;
        self.seen.insert(notification.clone());
        self.list.push(notification);
        Ok(())
    }

    /// Adds those of a later part of the transaction.
    pub fn append(&mut self, later: Notifications) -> Result<()> {
        if self.list.is_empty() {
            *self = later;
            return Ok(());
        }
        later.list.into_iter().try_for_each(|notification| self.add(notification))
    }

    /// Forgets what was added since a mark.
    pub fn rollback_to(&mut self, mark: usize) {
        if self.list.len() <= mark {
            return;
        }
        for gone in self.list.split_off(mark) {
            self.bytes -= gone.bytes();
            self.seen.remove(&gone);
        }
    }

    pub fn clear(&mut self) {
        self.rollback_to(0);
    }
}

impl IntoIterator for Notifications {
    type Item = Notification;
    type IntoIter = std::vec::IntoIter<Notification>;

    fn into_iter(self) -> Self::IntoIter {
        self.list.into_iter()
    }
}

/// The code of `pg_notify` over its arguments, if the function is that.
pub(crate) fn call(function: &'static ScalarFunction) -> Option<fn(Vec<Source>) -> CompiledExpr> {
    function.is(Intrinsic::Notify).then_some(|args| {
        Box::new(move |ctx| {
            let values = eval_all(&args, ctx)?;
            let text = |at: usize| match values.get(at) {
                Some(Datum::Text(text)) => &**text,
                _ => "",
            };
            ctx.effects_mut().notifications.add(Notification::new(text(0), text(1))?)?;
            // void
            Ok(Datum::Text(Default::default()))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noted(notifications: Notifications) -> String {
        let texts: Vec<String> =
            notifications.into_iter().map(|it| format!("{}:{}", it.channel, it.payload)).collect();
        texts.join(" ")
    }

    #[test]
    fn equal_ones_are_sent_once_and_a_rollback_lets_them_come_again() {
        let mut all = Notifications::default();
        let add = |all: &mut Notifications, payload: &str| {
            all.add(Notification::new("c", payload).unwrap()).unwrap();
        };
        add(&mut all, "a");
        let mark = all.mark();
        add(&mut all, "b");
        add(&mut all, "a");
        all.rollback_to(mark);
        add(&mut all, "c");
        add(&mut all, "b");
        let mut before = Notifications::default();
        add(&mut before, "c");
        before.append(all).unwrap();
        assert_eq!(before.bytes(), 3 * (2 + OVERHEAD_BYTES));
        assert_eq!(noted(before), "c:c c:a c:b");
    }

    #[test]
    fn a_transaction_notes_no_more_than_the_queue_takes() {
        let mut all = Notifications::default();
        let payload = "x".repeat(7_900);
        let refused = (0..20_000).find_map(|number| {
            all.add(Notification::new("c", &format!("{number:05}{payload}")).unwrap()).err()
        });
        assert_eq!(refused.unwrap().message(), "too many notifications in the NOTIFY queue");
        assert!(all.bytes() <= QUEUE_BYTES_MAX);
        all.clear();
        assert_eq!(all.bytes(), 0);
    }
}
