//! The initial population (clause 4.3.3.1), as COPY streams: one warehouse's tables are
//! independent of another's.

use super::cardinality::{CUSTOMERS, DISTRICTS, ITEMS};
use super::random::Random;
use crate::workload::CopyJob;

/// Orders up to this number are delivered; the rest wait in new_order.
const DELIVERED: i32 = 2_100;
const ORDERS: i32 = 3_000;
const SINCE: &str = "2026-01-01 00:00:00+00";

/// Every stream has its own seed, so that streams may run in any order and orders and their
/// lines, written by different streams, agree.
fn seed(table: u64, warehouse: i32) -> u64 {
    0x7470_6363 ^ (table << 32) ^ (warehouse as u64) << 8
}

pub fn jobs(warehouses: i32) -> Vec<Vec<CopyJob>> {
    let mut jobs = vec![items(), all_warehouses(warehouses)];
    for warehouse in 1..=warehouses {
        jobs.push(stock(warehouse));
        jobs.push(districts(warehouse));
        jobs.push(customers(warehouse));
        jobs.push(history(warehouse));
        jobs.push(orders(warehouse));
        jobs.push(new_orders(warehouse));
        jobs.push(order_lines(warehouse));
    }
    vec![jobs]
}

fn job(sql: &'static str, rows: i32, write: impl FnMut(u64, &mut Vec<u8>) + Send + 'static) -> CopyJob {
    CopyJob { sql, rows: rows as u64, write: Box::new(write) }
}

fn items() -> CopyJob {
    let mut random = Random::new(seed(1, 0));
    job("COPY item FROM STDIN", ITEMS, move |row, out| {
        put!(out, "{}\t{}\t", row + 1, random.uniform(1, 10_000));
        random.alphanumeric(14, 24, out);
        let cents = random.uniform(100, 10_000);
        put!(out, "\t{}.{:02}\t", cents / 100, cents % 100);
        random.data(out);
        out.push(b'\n');
    })
}

/// name, two streets, city, state, zip.
fn address(random: &mut Random, out: &mut Vec<u8>) {
    for (low, high) in [(10, 20), (10, 20), (10, 20), (2, 2)] {
        random.alphanumeric(low, high, out);
        out.push(b'\t');
    }
    random.zip(out);
    out.push(b'\t');
}

fn all_warehouses(warehouses: i32) -> CopyJob {
    let mut random = Random::new(seed(2, 0));
    job("COPY warehouse FROM STDIN", warehouses, move |row, out| {
        put!(out, "{}\t", row + 1);
        random.alphanumeric(6, 10, out);
        out.push(b'\t');
        address(&mut random, out);
        put!(out, "0.{:04}\t300000.00\n", random.uniform(0, 2000));
    })
}

fn stock(warehouse: i32) -> CopyJob {
    let mut random = Random::new(seed(3, warehouse));
    job("COPY stock FROM STDIN", ITEMS, move |row, out| {
        put!(out, "{warehouse}\t{}\t{}\t", row + 1, random.uniform(10, 100));
        for _ in 0..DISTRICTS {
            random.alphanumeric(24, 24, out);
            out.push(b'\t');
        }
        out.extend_from_slice(b"0\t0\t0\t");
        random.data(out);
        out.push(b'\n');
    })
}

fn districts(warehouse: i32) -> CopyJob {
    let mut random = Random::new(seed(4, warehouse));
    job("COPY district FROM STDIN", DISTRICTS, move |row, out| {
        put!(out, "{warehouse}\t{}\t", row + 1);
        random.alphanumeric(6, 10, out);
        out.push(b'\t');
        address(&mut random, out);
        put!(out, "0.{:04}\t30000.00\t{}\n", random.uniform(0, 2000), ORDERS + 1);
    })
}

fn customers(warehouse: i32) -> CopyJob {
    let mut random = Random::new(seed(5, warehouse));
    job("COPY customer FROM STDIN", DISTRICTS * CUSTOMERS, move |row, out| {
        let district = row as i32 / CUSTOMERS + 1;
        let customer = row as i32 % CUSTOMERS + 1;
        put!(out, "{warehouse}\t{district}\t{customer}\t");
        random.alphanumeric(8, 16, out);
        put!(out, "\tOE\t{}\t", random.last_name_at_load(customer));
        address(&mut random, out);
        random.digits(16, out);
        let credit = if random.uniform(1, 10) == 1 { "BC" } else { "GC" };
        put!(out, "\t{SINCE}\t{credit}\t50000.00\t0.{:04}\t-10.00\t10.00\t1\t0\t", random.uniform(0, 5000));
        random.alphanumeric(300, 500, out);
        out.push(b'\n');
    })
}

fn history(warehouse: i32) -> CopyJob {
    let mut random = Random::new(seed(6, warehouse));
    job("COPY history FROM STDIN", DISTRICTS * CUSTOMERS, move |row, out| {
        let district = row as i32 / CUSTOMERS + 1;
        let customer = row as i32 % CUSTOMERS + 1;
        put!(out, "{customer}\t{district}\t{warehouse}\t{district}\t{warehouse}\t{SINCE}\t10.00\t");
        random.alphanumeric(12, 24, out);
        out.push(b'\n');
    })
}

/// Order counts of lines, the same for orders and for order_line.
struct LineCounts(Random);

impl LineCounts {
    fn new(warehouse: i32) -> Self {
        LineCounts(Random::new(seed(7, warehouse)))
    }

    fn next(&mut self) -> i32 {
        self.0.uniform(5, 15)
    }
}

fn orders(warehouse: i32) -> CopyJob {
    let mut random = Random::new(seed(8, warehouse));
    let mut counts = LineCounts::new(warehouse);
    let mut customers: Vec<i32> = Vec::new();
    job("COPY orders FROM STDIN", DISTRICTS * ORDERS, move |row, out| {
        let district = row as i32 / ORDERS + 1;
        let order = row as i32 % ORDERS + 1;
        if order == 1 {
            // Every customer has ordered once, in random order.
            customers = (1..=CUSTOMERS).collect();
            random.shuffle(&mut customers);
        }
        let customer = customers[order as usize - 1];
        put!(out, "{warehouse}\t{district}\t{order}\t{customer}\t{SINCE}\t");
        if order <= DELIVERED {
            put!(out, "{}", random.uniform(1, 10));
        } else {
            out.extend_from_slice(b"\\N");
        }
        put!(out, "\t{}\t1\n", counts.next());
    })
}

fn new_orders(warehouse: i32) -> CopyJob {
    let waiting = ORDERS - DELIVERED;
    job("COPY new_order FROM STDIN", DISTRICTS * waiting, move |row, out| {
        let district = row as i32 / waiting + 1;
        let order = row as i32 % waiting + 1 + DELIVERED;
        put!(out, "{warehouse}\t{district}\t{order}\n");
    })
}

fn order_lines(warehouse: i32) -> CopyJob {
    let mut counting = LineCounts::new(warehouse);
    let rows = (0..DISTRICTS * ORDERS).map(|_| counting.next()).sum();
    let mut counts = LineCounts::new(warehouse);
    let mut random = Random::new(seed(9, warehouse));
    let (mut order_row, mut line, mut lines) = (-1, 0, 0);
    job("COPY order_line FROM STDIN", rows, move |_, out| {
        if line == lines {
            (order_row, line, lines) = (order_row + 1, 0, counts.next());
        }
        line += 1;
        let district = order_row / ORDERS + 1;
        let order = order_row % ORDERS + 1;
        put!(out, "{warehouse}\t{district}\t{order}\t{line}\t{}\t{warehouse}\t", random.uniform(1, ITEMS));
        if order <= DELIVERED {
            put!(out, "{SINCE}\t5\t0.00\t");
        } else {
            let cents = random.uniform(1, 999_999);
            put!(out, "\\N\t5\t{}.{:02}\t", cents / 100, cents % 100);
        }
        random.alphanumeric(24, 24, out);
        out.push(b'\n');
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_and_their_lines_agree() {
        let text = |mut job: CopyJob| {
            let mut out = Vec::new();
            (0..job.rows).for_each(|row| (job.write)(row, &mut out));
            String::from_utf8(out).expect("populations are ASCII")
        };
        let orders = text(orders(1));
        let lines = text(order_lines(1));
        let promised: usize =
            orders.lines().filter_map(|line| line.split('\t').nth(6)?.parse::<usize>().ok()).sum();
        assert_eq!(promised, lines.lines().count());
        assert_eq!(lines.lines().last().map(|line| line.starts_with("1\t10\t3000\t")), Some(true));
    }
}
