//! Scalar functions, operators and casts: signatures as in pg_proc, evaluated row-wise.
//!
//! Each is implemented once, here; the planner wraps them for DataFusion.
//!
//! - [`signature`] what a function, an aggregate, a set-returning function is
//! - [`host`]      what a function may ask of the session it runs in
//! - [`tables`]    the implementations by their names, one table for each topic; [`registry`] them by signature
//! - [`intrinsic`] what functions are, for whoever knows more of them than how to call them
//! - [`args`]      reading arguments; [`variadic`] calls with an array of them; [`length`] how long values may become
//! - [`comparison`] comparisons of every type; [`convert`] casts
//! - [`text`], [`binary`], [`number`], [`datetime`], [`container`] (arrays and records), [`json`], [`point`],
//!   [`bit_string`], [`network`], [`enum_label`]: functions by the types they are of
//! - [`pattern_match`] LIKE and regular expressions
//! - [`system_info`] what the session, the server and the catalog tell of themselves

pub use crate::style::Style;

mod args;
mod binary;
pub(crate) mod bit_string;
mod comparison;
mod container;
mod convert;
mod datetime;
mod enum_label;
mod host;
pub(crate) mod intrinsic;
mod json;
pub mod length;
mod network;
mod number;
mod pattern_match;
mod point;
mod registry;
pub(crate) mod signature;
mod system_info;
mod tables;
pub(crate) mod text;
mod variadic;

pub use crate::io::lsn::{lsn_place, lsn_value, parse_lsn, show_lsn};
pub use crate::io::point::{parse_point, point_of, point_value, show_point};
pub use crate::io::snapshot::{Snapshot, parse_transaction_id};
pub use crate::keyword::quote_identifier;
pub use container::array::from_values as array_of_values;
pub use container::record_image::column_types;
pub use pattern_match::pattern::{like, regular_expression};
pub use pattern_match::regex_search::Pattern;
pub use system_info::extra_checks::{CheckLevel, ExtraCheck, ExtraChecks};
pub use system_info::reference::is_no_type_name;
pub use system_info::row_place::{PLACE_NUMBERS, drawn_number, drawn_place, is_place_integer};
pub use system_info::session::VERSION_TEXT;
pub use system_info::tid::{parse_tid, show_tid, tid_place, tid_value};
pub use text::string::quote_literal;
pub use variadic::OF_ARRAY;

pub use intrinsic::Operation as FloatOperation;
pub use intrinsic::{AdvisoryLock, Aggregate, Comparison, Intrinsic, LargeObjectCall, Operands};
pub use intrinsic::{Arithmetic, IntegerWidth};
pub use number::float::apply as float_arithmetic;
pub use pattern_match::exact_pattern;
pub use text::string::{
    char_count as text_length, chr as text_chr, left as text_left, position as text_position,
    right as text_right, substring as text_substring,
};

pub use host::{CachedNumbers, FunctionContext, NoSession, PreparedText, SessionHost};
pub use registry::{
    Cast, CastContext, CastMethod, Operator, WindowSignature, aggregates, all_aggregates, all_casts,
    all_functions, all_operators, all_set_functions, all_windows, cast, function_by_oid, internal_function,
    is_cast, is_written_in_sql, known_but_missing, lookup_aggregates, lookup_functions, lookup_operators,
    lookup_set_functions, operator_by_oid,
};
pub use signature::{
    AggregateFunction, AggregateState, Eval, ResolvedFunction, ScalarFunction, SetEval, SetFunction, SetPage,
    Volatility,
};
