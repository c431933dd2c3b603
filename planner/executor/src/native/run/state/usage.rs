//! How often routines are called and how long that takes: what `track_functions` asks for
//! (pgstat_init_function_usage, pgstat_end_function_usage).

use archipel_sql::types::Oid;

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
    pub(crate) inner_nanos: u64,
}

/// A call that has begun.
pub struct BegunUse {
    pub(crate) routine: Oid,
    pub(crate) began: u64,
    pub(crate) total_before: u64,
    pub(crate) inner_before: u64,
}

impl Usage {
    /// Nothing yet.
    pub fn new(all: bool) -> Usage {
        Usage { all, ..Usage::default() }
    }

    pub(crate) fn of(&mut self, routine: Oid) -> &mut Used {
        let place = self.routines.iter().position(|(oid, _)| *oid == routine).unwrap_or_else(|| {
            self.routines.push((routine, Used::default()));
            self.routines.len() - 1
        });
        &mut self.routines[place].1
    }
}
