//! Waking at a moment, to the microsecond: tokio's own timers round to milliseconds, which an
//! open loop would count as latency of the server.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, FromRawFd};
use std::time::Instant;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// A timer of the kernel's in the reactor of the current runtime.
pub struct Alarm(AsyncFd<File>);

impl Alarm {
    pub fn new() -> io::Result<Alarm> {
        // SAFETY: timerfd_create(2) takes no pointers.
        let descriptor =
            unsafe { libc::timerfd_create(libc::CLOCK_MONOTONIC, libc::TFD_NONBLOCK | libc::TFD_CLOEXEC) };
        if descriptor < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor was just made, and nobody else has it.
        let timer = unsafe { File::from_raw_fd(descriptor) };
        // SAFETY: the file owns its descriptor, which stays open and the same until it is dropped.
        Ok(Alarm(unsafe { AsyncFd::register_with_interest(timer, Interest::READABLE) }?))
    }

    /// Waits until `moment`; may be given up and begun anew for another.
    pub async fn until(&mut self, moment: Instant) -> io::Result<()> {
        let left = moment.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(());
        }
        let once = libc::itimerspec {
            it_interval: libc::timespec { tv_sec: 0, tv_nsec: 0 },
            it_value: libc::timespec {
                tv_sec: libc::time_t::try_from(left.as_secs()).unwrap_or(libc::time_t::MAX),
                tv_nsec: i64::from(left.subsec_nanos()),
            },
        };
        // SAFETY: the descriptor is an open timer's, `once` outlives the call, and a null
        // pointer says that the old setting is not wanted. It also forgets an alarm that rang.
        let set = unsafe { libc::timerfd_settime(self.0.as_raw_fd(), 0, &once, std::ptr::null_mut()) };
        if set < 0 {
            return Err(io::Error::last_os_error());
        }
        let mut rings = [0; 8];
        self.0.async_io_mut(Interest::READABLE, |timer| timer.read_exact(&mut rings)).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn an_alarm_rings_at_its_moment_and_not_at_one_given_up() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let mut alarm = Alarm::new().unwrap();
            let begin = Instant::now();
            // Begun, and given up at once: whoever waits for it may sleep beyond its moment.
            let given_up = Box::pin(alarm.until(begin + Duration::from_millis(5)));
            drop(futures::future::select(given_up, std::future::ready(())).await);
            alarm.until(begin + Duration::from_millis(30)).await.unwrap();
            assert!(begin.elapsed() >= Duration::from_millis(30));
            alarm.until(begin).await.unwrap();
        });
    }
}
