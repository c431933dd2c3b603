//! Voter: telephone votes for the contestants of a show, from a million lines of which some vote
//! more often than they may.

use super::client::Parameters;
use crate::workload::{Call, Condition, CopyJob, Terminal, Workload};

/// Lines per unit of scale.
const LINES: i64 = 1_000_000;
const CONTESTANTS: [&str; 12] = [
    "Ada", "Blaise", "Charles", "Dorothy", "Edsger", "Frances", "Grace", "Hedy", "Ivan", "Jean", "Konrad",
    "Leslie",
];
/// Votes that count, of one line: a literal, for the texts of statements.
macro_rules! votes_max {
    () => {
        2
    };
}
/// Area codes go from 200; six to a state.
const FIRST_AREA: i64 = 200;
const AREAS: i64 = 300;
const STATES: [&str; 50] = [
    "AL", "AK", "AZ", "AR", "CA", "CO", "CT", "DE", "FL", "GA", "HI", "ID", "IL", "IN", "IA", "KS", "KY",
    "LA", "ME", "MD", "MA", "MI", "MN", "MS", "MO", "MT", "NE", "NV", "NH", "NJ", "NM", "NY", "NC", "ND",
    "OH", "OK", "OR", "PA", "RI", "SC", "SD", "TN", "TX", "UT", "VT", "VA", "WA", "WV", "WI", "WY",
];

pub struct Voter {
    lines: i64,
}

impl Voter {
    pub fn new(scale: u32) -> Self {
        Voter { lines: i64::from(scale) * LINES }
    }
}

const VOTE: usize = 0;
const VOTES_OF: usize = 1;

static CALLS: [Call; 2] = [
    Call { name: "vote", sql: "CALL vote($1, $2, $3)", weight: 90, answer: &[4] },
    Call { name: "votes_of", sql: "SELECT * FROM votes_of($1)", weight: 10, answer: &[8, 8] },
];

static CONDITIONS: [Condition; 4] = [
    Condition {
        name: "no line has more votes than it may",
        sql: concat!("SELECT count(*) FROM callers WHERE votes NOT BETWEEN 1 AND ", votes_max!()),
    },
    Condition {
        name: "a line's count is that of its votes",
        sql: "SELECT count(*) FROM callers c
              LEFT JOIN (SELECT phone_number, count(*) AS present, max(nth) AS last
                           FROM votes GROUP BY phone_number) v ON v.phone_number = c.phone_number
              WHERE present IS NULL OR present <> votes OR last <> votes",
    },
    Condition {
        name: "every vote has its line",
        sql: "SELECT count(*) FROM votes v LEFT JOIN callers c ON c.phone_number = v.phone_number
              WHERE c.phone_number IS NULL",
    },
    Condition {
        name: "the totals by contestant are all votes",
        sql: "SELECT count(*) FROM (SELECT coalesce(sum(total), 0) AS told FROM votes_by_contestant) t,
                                   (SELECT count(*) AS cast_votes FROM votes) v WHERE told <> cast_votes",
    },
];

impl Workload for Voter {
    scripts!("voter");

    fn tables(&self) -> &'static [&'static str] {
        &["votes", "callers", "area_codes", "contestants"]
    }

    fn views(&self) -> &'static [&'static str] {
        &["votes_by_contestant"]
    }

    fn copy_jobs(&self) -> Vec<Vec<CopyJob>> {
        vec![vec![
            CopyJob {
                sql: "COPY contestants FROM STDIN",
                rows: CONTESTANTS.len() as u64,
                write: Box::new(|row, out| put!(out, "{}\t{}\n", row + 1, CONTESTANTS[row as usize])),
            },
            CopyJob {
                sql: "COPY area_codes FROM STDIN",
                rows: AREAS as u64,
                write: Box::new(|row, out| {
                    let state = STATES[row as usize % STATES.len()];
                    put!(out, "{}\t{state}\n", FIRST_AREA + row as i64);
                }),
            },
        ]]
    }

    fn calls(&self) -> &'static [Call] {
        &CALLS
    }

    fn terminal(&self, _connection: u32, _connections: u32, seed: u64) -> Box<dyn Terminal> {
        Box::new(VoterTerminal { random: fastrand::Rng::with_seed(seed), lines: self.lines })
    }

    fn conditions(&self) -> &'static [Condition] {
        &CONDITIONS
    }
}

struct VoterTerminal {
    random: fastrand::Rng,
    lines: i64,
}

impl VoterTerminal {
    /// Lines are spread evenly over the areas.
    fn line(&mut self) -> i64 {
        let line = self.random.i64(0..self.lines);
        (FIRST_AREA + line % AREAS) * 10_000_000 + line / AREAS
    }
}

impl Terminal for VoterTerminal {
    fn fill(&mut self, call: usize, parameters: &mut Parameters) {
        parameters.int8(self.line());
        match call {
            VOTE => {
                // One in a hundred votes for somebody who does not stand.
                let unknown = self.random.u32(0..100) == 0;
                let known = self.random.i32(1..=CONTESTANTS.len() as i32);
                parameters.int4(if unknown { 999 } else { known });
                parameters.int4(votes_max!());
            }
            VOTES_OF => {}
            other => unreachable!("Voter has two calls, not {other}"),
        }
    }

    fn pick(&mut self, bound: u32) -> u32 {
        self.random.u32(0..bound)
    }

    fn expected(&self, _call: usize, _state: &[u8]) -> bool {
        false
    }
}
