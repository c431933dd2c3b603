//! Every message of `tests/protocol/messages.txt` in every state of `tests/protocol/states.txt`: what is
//! answered, with which SQLSTATE, whether the connection goes on, and in which state.
//!
//! `tests/protocol/answers.txt` holds what PostgreSQL 15 answers; `ARCHIPEL_TEST_RECORD=1` writes it anew, and
//! `tests/run --long` asks PostgreSQL again. Each message is sent twice: in one piece with what follows it,
//! and in small ones, which are single bytes in the long form.

use std::collections::BTreeMap;
use std::fmt::Write;

use archipel_tests::postgres::Postgres;
use archipel_tests::protocol::{Received, Step, Wire, lines, message, step, told};
use archipel_tests::server::Server;

/// Who has to show what, for states before a session has begun.
const RULES: &str = include_str!("../protocol/pg_hba.conf");
/// What follows a message: the end of whatever it has begun, and an empty statement, whose answer no other
/// message has.
const PROBE: [&str; 4] = ["Sync", "CopyFail \"probe\"", "Sync", "Query \"\""];
/// The messages that a state does not name.
const OTHERS: &str = "all others";
/// The pieces of a message that is not sent at once: no head of a message fits into one.
const PIECE_BYTES: usize = 4;
/// So wide are the lines of the answers.
const WIDTH: usize = 108;

/// A state, and what leads there.
struct State {
    name: String,
    steps: Vec<Step>,
}

impl State {
    /// Whether it is one before the client is known.
    fn is_early(&self) -> bool {
        !self.steps.contains(&Step::Await(b'Z'))
    }
}

/// A message and its name.
struct Sent {
    name: String,
    bytes: Vec<u8>,
    /// Whether it asks for encryption, which is answered without a frame.
    is_request: bool,
}

/// The answers in a state, by the names of messages.
type Answers = BTreeMap<String, BTreeMap<String, String>>;

fn states() -> Vec<State> {
    let mut states: Vec<State> = Vec::new();
    for line in lines(&archipel_tests::file("protocol/states.txt")) {
        match line.strip_prefix('[') {
            Some(name) => {
                states.push(State { name: name.trim_end_matches(']').to_owned(), steps: Vec::new() });
            }
            None => states.last_mut().expect("a state begins with its name").steps.push(step(&line)),
        }
    }
    states
}

fn messages() -> Vec<Sent> {
    let lines = lines(&archipel_tests::file("protocol/messages.txt"));
    let sent = lines.iter().map(|line| {
        let (name, text) = line.split_once(": ").expect("a message has a name");
        let is_request = text.starts_with("SSLRequest");
        Sent { name: name.to_owned(), bytes: message(text), is_request }
    });
    sent.collect()
}

/// What a server answers to a message in a state, and to the probe behind it.
fn answer(port: u16, state: &State, sent: &Sent, piece: usize) -> String {
    let mut wire = Wire::connect(port);
    state.steps.iter().for_each(|step| wire.take(step));
    let early = state.is_early();
    let mut bytes = sent.bytes.clone();
    if !early {
        PROBE.iter().for_each(|line| bytes.extend(message(line)));
    }
    bytes.chunks(piece).for_each(|piece| wire.send(piece));
    let mut all: Vec<String> = Vec::new();
    if early {
        wire.half_close();
        if sent.is_request
            && let Some(byte) = wire.byte()
        {
            // `E` begins a message.
            if byte == b'E' {
                wire.put_back(byte);
            } else {
                all.push(format!("byte {}", byte as char));
            }
        }
    }
    let mut empty = false;
    loop {
        let Received::Message(kind, body) = wire.receive() else {
            all.push("closed".to_owned());
            return all.join(" ");
        };
        // What a session begins with.
        if matches!(kind, b'S' | b'K') {
            continue;
        }
        empty |= kind == b'I';
        all.push(told(kind, &body));
        if empty && kind == b'Z' {
            return all.join(" ");
        }
    }
}

/// All answers of a server.
fn answers(port: u16, piece: usize) -> Answers {
    let sent = messages();
    let ask = |state: State| {
        let told = sent.iter().map(|sent| (sent.name.clone(), answer(port, &state, sent, piece))).collect();
        (state.name, told)
    };
    states().into_iter().map(ask).collect()
}

/// The answers as text: those of a state one after the other, each with the messages that get it, and the one
/// that most get last.
fn written(answers: &Answers) -> String {
    let mut text = String::from(
        "# What PostgreSQL 15 answers to each message of messages.txt in each state of states.txt, and to what\n\
         # tests/tests/protocol_matrix.rs sends behind it. Written with ARCHIPEL_TEST_RECORD=1.\n",
    );
    for (state, told) in answers {
        let _ = write!(text, "\n[{state}]\n");
        let mut by_answer: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (message, answer) in told {
            by_answer.entry(answer).or_default().push(message);
        }
        let most = by_answer.iter().max_by_key(|(_, messages)| messages.len()).map(|(answer, _)| *answer);
        for (answer, messages) in by_answer.iter().filter(|(answer, _)| Some(**answer) != most) {
            let _ = writeln!(text, "{answer}");
            let mut line = String::new();
            for message in messages {
                if !line.is_empty() && line.len() + message.len() > WIDTH {
                    let _ = writeln!(text, "    {line};");
                    line.clear();
                }
                if !line.is_empty() {
                    line.push_str("; ");
                }
                line.push_str(message);
            }
            let _ = writeln!(text, "    {line}");
        }
        if let Some(most) = most {
            let _ = writeln!(text, "{most}\n    {OTHERS}");
        }
    }
    text
}

/// The answers that the file holds.
fn recorded() -> Answers {
    let names: Vec<String> = messages().into_iter().map(|sent| sent.name).collect();
    let mut answers = Answers::new();
    let (mut state, mut answer) = (String::new(), String::new());
    for line in lines(&archipel_tests::file("protocol/answers.txt")) {
        if let Some(name) = line.strip_prefix('[') {
            state = name.trim_end_matches(']').to_owned();
        } else if let Some(messages) = line.strip_prefix("    ") {
            let told = answers.entry(state.clone()).or_default();
            for message in messages.trim_end_matches(';').split("; ") {
                if message == OTHERS {
                    for name in &names {
                        told.entry(name.clone()).or_insert_with(|| answer.clone());
                    }
                } else {
                    told.insert(message.to_owned(), answer.clone());
                }
            }
        } else {
            answer = line;
        }
    }
    answers
}

/// Whether Archipel may answer this where PostgreSQL answers that.
///
/// - What PostgreSQL only writes to its log before it closes the connection, Archipel tells: a length that
///   no message has.
/// - What PostgreSQL calls an internal error has a state: a parameter of a type that is not.
/// - Names are UTF8 before anybody is looked for by them.
fn agrees(state: &str, message: &str, postgresql: &str, archipel: &str) -> bool {
    let is_unopened = matches!(state, "before startup" | "after a refused SSLRequest");
    let takes_leave = message == "cancel request" || (message.starts_with("terminate") && !is_unopened);
    let is_closed = postgresql.ends_with("closed") && !postgresql.contains("FATAL") && !takes_leave;
    let has_wrong_length = message.starts_with("length ");
    archipel == postgresql
        || archipel == postgresql.replace("XX000", "42704")
        || (message == "startup, invalid bytes" && archipel == "FATAL 22021 closed")
        || (archipel.ends_with("FATAL 08P01 closed") && (is_closed || has_wrong_length))
}

/// What does not agree with the file, one line each.
fn differences(told: &Answers, agree: impl Fn(&str, &str, &str, &str) -> bool) -> Vec<String> {
    let recorded = recorded();
    let mut found = Vec::new();
    for (state, messages) in told {
        for (message, answer) in messages {
            match recorded.get(state).and_then(|messages| messages.get(message)) {
                Some(expected) if agree(state, message, expected, answer) => {}
                expected => found.push(format!("[{state}] {message}: {answer}\n    recorded: {expected:?}")),
            }
        }
    }
    found
}

/// The tables and roles that the messages are about.
async fn prepare(client: &tokio_postgres::Client) {
    let text = include_str!("../protocol/prepare.sql");
    client.batch_execute(text).await.expect("the tables can be made");
}

#[tokio::test]
async fn messages_are_answered_in_every_state_as_postgresql_does() {
    let recording = std::env::var_os("ARCHIPEL_TEST_RECORD").is_some_and(|value| value == "1");
    if recording || archipel_tests::long() {
        let postgres = Postgres::start_with_rules(RULES);
        prepare(&archipel_tests::server::connect(&postgres.url()).await).await;
        let told = answers(postgres.port(), usize::MAX);
        if recording {
            let path = archipel_tests::file("protocol/answers.txt");
            std::fs::write(path, written(&told)).expect("the answers can be written");
            return;
        }
        let differences = differences(&told, |_, _, recorded, told| recorded == told);
        assert!(differences.is_empty(), "PostgreSQL:\n{}", differences.join("\n"));
    }
    let rules = tempfile::NamedTempFile::new().expect("a temporary file can be made");
    std::fs::write(rules.path(), RULES).expect("the rules can be written");
    let mut server = Server::start(&[&format!("hba_file={}", rules.path().display())]);
    prepare(&server.connect().await).await;
    let pieces = if archipel_tests::long() { [usize::MAX, 1] } else { [usize::MAX, PIECE_BYTES] };
    for piece in pieces {
        let differences = differences(&answers(server.port(), piece), agrees);
        assert!(differences.is_empty(), "in pieces of {piece}:\n{}", differences.join("\n"));
    }
    assert!(server.alive() && !server.log().contains("panicked"), "{}", server.log());
}
