//! What CREATE and ALTER DATABASE ask for, from what they say.

use archipel_sql::ast::{DatabaseOption, OptionValue};
use archipel_sql::catalog::FIRST_OID;
use archipel_sql::encoding::Encoding;
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::io::parse_oid;
use archipel_sql::types::Oid;

/// The template of whoever names none.
const TEMPLATE: &str = "template1";

/// No limit of connections.
const NO_LIMIT: i32 = -1;

/// What CREATE DATABASE asks for; the defaults are filled in where they depend on nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DatabaseOptions {
    /// `None`: whoever runs the statement.
    pub owner: Option<String>,
    pub template: String,
    pub is_template: bool,
    pub allow_connections: bool,
    /// −1: none.
    pub connection_limit: i32,
    pub collation_version: Option<String>,
    /// The number it is to have; `None`: any.
    pub oid: Option<Oid>,
    pub(super) tablespace: Option<String>,
    pub(super) strategy: Option<String>,
    pub(super) encoding: Option<Encoding>,
    pub(super) collate: Option<String>,
    pub(super) ctype: Option<String>,
    pub(super) icu_locale: Option<String>,
    pub(super) uses_icu: bool,
}

impl DatabaseOptions {
    /// Reads the options, with PostgreSQL's errors in its order. Warnings, which are told even if it fails,
    /// go to `warn`.
    pub fn read(options: &[DatabaseOption], warn: &mut dyn FnMut(&SqlError)) -> Result<DatabaseOptions> {
        let oid = check_created(options, warn)?;
        let given = Given(options);
        let locale = given.text("locale");
        Ok(DatabaseOptions {
            owner: given.text("owner"),
            template: given.text("template").unwrap_or_else(|| TEMPLATE.to_owned()),
            tablespace: given.text("tablespace"),
            strategy: given.text("strategy"),
            icu_locale: given.text("icu_locale"),
            collate: given.text("lc_collate").or_else(|| locale.clone()),
            ctype: given.text("lc_ctype").or(locale),
            // These may fail: in this order.
            encoding: given.found("encoding").map(encoding).transpose()?,
            uses_icu: given.found("locale_provider").map(is_icu).transpose()?.unwrap_or(false),
            is_template: given.boolean("is_template")?.unwrap_or(false),
            allow_connections: given.boolean("allow_connections")?.unwrap_or(true),
            connection_limit: given.connection_limit()?.unwrap_or(NO_LIMIT),
            collation_version: given.required_text("collation_version")?,
            oid,
        })
    }
}

/// What ALTER DATABASE changes; `None` stays.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AlteredDatabaseOptions {
    pub is_template: Option<bool>,
    pub allow_connections: Option<bool>,
    pub connection_limit: Option<i32>,
    pub tablespace: Option<String>,
}

impl AlteredDatabaseOptions {
    /// Reads the options, with PostgreSQL's errors in its order. DEFAULT is what a new database has.
    pub fn read(options: &[DatabaseOption]) -> Result<AlteredDatabaseOptions> {
        const KNOWN: [&str; 4] = ["is_template", "allow_connections", "connection_limit", "tablespace"];
        check_names(options, &KNOWN, |_| Ok(false))?;
        let given = Given(options);
        let says = |name: &str| given.said(name).is_some();
        if let Some(option) = given.said("tablespace").filter(|_| options.len() > 1) {
            let message = "option \"tablespace\" cannot be specified with other options";
            let error = SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message);
            return Err(error.at(Some(option.position)));
        }
        let (is_template, allows) = (given.boolean("is_template")?, given.boolean("allow_connections")?);
        let limit = given.connection_limit()?;
        Ok(AlteredDatabaseOptions {
            tablespace: given.required_text("tablespace")?,
            is_template: says("is_template").then(|| is_template.unwrap_or(false)),
            allow_connections: says("allow_connections").then(|| allows.unwrap_or(true)),
            connection_limit: says("connection_limit").then(|| limit.unwrap_or(NO_LIMIT)),
        })
    }
}

/// The names of CREATE DATABASE's options, and its oid, which is read along; LOCATION is warned of.
fn check_created(options: &[DatabaseOption], warn: &mut dyn FnMut(&SqlError)) -> Result<Option<Oid>> {
    const KNOWN: [&str; 14] = [
        "tablespace",
        "owner",
        "template",
        "encoding",
        "locale",
        "lc_collate",
        "lc_ctype",
        "icu_locale",
        "locale_provider",
        "is_template",
        "allow_connections",
        "connection_limit",
        "collation_version",
        "strategy",
    ];
    let mut oid = None;
    check_names(options, &KNOWN, |option| {
        match option.name.as_str() {
            "oid" => oid = Some(object_id(option)?),
            "location" => {
                let message = "LOCATION is not supported anymore";
                let warning = SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message)
                    .with_hint("Consider using tablespaces instead.");
                warn(&warning.at(Some(option.position)));
            }
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    Ok(oid)
}

/// Goes through the names of options: 42601 for one that comes twice or is not known. Those that are not on
/// the list are offered to `other`, which answers whether it takes them; they may come again.
fn check_names(
    options: &[DatabaseOption],
    known: &[&str],
    mut other: impl FnMut(&DatabaseOption) -> Result<bool>,
) -> Result<()> {
    for (place, option) in options.iter().enumerate() {
        let message = if !known.contains(&option.name.as_str()) {
            if other(option)? {
                continue;
            }
            format!("option \"{}\" not recognized", option.name)
        } else if options[..place].iter().any(|earlier| earlier.name == option.name) {
            "conflicting or redundant options".to_owned()
        } else {
            continue;
        };
        return Err(syntax(message).at(Some(option.position)));
    }
    Ok(())
}

fn syntax(message: String) -> SqlError {
    SqlError::new(SqlState::SYNTAX_ERROR, message)
}

/// Options whose names have been checked.
struct Given<'o>(&'o [DatabaseOption]);

impl<'o> Given<'o> {
    fn said(&self, name: &str) -> Option<&'o DatabaseOption> {
        self.0.iter().find(|option| option.name == name)
    }

    /// One that says more than DEFAULT.
    fn found(&self, name: &str) -> Option<&'o DatabaseOption> {
        self.said(name).filter(|option| option.value != OptionValue::Default)
    }

    fn text(&self, name: &str) -> Option<String> {
        self.found(name).map(|option| written(&option.value))
    }

    /// The same of one that does not know DEFAULT.
    fn required_text(&self, name: &str) -> Result<Option<String>> {
        match self.said(name) {
            Some(option) if option.value == OptionValue::Default => {
                Err(syntax(format!("{name} requires a parameter")))
            }
            said => Ok(said.map(|option| written(&option.value))),
        }
    }

    fn boolean(&self, name: &str) -> Result<Option<bool>> {
        let Some(option) = self.found(name) else { return Ok(None) };
        let value = match &option.value {
            OptionValue::Integer(0) => Some(false),
            OptionValue::Integer(1) => Some(true),
            OptionValue::Text(text) => match text.to_ascii_lowercase().as_str() {
                "true" | "on" => Some(true),
                "false" | "off" => Some(false),
                _ => None,
            },
            _ => None,
        };
        match value {
            Some(value) => Ok(Some(value)),
            None => Err(syntax(format!("{name} requires a Boolean value"))),
        }
    }

    fn connection_limit(&self) -> Result<Option<i32>> {
        let name = "connection_limit";
        let Some(option) = self.found(name) else { return Ok(None) };
        match option.value {
            OptionValue::Integer(limit) if limit < NO_LIMIT => {
                let message = format!("invalid connection limit: {limit}");
                Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message))
            }
            OptionValue::Integer(limit) => Ok(Some(limit)),
            _ => Err(syntax(format!("{name} requires an integer value"))),
        }
    }
}

/// A value as a text (defGetString).
fn written(value: &OptionValue) -> String {
    match value {
        OptionValue::Default => String::new(),
        OptionValue::Integer(number) => number.to_string(),
        OptionValue::Number(text) | OptionValue::Text(text) => text.clone(),
    }
}

/// A number for a new database (defGetObjectId); negative ones count from the end.
fn object_id(option: &DatabaseOption) -> Result<Oid> {
    let oid = match &option.value {
        value @ (OptionValue::Integer(_) | OptionValue::Number(_)) => parse_oid(&written(value))?,
        _ => return Err(syntax(format!("{} requires a numeric value", option.name))),
    };
    if oid.0 < FIRST_OID {
        let message = format!("OIDs less than {FIRST_OID} are reserved for system objects");
        return Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message));
    }
    Ok(oid)
}

/// An encoding that servers may have, by its name or its number.
fn encoding(option: &DatabaseOption) -> Result<Encoding> {
    let (found, wrong) = match &option.value {
        OptionValue::Integer(code) => {
            (Encoding::of_code(*code), format!("{code} is not a valid encoding code"))
        }
        value => {
            let name = written(value);
            (Encoding::named(&name), format!("{name} is not a valid encoding name"))
        }
    };
    let undefined = || SqlError::new(SqlState::UNDEFINED_OBJECT, wrong).at(Some(option.position));
    found.filter(|encoding| encoding.is_of_servers()).ok_or_else(undefined)
}

/// Whether the provider of locales is ICU, and not the C library.
fn is_icu(option: &DatabaseOption) -> Result<bool> {
    let provider = written(&option.value);
    match provider.to_ascii_lowercase().as_str() {
        "icu" => Ok(true),
        "libc" => Ok(false),
        _ => {
            let message = format!("unrecognized locale provider: {provider}");
            Err(SqlError::new(SqlState::INVALID_OBJECT_DEFINITION, message))
        }
    }
}
