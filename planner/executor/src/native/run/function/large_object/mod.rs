//! Large objects: what the functions of chapter 35 of PostgreSQL's manual do (be-fsstubs.c), and the statements
//! about large objects, which the session says as calls.
//!
//! Their rows are rows of tables ([`archipel_sql::catalog::large_object`]), read and written here without a plan, by
//! key. So calls are parts of their statement's transaction as any change of rows is: they wait for row locks, are
//! undone with it, and begin anew with it.
//!
//! - [`table`]      the rows
//! - [`content`]    reading, writing and truncating what an object holds
//! - [`descriptor`] objects that are open, and the calls about them
//! - [`object`]     objects that are made and dropped; [`file`] files of the server
//! - [`rights`]     who may do what; [`statement`] GRANT, OWNER TO, COMMENT, REASSIGN and DROP OWNED
//! - [`system_rows`] their rows in system relations

mod content;
mod descriptor;
mod file;
mod object;
mod rights;
mod statement;
pub(crate) mod system_rows;
pub(crate) mod table;

use archipel_sql::datum::Datum;
use archipel_sql::error::{SqlError, SqlState};
use archipel_sql::function::{LargeObjectCall, ScalarFunction};
use archipel_sql::memory;
use archipel_sql::types::Oid;

use crate::native::run::expression::code::CompiledExpr;
use crate::native::run::expression::source::{Source, eval_all};
use crate::native::run::state::context::ExecContext;
use crate::native::run::state::error::ExecResult;
use crate::row::integer;
use content::target;
use table::{Tables, as_it_is};

/// The name of the class of large objects in `obj_description`.
pub(crate) const CLASS: &str = "pg_largeobject";

/// The code of a call over its arguments.
pub(crate) fn compile(
    call: LargeObjectCall,
    function: &'static ScalarFunction,
    tables: Tables,
    args: Vec<Source>,
) -> CompiledExpr {
    Box::new(move |ctx| {
        let values = eval_all(&args, ctx)?;
        if function.strict && values.iter().any(Datum::is_null) {
            return Ok(Datum::Null);
        }
        let args = Arguments(&values);
        if call == LargeObjectCall::Description && args.text(1) != Some(CLASS) {
            // What is said of other objects the catalog knows.
            return Ok((function.eval)(&ctx.functions, &values)?);
        }
        run(call, &tables, ctx, &args)
    })
}

/// The arguments of a call, which the binder has brought to their types.
struct Arguments<'a>(&'a [Datum]);

impl<'a> Arguments<'a> {
    fn number(&self, place: usize) -> i64 {
        self.0.get(place).and_then(integer).unwrap_or(0)
    }

    /// Of an argument that is declared as an integer.
    fn small(&self, place: usize) -> i32 {
        self.number(place) as i32
    }

    fn oid(&self, place: usize) -> Oid {
        Oid(self.number(place) as u32)
    }

    fn oids(&self, place: usize) -> Vec<Oid> {
        let Some(Datum::Array(array)) = self.0.get(place) else { return Vec::new() };
        array.values.iter().filter_map(integer).map(|oid| Oid(oid as u32)).collect()
    }

    fn bytes(&self, place: usize) -> &'a [u8] {
        match self.0.get(place) {
            Some(Datum::Bytea(bytes)) => bytes,
            _ => &[],
        }
    }

    fn text(&self, place: usize) -> Option<&'a str> {
        match self.0.get(place) {
            Some(Datum::Text(text)) => Some(text),
            _ => None,
        }
    }
}

/// `void`.
fn nothing() -> Datum {
    Datum::Text(Default::default())
}

fn bytea(bytes: Vec<u8>) -> ExecResult<Datum> {
    memory::check_value(bytes.len())?;
    Ok(Datum::Bytea(bytes.into()))
}

fn run(
    call: LargeObjectCall,
    tables: &Tables,
    ctx: &mut ExecContext<'_, '_>,
    args: &Arguments<'_>,
) -> ExecResult<Datum> {
    use LargeObjectCall::*;
    Ok(match call {
        Open => Datum::Int4(descriptor::open(tables, ctx, args.oid(0), args.small(1))?),
        Close => {
            descriptor::close(ctx, args.small(0))?;
            Datum::Int4(0)
        }
        Read => return bytea(descriptor::read(tables, ctx, args.small(0), args.small(1))?),
        Write => Datum::Int4(descriptor::write(tables, ctx, args.small(0), args.bytes(1))?),
        Seek | Seek64 => {
            let to = descriptor::seek(tables, ctx, args.small(0), args.number(1), args.small(2))?;
            return descriptor::told(to, args.small(0), (call == Seek).then_some("lo_lseek"));
        }
        Tell | Tell64 => {
            let at = ctx.effects_mut().cursors.large_objects().get(args.small(0))?.offset;
            return descriptor::told(at, args.small(0), (call == Tell).then_some("lo_tell"));
        }
        Truncate => {
            descriptor::truncate(tables, ctx, args.small(0), args.number(1))?;
            Datum::Int4(0)
        }
        CreateAny => Datum::Oid(object::create(tables, ctx, Oid(0))?),
        Create => Datum::Oid(object::create(tables, ctx, args.oid(0))?),
        Unlink => {
            object::unlink(tables, ctx, args.oid(0))?;
            Datum::Int4(1)
        }
        FromBytes => {
            let object = object::create(tables, ctx, args.oid(0))?;
            as_it_is(ctx, |ctx| content::write(tables, ctx, object, 0, args.bytes(1)))?;
            Datum::Oid(object)
        }
        Get => return get(tables, ctx, args),
        Put => {
            let (object, at) = (args.oid(0), args.number(1));
            rights::require(tables, ctx, object, true)?;
            let at = target(Some(at), i128::from(at))?;
            as_it_is(ctx, |ctx| content::write(tables, ctx, object, at, args.bytes(2)))?;
            nothing()
        }
        Import => Datum::Oid(file::import(tables, ctx, args.text(0).unwrap_or_default(), args.oid(1))?),
        Export => {
            file::export(tables, ctx, args.oid(0), args.text(1).unwrap_or_default())?;
            Datum::Int4(1)
        }
        Grant | GiveTo | Comment | OfRoles => {
            change(call, tables, ctx, args)?;
            nothing()
        }
        Description => {
            let comment = tables.object(ctx, args.oid(0))?.and_then(|object| object.comment);
            comment.map_or(Datum::Null, |comment| Datum::text(&comment))
        }
    })
}

/// What the statements about large objects change.
fn change(
    call: LargeObjectCall,
    tables: &Tables,
    ctx: &mut ExecContext<'_, '_>,
    args: &Arguments<'_>,
) -> ExecResult<()> {
    match call {
        LargeObjectCall::Grant => {
            let change = statement::Change::new(args.oids(1), args.small(2), args.small(3));
            statement::grant(tables, ctx, &args.oids(0), &change)
        }
        LargeObjectCall::GiveTo => statement::give_to(tables, ctx, args.oid(0), args.oid(1)),
        LargeObjectCall::Comment => statement::comment(tables, ctx, args.oid(0), args.text(1)),
        _ => statement::of_roles(tables, ctx, &args.oids(0), args.oid(1)),
    }
}

/// `lo_get`: all that an object holds, or a part of it.
fn get(tables: &Tables, ctx: &mut ExecContext<'_, '_>, args: &Arguments<'_>) -> ExecResult<Datum> {
    let object = args.oid(0);
    let (from, most) = match args.0.len() {
        1 => (0, i64::MAX),
        _ => (args.number(1), args.number(2)),
    };
    if most < 0 {
        let message = "requested length cannot be negative";
        return Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message).into());
    }
    rights::require(tables, ctx, object, false)?;
    let length = content::size(tables, ctx, object)?.saturating_sub(from).max(0).min(most);
    if length > memory::VALUE_MAX as i64 {
        let message = "large object read request is too large";
        return Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message).into());
    }
    let from = target(Some(from), i128::from(from))?;
    bytea(content::read(tables, ctx, object, from, length)?)
}
