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

/// What reads and writes a type.
pub(in crate::system) fn read_as(ty: Oid) -> [(&'static str, Datum); 4] {
    let of_info = |info: &TypeInfo| [info.input, info.output, info.receive, info.send];
    let functions = match ty.kind() {
        Some(kind) => kind.traits().functions,
        None => type_info(like_built_in(ty)).map_or([Oid(0); 4], of_info),
    };
    let [input, output, receive, send] = functions.map(Datum::Oid);
    [("typinput", input), ("typoutput", output), ("typreceive", receive), ("typsend", send)]
}

/// A built-in type that is read and written as this one.
fn like_built_in(ty: Oid) -> Oid {
    if ty.element_kind().is_some() { Oid::RECORD_ARRAY } else { ty }
}

/// What reads and writes an array, and what takes it apart.
pub(in crate::system) fn read_as_array() -> impl Iterator<Item = (&'static str, Datum)> {
    let of_array = ["array_typanalyze", "array_subscript_handler"].map(named);
    let parts = ["typanalyze", "typsubscript"].into_iter().zip(of_array.map(Datum::Oid));
    read_as(Oid::RECORD_ARRAY).into_iter().chain(parts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::type_kind::TypeKind;

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
        for function in TypeKind::ALL.iter().flat_map(|kind| kind.traits().functions) {
            assert!(known(function), "{}", function.0);
        }
        for name in ["array_in", "array_subscript_handler", "domain_in", "domain_recv"] {
            assert_ne!(named(name), Oid(0), "{name}");
        }
    }
}
