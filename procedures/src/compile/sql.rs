//! LANGUAGE sql: statements one after the other, the last one's rows are the result.

use std::sync::Arc;

use crate::rights::Rights;
use archipel_planner::bind::coerce::can_coerce;
use archipel_planner::bind::visit;
use archipel_planner::bound::{BoundExpr, BoundStatement, ExprKind, OutputColumn, Rel, Returning};
use archipel_planner::native::RoutineLinker;
use archipel_sql::ast::Statement as SqlAst;
use archipel_sql::catalog::RoutineRef;
use archipel_sql::datum::Datum;
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::function::{CastContext, Volatility};
use archipel_sql::parser;
use archipel_sql::type_table::TypeNames;
use archipel_sql::types::{Oid, Type};
use rustc_hash::FxHashSet;

use super::cast::{as_records, cast_columns, project_columns};
use super::compiler::Compiler;
use super::hoist::answers::{Answers, after_calls};
use super::statement::command_text;
use super::{Columns, Environment, signature_text};
use crate::plpgsql::ast::*;
use crate::run::operation::*;

const NO_FINAL_QUERY: &str = "Function's final statement must be SELECT or INSERT/UPDATE/DELETE RETURNING.";

/// Compiles a SQL function or procedure. PostgreSQL analyses these at CREATE, so every error
/// is one here.
pub fn compile(
    routine: &RoutineRef,
    environment: &Environment,
    linker: &Arc<dyn RoutineLinker + Send + Sync>,
) -> Result<Program> {
    let body = body_of(routine);
    let mut compiler = Compiler::new(routine, &body, environment, linker)?;
    let (source, parsed) = match &routine.traits.stored {
        Some(stored) => (stored.text.clone(), parser::parse_stored(&stored.text)?),
        None => {
            let source = statements_text(&routine.source);
            let parsed = parser::parse(&source)?;
            (source, parsed)
        }
    };
    let last = parsed.len().wrapping_sub(1);
    // Places in its statements are counted in all of it.
    let whole = Fragment { text: source.clone(), start: 0, line: 1, names: body.block.line };
    let mut operations = Vec::new();
    let mut dissolved = None;
    for (index, statement) in parsed.iter().enumerate() {
        let site = Compiler::site(index as u32 + 1, "statement");
        compiler.flow.get_mut().begin(site.line, None);
        let text = source[statement.range.clone()].to_string();
        let fragment = Fragment { text, start: statement.range.start, line: 1, names: body.block.line };
        let refused = |what: &str| {
            let error = SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, what.to_owned());
            let site = Compiler::site(0, "during startup");
            Operation { site, rights: None, kind: OperationKind::Fail { error: Box::new(error) } }
        };
        let tag = statement.statement.tag();
        if matches!(statement.statement, SqlAst::Transaction(_)) {
            operations.push(refused(&format!("{tag} is not allowed in an SQL function")));
            compiler.flow.get_mut().end(&[]);
            continue;
        }
        if command_text::is_command(&statement.statement) {
            if index == last && compiler.columns != Columns::None {
                return Err(mismatch(routine, NO_FINAL_QUERY, environment));
            }
            let kind = compiler.command(&fragment, tag)?;
            operations.push(Operation { site, rights: None, kind });
            compiler.flow.get_mut().end(&[]);
            continue;
        }
        if let Some(kind) = compiler.notify(&statement.statement, &fragment) {
            if index == last && compiler.columns != Columns::None {
                return Err(mismatch(routine, NO_FINAL_QUERY, environment));
            }
            let kind = kind.unwrap_or_else(|error| OperationKind::Fail { error: Box::new(error) });
            operations.push(Operation { site, rights: None, kind });
            compiler.flow.get_mut().end(&[]);
            continue;
        }
        let mut bound = compiler.bind_ast(&whole, &statement.statement).map_err(|error| {
            // Where it says what of the text it means, PostgreSQL says no more.
            if error.fields().position.is_none() { in_function(routine, error) } else { error }
        })?;
        dissolved = if parsed.len() == 1 { dissolves(routine, &bound) } else { None };
        let inlined = dissolved.is_some();
        if routine.volatility != 'v' && super::statement::into::modifies(&bound) {
            operations.push(refused(&format!("{tag} is not allowed in a non-volatile function")));
        }
        // What is dissolved is its value, also where that is void.
        let of_void = inlined && compiler.columns == Columns::None;
        let is_result = index == last && (of_void || compiler.columns != Columns::None);
        let spread = is_result && !of_void && fit_result(&compiler, &mut bound, environment)?;
        // What stands for a query answers the query's rows.
        if is_result && compiler.columns == Columns::Record && routine.oid != Oid(0) {
            as_record(&mut bound);
        }
        let outer = compiler.begin_calls(site.line, true);
        let compiled = compiler.plan(&bound);
        let calls = compiler.end_calls(outer);
        let statement = SqlStatement { compiled: compiled?, text: None };
        let kind = match (is_result, routine.returns_set) {
            (true, true) => OperationKind::ReturnQuery { statement, spread },
            (true, false) => OperationKind::FirstRow { statement, spread },
            (false, _) => OperationKind::Perform(statement),
        };
        let rights = Rights::of(compiler.needed.take());
        let mut operation = after_calls(calls, Operation { site, rights: None, kind });
        operation.rights = rights.map(Arc::new);
        operations.push(operation);
        compiler.flow.get_mut().end(&[]);
    }
    if parsed.is_empty() && compiler.columns != Columns::None {
        return Err(mismatch(routine, NO_FINAL_QUERY, environment));
    }
    let language = if dissolved.is_some() { ContextLanguage::Inlined } else { ContextLanguage::Sql };
    let mut program = finish(compiler, operations, language);
    program.dissolved = dissolved;
    if dissolved.is_some() {
        // Its only statement has answered.
        program.at_end = AtEnd::Nothing;
    }
    Ok(program)
}

/// Compiles a statement over parameters in the form that can stop, as [`crate::Registry::query_in_pieces`]
/// does a text: `None` if it has no calls that are made before it.
pub(crate) fn compile_bound(
    bound: BoundStatement,
    routine: &RoutineRef,
    environment: &Environment,
    linker: &Arc<dyn RoutineLinker + Send + Sync>,
) -> Result<Option<Program>> {
    compile_within(bound, routine, environment, linker, Answers::default())
}

/// The same of a part of another statement, in which some of its calls have been answered.
pub(super) fn compile_within(
    mut bound: BoundStatement,
    routine: &RoutineRef,
    environment: &Environment,
    linker: &Arc<dyn RoutineLinker + Send + Sync>,
    answers: Answers,
) -> Result<Option<Program>> {
    let body = body_of(routine);
    let mut compiler = Compiler::new(routine, &body, environment, linker)?;
    compiler.answers = answers;
    let registers: Vec<u32> =
        body.parameters.iter().map(|variable| compiler.register_of(*variable)).collect();
    visit::visit_statement_mut(&mut bound, 0, &mut |part, _| {
        if let ExprKind::Param(number) = part.kind
            && let Some(register) = registers.get(usize::from(number))
        {
            part.kind = ExprKind::Variable(*register);
        }
        true
    });
    answer_changes(&mut bound);
    let outer = compiler.begin_calls(1, true);
    let compiled = compiler.plan(&bound);
    let calls = compiler.end_calls(outer);
    if calls.is_empty() {
        return Ok(None);
    }
    let statement = SqlStatement { compiled: compiled?, text: None };
    let kind = OperationKind::ReturnQuery { statement, spread: false };
    let operation = Operation { site: Compiler::site(1, "statement"), rights: None, kind };
    Ok(Some(finish(compiler, vec![after_calls(calls, operation)], ContextLanguage::Inlined)))
}

/// Lets a statement that changes rows and answers none answer something for each, so that they are counted.
fn answer_changes(bound: &mut BoundStatement) {
    let Some(returning) = bound.returning_mut() else { return };
    returning.get_or_insert_with(|| Returning {
        exprs: vec![BoundExpr::constant(Datum::Null, Type::BOOL)],
        columns: vec![OutputColumn { name: "?column?".to_owned(), ty: Type::BOOL, source: None }],
    });
}

/// The program of these statements.
fn finish(mut compiler: Compiler<'_>, operations: Vec<Operation>, language: ContextLanguage) -> Program {
    let (routine, body) = (compiler.routine, compiler.body);
    let width = match &compiler.columns {
        Columns::Record => 0,
        columns => columns.width() as u32,
    };
    let at_end = match (&compiler.columns, routine.kind) {
        (Columns::None, archipel_sql::catalog::RoutineKind::Function) if !routine.returns_set => AtEnd::Void,
        _ => AtEnd::Nothing,
    };
    let found = compiler.register_of(body.found);
    let arguments = compiler.argument_places();
    let mut homes = compiler.homes();
    homes.append(&mut compiler.homes_of_answers());
    let site = Compiler::site(1, "statement");
    Program {
        routine: routine.clone(),
        settings: crate::compile::trace::route_setting::settings_to_run_with(routine),
        signature: signature_text(&compiler.environment.declared(routine), compiler.environment),
        registers: compiler.registers,
        plain_arguments: crate::compile::compiler::is_plain(&arguments),
        arguments,
        found,
        ahead: Vec::new(),
        ahead_text: Vec::new(),
        body: Operation { site, rights: None, kind: OperationKind::Sequence(operations) },
        columns: Vec::new(),
        columns_at: None,
        width,
        at_end,
        routes: super::trace::routes(&compiler.accesses),
        accesses: compiler.accesses,
        reference_reads: compiler.reference_reads,
        failures: Vec::new(),
        flow: compiler.flow.into_inner().finish(),
        homes,
        language,
        asks: false,
        dissolved: None,
        asked_below: compiler.linker.asked_below(),
    }
}

/// Whether PostgreSQL puts the function's expression in the place of its calls (inline_function): if so,
/// whether it is made of what never changes, so that it is computed there and then.
fn dissolves(routine: &RoutineRef, bound: &BoundStatement) -> Option<bool> {
    let BoundStatement::Query(query) = bound else { return None };
    let Rel::Project { input, exprs } = &query.rel else { return None };
    let ([expr], Rel::Unit) = (&exprs[..], &**input) else { return None };
    let simple = !routine.returns_set
        // One that is void dissolves where it only calls another.
        && (routine.result != Type::VOID || expr.ty == Type::VOID)
        && !routine.traits.security_definer
        && routine.traits.settings.is_empty()
        && routine.kind == archipel_sql::catalog::RoutineKind::Function;
    let (mut query, mut mutable, mut volatile, mut lenient) = (false, false, false, false);
    // What a domain demands is asked when the expression runs.
    let mut demands = routine.result_domain.is_some();
    let mut used = FxHashSet::default();
    visit::visit_expr(expr, 0, &mut |part, _| {
        let changes = match &part.kind {
            ExprKind::Routine { routine, .. } => routine.volatility,
            ExprKind::Call { function, .. } => match function.function.volatility {
                Volatility::Immutable => 'i',
                Volatility::Stable => 's',
                Volatility::Volatile => 'v',
            },
            _ => 'i',
        };
        mutable |= changes != 'i';
        volatile |= changes == 'v';
        query |= matches!(part.kind, ExprKind::Subquery(_));
        demands |= matches!(part.kind, ExprKind::Domain { .. });
        lenient |= match &part.kind {
            ExprKind::Routine { routine, .. } => !routine.strict,
            ExprKind::Call { function, .. } => !function.function.strict,
            ExprKind::Variable(register) => {
                used.insert(*register);
                false
            }
            ExprKind::Const(_) | ExprKind::Relabel(_) | ExprKind::ConvertIo(_) => false,
            _ => true,
        };
        !query
    });
    let may_change = match routine.volatility {
        'i' => !mutable,
        's' => !volatile,
        _ => true,
    };
    // NULL for a NULL has to follow from the expression itself.
    let strictly = !routine.strict || (!lenient && used.len() == routine.args.len());
    (simple && !query && may_change && strictly).then_some(!mutable && !demands)
}

/// The text of the statements: `RETURN expression` and `BEGIN ATOMIC … END` included.
pub(crate) fn statements_text(source: &str) -> String {
    let trimmed = source.trim();
    let word = trimmed.split_whitespace().next().unwrap_or_default();
    if word.eq_ignore_ascii_case("return") {
        return format!("SELECT {}", &trimmed[word.len()..]);
    }
    let mut words = trimmed.split_whitespace();
    if words.next().is_some_and(|w| w.eq_ignore_ascii_case("begin"))
        && words.next().is_some_and(|w| w.eq_ignore_ascii_case("atomic"))
    {
        let lower = trimmed.to_ascii_lowercase();
        let start = lower.find("atomic").map_or(0, |at| at + "atomic".len());
        let end = lower.rfind("end").filter(|end| *end > start).unwrap_or(trimmed.len());
        return trimmed[start..end].to_string();
    }
    source.to_string()
}

/// The parameters as variables, as PL/pgSQL would have them; a column of the same name wins. Only
/// what a call gives has a name or a number here: there are no variables for the results.
pub(super) fn body_of(routine: &RoutineRef) -> Body {
    let mut names = Names::default();
    let mut variables = Vec::new();
    let mut parameters = Vec::new();
    let mut head = names.push(None, Name::Label { label: Some(routine.name.clone()), is_loop: false });
    let mut add = |name: String, ty: Type, head: &mut NamesId, names: &mut Names| {
        let id = variables.len() as VariableId;
        variables.push(Variable {
            name: name.clone(),
            line: 0,
            ty: TypeSpec::Known(ty),
            constant: false,
            not_null: false,
            default: None,
            cursor: None,
            collate: None,
        });
        *head = names.push(Some(*head), Name::Variable { name, id });
        id
    };
    let mut inputs = 0;
    for arg in &routine.args {
        inputs += usize::from(crate::compile::environment::is_input(arg.mode));
        let name = match &arg.name {
            _ if !crate::compile::environment::is_input(arg.mode) => "\0result".to_string(),
            Some(name) => name.clone(),
            None => format!("${inputs}"),
        };
        parameters.push(add(name, Type::of(arg.declared().oid), &mut head, &mut names));
    }
    // A name no SQL can spell.
    let found = add("\0found".to_string(), Type::BOOL, &mut head, &mut names);
    let block = Block { line: head, label: None, declared: Vec::new(), body: Vec::new(), exceptions: None };
    let (print_strict, conflict) = (None, Some(Conflict::UseColumn));
    Body { block, variables, names, parameters, found, print_strict, conflict, shadowed: Vec::new() }
}

fn mismatch(routine: &RoutineRef, detail: impl ToString, environment: &Environment) -> SqlError {
    let result = environment.type_names().type_name(routine.result.oid);
    let error = SqlError::new(
        SqlState::INVALID_FUNCTION_DEFINITION,
        format!("return type mismatch in function declared to return {result}"),
    )
    .with_detail(detail.to_string());
    in_function(routine, error)
}

fn in_function(routine: &RoutineRef, mut error: SqlError) -> SqlError {
    error.fields_mut().context = Some(format!("SQL function \"{}\"", routine.name));
    error
}

/// Whether the only column is the row itself, of the composite type that is declared. A row of no
/// declared type becomes one of it.
fn is_row(compiler: &Compiler<'_>, bound: &mut BoundStatement, environment: &Environment) -> Result<bool> {
    let result = compiler.routine.result;
    let Columns::Row(_) = &compiler.columns else { return Ok(false) };
    let [only] = bound.columns() else { return Ok(false) };
    if !result.oid.is_composite() || only.ty.oid == result.oid {
        return Ok(result.oid.is_composite());
    }
    if only.ty != Type::RECORD {
        return Ok(false);
    }
    let BoundStatement::Query(query) = bound else { return Ok(false) };
    let Rel::Project { exprs, .. } = &mut query.rel else { return Ok(false) };
    let ([expr], [column]) = (&mut exprs[..], &mut query.columns[..]) else { return Ok(false) };
    if !matches!(expr.kind, ExprKind::Row(..)) {
        let result = environment.type_names().type_name(result.oid);
        return Err(SqlError::new(SqlState::CANNOT_COERCE, format!("cannot cast type record to {result}")));
    }
    let declared = compiler.routine.declared_result();
    *expr = crate::compile::cast::cast(expr.clone(), declared, environment)?;
    column.ty = expr.ty;
    Ok(true)
}

/// Makes the last statement of a function that is declared to return `record` answer records: its only
/// column, if that is a row, or all of them as one.
fn as_record(bound: &mut BoundStatement) {
    let row = match bound.columns() {
        [only] if only.ty == Type::RECORD => return,
        [only] => only.ty.oid.is_composite(),
        _ => false,
    };
    if !row {
        return as_records(bound);
    }
    let relabelled = |row| BoundExpr::new(ExprKind::Relabel(Box::new(row)), Type::RECORD);
    project_columns(bound, |own| own.into_iter().map(relabelled).collect());
}

/// Casts the last statement's columns to the declared ones. Answers whether its only column is the
/// row that is declared.
fn fit_result(
    compiler: &Compiler<'_>,
    bound: &mut BoundStatement,
    environment: &Environment,
) -> Result<bool> {
    let routine = compiler.routine;
    if is_row(compiler, bound, environment)? {
        return Ok(true);
    }
    let columns = bound.columns();
    if columns.is_empty() {
        return Err(mismatch(routine, NO_FINAL_QUERY, environment));
    }
    let wanted: Vec<Type> = match &compiler.columns {
        Columns::Record => return Ok(false),
        Columns::Scalar { .. } if routine.result_domain.is_some() => vec![routine.declared_result()],
        columns => columns.named().iter().map(|(_, ty)| *ty).collect(),
    };
    if columns.len() != wanted.len() {
        let detail = if columns.len() < wanted.len() {
            "Final statement returns too few columns."
        } else if wanted.len() == 1 {
            "Final statement must return exactly one column."
        } else {
            "Final statement returns too many columns."
        };
        return Err(mismatch(routine, detail, environment));
    }
    let first = columns[0].ty;
    let converts = |(column, wanted): (&archipel_planner::bound::OutputColumn, &Type)| {
        let (plain, _) = environment.catalog.plain_type(*wanted);
        let row_of = |ty: Type| environment.catalog.table_of_row_type(ty.oid);
        let inherits = || match (row_of(column.ty), row_of(plain)) {
            (Some(own), Some(ancestor)) => environment.catalog.inherits_from(own.oid, ancestor.oid),
            _ => false,
        };
        can_coerce(column.ty.oid, plain.oid, CastContext::Assignment) || inherits()
    };
    if let Some(at) = columns.iter().zip(&wanted).position(|pair| !converts(pair)) {
        let names = environment.type_names();
        let actual = names.type_name(columns[at].ty.oid);
        return Err(mismatch(
            routine,
            match (&compiler.columns, routine.result == Type::RECORD) {
                (Columns::Scalar { .. }, _) => format!("Actual return type is {actual}."),
                _ => format!(
                    "Final statement returns {actual} instead of {} at column {}.",
                    names.type_name(wanted[at].oid),
                    at + 1
                ),
            },
            environment,
        ));
    }
    cast_columns(bound, &wanted, environment).map_err(|_| {
        let first = environment.type_names().type_name(first.oid);
        mismatch(routine, format!("Actual return type is {first}."), environment)
    })?;
    Ok(false)
}
