//! Loss of power: what a disk forgets of a killed process's writes.
//!
//! The server runs with `tests/shim/power.c` preloaded, which records every change below its
//! data directory and what a sync made safe. [`Power::cut`], between a kill and the next start,
//! takes back what no sync had made safe, or part of it: each file keeps all of its last writes,
//! none, a beginning with the next one torn, or any of their sectors; and of the changes of
//! names that no sync of a folder had made safe the last ones never happened.

use std::collections::{BTreeMap, HashMap};
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
}

/// One entry of the shim's record.
struct Entry {
    kind: Kind,
    /// Where the entry begins in the record.
    at: u64,
    file: u64,
    offset: u64,
    size: u64,
    before: Vec<u8>,
    after: Vec<u8>,
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
        let entries = parse(&fs::read(&record).expect("the shim has recorded"));
        let mut safe: HashMap<u64, u64> = HashMap::new();
        for entry in entries.iter().filter(|entry| entry.kind == Kind::Synced) {
            safe.insert(entry.file, entry.offset);
        }
        let unsafe_entries: Vec<&Entry> = entries
            .iter()
            .filter(|entry| {
                entry.kind != Kind::Synced && safe.get(&entry.file).is_none_or(|&until| entry.at >= until)
            })
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
        let mut files: BTreeMap<u64, Vec<&Entry>> = BTreeMap::new();
        for entry in entries.iter().filter(|entry| matches!(entry.kind, Kind::Written | Kind::Resized)) {
            files.entry(entry.file).or_default().push(entry);
        }
        for (inode, entries) in files {
            // A file without any name left has nothing to lose.
            let Some(path) = paths.get(&inode) else { continue };
            let file = OpenOptions::new().read(true).write(true).open(path).expect("it can be opened");
            for entry in entries.iter().rev() {
                file.write_all_at(&entry.before, entry.offset).expect("written back");
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
        let names: Vec<&&Entry> = entries
            .iter()
            .filter(|entry| matches!(entry.kind, Kind::Created | Kind::Renamed | Kind::Removed))
            .collect();
        // A file system keeps their order.
        let kept = self.random.random_range(0..=names.len());
        for entry in names[kept..].iter().rev() {
            lost.names += 1;
            let (first, second) = (text(&entry.before), text(&entry.after));
            let there = |path: &str| fs::metadata(path).is_ok_and(|found| found.ino() == entry.offset);
            match entry.kind {
                Kind::Created if there(&first) => fs::remove_file(&first).expect("it was not made"),
                Kind::Renamed => {
                    let (to, saved) = second.split_once('\n').expect("two names");
                    if there(to) {
                        fs::rename(to, &first).expect("it has its old name");
                        if !saved.is_empty() {
                            fs::rename(saved, to).expect("what it replaced is back");
                        }
                    }
                }
                Kind::Removed if !second.is_empty() && !Path::new(&first).exists() => {
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
        file.write_all_at(&entry.after, entry.offset).expect("written");
    }
}

/// The entries of a record; the last may have been cut short, and then its change never came.
fn parse(bytes: &[u8]) -> Vec<Entry> {
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
            before: before.to_vec(),
            after: after.to_vec(),
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
