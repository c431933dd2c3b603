//! PostgreSQL's own operator classes.

use crate::catalog::operator_class::access_method;
use crate::datum::Datum;
use crate::types::Oid;

/// A btree operator class.
pub(in crate::system) struct OperatorClass {
    pub oid: Oid,
    pub name: &'static str,
    pub family: Oid,
    pub input: Oid,
    pub default: bool,
    pub key: Oid,
}

/// PostgreSQL's btree operator classes over the types known here.
pub(in crate::system) fn operator_classes() -> impl Iterator<Item = OperatorClass> {
    include_str!("../../../../data/opclass.tsv").lines().filter_map(|line| {
        let fields: Vec<&'static str> = line.split('\t').collect();
        let [oid, _, name, family, input, default, key] = fields[..] else { return None };
        let number = |text: &str| Oid(text.parse().unwrap_or(0));
        Some(OperatorClass {
            oid: number(oid),
            name,
            family: number(family),
            input: number(input),
            default: default == "t",
            key: number(key),
        })
    })
}

/// The btree operator class of a name.
pub(in crate::system) fn class_named(name: &str) -> Option<Oid> {
    operator_classes().find(|class| class.name == name).map(|class| class.oid)
}

/// The access method of a name.
pub(in crate::system) fn method_oid(method: &str) -> Datum {
    Datum::Oid(access_method(method))
}
