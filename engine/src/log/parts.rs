//! Parts of large commits: what a transaction logs beyond a megabyte goes to the log before it commits.
//!
//! ```text
//! executor thread                            log's thread                        store
//! ---------------                            ------------                        -----
//! all claims held, redo of 5.3 MB
//!   cut ────────────▶ [its buffer: part 0 … 4] ─▶ append_part(id, 0 … 4) ──────▶ [id][0] … [id][4]
//! enter epoch 7
//!   append the rest ─▶ [its buffer: epoch 7]
//! leave                                      epoch 7 closes: first the parts
//!                                            there are, then one batch ────────▶ append, sync
//! ```
//!
//! A part is `[crc32c of what follows 4][records]` under the key (transaction's id, number of the part), in a
//! family of its own in the log's database. It has no epoch and holds none open: it counts once a batch in the log
//! has a transaction whose header names it ([`super::transaction`]), with that one's epoch and number. There is
//! one write-ahead log, so one order and one sync: a crash leaves a prefix of parts and batches together.
//!
//! - *Order.* Parts are in the buffer before the epoch is entered. So whoever takes redo of a closed epoch finds
//!   the parts it names, and writes them before its batch. Before a batch that names none it writes some: those of a
//!   commit that is prepared in slices ([`crate::txn::Commit`]) keep nobody's batch for long.
//! - *Undecided.* A transaction that does not commit after all (what it read from reference tables has changed, the
//!   disk is full) says so, and its parts go at once, written or not (`PartWork::Drop`). It tries again under a new
//!   id: each attempt has parts of its own, but for one that was prepared, whose parts are what they were.
//! - *A start* reads the log, then the parts that its transactions name, and drops all others before it writes. A
//!   named one that is missing or not what it was is damage.
//! - *A checkpoint* reads deletes below its cut from the log and from the parts named there. These go once its mark
//!   is written, for then nobody names them any more.
//! - *Room.* Parts count as unwritten bytes of their thread until they are written, and as log once a batch names
//!   them. A commit for which there is no room is refused before anything of it is on its way
//!   (`Log::admits_parts`).
//!
//! | crash | what the next start finds |
//! |---|---|
//! | between parts; behind them, before the commit's batch is synced | parts without a commit: dropped; nobody was told |
//! | the same, and the power went | some pages of parts and not others: the log ends before the first hole |
//! | behind it | the rows, from the parts |
//! | a checkpoint's mark is written, parts or batches have not gone | below the cut: nobody names them |

use std::ops::{ControlFlow, Range};

use super::store::{LogStore, StoreError};
use super::transaction::{Parts, Records, WithParts};
use super::watermark::WAYS_OUT;
use crate::id::TxnId;

/// Redo above this is cut into parts of about so many bytes; a record is never cut.
pub const PART_BYTES: usize = 1 << 20;

/// The checksum before the records.
const CHECKSUM_BYTES: usize = 4;

/// Shows the parts that redo is cut into. Answers where the rest begins, which goes with the commit.
pub(crate) fn cut(redo: &[u8], part_bytes: usize, mut part: impl FnMut(&[u8])) -> usize {
    let mut from = 0;
    for located in Records::of_transaction(redo, 0).flatten() {
        if located.offset - from >= part_bytes {
            part(&redo[from..located.offset]);
            from = located.offset;
        }
    }
    if redo.len() - from > part_bytes {
        part(&redo[from..]);
        from = redo.len();
    }
    from
}

/// Frames the parts of a transaction, and counts them.
pub(crate) struct Framer {
    parts: Parts,
}

impl Framer {
    /// For a transaction that has no parts yet.
    pub(crate) fn new(id: TxnId) -> Framer {
        Framer { parts: Parts { id, count: 0, bytes: 0, checksum: 0 } }
    }

    /// The next part, of these records.
    pub(crate) fn frame(&mut self, records: &[u8]) -> Part {
        let checksum = crc32c::crc32c(records);
        let mut value = Vec::with_capacity(CHECKSUM_BYTES + records.len());
        value.extend_from_slice(&checksum.to_le_bytes());
        value.extend_from_slice(records);
        let part = Part { id: self.parts.id, number: self.parts.count, value };
        self.parts.checksum = checksum_with(self.parts.checksum, checksum);
        self.parts.bytes += records.len() as u64;
        self.parts.count += 1;
        part
    }

    /// What the commit names.
    pub(crate) fn parts(&self) -> Parts {
        self.parts
    }
}

/// The checksum of parts with one more.
fn checksum_with(before: u32, part: u32) -> u32 {
    crc32c::crc32c_append(before, &part.to_le_bytes())
}

/// A part on its way to the store.
#[derive(Debug)]
pub(crate) struct Part {
    /// The transaction's id.
    pub(crate) id: TxnId,
    /// Its place among the transaction's parts.
    pub(crate) number: u32,
    /// Checksum and records.
    pub(crate) value: Vec<u8>,
}

/// What a thread asks of the log's.
#[derive(Debug)]
pub(super) enum PartWork {
    /// Writes it.
    Append(Part),
    /// No commit will name parts of this transaction.
    Drop(TxnId),
}

/// The records of a part as the store has it, and their checksum; `None` if they are not what was written.
pub(crate) fn unframe(value: &[u8]) -> Option<(u32, &[u8])> {
    let (checksum, records) = value.split_first_chunk::<CHECKSUM_BYTES>()?;
    let checksum = u32::from_le_bytes(*checksum);
    (checksum == crc32c::crc32c(records)).then_some((checksum, records))
}

fn damage(of: &WithParts, what: &str) -> StoreError {
    let WithParts { epoch, parts, .. } = of;
    StoreError::Damaged(format!(
        "{what}: transaction {} of epoch {epoch} has {} parts; {WAYS_OUT}",
        parts.id, parts.count
    ))
}

/// The checksums of some parts of a transaction that stand one behind the other, and the bytes of their records.
#[derive(Default)]
pub(super) struct Checksums {
    checksums: Vec<u32>,
    bytes: u64,
}

impl Checksums {
    /// Takes in the parts behind these.
    pub(super) fn join(&mut self, later: Checksums) {
        self.checksums.extend(later.checksums);
        self.bytes += later.bytes;
    }

    /// Refuses parts that are not those, all of them, that the commit names.
    pub(super) fn require(&self, of: &WithParts) -> Result<(), StoreError> {
        let checksum = self.checksums.iter().fold(0, |before, part| checksum_with(before, *part));
        if self.checksums.len() == of.parts.count as usize
            && (self.bytes, checksum) == (of.parts.bytes, of.parts.checksum)
        {
            return Ok(());
        }
        Err(damage(of, "the parts of a transaction are not those that its commit names"))
    }
}

/// Shows the records of some parts of a transaction, each of which checks. Whoever has seen all of them looks
/// whether they [are those](Checksums::require) that the commit names.
pub(super) fn read_some(
    store: &dyn LogStore,
    of: &WithParts,
    wanted: Range<u32>,
    visit: &mut dyn FnMut(&[u8]) -> Result<(), StoreError>,
) -> Result<Checksums, StoreError> {
    let mut checked = Checksums::default();
    let mut failure = None;
    let mut next = wanted.start;
    let read = store.read_parts(of.parts.id, wanted.start, &mut |number, value| {
        if number >= wanted.end {
            return ControlFlow::Break(());
        }
        if number != next {
            // Told below.
            return ControlFlow::Break(());
        }
        let shown = match unframe(value) {
            None => Err(damage(of, &format!("part {number} of a transaction is damaged"))),
            Some((checksum, records)) => {
                checked.checksums.push(checksum);
                checked.bytes += records.len() as u64;
                visit(records)
            }
        };
        next += 1;
        match shown {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                failure = Some(error);
                ControlFlow::Break(())
            }
        }
    });
    match read {
        Err(StoreError::Damaged(told)) => {
            return Err(damage(of, &format!("part {next} of a transaction cannot be read: {told}")));
        }
        read => read?,
    }
    failure.map_or(Ok(()), Err)?;
    if next < wanted.end {
        return Err(damage(of, &format!("part {next} of a transaction is missing")));
    }
    Ok(checked)
}

/// Shows the records of all parts of a transaction, in their order.
pub(super) fn read_all(
    store: &dyn LogStore,
    of: &WithParts,
    visit: &mut dyn FnMut(&[u8]) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    read_some(store, of, 0..of.parts.count, visit)?.require(of)
}

#[cfg(test)]
mod tests {
    use super::super::{MemoryStore, redo};
    use super::*;
    use crate::id::{Epoch, TreeId};

    fn redo_of(rows: &[usize]) -> Vec<u8> {
        let mut records = Vec::new();
        for (at, length) in rows.iter().enumerate() {
            redo::put(&mut records, TreeId(20), &[at as u8], &vec![7; *length]);
        }
        records
    }

    #[test]
    fn redo_is_cut_between_records_and_little_is_left() {
        for rows in [&[10; 60][..], &[500, 3, 4, 900], &[3, 900], &[90], &[]] {
            let redo = redo_of(rows);
            for part_bytes in [1, 20, 100, 450, 10_000] {
                let mut joined = Vec::new();
                let mut parts = 0;
                let rest = cut(&redo, part_bytes, |part| {
                    let records = Records::of_transaction(part, 1).map(|located| located.expect("whole"));
                    // Without its last record it is too short to be one.
                    let last = records.last().expect("a part has a record");
                    assert!(last.offset < part_bytes, "{} of {part_bytes}", last.offset);
                    parts += 1;
                    joined.extend_from_slice(part);
                });
                assert!(redo.len() - rest <= part_bytes);
                assert!(Records::of_transaction(&redo[rest..], 1).all(|located| located.is_ok()));
                joined.extend_from_slice(&redo[rest..]);
                assert_eq!(joined, redo);
                assert_eq!(parts == 0, redo.len() <= part_bytes);
            }
        }
    }

    fn stored(parts: &[&[u8]]) -> (MemoryStore, WithParts) {
        let store = MemoryStore::new();
        let mut framer = Framer::new(TxnId(7));
        for records in parts {
            let part = framer.frame(records);
            store.append_part(part.id, part.number, &part.value).expect("written");
        }
        (store, WithParts { epoch: Epoch(3), number: 9, parts: framer.parts() })
    }

    fn told(store: &MemoryStore, of: &WithParts) -> String {
        read_all(store, of, &mut |_| Ok(())).err().map_or_else(String::new, |error| error.to_string())
    }

    #[test]
    fn parts_come_back_and_what_is_not_as_it_was_is_told() {
        let (store, of) = stored(&[b"one", b"two", b"three"]);
        let mut all = Vec::new();
        let mut keep = |records: &[u8]| {
            all.push(records.to_vec());
            Ok(())
        };
        read_all(&store, &of, &mut keep).expect("as they were");
        assert_eq!(all, [&b"one"[..], b"two", b"three"]);
        let mut some = read_some(&store, &of, 0..2, &mut |_| Ok(())).expect("readable");
        assert!(some.require(&of).is_err());
        some.join(read_some(&store, &of, 2..3, &mut |_| Ok(())).expect("readable"));
        some.require(&of).expect("all");

        store.damage_part(TxnId(7), 1, 5);
        assert!(
            told(&store, &of)
                .contains("part 1 of a transaction is damaged: transaction 7 of epoch 3 has 3 parts")
        );
        store.damage_part(TxnId(7), 1, 5);
        assert_eq!(told(&store, &of), "");
        store.lose_part(TxnId(7), 1);
        assert!(told(&store, &of).contains("part 1 of a transaction is missing"), "{}", told(&store, &of));
        let (store, of) = stored(&[b"one"]);
        store.lose_part(TxnId(7), 0);
        assert!(told(&store, &of).contains("part 0 of a transaction is missing"));
        // Each checks, and they are another transaction's.
        let (_, other) = stored(&[b"one", b"owt", b"three"]);
        let (store, _) = stored(&[b"one", b"two", b"three"]);
        assert!(told(&store, &other).contains("the parts of a transaction are not those"));
        let (store, of) = stored(&[b"one", b"two"]);
        let fewer = WithParts { parts: Parts { count: 1, ..of.parts }, ..of };
        assert!(
            told(&store, &fewer).contains("the parts of a transaction are not those that its commit names")
        );
    }
}
