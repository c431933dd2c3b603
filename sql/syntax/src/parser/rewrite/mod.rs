//! Constructions that sqlparser's grammar lacks, in a form that it has.
//!
//! Each reaches the grammar as tokens that mean something else there; most as a name that no identifier can
//! have, and that holds the text and place of the part ([`placeholder`]), which a production of our own reads
//! later ([`placeholder_parser`]).
//!
//! - [`array_keyword`]      `int ARRAY[3]`
//! - [`subscripted_target`] elements and slices of arrays as targets of an assignment
//! - [`window_frame`]       EXCLUDE, and bounds that begin with a string
//! - [`nested_join`]        joins nested without parentheses; [`rows_from`] ROWS FROM; [`only`] ONLY t
//! - [`conflict_target`]    ON CONFLICT over expressions; [`merge`] MERGE from a join
//! - [`fetch_first`]        FETCH FIRST; [`search_cycle`] SEARCH and CYCLE; [`current_of`] WHERE CURRENT OF
//! - [`empty_target_list`]  SELECT of no columns; [`expand_star`] stars behind values
//! - [`sql_syntax`]         calls whose arguments are set apart by words: `substring(a FROM 1)`
//! - [`few_words`]          rewritings of a few words each
//! - [`unsupported`]        the names of what the grammar has no form for

pub(super) mod array_keyword;
pub(super) mod conflict_target;
pub(super) mod current_of;
pub(super) mod empty_target_list;
pub(super) mod expand_star;
pub(super) mod fetch_first;
pub(super) mod few_words;
pub(super) mod merge;
pub(super) mod nested_join;
pub(super) mod only;
mod placeholder;
pub(super) mod placeholder_parser;
pub(super) mod rows_from;
pub(super) mod search_cycle;
pub(super) mod sql_syntax;
pub(super) mod subscripted_target;
pub(super) mod unsupported;
pub(super) mod window_frame;
