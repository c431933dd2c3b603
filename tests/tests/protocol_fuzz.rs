//! Broken conversations: captures of sessions (`tests/protocol/corpus`) with messages lost, doubled, swapped,
//! cut, taken from elsewhere, with wrong lengths and counts and flipped bits; sent in one piece, in pieces, byte
//! by byte; by clients that leave in the middle, or never read.
//!
//! Nobody knows what each of them should be answered; `protocol_matrix` says that of whole messages. But it has
//! to be answered in the protocol, with errors that have a state of their own (an XX000 is a fault of ours), the
//! connection has to end when the client has said that it sends no more, and a session beside it is served
//! meanwhile. In the end nothing has panicked, as many sessions are left as before, and memory is bounded.

use std::io::Write;
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

use archipel_tests::protocol::{PATIENCE, Received, Step, Wire, field, lines, message, step};
use archipel_tests::server::Server;
use rand::rngs::StdRng;
use rand::seq::{IndexedRandom, SliceRandom};
use rand::{RngExt, SeedableRng};

/// How many broken conversations, for CI and for `tests/run --long`. They come from the seed
/// `ARCHIPEL_TEST_SEED`, or else from [`SEED`].
const CONVERSATIONS: (usize, usize) = (2_000, 100_000);
const SEED: u64 = 29;
/// So many are held at the same time: who fails to log in has to wait.
const TALKERS: usize = 4;
/// Nobody reads more of them.
const FAULTS_SHOWN: usize = 20;
/// How many statements a session prepares and never closes.
const STATEMENTS: (usize, usize) = (10_000, 1_000_000);
/// Clients that never read, and the bytes that each has asked for.
const DEAF_CLIENTS: usize = 8;
const ASKED_BYTES: usize = 1 << 30;
const MEMORY_BYTES_MAX: u64 = 2 << 30;
/// Conversations of more bytes are not sent byte by byte.
const BYTES_ALONE_MAX: usize = 2_000;
/// Numbers that lengths and counts must not trust.
const NUMBERS: [u32; 14] =
    [0, 1, 3, 4, 5, 127, 255, 0x7fff, 0x8000, 0xffff, 0x0100_0000, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff];
/// Bytes that messages begin with, and some that none does.
const KINDS: &[u8] = b"QPBDECSHXdcfFpGRZN?\0\xff";

/// A conversation: the messages of the client.
type Conversation = Vec<Vec<u8>>;

fn corpus() -> Vec<Conversation> {
    let mut paths: Vec<_> = std::fs::read_dir(archipel_tests::file("protocol/corpus"))
        .expect("the corpus is there")
        .filter_map(|entry| Some(entry.ok()?.path()))
        .collect();
    // The order of a directory is anything.
    paths.sort();
    let sent = |line: &String| match step(line) {
        Step::Send(bytes) => Some(bytes),
        Step::Await(_) | Step::AwaitByte => None,
    };
    paths.iter().map(|path| lines(path).iter().filter_map(sent).collect()).collect()
}

fn seed() -> u64 {
    std::env::var("ARCHIPEL_TEST_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(SEED)
}

/// Changes a message: its length stays what it said, unless it is mended.
fn spoil(bytes: &mut Vec<u8>, random: &mut StdRng) {
    if bytes.is_empty() {
        return;
    }
    let at = random.random_range(0..bytes.len());
    let number = *NUMBERS.choose(random).expect("there are some");
    match random.random_range(0..10) {
        0 => bytes[at] ^= 1 << random.random_range(0..8),
        1 => bytes[at] = random.random(),
        2 if bytes.len() >= at + 4 => bytes[at..at + 4].copy_from_slice(&number.to_be_bytes()),
        3 if bytes.len() >= at + 2 => bytes[at..at + 2].copy_from_slice(&(number as u16).to_be_bytes()),
        4 => drop(bytes.drain(at..(at + random.random_range(1..8)).min(bytes.len()))),
        5 => drop(bytes.splice(at..at, (0..random.random_range(1..40)).map(|_| b'a'))),
        6 => bytes.truncate(at),
        7 => bytes.retain(|byte| *byte != 0),
        8 => bytes.push(0),
        _ => bytes[0] = *KINDS.choose(random).expect("there are some"),
    }
}

/// Makes the length of a message what it is.
fn mend_length(bytes: &mut [u8]) {
    let length = bytes.len() as u32 - 1;
    if let Some(field) = bytes.get_mut(1..5) {
        field.copy_from_slice(&length.to_be_bytes());
    }
}

/// Makes the length of a message wrong.
fn wrong_length(bytes: &mut [u8], random: &mut StdRng) {
    let Some(field) = bytes.get_mut(1..5) else { return };
    let length = i32::from_be_bytes([field[0], field[1], field[2], field[3]]);
    let wrong = [0, -1, 3, i32::MAX, length.wrapping_add(1), length.wrapping_sub(1), 10_001];
    field.copy_from_slice(&wrong.choose(random).expect("there are some").to_be_bytes());
}

/// A conversation with a few things changed; `corpus` is where messages come from.
fn broken(mut messages: Conversation, corpus: &[Conversation], random: &mut StdRng) -> Conversation {
    for _ in 0..random.random_range(1..=3) {
        // What opens a session is seldom changed: nothing else would be reached.
        let first = usize::from(messages.len() > 1 && random.random_ratio(9, 10));
        if first >= messages.len() {
            break;
        }
        let at = random.random_range(first..messages.len());
        match random.random_range(0..11) {
            0 => drop(messages.remove(at)),
            1 => messages.insert(at, messages[at].clone()),
            2 => {
                let other = random.random_range(first..messages.len());
                messages.swap(at, other);
            }
            3 | 4 => {
                let other = corpus.choose(random).and_then(|messages| messages.choose(random));
                messages.insert(at, other.cloned().unwrap_or_default());
            }
            5 => messages.truncate(at),
            6 => wrong_length(&mut messages[at], random),
            7 => spoil(&mut messages[at], random),
            8 => {
                // A name or a text of a megabyte.
                let place = messages[at].len().min(5);
                messages[at].splice(place..place, std::iter::repeat_n(b'n', 1 << 20));
                mend_length(&mut messages[at]);
            }
            _ => {
                spoil(&mut messages[at], random);
                if messages[at].len() >= 5 {
                    mend_length(&mut messages[at]);
                }
            }
        }
    }
    messages
}

/// Reads to the end of a connection; what is wrong with what has come, if something is.
fn faults(wire: &mut Wire) -> Vec<String> {
    let mut faults = Vec::new();
    while let Received::Message(kind, body) = wire.receive() {
        match kind {
            b'E' | b'N' => {
                let state = field(&body, b'C').unwrap_or_default();
                if state.len() != 5 || state == "XX000" {
                    faults.push(format!("{state:?}: {}", field(&body, b'M').unwrap_or_default()));
                }
            }
            b'R' | b'S' | b'K' | b'Z' | b'T' | b'D' | b'C' | b'I' | b'1' | b'2' | b'3' | b't' | b'n'
            | b's' | b'G' | b'H' | b'd' | b'c' | b'A' | b'V' | b'v' => {}
            // It is not encrypted, and says so.
            other => faults.push(format!("no server sends {:?}", other as char)),
        }
    }
    faults
}

/// Asks a session that is beside all this.
fn ask(bystander: &mut Wire) {
    let told = bystander.query("SELECT count(*) >= 0 FROM sink");
    assert!(told.iter().any(|(kind, _)| *kind == b'D'), "a session beside it is not served: {told:?}");
}

/// How a conversation is sent.
#[derive(Clone, Copy)]
enum Way {
    AtOnce,
    ByMessage,
    ByByte,
    /// The first so many bytes, and the rest a little later.
    InTwo(usize),
}

/// Sends a conversation, and says that no more will come. A server that has left needs no more.
fn send(mut stream: TcpStream, messages: &[Vec<u8>], way: Way) -> std::io::Result<()> {
    let bytes = messages.concat();
    match way {
        Way::AtOnce => stream.write_all(&bytes)?,
        Way::ByMessage => messages.iter().try_for_each(|message| stream.write_all(message))?,
        Way::ByByte => bytes.chunks(1).try_for_each(|byte| stream.write_all(byte))?,
        Way::InTwo(at) => {
            stream.write_all(&bytes[..at])?;
            std::thread::sleep(Duration::from_millis(2));
            stream.write_all(&bytes[at..])?;
        }
    }
    stream.shutdown(Shutdown::Write)
}

/// Sends a conversation, and answers what is wrong with the answers.
fn hold(port: u16, messages: &[Vec<u8>], bystander: &mut Wire, random: &mut StdRng) -> Vec<String> {
    let length = messages.iter().map(Vec::len).sum();
    let way = match random.random_range(0..6) {
        0 if length <= BYTES_ALONE_MAX => Way::ByByte,
        1 => Way::ByMessage,
        2 => Way::InTwo(random.random_range(0..=length)),
        _ => Way::AtOnce,
    };
    let leaves = random.random_ratio(1, 8);
    let mut wire = Wire::connect(port);
    let stream = wire.stream();
    std::thread::scope(|scope| {
        // A server that waits for its answers to be read does not read, either.
        scope.spawn(move || send(stream, messages, way));
        ask(bystander);
        // Some leave without a word.
        if leaves {
            wire.leave();
            return Vec::new();
        }
        // What the answer to a request for encryption begins with, is the kind of a message too.
        match wire.byte() {
            None | Some(b'N') => {}
            Some(byte) => wire.put_back(byte),
        }
        faults(&mut wire)
    })
}

/// How many sessions there are.
fn sessions(bystander: &mut Wire) -> String {
    let told = bystander.query("SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'");
    let row = told.into_iter().find(|(kind, _)| *kind == b'D').map(|(_, body)| body);
    String::from_utf8_lossy(row.unwrap_or_default().get(6..).unwrap_or_default()).into_owned()
}

/// Waits until so many sessions are left.
fn wait_for_sessions(bystander: &mut Wire, count: &str) {
    let begun = Instant::now();
    loop {
        let left = sessions(bystander);
        if left == count {
            return;
        }
        assert!(begun.elapsed() < PATIENCE, "{left} sessions are left, not {count}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A server, and a session beside what is tried with it.
fn prepared(settings: &[&str]) -> (Server, Wire) {
    let server = Server::start(settings);
    let mut bystander = Wire::session(server.port());
    let told = bystander.query(include_str!("../protocol/prepare.sql"));
    assert!(told.iter().all(|(kind, _)| *kind != b'E'), "{told:?}");
    (server, bystander)
}

/// That nothing of what was tried is left.
fn recovered(server: &mut Server, bystander: &mut Wire, sessions: &str, seed: u64) {
    wait_for_sessions(bystander, sessions);
    assert!(server.alive(), "seed {seed}: the server has ended:\n{}", server.log());
    assert!(!server.log().contains("panicked"), "seed {seed}:\n{}", server.log());
    let memory = server.memory_bytes();
    assert!(memory < MEMORY_BYTES_MAX, "seed {seed}: {memory} bytes");
}

/// Holds broken conversations one after the other; what is wrong with their answers.
fn converse(port: u16, corpus: &[Conversation], count: usize, random: &mut StdRng) -> Vec<String> {
    let mut bystander = Wire::session(port);
    let mut wrong = Vec::new();
    let mut order: Vec<usize> = (0..corpus.len()).collect();
    for number in 0..count {
        if number % order.len() == 0 {
            order.shuffle(random);
        }
        let whole = corpus[order[number % order.len()]].clone();
        let messages = broken(whole, corpus, random);
        for fault in hold(port, &messages, &mut bystander, random) {
            let sent: String = String::from_utf8_lossy(&messages.concat()).chars().take(500).collect();
            wrong.push(format!("{number}: {fault}\n  {sent:?}"));
        }
        if wrong.len() >= FAULTS_SHOWN {
            break;
        }
    }
    wrong
}

#[test]
fn broken_conversations_are_answered_and_nothing_breaks() {
    let seed = seed();
    println!("seed {seed}");
    let count = if archipel_tests::long() { CONVERSATIONS.1 } else { CONVERSATIONS.0 };
    let rules = tempfile::NamedTempFile::new().expect("a temporary file can be made");
    std::fs::write(rules.path(), include_str!("../protocol/pg_hba.conf")).expect("the rules can be written");
    let (mut server, mut bystander) = prepared(&[&format!("hba_file={}", rules.path().display())]);
    let before = sessions(&mut bystander);
    let (corpus, port) = (corpus(), server.port());
    let wrong: Vec<String> = std::thread::scope(|scope| {
        let corpus = &corpus;
        let talk = |number| {
            let mut random = StdRng::seed_from_u64(seed.wrapping_add(number));
            scope.spawn(move || converse(port, corpus, count / TALKERS, &mut random))
        };
        let talkers: Vec<_> = (0..TALKERS as u64).map(talk).collect();
        talkers.into_iter().flat_map(|talker| talker.join().expect("a talker goes on")).collect()
    });
    assert!(server.alive(), "seed {seed}: the server has ended:\n{}", server.log());
    assert!(wrong.is_empty(), "seed {seed}:\n{}", wrong.join("\n"));
    recovered(&mut server, &mut bystander, &before, seed);
}

#[test]
fn clients_that_never_read_keep_nothing_but_their_own_session() {
    let (mut server, mut bystander) = prepared(&[]);
    let before = sessions(&mut bystander);
    let rows = ASKED_BYTES / 1000;
    let queries = [
        format!("SELECT repeat('x', 1000) FROM generate_series(1, {rows})"),
        format!("COPY (SELECT repeat('x', 1000) FROM generate_series(1, {rows})) TO STDOUT"),
    ];
    let deaf: Vec<Wire> = (0..DEAF_CLIENTS)
        .map(|number| {
            let mut wire = Wire::session(server.port());
            wire.send(&message(&format!(
                "Query \"{}\"",
                queries[number % queries.len()].replace('"', "\\\"")
            )));
            wire
        })
        .collect();
    for _ in 0..100 {
        ask(&mut bystander);
        std::thread::sleep(Duration::from_millis(10));
    }
    let memory = server.memory_bytes();
    assert!(memory < MEMORY_BYTES_MAX, "{memory} bytes while {DEAF_CLIENTS} clients do not read");
    drop(deaf);
    recovered(&mut server, &mut bystander, &before, 0);
}

#[test]
fn statements_that_are_never_closed_are_bounded() {
    let (mut server, mut bystander) = prepared(&["max_memory=256MB"]);
    let before = sessions(&mut bystander);
    let count = if archipel_tests::long() { STATEMENTS.1 } else { STATEMENTS.0 };
    let mut wire = Wire::session(server.port());
    for first in (0..count).step_by(1_000) {
        let mut bytes = Vec::new();
        for number in first..first + 1_000 {
            bytes.extend(message(&format!("Parse \"n{number}\" \"SELECT {number}\" h0")));
        }
        bytes.extend(message("Sync"));
        wire.send(&bytes);
        let told = wire.until(b'Z');
        assert_eq!(told.last().map(|(kind, _)| *kind), Some(b'Z'), "the session ends after {first}");
        ask(&mut bystander);
        if let Some((_, body)) = told.iter().find(|(kind, _)| *kind == b'E') {
            assert_eq!(field(body, b'C').as_deref(), Some("53200"), "{:?}", field(body, b'M'));
            break;
        }
    }
    drop(wire);
    recovered(&mut server, &mut bystander, &before, 0);
}

#[test]
fn a_line_of_copy_without_an_end_is_refused_in_time() {
    let (mut server, mut bystander) = prepared(&["max_memory=256MB"]);
    let before = sessions(&mut bystander);
    let mut wire = Wire::session(server.port());
    wire.send(&message("Query \"COPY sink FROM STDIN\""));
    wire.until(b'G');
    let piece = message("CopyData 'x'*1000000");
    // More than there is memory for: what comes behind the error is passed over.
    for number in 0..400 {
        wire.send(&piece);
        if number % 20 == 0 {
            ask(&mut bystander);
        }
    }
    wire.send(&message("Sync"));
    let told = wire.until(b'E');
    let state = told.last().and_then(|(_, body)| field(body, b'C'));
    assert_eq!(state.as_deref(), Some("53200"));
    // The query's own, and that of Sync.
    wire.until(b'Z');
    wire.until(b'Z');
    assert!(wire.query("SELECT 1").iter().any(|(kind, _)| *kind == b'D'));
    drop(wire);
    recovered(&mut server, &mut bystander, &before, 0);
}
