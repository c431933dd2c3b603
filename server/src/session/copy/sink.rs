//! COPY … TO a file or a program of the server: the rows as a client would get them, without their messages. A
//! thread that may wait for a disk or a pipe writes, a few pieces behind the session, and ends with it.

use std::fs::{File, OpenOptions};
use std::io::{Error, ErrorKind, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Instant;

use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::memory;
use tokio::sync::mpsc;

use super::program::Program;
use super::server_file::{Place, failed_by_bug, file_error, is_out_of_reach, is_ready};
use super::state::{COPY_CONTEXT, CopyTo};
use super::stop::StopCheck;
use crate::run::copy_rows::divide;
use crate::session::Session;

/// Pieces underway to the thread that writes.
const PIECES_UNDERWAY: usize = 2;

/// What is written at once has a multiple of this, but for the end. PostgreSQL writes through a buffer of this
/// size as well, and so does not notice that a program does not read less.
const BLOCK_BYTES: usize = 4096;

/// How long it is waited between two looks whether somebody reads a named pipe.
const LOOKED_FOR_READER: std::time::Duration = std::time::Duration::from_millis(50);

const HINT: &str = "COPY TO instructs the PostgreSQL server process to write a file. You may want a client-side facility such as psql's \\copy.";

impl Session {
    /// Opens what the rows of a COPY go to instead of the client.
    pub(super) async fn open_copy_to(&mut self, place: Place) -> Result<()> {
        let sink = match place {
            Place::File(name) => {
                if !Path::new(&name).is_absolute() {
                    let message = "relative path not allowed for COPY to file";
                    return Err(SqlError::new(SqlState::INVALID_NAME, message));
                }
                let (stop, _abandon) = self.stop_check();
                self.apart(move || Sink::open(name, &stop)).await?
            }
            Place::Program(command) => self.apart(move || Sink::start(&command)).await?,
        };
        let (stop, abandon) = self.stop_check();
        let (queue, pieces) = mpsc::channel(PIECES_UNDERWAY);
        let done = self.server.waiting.begin(move || sink.write_all(pieces, &stop))?;
        let messages = self.output.take();
        self.copy_to = Some(Box::new(CopyTo { abandon, queue, done, looked: Instant::now(), messages }));
        Ok(())
    }

    /// Passes rows on that have been encoded: to the client, or to where a COPY writes them.
    pub(in crate::session) async fn pass_rows_on(&mut self) -> Result<()> {
        let Some(to) = &mut self.copy_to else { return self.flush_part().await };
        let messages = self.output.take();
        memory::require(messages.len(), COPY_CONTEXT)?;
        let mut data = Vec::with_capacity(messages.len());
        divide(&messages, &mut data, &mut to.messages);
        drop(messages);
        if data.is_empty() {
            return Ok(());
        }
        let (queue, mut looked) = (to.queue.clone(), to.looked);
        self.look_for_client_after(&mut looked);
        if let Some(to) = &mut self.copy_to {
            to.looked = looked;
        }
        match self.outwaited(queue.send(data)).await {
            Ok(()) => Ok(()),
            // The thread has ended, and says why.
            Err(_) => Err(SqlError::internal("a COPY could not be written")),
        }
    }

    /// Ends what rows were written to, and tells the first error. What the client is to get stands in the
    /// output again.
    pub(super) async fn close_copy_to(&mut self, mut copied: Result<u64>) -> Result<u64> {
        // Rows before an error are for whoever takes them, and not for the client.
        let passed = self.pass_rows_on().await;
        copied = copied.and_then(|rows| passed.map(|()| rows));
        let Some(to) = self.copy_to.take() else { return copied };
        let CopyTo { abandon, queue, done, messages, looked: _ } = *to;
        // Where the thread has ended before the rows, it has the reason.
        let has_ended = queue.is_closed();
        let mut abandon = Some(abandon);
        if copied.is_err() && !has_ended {
            abandon = None;
        }
        drop(queue);
        let written = self.outwaited(done).await.unwrap_or_else(|_| Err(failed_by_bug()));
        drop(abandon);
        self.output.restore(messages);
        match (copied, written) {
            (Ok(rows), written) => written.map(|()| rows),
            (Err(_), Err(error)) if has_ended => Err(error),
            (Err(error), _) => Err(error),
        }
    }
}

/// What is written.
struct Sink {
    target: Target,
    /// What is less than a block, and waits for more.
    held: Vec<u8>,
}

enum Target {
    File { file: File, name: String },
    Program(Program),
}

/// Why a write ended.
enum Broken {
    Stopped(SqlError),
    Failed(Error),
}

impl Sink {
    /// PostgreSQL's errors for a file that cannot be written (BeginCopyTo). A named pipe waits for who reads it.
    fn open(name: String, stop: &StopCheck) -> Result<Sink> {
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(0o644).custom_flags(libc::O_NONBLOCK);
        let file = loop {
            match options.open(&name) {
                Ok(file) => break file,
                Err(error) if error.raw_os_error() == Some(libc::ENXIO) => {
                    stop.check()?;
                    std::thread::sleep(LOOKED_FOR_READER);
                }
                Err(error) => {
                    let told = file_error(&error, &format!("could not open file \"{name}\" for writing"));
                    return Err(if is_out_of_reach(&error) { told.with_hint(HINT) } else { told });
                }
            }
        };
        Ok(Sink { target: Target::File { file, name }, held: Vec::new() })
    }

    fn start(command: &str) -> Result<Sink> {
        Ok(Sink { target: Target::Program(Program::write(command)?), held: Vec::new() })
    }

    /// Writes what comes until no more does.
    fn write_all(mut self, mut pieces: mpsc::Receiver<Vec<u8>>, stop: &StopCheck) -> Result<()> {
        while let Some(piece) = pieces.blocking_recv() {
            if let Err(broken) = self.take(&piece, stop) {
                return Err(self.broken(broken, stop));
            }
        }
        stop.check()?;
        self.close(stop)
    }

    fn take(&mut self, piece: &[u8], stop: &StopCheck) -> std::result::Result<(), Broken> {
        let held = std::mem::take(&mut self.held);
        // The block that was begun, then whole blocks.
        let (first, rest) = match held.is_empty() {
            true => (0, piece),
            false => {
                let first = (BLOCK_BYTES - held.len()).min(piece.len());
                (first, &piece[first..])
            }
        };
        self.held = held;
        self.held.extend_from_slice(&piece[..first]);
        if self.held.len() == BLOCK_BYTES {
            let block = std::mem::take(&mut self.held);
            self.put(&block, stop)?;
        }
        let (blocks, end) = rest.split_at(rest.len() - rest.len() % BLOCK_BYTES);
        self.put(blocks, stop)?;
        self.held.extend_from_slice(end);
        Ok(())
    }

    fn put(&mut self, mut bytes: &[u8], stop: &StopCheck) -> std::result::Result<(), Broken> {
        while !bytes.is_empty() {
            stop.check().map_err(Broken::Stopped)?;
            match self.target.write(bytes) {
                Ok(0) => return Err(Broken::Failed(ErrorKind::WriteZero.into())),
                Ok(written) => bytes = &bytes[written..],
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.target.wait().map_err(Broken::Failed)?;
                }
                Err(error) => return Err(Broken::Failed(error)),
            }
        }
        Ok(())
    }

    /// Why a write has failed. A program may have a better reason than that it does not read.
    fn broken(self, broken: Broken, stop: &StopCheck) -> SqlError {
        let error = match broken {
            Broken::Stopped(error) => return error,
            Broken::Failed(error) => error,
        };
        match self.target {
            Target::File { .. } => file_error(&error, "could not write to COPY file"),
            Target::Program(program) => {
                let told = file_error(&error, "could not write to COPY program");
                match error.kind() {
                    ErrorKind::BrokenPipe => program.close(false, stop).err().unwrap_or(told),
                    _ => told,
                }
            }
        }
    }

    fn close(mut self, stop: &StopCheck) -> Result<()> {
        let held = std::mem::take(&mut self.held);
        let ended = self.put(&held, stop);
        match (ended, self.target) {
            (Err(Broken::Stopped(error)), _) => Err(error),
            (Err(Broken::Failed(error)), Target::File { name, .. }) => {
                Err(file_error(&error, &format!("could not close file \"{name}\"")))
            }
            (Ok(()), Target::File { .. }) => Ok(()),
            // That it did not read the last of it says how it ended, if it says anything.
            (_, Target::Program(program)) => program.close(false, stop),
        }
    }
}

impl Target {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        match self {
            Target::File { file, .. } => file.write(bytes),
            Target::Program(program) => match &mut program.child.stdin {
                Some(pipe) => pipe.write(bytes),
                None => Err(ErrorKind::BrokenPipe.into()),
            },
        }
    }

    /// Waits a moment for who reads a pipe.
    fn wait(&self) -> std::io::Result<()> {
        let descriptor = match self {
            Target::File { file, .. } => Some(file.as_raw_fd()),
            Target::Program(program) => program.child.stdin.as_ref().map(AsRawFd::as_raw_fd),
        };
        match descriptor {
            Some(descriptor) => is_ready(descriptor, libc::POLLOUT).map(drop),
            None => Ok(()),
        }
    }
}
