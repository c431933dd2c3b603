//! Panics that may not be survived.
//!
//! A panic while a program evaluates something is undone and answered. One in the trees, or
//! between the end of a program and the release of its partitions, leaves data that nobody can
//! vouch for: the process ends, and recovery takes over from what is durable.
//!
//! A panic in the trees is told from others by where it happened, which the panic hook sees, so
//! that looking out for it costs a transaction nothing.

use std::cell::Cell;
use std::sync::Once;

thread_local! {
    static IN_STORAGE: Cell<bool> = const { Cell::new(false) };
}

/// Code whose panics leave shared data in an unknown state: beside this file.
fn is_storage(file: &str) -> bool {
    let source = file!().strip_suffix("panics.rs").unwrap_or("engine/src/");
    file.strip_prefix(source)
        .is_some_and(|file| file.starts_with("storage/tree") || file.starts_with("storage/versions"))
}

/// Looks at every panic from now on, before whoever else does.
pub(crate) fn watch() {
    static WATCHING: Once = Once::new();
    WATCHING.call_once(|| {
        let next = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if panic.location().is_some_and(|location| is_storage(location.file())) {
                IN_STORAGE.with(|flag| flag.set(true));
            }
            next(panic);
        }));
    });
}

/// After a caught panic of a program: ends the process if it came out of the trees.
pub(crate) fn survive() {
    if IN_STORAGE.with(|flag| flag.replace(false)) {
        end("in storage");
    }
}

fn end(place: &str) -> ! {
    eprintln!("FATAL: a panic {place}: the process ends, and recovery takes over");
    std::process::abort()
}

/// Ends the process when it is dropped by unwinding; [`NoUnwind::pass`] it otherwise, which
/// costs nothing.
pub(crate) struct NoUnwind(&'static str);

impl NoUnwind {
    pub fn new(place: &'static str) -> Self {
        Self(place)
    }

    /// The dangerous part is over. Nothing is left to do at run time.
    #[inline]
    pub fn pass(self) {
        std::mem::forget(self);
    }
}

impl Drop for NoUnwind {
    fn drop(&mut self) {
        if std::thread::panicking() {
            end(self.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;
    use std::process::Command;
    use std::sync::Arc;

    use crate::log::MemoryStore;
    use crate::planted::{self, Bug};
    use crate::program::{Program, Stop};
    use crate::{ClaimSet, DdlOp, Engine, EngineConfig, Inserted, RoutingTable, SubmitOptions, Txn};

    const VICTIM: &str = "ARCHIPEL_PANIC";

    /// Writes a row of the system catalog.
    struct Write;

    impl Program for Write {
        fn predict(&mut self, _: &RoutingTable, claims: &mut ClaimSet) {
            claims.everything();
        }

        fn run(&mut self, txn: &mut Txn<'_>) -> Result<(), Stop> {
            let key = crate::schema::KeyColumn {
                column: 0,
                descending: false,
                nulls_first: false,
                nullable: false,
                form: Default::default(),
            };
            let def = crate::schema::TableDef {
                id: crate::id::TreeId(50),
                name: "t".into(),
                columns: vec![crate::cell::ColumnKind::Int8],
                key: vec![key],
                placement: crate::schema::Placement::Distributed { group: crate::id::GroupId(50) },
                indexes: Vec::new(),
            };
            let _ = txn.ddl(DdlOp::CreateTable(def))?;
            let table = txn.table(crate::id::TreeId(50)).ok_or(Stop::Recompile)?;
            let row = table.layout.encode_row(&[crate::cell::Cell::Int8(1)]);
            let mut key = crate::storage::KeyBuf::new();
            table.storage_key(&row, &mut key);
            assert_eq!(txn.insert(&table, &key, &row)?, Inserted::Ok);
            if std::env::var(VICTIM).as_deref() == Ok("program") {
                panic!("a bug in an expression");
            }
            Ok(())
        }
    }

    /// Not a test of its own: what the tests below run in a process of its own.
    #[test]
    fn the_victim() {
        let Ok(place) = std::env::var(VICTIM) else { return };
        let engine = Engine::open(
            EngineConfig { background: false, pin_threads: false, ..EngineConfig::with_executors(1) },
            Arc::new(MemoryStore::new()),
        )
        .expect("opens");
        let bug = match place.as_str() {
            "commit" => Some(Bug::PanicAtCommit),
            "storage" => Some(Bug::PanicInStorage),
            _ => None,
        };
        let submit = || engine.submit(Write, SubmitOptions::default()).wait().outcome.result;
        let result = match bug {
            Some(bug) => {
                let armed = || {
                    planted::arm();
                    submit()
                };
                planted::with(bug, armed).0
            }
            None => submit(),
        };
        println!("survived: {result:?}");
    }

    fn run(place: &str) -> std::process::Output {
        let program = std::env::current_exe().expect("a test has a path");
        Command::new(program)
            .args(["--exact", "panics::tests::the_victim", "--nocapture"])
            .env(VICTIM, place)
            .env("RUST_BACKTRACE", "0")
            .output()
            .expect("the victim runs")
    }

    fn assert_dies(place: &str, because: &str) {
        let output = run(place);
        assert_eq!(output.status.signal(), Some(libc::SIGABRT), "{output:?}");
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(told.contains(&format!("FATAL: a panic {because}")), "{told}");
    }

    #[test]
    fn a_panic_at_the_commit_point_ends_the_process() {
        assert_dies("commit", "at the commit point");
    }

    #[test]
    fn a_panic_in_storage_ends_the_process() {
        assert_dies("storage", "in storage");
    }

    #[test]
    fn a_panic_in_a_program_is_survived() {
        let output = run("program");
        assert!(output.status.success(), "{output:?}");
        assert!(String::from_utf8_lossy(&output.stdout).contains("survived: Err(Panicked)"));
    }
}
