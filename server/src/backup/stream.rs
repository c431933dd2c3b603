//! The server's side of a backup: a copy on disk (linked, not copied, where it can be), read
//! as an archive in chunks, and removed at the end. All of it may wait for the disk, so it
//! runs on threads that may.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use archipel_engine::{Engine, OpenError};

use super::archive::{MANIFEST, Manifest, end, header, padding};

/// Copies that are being sent lie in the data directory under this name and a number.
const PLACE: &str = "backup";

const CHUNK_BYTES: usize = 256 << 10;

struct Reading {
    name: String,
    file: File,
    length: u64,
    left: u64,
    crc: u32,
}

/// An archive on its way out.
pub struct BackupStream {
    place: PathBuf,
    files: VecDeque<String>,
    reading: Option<Reading>,
    manifest: Option<Manifest>,
}

/// Removes what backups of an earlier process have left behind.
pub fn remove_leftovers(data_directory: &Path) {
    for entry in std::fs::read_dir(data_directory).into_iter().flatten().flatten() {
        let is_ours = entry
            .file_name()
            .to_str()
            .and_then(|name| name.strip_prefix(PLACE)?.strip_prefix('-'))
            .is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()));
        if is_ours && let Err(error) = std::fs::remove_dir_all(entry.path()) {
            tracing::warn!(%error, "{} could not be removed", entry.path().display());
        }
    }
}

impl BackupStream {
    /// Takes the copy.
    pub fn open(engine: &Engine, data_directory: &Path) -> Result<BackupStream, OpenError> {
        static NUMBER: AtomicU64 = AtomicU64::new(1);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let place = data_directory.join(format!("{PLACE}-{number}"));
        // From here on it is removed whatever happens.
        let mut stream = BackupStream {
            place: place.clone(),
            files: VecDeque::new(),
            reading: None,
            manifest: Some(Manifest::default()),
        };
        engine.copy_to(&place)?;
        stream.files = files(&place, "")?.into();
        Ok(stream)
    }

    /// The next bytes of the archive; `None` after the last.
    pub fn next_chunk(&mut self) -> io::Result<Option<Vec<u8>>> {
        let mut chunk = Vec::with_capacity(CHUNK_BYTES + 1024);
        while chunk.len() < CHUNK_BYTES {
            if self.reading.is_none() && !self.begin_file(&mut chunk)? {
                break;
            }
            let Some(reading) = &mut self.reading else { continue };
            let start = chunk.len();
            let wanted = reading.left.min((CHUNK_BYTES - start.min(CHUNK_BYTES)) as u64);
            let read = (&mut reading.file).take(wanted).read_to_end(&mut chunk)?;
            reading.crc = crc32c::crc32c_append(reading.crc, &chunk[start..]);
            reading.left -= read as u64;
            if wanted > 0 && read == 0 {
                return Err(io::Error::new(io::ErrorKind::UnexpectedEof, reading.name.clone()));
            }
            if reading.left == 0 {
                chunk.resize(chunk.len() + padding(reading.length), 0);
                if let Some(manifest) = &mut self.manifest {
                    manifest.add(&reading.name, reading.length, reading.crc);
                }
                self.reading = None;
            }
        }
        Ok((!chunk.is_empty()).then_some(chunk))
    }

    /// Begins the next file, or ends the archive; false if it has ended.
    fn begin_file(&mut self, chunk: &mut Vec<u8>) -> io::Result<bool> {
        if let Some(name) = self.files.pop_front() {
            let file = File::open(self.place.join(&name))?;
            let length = file.metadata()?.len();
            chunk.extend_from_slice(&header(&name, length));
            self.reading = Some(Reading { name, file, length, left: length, crc: 0 });
            return Ok(true);
        }
        let Some(manifest) = self.manifest.take() else { return Ok(false) };
        let text = manifest.seal();
        chunk.extend_from_slice(&header(MANIFEST, text.len() as u64));
        chunk.extend_from_slice(text.as_bytes());
        chunk.resize(chunk.len() + padding(text.len() as u64), 0);
        chunk.extend_from_slice(&end());
        Ok(true)
    }
}

impl Drop for BackupStream {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.place)
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!(%error, "{} could not be removed", self.place.display());
        }
    }
}

/// The files of a directory, by their names below it, in a fixed order.
fn files(directory: &Path, prefix: &str) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
        if entry.file_type()?.is_dir() {
            names.extend(files(&entry.path(), &format!("{name}/"))?);
        } else {
            names.push(name);
        }
    }
    names.sort();
    Ok(names)
}
