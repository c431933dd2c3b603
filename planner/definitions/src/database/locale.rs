//! Which encodings, locales and tablespaces a database may have: UTF8, C and pg_default. Whatever else
//! PostgreSQL knows is refused by its name, and never taken for one of these.

use archipel_sql::catalog::Authority;
use archipel_sql::encoding::Encoding;
use archipel_sql::error::{Result, SqlError, SqlState};

use super::options::DatabaseOptions;

/// The database that may be copied with another encoding and another locale.
const PRISTINE: &str = "template0";

const LOCALE_HINT: &str = "Every database has the locale \"C\".";

fn invalid(message: impl Into<String>) -> SqlError {
    SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message)
}

impl DatabaseOptions {
    /// What CREATE DATABASE checks once it has found its template and may copy it: the strategy, whether the
    /// encoding and the locale are the template's, the tablespace. Every database has the encoding UTF8 and
    /// the locale C; others are refused by name.
    pub fn require_like_template(&self, authority: &Authority<'_>) -> Result<()> {
        require_strategy(self.strategy.as_deref())?;
        require_locale(self)?;
        if let Some(tablespace) = &self.tablespace {
            require_tablespace(tablespace, authority)?;
        }
        Ok(())
    }
}

/// The strategy of CREATE DATABASE. What it says of files and the log has no meaning here.
fn require_strategy(strategy: Option<&str>) -> Result<()> {
    let known = |strategy: &str| ["wal_log", "file_copy"].iter().any(|it| it.eq_ignore_ascii_case(strategy));
    match strategy.filter(|strategy| !known(strategy)) {
        None => Ok(()),
        Some(strategy) => Err(invalid(format!("invalid create database strategy \"{strategy}\""))
            .with_hint("Valid strategies are \"wal_log\" and \"file_copy\".")),
    }
}

/// The encoding and the locale of a new database must be its template's.
fn require_locale(options: &DatabaseOptions) -> Result<()> {
    [&options.collate, &options.ctype].into_iter().flatten().try_for_each(|name| require_c(name))?;
    match &options.icu_locale {
        None if options.uses_icu => return Err(invalid("ICU locale must be specified")),
        Some(_) if !options.uses_icu => {
            let message = "ICU locale cannot be specified unless locale provider is ICU";
            return Err(SqlError::new(SqlState::INVALID_OBJECT_DEFINITION, message));
        }
        _ => {}
    }
    if let Some(encoding) = options.encoding.filter(|encoding| *encoding != Encoding::UTF8) {
        return Err(foreign_encoding(encoding, &options.template));
    }
    if options.uses_icu {
        return Err(SqlError::unsupported("locale provider \"icu\"").with_hint(LOCALE_HINT));
    }
    Ok(())
}

/// The error of an encoding that no template has: PostgreSQL's, where it would not take it either.
fn foreign_encoding(encoding: Encoding, template: &str) -> SqlError {
    let (wanted, own) = (encoding.name(), Encoding::UTF8.name());
    if template == PRISTINE {
        let hint = format!("Text is {own} in every database.");
        return SqlError::unsupported(format_args!("encoding \"{wanted}\"")).with_hint(hint);
    }
    invalid(format!(
        "new encoding ({wanted}) is incompatible with the encoding of the template database ({own})"
    ))
    .with_hint("Use the same encoding as in the template database, or use template0 as template.")
}

/// A locale must be C, which POSIX is another name of.
fn require_c(name: &str) -> Result<()> {
    match name {
        "C" | "POSIX" => Ok(()),
        name if names_locale(name) => {
            Err(SqlError::unsupported(format_args!("locale \"{name}\"")).with_hint(LOCALE_HINT))
        }
        name => {
            let message = format!("invalid locale name: \"{name}\"");
            Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, message))
        }
    }
}

/// Whether a system may have a locale of this name, `language[_TERRITORY][.codeset][@modifier]`; the empty
/// name is that of the server's environment.
fn names_locale(name: &str) -> bool {
    let name = name.split_once('@').map_or(name, |(before, _)| before);
    let place = name.split_once('.').map_or(name, |(place, _)| place);
    let (language, territory) = place.split_once('_').unwrap_or((place, ""));
    let short = |word: &str| (2..=3).contains(&word.len());
    let is_language = short(language) && language.bytes().all(|byte| byte.is_ascii_lowercase());
    let is_territory = short(territory) && territory.bytes().all(|byte| byte.is_ascii_uppercase());
    match territory.is_empty() {
        true => is_language || matches!(place, "" | "C" | "POSIX"),
        false => is_language && is_territory,
    }
}

/// The tablespace of a database: nobody but superusers has a right to one by name.
pub(super) fn require_tablespace(name: &str, authority: &Authority<'_>) -> Result<()> {
    if !matches!(name, "pg_default" | "pg_global") {
        let message = format!("tablespace \"{name}\" does not exist");
        return Err(SqlError::new(SqlState::UNDEFINED_OBJECT, message));
    }
    if !authority.is_superuser() {
        let message = format!("permission denied for tablespace {name}");
        return Err(SqlError::new(SqlState::INSUFFICIENT_PRIVILEGE, message));
    }
    match name {
        "pg_global" => Err(invalid("pg_global cannot be used as default tablespace")),
        _ => Ok(()),
    }
}
