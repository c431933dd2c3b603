use super::*;
use crate::parser::lexer::lexeme::LexemeKind;
use crate::parser::lexer::scan::lexemes;

const OFF: StringSyntax = StringSyntax { standard: false, backslash_quote: true, warns: true };

fn standard(text: &str, keeps: Keeps) -> String {
    standard_strings(text, OFF, keeps).text.unwrap().into_owned()
}

#[test]
fn plain_constants_keep_their_places() {
    for (old, new) in [
        (r"select 'a\'b', c", r"select 'a''b', c"),
        (r"select 'a\\', c", r"select 'a\' , c"),
        (r"select'\x41\102' ,d", r"select'AB'       ,d"),
        (r"select E'a\'b', n'\\'", r"select E'a\'b', n'\' "),
        (r"select '\303\251', 'é\u00e9'", "select 'é'       , 'éé'     "),
        (
            r#"select "a\'", $$a\'$$, $1, /* '\' */ x'\' -- '\n'"#,
            r#"select "a\'", $$a\'$$, $1, /* '\' */ x'\' -- '\n'"#,
        ),
        (
            r"select e'\\' --
 '\'' , 't\q'",
            r"select e'\\' --
 '\'' , 'tq' ",
        ),
    ] {
        assert_eq!(standard(old, Keeps::Characters), new);
    }
    assert_eq!(standard("a('b\\n')", Keeps::Characters), "a('b\n' )");
    assert_eq!(standard("a'b\\n'", Keeps::Lines), "a E'b\\n'");
    assert_eq!(standard("a('b\\n', '\\'')", Keeps::Lines), "a(E'b\\n', '''')");
}

#[test]
fn bit_strings_have_no_escapes_on_their_other_lines() {
    let text = "select b'1'\n'0\\', '; drop table t; --'";
    assert_eq!(standard(text, Keeps::Characters), text);
    assert_eq!(standard("x'1' -- c\n '\\', '\\n'", Keeps::Lines), "x'1' -- c\n '\\', E'\\n'");
}

#[test]
fn constants_beside_each_other_stay_apart() {
    for (text, values) in [
        (r"'a'E'b\n' E'\x41'", &["b\n", "A"][..]),
        (r"E'\x41'E'b' 'c' E'\x42'", &["A", "b", "B"]),
        (r"$$a$$e'\\' x'1'E'\''", &["\\", "'"]),
    ] {
        let lexemes = lexemes(text).unwrap();
        let read = lexemes.into_iter().filter_map(|lexeme| match lexeme.kind {
            LexemeKind::String(value) if text[lexeme.range.clone()].starts_with(['e', 'E']) => Some(value),
            _ => None,
        });
        assert_eq!(read.collect::<Vec<_>>(), values, "{text}");
    }
}

#[test]
fn warnings_tell_of_the_first_escape_of_each() {
    let read = standard_strings(r"'\n\'' 'a' E'\n' '\\n' '\'a'", OFF, Keeps::Characters);
    let told: Vec<_> = read.warnings.iter().map(|warning| warning.message().to_owned()).collect();
    let of = |what: &str| format!("nonstandard use of {what} in a string literal");
    assert_eq!(told, [of("escape"), of("\\\\"), of("\\'")]);
    let quiet = standard_strings(r"'\n'", StringSyntax { warns: false, ..OFF }, Keeps::Characters);
    assert!(quiet.warnings.is_empty());
}

#[test]
fn what_is_wrong_with_a_constant_is_told() {
    let strict = StringSyntax { backslash_quote: false, ..StringSyntax::default() };
    for (text, syntax, state) in [
        (r"select 'a\'", OFF, SqlState::SYNTAX_ERROR),
        (r"select U&'a'", OFF, SqlState::FEATURE_NOT_SUPPORTED),
        (r"select '\xff'", OFF, SqlState::CHARACTER_NOT_IN_REPERTOIRE),
        (r"select '\000'", OFF, SqlState::CHARACTER_NOT_IN_REPERTOIRE),
        (r"select '\u00g0'", OFF, SqlState::INVALID_ESCAPE_SEQUENCE),
        (r"select E'\''", strict, SqlState::NONSTANDARD_USE_OF_ESCAPE_CHARACTER),
    ] {
        let read = standard_strings(text, syntax, Keeps::Characters);
        assert_eq!(read.text.map_err(|error| error.state()), Err(state), "{text}");
    }
}

#[test]
fn any_text_is_read_to_an_end() {
    let pieces = ["'", "\\", "E'", "\n", "--", "/*", "*/", "$$", "$a$", "\"", "é", "u&'", " ", "x", "\\u"];
    for seed in 0..pieces.len().pow(3) {
        let text: String = (0..3).map(|at| pieces[seed / pieces.len().pow(at) % pieces.len()]).collect();
        for syntax in [OFF, StringSyntax { backslash_quote: false, ..StringSyntax::default() }] {
            let _ = standard_strings(&text, syntax, Keeps::Characters);
            let _ = standard_strings(&text, syntax, Keeps::Lines);
        }
        if let Ok(strings) = EscapedStrings::of(&text) {
            assert_eq!(strings.hidden().chars().count(), text.chars().count());
        }
    }
}
