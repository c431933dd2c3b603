//! PostgreSQL's isolation tester against a server, and what its output says.
//!
//! The tester runs the steps of several sessions in the orders a spec names, and prints what
//! every step answered and which of them had to wait. Its output is compared with the one
//! PostgreSQL's own tests expect. Where only SERIALIZABLE transactions failed elsewhere than on
//! PostgreSQL, which may happen in any implementation, [`is_serializable`] asks the tester for
//! every serial order and looks for one that answers the same.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use crate::postgres;

/// How long a step may wait before the tester cancels it.
const STEP_LIMIT_S: u32 = 10;
/// How long a spec may take before it counts as hanging; on a busy machine some take long.
const SPEC_LIMIT: Duration = Duration::from_secs(240);
/// The same for one that is known to hang.
const HANGING_LIMIT: Duration = Duration::from_secs(30);

/// The tester and the specs, made ready by `tests/postgresql/prepare`.
pub struct Tester {
    directory: PathBuf,
}

/// What running a spec printed.
pub enum Ran {
    Printed(String),
    /// It did not end in time.
    Hung,
}

impl Tester {
    /// Downloads and builds the tester unless that is done.
    pub fn prepare() -> Tester {
        Tester { directory: postgres::tests().join("isolation") }
    }

    /// The names of all specs.
    pub fn specs(&self) -> Vec<String> {
        let mut names: Vec<String> = std::fs::read_dir(self.directory.join("specs"))
            .expect("the specs are there")
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|path| path.extension().is_some_and(|extension| extension == "spec"))
            .filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned()))
            .collect();
        names.sort();
        names
    }

    /// A spec's text.
    pub fn spec(&self, name: &str) -> String {
        std::fs::read_to_string(self.directory.join(format!("specs/{name}.spec"))).expect("specs are UTF-8")
    }

    /// The outputs PostgreSQL's tests accept.
    pub fn expected(&self, name: &str) -> Vec<String> {
        let alternatives = (1..10).map(|number| format!("expected/{name}_{number}.out"));
        std::iter::once(format!("expected/{name}.out"))
            .chain(alternatives)
            .filter_map(|path| std::fs::read_to_string(self.directory.join(path)).ok())
            .collect()
    }

    /// Runs a spec's text, under the environment of PostgreSQL's own runs but for DateStyle,
    /// which stays ISO: the styles without year, month and day in that order are not shown here.
    pub fn run(&self, name: &str, text: &str, url: &str, is_known_to_hang: bool) -> Ran {
        let folder = tempfile::tempdir().expect("a temporary directory can be made");
        let (spec, printed) = (folder.path().join("spec"), folder.path().join("printed"));
        std::fs::write(&spec, text).expect("a spec can be written");
        let output = std::fs::File::create(&printed).expect("a file can be made");
        let mut child = Command::new(self.directory.join("isolationtester"))
            .arg(url)
            .env("PGAPPNAME", format!("isolation/{name}"))
            .env("PGTZ", "PST8PDT")
            .env("PGISOLATIONTIMEOUT", STEP_LIMIT_S.to_string())
            .stdin(std::fs::File::open(&spec).expect("it was just written"))
            .stdout(output.try_clone().expect("a file can be shared"))
            .stderr(output)
            .spawn()
            .expect("the tester can be run");
        let begun = Instant::now();
        let limit = if is_known_to_hang { HANGING_LIMIT } else { SPEC_LIMIT };
        while child.try_wait().expect("a child can be asked for its status").is_none() {
            if begun.elapsed() > limit {
                // It may have ended meanwhile; then there is nothing to kill.
                let _ = child.kill();
                let _ = child.wait();
                return Ran::Hung;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ran::Printed(read(&printed))
    }
}

fn read(path: &Path) -> String {
    String::from_utf8_lossy(&std::fs::read(path).expect("it was just written")).into_owned()
}

/// What one step printed, over all its appearances, without the waiting.
type Answers = BTreeMap<String, String>;

/// One permutation's part of an output: the order of its steps and what each answered.
fn permutations(output: &str) -> Vec<(Vec<String>, Answers)> {
    let mut found: Vec<(Vec<String>, Answers)> = Vec::new();
    let mut step = String::new();
    for line in output.lines() {
        if let Some(order) = line.strip_prefix("starting permutation: ") {
            let names =
                order.split_whitespace().map(|name| name.split('(').next().unwrap_or(name).to_owned());
            found.push((names.collect(), Answers::new()));
            step.clear();
            continue;
        }
        let Some((_, answers)) = found.last_mut() else { continue };
        if let Some((name, rest)) = line.strip_prefix("step ").and_then(|rest| rest.split_once(": ")) {
            step = name.to_owned();
            let text = rest.strip_suffix(" <waiting ...>").unwrap_or(rest);
            if text != "<... completed>" {
                answers.entry(step.clone()).or_default().push_str(text);
            }
        } else if !step.is_empty() && !line.is_empty() {
            let answer = answers.entry(step.clone()).or_default();
            answer.push('\n');
            // The tester draws a query's text where it waits, and only there, to its end.
            answer.push_str(line.strip_suffix(" <waiting ...>").unwrap_or(line));
        }
    }
    found
}

/// The steps of each session, in the order of the spec.
fn sessions(spec: &str) -> Vec<Vec<String>> {
    let mut sessions: Vec<Vec<String>> = Vec::new();
    for line in spec.lines() {
        let mut words = line.split_whitespace();
        match words.next() {
            Some("session") => sessions.push(Vec::new()),
            Some("step") => {
                if let (Some(steps), Some(name)) = (sessions.last_mut(), words.next()) {
                    steps.push(name.trim_matches('"').to_owned());
                }
            }
            _ => {}
        }
    }
    sessions
}

/// All orders of `items`.
fn orders(items: &[usize]) -> Vec<Vec<usize>> {
    if items.is_empty() {
        return vec![Vec::new()];
    }
    items
        .iter()
        .flat_map(|&first| {
            let rest: Vec<usize> = items.iter().copied().filter(|&item| item != first).collect();
            orders(&rest).into_iter().map(move |mut order| {
                order.insert(0, first);
                order
            })
        })
        .collect()
}

/// Whether every permutation of an output is what some serial order of its transactions answers,
/// but for those refused because they could not be serialized; `Err` tells the first that is not.
/// A transaction that failed for another reason must fail so in that order, too. Each session of
/// the spec must be one transaction, ended by its last step.
pub fn is_serializable(
    spec: &str,
    output: &str,
    mut serially: impl FnMut(&str) -> Option<String>,
) -> Result<(), String> {
    let sessions = sessions(spec);
    let body: String = spec.lines().take_while(|line| !line.starts_with("permutation")).fold(
        String::new(),
        |mut text, line| {
            text.push_str(line);
            text.push('\n');
            text
        },
    );
    let mut known: BTreeMap<Vec<String>, Answers> = BTreeMap::new();
    let all = permutations(output);
    if all.is_empty() {
        return Err("nothing ran".to_owned());
    }
    for (order, answers) in all {
        // The steps this permutation runs, by session, in its order.
        let parts: Vec<Vec<&String>> =
            sessions.iter().map(|steps| order.iter().filter(|step| steps.contains(step)).collect()).collect();
        let errors = |part: &Vec<&String>| -> Vec<&str> {
            let answers = part.iter().filter_map(|step| answers.get(*step));
            answers.flat_map(|answer| answer.lines()).filter(|line| line.starts_with("ERROR:")).collect()
        };
        let refused = |part: &Vec<&String>| {
            errors(part).first().is_some_and(|error| error.contains("could not serialize access"))
        };
        if parts.iter().any(|part| part.iter().any(|step| !answers.contains_key(*step))) {
            return Err(format!("a step without an answer in: {}", order.join(" ")));
        }
        let committed: Vec<usize> =
            (0..parts.len()).filter(|&at| !parts[at].is_empty() && !refused(&parts[at])).collect();
        if committed.is_empty() {
            return Err(format!("every transaction failed in: {}", order.join(" ")));
        }
        let explained = orders(&committed).into_iter().any(|serial| {
            let steps: Vec<String> =
                serial.iter().flat_map(|&at| parts[at].iter().map(|step| (*step).clone())).collect();
            if !known.contains_key(&steps) {
                let names: Vec<String> = steps.iter().map(|step| format!("\"{step}\"")).collect();
                let text = format!("{body}\npermutation {}\n", names.join(" "));
                let Some(printed) = serially(&text) else { return false };
                let Some((_, answers)) = permutations(&printed).pop() else { return false };
                known.insert(steps.clone(), answers);
            }
            let expected = &known[&steps];
            steps.iter().all(|step| expected.get(step) == answers.get(step))
        });
        if !explained {
            return Err(format!("no serial order answers the same as: {}", order.join(" ")));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::is_serializable;

    const SPEC: &str = "session s1\nstep r1 { a }\nstep w1 { b }\nsession s2\nstep r2 { a }\nstep w2 { b }\n";

    /// The tester's output when `r1` and `r2` read these values and nobody fails.
    fn printed(order: &str, first: u8, second: u8, error: &str) -> String {
        format!(
            "starting permutation: {order}\nstep r1: a\n{first}\nstep w1: b\nstep r2: a\n{second}\nstep w2: b\n{error}"
        )
    }

    /// Each reads what there is and adds one.
    fn serially(spec: &str) -> Option<String> {
        let order = spec.lines().last()?.strip_prefix("permutation ")?.replace('"', "");
        let first = u8::from(order.starts_with("r2"));
        let both = order.contains("r1") && order.contains("r2");
        Some(printed(&order, first, u8::from(both).saturating_sub(first), ""))
    }

    #[test]
    fn an_output_is_serializable_if_some_order_answers_the_same() {
        let order = "r1 w1 r2 w2";
        assert!(is_serializable(SPEC, &printed(order, 0, 1, ""), serially).is_ok());
        assert!(is_serializable(SPEC, &printed(order, 1, 0, ""), serially).is_ok());
        assert!(is_serializable(SPEC, &printed(order, 0, 0, ""), serially).is_err(), "a lost update");
        let refused = "ERROR:  could not serialize access due to concurrent update";
        assert!(is_serializable(SPEC, &printed(order, 0, 0, refused), serially).is_ok());
        let failed = "ERROR:  division by zero";
        assert!(is_serializable(SPEC, &printed(order, 0, 0, failed), serially).is_err());
        assert!(is_serializable(SPEC, &printed(order, 0, 1, failed), serially).is_err(), "no order fails so");
    }
}
