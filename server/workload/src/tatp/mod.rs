//! TATP, version 1.0: seven short transactions on a telephone subscriber database.

mod population;

use super::client::Parameters;
use crate::workload::{Call, Condition, CopyJob, Terminal, Workload};

/// Subscribers per unit of scale.
const SUBSCRIBERS: i32 = 100_000;

pub struct Tatp {
    subscribers: i32,
}

impl Tatp {
    pub fn new(scale: u32) -> Self {
        Tatp { subscribers: (scale as i32).saturating_mul(SUBSCRIBERS) }
    }
}

const GET_SUBSCRIBER_DATA: usize = 0;
const GET_NEW_DESTINATION: usize = 1;
const GET_ACCESS_DATA: usize = 2;
const UPDATE_SUBSCRIBER_DATA: usize = 3;
const UPDATE_LOCATION: usize = 4;
const INSERT_CALL_FORWARDING: usize = 5;
const DELETE_CALL_FORWARDING: usize = 6;

/// Widths of a subscriber's columns.
const SUBSCRIBER: [u16; 34] = {
    let mut widths = [2; 34];
    widths[0] = 4;
    widths[1] = 15;
    widths[32] = 4;
    widths[33] = 4;
    widths
};

static CALLS: [Call; 7] = [
    Call {
        name: "get_subscriber_data",
        sql: "SELECT * FROM get_subscriber_data($1)",
        weight: 35,
        answer: &SUBSCRIBER,
    },
    Call {
        name: "get_new_destination",
        sql: "SELECT * FROM get_new_destination($1, $2, $3, $4)",
        weight: 10,
        answer: &[15],
    },
    Call {
        name: "get_access_data",
        sql: "SELECT * FROM get_access_data($1, $2)",
        weight: 35,
        answer: &[2, 2, 3, 5],
    },
    Call {
        name: "update_subscriber_data",
        sql: "CALL update_subscriber_data($1, $2, $3, $4)",
        weight: 2,
        answer: &[1],
    },
    Call { name: "update_location", sql: "CALL update_location($1, $2)", weight: 14, answer: &[1] },
    Call {
        name: "insert_call_forwarding",
        sql: "CALL insert_call_forwarding($1, $2, $3, $4, $5)",
        weight: 2,
        answer: &[],
    },
    Call {
        name: "delete_call_forwarding",
        sql: "CALL delete_call_forwarding($1, $2, $3)",
        weight: 2,
        answer: &[1],
    },
];

/// Referential counts: no child without its parent, and the numbers a population must have.
static CONDITIONS: [Condition; 5] = [
    Condition {
        name: "sub_nbr is s_id in fifteen digits",
        sql: "SELECT count(*) FROM subscriber WHERE sub_nbr <> lpad(s_id::text, 15, '0')",
    },
    Condition {
        name: "every access_info has its subscriber",
        sql: "SELECT count(*) FROM access_info a LEFT JOIN subscriber s ON s.s_id = a.s_id WHERE s.s_id IS NULL",
    },
    Condition {
        name: "every special_facility has its subscriber",
        sql: "SELECT count(*) FROM special_facility f LEFT JOIN subscriber s ON s.s_id = f.s_id WHERE s.s_id IS NULL",
    },
    Condition {
        name: "every call_forwarding has its special_facility",
        sql: "SELECT count(*) FROM call_forwarding c
              LEFT JOIN special_facility f ON f.s_id = c.s_id AND f.sf_type = c.sf_type WHERE f.s_id IS NULL",
    },
    Condition {
        name: "every subscriber has one to four access_info rows and special facilities",
        sql: "SELECT count(*) FROM subscriber s
              LEFT JOIN (SELECT s_id, count(*) AS n FROM access_info GROUP BY s_id) a ON a.s_id = s.s_id
              LEFT JOIN (SELECT s_id, count(*) AS n FROM special_facility GROUP BY s_id) f ON f.s_id = s.s_id
              WHERE a.n IS NULL OR a.n > 4 OR f.n IS NULL OR f.n > 4",
    },
];

impl Workload for Tatp {
    scripts!("tatp");

    fn tables(&self) -> &'static [&'static str] {
        &["subscriber", "access_info", "special_facility", "call_forwarding"]
    }

    fn copy_jobs(&self) -> Vec<Vec<CopyJob>> {
        population::jobs(self.subscribers)
    }

    fn calls(&self) -> &'static [Call] {
        &CALLS
    }

    fn terminal(&self, _connection: u32, _connections: u32, seed: u64) -> Box<dyn Terminal> {
        // Section 2.3: the non-uniform distribution's A grows with the population.
        let a = match self.subscribers {
            ..=1_000_000 => 65_535,
            1_000_001..=10_000_000 => 1_048_575,
            _ => 2_097_151,
        };
        Box::new(TatpTerminal { random: fastrand::Rng::with_seed(seed), subscribers: self.subscribers, a })
    }

    fn conditions(&self) -> &'static [Condition] {
        &CONDITIONS
    }
}

struct TatpTerminal {
    random: fastrand::Rng,
    subscribers: i32,
    a: i32,
}

impl TatpTerminal {
    fn subscriber(&mut self) -> i32 {
        (self.random.i32(0..=self.a) | self.random.i32(1..=self.subscribers)) % self.subscribers + 1
    }

    fn number(&mut self) -> String {
        format!("{:015}", self.subscriber())
    }

    fn small(&mut self, low: i16, high: i16) -> i16 {
        self.random.i16(low..=high)
    }

    fn start_time(&mut self) -> i16 {
        self.small(0, 2) * 8
    }
}

impl Terminal for TatpTerminal {
    fn fill(&mut self, call: usize, parameters: &mut Parameters) {
        match call {
            GET_SUBSCRIBER_DATA => parameters.int4(self.subscriber()),
            GET_NEW_DESTINATION => {
                parameters.int4(self.subscriber());
                parameters.int2(self.small(1, 4));
                parameters.int2(self.start_time());
                parameters.int2(self.small(1, 24));
            }
            GET_ACCESS_DATA => {
                parameters.int4(self.subscriber());
                parameters.int2(self.small(1, 4));
            }
            UPDATE_SUBSCRIBER_DATA => {
                parameters.int4(self.subscriber());
                parameters.int2(self.small(0, 1));
                parameters.int2(self.small(1, 4));
                parameters.int2(self.small(0, 255));
            }
            UPDATE_LOCATION => {
                parameters.text(&self.number());
                parameters.int4(self.random.i32(0..));
            }
            INSERT_CALL_FORWARDING => {
                parameters.text(&self.number());
                parameters.int2(self.small(1, 4));
                let start = self.start_time();
                parameters.int2(start);
                parameters.int2(start + self.small(1, 8));
                parameters.text(&self.number());
            }
            DELETE_CALL_FORWARDING => {
                parameters.text(&self.number());
                parameters.int2(self.small(1, 4));
                parameters.int2(self.start_time());
            }
            other => unreachable!("TATP has seven calls, not {other}"),
        }
    }

    fn pick(&mut self, bound: u32) -> u32 {
        self.random.u32(..bound)
    }

    fn expected(&self, call: usize, state: &[u8]) -> bool {
        // Section 3.6: the row may be there already, or the facility may not.
        call == INSERT_CALL_FORWARDING && (state == b"23505" || state == b"23503")
    }
}
