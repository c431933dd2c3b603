//! PostgreSQL's own regression files against a server, statement by statement.
//!
//! `psql -a` echoes every line of a file before it answers, in PostgreSQL's expected outputs as
//! in ours, so that both can be cut at the same places: a statement's answer is what stands
//! between the line that ends it and the next line of the file.

use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::postgres;
use crate::server::Server;

/// How long one file may take.
const FILE_LIMIT: Duration = Duration::from_secs(600);

/// PostgreSQL's regression files, made ready by `tests/postgresql/prepare`.
pub struct Suite {
    directory: PathBuf,
}

/// One statement, or several that share a line.
pub struct Statement {
    /// Its lines, with comments before it.
    pub text: String,
    /// Whether psql shows its lines: not between `\set ECHO none` and `\set ECHO all`.
    shown: bool,
}

impl Statement {
    /// Whether its answer counts: it has lines to be told by, and is no plan, which is the server's own
    /// affair.
    pub fn counts(&self) -> bool {
        self.shown && !self.explains()
    }

    fn explains(&self) -> bool {
        let code = self.text.lines().map(str::trim).find(|line| !line.is_empty() && !line.starts_with("--"));
        code.is_some_and(|line| line.get(..7).is_some_and(|word| word.eq_ignore_ascii_case("explain")))
    }
}

/// What a file's statements answered, one text each; shorter if the session ended before.
pub type Answers = Vec<String>;

impl Suite {
    /// Downloads the files unless that is done.
    pub fn prepare() -> Suite {
        Suite { directory: postgres::tests().join("regress") }
    }

    /// The files in the order of PostgreSQL's own runs: later ones use what earlier ones made.
    pub fn schedule(&self) -> Vec<String> {
        let schedule =
            std::fs::read_to_string(self.directory.join("parallel_schedule")).expect("the schedule is there");
        let groups = schedule.lines().filter_map(|line| line.strip_prefix("test:"));
        let names = groups.flat_map(str::split_whitespace).map(str::to_owned);
        names.filter(|name| self.file(name).exists()).collect()
    }

    fn file(&self, name: &str) -> PathBuf {
        self.directory.join(format!("sql/{name}.sql"))
    }

    /// A file's statements in order.
    pub fn statements(&self, name: &str) -> Vec<Statement> {
        statements(&String::from_utf8_lossy(&std::fs::read(self.file(name)).expect("the file is there")))
    }

    /// What PostgreSQL's tests accept as its answers: one or more alternatives.
    pub fn expected(&self, name: &str, statements: &[Statement]) -> Vec<Answers> {
        let alternatives = (1..10).map(|number| format!("expected/{name}_{number}.out"));
        std::iter::once(format!("expected/{name}.out"))
            .chain(alternatives)
            .filter_map(|path| std::fs::read(self.directory.join(path)).ok())
            .map(|output| answers(statements, &String::from_utf8_lossy(&output)))
            .collect()
    }

    /// Runs a file as PostgreSQL's own runs do. A session that hangs is ended.
    pub fn run(&self, name: &str, statements: &[Statement], server: &Server) -> Answers {
        let folder = tempfile::tempdir().expect("a temporary directory can be made");
        let printed = folder.path().join("printed");
        let output = std::fs::File::create(&printed).expect("a file can be made");
        let mut child = Command::new("psql")
            .args(["-X", "-a", "-q", "-v", "HIDE_TABLEAM=on", "-v", "HIDE_TOAST_COMPRESSION=on"])
            .args(["-d", &server.url()])
            .current_dir(folder.path())
            .env("PGAPPNAME", format!("pg_regress/{name}"))
            .env("PGTZ", "America/Los_Angeles")
            .env("PGDATESTYLE", "Postgres, MDY")
            // What runs for ever on one server only must not keep the file from its end.
            .env("PGOPTIONS", "-c intervalstyle=postgres_verbose -c statement_timeout=15s")
            .env("PG_ABS_SRCDIR", &self.directory)
            .env("PG_ABS_BUILDDIR", folder.path())
            .env("PG_LIBDIR", "/nonexistent")
            .env("PG_DLSUFFIX", ".so")
            .stdin(std::fs::File::open(self.file(name)).expect("the file is there"))
            .stdout(output.try_clone().expect("a file can be opened twice"))
            .stderr(output)
            .spawn()
            .expect("psql is installed");
        let started = Instant::now();
        while child.try_wait().expect("psql can be asked").is_none() {
            if started.elapsed() > FILE_LIMIT {
                let _ = child.kill();
                let _ = child.wait();
                break;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        let printed = std::fs::read(&printed).expect("the output is there");
        answers(statements, &String::from_utf8_lossy(&printed))
    }
}

/// Cuts a file into statements, where psql would.
pub fn statements(text: &str) -> Vec<Statement> {
    let mut found = Vec::new();
    let (mut scanner, mut first, mut copied) = (Scanner::default(), 0, false);
    let mut shown = true;
    let lines: Vec<&str> = text.lines().collect();
    for (number, line) in lines.iter().enumerate() {
        if copied {
            copied = *line != "\\.";
            if copied {
                continue;
            }
            first = number + 1;
            continue;
        }
        if !scanner.line(line) {
            continue;
        }
        let text = lines[first..=number].join("\n");
        copied = copies(line);
        found.push(Statement { text, shown });
        match *line {
            "\\set ECHO none" => shown = false,
            "\\set ECHO all" => shown = true,
            _ => {}
        }
        first = number + 1;
    }
    found
}

/// Whether the lines after this one, which ends a statement, are data.
fn copies(line: &str) -> bool {
    let code = line.split("--").next().unwrap_or(line).trim_end().to_lowercase();
    // PostgreSQL reads FROM STDOUT so, too.
    let reads = code.contains("from stdin") || code.contains("from stdout");
    reads && (code.ends_with(';') || code.starts_with("\\copy"))
}

/// What psql's own scanner knows at the end of a line.
#[derive(Default)]
pub(crate) struct Scanner {
    /// What ends the quotation that is open.
    quote: Option<String>,
    /// In an escape string a backslash takes the next character along.
    escapes: bool,
    comments: usize,
    parentheses: usize,
    /// Whether a statement has begun and not ended.
    open: bool,
}

impl Scanner {
    /// Reads a line; whether a statement or a command of psql's ends with it.
    pub(crate) fn line(&mut self, line: &str) -> bool {
        let mut ended = false;
        let mut rest = line;
        let mut before = ' ';
        while let Some(next) = rest.chars().next() {
            if let Some(quote) = &self.quote {
                if self.escapes && next == '\\' {
                    rest = rest.get(2..).unwrap_or_default();
                } else if let Some(after) = rest.strip_prefix(quote.as_str()) {
                    rest = after;
                    self.quote = None;
                } else {
                    rest = &rest[next.len_utf8()..];
                }
                continue;
            }
            if self.comments > 0 {
                if let Some(after) = rest.strip_prefix("*/") {
                    (self.comments, rest) = (self.comments - 1, after);
                } else if let Some(after) = rest.strip_prefix("/*") {
                    (self.comments, rest) = (self.comments + 1, after);
                } else {
                    rest = &rest[next.len_utf8()..];
                }
                continue;
            }
            if rest.starts_with("--") {
                break;
            }
            if let Some(after) = rest.strip_prefix("/*") {
                (self.comments, rest) = (1, after);
                continue;
            }
            match next {
                '\'' | '"' => {
                    self.quote = Some(next.to_string());
                    self.escapes = next == '\'' && matches!(before, 'e' | 'E');
                    self.open = true;
                }
                '$' if !before.is_alphanumeric() && before != '_' => {
                    let name = rest[1..].find('$').map(|end| &rest[..end + 2]);
                    let tag = name.filter(|tag| {
                        let inner = &tag[1..tag.len() - 1];
                        !inner.starts_with(|c: char| c.is_ascii_digit())
                            && inner.chars().all(|c| c.is_alphanumeric() || c == '_')
                    });
                    if let Some(tag) = tag {
                        self.quote = Some(tag.to_owned());
                        self.escapes = false;
                        self.open = true;
                        (rest, before) = (&rest[tag.len()..], '$');
                        continue;
                    }
                }
                '(' => (self.parentheses, self.open) = (self.parentheses + 1, true),
                ')' => self.parentheses = self.parentheses.saturating_sub(1),
                ';' if self.parentheses == 0 && before != '\\' => (ended, self.open) = (true, false),
                '\\' if !rest.starts_with("\\;") => {
                    // A command of psql's goes to the end of its line.
                    let sends =
                        ["\\g", "\\crosstabview", "\\watch"].iter().any(|word| rest.starts_with(word));
                    if sends || !self.open {
                        self.open = false;
                        self.parentheses = 0;
                    }
                    return !self.open;
                }
                other if !other.is_whitespace() => self.open = true,
                _ => {}
            }
            before = next;
            rest = &rest[next.len_utf8()..];
        }
        ended && !self.open
    }
}

/// Cuts what psql printed where it echoes the statements' lines.
fn answers(statements: &[Statement], printed: &str) -> Answers {
    let echoed: Vec<(usize, &str)> = statements
        .iter()
        .enumerate()
        .filter(|(_, statement)| statement.shown)
        .flat_map(|(number, statement)| statement.text.lines().map(move |line| (number, line)))
        .collect();
    let mut found: Answers = Vec::new();
    let mut next = 0;
    for line in printed.lines() {
        // psql leaves out empty lines between statements.
        let empty = echoed[next.min(echoed.len())..].iter().take_while(|(_, line)| line.is_empty()).count();
        let at = if line.is_empty() { next } else { next + empty };
        match echoed.get(at) {
            Some((number, text)) if *text == line => {
                found.resize(number + 1, String::new());
                next = at + 1;
            }
            _ => {
                if let Some(answer) = found.last_mut() {
                    answer.push_str(line.trim_end());
                    answer.push('\n');
                }
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::{answers, statements};

    #[test]
    fn a_file_is_cut_where_psql_would() {
        let file = "-- a comment; really\nSELECT 1;\n\nSELECT ';' AS \";\",\n  (2);\n\\set a b\n\
                    CREATE FUNCTION f() AS $x$\n  SELECT 1; $$ $y$\n$x$;\nSELECT E'\\';', 3 \\gset\n\
                    COPY t FROM stdin;\t-- fails\n1;\n\\.\nSELECT 4; SELECT 5;\n/* a /* b; */ c; */ SELECT 6;\n";
        let texts: Vec<String> = statements(file).into_iter().map(|statement| statement.text).collect();
        let expected = [
            "-- a comment; really\nSELECT 1;",
            "\nSELECT ';' AS \";\",\n  (2);",
            "\\set a b",
            "CREATE FUNCTION f() AS $x$\n  SELECT 1; $$ $y$\n$x$;",
            "SELECT E'\\';', 3 \\gset",
            "COPY t FROM stdin;\t-- fails",
            "SELECT 4; SELECT 5;",
            "/* a /* b; */ c; */ SELECT 6;",
        ];
        assert_eq!(texts, expected);
    }

    #[test]
    fn what_psql_does_not_show_has_no_answer() {
        let statements = statements("SELECT 1;\n\\set ECHO none\nSELECT 2;\n\\set ECHO all\nSELECT 3;\n");
        let printed = "SELECT 1;\n one\n\\set ECHO none\n two\nSELECT 3;\n three\n";
        assert_eq!(answers(&statements, printed), [" one\n", " two\n", "", "", " three\n"]);
        let counted: Vec<bool> = statements.iter().map(|statement| statement.counts()).collect();
        assert_eq!(counted, [true, true, false, false, true]);
    }

    #[test]
    fn an_answer_stands_between_two_echoes() {
        let statements = statements("SELECT 1;\n\n-- two\nSELECT\n 2;\n\\d\n");
        let printed = "SELECT 1;\n one\n\n-- two\nSELECT\n 2;\n two\n";
        assert_eq!(answers(&statements, printed), [" one\n", " two\n"]);
    }
}
