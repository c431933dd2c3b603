//! Loss of power: what a disk forgets of a killed process's writes.
//!
//! The server runs with `tests/shim/power.c` preloaded, which records every change below its
//! data directory and what a sync made safe. [`Power::cut`], between a kill and the next start,
//! takes back what no sync had made safe, or part of it: each file keeps all of its last writes,
//! none, a beginning with the next one torn, or any of their sectors; and of the changes of
//! names that no sync of a folder had made safe the last ones never happened.
//!
//! Inodes tell files from each other, and may come again: what is replaced or removed keeps a
//! name beside the data until the cut, and a file that is made has none of the changes before.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::Command;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

/// What a disk writes in one piece.
const SECTOR: usize = 512;

/// A disk that can lose power.
pub struct Power {
    directory: tempfile::TempDir,
    data: PathBuf,
    random: StdRng,
}

/// What one loss of power took.
#[derive(Debug, Default)]
pub struct Lost {
    /// Writes taken back whole.
    pub writes: usize,
    /// Writes of which some sectors stayed.
    pub torn: usize,
    /// Files made, renamed or removed that were not.
    pub names: usize,
}

impl Lost {
    /// Whether something of every kind was lost.
    pub fn all_kinds(&self) -> bool {
        self.writes > 0 && self.torn > 0 && self.names > 0
    }
}

impl std::ops::AddAssign for Lost {
    fn add_assign(&mut self, other: Lost) {
        self.writes += other.writes;
        self.torn += other.torn;
        self.names += other.names;
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Written,
    Resized,
    Synced,
    Created,
    Renamed,
    Removed,
    Linked,
}

/// One entry of the shim's record.
struct Entry<'record> {
    kind: Kind,
    /// Where the entry begins in the record.
    at: u64,
    file: u64,
    offset: u64,
    size: u64,
    before: &'record [u8],
    after: &'record [u8],
}

impl Entry<'_> {
    fn changes_bytes(&self) -> bool {
        matches!(self.kind, Kind::Written | Kind::Resized)
    }
}

impl Power {
    /// For a data directory that nobody serves yet. Builds the shim.
    pub fn new(data: &Path, seed: u64) -> Power {
        // Beside the data, so that files can be linked.
        let beside = data.parent().expect("a data directory lies in a folder");
        let directory = tempfile::tempdir_in(beside).expect("a temporary directory can be made");
        fs::create_dir(directory.path().join("saved")).expect("a folder can be made");
        let built = Command::new("cc")
            .args(["-O1", "-shared", "-fPIC", "-o"])
            .arg(directory.path().join("power.so"))
            .arg(crate::file("shim/power.c"))
            .args(["-ldl", "-lpthread"])
            .output()
            .expect("there is a C compiler");
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
        Power { directory, data: data.to_owned(), random: StdRng::seed_from_u64(seed) }
    }

    /// What the server's process needs in its environment.
    pub fn environment(&self) -> Vec<(String, String)> {
        let path = |name: &str| self.directory.path().join(name).display().to_string();
        vec![
            ("LD_PRELOAD".into(), path("power.so")),
            ("POWER_DIRECTORY".into(), self.data.display().to_string()),
            ("POWER_RECORD".into(), path("record")),
            ("POWER_SAVED".into(), path("saved")),
        ]
    }

    /// Makes every write fail as on a full disk, or no longer.
    pub fn fill(&self, full: bool) {
        let mark = self.directory.path().join("saved/full");
        if full {
            File::create(mark).expect("a file can be made");
        } else {
            // It may not be there.
            let _ = fs::remove_file(mark);
        }
    }

    /// The process is dead, and the power with it.
    pub fn cut(&mut self) -> Lost {
        self.fill(false);
        let record = self.directory.path().join("record");
        let bytes = fs::read(&record).expect("the shim has recorded");
        let entries = parse(&bytes);
        // Until where the changes of a file or folder are safe, and where it begins: what an inode
        // was before belongs to a file that is gone.
        let (mut safe, mut begins) = (HashMap::new(), HashMap::new());
        for entry in &entries {
            match entry.kind {
                Kind::Synced => safe.insert(entry.file, entry.offset),
                Kind::Created => begins.insert(entry.offset, entry.at),
                _ => None,
            };
        }
        let is_safe = |entry: &Entry| safe.get(&entry.file).is_some_and(|&until| entry.at < until);
        let is_gone = |entry: &Entry| {
            entry.changes_bytes() && begins.get(&entry.file).is_some_and(|&begins| entry.at < begins)
        };
        let unsafe_entries: Vec<&Entry> = entries
            .iter()
            .filter(|entry| entry.kind != Kind::Synced && !is_safe(entry) && !is_gone(entry))
            .collect();
        let mut lost = Lost::default();
        self.lose_bytes(&unsafe_entries, &mut lost);
        self.lose_names(&unsafe_entries, &mut lost);
        fs::remove_file(&record).expect("the record can go");
        let saved = self.directory.path().join("saved");
        fs::remove_dir_all(&saved).and_then(|()| fs::create_dir(&saved)).expect("what was saved can go");
        lost
    }

    fn lose_bytes(&mut self, entries: &[&Entry], lost: &mut Lost) {
        let mut paths = HashMap::new();
        for folder in [self.data.as_path(), &self.directory.path().join("saved")] {
            inodes(folder, &mut paths);
        }
        let mut files: HashMap<u64, Vec<&Entry>> = HashMap::new();
        for entry in entries.iter().filter(|entry| entry.changes_bytes()) {
            files.entry(entry.file).or_default().push(entry);
        }
        // In the order of their first changes: a seed means the same whatever their inodes are.
        let mut files: Vec<Vec<&Entry>> = files.into_values().collect();
        files.sort_by_key(|entries| entries[0].at);
        for entries in files {
            // A file without any name left has nothing to lose.
            let Some(path) = paths.get(&entries[0].file) else { continue };
            let file = OpenOptions::new().read(true).write(true).open(path).expect("it can be opened");
            for entry in entries.iter().rev() {
                file.write_all_at(entry.before, entry.offset).expect("written back");
                file.set_len(entry.size).expect("cut back");
            }
            let fate = self.random.random_range(0..4);
            let kept = self.random.random_range(0..=entries.len());
            for (place, entry) in entries.iter().enumerate() {
                let (whole, torn) = match fate {
                    0 => (false, false),
                    1 => (place < kept, place == kept),
                    2 => (self.random.random_bool(0.5), true),
                    _ => (true, false),
                };
                if whole {
                    redo(&file, entry);
                } else if torn && entry.kind == Kind::Written {
                    self.tear(&file, entry);
                    lost.torn += 1;
                } else {
                    lost.writes += 1;
                }
            }
        }
    }

    /// Some sectors of a write.
    fn tear(&mut self, file: &File, entry: &Entry) {
        let mut at = 0;
        while at < entry.after.len() {
            let place = entry.offset as usize + at;
            let end = (at + SECTOR - place % SECTOR).min(entry.after.len());
            if self.random.random_bool(0.5) {
                file.write_all_at(&entry.after[at..end], place as u64).expect("written");
            }
            at = end;
        }
    }

    fn lose_names(&mut self, entries: &[&Entry], lost: &mut Lost) {
        let names: Vec<&&Entry> = entries.iter().filter(|entry| !entry.changes_bytes()).collect();
        // A file system keeps their order.
        let kept = self.random.random_range(0..=names.len());
        for entry in names[kept..].iter().rev() {
            let (first, second) = (text(entry.before), text(entry.after));
            // A folder that is gone took its names along, and a new one has no old names.
            let folder = |path: &str| Path::new(path).parent().and_then(|folder| fs::metadata(folder).ok());
            let there = |path: &str| fs::metadata(path).is_ok_and(|found| found.ino() == entry.offset);
            lost.names += 1;
            match entry.kind {
                Kind::Created | Kind::Linked if there(&first) => {
                    fs::remove_file(&first).expect("it was not made");
                }
                Kind::Renamed => {
                    let (to, saved) = second.split_once('\n').expect("two names");
                    if there(to) && folder(&first).is_some() {
                        fs::rename(to, &first).expect("it has its old name");
                        if !saved.is_empty() {
                            fs::rename(saved, to).expect("what it replaced is back");
                        }
                    }
                }
                Kind::Removed
                    if !Path::new(&first).exists()
                        && folder(&first).is_some_and(|folder| folder.ino() == entry.file) =>
                {
                    fs::hard_link(&second, &first).expect("it is back");
                }
                _ => {}
            }
        }
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("test paths are UTF-8")
}

fn redo(file: &File, entry: &Entry) {
    if entry.kind == Kind::Resized {
        file.set_len(entry.offset).expect("resized");
    } else {
        file.write_all_at(entry.after, entry.offset).expect("written");
    }
}

/// The entries of a record; the last may have been cut short, and then its change never came.
fn parse(bytes: &[u8]) -> Vec<Entry<'_>> {
    const HEADER: usize = 48;
    let mut entries = Vec::new();
    let mut at = 0;
    while let Some(header) = bytes.get(at..at + HEADER) {
        let word = |place: usize| {
            u64::from_ne_bytes(header[place..place + 8].try_into().expect("eight bytes are eight bytes"))
        };
        let kind = match header[0] {
            1 => Kind::Written,
            2 => Kind::Resized,
            3 => Kind::Synced,
            4 => Kind::Created,
            5 => Kind::Renamed,
            6 => Kind::Removed,
            7 => Kind::Linked,
            other => panic!("the shim recorded a change of kind {other}"),
        };
        let (before, after) = (word(32) as usize, word(40) as usize);
        let body = at + HEADER;
        let Some(rest) = bytes.get(body..body + before + after) else { break };
        let (before, after) = rest.split_at(before);
        entries.push(Entry {
            kind,
            at: at as u64,
            file: word(8),
            offset: word(16),
            size: word(24),
            before,
            after,
        });
        at = body + rest.len();
    }
    entries
}

/// The files below a folder by their inodes.
fn inodes(folder: &Path, found: &mut HashMap<u64, PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let path = entry.expect("readable").path();
        let status = fs::symlink_metadata(&path).expect("it has a status");
        if status.is_dir() {
            inodes(&path, found);
        } else {
            found.insert(status.ino(), path);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::fd::{FromRawFd, OwnedFd};

    use super::*;

    const VICTIM: &str = "ARCHIPEL_TEST_POWER";

    /// Not a test of its own: what the tests below run in a process of its own, on the disk.
    #[test]
    fn the_victim() {
        let Some(data) = std::env::var_os(VICTIM).map(PathBuf::from) else { return };
        let folder = data.join("folder");
        fs::create_dir_all(&folder).expect("made");
        fs::write(folder.join("removed"), vec![b'r'; 100_000]).expect("written");
        fs::write(folder.join("linked"), "linked").expect("written");
        fs::hard_link(folder.join("linked"), data.join("kept")).expect("linked");
        // The C library closes its descriptor itself.
        fs::remove_dir_all(&folder).expect("removed");
        // SAFETY: eventfd(2) takes no pointers, and nobody else has the new descriptor.
        let event = unsafe { OwnedFd::from_raw_fd(libc::eventfd(0, 0)) };
        let wrote = File::from(event).write(&1u64.to_ne_bytes());
        assert_eq!(wrote.expect("an event is no file"), 8);

        fs::write(data.join("unsynced"), "new").expect("written");
        let mut synced = File::create(data.join("synced")).expect("made");
        synced.write_all(b"first ").expect("written");
        synced.try_clone().expect("a file can be shared").write_all(b"second").expect("written");
        File::open(data.join("synced")).and_then(|file| file.sync_all()).expect("synced");
        File::open(&data).and_then(|folder| folder.sync_all()).expect("synced");
        synced.write_all(b" third").expect("written");
        fs::write(data.join("later"), "later").expect("written");
    }

    fn on_power(seed: u64) -> (tempfile::TempDir, Power, PathBuf) {
        let directory = tempfile::tempdir().expect("a temporary directory can be made");
        let data = directory.path().join("data");
        let power = Power::new(&data, seed);
        let output = Command::new(std::env::current_exe().expect("a test has a path"))
            .args(["--exact", "power::tests::the_victim", "--nocapture"])
            .env(VICTIM, &data)
            .envs(power.environment())
            .output()
            .expect("the victim runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        (directory, power, data)
    }

    #[test]
    fn every_change_is_recorded() {
        let (_directory, power, data) = on_power(1);
        let bytes = fs::read(power.directory.path().join("record")).expect("recorded");
        let entries = parse(&bytes);
        let count = |kind| entries.iter().filter(|entry| entry.kind == kind).count();
        let written = entries.iter().filter(|entry| entry.kind == Kind::Written);
        let texts: Vec<&[u8]> = written.map(|entry| entry.after).filter(|text| text.len() < 100).collect();
        assert_eq!(texts, [&b"linked"[..], b"new", b"first ", b"second", b" third", b"later"]);
        assert_eq!((count(Kind::Created), count(Kind::Linked), count(Kind::Removed)), (5, 1, 2));
        assert_eq!(count(Kind::Synced), 2);
        assert_eq!(fs::read(data.join("synced")).expect("it is there"), b"first second third");
    }

    #[test]
    fn what_was_synced_stays_and_no_bytes_come_from_elsewhere() {
        let mut lost = Lost::default();
        for seed in 0..12 {
            let (_directory, mut power, data) = on_power(seed);
            lost += power.cut();
            let text = |name: &str| fs::read_to_string(data.join(name)).unwrap_or_default();
            assert!(text("synced").starts_with("first second"), "seed {seed}: {:?}", text("synced"));
            assert!(data.join("kept").exists(), "seed {seed}: a name that was synced is gone");
            for (name, whole) in [("synced", 18), ("unsynced", 3), ("later", 5), ("kept", 6)] {
                assert!(text(name).len() <= whole, "seed {seed}: {name} is {:?}", text(name));
            }
        }
        assert!(lost.all_kinds(), "{lost:?}");
    }
}
