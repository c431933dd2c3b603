//! The lines, fields and tokens of `pg_hba.conf` and `pg_ident.conf` (hba.c).
//!
//! A line has fields, parted by blanks; a field has tokens, parted by commas; a token may be quoted,
//! wholly or in part, and then holds blanks, commas and `#`. `@name` is replaced with the tokens of that
//! file. A backslash at the end of a line continues it.

use std::cell::Cell;
use std::path::{Path, PathBuf};

use crate::regular_file;

/// Bytes of one file.
const FILE_BYTES_MAX: u64 = 1 << 20;
/// Bytes of one token, as in PostgreSQL.
const TOKEN_BYTES_MAX: usize = 10_240;
/// Files within files: one may lead back to itself.
const DEPTH_MAX: u32 = 10;
/// Files that a file leads to, all together.
const INCLUDED_MAX: u32 = 100;

/// One name or value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    pub text: String,
    /// Begins with a quote: no keyword.
    pub quoted: bool,
}

impl Token {
    /// Whether it is a keyword.
    pub fn is(&self, keyword: &str) -> bool {
        !self.quoted && self.text == keyword
    }
}

/// A line with something in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Of its first line, from 1.
    pub number: u32,
    /// As written, continuations joined.
    pub text: String,
    pub fields: Vec<Vec<Token>>,
    /// What is wrong with it, where nothing more can be said of it.
    pub error: Option<String>,
}

/// The lines of a file. An error says that there is none to be read.
pub fn read_file(path: &Path) -> std::io::Result<Vec<Line>> {
    let text = content(path)?;
    let included = Cell::new(0);
    Ok(Reader { path, depth: 0, included: &included }.lines(&text))
}

/// The lines of a text that includes no files.
pub fn read_text(text: &str) -> Vec<Line> {
    let included = Cell::new(INCLUDED_MAX);
    Reader { path: Path::new(""), depth: 0, included: &included }.lines(text)
}

fn content(path: &Path) -> std::io::Result<String> {
    let bytes = regular_file::read(path, FILE_BYTES_MAX)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// An error as the operating system words it.
pub fn reason(error: &std::io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or_default().to_owned()
}

/// Reads one file.
#[derive(Clone, Copy)]
struct Reader<'r> {
    path: &'r Path,
    depth: u32,
    included: &'r Cell<u32>,
}

impl Reader<'_> {
    fn lines(self, text: &str) -> Vec<Line> {
        let mut lines = Vec::new();
        let mut written = text.split_terminator('\n');
        let mut number = 1;
        loop {
            let (mut line, mut joined, mut count) = (String::new(), 0, 0);
            for piece in written.by_ref() {
                count += 1;
                line.push_str(piece);
                line.truncate(line.trim_end_matches('\r').len());
                // Behind the last continuation: two backslashes alone on two lines are not four.
                if line.len() <= joined || !line.ends_with('\\') {
                    break;
                }
                line.pop();
                joined = line.len();
            }
            if count == 0 {
                return lines;
            }
            let (fields, error) = self.fields(&line);
            if !fields.is_empty() || error.is_some() {
                lines.push(Line { number, text: line, fields, error });
            }
            number += count;
        }
    }

    fn fields(self, line: &str) -> (Vec<Vec<Token>>, Option<String>) {
        let mut fields = Vec::new();
        if line.contains('\0') {
            // No name has one, and no value in SQL may.
            let error = "invalid byte sequence for encoding \"UTF8\": 0x00";
            return (fields, Some(error.to_owned()));
        }
        let mut rest = line;
        while !rest.is_empty() {
            match self.field(&mut rest) {
                Ok(field) if field.is_empty() => {}
                Ok(field) => fields.push(field),
                Err(error) => return (fields, Some(error)),
            }
        }
        (fields, None)
    }

    fn field(self, rest: &mut &str) -> Result<Vec<Token>, String> {
        let mut tokens = Vec::new();
        while let Some((token, comma)) = next_token(rest) {
            if token.text.len() >= TOKEN_BYTES_MAX {
                return Err("authentication file token too long".to_owned());
            }
            match token.text.strip_prefix('@') {
                Some(name) if !token.quoted && !name.is_empty() => tokens.extend(self.include(name)?),
                _ => tokens.push(token),
            }
            if !comma {
                break;
            }
        }
        Ok(tokens)
    }

    /// All tokens of another file.
    fn include(self, name: &str) -> Result<Vec<Token>, String> {
        let path: PathBuf = self.path.parent().unwrap_or(Path::new("")).join(name);
        let failed = |reason: String| {
            format!(
                "could not open secondary authentication file \"@{name}\" as \"{}\": {reason}",
                path.display()
            )
        };
        if self.depth >= DEPTH_MAX || self.included.get() >= INCLUDED_MAX {
            return Err(failed("maximum nesting depth exceeded".to_owned()));
        }
        self.included.set(self.included.get() + 1);
        let text = content(&path).map_err(|error| failed(reason(&error)))?;
        let mut tokens = Vec::new();
        for line in (Reader { path: &path, depth: self.depth + 1, ..self }).lines(&text) {
            if let Some(error) = line.error {
                return Err(error);
            }
            tokens.extend(line.fields.into_iter().flatten());
        }
        Ok(tokens)
    }
}

fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\r')
}

/// The next token, and whether a comma ends it; `None` at the end or before a comment.
fn next_token(rest: &mut &str) -> Option<(Token, bool)> {
    let start = rest.trim_start_matches(|c| is_blank(c) || c == ',');
    let mut token = Token { text: String::new(), quoted: false };
    let (mut in_quote, mut was_quote, mut saw_quote, mut comma) = (false, false, false, false);
    let mut end = start.len();
    for (at, c) in start.char_indices() {
        if !in_quote && (is_blank(c) || c == ',') {
            comma = c == ',';
            end = at;
            break;
        }
        if !in_quote && c == '#' {
            // Nothing follows.
            break;
        }
        if c != '"' || was_quote {
            token.text.push(c);
        }
        // Within quotes two of them are one.
        was_quote = in_quote && c == '"' && !was_quote;
        if c == '"' {
            in_quote = !in_quote;
            saw_quote = true;
            token.quoted |= token.text.is_empty();
        }
    }
    *rest = &start[end..];
    (saw_quote || !token.text.is_empty()).then_some((token, comma))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fields parted by blanks, tokens by `|`, those with a quote in front marked with `'`.
    fn shown(text: &str) -> Vec<String> {
        let token = |token: &Token| format!("{}{}", if token.quoted { "'" } else { "" }, token.text);
        let field = |field: &Vec<Token>| field.iter().map(token).collect::<Vec<_>>().join("|");
        read_text(text)
            .iter()
            .map(|line| {
                let fields: Vec<String> = line.fields.iter().map(field).collect();
                format!("{}: {}", line.number, fields.join(" "))
            })
            .collect()
    }

    #[test]
    fn tokens_are_quoted_as_postgresql_has_it() {
        assert_eq!(shown("local all\tall trust"), ["1: local all all trust"]);
        assert_eq!(shown("a \"b c\" d"), ["1: a 'b c d"]);
        assert_eq!(shown("a\"b c\"d e"), ["1: ab cd e"]);
        assert_eq!(shown("\"a\"\"b\""), ["1: 'a\"b"]);
        assert_eq!(shown("\"\" x"), ["1: ' x"]);
        assert_eq!(shown("a#b c"), ["1: a"]);
        assert_eq!(shown("\"a#b\" #c"), ["1: 'a#b"]);
        assert_eq!(shown("a,b, c d"), ["1: a|b|c d"]);
        assert_eq!(shown("a ,b"), ["1: a b"]);
        assert_eq!(shown(",,a,,b,"), ["1: a|b"]);
        assert_eq!(shown("\"open to the end"), ["1: 'open to the end"]);
    }

    #[test]
    fn lines_are_counted_and_continued() {
        assert_eq!(shown("# x\n\n  a\n\tb # c\r\n"), ["3: a", "4: b"]);
        assert_eq!(shown("a \\\nb \\\nc\nd"), ["1: a b c", "4: d"]);
        assert_eq!(shown("a\\\r\nb"), ["1: ab"]);
        assert_eq!(shown("a \\"), ["1: a"]);
        assert_eq!(shown("a \\\n\\\nb\nc"), ["1: a b", "4: c"]);
        assert_eq!(shown("a \\\\\n\nb"), ["1: a \\", "3: b"]);
        assert_eq!(shown("# a \\\nb\nc"), ["3: c"]);
        let zero = &read_text("a b\nc \0d\n")[1];
        let told = zero.error.as_deref();
        assert_eq!((zero.number, told), (2, Some("invalid byte sequence for encoding \"UTF8\": 0x00")));
    }

    #[test]
    fn files_in_files_are_read_and_bounded() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
        write("main", "local a,@users,z all trust\nlocal @loop all trust\nlocal @none all trust\n");
        write("users", "b, c # people\nd\n@\"more users\"\n");
        write("more users", "e");
        write("loop", "@loop");
        let lines = read_file(&folder.path().join("main")).unwrap();
        let names: Vec<&str> = lines[0].fields[1].iter().map(|token| token.text.as_str()).collect();
        assert_eq!(names, ["a", "b", "c", "d", "e", "z"]);
        assert!(lines[1].error.as_ref().unwrap().contains("nesting depth"), "{:?}", lines[1]);
        let told = lines[2].error.as_ref().unwrap();
        assert!(told.starts_with("could not open secondary authentication file \"@none\" as \""), "{told}");
        assert!(told.ends_with("/none\": No such file or directory"), "{told}");
        let error = read_file(&folder.path().join("missing")).unwrap_err();
        assert_eq!(reason(&error), "No such file or directory");
    }
}
