//! `random()` and `setseed()`: the numbers that PostgreSQL draws behind a seed (pg_prng.c, which is
//! Blackman's and Vigna's xoroshiro128** begun by their splitmix64). Without a seed they are the thread's.

use std::sync::atomic::{AtomicBool, Ordering};

use archipel_sql::datum::Datum;
use archipel_sql::error::{Result, SqlError, SqlState};
use parking_lot::Mutex;

/// Where a sequence of numbers is.
pub type State = [u64; 2];

/// What a session draws its numbers of.
#[derive(Default)]
pub struct Numbers {
    /// Whether there is a state: who has given no seed looks at nothing else.
    is_seeded: AtomicBool,
    state: Mutex<State>,
}

impl Numbers {
    /// A number in [0, 1).
    pub fn draw(&self) -> f64 {
        if !self.is_seeded.load(Ordering::Relaxed) {
            return fastrand::f64();
        }
        let next = next(&mut self.state.lock());
        // 52 bits, as PostgreSQL takes them.
        (next >> 12) as f64 / (1_u64 << 52) as f64
    }

    /// Begins anew; `seed` is from -1 to 1.
    pub fn begin(&self, seed: f64) {
        // What is no whole number goes on as the one towards zero.
        let mut seed = (((1_u64 << 52) - 1) as f64 * seed) as i64 as u64;
        *self.state.lock() = [split(&mut seed), split(&mut seed)];
        self.is_seeded.store(true, Ordering::Relaxed);
    }

    /// Where it is, for a run that may have to begin again.
    pub fn state(&self) -> Option<State> {
        self.is_seeded.load(Ordering::Relaxed).then(|| *self.state.lock())
    }

    /// Goes back to where it was.
    pub fn go_back(&self, state: State) {
        *self.state.lock() = state;
    }

    /// `setseed`.
    ///
    /// # Errors
    /// 22023 beyond -1 to 1.
    pub fn set_seed(&self, args: &[Datum]) -> Result<Datum> {
        let [Datum::Float8(seed)] = args else { return Ok(Datum::Null) };
        if !(-1.0..=1.0).contains(seed) {
            let message = format!("setseed parameter {seed} is out of allowed range [-1,1]");
            return Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message));
        }
        self.begin(*seed);
        Ok(Datum::Text(Default::default()))
    }
}

fn split(seed: &mut u64) -> u64 {
    *seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut value = *seed;
    value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

fn next(state: &mut State) -> u64 {
    let [first, second] = *state;
    let mixed = second ^ first;
    *state = [first.rotate_left(24) ^ mixed ^ (mixed << 16), mixed.rotate_left(37)];
    first.wrapping_mul(5).rotate_left(7).wrapping_mul(9)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers that PostgreSQL 15 draws behind these seeds.
    #[test]
    fn a_seed_draws_what_postgresql_draws() {
        let numbers = Numbers::default();
        numbers.begin(-1.0);
        let drawn: Vec<f64> = (0..3).map(|_| numbers.draw()).collect();
        assert_eq!(drawn, [0.725656831544149, 0.21342431605981593, 0.08668744483804192]);
        numbers.begin(0.3);
        assert_eq!(numbers.draw(), 0.662926946301782);
        numbers.begin(0.5);
        let state = numbers.state().expect("it has a seed");
        assert_eq!(numbers.draw(), 0.9851677175347999);
        numbers.go_back(state);
        assert_eq!(numbers.draw(), 0.9851677175347999);
    }
}
