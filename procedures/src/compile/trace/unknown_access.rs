//! The access of a routine that may reach anything.

use archipel_engine::cell::ColumnKind;
use archipel_engine::schema::KeyColumn;
use archipel_planner::route::{Access, RouteKey};
use archipel_planner::row::Codec;
use archipel_sql::types::Oid;

/// An access of which nothing is known beforehand.
pub(crate) fn unknown_access(what: &str, reason: &str) -> Access {
    Access {
        group: None,
        table: what.to_string(),
        oid: Oid(0),
        column: String::new(),
        write: true,
        key_column: KeyColumn {
            column: 0,
            descending: false,
            nulls_first: false,
            nullable: false,
            form: Default::default(),
        },
        kind: ColumnKind::Int8,
        codec: Codec::Int8,
        key: RouteKey::Unknown(reason.to_string()),
        among: None,
        candidates: Vec::new(),
        joined: Vec::new(),
        uses: Vec::new(),
        kept: 1.0,
    }
}
