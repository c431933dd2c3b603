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
    pub fn checked(mut self) -> Option<Snapshot> {
        let possible = self.xmin > 0 && self.xmin <= self.xmax;
        let ordered = self.under_way.is_sorted();
        let within = self.under_way.iter().all(|id| (self.xmin..self.xmax).contains(id));
        self.under_way.dedup();
        (possible && ordered && within).then_some(self)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snapshot_reads_what_it_writes() {
        let read = |text| Snapshot::parse(text).map(|snapshot| snapshot.to_string());
        assert_eq!(read("12:20:13,15,15,18").ok().as_deref(), Some("12:20:13,15,18"));
        assert_eq!(read("12:12:").ok().as_deref(), Some("12:12:"));
        for wrong in ["", "12", "12:18", "0:1:", "31:12:", "12:16:14,13", "12:16:11", "12:16:16", "1:2:a"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_was_over_is_seen() {
        let snapshot = Snapshot { xmin: 12, xmax: 20, under_way: vec![13, 18] };
        let seen: Vec<i64> = (10..24).filter(|id| snapshot.sees(*id)).collect();
        assert_eq!(seen, [10, 11, 12, 14, 15, 16, 17, 19]);
    }

    #[test]
    fn ids_are_read_as_c_does() {
        let read: Vec<i64> =
            ["42", " 42x", "0x1f", "017", "", "-", "99999999999999999999"].map(parse_transaction_id).to_vec();
        assert_eq!(read, [42, 42, 31, 15, 0, 0, i64::MAX]);
    }
}
