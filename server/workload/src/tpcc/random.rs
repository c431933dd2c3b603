//! TPC-C's random numbers and names (clauses 2.1.6, 4.3.2).

use super::cardinality::{CUSTOMERS, ITEMS};

/// Constants of NURand (clause 2.1.6): any value will do, except that the one for last names
/// at run time differs from the one of the population by 65 to 119, but not 96 or 112.
const C_LAST_LOAD: i32 = 157;
const C_LAST_RUN: i32 = 223;
const C_CUSTOMER: i32 = 259;
const C_ITEM: i32 = 7911;

const SYLLABLES: [&str; 10] =
    ["BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING"];

pub struct Random(fastrand::Rng);

impl Random {
    pub fn new(seed: u64) -> Self {
        Random(fastrand::Rng::with_seed(seed))
    }

    /// Both ends included.
    pub fn uniform(&mut self, low: i32, high: i32) -> i32 {
        self.0.i32(low..=high)
    }

    fn non_uniform(&mut self, a: i32, c: i32, low: i32, high: i32) -> i32 {
        ((self.uniform(0, a) | self.uniform(low, high)) + c) % (high - low + 1) + low
    }

    pub fn customer(&mut self) -> i32 {
        self.non_uniform(1023, C_CUSTOMER, 1, CUSTOMERS)
    }

    pub fn item(&mut self) -> i32 {
        self.non_uniform(8191, C_ITEM, 1, ITEMS)
    }

    pub fn last_name_at_run(&mut self) -> String {
        last_name(self.non_uniform(255, C_LAST_RUN, 0, 999))
    }

    /// The first thousand customers of a district carry each name once.
    pub fn last_name_at_load(&mut self, customer: i32) -> String {
        last_name(if customer <= 1000 { customer - 1 } else { self.non_uniform(255, C_LAST_LOAD, 0, 999) })
    }

    /// Appends a random string of letters and digits.
    pub fn alphanumeric(&mut self, low: i32, high: i32, out: &mut Vec<u8>) {
        const ALPHABET: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
        for _ in 0..self.uniform(low, high) {
            out.push(ALPHABET[self.0.usize(..62)]);
        }
    }

    pub fn digits(&mut self, count: usize, out: &mut Vec<u8>) {
        for _ in 0..count {
            out.push(b'0' + self.0.u8(..10));
        }
    }

    /// A data column: one in ten contains ORIGINAL (clause 4.3.3.1).
    pub fn data(&mut self, out: &mut Vec<u8>) {
        let start = out.len();
        self.alphanumeric(26, 50, out);
        if self.uniform(1, 10) == 1 {
            let at = self.uniform(0, (out.len() - start) as i32 - 8) as usize;
            out[start + at..start + at + 8].copy_from_slice(b"ORIGINAL");
        }
    }

    pub fn zip(&mut self, out: &mut Vec<u8>) {
        self.digits(4, out);
        out.extend_from_slice(b"11111");
    }

    pub fn shuffle(&mut self, items: &mut [i32]) {
        self.0.shuffle(items);
    }
}

fn last_name(number: i32) -> String {
    let syllable = |digit: i32| SYLLABLES[digit as usize];
    [syllable(number / 100), syllable(number / 10 % 10), syllable(number % 10)].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_names_follow_clause_4_3_2_3() {
        assert_eq!(last_name(371), "PRICALLYOUGHT");
        assert_eq!(last_name(40), "BARPRESBAR");
    }

    #[test]
    fn run_constant_keeps_its_distance_from_the_load_constant() {
        let delta = (C_LAST_RUN - C_LAST_LOAD).abs();
        assert!((65..=119).contains(&delta) && delta != 96 && delta != 112);
    }

    #[test]
    fn non_uniform_numbers_stay_in_range() {
        let mut random = Random::new(7);
        assert!((0..10_000).all(|_| (1..=ITEMS).contains(&random.item())));
        assert!((0..10_000).all(|_| (1..=CUSTOMERS).contains(&random.customer())));
    }
}
