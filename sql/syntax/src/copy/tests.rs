use proptest::prelude::*;

use super::*;

fn format(options: CopyOptions, from: bool) -> CopyFormat {
    CopyFormat::new(&options, from, Encoding::UTF8).unwrap()
}

fn csv() -> CopyOptions {
    CopyOptions { format: CopyKind::Csv, ..CopyOptions::default() }
}

type Rows = Vec<Vec<Option<String>>>;

fn decode(options: CopyOptions, columns: usize, chunks: &[&[u8]]) -> Result<Rows> {
    let names = (0..columns).map(|n| format!("c{n}")).collect();
    let mut decoder = CopyDecoder::new(format(options, true), "t", names)?;
    let mut rows = Rows::new();
    let mut drain = |decoder: &mut CopyDecoder| -> Result<()> {
        while let Some(row) = decoder.next_row()? {
            let mut fields = Vec::new();
            for n in 0..columns {
                fields.push(row.field(n)?.map(str::to_string));
            }
            rows.push(fields);
        }
        Ok(())
    };
    for chunk in chunks {
        decoder.push(chunk)?;
        drain(&mut decoder)?;
    }
    decoder.finish();
    drain(&mut decoder)?;
    Ok(rows)
}

fn some(fields: &[&str]) -> Vec<Option<String>> {
    fields.iter().map(|field| Some((*field).to_string())).collect()
}

#[test]
fn a_line_that_can_be_no_text_is_refused_before_its_end() {
    for options in [CopyOptions::default(), csv()] {
        let names = vec!["c0".to_string()];
        let mut decoder = CopyDecoder::new(format(options, true), "t", names).unwrap();
        decoder.push(b"a\nbc").unwrap();
        assert_eq!(decoder.next_row().unwrap().unwrap().field(0).unwrap(), Some("a"));
        assert!(decoder.next_row().unwrap().is_none());
        decoder.push(b"d\xc3").unwrap();
        assert!(decoder.next_row().unwrap().is_none(), "the rest of a character may come");
        decoder.push(b"\xa9\0e").unwrap();
        let error = decoder.next_row().err().unwrap();
        assert_eq!(error.message(), "invalid byte sequence for encoding \"UTF8\": 0x00");
        assert_eq!(error.fields().context.as_deref(), Some("COPY t, line 2"));
    }
}

#[test]
fn text_escapes_nulls_and_the_end_marker() {
    let data = b"1\t\\N\ta\\tb\\\\c\n2\t\t\\x41\\102\\q\n\\.\nignored";
    let rows = decode(CopyOptions::default(), 3, &[data]).unwrap();
    assert_eq!(rows[0], vec![Some("1".into()), None, Some("a\tb\\c".into())]);
    assert_eq!(rows[1], some(&["2", "", "ABq"]));
    assert_eq!(rows.len(), 2);
}

#[test]
fn a_backslash_before_a_newline_keeps_it_in_the_field() {
    assert_eq!(decode(CopyOptions::default(), 1, &[b"a\\\nb\n"]).unwrap(), vec![some(&["a\nb"])]);
}

#[test]
fn lines_end_as_the_first_one_does() {
    for data in [&b"a\nb"[..], b"a\r\nb\r\n", b"a\rb\r"] {
        assert_eq!(
            decode(CopyOptions::default(), 1, &[data]).unwrap(),
            vec![some(&["a"]), some(&["b"])],
            "{data:?}"
        );
    }
    let error = decode(CopyOptions::default(), 1, &[b"a\nb\rc\n"]).unwrap_err();
    assert_eq!(error.message(), "literal carriage return found in data");
    assert_eq!(error.fields().context.as_deref(), Some("COPY t, line 2"));
    assert_eq!(decode(csv(), 1, &[b"a\r\nb\n"]).unwrap_err().message(), "unquoted newline found in data");
}

#[test]
fn csv_quotes_span_lines_and_tell_null_from_empty() {
    let rows = decode(csv(), 3, &[b"1,,\"\"\n2,\"a \"\"q\"\"\nb\",x\"y,\"z\n"]).unwrap();
    assert_eq!(rows[0], vec![Some("1".into()), None, Some(String::new())]);
    assert_eq!(rows[1], some(&["2", "a \"q\"\nb", "xy,z"]));
}

#[test]
fn force_null_and_force_not_null_turn_the_rule_around() {
    let options = CopyOptions { force_null: vec!["c0".into()], force_not_null: vec!["c1".into()], ..csv() };
    assert_eq!(decode(options, 2, &[b"\"\",\n"]).unwrap(), vec![vec![None, Some(String::new())]]);
}

#[test]
fn wrong_field_counts_name_the_line() {
    let error = decode(CopyOptions::default(), 2, &[b"1\t2\n1\n"]).unwrap_err();
    assert_eq!(error.message(), "missing data for column \"c1\"");
    assert_eq!(error.fields().context.as_deref(), Some("COPY t, line 2: \"1\""));
    assert_eq!(error.state(), SqlState::BAD_COPY_FILE_FORMAT);
    let error = decode(CopyOptions::default(), 1, &[b"1\t2\n"]).unwrap_err();
    assert_eq!(error.message(), "extra data after last expected column");
    assert_eq!(decode(csv(), 1, &[b"\"abc\n"]).unwrap_err().message(), "unterminated CSV quoted field");
}

#[test]
fn headers_are_skipped_or_matched() {
    let options = CopyOptions { header: Some(CopyHeader::Skip), ..csv() };
    assert_eq!(decode(options.clone(), 1, &[b"anything,at all\n5\n"]).unwrap(), vec![some(&["5"])]);
    let options = CopyOptions { header: Some(CopyHeader::Match), ..options };
    assert_eq!(decode(options.clone(), 1, &[b"c0\n5\n"]).unwrap(), vec![some(&["5"])]);
    let error = decode(options, 1, &[b"other\n5\n"]).unwrap_err();
    assert_eq!(
        error.message(),
        "column name mismatch in header line field 1: got \"other\", expected \"c0\""
    );
    assert_eq!(error.fields().context.as_deref(), Some("COPY t, line 1: \"other\""));
}

#[test]
fn lines_inside_of_quotes_count_once_it_is_known_how_lines_end() {
    let place = |lines: &[u8]| {
        let error = decode(csv(), 1, &[lines]).unwrap_err();
        error.fields().context.clone().unwrap_or_default()
    };
    assert_eq!(place(b"\"a\nb\"\n1,2\n"), "COPY t, line 2: \"1,2\"");
    assert_eq!(place(b"a\n\"a\nb\"\n1,2\n"), "COPY t, line 4: \"1,2\"");
    assert_eq!(place(b"\"a\rb\"\n1,2\n"), "COPY t, line 3: \"1,2\"");
    assert_eq!(place(b"\"abc,1\n"), "COPY t, line 1: \"\"abc,1\n\"");
}

#[test]
fn bytes_that_are_no_text_are_refused() {
    let error = decode(CopyOptions::default(), 1, &[b"a\xffb\n"]).unwrap_err();
    assert_eq!(
        (error.state(), error.message()),
        (SqlState::CHARACTER_NOT_IN_REPERTOIRE, "invalid byte sequence for encoding \"UTF8\": 0xff")
    );
    assert!(decode(CopyOptions::default(), 1, &[b"\\377\n"]).is_err());
}

#[test]
fn options_that_contradict_each_other_are_refused() {
    let refuse = |options: CopyOptions, from| {
        CopyFormat::new(&options, from, Encoding::UTF8).unwrap_err().message().to_string()
    };
    let given = |text: &str| Some(text.to_string());
    assert_eq!(
        refuse(CopyOptions { quote: given("x"), ..CopyOptions::default() }, true),
        "COPY quote available only in CSV mode"
    );
    assert_eq!(
        refuse(CopyOptions { delimiter: given("ab"), ..csv() }, true),
        "COPY delimiter must be a single one-byte character"
    );
    assert_eq!(
        refuse(CopyOptions { delimiter: given("a"), ..CopyOptions::default() }, true),
        "COPY delimiter cannot be \"a\""
    );
    assert_eq!(
        refuse(CopyOptions { force_quote: Some(CopyColumns::All), ..csv() }, true),
        "COPY force quote only available using COPY TO"
    );
}

fn encode(options: CopyOptions, rows: &Rows, columns: usize) -> Vec<u8> {
    let names = (0..columns).map(|n| format!("c{n}")).collect();
    let encoder = CopyEncoder::new(format(options, false), names).unwrap();
    let mut out = Vec::new();
    encoder.header(&mut out);
    for row in rows {
        for (index, field) in row.iter().enumerate() {
            encoder.field(index, field.as_deref(), &mut out);
        }
        encoder.end_row(&mut out);
    }
    out
}

fn rows() -> impl Strategy<Value = Rows> {
    let field = proptest::option::of("[a\\\\\",.\n\r\t\u{e9}N ]{0,6}");
    proptest::collection::vec(proptest::collection::vec(field, 2), 0..6)
}

proptest! {
    /// What COPY TO writes COPY FROM reads back, wherever the bytes are cut.
    #[test]
    fn round_trip(rows in rows(), cut in 0_usize..64, is_csv: bool, header: bool, escape: bool) {
        let mut options = if is_csv { csv() } else { CopyOptions::default() };
        options.header = header.then_some(CopyHeader::Skip);
        if is_csv && escape {
            options.escape = Some("\\".into());
        }
        let bytes = encode(options.clone(), &rows, 2);
        let (left, right) = bytes.split_at(cut.min(bytes.len()));
        prop_assert_eq!(decode(options, 2, &[left, right]).unwrap(), rows);
    }

    /// Arbitrary bytes decode or fail; they never panic, and cutting them changes nothing.
    #[test]
    fn any_bytes(bytes in proptest::collection::vec(proptest::sample::select(b"a\\\",.\n\r\tN\xc3\xa9\xff".to_vec()), 0..40), cut in 0_usize..40, is_csv: bool) {
        let options = if is_csv { csv() } else { CopyOptions::default() };
        let (left, right) = bytes.split_at(cut.min(bytes.len()));
        let whole = decode(options.clone(), 2, &[&bytes]);
        prop_assert_eq!(decode(options, 2, &[left, right]), whole);
    }
}

/// A row of one field, behind a header.
fn binary(rows: &[&[Option<&[u8]>]]) -> Vec<u8> {
    let mut bytes = binary::HEADER.to_vec();
    for row in rows {
        bytes.extend_from_slice(&(row.len() as i16).to_be_bytes());
        for field in *row {
            match field {
                Some(field) => {
                    bytes.extend_from_slice(&(field.len() as i32).to_be_bytes());
                    bytes.extend_from_slice(field);
                }
                None => bytes.extend_from_slice(&[0xff; 4]),
            }
        }
    }
    bytes.extend_from_slice(&binary::TRAILER);
    bytes
}

/// Rows of fields, and NULLs.
type BinaryRows = Vec<Vec<Option<Vec<u8>>>>;

/// The fields of each row, and the error with the place it is told of.
fn decode_binary(columns: usize, chunks: &[&[u8]]) -> (BinaryRows, Option<(String, String)>) {
    let mut decoder = BinaryDecoder::new("t", (0..columns).map(|n| format!("c{n}")).collect());
    let mut rows = Vec::new();
    for end in 0..=chunks.len() {
        match chunks.get(end) {
            Some(chunk) => decoder.push(chunk).unwrap(),
            None => decoder.finish(),
        }
        loop {
            let row = match decoder.next_row() {
                Ok(Some(row)) => row,
                Ok(None) => break,
                Err(error) => {
                    let place = error.fields().context.clone().unwrap_or_default();
                    return (rows, Some((error.message().to_owned(), place)));
                }
            };
            let mut fields = Vec::new();
            for index in 0..columns {
                match row.field(index) {
                    Ok(field) => fields.push(field.map(<[u8]>::to_vec)),
                    Err(error) => return (rows, Some((error.message().to_owned(), row.context(index)))),
                }
            }
            rows.push(fields);
        }
    }
    (rows, None)
}

#[test]
fn binary_rows_come_wherever_the_bytes_are_cut() {
    let bytes = binary(&[&[Some(b"ab"), None], &[Some(b""), Some(b"c")]]);
    let expected = vec![vec![Some(b"ab".to_vec()), None], vec![Some(Vec::new()), Some(b"c".to_vec())]];
    for cut in 0..=bytes.len() {
        let (left, right) = bytes.split_at(cut);
        assert_eq!(decode_binary(2, &[left, right]), (expected.clone(), None), "{cut}");
    }
    let single: Vec<&[u8]> = bytes.chunks(1).collect();
    assert_eq!(decode_binary(2, &single), (expected, None));
}

#[test]
fn binary_streams_that_are_none_are_refused_in_postgresqls_words() {
    let header = binary::HEADER;
    let with = |rest: &[u8]| [&header[..], rest].concat();
    let mut oids = header;
    oids[12] = 1;
    let mut critical = header;
    critical[11] = 0x80;
    let mut extension = header;
    extension[18] = 3;
    let row = [0, 1, 0, 0, 0, 1, b'x'];
    let cases: [(Vec<u8>, &str, &str); 14] = [
        (header[..7].to_vec(), "COPY file signature not recognized", ""),
        (b"1,2,3\n4,5,6\n".to_vec(), "COPY file signature not recognized", ""),
        (header[..13].to_vec(), "invalid COPY file header (missing flags)", ""),
        (header[..17].to_vec(), "invalid COPY file header (missing length)", ""),
        (extension.to_vec(), "invalid COPY file header (wrong length)", ""),
        (oids.to_vec(), "invalid COPY file header (WITH OIDS)", ""),
        (critical.to_vec(), "unrecognized critical flags in COPY file header", ""),
        (with(&[0, 2]), "row field count is 2, expected 1", "COPY t, line 1"),
        (with(&[&row[..], &[0xff, 0xfe]].concat()), "row field count is -2, expected 1", "COPY t, line 2"),
        (with(&[0, 1, 0, 0]), "unexpected EOF in COPY data", "COPY t, line 1, column c0"),
        (with(&[0, 1, 0, 0, 0, 2, b'x']), "unexpected EOF in COPY data", "COPY t, line 1, column c0"),
        (with(&[0, 1, 0xff, 0xff, 0xff, 0xfe]), "invalid field size", "COPY t, line 1, column c0"),
        (with(&[0, 1, 0x3f, 0xff, 0xff, 0xff]), "out of memory", "COPY t, line 1, column c0"),
        (with(&[0xff, 0xff, 0]), "received copy data after EOF marker", "COPY t, line 1"),
    ];
    for (bytes, message, place) in cases {
        let (_, error) = decode_binary(1, &[&bytes]);
        assert_eq!(error, Some((message.to_owned(), place.to_owned())), "{bytes:?}");
    }
    // What PostgreSQL lets pass: no end marker, half of a count behind the last row, an extension.
    for rest in [&row[..], &[&row[..], &[0]].concat()] {
        assert_eq!(decode_binary(1, &[&with(rest)]), (vec![vec![Some(b"x".to_vec())]], None));
    }
    assert_eq!(decode_binary(1, &[&extension, b"abc", &row]).0.len(), 1);
}

proptest! {
    /// Streams with bytes exchanged decode or fail; they never panic, and cutting them changes nothing.
    #[test]
    fn mutated_binary(changes in proptest::collection::vec((0_usize..60, any::<u8>()), 0..4), cut in 0_usize..60) {
        let mut bytes = binary(&[&[Some(b"ab"), None], &[Some(b""), Some(b"cdefgh")], &[None, Some(b"i")]]);
        for (at, byte) in changes {
            let at = at % bytes.len();
            bytes[at] = byte;
        }
        let whole = decode_binary(2, &[&bytes]);
        let (left, right) = bytes.split_at(cut.min(bytes.len()));
        prop_assert_eq!(decode_binary(2, &[left, right]), whole);
    }
}
