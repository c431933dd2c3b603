//! TPC-C, revision 5.11: five transactions by the specification, without think times.
//!
//! Each connection is a terminal with a home warehouse (clause 2.4.1.1); parameters follow
//! clauses 2.4.1 to 2.8.1, the population clause 4.3.3, the conditions clause 3.3.2.

mod cardinality;
mod check;
mod population;
mod random;

use super::client::Parameters;
use crate::workload::{Call, Condition, CopyJob, Terminal, Workload};
use cardinality::{DISTRICTS, ITEMS};
use random::Random;

pub struct Tpcc {
    warehouses: i32,
}

impl Tpcc {
    pub fn new(scale: u32) -> Self {
        Tpcc { warehouses: scale as i32 }
    }
}

const NEW_ORDER: usize = 0;
const PAYMENT: usize = 1;
const ORDER_STATUS: usize = 2;
const DELIVERY: usize = 3;
const STOCK_LEVEL: usize = 4;

static CALLS: [Call; 5] = [
    Call { name: "new_order", sql: "CALL new_order($1, $2, $3, $4, $5, $6)", weight: 45, answer: &[4, 14] },
    Call { name: "payment", sql: "CALL payment($1, $2, $3, $4, $5, $6, $7)", weight: 43, answer: &[4, 14] },
    Call {
        name: "order_status",
        sql: "CALL order_status($1, $2, $3, $4)",
        weight: 4,
        answer: &[4, 14, 4, 8, 4, 100, 180],
    },
    Call { name: "delivery", sql: "CALL delivery($1, $2)", weight: 4, answer: &[4] },
    Call { name: "stock_level", sql: "CALL stock_level($1, $2, $3)", weight: 4, answer: &[8] },
];

impl Workload for Tpcc {
    scripts!("tpcc");

    fn tables(&self) -> &'static [&'static str] {
        &[
            "warehouse",
            "district",
            "customer",
            "history",
            "orders",
            "new_order",
            "order_line",
            "item",
            "stock",
        ]
    }

    fn copy_jobs(&self) -> Vec<Vec<CopyJob>> {
        population::jobs(self.warehouses)
    }

    fn calls(&self) -> &'static [Call] {
        &CALLS
    }

    fn terminal(&self, connection: u32, connections: u32, seed: u64) -> Box<dyn Terminal> {
        // Terminals spread evenly over the warehouses, however many there are of either.
        let home = if connections as i32 >= self.warehouses {
            connection as i32 % self.warehouses
        } else {
            (i64::from(connection) * i64::from(self.warehouses) / i64::from(connections)) as i32
        };
        Box::new(TpccTerminal {
            random: Random::new(seed),
            warehouses: self.warehouses,
            home: home + 1,
            stock_level_district: connection as i32 % DISTRICTS + 1,
            lines: Vec::new(),
            items: Vec::new(),
            suppliers: Vec::new(),
            quantities: Vec::new(),
        })
    }

    fn conditions(&self) -> &'static [Condition] {
        &check::CONDITIONS
    }

    fn acknowledged_query(&self) -> Option<&'static str> {
        Some("SELECT count(*) FROM orders WHERE o_w_id = $1 AND o_d_id = $2 AND o_id = $3")
    }
}

struct TpccTerminal {
    random: Random,
    warehouses: i32,
    home: i32,
    /// Clause 2.8.1.1: a terminal's stock-level transactions stay in one district.
    stock_level_district: i32,
    lines: Vec<(bool, i32, i32)>,
    items: Vec<i32>,
    suppliers: Vec<i32>,
    quantities: Vec<i32>,
}

impl TpccTerminal {
    fn other_warehouse(&mut self) -> i32 {
        let other = self.random.uniform(1, self.warehouses - 1);
        if other >= self.home { other + 1 } else { other }
    }

    fn new_order(&mut self, parameters: &mut Parameters) {
        let district = self.random.uniform(1, DISTRICTS);
        let customer = self.random.customer();
        let lines = self.random.uniform(5, 15);
        let rollback = self.random.uniform(1, 100) == 1;
        self.lines.clear();
        for line in 1..=lines {
            let unused = rollback && line == lines;
            let item = if unused { ITEMS + 1 } else { self.random.item() };
            let remote = self.warehouses > 1 && self.random.uniform(1, 100) == 1;
            let supplier = if remote { self.other_warehouse() } else { self.home };
            self.lines.push((unused, supplier, item));
        }
        // Stock in one order everywhere (the unused item last): a server with row locks would
        // otherwise spend the run in its deadlock timeout.
        self.lines.sort_unstable();
        self.items.clear();
        self.suppliers.clear();
        self.quantities.clear();
        for &(_, supplier, item) in &self.lines {
            self.items.push(item);
            self.suppliers.push(supplier);
            self.quantities.push(self.random.uniform(1, 10));
        }
        parameters.note = [self.home, district];
        parameters.int4(self.home);
        parameters.int4(district);
        parameters.int4(customer);
        parameters.int4_array(&self.items);
        parameters.int4_array(&self.suppliers);
        parameters.int4_array(&self.quantities);
    }

    /// A customer by number (40%) or by last name (60%).
    fn customer_selection(&mut self, parameters: &mut Parameters) {
        if self.random.uniform(1, 100) <= 60 {
            parameters.null();
            parameters.text(&self.random.last_name_at_run());
        } else {
            parameters.int4(self.random.customer());
            parameters.null();
        }
    }

    fn payment(&mut self, parameters: &mut Parameters) {
        let district = self.random.uniform(1, DISTRICTS);
        let (customer_warehouse, customer_district) =
            if self.warehouses > 1 && self.random.uniform(1, 100) <= 15 {
                (self.other_warehouse(), self.random.uniform(1, DISTRICTS))
            } else {
                (self.home, district)
            };
        let cents = self.random.uniform(100, 500_000);
        parameters.int4(self.home);
        parameters.int4(district);
        parameters.int4(customer_warehouse);
        parameters.int4(customer_district);
        self.customer_selection(parameters);
        parameters.text(&format!("{}.{:02}", cents / 100, cents % 100));
    }

    fn order_status(&mut self, parameters: &mut Parameters) {
        parameters.int4(self.home);
        let district = self.random.uniform(1, DISTRICTS);
        parameters.int4(district);
        self.customer_selection(parameters);
    }

    fn delivery(&mut self, parameters: &mut Parameters) {
        parameters.int4(self.home);
        let carrier = self.random.uniform(1, 10);
        parameters.int4(carrier);
    }

    fn stock_level(&mut self, parameters: &mut Parameters) {
        parameters.int4(self.home);
        parameters.int4(self.stock_level_district);
        let threshold = self.random.uniform(10, 20);
        parameters.int4(threshold);
    }
}

impl Terminal for TpccTerminal {
    fn fill(&mut self, call: usize, parameters: &mut Parameters) {
        match call {
            NEW_ORDER => self.new_order(parameters),
            PAYMENT => self.payment(parameters),
            ORDER_STATUS => self.order_status(parameters),
            DELIVERY => self.delivery(parameters),
            STOCK_LEVEL => self.stock_level(parameters),
            other => unreachable!("TPC-C has five calls, not {other}"),
        }
    }

    fn pick(&mut self, bound: u32) -> u32 {
        self.random.uniform(0, bound as i32 - 1) as u32
    }

    fn expected(&self, call: usize, state: &[u8]) -> bool {
        // The unused item number (clause 2.4.1.4) raises.
        call == NEW_ORDER && state == b"P0001"
    }

    fn acknowledged(&self, call: usize, key: &Parameters, result: i32) -> Option<String> {
        (call == NEW_ORDER).then(|| format!("{} {} {result}", key.note[0], key.note[1]))
    }
}
