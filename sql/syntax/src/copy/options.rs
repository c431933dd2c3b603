//! What COPY's options say, read one after the other as PostgreSQL reads them (ProcessCopyOptions):
//! what contradicts what is [`super::CopyFormat`]'s.

use crate::ast::{CopyArgument, CopyColumns, CopyHeader, CopyKind, CopyOption, CopyOptions};
use crate::encoding::Encoding;
use crate::error::{Result, SqlError, SqlState};

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

    fn encoding(&self) -> Result<Encoding> {
        Encoding::named(&self.text()?).ok_or_else(|| {
            self.refused(format!("argument to option \"{}\" must be a valid encoding name", self.name))
        })
    }

    fn refused(&self, message: String) -> SqlError {
        SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message).at(Some(self.position))
    }
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
