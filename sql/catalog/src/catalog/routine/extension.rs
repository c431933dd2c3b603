//! Extensions: those whose functions exist here. One that is not built in from the start is a script of
//! functions over built-in ones, as PostgreSQL's are, and is there while one of them is: each says which
//! extension it came with ([`crate::catalog::RoutineTraits::extension`]).

use crate::catalog::{Catalog, RoutineRef};
use crate::types::Oid;

/// An extension that can be had.
#[derive(Debug)]
pub struct Extension {
    /// Of its row in pg_extension: in a part of the number space that no object is drawn from, but for
    /// one that every database has.
    pub oid: Oid,
    pub name: &'static str,
    pub version: &'static str,
    pub comment: &'static str,
    /// Definitions; the schema stands where it says `@schema@`.
    script: &'static str,
}

/// Every extension there is.
pub static EXTENSIONS: &[Extension] = &[
    Extension {
        oid: Oid(0x1800_0001),
        name: "pgcrypto",
        version: "1.3",
        comment: "cryptographic functions",
        script: include_str!("../../../../data/pgcrypto.sql"),
    },
    Extension {
        oid: PLPGSQL,
        name: "plpgsql",
        version: "1.0",
        comment: "PL/pgSQL procedural language",
        script: "",
    },
    Extension {
        oid: Oid(0x1800_0002),
        name: "uuid-ossp",
        version: "1.1",
        comment: "generate universally unique identifiers (UUIDs)",
        script: include_str!("../../../../data/uuid-ossp.sql"),
    },
];

/// The number of the extension that every database has.
pub const PLPGSQL: Oid = Oid(13_601);
/// What the server's own views are counted to: dumps leave out what belongs to an extension.
pub const ARCHIPEL_EXTENSION: Oid = Oid(13_602);

/// The extension of a name, if there is one.
pub fn find(name: &str) -> Option<&'static Extension> {
    EXTENSIONS.iter().find(|known| known.name == name)
}

impl Extension {
    /// Whether every database has it.
    pub fn is_built_in(&self) -> bool {
        self.oid == PLPGSQL
    }

    /// The definitions it is made of, in a schema.
    pub fn script(&self, schema: &str) -> String {
        self.script.replace("@schema@", &crate::catalog::names::quote_identifier(schema))
    }
}

impl Catalog {
    /// The functions of an extension; none if it is not there.
    pub fn extension_members(&self, extension: &str) -> Vec<RoutineRef> {
        let of = |routine: &&RoutineRef| routine.traits.extension.as_deref() == Some(extension);
        self.routines_all().filter(of).cloned().collect()
    }

    /// Where an extension is; `None` if it is not.
    pub fn extension_schema(&self, extension: &Extension) -> Option<String> {
        if extension.is_built_in() {
            return Some("pg_catalog".to_owned());
        }
        let members = self.extension_members(extension.name);
        // What somebody has added may be elsewhere.
        let own = |routine: &&RoutineRef| extension.script.contains(&format!("@schema@.{}(", routine.name));
        members.iter().find(own).or_else(|| members.first()).map(|routine| routine.schema.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_can_be_read() {
        for extension in EXTENSIONS {
            let script = extension.script("my schema");
            let statements = crate::parser::parse(&script).unwrap();
            assert_eq!(statements.is_empty(), extension.is_built_in(), "{}", extension.name);
        }
    }
}
