//! COPY … FROM a file or a program of the server: the same rows as from a client. A thread that may wait for a
//! disk or a pipe reads, a few pieces ahead of the session, and ends with it.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Instant;

use archipel_sql::error::{Result, SqlError, SqlState};
use tokio::sync::mpsc;

use super::program::Program;
use super::server_file::{Place, failed_by_bug, file_error, is_out_of_reach, is_ready};
use super::stop::StopCheck;
use crate::session::Session;

/// How much is read of a file at a time, and of a pipe, which holds no more.
const FILE_PIECE_BYTES: usize = 1 << 20;
const PIPE_PIECE_BYTES: usize = 64 << 10;

/// Pieces underway from the thread that reads.
const PIECES_UNDERWAY: usize = 2;

const HINT: &str = "COPY FROM instructs the PostgreSQL server process to read a file. You may want a client-side facility such as psql's \\copy.";

impl Session {
    /// Feeds the COPY that has begun with what a file holds or a program says, and ends it.
    pub(super) async fn copy_from_server(&mut self, place: Place) -> Result<()> {
        let mut copied = self.copy_pieces(place).await;
        if let Err(error) = copied {
            copied = Err(self.copy_failed(error).await);
        }
        let copy = self.copy_in.take();
        copied?;
        if let Some(copy) = copy {
            self.output.command_complete_count("COPY", copy.total);
        }
        Ok(())
    }

    async fn copy_pieces(&mut self, place: Place) -> Result<()> {
        let source = match place {
            Place::File(name) => {
                let path = self.server_path(&name);
                self.apart(move || Source::open(&path, &name)).await?
            }
            Place::Program(command) => self.apart(move || Source::start(&command)).await?,
        };
        let (stop, abandon) = self.stop_check();
        let (pieces, mut queue) = mpsc::channel(PIECES_UNDERWAY);
        let done = self.server.waiting.begin(move || source.read_all(&pieces, &stop))?;
        let fed = self.take_pieces(&mut queue).await;
        // What is not read any more ends: a program that fails by that has not failed.
        drop(queue);
        if fed.is_err() {
            drop(abandon);
            // It has been told to end, and how it does is nothing to who has failed.
            let _ = self.outwaited(done).await;
            return fed;
        }
        let read = self.outwaited(done).await;
        drop(abandon);
        read.unwrap_or_else(|_| Err(failed_by_bug()))?;
        self.copy_done().await
    }

    /// Takes what comes, to its end or to that of the data in it.
    async fn take_pieces(&mut self, queue: &mut mpsc::Receiver<Vec<u8>>) -> Result<()> {
        let mut looked = Instant::now();
        while let Some(piece) = self.outwaited(queue.recv()).await {
            self.look_for_client_after(&mut looked);
            self.copy_data(&piece).await?;
            if self.copy_in.as_ref().is_none_or(|copy| copy.decoder.has_ended()) {
                break;
            }
        }
        Ok(())
    }
}

/// What is read.
enum Source {
    File { file: File, is_pipe: bool },
    Program(Program),
}

impl Source {
    /// PostgreSQL's errors for a file that is not to be had (BeginCopyFrom). A pipe is there before its
    /// writer is.
    fn open(path: &Path, name: &str) -> Result<Source> {
        let opened = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path);
        let file = opened.map_err(|error| {
            let told = file_error(&error, &format!("could not open file \"{name}\" for reading"));
            if is_out_of_reach(&error) { told.with_hint(HINT) } else { told }
        })?;
        let found = file.metadata();
        let kind = found.map_err(|error| file_error(&error, &format!("could not stat file \"{name}\"")))?;
        if kind.is_dir() {
            return Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, format!("\"{name}\" is a directory")));
        }
        Ok(Source::File { file, is_pipe: !kind.is_file() })
    }

    fn start(command: &str) -> Result<Source> {
        Program::read(command).map(Source::Program)
    }

    /// Reads to the end, or until nobody takes what is read.
    fn read_all(mut self, pieces: &mpsc::Sender<Vec<u8>>, stop: &StopCheck) -> Result<()> {
        loop {
            if let Some(pipe) = self.pipe() {
                while !is_ready(pipe, libc::POLLIN).map_err(unreadable)? {
                    stop.check()?;
                    if pieces.is_closed() {
                        return self.close(true, stop);
                    }
                }
            }
            stop.check()?;
            let mut piece = vec![0; if self.pipe().is_some() { PIPE_PIECE_BYTES } else { FILE_PIECE_BYTES }];
            match self.read(&mut piece) {
                Ok(0) => return self.close(false, stop),
                Ok(bytes) => piece.truncate(bytes),
                Err(error) if matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::WouldBlock) => {
                    continue;
                }
                Err(error) => return Err(unreadable(error)),
            }
            if pieces.blocking_send(piece).is_err() {
                return self.close(true, stop);
            }
        }
    }

    /// What others write to while it is read, who are waited for.
    fn pipe(&self) -> Option<RawFd> {
        match self {
            Source::File { file, is_pipe } => is_pipe.then(|| file.as_raw_fd()),
            Source::Program(program) => program.child.stdout.as_ref().map(AsRawFd::as_raw_fd),
        }
    }

    fn read(&mut self, piece: &mut [u8]) -> std::io::Result<usize> {
        match self {
            Source::File { file, .. } => file.read(piece),
            Source::Program(program) => program.child.stdout.as_mut().map_or(Ok(0), |pipe| pipe.read(piece)),
        }
    }

    /// Tells how a program has failed. Whether there was more to be read (`is_cut`) is nothing to a file.
    fn close(self, is_cut: bool, stop: &StopCheck) -> Result<()> {
        match self {
            Source::File { .. } => Ok(()),
            Source::Program(program) => program.close(is_cut, stop),
        }
    }
}

fn unreadable(error: std::io::Error) -> SqlError {
    file_error(&error, "could not read from COPY file")
}
