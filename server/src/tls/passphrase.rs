//! The passphrase of a private key, which a program tells (`ssl_passphrase_command`, run_ssl_passphrase_command).
//!
//! It is a line, of bounded length and within bounded time; neither it nor the command, which may hold it, gets
//! into the log.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use super::error::TlsError;
use crate::config::PASSWORD_VARIABLES;

/// What the program may show to whoever types it (`%p`).
const PROMPT: &str = "Enter PEM pass phrase:";

/// Bytes of it (PEM_BUFSIZE).
const BYTES_MAX: u64 = 1024;

/// How long the program may take: somebody may have to type.
const TIME_LIMIT: Duration = Duration::from_secs(60);

/// How often it is looked whether it has ended.
const LOOKED_EVERY: Duration = Duration::from_millis(10);

/// A passphrase as a command line tells it.
pub(super) fn told_by(command: &str) -> Result<Vec<u8>, TlsError> {
    told_within(TIME_LIMIT, command)
}

fn told_within(limit: Duration, command: &str) -> Result<Vec<u8>, TlsError> {
    let failed = |what: &str| TlsError(format!("ssl_passphrase_command {what}"));
    let mut shell = Command::new("/bin/sh");
    PASSWORD_VARIABLES.iter().for_each(|variable| {
        shell.env_remove(variable);
    });
    shell.args(["-c", &filled_in(command)]).stdin(Stdio::null()).stdout(Stdio::piped()).process_group(0);
    let program = shell.spawn().map_err(|error| failed(&format!("could not be executed: {error}")))?;
    let mut program = Program(program);
    let until = Instant::now() + limit;
    let output = program.0.stdout.take().ok_or_else(|| failed("has no output"))?;
    let (sender, line) = mpsc::sync_channel(1);
    // Ends with the program and all that it has started.
    let reads = std::thread::Builder::new().name("passphrase".to_owned()).spawn(move || {
        let mut line = Vec::new();
        let read = BufReader::new(output.take(BYTES_MAX)).read_until(b'\n', &mut line);
        // Nobody may want to know any more.
        let _ = sender.send(read.map(|_| line));
    });
    reads.map_err(|error| failed(&format!("could not be read from: {error}")))?;
    let line = line.recv_timeout(limit).map_err(|_| failed("took too long"))?;
    let mut line = line.map_err(|error| failed(&format!("could not be read from: {error}")))?;
    let status = loop {
        match program.0.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if Instant::now() < until => std::thread::sleep(LOOKED_EVERY),
            Ok(None) => return Err(failed("took too long")),
            Err(error) => return Err(failed(&format!("could not be waited for: {error}"))),
        }
    };
    if !status.success() {
        return Err(failed(&format!("failed: {status}")));
    }
    let end = line.iter().rposition(|byte| !matches!(byte, b'\n' | b'\r')).map_or(0, |last| last + 1);
    line.truncate(end);
    Ok(line)
}

/// The command with its prompt: `%p` and `%%` stand for something, anything else for itself.
fn filled_in(command: &str) -> String {
    let (mut filled, mut rest) = (String::new(), command);
    while let Some((before, after)) = rest.split_once('%') {
        filled.push_str(before);
        let (found, length) = match after.chars().next() {
            Some('p') => (PROMPT, 1),
            Some('%') => ("%", 1),
            _ => ("%", 0),
        };
        filled.push_str(found);
        rest = &after[length..];
    }
    filled + rest
}

/// A program that does not outlive its use, nor does what it has started.
struct Program(Child);

impl Drop for Program {
    fn drop(&mut self) {
        if !matches!(self.0.try_wait(), Ok(Some(_))) {
            // SAFETY: no memory is passed. The leader of the group has not been waited for, so that the number is
            // the group's still, and nobody else's.
            unsafe { libc::kill(-(self.0.id() as libc::pid_t), libc::SIGKILL) };
            // Nobody asks any more how it ended.
            let _ = self.0.wait();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_program_is_the_passphrase() {
        let told = |command: &str| String::from_utf8(told_by(command).unwrap()).unwrap();
        assert_eq!(told("echo open sesame"), "open sesame");
        assert_eq!(told("printf 'a b\\r\\nmore\\n'"), "a b");
        assert_eq!(told("printf %%s 'no end'"), "no end");
        assert_eq!(told("echo '%p'"), PROMPT);
        assert_eq!(told("true"), "");
        assert_eq!(told("printf '%%01100d' 0").len() as u64, BYTES_MAX);
        assert_eq!(filled_in("100% of %x %%p"), "100% of %x %p");
    }

    #[test]
    fn a_program_that_fails_or_hangs_is_no_passphrase() {
        let refused =
            |command: &str| told_within(Duration::from_millis(300), command).unwrap_err().to_string();
        assert!(refused("echo secret; exit 3").ends_with("failed: exit status: 3"));
        let missing = refused("/nonexistent secret");
        assert!(missing.contains("failed") && !missing.contains("secret"), "{missing}");
        let begun = Instant::now();
        assert!(refused("sleep 1000").ends_with("took too long"));
        assert!(refused("echo secret; exec sleep 1000").ends_with("took too long"));
        assert!(begun.elapsed() < Duration::from_secs(100), "it was waited for");
    }
}
