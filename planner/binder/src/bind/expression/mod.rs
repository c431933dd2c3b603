//! Scalar expressions: from syntax to typed expressions.
//!
//! - [`expr`] the dispatch over syntax, names, operators, casts
//! - [`column`] dotted names: columns, variables, whole rows
//! - [`literal`] constants and parameters
//! - [`constant`] what the meaning of a literal depends on
//! - [`parameter`] parameters that have no type yet
//! - [`coerce`] casts and common types
//! - [`polymorphic`] types that stand for others
//! - [`domain`] what values of a domain must meet
//! - [`compare`] rows, lists, ANY and ALL, BETWEEN, DISTINCT FROM
//! - [`case_operand`] the operand of a simple CASE
//! - [`record`] rows as values
//! - [`row_value`] expressions that are rows
//! - [`coordinate`] subscripts of points and names
//! - [`json_subscript`] subscripts of jsonb
//! - [`disjunction`] conditions with OR, as they are best served
//! - [`row_place`] conditions on places of rows, led back to their keys
//! - [`volatility`] what may change by itself
//! - [`subquery`] whether there is a query in an expression

pub mod case_operand;
pub mod coerce;
pub mod column;
pub mod compare;
pub(crate) mod constant;
pub(crate) mod coordinate;
pub(crate) mod disjunction;
pub mod domain;
pub mod expr;
pub(crate) mod json_subscript;
pub mod literal;
pub(crate) mod parameter;
pub(crate) mod polymorphic;
pub(crate) mod record;
pub(crate) mod row_place;
pub(crate) mod row_value;
pub(crate) mod subquery;
pub(crate) mod volatility;
