//! The implementations of functions by pg_proc.prosrc: one table for each topic.

use super::binary::{binary_match, binary_string, character_set, crypto, hash, send};
use super::container::{array, array_assign, nested_assign, record};
use super::intrinsic::Intrinsic;
use super::json::jsonpath;
use super::number::{decimal, float, integer, number_format, series, transition};
use super::pattern_match::{pattern, regexp};
use super::signature::{Eval, SetEval, SetPage};
use super::system_info::{identifier, lsn, policy_check, reference, row_place, session, snapshot};
use super::text::{normalize, string};
use super::{
    bit_string, comparison, convert, datetime, enum_label, intrinsic, json, network, point, variadic,
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
    bit_string::FUNCTIONS,
    network::FUNCTIONS,
    character_set::FUNCTIONS,
    pattern::FUNCTIONS,
    regexp::FUNCTIONS,
    number_format::FUNCTIONS,
    datetime::FUNCTIONS,
    array::FUNCTIONS,
    array_assign::FUNCTIONS,
    nested_assign::FUNCTIONS,
    variadic::FUNCTIONS,
    transition::FUNCTIONS,
    record::FUNCTIONS,
    json::FUNCTIONS,
    jsonpath::FUNCTIONS,
    enum_label::FUNCTIONS,
    hash::FUNCTIONS,
    send::FUNCTIONS,
    session::HOSTED,
    session::FUNCTIONS,
    lsn::FUNCTIONS,
    point::FUNCTIONS,
    snapshot::FUNCTIONS,
    policy_check::FUNCTIONS,
    row_place::FUNCTIONS,
    identifier::FUNCTIONS,
    normalize::FUNCTIONS,
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
    datetime::SETS,
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
    let mut pages = series::PAGES.iter().chain(datetime::PAGES);
    pages.find(|(name, _)| *name == key).map(|(_, page)| *page)
}
