//! `pg_hba_file_rules` and `pg_ident_file_mappings`: the files as they are now, in force or not, with what is wrong
//! with them.
//!
//! Only superusers read them, and seldom; the files are small and bounded, so that they are read in place.

use archipel_sql::datum::Datum;
use archipel_sql::types::Type;

use super::cells::{optional, text, text_array};
use crate::authentication::hba::HbaLine;
use crate::authentication::rules::Sources;
use crate::authentication::state::is_on;
use crate::authentication::{AddressMatch, Token};
use crate::session::host::Host;

#[rustfmt::skip]
pub(super) const HBA_FILE_RULES: &[(&str, Type)] = &[("line_number", Type::INT4), ("type", Type::TEXT), ("database", Type::TEXT_ARRAY), ("user_name", Type::TEXT_ARRAY), ("address", Type::TEXT), ("netmask", Type::TEXT), ("auth_method", Type::TEXT), ("options", Type::TEXT_ARRAY), ("error", Type::TEXT)];
#[rustfmt::skip]
pub(super) const IDENT_FILE_MAPPINGS: &[(&str, Type)] = &[("line_number", Type::INT4), ("map_name", Type::TEXT), ("sys_name", Type::TEXT), ("pg_username", Type::TEXT), ("error", Type::TEXT)];

/// A row about what is wrong; `None` is the file as a whole.
fn wrong(columns: usize, line: Option<u32>, error: &str) -> Vec<Datum> {
    let mut row = vec![Datum::Null; columns];
    row[0] = line.map_or(Datum::Null, number);
    row[columns - 1] = text(error);
    row
}

fn number(line: u32) -> Datum {
    Datum::Int4(i32::try_from(line).unwrap_or(i32::MAX))
}

fn names(tokens: &[Token]) -> Datum {
    text_array(&tokens.iter().map(|token| token.text.as_str()).collect::<Vec<_>>())
}

fn rule(line: &HbaLine) -> Vec<Datum> {
    let (address, mask) = match &line.address {
        None => (None, None),
        Some(AddressMatch::All) => (Some("all".to_owned()), None),
        Some(AddressMatch::SameHost) => (Some("samehost".to_owned()), None),
        Some(AddressMatch::SameNet) => (Some("samenet".to_owned()), None),
        Some(AddressMatch::Host(name)) => (Some(name.clone()), None),
        Some(AddressMatch::Network { address, mask }) => (Some(address.to_string()), Some(mask.to_string())),
    };
    let options = line.options();
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    vec![
        number(line.number),
        text(line.connection.as_str()),
        names(&line.databases),
        names(&line.roles),
        optional(address),
        optional(mask),
        text(line.method.as_str()),
        if options.is_empty() { Datum::Null } else { text_array(&options) },
        optional(line.warning),
    ]
}

fn sources(host: &Host) -> Sources {
    Sources::of(&host.server.config, is_on(&*host.server, "ssl"))
}

pub(super) fn hba_file_rules(host: &Host) -> Vec<Vec<Datum>> {
    let columns = HBA_FILE_RULES.len();
    match sources(host).hba_lines() {
        Ok((lines, _)) => lines
            .iter()
            .map(|(line, parsed)| match parsed {
                Ok(parsed) => rule(parsed),
                Err(error) => wrong(columns, Some(line.number), error),
            })
            .collect(),
        Err(error) => vec![wrong(columns, None, &error)],
    }
}

pub(super) fn ident_file_mappings(host: &Host) -> Vec<Vec<Datum>> {
    let columns = IDENT_FILE_MAPPINGS.len();
    match sources(host).ident_lines() {
        Ok(lines) => lines
            .iter()
            .map(|(line, parsed)| match parsed {
                Ok(parsed) => vec![
                    number(parsed.number),
                    text(&parsed.map),
                    text(&parsed.system_user),
                    text(&parsed.role),
                    Datum::Null,
                ],
                Err(error) => wrong(columns, Some(line.number), error),
            })
            .collect(),
        Err(error) => vec![wrong(columns, None, &error)],
    }
}
