//! The functions that read, write and take apart types: pg_type names them, and drivers ask for them by
//! name (`typinput = 'array_in'::regproc`). Their arguments are of types that no statement has.

use std::sync::OnceLock;

use crate::datum::Datum;
use crate::function;
use crate::type_table::{TypeInfo, type_info};
use crate::types::Oid;

/// See the module's head.
pub(in crate::system) struct TypeFunction {
    pub oid: Oid,
    pub name: &'static str,
    pub args: Vec<Oid>,
    pub result: Oid,
    /// As pg_proc has it.
    pub volatility: &'static str,
    pub strict: bool,
}

/// Those that are not offered as functions besides, by rising oid.
pub(in crate::system) fn all() -> &'static [TypeFunction] {
    static ALL: OnceLock<Vec<TypeFunction>> = OnceLock::new();
    ALL.get_or_init(|| {
        let lines = include_str!("../../../../data/type_function.tsv").lines();
        lines.map(parse_row).filter(|one| function::function_by_oid(one.oid).is_none()).collect()
    })
}

fn parse_row(line: &'static str) -> TypeFunction {
    let mut fields = line.split('\t');
    let mut next = || fields.next().unwrap_or_default();
    let oid = |text: &str| Oid(text.parse().unwrap_or(0));
    TypeFunction {
        oid: oid(next()),
        name: next(),
        args: next().split(' ').filter(|arg| !arg.is_empty()).map(oid).collect(),
        result: oid(next()),
        volatility: next(),
        strict: next() == "t",
    }
}

/// The one with this number.
pub(super) fn by_oid(oid: Oid) -> Option<&'static TypeFunction> {
    all().binary_search_by_key(&oid, |one| one.oid).ok().map(|place| &all()[place])
}

/// The number of the one with this name, of those whose name is the only one.
pub(in crate::system) fn named(name: &str) -> Oid {
    all().iter().find(|one| one.name == name).map_or(Oid(0), |one| one.oid)
}

/// What reads and writes a type: what does so for another one.
pub(in crate::system) fn read_as(like: Oid) -> [(&'static str, Datum); 4] {
    let info = type_info(like);
    let of = |function: fn(&TypeInfo) -> Oid| Datum::Oid(info.map_or(Oid(0), function));
    [
        ("typinput", of(|info| info.input)),
        ("typoutput", of(|info| info.output)),
        ("typreceive", of(|info| info.receive)),
        ("typsend", of(|info| info.send)),
    ]
}

/// The same of an array, and what takes it apart.
pub(in crate::system) fn read_as_array() -> impl Iterator<Item = (&'static str, Datum)> {
    let of_array = ["array_typanalyze", "array_subscript_handler"].map(named);
    let parts = ["typanalyze", "typsubscript"].into_iter().zip(of_array.map(Datum::Oid));
    read_as(Oid::RECORD_ARRAY).into_iter().chain(parts)
}

/// The same of an enum.
pub(in crate::system) fn read_as_enum() -> [(&'static str, Datum); 4] {
    let functions = [
        ("typinput", "enum_in"),
        ("typoutput", "enum_out"),
        ("typreceive", "enum_recv"),
        ("typsend", "enum_send"),
    ];
    functions.map(|(column, name)| (column, Datum::Oid(named(name))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_is_read_and_written_by_something_known() {
        let known =
            |oid: Oid| oid == Oid(0) || by_oid(oid).is_some() || function::function_by_oid(oid).is_some();
        for info in crate::type_table::all_types() {
            for function in
                [info.input, info.output, info.receive, info.send, info.typmod_in, info.typmod_out]
            {
                assert!(known(function), "{} of {}", function.0, info.name);
            }
        }
        for name in
            ["array_in", "array_subscript_handler", "enum_in", "enum_send", "domain_in", "domain_recv"]
        {
            assert_ne!(named(name), Oid(0), "{name}");
        }
    }
}
