//! Transactions in the log: which records belong together, and in which order they happened.
//!
//! ```text
//! transaction  [flags 1][length of what follows varint], then by flags, then { record }
//!              flag 1    [number − the one before varint], else one more
//!              flag 8    [id 8], else its place in the order is its id
//!              flag 16   [parts varint][bytes varint][crc32c of the parts' crc32c 4]   it has parts 0 … n−1
//!              flag 32   system: logged by itself, amid a transaction that has still to commit
//! ```
//!
//! Flags that are not listed are refused: they say that there is more between header and records. Records that
//! lie in [`super::parts`] come before those that stand here.
//!
//! **Numbers.** Each logged transaction has one: one more than the greatest of the numbers of all partitions
//! it holds, of the last that its thread gave, and of what it has used without holding it (`after`). It is given
//! at the commit point ([`crate::txn`]'s `number_to_give`), with all claims held, and every partition that is
//! held stores it, written or not, before it is released ([`crate::partition`]'s `mark_commit`). A key has one
//! partition at a time, parts of a partition inherit its number, and a merge takes the greater one: so of two
//! transactions that write a key the later one has the greater number, whatever their threads, and epochs never
//! contradict that. A thread's own numbers only grow, so those of a segment do.
//!
//! ```text
//!              thread 1: last 4            thread 2: last 9
//! partition 7 ── T: 1 + max(7, 4) = 8 ──┐
//!                                       └─▶ partition 8 ── U: 1 + max(8, 9) = 10 ──▶ partition 10
//! ```
//!
//! Records of one key and one number count by part, then as they stand: the transaction has put and deleted them
//! so. What is logged amid others (the bound of a sequence, places of a group) has a number of its own thread,
//! too; it is engine state, whose records have sequences.
//!
//! **The order.** (epoch, number, thread) is a total order of all transactions that agrees with every
//! dependency. Let U depend on T, or write what T had read. Epochs never contradict that; so let both be of
//! one epoch:
//!
//! | they meet at | why T's number is smaller |
//! |---|---|
//! | a partition that both held, an index's too | T stored its own there, also where it only read; U took one more |
//! | an earlier statement of U's session, in its block or its pipeline | each leaves the greatest number it met or got with its [`crate::client::Client`], which the next takes along |
//! | a page of U's, given back | what it met goes into `after`; what U writes it holds again at its commit |
//! | a reference version of T's that U read | the version carries T's number, for U's `after` |
//! | definitions of T's that U runs by | they carry T's number, and a thread takes it along when it takes them up |
//! | a reference version that T read and U replaced, or a definition | T stores its number beside its slot before the fence in `enter_with` ([`crate::txn::EpochClock`]), and looks for the mark behind it. U marks, fences, and takes one more than the greatest beside *any* slot. So T sees the mark and runs again, or U sees T's number |
//! | the same, where T only reads | it stores the greatest number it met beside its slot, fences if that is news, then looks |
//! | a number that U drew | a sequence has a number under its latch, as a partition has: each bound's record gets one more, and U takes it into `after` |
//! | a sequence that T drew from and U ended | as with a reference version: U has said so before it marks; and U comes behind the last bound |
//! | R, which only reads, saw T, and not U | a run that answers its client, a block's statement too, raises all it holds to the greatest number it met, `after` among them (`leave_met`): loads and compares, a store where they differ |
//!
//! A snapshot is a closed epoch, predictions answer nobody, routes say where rows lie, not what they are. So
//! each prefix of this order is a state that some serial execution had and no answered client contradicts:
//! streams, points in time and replicas may cut anywhere. (With `synchronous_commit = off` real time is kept by
//! epochs only; and locks that are no row's, of tables and advisory ones, order no two transactions of one epoch
//! that share no partition.) One counter of commits would be simpler, and a line that all cores write;
//! reference writers that open the next epoch instead of looking at slots would be as sound, and wait for every
//! thread in a commit.

use super::input::{Input, Malformed, VARINT_BYTES_MAX, put_varint, write_varint};
use super::redo::{self, Record};
use crate::id::{Epoch, TxnId};

/// Behind the length comes the distance from the number before.
const NUMBER: u8 = 1;
/// Then the transaction's id.
const ID: u8 = 8;
/// Then what parts it has; they lie under its id.
const PARTS: u8 = 16;
const SYSTEM: u8 = 32;
const KNOWN: u8 = NUMBER | ID | PARTS | SYSTEM;

/// The longest header of a transaction without parts.
const HEADER_MAX: usize = 1 + 2 * VARINT_BYTES_MAX;

/// The parts of a transaction, as its header names them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parts {
    /// The transaction's id, under which they lie.
    pub id: TxnId,
    /// How many there are; at least one.
    pub count: u32,
    /// Bytes of their records.
    pub bytes: u64,
    /// The crc32c of their crc32c, in their order.
    pub checksum: u32,
}

/// A transaction in the log that has parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WithParts {
    /// The epoch it committed in.
    pub epoch: Epoch,
    /// Its number.
    pub number: u64,
    /// Its parts.
    pub parts: Parts,
}

/// Who has logged a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Author {
    /// A program that commits.
    Program,
    /// The engine, for itself, amid a program that has still to commit.
    System,
}

/// Appends a transaction whose number is `step` above the one before.
#[inline]
pub(super) fn put(out: &mut Vec<u8>, author: Author, step: u64, records: &[u8]) {
    let flags = if author == Author::System { SYSTEM } else { 0 };
    frame(out, flags, step, &[], records);
}

/// The same of a program's transaction that has parts, whose rest are these records.
#[cold]
pub(super) fn put_with_parts(out: &mut Vec<u8>, step: u64, parts: &Parts, records: &[u8]) {
    let mut named = parts.id.0.to_le_bytes().to_vec();
    put_varint(&mut named, u64::from(parts.count));
    put_varint(&mut named, parts.bytes);
    named.extend_from_slice(&parts.checksum.to_le_bytes());
    frame(out, ID | PARTS, step, &named, records);
}

/// Appends header and records; `more` comes between the number and them.
#[inline]
fn frame(out: &mut Vec<u8>, mut flags: u8, step: u64, more: &[u8], records: &[u8]) {
    let mut number = [0; VARINT_BYTES_MAX];
    let mut number_bytes = 0;
    if step != 1 {
        flags |= NUMBER;
        number_bytes = write_varint(&mut number, 0, step);
    }
    let mut header = [flags; HEADER_MAX];
    let end = write_varint(&mut header, 1, (number_bytes + more.len() + records.len()) as u64);
    header[end..end + number_bytes].copy_from_slice(&number[..number_bytes]);
    let end = end + number_bytes;
    out.reserve(end + more.len() + records.len());
    out.extend_from_slice(&header[..end]);
    out.extend_from_slice(more);
    out.extend_from_slice(records);
}

/// What one thread logged in one epoch, or a part of it.
///
/// ```text
/// [epoch − the batch's first varint][thread varint][length varint][number of its first varint] { transaction }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment<'a> {
    /// The epoch they committed in.
    pub epoch: Epoch,
    /// Which thread: no two threads of a server have the same.
    pub thread: u64,
    /// The number of its first transaction.
    pub first: u64,
    /// The transactions.
    pub transactions: &'a [u8],
}

impl<'a> Segment<'a> {
    /// Appends it to a batch that begins with an epoch.
    pub(super) fn encode(&self, out: &mut Vec<u8>, first: Epoch) {
        put_varint(out, self.epoch.0.wrapping_sub(first.0));
        put_varint(out, self.thread);
        put_varint(out, self.transactions.len() as u64);
        put_varint(out, self.first);
        out.extend_from_slice(self.transactions);
    }

    /// Takes the next one of such a batch; `None` if there is none.
    pub(super) fn decode(input: &mut Input<'a>, first: Epoch) -> Option<Segment<'a>> {
        let epoch = Epoch(first.0.wrapping_add(input.varint()?));
        let thread = input.varint()?;
        let length = input.size()?;
        let first = input.varint()?;
        Some(Segment { epoch, thread, first, transactions: input.take(length)? })
    }
}

/// A record and where it stands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Located<'a> {
    /// The offset in its segment at which it begins.
    pub(crate) offset: usize,
    /// The number of its transaction; 0 where there are none.
    pub(crate) transaction: u64,
    pub(crate) record: Record<'a>,
}

/// The records of a segment in order, and what is wrong behind the last that is whole.
pub(crate) struct Records<'a> {
    length: usize,
    /// What is left of the transaction that has begun.
    within: Input<'a>,
    /// The transactions behind it.
    rest: Input<'a>,
    /// The number of the one that has begun, or of the first; `None`: there are records alone.
    number: Option<u64>,
    has_begun: bool,
    /// Those that have begun so far and have parts, each with its number.
    with_parts: Vec<(u64, Parts)>,
}

impl<'a> Records<'a> {
    /// Of transactions, the first of which has this number; or, with none, of records alone.
    pub(super) fn new(bytes: &'a [u8], first: Option<u64>) -> Records<'a> {
        let (within, rest): (&[u8], &[u8]) = if first.is_some() { (&[], bytes) } else { (bytes, &[]) };
        let (within, rest) = (Input { bytes: within }, Input { bytes: rest });
        let with_parts = Vec::new();
        Records { length: bytes.len(), within, rest, number: first, has_begun: false, with_parts }
    }

    /// The records of one transaction of this number, or of a part of it, without its header.
    pub(crate) fn of_transaction(records: &'a [u8], number: u64) -> Records<'a> {
        let (within, rest) = (Input { bytes: records }, Input { bytes: &[] });
        let (number, with_parts) = (Some(number), Vec::new());
        Records { length: records.len(), within, rest, number, has_begun: true, with_parts }
    }

    /// Those of the transactions so far that have parts, of a segment of this epoch.
    pub(crate) fn with_parts(&self, epoch: Epoch) -> impl Iterator<Item = WithParts> {
        self.with_parts.iter().map(move |(number, parts)| WithParts { epoch, number: *number, parts: *parts })
    }

    fn begin_transaction(&mut self, number: u64) -> Result<(), Malformed> {
        let flags = self.rest.byte().ok_or(Malformed::Transaction)?;
        if flags & !KNOWN != 0 {
            return Err(Malformed::Flags(flags));
        }
        let content = self.rest.length_prefixed().ok_or(Malformed::Transaction)?;
        self.within = Input { bytes: content };
        let step = match flags & NUMBER {
            0 => Some(1),
            // The segment says the first one's.
            _ => self.within.varint().filter(|step| self.has_begun && *step > 0),
        };
        if std::mem::replace(&mut self.has_begun, true) {
            self.number = step.and_then(|step| number.checked_add(step));
        }
        let (Some(_), Some(number)) = (step, self.number) else { return Err(Malformed::Transaction) };
        if flags & (ID | PARTS) != 0 {
            let parts = take_parts(&mut self.within, flags).ok_or(Malformed::Transaction)?;
            self.with_parts.extend(parts.map(|parts| (number, parts)));
        }
        Ok(())
    }

    fn next_record(&mut self) -> Result<Option<Located<'a>>, Malformed> {
        while self.within.bytes.is_empty() {
            match self.number {
                Some(number) if !self.rest.bytes.is_empty() => self.begin_transaction(number)?,
                _ => return Ok(None),
            }
        }
        let offset = self.length - self.rest.bytes.len() - self.within.bytes.len();
        let record = redo::take(&mut self.within, self.number)?;
        Ok(Some(Located { offset, transaction: self.number.unwrap_or(0), record }))
    }
}

/// What these flags say stands behind the number: the inner is `None` of a transaction that has only an id.
fn take_parts(input: &mut Input<'_>, flags: u8) -> Option<Option<Parts>> {
    let id = if flags & ID == 0 { None } else { Some(TxnId(input.word()?)) };
    if flags & PARTS == 0 {
        return Some(None);
    }
    let count = u32::try_from(input.varint()?).ok().filter(|count| *count > 0)?;
    let bytes = input.varint()?;
    let checksum = u32::from_le_bytes(input.take(4)?.try_into().ok()?);
    // Without an id nobody knows where they lie.
    Some(Some(Parts { id: id?, count, bytes, checksum }))
}

impl<'a> Iterator for Records<'a> {
    type Item = Result<Located<'a>, Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        let taken = self.next_record();
        if taken.is_err() {
            (self.within, self.rest) = (Input { bytes: &[] }, Input { bytes: &[] });
        }
        taken.transpose()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::id::TreeId;

    fn keys(bytes: &[u8], first: u64) -> Result<Vec<(u64, Vec<u8>)>, Malformed> {
        Records::new(bytes, Some(first))
            .map(|located| located.map(|located| (located.transaction, located.record.key.to_vec())))
            .collect()
    }

    proptest! {
        #[test]
        fn transactions_come_back_with_their_numbers(
            written in proptest::collection::vec(
                (prop_oneof![Just(1u64), 1u64..300, any::<u64>().prop_map(|step| step >> 8)],
                    any::<bool>(), proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..200), 1..4)),
                1..20,
            ),
            first in 1u64..1 << 40,
        ) {
            let (mut out, mut number, mut expected) = (Vec::new(), first, Vec::new());
            for (at, (step, is_system, all)) in written.iter().enumerate() {
                let step = if at == 0 { 1 } else { *step.max(&1) };
                number = if at == 0 { first } else { number + step };
                let mut records = Vec::new();
                for key in all {
                    redo::delete(&mut records, TreeId(20), key);
                    expected.push((number, key.clone()));
                }
                put(&mut out, if *is_system { Author::System } else { Author::Program }, step, &records);
            }
            prop_assert_eq!(keys(&out, first), Ok(expected));
            for located in Records::new(&out, Some(first)) {
                let located = located.expect("well formed");
                let mut input = Input { bytes: &out[located.offset..] };
                prop_assert_eq!(redo::take(&mut input, Some(located.transaction)), Ok(located.record));
            }
            for end in 0..out.len() {
                // What is whole comes before what is not, and nothing comes twice.
                let whole = Records::new(&out[..end], Some(first)).take_while(Result::is_ok).count();
                prop_assert!(whole <= keys(&out, first).expect("well formed").len());
            }
        }

        #[test]
        fn any_bytes_are_taken_apart_or_refused(
            bytes in proptest::collection::vec(any::<u8>(), 0..200), first in proptest::option::of(any::<u64>()),
        ) {
            let mut before = None;
            for located in Records::new(&bytes, first).flatten() {
                prop_assert!(located.offset < bytes.len() && Some(located.offset) > before);
                before = Some(located.offset);
            }
            let mut input = Input { bytes: &bytes };
            while let Some(segment) = Segment::decode(&mut input, Epoch(first.unwrap_or(1))) {
                prop_assert!(segment.transactions.len() <= bytes.len());
            }
        }
    }

    #[test]
    fn flags_that_are_not_known_are_told() {
        for flag in [2u8, 4, 64, 128] {
            let mut out = Vec::new();
            put(&mut out, Author::System, 1, b"");
            out[0] |= flag;
            assert_eq!(keys(&out, 1), Err(Malformed::Flags(SYSTEM | flag)));
        }
    }

    #[test]
    fn names_of_parts_come_back_and_what_is_none_is_refused() {
        let named =
            |id: u64, count: u32| Parts { id: TxnId(id), count, bytes: 300 << 20, checksum: 0xDEAD_BEEF };
        let mut record = Vec::new();
        redo::delete(&mut record, TreeId(20), b"k");
        let mut out = Vec::new();
        put_with_parts(&mut out, 1, &named(u64::MAX, 300), b"");
        put(&mut out, Author::Program, 1, &record);
        put_with_parts(&mut out, 70, &named(9, 1), &record);
        let mut records = Records::new(&out, Some(5));
        let numbers: Vec<u64> =
            records.by_ref().map(|located| located.expect("well formed").transaction).collect();
        assert_eq!(numbers, [6, 76]);
        let with_parts: Vec<_> = records.with_parts(Epoch(3)).collect();
        let expected = |number, parts| WithParts { epoch: Epoch(3), number, parts };
        assert_eq!(with_parts, [expected(5, named(u64::MAX, 300)), expected(76, named(9, 1))]);
        // Parts without an id, none of them, and a header that ends too early.
        let mut bad = Vec::new();
        put_with_parts(&mut bad, 1, &named(9, 1), b"");
        bad[0] = PARTS;
        assert_eq!(keys(&bad, 1), Err(Malformed::Transaction));
        let mut bad = Vec::new();
        put_with_parts(&mut bad, 1, &named(9, 0), b"");
        assert_eq!(keys(&bad, 1), Err(Malformed::Transaction));
        for length in 0..19 {
            let short = [&[ID | PARTS, length][..], &out[2..2 + usize::from(length)]].concat();
            assert_eq!(keys(&short, 1), Err(Malformed::Transaction), "{length} bytes");
        }
        assert_eq!(keys(&[ID, 8, 1, 2, 3, 4, 5, 6, 7, 8], 1), Ok(Vec::new()), "an id alone");
    }

    #[test]
    fn numbers_that_do_not_rise_are_refused() {
        let mut out = Vec::new();
        put(&mut out, Author::Program, 1, b"");
        put(&mut out, Author::Program, 2, b"");
        assert_eq!(keys(&out, 1), Ok(Vec::new()));
        assert_eq!(keys(&out, u64::MAX - 1), Err(Malformed::Transaction), "there is no such number");
        assert_eq!(out.pop(), Some(2));
        out.push(0);
        assert_eq!(keys(&out, 1), Err(Malformed::Transaction));
        assert_eq!(keys(&out[2..], 1), Err(Malformed::Transaction), "of the first one its segment says it");
    }
}
