//! Function call messages: a function is called by its number, with values and without a statement's
//! text. Old drivers do so; PostgreSQL takes any plain function.
//!
//! A call becomes a statement that selects the function's result, so that rights, locks and retries are
//! those of statements.

use std::sync::Arc;

use archipel_sql::datum::Datum;
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::function::{function_by_oid, quote_identifier};
use archipel_sql::io;
use archipel_sql::types::{Oid, Type};

use crate::encode::{RowsTo, Text};
use crate::run::statement::RowsLeave;
use crate::session::Session;
use crate::statement::Body;
use crate::statement::prepare::failed_transaction;
use crate::wire::message::FunctionCall;

impl Session {
    pub(super) async fn function_call(&mut self, call: &FunctionCall<'_>) {
        let shown: Arc<str> = "<FASTPATH> function call".into();
        self.begin_statement(&shown);
        self.message_start = Some(crate::clock::now());
        if let Err(error) = self.call_function(call).await {
            self.fail(&error).await;
        }
        self.end_script().await;
        self.message_start = None;
    }

    async fn call_function(&mut self, call: &FunctionCall<'_>) -> Result<()> {
        if self.in_failed_transaction() {
            return Err(failed_transaction());
        }
        let text: Arc<str> = self.text_of_call(call).await?.into();
        let prepared = self.prepare_text(&text, &[]).await?;
        let Body::Rows(plan) = &prepared.body else {
            return Err(SqlError::internal("a call that answers nothing"));
        };
        let host = self.host();
        let mut params: Vec<Datum> = Vec::with_capacity(call.argument_count());
        {
            let context = self.context(&host);
            for (place, ((value, binary), ty)) in call.arguments().zip(prepared.params.iter()).enumerate() {
                params.push(match value {
                    None => Datum::Null,
                    Some(bytes) if binary => io::binary_in(bytes, *ty, &context).map_err(|error| {
                        let message =
                            || format!("incorrect binary data format in function argument {}", place + 1);
                        io::placed(error, message)
                    })?,
                    Some(bytes) => io::text_in(&context.style().encoding.decode(bytes)?, *ty, &context)?,
                });
            }
        }
        let ran =
            self.run_rows_to(&prepared, plan.clone(), params, RowsTo::Kept, true, RowsLeave::AtEnd).await;
        let (_, rows) = ran?;
        let result = rows.into_iter().flatten().next().unwrap_or(Datum::Null);
        let columns = prepared.columns.as_deref().unwrap_or_default();
        let ty = columns.first().map_or(Type::TEXT, |column| column.ty);
        let host = self.host();
        let context = self.context(&host);
        let write = |out: &mut Vec<u8>| -> Result<()> {
            if call.binary {
                return io::binary_out(&result, ty, &context, out);
            }
            let start = out.len();
            io::text_out(&result, ty, &context, &mut Text(out)).map_err(|_| io::text_too_long())?;
            context.style().encoding.encode_end(out, start)
        };
        self.output.function_result((!result.is_null()).then_some(write))
    }

    /// The statement that calls the function.
    ///
    /// Errors: 42883 for a number that no function has, 0A000 for what is no plain function, 08P01 for
    /// another number of arguments than it has.
    async fn text_of_call(&mut self, call: &FunctionCall<'_>) -> Result<String> {
        let number = call.function.0;
        if let Some(text) = text_of_built_in(call)? {
            return Ok(text);
        }
        let asked = format!(
            "SELECT 'SELECT ' || pg_catalog.quote_ident(n.nspname) || '.' || pg_catalog.quote_ident(p.proname) \
                || '(' || coalesce((SELECT pg_catalog.string_agg(\
                    CASE WHEN p.provariadic <> 0 AND i = p.pronargs THEN 'VARIADIC ' ELSE '' END \
                    || '$' || i || '::' || pg_catalog.format_type(p.proargtypes[i - 1], NULL), ', ' ORDER BY i) \
                    FROM pg_catalog.generate_series(1, p.pronargs) i), '') || ')', \
                p.proname::text, p.prokind = 'f' AND NOT p.proretset, p.pronargs::int \
            FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace \
            WHERE p.oid = {number}"
        );
        let rows = self.rows_of(&asked, true).await?;
        let Some([Datum::Text(text), Datum::Text(name), Datum::Bool(plain), Datum::Int4(count)]) =
            rows.first().map(Vec::as_slice)
        else {
            let message = format!("function with OID {number} does not exist");
            return Err(SqlError::new(SqlState::UNDEFINED_FUNCTION, message));
        };
        if !plain {
            let message = format!("cannot call function \"{name}\" via fastpath interface");
            return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message));
        }
        require_arguments(call, usize::try_from(*count).unwrap_or_default())?;
        Ok(text.to_string())
    }
}

/// 08P01 for another number of arguments than a function has, and for what are none.
fn require_arguments(call: &FunctionCall<'_>, count: usize) -> Result<()> {
    call.values.clone()?;
    let given = call.argument_count();
    if given == count {
        return Ok(());
    }
    let message = format!("function call message contains {given} arguments but function requires {count}");
    Err(SqlError::new(SqlState::PROTOCOL_VIOLATION, message))
}

/// The same of a function that is built in, whose arguments are of types that have plain names: those of large
/// objects, which are called often, need no look at `pg_proc`.
fn text_of_built_in(call: &FunctionCall<'_>) -> Result<Option<String>> {
    let Some(function) = function_by_oid(call.function).filter(|function| !function.variadic) else {
        return Ok(None);
    };
    let typed = |(place, ty): (usize, &Oid)| {
        let name = match *ty {
            Oid::OID => "oid",
            Oid::BOOL => "bool",
            Oid::INT4 => "int4",
            Oid::INT8 => "int8",
            Oid::TEXT => "text",
            Oid::BYTEA => "bytea",
            _ => return None,
        };
        Some(format!("${}::pg_catalog.{name}", place + 1))
    };
    let Some(args) = function.args.iter().enumerate().map(typed).collect::<Option<Vec<String>>>() else {
        return Ok(None);
    };
    require_arguments(call, args.len())?;
    let name = quote_identifier(function.name);
    Ok(Some(format!("SELECT pg_catalog.{name}({})", args.join(", "))))
}
