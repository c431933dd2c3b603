//! How often routines are called and how long that takes: what `track_functions` asks for
//! (pgstat_init_function_usage, pgstat_end_function_usage).

use archipel_sql::types::Oid;

use super::context::ExecContext;

/// What calls of one routine took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Used {
    /// Those that came to their end.
    pub calls: u64,
    /// In all; of a recursion, the outermost call's.
    pub total_nanos: u64,
    /// Without the calls of others that are counted.
    pub self_nanos: u64,
}

/// What the routines of a run took.
#[derive(Debug, Default)]
pub struct Usage {
    /// Whether those of the language sql count, too.
    pub all: bool,
    pub routines: Vec<(Oid, Used)>,
    /// Of the running routine: the time in counted calls that it has made.
    inner_nanos: u64,
}

/// A call that has begun.
pub struct BegunUse {
    routine: Oid,
    began: u64,
    total_before: u64,
    inner_before: u64,
}

impl Usage {
    /// Nothing yet.
    pub fn new(all: bool) -> Usage {
        Usage { all, ..Usage::default() }
    }

    fn of(&mut self, routine: Oid) -> &mut Used {
        let place = self.routines.iter().position(|(oid, _)| *oid == routine).unwrap_or_else(|| {
            self.routines.push((routine, Used::default()));
            self.routines.len() - 1
        });
        &mut self.routines[place].1
    }
}

impl ExecContext<'_, '_> {
    /// A routine is called; `None` if that is not counted.
    #[inline]
    pub fn begin_use(&mut self, routine: Oid, in_sql: bool) -> Option<BegunUse> {
        // A block of DO, and the condition of a trigger, is no routine.
        if self.usage.as_ref().is_none_or(|usage| in_sql && !usage.all) || routine == Oid(0) {
            return None;
        }
        let began = self.txn.monotonic_nanos();
        let usage = self.usage.as_mut()?;
        let total_before = usage.of(routine).total_nanos;
        let inner_before = std::mem::take(&mut usage.inner_nanos);
        Some(BegunUse { routine, began, total_before, inner_before })
    }

    /// It has come to its end, or (unless `done`) to where it goes on in another run.
    pub fn end_use(&mut self, begun: BegunUse, done: bool) {
        let nanos = self.txn.monotonic_nanos().saturating_sub(begun.began);
        let Some(usage) = &mut self.usage else { return };
        let inner = std::mem::replace(&mut usage.inner_nanos, begun.inner_before + nanos);
        let used = usage.of(begun.routine);
        used.calls += u64::from(done);
        used.total_nanos = begun.total_before + nanos;
        used.self_nanos += nanos.saturating_sub(inner);
    }

    /// It has failed: that is no call that counts.
    pub fn forget_use(&mut self, begun: BegunUse) {
        if let Some(usage) = &mut self.usage {
            usage.inner_nanos = begun.inner_before;
        }
    }
}
