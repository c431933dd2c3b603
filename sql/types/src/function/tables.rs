//! The implementations of functions by pg_proc.prosrc: one table for each topic.

use super::intrinsic::Intrinsic;
use super::signature::{Eval, SetEval, SetPage};
use super::{
    accumulate, array, array_assign, binary_match, binary_string, comparison, convert, crypto, decimal,
    enumeration, float, hash, identifier, integer, intrinsic, json, jsonpath, lsn, normal_form, number_text,
    part_assign, pattern, point, record, reference, regexp, send, series, session, snapshot, string,
    temporal, variadic,
};

/// `(pg_proc.prosrc, implementation)` of scalar functions, by topic.
type ScalarTable = &'static [(&'static str, Eval)];

/// What functions are, by the same names.
type IntrinsicTable = &'static [(&'static str, Intrinsic)];

/// The implementations of set-returning functions.
type SetTable = &'static [(&'static str, SetEval)];

pub(super) const SCALAR_TABLES: &[ScalarTable] = &[
    comparison::OPERATORS,
    comparison::SUPPORT,
    integer::ARITHMETIC,
    integer::ONE_WIDTH,
    integer::OTHERS,
    float::DOUBLES,
    float::SINGLES,
    float::MATHEMATICS,
    float::OTHERS,
    decimal::FUNCTIONS,
    convert::FUNCTIONS,
    string::FUNCTIONS,
    binary_match::FUNCTIONS,
    binary_string::FUNCTIONS,
    pattern::FUNCTIONS,
    regexp::FUNCTIONS,
    number_text::FUNCTIONS,
    temporal::FUNCTIONS,
    array::FUNCTIONS,
    array_assign::FUNCTIONS,
    part_assign::FUNCTIONS,
    variadic::FUNCTIONS,
    accumulate::FUNCTIONS,
    record::FUNCTIONS,
    json::FUNCTIONS,
    jsonpath::FUNCTIONS,
    enumeration::FUNCTIONS,
    hash::FUNCTIONS,
    send::FUNCTIONS,
    session::HOSTED,
    session::FUNCTIONS,
    lsn::FUNCTIONS,
    point::FUNCTIONS,
    snapshot::FUNCTIONS,
    identifier::FUNCTIONS,
    normal_form::FUNCTIONS,
    crypto::FUNCTIONS,
];

pub(super) const INTRINSIC_TABLES: &[IntrinsicTable] = &[
    comparison::INTRINSICS,
    integer::ARITHMETIC_INTRINSICS,
    integer::ONE_WIDTH_INTRINSICS,
    intrinsic::INTRINSICS,
];

pub(super) const SET_TABLES: &[SetTable] = &[
    series::SETS,
    temporal::SETS,
    array::SETS,
    pattern::SETS,
    json::SETS,
    jsonpath::SETS,
    session::SETS,
    snapshot::SETS,
    reference::SETS,
];

/// How a set is made in pages, by the name of its function.
pub(super) fn page_of(key: &str) -> Option<SetPage> {
    let mut pages = series::PAGES.iter().chain(temporal::PAGES);
    pages.find(|(name, _)| *name == key).map(|(_, page)| *page)
}
