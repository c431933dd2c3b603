//! Which characters of other character sets are which of Unicode's, as PostgreSQL 15 has it.
//!
//! `conversions.bin` was recorded from PostgreSQL by `record.py`, which stands beside it: for each
//! character set its characters in rising order with those of Unicode that they are read as, in runs; then
//! what is written otherwise than it is read; then the characters that are read as two.

use std::sync::OnceLock;

use rustc_hash::FxHashMap;

use super::name::{ENCODINGS, Encoding};

static RECORDED: &[u8] = include_bytes!("conversions.bin");

/// The characters of one character set beyond ASCII. A character's code is its bytes as one number.
#[derive(Default)]
pub(super) struct Conversion {
    read: FxHashMap<u32, char>,
    written: FxHashMap<char, u32>,
    /// Characters that are two of Unicode's.
    pairs: Vec<(u32, [char; 2])>,
}

impl Conversion {
    /// Those of a character set; `None` if text is not converted to it. Made when it is first asked for.
    pub(super) fn of(encoding: Encoding) -> Option<&'static Conversion> {
        static MADE: [OnceLock<Option<Conversion>>; ENCODINGS.len()] =
            [const { OnceLock::new() }; ENCODINGS.len()];
        let make = || section(encoding).map(Conversion::read_from);
        MADE[encoding.0 as usize].get_or_init(make).as_ref()
    }

    fn read_from(recorded: &'static [u8]) -> Conversion {
        let mut recorded = Recorded(recorded);
        let mut conversion = Conversion::default();
        let (mut code, mut scalar) = (0_u32, 0_u32);
        for _ in 0..recorded.number() {
            // How far the character of Unicode is from the next one, zigzag; whether there is a gap before
            // the code; whether others follow.
            let head = recorded.number();
            let far = head >> 2;
            let gap = if head & 2 != 0 { recorded.number() } else { 0 };
            let length = if head & 1 != 0 { recorded.number() + 2 } else { 1 };
            let next = scalar.wrapping_add(1);
            scalar =
                if far & 1 == 0 { next.wrapping_add(far >> 1) } else { next.wrapping_sub((far >> 1) + 1) };
            code = code.wrapping_add(gap + 1);
            for at in 0..length {
                conversion.put(code + at, scalar + at);
            }
            code += length - 1;
            scalar += length - 1;
        }
        let mut scalar = 0;
        for _ in 0..recorded.number() {
            scalar += recorded.number();
            let code = recorded.number();
            let Some(character) = char::from_u32(scalar) else { continue };
            if code == 0 {
                conversion.written.remove(&character);
            } else {
                conversion.written.insert(character, code);
            }
        }
        for _ in 0..recorded.number() {
            let (code, first, second) = (recorded.number(), recorded.number(), recorded.number());
            if let (Some(first), Some(second)) = (char::from_u32(first), char::from_u32(second)) {
                conversion.pairs.push((code, [first, second]));
            }
        }
        conversion
    }

    /// Of several codes of a character the lowest is written.
    fn put(&mut self, code: u32, scalar: u32) {
        if let Some(character) = char::from_u32(scalar) {
            self.read.insert(code, character);
            self.written.entry(character).or_insert(code);
        }
    }

    /// What a code is read as.
    pub(super) fn read(&self, code: u32) -> Option<char> {
        self.read.get(&code).copied()
    }

    /// The two characters that a code is read as.
    pub(super) fn read_pair(&self, code: u32) -> Option<[char; 2]> {
        self.pairs.iter().find(|(of, _)| *of == code).map(|(_, pair)| *pair)
    }

    /// The code that a character is written as.
    pub(super) fn written(&self, character: char) -> Option<u32> {
        self.written.get(&character).copied()
    }

    /// The code that two characters are written as together.
    pub(super) fn written_pair(&self, first: char, second: char) -> Option<u32> {
        self.pairs.iter().find(|(_, pair)| *pair == [first, second]).map(|(code, _)| *code)
    }
}

/// What was recorded of a character set.
fn section(encoding: Encoding) -> Option<&'static [u8]> {
    let mut rest = Recorded(RECORDED);
    while let Some((number, tail)) = rest.0.split_first() {
        rest.0 = tail;
        let length = rest.number() as usize;
        let (section, tail) = rest.0.split_at_checked(length)?;
        if i32::from(*number) == encoding.0 {
            return Some(section);
        }
        rest.0 = tail;
    }
    None
}

/// Numbers of seven bits a byte, the lowest first; the high bit says that more follow.
struct Recorded(&'static [u8]);

impl Recorded {
    fn number(&mut self) -> u32 {
        let (mut number, mut shift) = (0, 0);
        while let Some((byte, rest)) = self.0.split_first() {
            self.0 = rest;
            number |= u32::from(byte & 0x7f) << shift;
            shift += 7;
            if byte & 0x80 == 0 || shift > 28 {
                break;
            }
        }
        number
    }
}
