//! What checkpoints there were, for `archipel.checkpoints`: the one under way and the last few.

use std::collections::VecDeque;

use parking_lot::Mutex;

use crate::log::CheckpointDone;

/// Why a checkpoint was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckpointReason {
    /// The log had grown.
    Log,
    /// CHECKPOINT, or the end of the server.
    Request,
    /// A backup begins with one.
    Backup,
}

/// How far it came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CheckpointState {
    Running,
    Done,
    /// The error, or that the server was stopped.
    GivenUp(String),
}

/// A row of `archipel.checkpoints`.
#[derive(Clone, Debug)]
pub struct CheckpointView {
    /// Counted from the start of the server.
    pub number: u64,
    pub reason: CheckpointReason,
    pub state: CheckpointState,
    /// Microseconds since 2000-01-01 UTC.
    pub began_micros: i64,
    /// Until its end, or until now.
    pub took_nanos: u64,
    /// Length of the log when it began, in bytes.
    pub log_bytes_at_begin: u64,
    /// Share of the rows looked at, from 0 to 1.
    pub progress: f64,
    pub done: CheckpointDone,
}

struct Kept {
    view: CheckpointView,
    began_nanos: u64,
}

/// The last checkpoints, newest last.
#[derive(Default)]
pub(crate) struct CheckpointHistory {
    kept: Mutex<VecDeque<Kept>>,
}

const KEPT: usize = 32;

impl CheckpointHistory {
    pub fn begin(&self, reason: CheckpointReason, wall_micros: i64, nanos: u64, log_bytes: u64) {
        let mut kept = self.kept.lock();
        let number = kept.back().map_or(1, |last| last.view.number + 1);
        if kept.len() == KEPT {
            kept.pop_front();
        }
        let view = CheckpointView {
            number,
            reason,
            state: CheckpointState::Running,
            began_micros: wall_micros,
            took_nanos: 0,
            log_bytes_at_begin: log_bytes,
            progress: 0.0,
            done: CheckpointDone::default(),
        };
        kept.push_back(Kept { view, began_nanos: nanos });
    }

    /// Notes how far the one under way is.
    pub fn progress(&self, progress: f64, so_far: CheckpointDone) {
        if let Some(last) = self.kept.lock().back_mut() {
            last.view.progress = progress.clamp(0.0, 1.0);
            last.view.done = so_far;
        }
    }

    pub fn end(&self, state: CheckpointState, nanos: u64, done: Option<CheckpointDone>) {
        if let Some(last) = self.kept.lock().back_mut() {
            last.view.took_nanos = nanos.saturating_sub(last.began_nanos);
            if state == CheckpointState::Done {
                last.view.progress = 1.0;
            }
            last.view.state = state;
            if let Some(done) = done {
                last.view.done = done;
            }
        }
    }

    pub fn views(&self, nanos: u64) -> Vec<CheckpointView> {
        let kept = self.kept.lock();
        kept.iter()
            .map(|kept| {
                let mut view = kept.view.clone();
                if view.state == CheckpointState::Running {
                    view.took_nanos = nanos.saturating_sub(kept.began_nanos);
                }
                view
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_are_kept_and_a_running_one_grows_older() {
        let history = CheckpointHistory::default();
        for number in 0..40 {
            history.begin(CheckpointReason::Log, 0, number * 100, 7);
            history.progress(0.5, CheckpointDone { rows: 3, ..CheckpointDone::default() });
            if number < 39 {
                history.end(CheckpointState::Done, number * 100 + 10, None);
            }
        }
        let views = history.views(4_000);
        assert_eq!(views.len(), KEPT);
        assert_eq!(views.last().map(|view| view.number), Some(40));
        assert_eq!(views.last().map(|view| (view.took_nanos, view.progress)), Some((100, 0.5)));
        assert_eq!(views[0].state, CheckpointState::Done);
        assert_eq!((views[0].took_nanos, views[0].done.rows, views[0].progress), (10, 3, 1.0));
    }
}
