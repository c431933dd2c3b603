//! The files of `lo_import` and `lo_export` (be-fsstubs.c), on the server. Whoever calls has the right to, and runs
//! on a thread that may wait for a disk.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

use archipel_sql::datum::Datum;
use archipel_sql::error::{Result, SqlError};
use archipel_sql::function::SessionHost;
use archipel_sql::memory;

use crate::session::copy::server_file::file_error;
use crate::session::host::Host;

/// How much is read or written between two looks at whether to go on.
const PIECE_BYTES: usize = 1 << 20;

/// The path that a name means: one that is relative begins at the data directory.
fn path(host: &Host, name: &str) -> PathBuf {
    if name.is_empty() { PathBuf::new() } else { host.server.config.data_directory.join(name) }
}

fn check(host: &Host) -> Result<()> {
    host.interruption().map_or(Ok(()), Err)
}

/// What a file holds, as far as there is memory for it. A pipe without a writer is empty: nobody waits for one.
pub(crate) fn read(host: &Host, args: &[Datum]) -> Result<Datum> {
    let [Datum::Text(name)] = args else { return Err(SqlError::internal("a file without a name")) };
    let failed = |what: &str, error| file_error(&error, &format!("could not {what} server file \"{name}\""));
    let mut options = OpenOptions::new();
    let opened = options.read(true).custom_flags(libc::O_NONBLOCK).open(path(host, name));
    let mut file = opened.map_err(|error| failed("open", error))?;
    let (mut bytes, mut piece) = (Vec::new(), vec![0; PIECE_BYTES]);
    loop {
        check(host)?;
        match file.read(&mut piece) {
            Ok(0) => return Ok(Datum::Bytea(bytes.into())),
            Ok(count) => memory::extend(&mut bytes, &piece[..count], "lo_import")?,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(failed("read", error)),
        }
    }
}

/// Makes a file that holds these bytes. Others may read it, as PostgreSQL's.
pub(crate) fn write(host: &Host, args: &[Datum]) -> Result<Datum> {
    let [Datum::Text(name), Datum::Bytea(bytes)] = args else {
        return Err(SqlError::internal("a file without a name"));
    };
    let failed = |what: &str, error| file_error(&error, &format!("could not {what} server file \"{name}\""));
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o644).custom_flags(libc::O_NONBLOCK);
    let mut file = options.open(path(host, name)).map_err(|error| failed("create", error))?;
    for piece in bytes.chunks(PIECE_BYTES) {
        check(host)?;
        file.write_all(piece).map_err(|error| failed("write", error))?;
    }
    Ok(Datum::Null)
}
