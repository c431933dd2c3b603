//! The keys that one measured run touched, whatever it was expected to touch.
//!
//! Claims say where a run may go, and often no more than that: a row under a number that the
//! database has drawn, or one that is looked up by what was read before, is claimed where it is met, or
//! with all of its table. What it read by whole keys and what it wrote is known when it has run, so it
//! is taken from there: some keys of each run that is measured, and nothing of any other.

use smallvec::SmallVec;

use crate::id::GroupId;
use crate::storage::KeyBuf;

/// Keys, and ranges, that a run reads and that are noted: what comes first.
const READS_MAX: usize = 8;
/// Writes of a run that are looked at.
pub const WRITES_MAX: usize = 16;
/// So many of them in a row.
const IN_A_ROW: usize = 4;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Footprint {
    /// Whether this run is measured.
    notes: bool,
    keys: Vec<(GroupId, KeyBuf)>,
    /// Ranges from a key up to another.
    scans: Vec<(GroupId, KeyBuf, Option<KeyBuf>)>,
}

impl Footprint {
    /// A run begins.
    #[inline]
    pub fn begin(&mut self, measured: bool) {
        self.notes = measured;
        self.keys.clear();
        self.scans.clear();
    }

    /// A row is read by its key.
    #[inline]
    pub fn note_read(&mut self, group: GroupId, key: &[u8]) {
        if self.notes && self.keys.len() < READS_MAX {
            self.keys.push((group, KeyBuf::from_slice(key)));
        }
    }

    /// Whether ranges that are read are to be noted.
    #[inline]
    pub fn notes_scans(&self) -> bool {
        self.notes && self.scans.len() < READS_MAX
    }

    /// A range is read: from a key up to another, if there is one above it.
    pub fn note_scan(&mut self, group: GroupId, low: &[u8], high: Option<KeyBuf>) {
        if self.notes_scans() {
            self.scans.push((group, KeyBuf::from_slice(low), high));
        }
    }

    /// A row, or an entry of an index, was written.
    pub fn note_write(&mut self, group: GroupId, key: &[u8]) {
        if self.notes {
            self.keys.push((group, KeyBuf::from_slice(key)));
        }
    }

    /// The keys that were touched of a group, some of them more than once.
    pub fn keys(&self, group: GroupId) -> impl Iterator<Item = &[u8]> {
        self.keys.iter().filter(move |(of, _)| *of == group).map(|(_, key)| &key[..])
    }

    /// The ranges that were read of a group: their first keys, and those above them.
    pub fn scans(&self, group: GroupId) -> impl Iterator<Item = (&[u8], Option<&[u8]>)> {
        let scans = self.scans.iter().filter(move |(of, ..)| *of == group);
        scans.map(|(_, low, high)| (&low[..], high.as_deref()))
    }
}

/// Which of so many writes are looked at: all, or some in a row at a few places, since rows and the
/// entries of their indexes are written in turn.
pub fn looked_at(writes: usize) -> SmallVec<[usize; WRITES_MAX]> {
    if writes <= WRITES_MAX {
        return (0..writes).collect();
    }
    let places = WRITES_MAX / IN_A_ROW;
    let begin = |place: usize| (writes - IN_A_ROW) * place / (places - 1);
    (0..places).flat_map(|place| begin(place)..begin(place) + IN_A_ROW).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_measured_runs_are_noted() {
        let mut footprint = Footprint::default();
        footprint.begin(false);
        footprint.note_read(GroupId(1), b"read");
        footprint.note_write(GroupId(1), b"written");
        assert_eq!(footprint.keys(GroupId(1)).count(), 0);
        footprint.begin(true);
        for _ in 0..2 * READS_MAX {
            footprint.note_read(GroupId(1), b"read");
        }
        footprint.note_write(GroupId(2), b"written");
        assert_eq!(footprint.keys(GroupId(1)).count(), READS_MAX);
        assert_eq!(footprint.keys(GroupId(2)).collect::<Vec<_>>(), [b"written"]);
        footprint.begin(true);
        assert_eq!(footprint.keys(GroupId(2)).count(), 0);
        footprint.note_scan(GroupId(1), b"", None);
        assert_eq!(footprint.scans(GroupId(1)).collect::<Vec<_>>(), [(&b""[..], None::<&[u8]>)]);
        assert_eq!(footprint.scans(GroupId(2)).count(), 0);
    }

    #[test]
    fn of_many_writes_some_of_each_kind_are_looked_at() {
        assert_eq!(looked_at(3)[..], [0, 1, 2]);
        assert!(looked_at(0).is_empty());
        for writes in [17, 18, 100, 300, 1_000_000] {
            for in_turn in 2..=4 {
                let mut seen = vec![0; in_turn];
                looked_at(writes).into_iter().for_each(|at| seen[at % in_turn] += 1);
                assert!(seen.iter().all(|count| *count > 0), "{writes} writes, {in_turn} in turn: {seen:?}");
                assert!(looked_at(writes).iter().all(|at| *at < writes));
            }
        }
    }
}
