//! COPY in binary form over the wire: through a driver, in bytes as PostgreSQL 15 sends them, and in bytes that
//! nobody should send.

mod common;

use bytes::Bytes;
use common::{Raw, Server, field, framed, kinds, state};
use futures::{SinkExt, StreamExt, TryStreamExt};
use tokio_postgres::Client;
use tokio_postgres::binary_copy::{BinaryCopyInWriter, BinaryCopyOutStream};
use tokio_postgres::types::{ToSql, Type};

/// Signature, flags, and the length of no extension.
const HEADER: &[u8] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";

/// What a client may take as it likes, and what the server keeps of it at most.
const LIMIT: &str = "max_memory=256MB";

/// How many rows a COPY took, or its code, message and place.
type Taken = Result<u64, (String, String, String)>;

const EVERY: &str = "CREATE TABLE every (a bool, b smallint, c int, d bigint, e real, f double precision, \
     g numeric(20, 4), h text, i varchar(5), j char(4), k bytea, l date, m time, n timetz, o timestamp, \
     p timestamptz, q interval, r uuid, s json, t jsonb, u int[], v text[], w oid, x name)";

const ROWS: &str = "INSERT INTO every VALUES (true, 1, -2, 3, 1.5, -2.25, 123.4567, 'é', 'abc', 'ab', '\\x00ff', \
     '2001-02-03', '04:05:06.7', '04:05:06+02', '2001-02-03 04:05:06', '2001-02-03 04:05:06+00', \
     '1 mon 2 days 3 s', '00112233-4455-6677-8899-aabbccddeeff', '{\"a\": 1}', '{\"b\": [1, null]}', \
     '{{1,2},{3,NULL}}', '{a,NULL,\"c d\"}', 7, 'n'); \
     INSERT INTO every VALUES (false, -32768, 2147483647, -9223372036854775808, 'NaN', '-Infinity', 'NaN', '', '', '', '', 'infinity', \
     '24:00', '00:00-15:59', '-infinity', 'infinity', '-1 mon', 'ffffffff-ffff-ffff-ffff-ffffffffffff', 'null', \
     '{}', '{}', '[2:3]={x,y}', 4294967295, ''); \
     INSERT INTO every (a) VALUES (NULL)";

async fn copied_out(client: &Client, copy: &str) -> Vec<Bytes> {
    client.copy_out(copy).await.unwrap().try_collect().await.unwrap()
}

/// Sends these messages to a COPY.
async fn copied_in(client: &Client, copy: &str, chunks: &[&[u8]]) -> Taken {
    let sink = client.copy_in::<_, Bytes>(copy).await.unwrap();
    let mut sink = std::pin::pin!(sink);
    for chunk in chunks {
        // The server may have had enough.
        if sink.send(Bytes::copy_from_slice(chunk)).await.is_err() {
            break;
        }
    }
    sink.finish().await.map_err(|error| {
        let error = error.as_db_error().expect("the server has an answer");
        let place = error.where_().unwrap_or_default().to_owned();
        (error.code().code().to_owned(), error.message().to_owned(), place)
    })
}

async fn count(client: &Client, table: &str) -> i64 {
    client.query_one(&format!("SELECT count(*) FROM {table}"), &[]).await.unwrap().get(0)
}

#[tokio::test]
async fn every_type_comes_back_wherever_the_stream_is_cut() {
    let server = Server::start(&[]);
    let client = server.client().await;
    client.batch_execute(EVERY).await.unwrap();
    client.batch_execute(ROWS).await.unwrap();
    client.batch_execute("CREATE TABLE again (LIKE every)").await.unwrap();
    let bytes = copied_out(&client, "COPY every TO STDOUT (FORMAT binary)").await.concat();
    assert!(bytes.starts_with(HEADER) && bytes.ends_with(&[0xff, 0xff]));
    for size in [1, 7, 64, bytes.len()] {
        let chunks: Vec<&[u8]> = bytes.chunks(size).collect();
        assert_eq!(copied_in(&client, "COPY again FROM STDIN (FORMAT binary)", &chunks).await, Ok(3));
        let missing =
            "SELECT count(*) FROM (SELECT every::text FROM every EXCEPT SELECT again::text FROM again) d";
        assert_eq!(client.query_one(missing, &[]).await.unwrap().get::<_, i64>(0), 0, "{size}");
        assert_eq!(copied_out(&client, "COPY again TO STDOUT BINARY").await.concat(), bytes);
        client.batch_execute("TRUNCATE again").await.unwrap();
    }
}

/// The bytes are PostgreSQL 15's, and so are the messages that they come in: the header with the first row,
/// each row by itself, the end by itself.
#[test]
fn messages_are_cut_as_postgresql_cuts_them() {
    let server = Server::start(&[]);
    let mut raw = server.raw();
    raw.query("CREATE TABLE t (a int, b text)");
    raw.query("INSERT INTO t VALUES (1, 'x'), (NULL, NULL)");
    let data = |messages: &[(u8, Vec<u8>)]| -> Vec<Vec<u8>> {
        messages.iter().filter(|(kind, _)| *kind == b'd').map(|(_, body)| body.clone()).collect()
    };
    let messages = raw.query("COPY t TO STDOUT (FORMAT binary)");
    assert_eq!(kinds(&messages), "HdddcCZ");
    assert_eq!(messages[0].1, [1, 0, 2, 0, 1, 0, 1]);
    let first = [HEADER, b"\0\x02\0\0\0\x04\0\0\0\x01\0\0\0\x01x"].concat();
    let second = b"\0\x02\xff\xff\xff\xff\xff\xff\xff\xff".to_vec();
    assert_eq!(data(&messages), [first, second, vec![0xff, 0xff]]);
    let none = raw.query("COPY (SELECT a FROM t WHERE a > 5) TO STDOUT (FORMAT binary)");
    assert_eq!(data(&none), [[HEADER, b"\xff\xff"].concat()]);
    raw.send(b'Q', b"COPY t FROM STDIN (FORMAT binary)\0");
    assert_eq!(raw.receive(), Some((b'G', vec![1, 0, 2, 0, 1, 0, 1])));
    raw.send(b'd', &[HEADER, b"\xff\xff"].concat());
    raw.send(b'c', b"");
    assert_eq!(kinds(&raw.until(b'Z')), "CZ");
}

#[tokio::test]
async fn a_driver_loads_and_reads_more_than_one_batch() {
    const ROWS: i32 = 30_000;
    let server = Server::start(&[]);
    let client = server.client().await;
    client.batch_execute("CREATE TABLE t (id int PRIMARY KEY, v text, d timestamptz)").await.unwrap();
    let types = [Type::INT4, Type::TEXT];
    let sink = client.copy_in("COPY t (id, v) FROM STDIN (FORMAT binary)").await.unwrap();
    let writer = BinaryCopyInWriter::new(sink, &types);
    let mut writer = std::pin::pin!(writer);
    let long = "x".repeat(700);
    for id in 0..ROWS {
        let v = (id % 10 != 0).then_some(&long);
        let row: [&(dyn ToSql + Sync); 2] = [&id, &v];
        writer.as_mut().write(&row).await.unwrap();
    }
    assert_eq!(writer.finish().await.unwrap(), ROWS as u64);
    let stream = client.copy_out("COPY t (id, v) TO STDOUT (FORMAT binary)").await.unwrap();
    let rows: Vec<_> = BinaryCopyOutStream::new(stream, &types).try_collect().await.unwrap();
    let mut ids: Vec<i32> = rows.iter().map(|row| row.get(0)).collect();
    ids.sort_unstable();
    assert!(ids.into_iter().eq(0..ROWS));
    let nulls = rows.iter().filter(|row| row.get::<Option<&str>>(1).is_none()).count();
    assert_eq!(nulls, ROWS as usize / 10);
    // What a query computes beside a table that it reads whole.
    let text = "COPY (SELECT count(*), sum(id) FROM t) TO STDOUT (FORMAT binary)";
    let stream = BinaryCopyOutStream::new(client.copy_out(text).await.unwrap(), &[Type::INT8, Type::INT8]);
    let rows: Vec<_> = stream.collect().await;
    assert_eq!(rows[0].as_ref().unwrap().get::<i64>(0), i64::from(ROWS));
}

#[tokio::test]
async fn streams_that_are_broken_are_refused_and_leave_nothing() {
    let server = Server::start(&[]);
    let client = server.client().await;
    client.batch_execute("CREATE TABLE t (a int, b text)").await.unwrap();
    let copy = "COPY t FROM STDIN (FORMAT binary)";
    let row = b"\0\x02\0\0\0\x04\0\0\0\x05\0\0\0\x02hi";
    let refused =
        |code: &str, message: &str, place: &str| Err((code.to_owned(), message.to_owned(), place.to_owned()));
    let cases: [(&[u8], Taken); 8] = [
        (b"\0\x02\xff\xff\xff\xfe", refused("22P04", "invalid field size", "COPY t, line 2, column a")),
        (b"\0\x02\x80\0\0\0", refused("22P04", "invalid field size", "COPY t, line 2, column a")),
        (b"\0\x02\x7f\xff\xff\xff", refused("54000", "out of memory", "COPY t, line 2, column a")),
        (
            b"\0\x02\x3f\xff\xff\xfe",
            refused("22P04", "unexpected EOF in COPY data", "COPY t, line 2, column a"),
        ),
        (b"\0\x03", refused("22P04", "row field count is 3, expected 2", "COPY t, line 2")),
        (b"\xff\xff\0", refused("22P04", "received copy data after EOF marker", "COPY t, line 2")),
        (
            b"\0\x02\0\0\0\x03\0\0\0\xff\xff\xff\xfe",
            refused("08P01", "insufficient data left in message", "COPY t, line 2, column a"),
        ),
        (
            b"\0\x02\0\0\0\x05\0\0\0\0\0\xff\xff\xff\xff",
            refused("22P03", "incorrect binary data format", "COPY t, line 2, column a"),
        ),
    ];
    for (rest, expected) in cases {
        assert_eq!(copied_in(&client, copy, &[HEADER, row, rest]).await, expected, "{rest:?}");
        assert_eq!(count(&client, "t").await, 0);
    }
    // Cut anywhere: what is no header, or half a row, is refused.
    let whole = [HEADER, row].concat();
    for length in 0..whole.len() {
        let taken = copied_in(&client, copy, &[&whole[..length]]).await;
        let at_row = length == HEADER.len() || length == HEADER.len() + 1;
        assert_eq!(taken.is_ok(), at_row, "{length}: {taken:?}");
    }
    assert_eq!(count(&client, "t").await, 0);
}

/// Days that no date has, which nothing could show or compute with.
#[tokio::test]
async fn dates_out_of_range_are_refused() {
    let server = Server::start(&[]);
    let client = server.client().await;
    client.batch_execute("CREATE TABLE d (a date)").await.unwrap();
    for (days, good) in [
        (i32::MIN, true),
        (i32::MIN + 1, false),
        (-2_451_546, false),
        (-2_451_545, true),
        (2_145_031_948, true),
        (2_145_031_949, false),
        (i32::MAX, true),
    ] {
        let row = [&b"\0\x01\0\0\0\x04"[..], &days.to_be_bytes()].concat();
        let taken = copied_in(&client, "COPY d FROM STDIN (FORMAT binary)", &[HEADER, &row]).await;
        match taken {
            Ok(_) => assert!(good, "{days}"),
            Err((code, message, _)) => {
                assert_eq!((good, &code[..], &message[..]), (false, "22008", "date out of range"), "{days}");
            }
        }
    }
    assert_eq!(count(&client, "d").await, 4);
}

/// One byte exchanged, at each place: rows or an error, and the session goes on.
#[tokio::test]
async fn mutated_streams_end_no_session() {
    let server = Server::start(&[]);
    let client = server.client().await;
    client.batch_execute("CREATE TABLE t (a int[], b numeric, c jsonb)").await.unwrap();
    client.batch_execute("INSERT INTO t VALUES ('{1,NULL}', -12.5, '{\"a\": 1}')").await.unwrap();
    let bytes = copied_out(&client, "COPY t TO STDOUT (FORMAT binary)").await.concat();
    for at in 0..bytes.len() {
        for change in [0x01, 0x80, 0xff] {
            let mut changed = bytes.clone();
            changed[at] ^= change;
            if let Err((code, message, _)) =
                copied_in(&client, "COPY t FROM STDIN (FORMAT binary)", &[&changed]).await
            {
                assert!(!message.contains("a bug in the server"), "{at} ^ {change}: {code} {message}");
            }
        }
    }
    assert!(count(&client, "t").await >= 1);
}

/// Sends the same bytes until the server has an error for them; answers its code.
fn flood(raw: &mut Raw, copy: &str, begin: &[u8]) -> Option<String> {
    raw.send(b'Q', &[copy.as_bytes(), b"\0"].concat());
    assert_eq!(raw.receive().map(|(kind, _)| kind), Some(b'G'));
    raw.send(b'd', begin);
    let piece = framed(b'd', &[b'x'; 1 << 20]);
    for _ in 0..400 {
        std::io::Write::write_all(&mut raw.stream, &piece).expect("the server reads");
    }
    raw.send(b'f', b"enough\0");
    let messages = raw.until(b'Z');
    assert!(field(&messages, b'M').is_some());
    state(&messages)
}

#[test]
fn a_line_or_a_field_without_end_takes_bounded_memory() {
    let server = Server::start(&[LIMIT]);
    let (mut raw, mut other) = (server.raw(), server.raw());
    other.query("CREATE TABLE t (a text)");
    let claimed = [HEADER, b"\0\x01\x3f\xff\xff\xfe"].concat();
    for (copy, begin) in [
        ("COPY t FROM STDIN", &b"a"[..]),
        ("COPY t FROM STDIN CSV", b"\"a"),
        ("COPY t FROM STDIN (FORMAT binary)", &claimed),
    ] {
        assert_eq!(flood(&mut raw, copy, begin).as_deref(), Some("53200"), "{copy}");
        assert_eq!(kinds(&other.query("SELECT count(*) FROM t")), "TDCZ");
    }
}
