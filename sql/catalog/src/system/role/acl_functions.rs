//! Access lists as values: makeaclitem, acldefault, aclexplode.

use super::roles::{self, ACLITEM};
use crate::catalog::access::EVERYBODY;
use crate::catalog::access::acl::AclText;
use crate::catalog::access::authority::undefined_role;
use crate::catalog::{AclItem, ObjectClass, Privileges};
use crate::datum::Datum;
use crate::error::{Result, SqlError, SqlState};
use crate::system::SystemSource;
use crate::system::shape::text;
use crate::types::Oid;

/// Answers the function if it is one of this file's.
pub(in crate::system) fn call(
    name: &str,
    args: &[Datum],
    source: &dyn SystemSource,
) -> Option<Result<Datum>> {
    match name {
        "acldefault_sql" => Some(default_list(args, source)),
        "aclexplode" => Some(exploded(args, source)),
        "makeaclitem" => Some(made_item(args, source)),
        _ => None,
    }
}

/// makeaclitem(grantee, grantor, privilege, with its grant option): of one privilege, in 15.
fn made_item(args: &[Datum], source: &dyn SystemSource) -> Result<Datum> {
    let [Datum::Oid(grantee), Datum::Oid(grantor), Datum::Text(name), Datum::Bool(option)] = args else {
        return Ok(Datum::Null);
    };
    let Some(privileges) = Privileges::parse(name) else {
        let message = format!("unrecognized privilege type: \"{name}\"");
        return Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message));
    };
    let options = if *option { privileges } else { Privileges::NONE };
    let item = AclItem { grantee: *grantee, grantor: *grantor, privileges, options };
    Ok(text(AclText { item: &item, catalog: source.catalog() }.to_string()))
}

/// acldefault(kind, owner).
fn default_list(args: &[Datum], source: &dyn SystemSource) -> Result<Datum> {
    let [Datum::Text(kind), Datum::Oid(owner)] = args else { return Ok(Datum::Null) };
    let letter = kind.chars().next().unwrap_or('\0');
    match ObjectClass::of_letter(letter) {
        Some(class) => {
            // Where the owner is PUBLIC, nobody has more than everybody.
            let mut items = class.default_acl(*owner);
            if *owner == EVERYBODY {
                items = vec![AclItem::new(EVERYBODY, EVERYBODY, class.all())];
            }
            Ok(roles::acl(source, &items))
        }
        // Kinds of object that do not exist here have rights of their own.
        None => {
            let of_owner = match letter {
                'S' | 'F' => "U",
                't' => "C",
                _ => return Ok(roles::acl(source, &[])),
            };
            let nothing = AclItem::new(*owner, *owner, Privileges::NONE);
            let item = AclText { item: &nothing, catalog: source.catalog() }.to_string();
            let item = item.replacen("=/", &format!("={of_owner}/"), 1);
            Ok(crate::function::array_of_values(ACLITEM, vec![text(item)]))
        }
    }
}

/// aclexplode: each right of each item; the rows as an array of records.
fn exploded(args: &[Datum], source: &dyn SystemSource) -> Result<Datum> {
    let Some(Datum::Array(items)) = args.first() else { return Ok(Datum::Null) };
    if items.dimensions.len() != 1 {
        let message = "ACL arrays must be one-dimensional";
        return Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message));
    }
    if items.values.iter().any(Datum::is_null) {
        let message = "ACL arrays must not contain null values";
        return Err(SqlError::new(SqlState::NULL_VALUE_NOT_ALLOWED, message));
    }
    let mut rows = Vec::new();
    for item in &items.values {
        let Datum::Text(item) = item else { continue };
        let wrong = || {
            let message = format!("invalid input syntax for type aclitem: \"{item}\"");
            SqlError::new(SqlState::INVALID_TEXT_REPRESENTATION, message)
        };
        let (grantee, rest) = split_name(item).ok_or_else(wrong)?;
        let rest = rest.strip_prefix('=').ok_or_else(wrong)?;
        let (letters, grantor) = rest.split_once('/').ok_or_else(wrong)?;
        let (grantor, _) = split_name(grantor).ok_or_else(wrong)?;
        let oid = |name: &str| match source.catalog().role(name) {
            Some(role) => Ok(role.oid),
            None if name.is_empty() => Ok(EVERYBODY),
            None => name.parse().map(Oid).map_err(|_| undefined_role(name)),
        };
        let (grantor, grantee) = (oid(&grantor)?, oid(&grantee)?);
        let mut letters = letters.chars().peekable();
        while let Some(letter) = letters.next() {
            let option = letters.next_if_eq(&'*').is_some();
            let known = Privileges::NAMES.iter().find(|(_, known, _)| *known == letter);
            let (_, _, name) = known.ok_or_else(wrong)?;
            rows.push(Datum::Record(
                [Datum::Oid(grantor), Datum::Oid(grantee), text(name), Datum::Bool(option)].into(),
            ));
        }
    }
    Ok(crate::function::array_of_values(ACLITEM, rows))
}

/// A name, quoted or not, and what follows.
fn split_name(text: &str) -> Option<(String, &str)> {
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text.find(['=', '/']).unwrap_or(text.len());
        return Some((text[..end].to_owned(), &text[end..]));
    };
    let mut name = String::new();
    let mut rest = quoted;
    loop {
        let end = rest.find('"')?;
        name.push_str(&rest[..end]);
        rest = &rest[end + 1..];
        match rest.strip_prefix('"') {
            Some(more) => {
                name.push('"');
                rest = more;
            }
            None => return Some((name, rest)),
        }
    }
}
