//! Options of CREATE DATABASE that PostgreSQL takes and Archipel refuses by name, and what is left when all
//! is well. What both refuse alike is in tests/slt/databases_grammar.slt.

use archipel_sql::ast::Statement;
use archipel_sql::catalog::{Authority, Catalog, SUPERUSER};
use archipel_sql::error::Result;
use archipel_sql::parser::parse_statement;

use super::{DatabaseOptions, require_creator};

fn read(options: &str) -> Result<(DatabaseOptions, Vec<String>)> {
    let Statement::CreateDatabase(create) = parse_statement(&format!("create database d {options}"))? else {
        panic!("{options}")
    };
    let mut warnings = Vec::new();
    let read = DatabaseOptions::read(&create.options, &mut |warning| {
        warnings.push(warning.message().to_owned());
    })?;
    Ok((read, warnings))
}

fn settled(options: &str) -> Result<DatabaseOptions> {
    let (read, _) = read(options)?;
    let catalog = Catalog::initial(Vec::new());
    let authority = Authority { catalog: &catalog, role: SUPERUSER };
    require_creator(&read, &authority)?;
    read.require_like_template(&authority)?;
    Ok(read)
}

#[track_caller]
fn refused(options: &str, state: &str, message: &str) {
    let error = settled(options).expect_err(options);
    assert_eq!((error.state().as_str(), error.message()), (state, message), "{options}");
}

#[test]
fn what_is_not_said_has_postgresqls_defaults() {
    let plain = settled("").unwrap();
    assert_eq!((plain.template.as_str(), plain.owner.as_deref()), ("template1", None));
    assert_eq!((plain.is_template, plain.allow_connections, plain.connection_limit), (false, true, -1));
    let defaults = "with template default is_template = default allow_connections default \
                    connection limit default owner default encoding default locale default \
                    locale_provider default strategy default tablespace default";
    assert_eq!(settled(defaults).unwrap(), plain);
    let same = "encoding 'utf-8' locale 'C' lc_collate 'POSIX' locale_provider libc strategy file_copy \
                tablespace pg_default";
    settled(same).unwrap();
    let other = settled("template = t is_template on allow_connections 0 connection limit 3").unwrap();
    assert_eq!(
        (other.template.as_str(), other.is_template, other.allow_connections, other.connection_limit),
        ("t", true, false, 3)
    );
    assert_eq!(settled("collation_version 5").unwrap().collation_version.as_deref(), Some("5"));
}

#[test]
fn foreign_encodings_and_locales_are_refused_by_name() {
    refused("template template0 encoding latin1", "0A000", "encoding \"LATIN1\" is not supported");
    refused("template template0 encoding 0", "0A000", "encoding \"SQL_ASCII\" is not supported");
    for name in ["de_DE.UTF-8", "en_US.utf8", "C.UTF-8", "sv_SE@euro", "de", ""] {
        let message = format!("locale \"{name}\" is not supported");
        refused(&format!("locale '{name}'"), "0A000", &message);
        refused(&format!("lc_ctype '{name}' template template0"), "0A000", &message);
    }
    refused("locale 'c'", "42809", "invalid locale name: \"c\"");
    refused("locale_provider icu icu_locale 'en'", "0A000", "locale provider \"icu\" is not supported");
}

#[test]
fn location_is_warned_of_each_time() {
    let (_, warnings) = read("location 'a' location default").unwrap();
    assert_eq!(warnings, ["LOCATION is not supported anymore"; 2]);
}
