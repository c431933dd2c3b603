//! Transaction ids and snapshots (`xid8`, `pg_snapshot`, `txid_snapshot`) as text.

use std::fmt;

use super::invalid_syntax;
use crate::error::Result;

/// A text as xid8in reads it, like C's `strtoull`: leading digits in decimal, octal or hexadecimal,
/// and zero where there are none. Ids end where bigint ends.
pub fn parse_transaction_id(text: &str) -> i64 {
    let trimmed = text.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == '\u{b}');
    let trimmed = trimmed.strip_prefix('+').unwrap_or(trimmed);
    let (digits, radix) = match trimmed.strip_prefix("0x").or_else(|| trimmed.strip_prefix("0X")) {
        Some(digits) => (digits, 16),
        None if trimmed.starts_with('0') => (trimmed, 8),
        None => (trimmed, 10),
    };
    let mut value: i64 = 0;
    for digit in digits.chars().map_while(|c| c.to_digit(radix)) {
        value = value.saturating_mul(i64::from(radix)).saturating_add(i64::from(digit));
    }
    value
}

/// Which transactions were over: those before `xmin`, and those before `xmax` that are not listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    pub xmin: i64,
    pub xmax: i64,
    /// Those under way between the two, in order.
    pub under_way: Vec<i64>,
}

impl fmt::Display for Snapshot {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}:", self.xmin, self.xmax)?;
        for (place, id) in self.under_way.iter().enumerate() {
            let comma = if place > 0 { "," } else { "" };
            write!(out, "{comma}{id}")?;
        }
        Ok(())
    }
}

impl Snapshot {
    /// Reads `xmin:xmax:id,id…`.
    pub fn parse(text: &str) -> Result<Snapshot> {
        Self::read(text).ok_or_else(|| invalid_syntax("pg_snapshot", text))
    }

    fn read(text: &str) -> Option<Snapshot> {
        let id = |text: &str| {
            let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
            text.parse::<i64>().ok().filter(|_| digits)
        };
        let mut parts = text.splitn(3, ':');
        let (xmin, xmax, list) = (id(parts.next()?)?, id(parts.next()?)?, parts.next()?);
        let mut under_way = Vec::new();
        if !list.is_empty() {
            for part in list.split(',') {
                under_way.push(id(part)?);
            }
        }
        Snapshot { xmin, xmax, under_way }.checked()
    }

    /// The snapshot, each transaction under way once, if it is one.
    fn checked(mut self) -> Option<Snapshot> {
        let possible = self.xmin > 0 && self.xmin <= self.xmax;
        let ordered = self.under_way.is_sorted();
        let within = self.under_way.iter().all(|id| (self.xmin..self.xmax).contains(id));
        self.under_way.dedup();
        (possible && ordered && within).then_some(self)
    }

    /// Reads what pg_snapshot_send writes.
    pub fn from_binary(bytes: &[u8]) -> Option<Snapshot> {
        let (count, rest) = bytes.split_first_chunk::<4>()?;
        let count = usize::try_from(i32::from_be_bytes(*count)).ok()?;
        if rest.len() != count.checked_add(2)?.checked_mul(8)? {
            return None;
        }
        let number = |bytes: &[u8]| bytes.try_into().map(i64::from_be_bytes);
        let numbers = rest.chunks_exact(8).map(number).collect::<Result<Vec<i64>, _>>().ok()?;
        Snapshot { xmin: numbers[0], xmax: numbers[1], under_way: numbers[2..].to_vec() }.checked()
    }

    /// As pg_snapshot_send does.
    pub fn write_binary(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&(self.under_way.len() as i32).to_be_bytes());
        for number in [self.xmin, self.xmax].iter().chain(&self.under_way) {
            out.extend_from_slice(&number.to_be_bytes());
        }
    }

    /// Whether a transaction was over.
    pub fn sees(&self, id: i64) -> bool {
        id < self.xmin || (id < self.xmax && self.under_way.binary_search(&id).is_err())
    }
}
