//! Type identities: PostgreSQL's OIDs, so that drivers and catalogs agree with us. What a number says of
//! a type that somebody made is in [`type_kind`](crate::type_kind).

use serde::{Deserialize, Serialize};

/// An object identifier. Types below 10000 carry PostgreSQL's own numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Oid(pub u32);

impl std::fmt::Display for Oid {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// A type with its modifier (`varchar(10)`, `numeric(12,2)`), as PostgreSQL's atttypid and
/// atttypmod: -1 is "no modifier", otherwise PostgreSQL's own encoding of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Type {
    pub oid: Oid,
    pub typmod: i32,
}

impl Type {
    /// The type without a modifier.
    pub const fn of(oid: Oid) -> Type {
        Type { oid, typmod: -1 }
    }
}

impl Oid {
    /// Where the oids of the labels of enums begin.
    pub const ENUM_LABELS: u32 = 0x5000_0000;

    /// Whether its values are the oids of objects, which read and show as their names: regclass and
    /// its like.
    #[inline]
    pub fn names_object(self) -> bool {
        matches!(
            self,
            Oid::REGCLASS
                | Oid::REGTYPE
                | Oid::REGPROC
                | Oid::REGPROCEDURE
                | Oid::REGOPER
                | Oid::REGOPERATOR
                | Oid::REGROLE
                | Oid::REGNAMESPACE
        )
    }

    /// Whether it is the oid of an enum's label.
    #[inline]
    pub const fn is_enum_label(self) -> bool {
        self.0 & 0xF000_0000 == Self::ENUM_LABELS
    }
}

macro_rules! oids {
    ($($name:ident = $oid:literal;)*) => {
        impl Oid { $(pub const $name: Oid = Oid($oid);)* }
        impl Type { $(pub const $name: Type = Type::of(Oid($oid));)* }
    };
}

oids! {
    BOOL = 16; BYTEA = 17; CHAR = 18; NAME = 19; INT8 = 20; INT2 = 21; INT2VECTOR = 22; INT4 = 23;
    REGPROC = 24; TEXT = 25; OID = 26; TID = 27; XID = 28; CID = 29; OIDVECTOR = 30; JSON = 114;
    PG_NODE_TREE = 194; POINT = 600; CIDR = 650; MACADDR8 = 774; MACADDR = 829; INET = 869; FLOAT4 = 700; FLOAT8 = 701; UNKNOWN = 705; ACLITEM = 1033;
    BPCHAR = 1042; VARCHAR = 1043; DATE = 1082; TIME = 1083; TIMESTAMP = 1114; TIMESTAMPTZ = 1184;
    INTERVAL = 1186; TIMETZ = 1266; BIT = 1560; VARBIT = 1562; NUMERIC = 1700; REFCURSOR = 1790; REGPROCEDURE = 2202;
    REGOPER = 2203; REGOPERATOR = 2204; REGCLASS = 2205; REGTYPE = 2206; RECORD = 2249; CSTRING = 2275; ANY = 2276;
    ANYARRAY = 2277; VOID = 2278; TRIGGER = 2279; ANYELEMENT = 2283; UUID = 2950; ANYNONARRAY = 2776; ANYENUM = 3500;
    REGROLE = 4096; REGNAMESPACE = 4089; JSONB = 3802; JSONPATH = 4072; ANYCOMPATIBLE = 5077; ANYCOMPATIBLEARRAY = 5078;
    BOOL_ARRAY = 1000; BYTEA_ARRAY = 1001; CHAR_ARRAY = 1002; NAME_ARRAY = 1003; INT2_ARRAY = 1005;
    INT4_ARRAY = 1007; TEXT_ARRAY = 1009; OID_ARRAY = 1028; BPCHAR_ARRAY = 1014; VARCHAR_ARRAY = 1015;
    INT8_ARRAY = 1016; FLOAT4_ARRAY = 1021; FLOAT8_ARRAY = 1022; ACLITEM_ARRAY = 1034; CIDR_ARRAY = 651; MACADDR8_ARRAY = 775; MACADDR_ARRAY = 1040; INET_ARRAY = 1041;
    TIMESTAMP_ARRAY = 1115; DATE_ARRAY = 1182; TIME_ARRAY = 1183; TIMESTAMPTZ_ARRAY = 1185;
    INTERVAL_ARRAY = 1187; TIMETZ_ARRAY = 1270; BIT_ARRAY = 1561; NUMERIC_ARRAY = 1231; RECORD_ARRAY = 2287; UUID_ARRAY = 2951;
    REGTYPE_ARRAY = 2211; JSON_ARRAY = 199; JSONB_ARRAY = 3807; XID8 = 5069; PG_LSN = 3220; PG_SNAPSHOT = 5038; TXID_SNAPSHOT = 2970;
}
