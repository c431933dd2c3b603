//! Suites of the languages of routines: `tests/language`, a file per section of PostgreSQL's
//! manual.
//!
//! A suite is SQL that psql could run. What stands before the first case prepares every case;
//! a case is a routine with its calls, in a session and an empty schema of its own. The lines
//! below a statement that begin with `-->` are what PostgreSQL answered:
//!
//! ```text
//! -- case: division
//! DO $$ BEGIN RAISE NOTICE '%', 1 / 0; END $$;
//! --> ERROR 22012: division by zero
//! -->   CONTEXT: SQL expression "1 / 0"
//! -->     PL/pgSQL function inline_code_block line 1 at RAISE
//! ```
//!
//! Notices come first, then rows below their columns' names, then the error; messages with every
//! field that a client can see but the file and line in the server's source.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::future::poll_fn;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::sync::mpsc::unbounded_channel;
use tokio_postgres::error::{DbError, ErrorPosition};
use tokio_postgres::{AsyncMessage, NoTls, SimpleQueryMessage};

use crate::regression::Scanner;

/// What begins a case; its title follows.
const CASE: &str = "-- case: ";
/// What begins a line of an answer.
const ANSWER: &str = "-->";
/// A statement without an answer after this long hangs.
const HANGS: Duration = Duration::from_secs(120);

/// One file.
pub struct Suite {
    /// The file's name without its ending.
    pub name: String,
    path: PathBuf,
    /// What comes before every case.
    preparation: Vec<Step>,
    pub cases: Vec<Case>,
}

/// A routine and its calls.
pub struct Case {
    pub title: String,
    pub steps: Vec<Step>,
}

/// A statement and what PostgreSQL answered.
pub struct Step {
    pub sql: String,
    pub answer: Vec<String>,
    /// The line of the file that ends it, from zero.
    last_line: usize,
}

impl Suite {
    /// Every suite of a folder of `tests`, in the order of their names: the manual's.
    pub fn all(folder: &str) -> Vec<Suite> {
        let mut paths: Vec<PathBuf> = std::fs::read_dir(crate::file(folder))
            .expect("the suites are there")
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|path| path.extension().is_some_and(|extension| extension == "sql"))
            .collect();
        paths.sort();
        assert!(!paths.is_empty(), "no suite found");
        paths.iter().map(|path| Suite::read(path)).collect()
    }

    fn read(path: &Path) -> Suite {
        let text = std::fs::read_to_string(path).expect("a suite can be read");
        let name = path.file_stem().expect("a file has a name").to_string_lossy().into_owned();
        let mut suite = Suite { name, path: path.to_owned(), preparation: Vec::new(), cases: Vec::new() };
        let (mut scanner, mut pending) = (Scanner::default(), Vec::new());
        for (number, line) in text.lines().enumerate() {
            if let Some(answer) = line.strip_prefix(ANSWER) {
                let step = suite.steps().last_mut().expect("an answer follows a statement");
                step.answer.push(answer.strip_prefix(' ').unwrap_or(answer).to_owned());
            } else if let Some(title) = line.strip_prefix(CASE) {
                suite.cases.push(Case { title: title.to_owned(), steps: Vec::new() });
                pending.clear();
            } else {
                pending.push(line);
                if scanner.line(line) && !within_atomic(&pending) {
                    let sql = std::mem::take(&mut pending).join("\n");
                    suite.steps().push(Step { sql, answer: Vec::new(), last_line: number });
                }
            }
        }
        assert!(pending.iter().all(|line| line.starts_with("--")), "{}: {pending:?}", path.display());
        suite
    }

    /// Where the next statement belongs.
    fn steps(&mut self) -> &mut Vec<Step> {
        match self.cases.last_mut() {
            Some(case) => &mut case.steps,
            None => &mut self.preparation,
        }
    }

    /// What a server answers to each step of a case, in an empty schema made ready for it.
    pub async fn run(&self, url: &str, case: &Case) -> Vec<Vec<String>> {
        let empty = ["DROP SCHEMA public CASCADE", "CREATE SCHEMA public"];
        let ready = empty.into_iter().chain(self.preparation.iter().map(|step| step.sql.as_str()));
        answers(url, ready, case).await
    }

    /// The same among what other cases left.
    pub async fn run_on(&self, url: &str, case: &Case) -> Vec<Vec<String>> {
        answers(url, std::iter::empty(), case).await
    }

    /// Writes the answers of PostgreSQL, case by case, into the file.
    pub fn record(&self, answers: &[Vec<Vec<String>>]) {
        let steps = self.cases.iter().flat_map(|case| &case.steps).map(|step| step.last_line);
        let answers: BTreeMap<usize, &Vec<String>> = steps.zip(answers.iter().flatten()).collect();
        let text = std::fs::read_to_string(&self.path).expect("a suite can be read");
        let mut written = String::new();
        for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.starts_with(ANSWER)) {
            // Writing to a String cannot fail.
            let _ = writeln!(written, "{line}");
            for answer in answers.get(&number).into_iter().copied().flatten() {
                let _ = writeln!(written, "{}", format!("{ANSWER} {answer}").trim_end());
            }
        }
        std::fs::write(&self.path, written).expect("a suite can be written");
    }
}

/// What a server answers to a case in a session of its own.
async fn answers(url: &str, ready: impl Iterator<Item = &str>, case: &Case) -> Vec<Vec<String>> {
    let mut session = match Session::open(url).await {
        Ok(session) => session,
        Err(error) => return vec![vec![format!("(no session: {error})")]; case.steps.len()],
    };
    for sql in ready {
        session.say(sql).await;
    }
    let mut answers = Vec::new();
    for step in &case.steps {
        answers.push(session.say(&step.sql).await);
    }
    answers
}

/// Whether a statement has a body `BEGIN ATOMIC … END` that these lines do not end.
fn within_atomic(lines: &[&str]) -> bool {
    let text = lines.join("\n").to_lowercase();
    text.contains("begin atomic") && !text.trim_end().ends_with("end;")
}

impl Case {
    /// Whether it deploys or runs a routine's body.
    pub fn has_routine(&self) -> bool {
        self.steps.iter().any(|step| {
            let words = shape(&step.sql);
            let words: Vec<&str> = words.split_whitespace().collect();
            let rest = words.strip_prefix(&["create", "or", "replace"]).or(words.strip_prefix(&["create"]));
            matches!(words.first(), Some(&"do" | &"call"))
                || matches!(rest.and_then(|rest| rest.first()), Some(&"function" | &"procedure" | &"trigger"))
        })
    }

    /// What it answers otherwise than PostgreSQL did, if anything.
    pub fn difference(&self, answers: &[Vec<String>]) -> Option<String> {
        let mut shown = String::new();
        for (step, answer) in self.steps.iter().zip(answers).filter(|(step, answer)| **answer != step.answer)
        {
            let (expected, answered) = (step.answer.join("\n"), answer.join("\n"));
            // Writing to a String cannot fail.
            let _ = writeln!(shown, "{}\n-- expected:\n{expected}\n-- answered:\n{answered}", step.sql);
        }
        (!shown.is_empty()).then_some(shown)
    }

    /// Its text without comments and spaces, and with every literal the same: cases that differ in
    /// nothing else are one case.
    pub fn shape(&self) -> String {
        self.steps.iter().map(|step| shape(&step.sql)).collect::<Vec<_>>().join(" ")
    }
}

/// How many cases are distinct, and have a routine.
pub fn distinct(cases: &[Case]) -> usize {
    cases.iter().filter(|case| case.has_routine()).map(Case::shape).collect::<BTreeSet<_>>().len()
}

/// A statement in lower case with literals, comments and spaces made alike.
pub fn shape(sql: &str) -> String {
    let mut shape = String::new();
    let mut rest = sql;
    let mut before = ' ';
    while let Some(next) = rest.chars().next() {
        let inside_word = before.is_alphanumeric() || matches!(before, '_' | '$');
        let length = if rest.starts_with("--") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").map_or(rest.len(), |end| end + 2)
        } else if next == '\'' {
            shape.push('?');
            rest[1..].find('\'').map_or(rest.len(), |end| end + 2)
        } else if next.is_ascii_digit() && !inside_word {
            shape.push('?');
            rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '.').unwrap_or(rest.len())
        } else {
            if !next.is_whitespace() {
                shape.extend(next.to_lowercase());
            } else if !shape.ends_with(' ') && !shape.is_empty() {
                shape.push(' ');
            }
            next.len_utf8()
        };
        before = rest[..length].chars().next_back().unwrap_or(next);
        rest = &rest[length..];
    }
    shape.trim_end().to_owned()
}

/// A session that hears what the server says beside its answers.
struct Session {
    client: tokio_postgres::Client,
    notices: tokio::sync::mpsc::UnboundedReceiver<DbError>,
}

impl Session {
    async fn open(url: &str) -> Result<Session, tokio_postgres::Error> {
        let (client, mut connection) = tokio_postgres::connect(url, NoTls).await?;
        let (send, notices) = unbounded_channel();
        tokio::spawn(async move {
            while let Some(Ok(message)) = poll_fn(|context| connection.poll_message(context)).await {
                if let AsyncMessage::Notice(notice) = message {
                    // Whoever has closed the session asks no more.
                    let _ = send.send(notice);
                }
            }
        });
        Ok(Session { client, notices })
    }

    /// The answer to a statement, line by line.
    async fn say(&mut self, sql: &str) -> Vec<String> {
        let Ok(answer) = tokio::time::timeout(HANGS, self.client.simple_query(sql)).await else {
            return vec![format!("(no answer in {HANGS:?})")];
        };
        let mut lines = Vec::new();
        while let Ok(notice) = self.notices.try_recv() {
            lines.extend(message_lines(&notice));
        }
        match answer {
            Ok(messages) => lines.extend(messages.iter().flat_map(|message| answer_line(sql, message))),
            Err(error) => match error.as_db_error() {
                Some(error) => lines.extend(message_lines(error)),
                None => lines.push(format!("({error})")),
            },
        }
        lines
    }
}

/// A line for the columns' names, a row, or how many rows a statement changed.
fn answer_line(sql: &str, message: &SimpleQueryMessage) -> Option<String> {
    match message {
        SimpleQueryMessage::RowDescription(columns) => {
            let names: Vec<&str> = columns.iter().map(|column| column.name()).collect();
            Some(names.join(" | "))
        }
        SimpleQueryMessage::Row(row) => {
            let values = (0..row.len()).map(|at| row.get(at).unwrap_or("<null>").replace('\n', "\\n"));
            Some(format!("  {}", values.collect::<Vec<_>>().join(" | ")).trim_end().to_owned())
        }
        SimpleQueryMessage::CommandComplete(count) => {
            let shape = shape(sql);
            let changes = ["insert ", "update ", "delete ", "merge "];
            changes.iter().any(|word| shape.starts_with(word)).then(|| format!("changed {count}"))
        }
        _ => None,
    }
}

/// An error or notice with all its fields.
fn message_lines(message: &DbError) -> Vec<String> {
    let mut lines = Vec::new();
    let head = format!("{} {}: {}", message.severity(), message.code().code(), message.message());
    let mut head = head.lines();
    lines.push(head.next().unwrap_or_default().trim_end().to_owned());
    lines.extend(head.map(|line| format!("    {line}").trim_end().to_owned()));
    let mut add = |name: &str, value: Option<&str>| {
        let Some(value) = value else { return };
        let mut values = value.split('\n');
        lines.push(format!("  {name}: {}", values.next().unwrap_or_default()).trim_end().to_owned());
        lines.extend(values.map(|line| format!("    {line}").trim_end().to_owned()));
    };
    add("DETAIL", message.detail());
    add("HINT", message.hint());
    match message.position() {
        Some(ErrorPosition::Original(position)) => add("POSITION", Some(&position.to_string())),
        Some(ErrorPosition::Internal { position, query }) => {
            add("QUERY", Some(query.as_str()));
            add("AT", Some(&position.to_string()));
        }
        None => {}
    }
    add("CONTEXT", message.where_());
    add("SCHEMA", message.schema());
    add("TABLE", message.table());
    add("COLUMN", message.column());
    add("DATATYPE", message.datatype());
    add("CONSTRAINT", message.constraint());
    lines
}

#[cfg(test)]
mod tests {
    use super::shape;

    #[test]
    fn literals_and_comments_make_no_difference() {
        let one = "DO $$ BEGIN -- why\n  RAISE NOTICE 'a %', x1 + 25; /* not */ END $$;";
        assert_eq!(shape(one), "do $$ begin raise notice ?, x1 + ?; end $$;");
        assert_eq!(shape(one), shape("do $$ begin raise notice 'b', x1 + 1.5e3; end $$;"));
        assert_ne!(shape(one), shape("do $$ begin raise notice 'b', x2 + 1; end $$;"));
    }
}
