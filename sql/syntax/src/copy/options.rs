//! What COPY's options say, read one after the other as PostgreSQL reads them (ProcessCopyOptions):
//! what contradicts what is [`super::CopyFormat`]'s.

use crate::ast::{CopyArgument, CopyColumns, CopyHeader, CopyKind, CopyOption, CopyOptions};
use crate::error::{Result, SqlError, SqlState};

/// PostgreSQL's names of encodings (pg_encname_tbl), without what is neither letter nor digit.
const ENCODINGS: [&str; 81] = [
    "abc",
    "alt",
    "big5",
    "euccn",
    "eucjis2004",
    "eucjp",
    "euckr",
    "euctw",
    "gb18030",
    "gbk",
    "iso88591",
    "iso885910",
    "iso885913",
    "iso885914",
    "iso885915",
    "iso885916",
    "iso88592",
    "iso88593",
    "iso88594",
    "iso88595",
    "iso88596",
    "iso88597",
    "iso88598",
    "iso88599",
    "johab",
    "koi8",
    "koi8r",
    "koi8u",
    "latin1",
    "latin10",
    "latin2",
    "latin3",
    "latin4",
    "latin5",
    "latin6",
    "latin7",
    "latin8",
    "latin9",
    "mskanji",
    "muleinternal",
    "shiftjis",
    "shiftjis2004",
    "sjis",
    "sqlascii",
    "tcvn",
    "tcvn5712",
    "uhc",
    "unicode",
    "utf8",
    "vscii",
    "win",
    "win1250",
    "win1251",
    "win1252",
    "win1253",
    "win1254",
    "win1255",
    "win1256",
    "win1257",
    "win1258",
    "win866",
    "win874",
    "win932",
    "win936",
    "win949",
    "win950",
    "windows1250",
    "windows1251",
    "windows1252",
    "windows1253",
    "windows1254",
    "windows1255",
    "windows1256",
    "windows1257",
    "windows1258",
    "windows866",
    "windows874",
    "windows932",
    "windows936",
    "windows949",
    "windows950",
];

impl CopyOption {
    /// Its argument as a string (defGetString).
    fn text(&self) -> Result<String> {
        match &self.argument {
            CopyArgument::None => {
                Err(SqlError::new(SqlState::SYNTAX_ERROR, format!("{} requires a parameter", self.name)))
            }
            CopyArgument::Text(text) | CopyArgument::Number(text) => Ok(text.clone()),
            CopyArgument::Star => Ok("*".to_owned()),
            CopyArgument::List(names) => Ok(names.join(".")),
        }
    }

    /// Its argument as a boolean, if it is one: nothing, a whole number of 0 or 1, or a word.
    fn boolean(&self) -> Result<Option<bool>> {
        if self.argument == CopyArgument::None {
            return Ok(Some(true));
        }
        let text = self.text()?;
        if let CopyArgument::Number(_) = self.argument {
            return Ok(match text.parse() {
                Ok(0_i64) => Some(false),
                Ok(1) => Some(true),
                _ => None,
            });
        }
        let is = |word: &str| text.eq_ignore_ascii_case(word);
        let is_true = is("true") || is("on");
        Ok((is_true || is("false") || is("off")).then_some(is_true))
    }

    /// A list of names.
    fn columns(&self) -> Result<Vec<String>> {
        match &self.argument {
            CopyArgument::List(names) => Ok(names.clone()),
            _ => {
                Err(self
                    .refused(format!("argument to option \"{}\" must be a list of column names", self.name)))
            }
        }
    }

    fn header(&self, from: bool) -> Result<Option<CopyHeader>> {
        if let Some(header) = self.boolean()? {
            return Ok(header.then_some(CopyHeader::Skip));
        }
        let text = self.text()?;
        let is_word = !matches!(self.argument, CopyArgument::Number(_));
        if !is_word || !text.eq_ignore_ascii_case("match") {
            return Err(SqlError::new(
                SqlState::SYNTAX_ERROR,
                format!("{} requires a Boolean value or \"match\"", self.name),
            ));
        }
        match from {
            true => Ok(Some(CopyHeader::Match)),
            false => Err(SqlError::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                format!("cannot use \"{text}\" with HEADER in COPY TO"),
            )),
        }
    }

    fn format(&self) -> Result<CopyKind> {
        let format = self.text()?;
        match format.as_str() {
            "text" => Ok(CopyKind::Text),
            "csv" => Ok(CopyKind::Csv),
            "binary" => Ok(CopyKind::Binary),
            _ => Err(self.refused(format!("COPY format \"{format}\" not recognized"))),
        }
    }

    fn encoding(&self) -> Result<String> {
        let name = self.text()?;
        match ENCODINGS.contains(&encoding_key(&name).as_str()) {
            true => Ok(name),
            false => {
                Err(self
                    .refused(format!("argument to option \"{}\" must be a valid encoding name", self.name)))
            }
        }
    }

    fn refused(&self, message: String) -> SqlError {
        SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message).at(Some(self.position))
    }
}

/// The name of an encoding as names are compared.
pub(super) fn encoding_key(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase()
}

impl CopyOptions {
    /// What the options of a COPY FROM (`from`) or COPY TO say; each may be there once.
    pub fn read(written: &[CopyOption], from: bool) -> Result<CopyOptions> {
        let mut options = CopyOptions::default();
        for (at, option) in written.iter().enumerate() {
            if option.name == "format" {
                // PostgreSQL looks at what it is given before it sees that it has met it.
                option.text()?;
            }
            if written[..at].iter().any(|other| other.name == option.name) {
                let error = SqlError::new(SqlState::SYNTAX_ERROR, "conflicting or redundant options");
                return Err(error.at(Some(option.position)));
            }
            options.take(option, from)?;
        }
        Ok(options)
    }

    fn take(&mut self, option: &CopyOption, from: bool) -> Result<()> {
        match option.name.as_str() {
            "format" => self.format = option.format()?,
            "freeze" => {
                self.freeze = option.boolean()?.ok_or_else(|| {
                    SqlError::new(SqlState::SYNTAX_ERROR, format!("{} requires a Boolean value", option.name))
                })?;
            }
            "delimiter" => self.delimiter = Some(option.text()?),
            "null" => self.null = Some(option.text()?),
            "header" => self.header = option.header(from)?,
            "quote" => self.quote = Some(option.text()?),
            "escape" => self.escape = Some(option.text()?),
            "encoding" => self.encoding = Some(option.encoding()?),
            "force_quote" if option.argument == CopyArgument::Star => {
                self.force_quote = Some(CopyColumns::All);
            }
            "force_quote" => self.force_quote = Some(CopyColumns::Some(option.columns()?)),
            "force_not_null" => self.force_not_null = option.columns()?,
            "force_null" => self.force_null = option.columns()?,
            "convert_selectively" => {
                if option.argument != CopyArgument::None {
                    option.columns()?;
                }
                self.convert_selectively = true;
            }
            other => {
                let message = format!("option \"{other}\" not recognized");
                return Err(SqlError::new(SqlState::SYNTAX_ERROR, message).at(Some(option.position)));
            }
        }
        Ok(())
    }
}
