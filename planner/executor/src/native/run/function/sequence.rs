//! `nextval`, `setval` and `currval`, and a sequence's one row: functions of the transaction rather than of values.
//!
//! What `nextval` gave is noted in the context; the session takes it over afterwards, and
//! answers `currval` and `lastval` itself for what earlier statements drew. A sequence with CACHE gives
//! several numbers at once, which the session hands out as long as the sequence is the same running one.

use std::collections::VecDeque;

use archipel_engine::Stop;
use archipel_engine::id::SequenceId;
use archipel_sql::catalog::Privileges;
use archipel_sql::datum::Datum;
use archipel_sql::error::{SqlError, SqlState};
use archipel_sql::function::{CachedNumbers, Intrinsic, ScalarFunction};
use archipel_sql::types::Oid;

use crate::native::run::expression::code::CompiledExpr;
use crate::native::run::expression::source::{Source, eval_all};
use crate::native::run::state::context::ExecContext;
use crate::native::run::state::error::ExecResult;

/// A number that a sequence gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drawn {
    pub sequence: Oid,
    /// Which running sequence it was ([`Sequence::incarnation`]).
    ///
    /// [`Sequence::incarnation`]: archipel_engine::txn::Sequence::incarnation
    pub incarnation: u64,
    pub value: i64,
    /// Whether `setval` gave it, which `lastval` does not follow to another sequence.
    pub set: bool,
}

/// What the session calls the sequence whose number `lastval` answers.
pub const LAST_SEQUENCE: &str = "last_sequence";

/// A READ ONLY transaction may draw from the session's own sequences alone.
fn require_writable(ctx: &ExecContext<'_, '_>, sequence: Oid, command: &str) -> ExecResult<()> {
    if ctx.read_only && !ctx.functions.session.is_temporary(sequence) {
        ctx.require_writable(command)?;
    }
    Ok(())
}

/// The code of a sequence function over its arguments, if it is one.
pub(crate) fn call(
    function: &'static ScalarFunction,
    _args: &[Source],
) -> Option<fn(Vec<Source>) -> CompiledExpr> {
    match function.intrinsic? {
        Intrinsic::NextValue => Some(|args| {
            // The binder gives a second argument where it draws for an identity column.
            let of_identity = args.len() > 1;
            Box::new(move |ctx| {
                let Some(oid) = sequence_of(&args[0].eval(ctx)?) else { return Ok(Datum::Null) };
                require_writable(ctx, oid, "nextval()")?;
                if !of_identity {
                    let needed = Privileges::USAGE | Privileges::UPDATE;
                    ctx.functions.session.require_sequence(oid, needed)?;
                }
                let value = next_value(ctx, oid)?;
                Ok(Datum::Int8(value))
            })
        }),
        Intrinsic::SetValue => Some(|args| {
            Box::new(move |ctx| {
                let values = eval_all(&args, ctx)?;
                let (Some(oid), Some(Datum::Int8(value))) = (sequence_of(&values[0]), values.get(1)) else {
                    return Ok(Datum::Null);
                };
                let called = match values.get(2) {
                    None => true,
                    Some(Datum::Bool(called)) => *called,
                    Some(_) => return Ok(Datum::Null),
                };
                require_writable(ctx, oid, "setval()")?;
                ctx.functions.session.require_sequence(oid, Privileges::UPDATE)?;
                let file = file_of(ctx, oid)?;
                let running = ctx.txn.sequence(file)?;
                let def = running.def;
                if *value < def.min || *value > def.max {
                    let name = ctx.functions.session.relation_name(oid).unwrap_or_default();
                    let message = format!(
                        "setval: value {value} is out of bounds for sequence \"{name}\" ({}..{})",
                        def.min, def.max
                    );
                    return Err(SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, message).into());
                }
                ctx.txn.set_value(file, *value, called)?;
                // Other sessions use up what they have.
                ctx.functions.session.keep_cached(oid, None);
                let effects = ctx.effects_mut();
                effects.numbers_left.retain(|left| left.sequence != oid);
                effects.sequences_set.push(oid);
                if called {
                    effects.sequences.push(Drawn {
                        sequence: oid,
                        incarnation: running.incarnation(),
                        value: *value,
                        set: true,
                    });
                }
                Ok(Datum::Int8(*value))
            })
        }),
        Intrinsic::SequenceRow => Some(|args| {
            Box::new(move |ctx| {
                let Some(oid) = sequence_of(&args[0].eval(ctx)?) else { return Ok(Datum::Null) };
                ctx.functions.session.require_sequence(oid, Privileges::SELECT)?;
                let (position, logged) = ctx.txn.sequence(file_of(ctx, oid)?)?.shown();
                let row = [Datum::Int8(position.last), Datum::Int8(logged), Datum::Bool(position.called)];
                Ok(Datum::Record(row.into()))
            })
        }),
        // What this very statement or routine drew is newer than what the session knows.
        Intrinsic::LastValue => Some(|_| Box::new(|ctx| drawn(ctx, None, "lastval", &[]))),
        Intrinsic::CurrentValue => Some(|args| {
            Box::new(move |ctx| {
                let value = args[0].eval(ctx)?;
                if value.is_null() {
                    return Ok(Datum::Null);
                }
                drawn(ctx, sequence_of(&value), "currval", &[value])
            })
        }),
        _ => None,
    }
}

/// The engine's number of a sequence. [`Stop::Recompile`] if there is no such sequence.
fn file_of(ctx: &ExecContext<'_, '_>, sequence: Oid) -> ExecResult<SequenceId> {
    let file = ctx.functions.session.sequence_file(sequence);
    Ok(SequenceId(file.ok_or(Stop::Recompile)?))
}

fn sequence_of(value: &Datum) -> Option<Oid> {
    crate::row::integer(value).map(|oid| Oid(oid as u32))
}

fn drawn(ctx: &ExecContext<'_, '_>, of: Option<Oid>, name: &str, args: &[Datum]) -> ExecResult<Datum> {
    let sequences = ctx.effects().map_or(&[][..], |effects| &effects.sequences);
    let session = ctx.functions.session;
    let of = match (of, sequences.iter().rev().find(|drawn| !drawn.set)) {
        (Some(of), _) => Some(of),
        (None, Some(drawn)) => Some(drawn.sequence),
        (None, None) if sequences.is_empty() => None,
        (None, None) => sequence_of(&session.call(LAST_SEQUENCE, &[])?),
    };
    let found = of.and_then(|of| sequences.iter().rev().find(|drawn| drawn.sequence == of)).copied();
    if let Some(drawn) = found {
        ctx.functions.session.require_sequence(drawn.sequence, Privileges::USAGE | Privileges::SELECT)?;
    }
    match found {
        Some(drawn) => Ok(Datum::Int8(drawn.value)),
        None => Ok(ctx.functions.session.call(name, args)?),
    }
}

/// What is left to the next attempt of a run that was abandoned: what its sequences gave.
pub fn numbers_for_next_attempt(drawn: &[Drawn], set: &[Oid], left: VecDeque<Drawn>) -> VecDeque<Drawn> {
    let drawn = drawn.iter().filter(|drawn| !set.contains(&drawn.sequence));
    drawn.copied().chain(left).collect()
}

fn next_value(ctx: &mut ExecContext<'_, '_>, oid: Oid) -> ExecResult<i64> {
    let file = file_of(ctx, oid)?;
    let incarnation = ctx.txn.sequence_incarnation(file)?;
    // One that was restarted meanwhile gives what it had given to others.
    let same = |left: &Drawn| left.sequence == oid && left.incarnation == incarnation;
    if let Some(at) = ctx.effects().and_then(|effects| effects.numbers_left.iter().position(same)) {
        ctx.txn.lean_on_value(file)?;
        let effects = ctx.effects_mut();
        // The first ones, mostly: that moves none of those behind them.
        if let Some(taken) = effects.numbers_left.remove(at) {
            effects.sequences.push(taken);
            return Ok(taken.value);
        }
    }
    let session = ctx.functions.session;
    if let Some(value) = session.take_cached(oid, incarnation) {
        ctx.txn.lean_on_value(file)?;
        ctx.effects_mut().sequences.push(Drawn { sequence: oid, incarnation, value, set: false });
        return Ok(value);
    }
    let cache = session.sequence_cache(oid);
    match ctx.txn.next_values(file, cache)? {
        Some((value, last)) => {
            let increment = ctx.txn.sequence(file)?.def.increment;
            let (_, left) = CachedNumbers { incarnation, cache, next: value, last, increment }.taken();
            session.keep_cached(oid, left);
            ctx.effects_mut().sequences.push(Drawn { sequence: oid, incarnation, value, set: false });
            Ok(value)
        }
        None => {
            let def = ctx.txn.sequence(file)?.def;
            let (end, bound) = if def.increment > 0 { ("maximum", def.max) } else { ("minimum", def.min) };
            let name = ctx.functions.session.relation_name(oid).unwrap_or_default();
            let message = format!("nextval: reached {end} value of sequence \"{name}\" ({bound})");
            Err(SqlError::new(SqlState(*b"2200H"), message).into())
        }
    }
}
