//! What the programs in Rust share: named checks, each bounded, and the count at the end.

use std::error::Error;
use std::fmt::Debug;
use std::panic::{self, Location};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// How long a check may take; one that gets no answer fails, and the next ones go on.
const LIMIT: Duration = Duration::from_secs(30);

/// Where the server is.
pub fn url() -> String {
    std::env::var("DATABASE_URL").expect("DATABASE_URL names the server")
}

/// Whether it takes nobody without TLS and a password.
pub fn secured() -> bool {
    url().contains("sslmode=verify-full")
}

/// What went wrong, and where. Any error becomes one by `?`.
pub struct Wrong(String);

/// What a check, or a part of one, comes to.
pub type Outcome<T = ()> = Result<T, Wrong>;

impl<E: Error> From<E> for Wrong {
    #[track_caller]
    fn from(error: E) -> Wrong {
        Wrong(format!("{} ({})", whole(&error), Location::caller()))
    }
}

/// An error with what caused it: several drivers' own texts say no more than that there was one.
fn whole(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        cause = error.source();
    }
    text
}

/// Fails unless both are the same.
#[track_caller]
pub fn equal<A: Debug + PartialEq<B>, B: Debug>(got: A, expected: B) {
    if got != expected {
        panic!("{got:?} where PostgreSQL has {expected:?}");
    }
}

/// The error of what has to fail. A driver's program knows where its SQLSTATE is.
#[track_caller]
pub fn failure<T: Debug, E>(outcome: Result<T, E>) -> E {
    match outcome {
        Ok(value) => panic!("{value:?} where PostgreSQL has an error"),
        Err(error) => error,
    }
}

/// Fails unless the server refused with this SQLSTATE.
#[track_caller]
pub fn refusal(sqlstate: &str, said: Option<&str>, error: &dyn Error) {
    if said != Some(sqlstate) {
        panic!("{said:?}, {} where PostgreSQL says {sqlstate}", whole(error));
    }
}

/// A check and its name.
pub type Check = (&'static str, fn() -> Outcome);

fn run(body: fn() -> Outcome) -> Result<(), String> {
    let (told, answer) = mpsc::channel();
    let job = move || {
        let said = match panic::catch_unwind(body) {
            Ok(Ok(())) => Ok(()),
            Ok(Err(Wrong(text))) => Err(text),
            // The hook has said what and where.
            Err(_) => Err(LAST_PANIC.take()),
        };
        let _ = told.send(said);
    };
    thread::spawn(job);
    answer.recv_timeout(LIMIT).unwrap_or_else(|_| Err(format!("no answer within {} s", LIMIT.as_secs())))
}

thread_local! {
    static LAST_PANIC: std::cell::Cell<String> = const { std::cell::Cell::new(String::new()) };
}

/// Runs each, says how it went, and ends the program: with 1 if any failed.
pub fn run_all(checks: &[Check]) -> ! {
    panic::set_hook(Box::new(|info| {
        let place = info.location().map(Location::to_string).unwrap_or_default();
        LAST_PANIC.set(format!("{} ({place})", info.payload_as_str().unwrap_or("a panic")));
    }));
    let mut failed = 0;
    for (name, body) in checks {
        match run(*body) {
            Ok(()) => println!("ok      {name}"),
            Err(said) => {
                failed += 1;
                println!("FAILED  {name}: {}", said.replace('\n', " | "));
            }
        }
    }
    println!("{} passed, {failed} failed", checks.len() - failed);
    std::process::exit(i32::from(failed > 0))
}

/// The checks of an asynchronous driver, each with a runtime of its own: pairs of a name and an
/// `async fn() -> Outcome`.
#[macro_export]
macro_rules! asynchronous {
    ($($name:literal: $body:path),* $(,)?) => {
        vec![$(($name, (|| $crate::wait($body())) as fn() -> $crate::Outcome)),*]
    };
}

/// Runs what is asynchronous to its end.
#[cfg(feature = "tokio")]
pub fn wait(body: impl Future<Output = Outcome>) -> Outcome {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(body)
}
