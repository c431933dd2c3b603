//! What functions are, for whoever knows more of them than how to call them.
//!
//! An index understands a comparison, the machine of loops adds integers by itself, and a sequence's
//! numbers are the transaction's to give. Such code asks what a function is ([`ScalarFunction::intrinsic`]),
//! never what it is called: a name has several overloads, and a function several names. Whoever asks does so
//! while it compiles.
//!
//! The table here is by pg_proc.prosrc, as the implementations are; those of comparisons and of integer
//! arithmetic stand beside them.

use std::cmp::Ordering;

/// What a function is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Intrinsic {
    /// Two integers, as one of the wider's width.
    Integer(Arithmetic, IntegerWidth),
    NegateInteger(IntegerWidth),
    /// An integer as one of another width.
    ToInteger(IntegerWidth),
    /// Two doubles.
    Double(Operation),
    NegateFloat,
    /// An integer as a double.
    ToDouble,
    NumericAdd,
    NumericSubtract,
    NumericMultiply,
    /// An integer as a numeric.
    ToNumeric,
    /// A value brought to the length or precision of its type: of the value, the modifier, and whether the
    /// cast is written.
    ToLength,
    NegateInterval,
    /// A date and a number of days, or the days between two dates.
    DateArithmetic,
    /// The time between two moments, by the calendar of the session's zone.
    AgeInZone,
    /// A name in quotes where it needs some, or where the session wants them around all.
    QuoteIdentifier,

    Compare(Comparison, Operands),
    /// The order of two rows by their images.
    OrderImages,
    /// Whether a text is like a pattern; whether it is not.
    Like,
    NotLike,
    /// Whether a name is like a pattern.
    NameLike,
    /// Whether a text or a name matches a regular expression.
    MatchesRegex,

    Concatenate,
    /// `chr`.
    Character,
    /// From a position on: so many characters, or all.
    Substring,
    SubstringFrom,
    Left,
    Right,
    Lower,
    Upper,
    /// In characters; in bytes.
    TextLength,
    TextBytes,
    /// `ascii`.
    FirstCode,
    TextPosition,

    ArrayLength,
    ArrayLower,
    ArrayUpper,
    Cardinality,
    ArrayAppend,
    ArrayPrepend,
    ArrayConcatenate,
    Unnest,
    /// Replaces parts of a value.
    PartAssign,

    /// Shows its arguments as text, whatever their types.
    ShowsArguments,
    /// Makes JSON of all its arguments, or of the first.
    JsonOfAll,
    JsonOfFirst,
    /// A value as JSON, for an aggregate that takes values of any type.
    GatheredJson,
    /// Makes rows of JSON: of the type of its first argument, or of columns that FROM lists.
    JsonPopulate,
    JsonToRecord,
    /// Answers labels of the type that its argument is declared of.
    EnumLabels,
    TypeOf,
    HashPartition,

    /// What stands for the place of a row (`ctid`), and for its version (`xmin`).
    RowPlace,
    RowVersion,

    NextValue,
    SetValue,
    CurrentValue,
    LastValue,
    /// The one row of a sequence.
    SequenceRow,
    /// The second says whether the lock is shared.
    Advisory(AdvisoryLock, bool),
    Notify,
    LargeObject(LargeObjectCall),
    Sleep,
    TriggerDepth,
    /// Answers something else each time, by the clock or by chance, and changes nothing.
    Fresh,
}

/// What a function does with an advisory lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AdvisoryLock {
    /// Until the session gives it back.
    Take,
    /// Until the transaction ends.
    TakeForTransaction,
    Try,
    TryForTransaction,
    GiveBack,
    GiveBackAll,
}

/// What a function does with a large object (chapter 35 of PostgreSQL's manual).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LargeObjectCall {
    /// Of an object and how it is opened: its descriptor.
    Open,
    /// From here on to [`LargeObjectCall::Truncate`] of a descriptor.
    Close,
    Read,
    Write,
    Seek,
    Seek64,
    Tell,
    Tell64,
    Truncate,
    /// `lo_creat`, whose argument says nothing.
    CreateAny,
    /// Of its number, or 0.
    Create,
    Unlink,
    FromBytes,
    /// All of it, or a part.
    Get,
    Put,
    /// Of a file's name and perhaps its number.
    Import,
    Export,
    /// GRANT and REVOKE: objects, grantees, rights, and how.
    Grant,
    /// ALTER LARGE OBJECT … OWNER TO.
    GiveTo,
    /// COMMENT ON LARGE OBJECT.
    Comment,
    /// REASSIGN OWNED and DROP OWNED: roles, and who gets what they own.
    OfRoles,
    /// The comment on what may be one: of its number, and the name of its catalog.
    Description,
}

impl LargeObjectCall {
    /// Whether it may change rows.
    pub fn writes(self) -> bool {
        use LargeObjectCall::*;
        !matches!(self, Open | Close | Read | Seek | Seek64 | Tell | Tell64 | Get | Export | Description)
    }

    /// Whether its first argument is the number of the object.
    pub fn names_object(self) -> bool {
        use LargeObjectCall::*;
        matches!(
            self,
            Open | Create | Unlink | FromBytes | Get | Put | Export | GiveTo | Comment | Description
        )
    }
}

/// Which orders of its two sides a comparison takes as true.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
}

impl Comparison {
    /// The comparison with its sides exchanged.
    pub fn flip(self) -> Comparison {
        match self {
            Comparison::Lt => Comparison::Gt,
            Comparison::Le => Comparison::Ge,
            Comparison::Gt => Comparison::Lt,
            Comparison::Ge => Comparison::Le,
            same => same,
        }
    }

    /// Whether it takes an order as true.
    #[inline(always)]
    pub fn holds(self, ordering: Ordering) -> bool {
        match self {
            Comparison::Eq => ordering.is_eq(),
            Comparison::Ne => ordering.is_ne(),
            Comparison::Lt => ordering.is_lt(),
            Comparison::Le => ordering.is_le(),
            Comparison::Gt => ordering.is_gt(),
            Comparison::Ge => ordering.is_ge(),
        }
    }
}

/// What is compared, and so by which order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operands {
    /// Integers of any widths.
    Integers,
    /// Values of one type, or a text and a name, whose order is [`crate::compare::compare`]'s.
    Alike,
    /// Dates and timestamps with one another.
    Moments,
    /// Rows, by their images.
    Images,
}

/// Which aggregate a function is, for those that somebody beside their states knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aggregate {
    Count,
    Sum,
    Average,
    Least,
    Greatest,
    /// `bool_and` and `every`.
    All,
    /// `bool_or`.
    Any,
    BitAnd,
    BitOr,
    /// `array_agg`.
    Array,
    /// `string_agg`.
    Text,
    /// An array of JSON, or an object.
    JsonArray,
    JsonObject,
    /// Of rows in an order that WITHIN GROUP tells.
    OrderedSet,
    /// Where a row would stand among others.
    Hypothetical,
    Other,
}

impl Aggregate {
    /// The aggregate of a name in pg_proc.
    pub(super) fn of(name: &str) -> Aggregate {
        match name {
            "count" => Aggregate::Count,
            "sum" => Aggregate::Sum,
            "avg" => Aggregate::Average,
            "min" => Aggregate::Least,
            "max" => Aggregate::Greatest,
            "bool_and" | "every" => Aggregate::All,
            "bool_or" => Aggregate::Any,
            "bit_and" => Aggregate::BitAnd,
            "bit_or" => Aggregate::BitOr,
            "array_agg" => Aggregate::Array,
            "string_agg" => Aggregate::Text,
            "json_agg" | "jsonb_agg" => Aggregate::JsonArray,
            "json_object_agg" | "jsonb_object_agg" => Aggregate::JsonObject,
            "percentile_cont" | "percentile_disc" | "mode" => Aggregate::OrderedSet,
            name if crate::ordered_set::HYPOTHETICAL.contains(&name) => Aggregate::Hypothetical,
            _ => Aggregate::Other,
        }
    }
}

/// What functions are, by pg_proc.prosrc.
pub(super) const INTRINSICS: &[(&str, Intrinsic)] = &[
    ("i4toi2", Intrinsic::ToInteger(IntegerWidth::Two)),
    ("int82", Intrinsic::ToInteger(IntegerWidth::Two)),
    ("i2toi4", Intrinsic::ToInteger(IntegerWidth::Four)),
    ("int84", Intrinsic::ToInteger(IntegerWidth::Four)),
    ("int28", Intrinsic::ToInteger(IntegerWidth::Eight)),
    ("int48", Intrinsic::ToInteger(IntegerWidth::Eight)),
    ("float8pl", Intrinsic::Double(Operation::Add)),
    ("float8mi", Intrinsic::Double(Operation::Subtract)),
    ("float8mul", Intrinsic::Double(Operation::Multiply)),
    ("float8div", Intrinsic::Double(Operation::Divide)),
    ("float4um", Intrinsic::NegateFloat),
    ("float8um", Intrinsic::NegateFloat),
    ("i2tod", Intrinsic::ToDouble),
    ("i4tod", Intrinsic::ToDouble),
    ("i8tod", Intrinsic::ToDouble),
    ("numeric_add", Intrinsic::NumericAdd),
    ("numeric_sub", Intrinsic::NumericSubtract),
    ("numeric_mul", Intrinsic::NumericMultiply),
    ("int2_numeric", Intrinsic::ToNumeric),
    ("int4_numeric", Intrinsic::ToNumeric),
    ("int8_numeric", Intrinsic::ToNumeric),
    ("numeric", Intrinsic::ToLength),
    ("varchar", Intrinsic::ToLength),
    ("bpchar", Intrinsic::ToLength),
    ("bit", Intrinsic::ToLength),
    ("varbit", Intrinsic::ToLength),
    ("interval_um", Intrinsic::NegateInterval),
    ("date_pli", Intrinsic::DateArithmetic),
    ("date_mii", Intrinsic::DateArithmetic),
    ("date_mi", Intrinsic::DateArithmetic),
    ("timestamptz_age", Intrinsic::AgeInZone),
    ("quote_ident", Intrinsic::QuoteIdentifier),
    ("btrecordimagecmp", Intrinsic::OrderImages),
    ("textlike", Intrinsic::Like),
    ("textnlike", Intrinsic::NotLike),
    ("namelike", Intrinsic::NameLike),
    ("textregexeq", Intrinsic::MatchesRegex),
    ("nameregexeq", Intrinsic::MatchesRegex),
    ("textcat", Intrinsic::Concatenate),
    ("chr", Intrinsic::Character),
    ("text_substr", Intrinsic::Substring),
    ("text_substr_no_len", Intrinsic::SubstringFrom),
    ("text_left", Intrinsic::Left),
    ("text_right", Intrinsic::Right),
    ("lower", Intrinsic::Lower),
    ("upper", Intrinsic::Upper),
    ("textlen", Intrinsic::TextLength),
    ("textoctetlen", Intrinsic::TextBytes),
    ("ascii", Intrinsic::FirstCode),
    ("textpos", Intrinsic::TextPosition),
    ("archipel_row_place", Intrinsic::RowPlace),
    ("archipel_row_version", Intrinsic::RowVersion),
    ("array_length", Intrinsic::ArrayLength),
    ("array_lower", Intrinsic::ArrayLower),
    ("array_upper", Intrinsic::ArrayUpper),
    ("array_cardinality", Intrinsic::Cardinality),
    ("array_append", Intrinsic::ArrayAppend),
    ("array_prepend", Intrinsic::ArrayPrepend),
    ("array_cat", Intrinsic::ArrayConcatenate),
    ("array_unnest", Intrinsic::Unnest),
    ("archipel_part_assign", Intrinsic::PartAssign),
    // textanycat and anytextcat.
    ("sql_2003", Intrinsic::ShowsArguments),
    ("sql_2004", Intrinsic::ShowsArguments),
    ("text_concat", Intrinsic::ShowsArguments),
    ("text_concat_ws", Intrinsic::ShowsArguments),
    ("text_format", Intrinsic::ShowsArguments),
    ("text_format_nv", Intrinsic::ShowsArguments),
    // quote_literal and quote_nullable of any value.
    ("sql_1285", Intrinsic::ShowsArguments),
    ("sql_1290", Intrinsic::ShowsArguments),
    ("to_json", Intrinsic::JsonOfAll),
    ("to_jsonb", Intrinsic::JsonOfAll),
    ("json_build_object", Intrinsic::JsonOfAll),
    ("jsonb_build_object", Intrinsic::JsonOfAll),
    ("json_build_array", Intrinsic::JsonOfAll),
    ("jsonb_build_array", Intrinsic::JsonOfAll),
    // Whether it comes in lines may follow.
    ("archipel_json_of", Intrinsic::GatheredJson),
    ("row_to_json", Intrinsic::JsonOfFirst),
    ("row_to_json_pretty", Intrinsic::JsonOfFirst),
    ("array_to_json", Intrinsic::JsonOfFirst),
    ("array_to_json_pretty", Intrinsic::JsonOfFirst),
    ("json_populate_record", Intrinsic::JsonPopulate),
    ("jsonb_populate_record", Intrinsic::JsonPopulate),
    ("json_populate_recordset", Intrinsic::JsonPopulate),
    ("jsonb_populate_recordset", Intrinsic::JsonPopulate),
    ("json_to_record", Intrinsic::JsonToRecord),
    ("jsonb_to_record", Intrinsic::JsonToRecord),
    ("json_to_recordset", Intrinsic::JsonToRecord),
    ("jsonb_to_recordset", Intrinsic::JsonToRecord),
    ("enum_first", Intrinsic::EnumLabels),
    ("enum_last", Intrinsic::EnumLabels),
    ("enum_range_bounds", Intrinsic::EnumLabels),
    ("enum_range_all", Intrinsic::EnumLabels),
    ("pg_typeof", Intrinsic::TypeOf),
    ("satisfies_hash_partition", Intrinsic::HashPartition),
    ("nextval_oid", Intrinsic::NextValue),
    ("setval_oid", Intrinsic::SetValue),
    ("setval3_oid", Intrinsic::SetValue),
    ("currval_oid", Intrinsic::CurrentValue),
    ("lastval", Intrinsic::LastValue),
    ("archipel_sequence_row", Intrinsic::SequenceRow),
    ("pg_advisory_lock_int8", Intrinsic::Advisory(AdvisoryLock::Take, false)),
    ("pg_advisory_lock_int4", Intrinsic::Advisory(AdvisoryLock::Take, false)),
    ("pg_advisory_lock_shared_int8", Intrinsic::Advisory(AdvisoryLock::Take, true)),
    ("pg_advisory_lock_shared_int4", Intrinsic::Advisory(AdvisoryLock::Take, true)),
    ("pg_advisory_xact_lock_int8", Intrinsic::Advisory(AdvisoryLock::TakeForTransaction, false)),
    ("pg_advisory_xact_lock_int4", Intrinsic::Advisory(AdvisoryLock::TakeForTransaction, false)),
    ("pg_advisory_xact_lock_shared_int8", Intrinsic::Advisory(AdvisoryLock::TakeForTransaction, true)),
    ("pg_advisory_xact_lock_shared_int4", Intrinsic::Advisory(AdvisoryLock::TakeForTransaction, true)),
    ("pg_try_advisory_lock_int8", Intrinsic::Advisory(AdvisoryLock::Try, false)),
    ("pg_try_advisory_lock_int4", Intrinsic::Advisory(AdvisoryLock::Try, false)),
    ("pg_try_advisory_lock_shared_int8", Intrinsic::Advisory(AdvisoryLock::Try, true)),
    ("pg_try_advisory_lock_shared_int4", Intrinsic::Advisory(AdvisoryLock::Try, true)),
    ("pg_try_advisory_xact_lock_int8", Intrinsic::Advisory(AdvisoryLock::TryForTransaction, false)),
    ("pg_try_advisory_xact_lock_int4", Intrinsic::Advisory(AdvisoryLock::TryForTransaction, false)),
    ("pg_try_advisory_xact_lock_shared_int8", Intrinsic::Advisory(AdvisoryLock::TryForTransaction, true)),
    ("pg_try_advisory_xact_lock_shared_int4", Intrinsic::Advisory(AdvisoryLock::TryForTransaction, true)),
    ("pg_advisory_unlock_int8", Intrinsic::Advisory(AdvisoryLock::GiveBack, false)),
    ("pg_advisory_unlock_int4", Intrinsic::Advisory(AdvisoryLock::GiveBack, false)),
    ("pg_advisory_unlock_shared_int8", Intrinsic::Advisory(AdvisoryLock::GiveBack, true)),
    ("pg_advisory_unlock_shared_int4", Intrinsic::Advisory(AdvisoryLock::GiveBack, true)),
    ("pg_advisory_unlock_all", Intrinsic::Advisory(AdvisoryLock::GiveBackAll, false)),
    ("pg_notify", Intrinsic::Notify),
    ("be_lo_open", Intrinsic::LargeObject(LargeObjectCall::Open)),
    ("be_lo_close", Intrinsic::LargeObject(LargeObjectCall::Close)),
    ("be_loread", Intrinsic::LargeObject(LargeObjectCall::Read)),
    ("be_lowrite", Intrinsic::LargeObject(LargeObjectCall::Write)),
    ("be_lo_lseek", Intrinsic::LargeObject(LargeObjectCall::Seek)),
    ("be_lo_lseek64", Intrinsic::LargeObject(LargeObjectCall::Seek64)),
    ("be_lo_tell", Intrinsic::LargeObject(LargeObjectCall::Tell)),
    ("be_lo_tell64", Intrinsic::LargeObject(LargeObjectCall::Tell64)),
    ("be_lo_truncate", Intrinsic::LargeObject(LargeObjectCall::Truncate)),
    ("be_lo_truncate64", Intrinsic::LargeObject(LargeObjectCall::Truncate)),
    ("be_lo_creat", Intrinsic::LargeObject(LargeObjectCall::CreateAny)),
    ("be_lo_create", Intrinsic::LargeObject(LargeObjectCall::Create)),
    ("be_lo_unlink", Intrinsic::LargeObject(LargeObjectCall::Unlink)),
    ("be_lo_from_bytea", Intrinsic::LargeObject(LargeObjectCall::FromBytes)),
    ("be_lo_get", Intrinsic::LargeObject(LargeObjectCall::Get)),
    ("be_lo_get_fragment", Intrinsic::LargeObject(LargeObjectCall::Get)),
    ("be_lo_put", Intrinsic::LargeObject(LargeObjectCall::Put)),
    ("be_lo_import", Intrinsic::LargeObject(LargeObjectCall::Import)),
    ("be_lo_import_with_oid", Intrinsic::LargeObject(LargeObjectCall::Import)),
    ("be_lo_export", Intrinsic::LargeObject(LargeObjectCall::Export)),
    ("archipel_large_object_grant", Intrinsic::LargeObject(LargeObjectCall::Grant)),
    ("archipel_large_object_owner", Intrinsic::LargeObject(LargeObjectCall::GiveTo)),
    ("archipel_large_object_comment", Intrinsic::LargeObject(LargeObjectCall::Comment)),
    ("archipel_large_objects_of_roles", Intrinsic::LargeObject(LargeObjectCall::OfRoles)),
    // obj_description(oid, name).
    ("sql_1215", Intrinsic::LargeObject(LargeObjectCall::Description)),
    ("pg_sleep", Intrinsic::Sleep),
    // pg_sleep_for and pg_sleep_until.
    ("sql_3935", Intrinsic::Sleep),
    ("sql_3936", Intrinsic::Sleep),
    ("pg_trigger_depth", Intrinsic::TriggerDepth),
    ("drandom", Intrinsic::Fresh),
    ("clock_timestamp", Intrinsic::Fresh),
    ("timeofday", Intrinsic::Fresh),
    ("gen_random_uuid", Intrinsic::Fresh),
    ("jsonb_eq", Intrinsic::Compare(Comparison::Eq, Operands::Alike)),
    ("jsonb_ne", Intrinsic::Compare(Comparison::Ne, Operands::Alike)),
    ("jsonb_lt", Intrinsic::Compare(Comparison::Lt, Operands::Alike)),
    ("jsonb_le", Intrinsic::Compare(Comparison::Le, Operands::Alike)),
    ("jsonb_gt", Intrinsic::Compare(Comparison::Gt, Operands::Alike)),
    ("jsonb_ge", Intrinsic::Compare(Comparison::Ge, Operands::Alike)),
];

/// An operation of arithmetic over doubles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    Add,
    Subtract,
    Multiply,
    Divide,
}

/// How wide an integer is, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum IntegerWidth {
    Two,
    Four,
    Eight,
}

/// An operation of two integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arithmetic {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}

/// The names of the aggregates that place a row among those there are, as if it were one of them
/// (hypothetical-set aggregates).
pub const HYPOTHETICAL: [&str; 4] = ["rank", "dense_rank", "percent_rank", "cume_dist"];
