//! COPY.

use super::*;

#[test]
fn copy_in_both_syntaxes() {
    let Statement::Copy(copy) =
        one("copy t (a, b) from stdin with (format csv, header, delimiter '|', freeze on, null 'x')")
    else {
        panic!()
    };
    let options = CopyOptions::read(&copy.options, true).unwrap();
    assert_eq!(
        (options.format, options.header, options.freeze),
        (CopyKind::Csv, Some(CopyHeader::Skip), true)
    );
    let Statement::Copy(old) =
        one("copy t from stdin with csv header delimiter as ',' quote '''' force not null a, b")
    else {
        panic!()
    };
    let options = CopyOptions::read(&old.options, true).unwrap();
    assert_eq!((options.quote.as_deref(), options.force_not_null.len()), (Some("'"), 2));
    let Statement::Copy(to) = one("copy (select 1) to stdout (format text)") else { panic!() };
    assert!(matches!(to.target, CopyTarget::Query(_)) && to.direction == CopyDirection::ToStdout);
    let refused = |text: &str| {
        let Statement::Copy(copy) = one(text) else { panic!("{text}") };
        let error = CopyOptions::read(&copy.options, true).unwrap_err();
        (error.message().to_owned(), error.fields().position)
    };
    assert_eq!(
        refused("copy t from stdin (nonsense 1)"),
        ("option \"nonsense\" not recognized".to_owned(), Some(20))
    );
    assert_eq!(
        refused("copy binary t from stdin delimiters ',' csv"),
        ("conflicting or redundant options".to_owned(), Some(41))
    );
}

#[test]
fn copy_is_refused_where_its_grammar_says_so() {
    assert_eq!(fails("copy t to stdout where a = 1").1, "WHERE clause not allowed with COPY TO");
    assert_eq!(fails("copy t from program stdin").1, "STDIN/STDOUT not allowed with PROGRAM");
    assert_eq!(fails("copy (create table t ()) to stdout").1, "syntax error at or near \"create\"");
    assert_eq!(fails("copy t from stdin csv force nut a").1, "syntax error at or near \"nut\"");
}
