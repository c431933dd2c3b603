//! A program of the server that a COPY reads from or writes to. The shell runs it in a process group of its own;
//! it is waited for, and whatever is left of the group ends with a COPY that does not come to its end.

use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use archipel_sql::error::{Result, SqlError, SqlState};

use super::server_file::file_error;
use super::stop::StopCheck;
use crate::config::PASSWORD_VARIABLES;

/// What a program that has to end before its time has to do so, before it is killed.
const GRACE: Duration = Duration::from_secs(1);

/// How often it is looked whether a program has ended, after a first moment in which short ones do.
const LOOKED_EVERY: Duration = Duration::from_millis(20);
const FIRST_LOOK: Duration = Duration::from_millis(1);

/// What the shell answers for a program that it cannot run, and for one that it does not find.
const NOT_EXECUTABLE: i32 = 126;
const NOT_FOUND: i32 = 127;

/// What the shell adds to the number of a signal that has ended a program.
const SIGNAL_CODE: i32 = 128;

/// See the module's head.
pub(super) struct Program {
    pub(super) child: Child,
    command: String,
    /// It has been waited for.
    ended: bool,
}

impl Program {
    /// Starts a program whose output is read.
    pub(super) fn read(command: &str) -> Result<Program> {
        Program::start(command, Stdio::null(), Stdio::piped())
    }

    /// Starts a program that is written to; a write never waits for it.
    pub(super) fn write(command: &str) -> Result<Program> {
        let program = Program::start(command, Stdio::piped(), Stdio::null())?;
        match program.child.stdin.as_ref().map(|pipe| set_nonblocking(pipe.as_raw_fd())) {
            Some(Err(error)) => Err(not_started(command, &error)),
            _ => Ok(program),
        }
    }

    fn start(command: &str, input: Stdio, output: Stdio) -> Result<Program> {
        let mut shell = Command::new("/bin/sh");
        PASSWORD_VARIABLES.iter().for_each(|variable| {
            shell.env_remove(variable);
        });
        shell.args(["-c", command]).stdin(input).stdout(output).stderr(Stdio::inherit()).process_group(0);
        match shell.spawn() {
            Ok(child) => Ok(Program { child, command: command.to_owned(), ended: false }),
            Err(error) => Err(not_started(command, &error)),
        }
    }

    /// Closes its pipe, waits for its end and tells how it failed, if it did. One whose output is not read to
    /// its end may be ended by that (`is_cut`).
    pub(super) fn close(mut self, is_cut: bool, stop: &StopCheck) -> Result<()> {
        drop(self.child.stdin.take());
        drop(self.child.stdout.take());
        let mut pause = FIRST_LOOK;
        let status = loop {
            match self.child.try_wait() {
                Ok(Some(status)) => break status,
                Ok(None) => {}
                Err(error) => return Err(file_error(&error, "could not close pipe to external command")),
            }
            stop.check()?;
            std::thread::sleep(pause);
            pause = (2 * pause).min(LOOKED_EVERY);
        };
        self.ended = true;
        let broken_pipe =
            status.signal() == Some(libc::SIGPIPE) || status.code() == Some(SIGNAL_CODE + libc::SIGPIPE);
        if status.success() || (is_cut && broken_pipe) {
            return Ok(());
        }
        let error = SqlError::new(SqlState(*b"38000"), format!("program \"{}\" failed", self.command));
        Err(error.with_detail(told(status)))
    }

    /// Ends it, and all that it has started, with SIGTERM and then for certain.
    fn end(&mut self) {
        self.signal(libc::SIGTERM);
        let mut waited = Duration::ZERO;
        while waited < GRACE && !self.has_exited() {
            std::thread::sleep(LOOKED_EVERY);
            waited += LOOKED_EVERY;
        }
        self.signal(libc::SIGKILL);
        // Nobody asks any more how it ended.
        let _ = self.child.wait();
        self.ended = true;
    }

    fn signal(&self, signal: libc::c_int) {
        // SAFETY: no memory is passed. The leader of the group has not been waited for, so the number is the
        // group's still, and nobody else's.
        unsafe { libc::kill(-(self.child.id() as libc::pid_t), signal) };
    }

    /// Whether it has ended; it can be waited for after that.
    fn has_exited(&self) -> bool {
        // SAFETY: all-zero bytes are a value of this plain C structure.
        let mut found: libc::siginfo_t = unsafe { std::mem::zeroed() };
        let options = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
        // SAFETY: the structure is there for the length of the call, which writes nothing else.
        let done =
            unsafe { libc::waitid(libc::P_PID, self.child.id() as libc::id_t, &raw mut found, options) };
        // SAFETY: the call has filled in the fields of a child's end, or left zeroes.
        done != 0 || unsafe { found.si_pid() } != 0
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        if !self.ended {
            self.end();
        }
    }
}

fn not_started(command: &str, error: &std::io::Error) -> SqlError {
    file_error(error, &format!("could not execute command \"{command}\""))
}

/// How a program has ended, as PostgreSQL says it (wait_result_to_str).
fn told(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(NOT_EXECUTABLE), _) => "command not executable".to_owned(),
        (Some(NOT_FOUND), _) => "command not found".to_owned(),
        (Some(code), _) => format!("child process exited with exit code {code}"),
        (None, Some(signal)) => {
            format!("child process was terminated by signal {signal}: {}", signal_name(signal))
        }
        (None, None) => format!("child process exited with unrecognized status {}", status.into_raw()),
    }
}

/// What the C library calls a signal.
fn signal_name(signal: i32) -> String {
    // SAFETY: the answer is a string that stays at least until this thread asks again, and it is copied now.
    let name = unsafe {
        let name = libc::strsignal(signal);
        (!name.is_null()).then(|| std::ffi::CStr::from_ptr(name).to_string_lossy().into_owned())
    };
    name.unwrap_or_else(|| "unrecognized signal".to_owned())
}

/// Lets reads and writes of a descriptor answer that they would wait.
fn set_nonblocking(descriptor: RawFd) -> std::io::Result<()> {
    // SAFETY: no memory is passed, and the descriptor is open.
    let flags = unsafe { libc::fcntl(descriptor, libc::F_GETFL) };
    // SAFETY: as above.
    if flags < 0 || unsafe { libc::fcntl(descriptor, libc::F_SETFL, flags | libc::O_NONBLOCK) } < 0 {
        return Err(std::io::Error::last_os_error());
    }
    Ok(())
}
