//! The form of a backup: a tar archive (POSIX ustar, so that `tar` lists and unpacks it) that
//! ends with a manifest.
//!
//! ```text
//! backup_manifest:  [crc32c as 8 hex digits] [length] [name] \n   for each file before it
//!                   [crc32c of the lines above] end \n
//! ```

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Component, Path, PathBuf};

use tar::Header;

use super::{BackupError, io, sync};

/// The last file of an archive.
pub const MANIFEST: &str = "backup_manifest";

/// The file that says in which format the others are, and how long it can be.
const FORMAT: &str = "FORMAT";
const FORMAT_BYTES_MAX: usize = 64;

const BLOCK: usize = 512;

/// The header of a file, of a name that its field has room for: a backup's names are short.
pub fn header(name: &str, length: u64) -> [u8; BLOCK] {
    let mut header = Header::new_ustar();
    let field = &mut header.as_old_mut().name;
    let name = &name.as_bytes()[..name.len().min(field.len())];
    field[..name.len()].copy_from_slice(name);
    header.set_mode(0o600);
    header.set_size(length);
    header.set_cksum();
    *header.as_bytes()
}

/// Whether a header is what its own checksum says.
fn is_whole(header: &Header) -> bool {
    let mut summed = header.clone();
    summed.set_cksum();
    header.cksum().is_ok_and(|sum| summed.cksum().is_ok_and(|expected| sum == expected))
}

/// Bytes that fill a file of this length up to whole blocks.
pub fn padding(length: u64) -> usize {
    (BLOCK - (length % BLOCK as u64) as usize) % BLOCK
}

/// What follows the last file.
pub fn end() -> [u8; 2 * BLOCK] {
    [0; 2 * BLOCK]
}

/// Collects a manifest.
#[derive(Default)]
pub struct Manifest {
    lines: String,
}

impl Manifest {
    /// Notes a file.
    pub fn add(&mut self, name: &str, length: u64, crc: u32) {
        self.lines.push_str(&format!("{crc:08x} {length} {name}\n"));
    }

    /// The manifest's text, sealed.
    pub fn seal(&self) -> String {
        format!("{}{:08x} end\n", self.lines, crc32c::crc32c(self.lines.as_bytes()))
    }

    /// Whether `text` is this manifest, sealed.
    fn check(&self, text: &str) -> Result<(), BackupError> {
        if text == self.seal() {
            return Ok(());
        }
        let expected: Vec<&str> = text.lines().collect();
        let differing = self.lines.lines().find(|line| !expected.contains(line));
        Err(BackupError::Damaged(match differing.and_then(|line| line.rsplit(' ').next()) {
            Some(name) => format!("file {name} is not what its manifest says"),
            None => "files are missing that its manifest lists".to_owned(),
        }))
    }
}

struct Open {
    name: String,
    length: u64,
    left: u64,
    crc: u32,
    file: Option<(PathBuf, File)>,
}

/// Takes an archive in pieces of any size, checks it, and unpacks it if asked to.
pub struct Unpacker {
    /// Where the files go; `None` only checks.
    directory: Option<PathBuf>,
    /// Bytes of a header, or of padding to pass over, that have not all come yet.
    pending: Vec<u8>,
    skip: usize,
    open: Option<Open>,
    manifest: Manifest,
    manifest_text: Option<String>,
    /// What [`FORMAT`] says, as far as it can mean something.
    format: Option<Vec<u8>>,
    files: u64,
    bytes: u64,
}

/// What an archive held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unpacked {
    pub files: u64,
    pub bytes: u64,
}

impl Unpacker {
    /// An unpacker into a directory that is there, or one that only checks.
    pub fn new(directory: Option<PathBuf>) -> Unpacker {
        Unpacker {
            directory,
            pending: Vec::new(),
            skip: 0,
            open: None,
            manifest: Manifest::default(),
            manifest_text: None,
            format: None,
            files: 0,
            bytes: 0,
        }
    }

    /// Takes the next piece.
    pub fn feed(&mut self, mut piece: &[u8]) -> Result<(), BackupError> {
        while !piece.is_empty() {
            if self.skip > 0 {
                let skipped = self.skip.min(piece.len());
                self.skip -= skipped;
                piece = &piece[skipped..];
            } else if self.open.is_some() {
                piece = self.body(piece)?;
            } else {
                let taken = (BLOCK - self.pending.len()).min(piece.len());
                self.pending.extend_from_slice(&piece[..taken]);
                piece = &piece[taken..];
                if self.pending.len() == BLOCK {
                    let block = std::mem::take(&mut self.pending);
                    self.begin(&block)?;
                }
            }
        }
        Ok(())
    }

    fn begin(&mut self, block: &[u8]) -> Result<(), BackupError> {
        if block.iter().all(|&byte| byte == 0) {
            return Ok(());
        }
        if self.manifest_text.is_some() {
            return Err(BackupError::Damaged("there are files after the manifest".to_owned()));
        }
        let unreadable = || BackupError::Damaged("a file header cannot be read".to_owned());
        let header = Header::from_byte_slice(block);
        if !is_whole(header) {
            return Err(unreadable());
        }
        let name = String::from_utf8(header.path_bytes().into_owned()).map_err(|_| unreadable())?;
        let length = header.entry_size().map_err(|_| unreadable())?;
        let file = match &self.directory {
            Some(directory) if name != MANIFEST => Some(create(directory, &name)?),
            _ => None,
        };
        if name == MANIFEST {
            self.manifest_text = Some(String::new());
        }
        if name == FORMAT {
            self.format = Some(Vec::new());
        }
        self.open = Some(Open { name, length, left: length, crc: 0, file });
        if length == 0 {
            self.close()?;
        }
        Ok(())
    }

    /// Takes bytes of the open file; the rest of the piece.
    fn body<'p>(&mut self, piece: &'p [u8]) -> Result<&'p [u8], BackupError> {
        let Some(open) = &mut self.open else { return Ok(piece) };
        let taken = usize::try_from(open.left).unwrap_or(usize::MAX).min(piece.len());
        let (bytes, rest) = piece.split_at(taken);
        open.left -= taken as u64;
        open.crc = crc32c::crc32c_append(open.crc, bytes);
        if let Some(format) = self.format.as_mut().filter(|_| open.name == FORMAT) {
            let room = FORMAT_BYTES_MAX.saturating_sub(format.len()).min(bytes.len());
            format.extend_from_slice(&bytes[..room]);
        }
        if let Some((path, file)) = &mut open.file {
            file.write_all(bytes).map_err(io("could not write", path))?;
        } else if open.name == MANIFEST
            && let Some(text) = &mut self.manifest_text
        {
            let piece = std::str::from_utf8(bytes)
                .map_err(|_| BackupError::Damaged("the manifest is no text".to_owned()))?;
            text.push_str(piece);
        }
        if open.left == 0 {
            self.close()?;
        }
        Ok(rest)
    }

    fn close(&mut self) -> Result<(), BackupError> {
        let Some(open) = self.open.take() else { return Ok(()) };
        self.skip = padding(open.length);
        if open.name != MANIFEST {
            self.manifest.add(&open.name, open.length, open.crc);
            self.files += 1;
            self.bytes += open.length;
        }
        if let Some((path, file)) = open.file {
            file.sync_all().map_err(io("could not sync", &path))?;
        }
        Ok(())
    }

    /// The mark of the format that the files are in, once it has come.
    pub fn format(&self) -> Option<Vec<u8>> {
        self.format.clone()
    }

    /// Ends the archive: everything must be there, and as the manifest says.
    pub fn finish(self) -> Result<Unpacked, BackupError> {
        if self.open.is_some() || !self.pending.is_empty() {
            return Err(BackupError::Damaged("it ends in the middle of a file".to_owned()));
        }
        match &self.manifest_text {
            Some(text) => self.manifest.check(text)?,
            None => return Err(BackupError::Damaged("it ends before its manifest".to_owned())),
        }
        if let Some(directory) = &self.directory {
            for entry in std::fs::read_dir(directory).map_err(io("could not read", directory))?.flatten() {
                if entry.path().is_dir() {
                    sync(&entry.path())?;
                }
            }
            sync(directory)?;
        }
        Ok(Unpacked { files: self.files, bytes: self.bytes })
    }
}

/// Makes a file of an archive; names that would leave the directory are refused.
fn create(directory: &Path, name: &str) -> Result<(PathBuf, File), BackupError> {
    let relative = Path::new(name);
    if name.is_empty() || !relative.components().all(|part| matches!(part, Component::Normal(_))) {
        return Err(BackupError::Damaged(format!("it holds a file named \"{name}\"")));
    }
    let path = directory.join(relative);
    if let Some(parent) = path.parent() {
        archipel_rocksdb::private_folder(parent).map_err(io("could not create", parent))?;
    }
    let new = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
    let file = new.map_err(io("could not create", &path))?;
    Ok((path, file))
}

/// Reads a file through an unpacker.
pub fn feed_file(path: &Path, unpacker: &mut Unpacker) -> Result<(), BackupError> {
    let mut file = File::open(path).map_err(io("could not open", path))?;
    let mut piece = vec![0; 1 << 20];
    loop {
        match file.read(&mut piece).map_err(io("could not read", path))? {
            0 => return Ok(()),
            length => unpacker.feed(&piece[..length])?,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn archive(files: &[(&str, &[u8])]) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut manifest = Manifest::default();
        let mut add = |name: &str, body: &[u8]| {
            bytes.extend_from_slice(&header(name, body.len() as u64));
            bytes.extend_from_slice(body);
            bytes.resize(bytes.len() + padding(body.len() as u64), 0);
        };
        for (name, body) in files {
            manifest.add(name, body.len() as u64, crc32c::crc32c(body));
            add(name, body);
        }
        add(MANIFEST, manifest.seal().as_bytes());
        bytes.extend_from_slice(&end());
        bytes
    }

    fn unpack(bytes: &[u8], piece: usize, directory: Option<PathBuf>) -> Result<Unpacked, BackupError> {
        let mut unpacker = Unpacker::new(directory);
        for piece in bytes.chunks(piece) {
            unpacker.feed(piece)?;
        }
        unpacker.finish()
    }

    const FILES: &[(&str, &[u8])] = &[("FORMAT", b"1\n"), ("log/1.sst", &[7; 1500]), ("log/empty", b"")];

    #[test]
    fn an_archive_comes_back_whatever_the_size_of_its_pieces() {
        let bytes = archive(FILES);
        for piece in [1, 100, 512, 513, 1 << 20] {
            let folder = tempfile::tempdir().expect("a temporary folder");
            let unpacked = unpack(&bytes, piece, Some(folder.path().to_owned())).expect("whole");
            assert_eq!(unpacked, Unpacked { files: 3, bytes: 1502 });
            for (name, body) in FILES {
                assert_eq!(std::fs::read(folder.path().join(name)).expect("unpacked"), *body);
            }
        }
    }

    #[test]
    fn any_flipped_bit_and_any_missing_end_is_noticed() {
        let bytes = archive(FILES);
        let ends = bytes.len() - end().len();
        for at in (0..ends).step_by(37) {
            // What fills a file's last block means nothing.
            let in_padding = (514..1024).contains(&at) || (3036..3072).contains(&at) || at > 3584 + 512;
            let mut bad = bytes.clone();
            bad[at] ^= 0x04;
            assert!(in_padding || unpack(&bad, 4096, None).is_err(), "byte {at}");
        }
        for length in [0, 100, 512, 600, 2000, ends - 600] {
            assert!(unpack(&bytes[..length], 4096, None).is_err(), "cut at {length}");
        }
    }

    #[test]
    fn names_cannot_lead_out_of_the_directory() {
        for name in ["../evil", "/etc/evil", "log/../../evil"] {
            let folder = tempfile::tempdir().expect("a temporary folder");
            let bytes = archive(&[(name, b"x")]);
            let error = unpack(&bytes, 4096, Some(folder.path().to_owned())).expect_err("refused");
            assert!(error.to_string().contains(name), "{error}");
        }
    }
}
