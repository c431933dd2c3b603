//! SQL text in, bound tree as text out, against a small catalog; and errors with their SQLSTATEs.

use std::sync::Arc;

use archipel_sql::catalog::{
    ArgMode, Catalog, CatalogChange, Check, Column, Distribution, Index, IndexColumn, KeyConstraint,
    Language, Object, Routine, RoutineArg, RoutineKind, Table, TableKind,
};
use archipel_sql::error::SqlError;
use archipel_sql::function::FunctionContext;
use archipel_sql::types::{Oid, Type};

use super::display::statement_text;
use super::{BindEnv, VariableScope, bind_statement};
use crate::bound::{BoundExpr, BoundStatement, ExprKind, OutputColumn};

fn column(name: &str, ty: Type) -> Column {
    Column::new(name, ty)
}

fn typed(oid: Oid, typmod: i32) -> Type {
    Type { oid, typmod }
}

fn table(oid: u32, name: &str, columns: Vec<Column>, key: &[u16]) -> Table {
    Table {
        oid: Oid(oid),
        schema: "public".to_owned(),
        name: name.to_owned(),
        kind: TableKind::Table,
        columns,
        primary_key: Some(KeyConstraint {
            oid: Oid(oid + 3),
            name: format!("{name}_pkey"),
            columns: key.to_vec(),
        }),
        indexes: Vec::new(),
        checks: Vec::new(),
        foreign_keys: Vec::new(),
        distribution: Distribution::Column { column: 0, group: oid },
        tree: oid,
        version: 1,
    }
}

fn routine(
    oid: u32,
    name: &str,
    kind: RoutineKind,
    args: Vec<RoutineArg>,
    result: Type,
    returns_set: bool,
) -> Routine {
    Routine {
        oid: Oid(oid),
        schema: "public".to_owned(),
        name: name.to_owned(),
        kind,
        language: Language::Sql,
        args,
        result,
        returns_set,
        strict: false,
        volatility: 'v',
        source: String::new(),
        distribution_arg: None,
        version: 1,
    }
}

fn arg(name: &str, mode: ArgMode, ty: Type, default: Option<&str>) -> RoutineArg {
    RoutineArg { name: Some(name.to_owned()), mode, ty, default: default.map(str::to_owned) }
}

/// The tables and routines of the tests.
pub(crate) fn catalog() -> Catalog {
    let mut t = table(
        20000,
        "t",
        vec![
            column("a", Type::INT4),
            column("b", Type::TEXT),
            Column {
                not_null: true,
                default: Some("0".to_owned()),
                ..column("c", typed(Oid::NUMERIC, (12 << 16 | 2) + 4))
            },
            Column { default: Some("now()".to_owned()), ..column("d", Type::TIMESTAMP) },
            Column { default: Some("'x'".to_owned()), ..column("e", typed(Oid::VARCHAR, 14)) },
            column("f", Type::INT8),
            column("g", Type::BOOL),
            column("h", typed(Oid::BPCHAR, 7)),
        ],
        &[0],
    );
    t.checks.push(Check { oid: Oid(20010), name: "t_c_check".to_owned(), condition: "c >= 0".to_owned() });
    t.indexes.push(Index {
        oid: Oid(20011),
        name: "t_b_key".to_owned(),
        columns: vec![IndexColumn { column: 1, descending: false, nulls_first: false }],
        unique: true,
        constraint: true,
        tree: 20011,
        global_group: Some(20011),
    });
    let u = table(
        20020,
        "u",
        vec![
            column("a", Type::INT4),
            column("x", Type::INT4),
            column("y", Type::TEXT),
            column("z", Type::DATE),
        ],
        &[0, 1],
    );
    let arr = table(
        20040,
        "arr",
        vec![column("id", Type::INT4), column("xs", Type::INT4_ARRAY), column("ts", Type::TEXT_ARRAY)],
        &[0],
    );
    let function = RoutineKind::Function;
    let routines = [
        routine(20101, "twice", function, vec![arg("n", ArgMode::In, Type::INT4, None)], Type::INT4, false),
        routine(
            20102,
            "defs",
            function,
            vec![
                arg("a", ArgMode::In, Type::INT4, None),
                arg("b", ArgMode::In, Type::INT4, Some("5")),
                arg("c", ArgMode::In, Type::TEXT, Some("'q'")),
            ],
            Type::INT4,
            false,
        ),
        routine(
            20103,
            "outs",
            function,
            vec![
                arg("a", ArgMode::In, Type::INT4, None),
                arg("b", ArgMode::Out, Type::INT4, None),
                arg("c", ArgMode::Out, Type::TEXT, None),
            ],
            Type::RECORD,
            false,
        ),
        routine(
            20104,
            "rows_of",
            function,
            vec![arg("n", ArgMode::In, Type::INT4, None)],
            Type::of(Oid(20001)),
            true,
        ),
        routine(
            20105,
            "tab",
            function,
            vec![
                arg("n", ArgMode::In, Type::INT4, None),
                arg("i", ArgMode::Table, Type::INT4, None),
                arg("s", ArgMode::Table, Type::TEXT, None),
            ],
            Type::RECORD,
            true,
        ),
        routine(
            20106,
            "vari",
            function,
            vec![arg("xs", ArgMode::Variadic, Type::INT4_ARRAY, None)],
            Type::INT4,
            false,
        ),
        routine(
            20107,
            "proc",
            RoutineKind::Procedure,
            vec![arg("a", ArgMode::In, Type::INT4, None), arg("b", ArgMode::InOut, Type::INT4, Some("3"))],
            Type::RECORD,
            false,
        ),
        routine(
            20108,
            "poly",
            function,
            vec![arg("x", ArgMode::In, Type::ANYELEMENT, None)],
            Type::ANYARRAY,
            false,
        ),
    ];
    let mut changes: Vec<CatalogChange> =
        [t, u, arr].into_iter().map(|table| CatalogChange::Put(Object::Table(Arc::new(table)))).collect();
    changes
        .extend(routines.into_iter().map(|routine| CatalogChange::Put(Object::Routine(Arc::new(routine)))));
    Catalog::initial(Vec::new()).apply(&changes)
}

/// Binds one statement; the answer is its tree, or its error.
fn bind(
    text: &str,
    variables: Option<&dyn VariableScope>,
) -> Result<(BoundStatement, Vec<Option<Type>>), SqlError> {
    let catalog = catalog();
    let path = vec!["public".to_owned()];
    let context = FunctionContext::detached();
    let mut env = BindEnv::new(&catalog, &path, &context);
    env.text = text;
    env.variables = variables;
    let statement = archipel_sql::parser::parse_statement(text)?;
    let bound = bind_statement(&statement, &mut env)?;
    Ok((bound, env.param_types))
}

fn columns(statement: &BoundStatement) -> Vec<OutputColumn> {
    match statement {
        BoundStatement::With { statement, .. } => columns(statement),
        BoundStatement::Query(query) => query.columns.clone(),
        BoundStatement::Insert(insert) => {
            insert.returning.as_ref().map(|returning| returning.columns.clone()).unwrap_or_default()
        }
        BoundStatement::Update(update) => {
            update.returning.as_ref().map(|returning| returning.columns.clone()).unwrap_or_default()
        }
        BoundStatement::Delete(delete) => {
            delete.returning.as_ref().map(|returning| returning.columns.clone()).unwrap_or_default()
        }
        BoundStatement::Call(call) => call.columns.clone(),
    }
}

/// Not a test of its own: prints what each line of a file binds to, for comparing by hand.
#[test]
fn print_lines() {
    use archipel_sql::type_table::format_type;
    let Ok(file) = std::env::var("BIND_LINES") else { return };
    let text = std::fs::read_to_string(file).expect("the file of statements");
    let trees = std::env::var("BIND_TREES").is_ok();
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let line = line.trim_end_matches(';');
        match bind(line, None) {
            Ok((statement, _)) => {
                let columns: Vec<String> = columns(&statement)
                    .iter()
                    .map(|column| format!("{}|{}", column.name, format_type(column.ty)))
                    .collect();
                println!("{line}\n  = {}", columns.join(", "));
                if trees {
                    println!("{}", statement_text(&statement));
                }
            }
            Err(error) => {
                let position =
                    error.fields().position.map(|position| format!(" @{position}")).unwrap_or_default();
                println!("{line}\n  ! {} {}{position}", error.state().as_str(), error.message());
            }
        }
    }
}
