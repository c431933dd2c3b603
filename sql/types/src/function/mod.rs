//! Scalar functions, operators and casts: signatures as in pg_proc, evaluated row-wise.
//!
//! Each is implemented once, here; the planner wraps them for DataFusion.
//!
//! - [`signature`] what a function, an aggregate, a set-returning function is
//! - [`host`]      what a function may ask of the session it runs in
//! - [`tables`]    the implementations by their names, one table for each topic; [`registry`] them by signature
//! - [`intrinsic`] what functions are, for whoever knows more of them than how to call them

pub use crate::style::Style;

mod accumulate;
mod advanced;
mod angles;
mod args;
mod array;
mod array_assign;
mod binary_match;
mod binary_string;
mod brackets;
mod comparison;
mod convert;
mod crypto;
mod decimal;
mod dissection;
mod enumeration;
mod extra_checks;
mod float;
mod hash;
mod host;
mod identifier;
mod integer;
pub(crate) mod intrinsic;
mod json;
mod jsonpath;
pub mod length;
mod letters;
mod lsn;
mod matches;
mod normal_form;
mod number_text;
mod part_assign;
mod pattern;
mod point;
mod preference;
pub(crate) mod quoting;
mod record;
mod record_image;
mod reference;
mod regexp;
mod registry;
mod search;
mod send;
mod series;
mod session;
pub(crate) mod signature;
mod snapshot;
mod string;
mod tables;
mod temporal;
mod tid;
mod variadic;

pub use crate::io::lsn::{lsn_place, lsn_value, parse_lsn, show_lsn};
pub use crate::io::point::{parse_point, point_of, point_value, show_point};
pub use crate::io::snapshot::{Snapshot, parse_transaction_id};
pub use array::from_values as array_of_values;
pub use extra_checks::{CheckLevel, ExtraCheck, ExtraChecks};
pub use pattern::{like, regular_expression};
pub use quoting::quote_identifier;
pub use record_image::column_types;
pub use reference::is_no_type_name;
pub use search::Pattern;
pub use session::VERSION_TEXT;
pub use string::quote_literal;
pub use tid::{parse_tid, show_tid, tid_place, tid_value};
pub use variadic::OF_ARRAY;

pub use float::apply as float_arithmetic;
pub use intrinsic::Operation as FloatOperation;
pub use intrinsic::{AdvisoryLock, Aggregate, Comparison, Intrinsic, Operands};
pub use intrinsic::{Arithmetic, IntegerWidth};
pub use string::{
    char_count as text_length, chr as text_chr, left as text_left, position as text_position,
    right as text_right, substring as text_substring,
};

pub use host::{CachedNumbers, FunctionContext, NoSession, PreparedText, SessionHost};
pub use registry::{
    Cast, CastContext, CastMethod, Operator, WindowSignature, aggregates, all_aggregates, all_casts,
    all_functions, all_operators, all_set_functions, all_windows, cast, function_by_oid, is_cast,
    is_written_in_sql, known_but_missing, lookup_aggregates, lookup_functions, lookup_operators,
    lookup_set_functions, operator_by_oid,
};
pub use signature::{
    AggregateFunction, AggregateState, Eval, ResolvedFunction, ScalarFunction, SetEval, SetFunction, SetPage,
    Volatility,
};
