//! The seeds, the faults they must have met, and the planted bugs they must find.

use super::*;
use crate::planted::Bug;

/// What one seed came to.
struct Simulated {
    done: BTreeMap<&'static str, usize>,
    fingerprint: u64,
    violation: Option<String>,
}

/// What a panic says.
pub(super) fn message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned())).unwrap_or_default()
}

/// Runs one seed; a failure is returned, with the steps before it printed.
fn simulate(seed: u64) -> Simulated {
    let simulation = Simulation::new(seed);
    SIMULATION.with(|current| *current.borrow_mut() = Some(simulation.clone()));
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| simulation.run(seed)));
    let violation = simulation.broken.borrow().clone().or(result.err().map(|panic| message(&*panic)));
    if violation.is_some() {
        SIMULATION.with(|current| current.borrow_mut().take());
        if !planted::any() {
            for (depth, what, one, other) in simulation.trace.borrow().iter() {
                eprintln!("{:indent$}{what} {one} {other}", "", indent = depth * 2);
            }
            eprintln!("seed {seed} fails; ARCHIPEL_SEEDS={seed}..{} runs it alone", seed + 1);
        }
        let simulated = Simulated {
            done: simulation.done.borrow().clone(),
            fingerprint: *simulation.fingerprint.borrow(),
            violation,
        };
        // What is left of it is in no state to be dropped.
        std::mem::forget(simulation);
        return simulated;
    }
    simulation.forget();
    SIMULATION.with(|current| *current.borrow_mut() = None);
    let done = simulation.done.borrow().clone();
    Simulated { done, fingerprint: *simulation.fingerprint.borrow(), violation }
}

/// `tests/run` sets the variable, to 1 with `--long`; a plain `cargo test` takes fewer seeds.
fn seeds() -> std::ops::Range<u64> {
    let asked = std::env::var("ARCHIPEL_SEEDS").ok();
    if let Some((from, to)) = asked.as_deref().and_then(|seeds| seeds.split_once(".."))
        && let (Ok(from), Ok(to)) = (from.parse(), to.parse())
    {
        return from..to;
    }
    match std::env::var("ARCHIPEL_TEST_LONG").as_deref() {
        Ok("1") => 0..10_000,
        Ok(_) => 0..300,
        Err(_) => 0..60,
    }
}

/// Every kind of fault, and of work, that a run must have met.
const MUST_HAPPEN: &[&str] = &[
    "crash",
    "crash between operations",
    "torn write",
    "lost write",
    "sync error",
    "slow sync",
    "disk full",
    "split",
    "merge",
    "move",
    "monitor decided",
    "monitor acted",
    "client vanished",
    "clock jump",
    "core taken",
    "core returned",
    "executor retired",
    "executor activated",
    "executor moved",
    "islands resized",
    "memory piece",
    "memory followed",
    "handed over",
    "given a share",
    "thread ended",
    "inline",
    "queued",
    "aborted",
    "cancelled",
    "read",
    "interactive",
    "snapshot",
    "checkpoint",
    "ddl",
    "regroup",
    "alter sequence",
    "number",
    "slice refused",
    "index filled",
    "index given up",
    "compared",
    "look",
    "looked",
    "part written",
    "parts read",
    "parts of a checkpoint dropped",
    "parts undecided dropped",
    "read in pages",
    "page awaited",
    "settled in a slice",
    "swept in a slice",
    "settled by who came",
    "settled for a writer",
    "settled by a checkpoint",
    "swept for a writer",
    "old row of a settled one kept",
];

/// How often each kind of work and fault has happened.
type Totals = BTreeMap<String, usize>;

/// Runs seeds one after another. Fails with the first that breaks an invariant.
fn run_here(seeds: std::ops::Range<u64>) -> Totals {
    let mut totals = Totals::new();
    for seed in seeds {
        let simulated = simulate(seed);
        assert_eq!(simulated.violation, None, "seed {seed}");
        let transactions = simulated.done.get("transaction").copied().unwrap_or(0);
        assert!(transactions >= TRANSACTIONS, "seed {seed} ran {transactions} transactions");
        for (what, count) in simulated.done {
            *totals.entry(what.to_owned()).or_default() += count;
        }
    }
    totals
}

/// Seeds of one process of a long run. What a simulated server leaves behind is not given back
/// (its threads may hold it), so that a process must not run all of them.
const SEEDS_OF_A_PROCESS: u64 = 200;

/// Set where a process runs a part of a long run: what its seeds have met is for the whole to judge.
const PART: &str = "ARCHIPEL_SEEDS_OF_A_PART";

/// Runs seeds in processes of their own, as many at once as there are cores: seeds are independent
/// of one another.
fn run_in_processes(seeds: std::ops::Range<u64>) -> Totals {
    let program = std::env::current_exe().expect("a test knows its program");
    let next = std::sync::atomic::AtomicU64::new(seeds.start);
    let totals = std::sync::Mutex::new(Totals::new());
    let work = || {
        loop {
            let first = next.fetch_add(SEEDS_OF_A_PROCESS, std::sync::atomic::Ordering::Relaxed);
            if first >= seeds.end {
                return;
            }
            let last = seeds.end.min(first + SEEDS_OF_A_PROCESS);
            let output = std::process::Command::new(&program)
                .args(["--exact", "simulation::tests::the_invariants_hold_on_every_seed", "--nocapture"])
                .env("ARCHIPEL_SEEDS", format!("{first}..{last}"))
                .env(PART, "1")
                .output()
                .expect("the program runs again");
            let said = String::from_utf8_lossy(&output.stdout);
            let failed = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "seeds {first}..{last}: {said}\n{failed}");
            let mut totals = totals.lock().expect("no other part has failed");
            for line in said.lines().filter_map(|line| line.strip_prefix("happened ")) {
                let (count, what) = line.split_once(' ').expect("a number and a name");
                *totals.entry(what.to_owned()).or_default() += count.parse::<usize>().expect("a number");
            }
            let transactions = totals.get("transaction").copied().unwrap_or(0);
            println!("seeds {first}..{last} hold; {transactions} transactions so far");
        }
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(work);
        }
    });
    totals.into_inner().expect("no part has failed")
}

#[test]
fn the_invariants_hold_on_every_seed() {
    let seeds = seeds();
    let count = seeds.end - seeds.start;
    if std::env::var_os(PART).is_some() {
        println!();
        for (what, count) in run_here(seeds) {
            println!("happened {count} {what}");
        }
        return;
    }
    let totals = if count > 1_000 { run_in_processes(seeds) } else { run_here(seeds) };
    println!("{totals:?}");
    if count < 50 {
        return;
    }
    for what in MUST_HAPPEN {
        assert!(totals.contains_key(*what), "{what} never happened: {totals:?}");
    }
}

#[test]
fn a_seed_runs_the_same_way_again() {
    for seed in 0..3 {
        let (first, again) = (simulate(seed), simulate(seed));
        assert_eq!((first.violation, again.violation), (None, None));
        assert_eq!(first.fingerprint, again.fingerprint, "seed {seed} took another way");
        assert_eq!(first.done, again.done);
    }
}

/// How many seeds a planted bug may survive: a thousand, by the book; they go in the first few,
/// and the bound here keeps a run short that would find nothing.
const SEEDS_OF_A_BUG: u64 = 100;

fn is_found(bug: Bug) {
    let mut reached = 0;
    for seed in 0..SEEDS_OF_A_BUG {
        let (simulated, times) = planted::with(bug, || simulate(seed));
        reached += times;
        if let Some(violation) = simulated.violation {
            assert!(times > 0, "the seed failed without the bug: {violation}");
            println!("{bug:?} is found by seed {seed}: {violation}");
            return;
        }
    }
    panic!("{bug:?} was reached {reached} times and not found in {SEEDS_OF_A_BUG} seeds");
}

#[test]
fn a_skipped_claim_is_found() {
    is_found(Bug::SkipClaim);
}

#[test]
fn an_epoch_entered_too_early_is_found() {
    is_found(Bug::EarlyEpoch);
}

#[test]
fn an_acknowledgement_before_the_sync_is_found() {
    is_found(Bug::EarlyAcknowledgement);
}

#[test]
fn a_forwarded_action_that_is_dropped_is_found() {
    is_found(Bug::DropForwarded);
}

#[test]
fn a_queue_divided_too_late_is_found() {
    is_found(Bug::LateDivision);
}

#[test]
fn trust_in_stale_routing_is_found() {
    is_found(Bug::StaleRouting);
}

#[test]
fn a_number_that_is_not_stored_is_found() {
    is_found(Bug::NumberNotStored);
}

#[test]
fn a_commit_that_is_written_before_its_parts_is_found() {
    is_found(Bug::CommitBeforeParts);
}

#[test]
fn parts_that_no_commit_names_and_are_applied_are_found() {
    is_found(Bug::UndecidedApplied);
}

#[test]
fn parts_that_go_before_the_mark_of_their_checkpoint_are_found() {
    is_found(Bug::PartsGoEarly);
}

#[test]
fn a_reference_writer_that_is_numbered_alone_is_found() {
    is_found(Bug::ReferenceNumberAlone);
}

#[test]
fn a_bound_behind_who_uses_it_is_found() {
    is_found(Bug::BoundBehindUser);
}

#[test]
fn readers_that_raise_no_number_are_found() {
    is_found(Bug::ReadersRaiseNothing);
}

#[test]
fn a_client_that_forgets_what_it_has_met_is_found() {
    is_found(Bug::ClientForgets);
}

#[test]
fn a_sequence_that_goes_on_behind_its_end_is_found() {
    is_found(Bug::EndedSequenceGivesOn);
}

#[test]
fn a_page_that_goes_on_at_a_stale_bound_is_found() {
    is_found(Bug::StaleBound);
}

#[test]
fn a_page_that_is_newer_than_its_snapshot_is_found() {
    is_found(Bug::NewerPage);
}

#[test]
fn a_split_that_leaves_images_behind_is_found() {
    is_found(Bug::SplitLeavesImages);
}

#[test]
fn a_reader_that_passes_beneath_what_is_committed_is_found() {
    is_found(Bug::UnsettledSkipped);
}

#[test]
fn a_settled_row_that_forgets_what_was_before_is_found() {
    is_found(Bug::SettleForgetsPast);
}

#[test]
fn a_split_that_forgets_what_is_unsettled_is_found() {
    is_found(Bug::SplitForgetsUnsettled);
}

#[test]
fn an_index_that_writers_leave_alone_while_it_is_filled_is_found() {
    is_found(Bug::DeclaredUnattended);
}

#[test]
fn an_index_that_is_filled_over_images_is_found() {
    is_found(Bug::FilledOverImages);
}

#[test]
fn an_index_that_a_start_should_not_know_is_found() {
    is_found(Bug::DeclaredKept);
}
