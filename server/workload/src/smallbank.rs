//! SmallBank (Alomari, Cahill, Fekete, Röhm, 2008): six short transactions on bank accounts, a
//! quarter of them on a hundred customers that everybody deals with.

use super::client::Parameters;
use crate::workload::{Call, Condition, CopyJob, Terminal, Workload};

/// Customers per unit of scale.
const CUSTOMERS: i32 = 100_000;
/// Those that everybody deals with, and how many calls of a hundred are about them.
const HOT_CUSTOMERS: i32 = 100;
const HOT_PERCENT: u32 = 25;

/// Customers per COPY stream.
const SLICE: i32 = 25_000;

pub struct SmallBank {
    customers: i32,
}

impl SmallBank {
    pub fn new(scale: u32) -> Self {
        SmallBank { customers: (scale as i32).saturating_mul(CUSTOMERS) }
    }
}

const AMALGAMATE: usize = 0;
const BALANCE: usize = 1;
const DEPOSIT_CHECKING: usize = 2;
const SEND_PAYMENT: usize = 3;
const TRANSACT_SAVINGS: usize = 4;
const WRITE_CHECK: usize = 5;

static CALLS: [Call; 6] = [
    Call { name: "amalgamate", sql: "CALL amalgamate($1, $2)", weight: 15, answer: &[] },
    Call { name: "balance", sql: "SELECT balance($1)", weight: 15, answer: &[14] },
    Call { name: "deposit_checking", sql: "CALL deposit_checking($1, $2)", weight: 15, answer: &[] },
    Call { name: "send_payment", sql: "CALL send_payment($1, $2, $3)", weight: 25, answer: &[] },
    Call { name: "transact_savings", sql: "CALL transact_savings($1, $2)", weight: 15, answer: &[] },
    Call { name: "write_check", sql: "CALL write_check($1, $2)", weight: 15, answer: &[] },
];

static CONDITIONS: [Condition; 4] = [
    Condition {
        name: "every customer has savings and a checking account",
        sql: "SELECT count(*) FROM accounts a
              LEFT JOIN savings s ON s.custid = a.custid LEFT JOIN checking c ON c.custid = a.custid
              WHERE s.custid IS NULL OR c.custid IS NULL",
    },
    Condition {
        name: "a customer has what was there at first, came in and was transferred",
        sql: "SELECT count(*) FROM accounts a
              JOIN savings s ON s.custid = a.custid JOIN checking c ON c.custid = a.custid
              WHERE s.bal + c.bal <> a.opened + c.deposited + c.transferred",
    },
    Condition {
        name: "transfers neither make nor lose money",
        sql: "SELECT count(*) FROM (SELECT sum(transferred) AS total FROM checking) t WHERE total <> 0",
    },
    Condition { name: "no savings below zero", sql: "SELECT count(*) FROM savings WHERE bal < 0" },
];

impl Workload for SmallBank {
    scripts!("smallbank");

    fn tables(&self) -> &'static [&'static str] {
        &["accounts", "savings", "checking"]
    }

    fn copy_jobs(&self) -> Vec<Vec<CopyJob>> {
        let slices = |sql, write: fn(i32, &mut Vec<u8>)| {
            let customers = self.customers;
            (1..=customers).step_by(SLICE as usize).map(move |first| CopyJob {
                sql,
                rows: (customers - first + 1).min(SLICE) as u64,
                write: Box::new(move |row, out| write(first + row as i32, out)),
            })
        };
        vec![
            slices("COPY accounts FROM STDIN", |custid, out| {
                let (savings, checking) = opened(custid);
                put!(out, "{custid}\tCustomer {custid}\t{}\n", money(savings + checking));
            })
            .collect(),
            slices("COPY savings FROM STDIN", |custid, out| {
                put!(out, "{custid}\t{}\n", money(opened(custid).0));
            })
            .chain(slices("COPY checking (custid, bal) FROM STDIN", |custid, out| {
                put!(out, "{custid}\t{}\n", money(opened(custid).1));
            }))
            .collect(),
        ]
    }

    fn calls(&self) -> &'static [Call] {
        &CALLS
    }

    fn terminal(&self, _connection: u32, _connections: u32, seed: u64) -> Box<dyn Terminal> {
        Box::new(SmallBankTerminal { random: fastrand::Rng::with_seed(seed), customers: self.customers })
    }

    fn conditions(&self) -> &'static [Condition] {
        &CONDITIONS
    }
}

/// What a customer begins with, in cents: told by the number, so that any stream can derive it.
fn opened(custid: i32) -> (i64, i64) {
    let mut random = fastrand::Rng::with_seed(custid as u64 ^ 0x62_616e_6b00_0000);
    (random.i64(1_000_000..=5_000_000), random.i64(1_000_000..=5_000_000))
}

fn money(cents: i64) -> String {
    format!("{}.{:02}", cents / 100, cents % 100)
}

struct SmallBankTerminal {
    random: fastrand::Rng,
    customers: i32,
}

impl SmallBankTerminal {
    fn customer(&mut self) -> i32 {
        let hot = self.random.u32(0..100) < HOT_PERCENT;
        self.random.i32(1..=if hot { HOT_CUSTOMERS } else { self.customers })
    }

    /// Two different ones.
    fn two_customers(&mut self, parameters: &mut Parameters) {
        let first = self.customer();
        let mut second = self.customer();
        while second == first {
            second = self.customer();
        }
        parameters.int4(first);
        parameters.int4(second);
    }

    fn amount(&mut self, cents_max: i64) -> String {
        money(self.random.i64(1..=cents_max))
    }
}

impl Terminal for SmallBankTerminal {
    fn fill(&mut self, call: usize, parameters: &mut Parameters) {
        match call {
            AMALGAMATE => self.two_customers(parameters),
            SEND_PAYMENT => {
                self.two_customers(parameters);
                parameters.text(&self.amount(10_000));
            }
            BALANCE => parameters.int4(self.customer()),
            TRANSACT_SAVINGS => {
                parameters.int4(self.customer());
                let sign = if self.random.bool() { "" } else { "-" };
                parameters.text(&format!("{sign}{}", self.amount(10_000)));
            }
            DEPOSIT_CHECKING | WRITE_CHECK => {
                parameters.int4(self.customer());
                parameters.text(&self.amount(10_000));
            }
            other => unreachable!("SmallBank has six calls, not {other}"),
        }
    }

    fn pick(&mut self, bound: u32) -> u32 {
        self.random.u32(0..bound)
    }

    fn expected(&self, call: usize, state: &[u8]) -> bool {
        // Too little money.
        matches!(call, SEND_PAYMENT | TRANSACT_SAVINGS) && state == b"P0001"
    }
}
