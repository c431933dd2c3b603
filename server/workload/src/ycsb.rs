//! YCSB (Cooper and others, 2010): operations on records by key, keys drawn by a Zipfian law.
//!
//! The mix has all of the core operations. `--only ycsb_read,ycsb_update` is near workloads A and
//! B, `ycsb_read` is C, `ycsb_read,ycsb_insert` D, `ycsb_scan,ycsb_insert` E and
//! `ycsb_read,ycsb_read_modify_write` F.

use super::client::Parameters;
use crate::workload::{Call, Condition, CopyJob, Terminal, Workload};

/// Records per unit of scale.
const RECORDS: u64 = 10_000;
const FIELDS: i32 = 10;
const FIELD_BYTES: usize = 100;
/// Rows of a scan.
const SCAN_MAX: i32 = 100;
/// Records per COPY stream.
const SLICE: u64 = 5_000;

pub struct Ycsb {
    records: u64,
    zipf: Zipf,
}

impl Ycsb {
    pub fn new(scale: u32) -> Self {
        let records = u64::from(scale) * RECORDS;
        Ycsb { records, zipf: Zipf::new(records) }
    }
}

const READ: usize = 0;
const UPDATE: usize = 1;
const INSERT: usize = 2;
const SCAN: usize = 3;
const READ_MODIFY_WRITE: usize = 4;

/// Widths of a record's columns.
const RECORD: [u16; 13] = {
    let mut widths = [FIELD_BYTES as u16; 13];
    widths[0] = 24;
    widths[11] = 4;
    widths[12] = 4;
    widths
};

static CALLS: [Call; 5] = [
    Call { name: "ycsb_read", sql: "SELECT * FROM ycsb_read($1)", weight: 45, answer: &RECORD },
    Call { name: "ycsb_update", sql: "CALL ycsb_update($1, $2, $3)", weight: 40, answer: &[] },
    Call { name: "ycsb_insert", sql: "CALL ycsb_insert($1, $2)", weight: 5, answer: &[] },
    Call { name: "ycsb_scan", sql: "SELECT * FROM ycsb_scan($1, $2)", weight: 5, answer: &RECORD },
    Call { name: "ycsb_read_modify_write", sql: "CALL ycsb_read_modify_write($1)", weight: 5, answer: &[] },
];

static CONDITIONS: [Condition; 3] = [
    Condition {
        name: "every field has its hundred bytes",
        sql: "SELECT count(*) FROM usertable
              WHERE length(field0) + length(field1) + length(field2) + length(field3) + length(field4)
                  + length(field5) + length(field6) + length(field7) + length(field8) + length(field9) <> 1000",
    },
    Condition {
        // Each change writes a value of one letter, or moves the fields on.
        name: "every field is one letter, as it was written",
        sql: "SELECT count(*) FROM usertable
              WHERE field0 <> repeat(left(field0, 1), 100) OR field5 <> repeat(left(field5, 1), 100)
                 OR field9 <> repeat(left(field9, 1), 100) OR written < 0",
    },
    Condition {
        // The sum is kept by addition, whatever the fields were thought to be.
        name: "no change of a field was lost",
        sql: "SELECT count(*) FROM usertable
              WHERE ascii(field0) + ascii(field1) + ascii(field2) + ascii(field3) + ascii(field4)
                  + ascii(field5) + ascii(field6) + ascii(field7) + ascii(field8) + ascii(field9) <> letters",
    },
];

impl Workload for Ycsb {
    scripts!("ycsb");

    fn tables(&self) -> &'static [&'static str] {
        &["usertable"]
    }

    fn copy_jobs(&self) -> Vec<Vec<CopyJob>> {
        let slice = |first: u64| CopyJob {
            sql: "COPY usertable FROM STDIN",
            rows: (self.records - first).min(SLICE),
            write: Box::new(move |row, out| {
                let record = first + row;
                put!(out, "{}", key(record));
                let mut letters = 0;
                for field in 0..FIELDS as u64 {
                    let letter = letter(record + field);
                    letters += u32::from(letter);
                    put!(out, "\t{}", value(letter));
                }
                put!(out, "\t0\t{letters}\n");
            }),
        };
        vec![(0..self.records).step_by(SLICE as usize).map(slice).collect()]
    }

    fn calls(&self) -> &'static [Call] {
        &CALLS
    }

    fn terminal(&self, _connection: u32, _connections: u32, seed: u64) -> Box<dyn Terminal> {
        Box::new(YcsbTerminal { random: fastrand::Rng::with_seed(seed), zipf: self.zipf })
    }

    fn conditions(&self) -> &'static [Condition] {
        &CONDITIONS
    }
}

/// Keys are scattered, so that those drawn often do not stand together.
fn key(record: u64) -> String {
    format!("user{:020}", scattered(record))
}

/// A permutation of 64-bit numbers (the finaliser of SplitMix64).
fn scattered(number: u64) -> u64 {
    let mixed = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

fn letter(seed: u64) -> u8 {
    b'a' + (seed % 26) as u8
}

/// A hundred bytes of one letter.
fn value(letter: u8) -> String {
    char::from(letter).to_string().repeat(FIELD_BYTES)
}

/// Zipf's law with the constant of the paper (Gray and others: Quickly Generating Billion-Record
/// Synthetic Databases, 1994).
#[derive(Clone, Copy)]
struct Zipf {
    items: u64,
    zeta: f64,
    alpha: f64,
    eta: f64,
}

impl Zipf {
    const THETA: f64 = 0.99;

    fn new(items: u64) -> Zipf {
        let zeta_of = |count: u64| (1..=count).map(|rank| (rank as f64).powf(-Self::THETA)).sum::<f64>();
        let zeta = zeta_of(items);
        let eta = (1.0 - (2.0 / items as f64).powf(1.0 - Self::THETA)) / (1.0 - zeta_of(2) / zeta);
        Zipf { items, zeta, alpha: 1.0 / (1.0 - Self::THETA), eta }
    }

    /// A rank from zero, the first the most frequent.
    fn draw(&self, random: &mut fastrand::Rng) -> u64 {
        let uniform = random.f64();
        let scaled = uniform * self.zeta;
        if scaled < 1.0 {
            return 0;
        }
        if scaled < 1.0 + 0.5f64.powf(Self::THETA) {
            return 1;
        }
        let rank = self.items as f64 * (self.eta * uniform - self.eta + 1.0).powf(self.alpha);
        (rank as u64).min(self.items - 1)
    }
}

struct YcsbTerminal {
    random: fastrand::Rng,
    zipf: Zipf,
}

impl YcsbTerminal {
    fn key(&mut self) -> String {
        key(self.zipf.draw(&mut self.random))
    }

    fn value(&mut self) -> String {
        value(letter(self.random.u64(..)))
    }
}

impl Terminal for YcsbTerminal {
    fn fill(&mut self, call: usize, parameters: &mut Parameters) {
        match call {
            READ | READ_MODIFY_WRITE => parameters.text(&self.key()),
            UPDATE => {
                parameters.text(&self.key());
                parameters.int4(self.random.i32(0..FIELDS));
                parameters.text(&self.value());
            }
            INSERT => {
                // Beyond what was loaded; two runs may draw the same, and the second is refused.
                let record = self.random.u64(self.zipf.items..);
                parameters.text(&key(record));
                parameters.text(&self.value());
            }
            SCAN => {
                parameters.text(&self.key());
                parameters.int4(self.random.i32(1..=SCAN_MAX));
            }
            other => unreachable!("YCSB has five calls, not {other}"),
        }
    }

    fn pick(&mut self, bound: u32) -> u32 {
        self.random.u32(0..bound)
    }

    fn expected(&self, call: usize, state: &[u8]) -> bool {
        call == INSERT && state == b"23505"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_keys_are_drawn_often_and_all_are_there() {
        let zipf = Zipf::new(1_000);
        let mut random = fastrand::Rng::with_seed(7);
        let mut drawn = vec![0u32; 1_000];
        for _ in 0..100_000 {
            drawn[zipf.draw(&mut random) as usize] += 1;
        }
        // 1/ζ(1000) of all, ζ with θ = 0.99 being 7.7.
        assert!((12_000..14_000).contains(&drawn[0]), "{}", drawn[0]);
        assert!(drawn[0] > drawn[1] && drawn[1] > drawn[10] && drawn[10] > drawn[500]);
        assert!(drawn.iter().filter(|&&count| count > 0).count() > 950);
    }

    #[test]
    fn keys_differ() {
        let keys: std::collections::HashSet<String> = (0..10_000).map(key).collect();
        assert_eq!(keys.len(), 10_000);
    }
}
