//! The languages of routines as objects: they are there from the beginning, the superuser's, and nobody makes more
//! of them; who may use them is said by GRANT (pg_language).

use crate::types::Oid;

/// What is built in is written in.
pub const INTERNAL: Oid = Oid(12);

/// Libraries: there are none here.
pub const C: Oid = Oid(13);

/// SQL functions and procedures.
pub const SQL: Oid = Oid(14);

/// PL/pgSQL. It has a number of our own, as PostgreSQL's is drawn; no relation of the system has it.
pub const PLPGSQL: Oid = Oid(13_900);

/// What runs PL/pgSQL's routines, what runs DO blocks, and what checks new routines, as pg_proc lists them. The
/// server does it by itself: nobody can call them.
pub const PLPGSQL_FUNCTIONS: [Oid; 3] = [Oid(13_901), Oid(13_902), Oid(13_903)];

/// A language.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LanguageObject {
    pub oid: Oid,
    pub name: &'static str,
    /// Whether others than superusers may use it.
    pub trusted: bool,
    /// The function that checks a new routine (pg_language.lanvalidator).
    pub validator: Oid,
    pub comment: &'static str,
}

/// All of them.
pub const LANGUAGES: [LanguageObject; 4] = [
    LanguageObject {
        oid: INTERNAL,
        name: "internal",
        trusted: false,
        validator: Oid(2246),
        comment: "built-in functions",
    },
    LanguageObject {
        oid: C,
        name: "c",
        trusted: false,
        validator: Oid(2247),
        comment: "dynamically-loaded C functions",
    },
    LanguageObject {
        oid: SQL,
        name: "sql",
        trusted: true,
        validator: Oid(2248),
        comment: "SQL-language functions",
    },
    LanguageObject {
        oid: PLPGSQL,
        name: "plpgsql",
        trusted: true,
        validator: PLPGSQL_FUNCTIONS[2],
        comment: "PL/pgSQL procedural language",
    },
];

/// The language of a name.
pub fn language_named(name: &str) -> Option<LanguageObject> {
    LANGUAGES.into_iter().find(|language| language.name == name)
}

/// The language of a number.
pub fn language_numbered(oid: Oid) -> Option<LanguageObject> {
    LANGUAGES.into_iter().find(|language| language.oid == oid)
}
