//! SQL text in, bound tree as text out, against a small catalog; and errors with their SQLSTATEs.

use std::sync::Arc;

use archipel_sql::catalog::{
    ArgMode, Catalog, CatalogChange, Check, Column, Distribution, Index, IndexColumn, KeyConstraint,
    Language, Object, Routine, RoutineArg, RoutineKind, Table, TableKind,
};
use archipel_sql::error::SqlError;
use archipel_sql::function::FunctionContext;
use archipel_sql::types::{Oid, Type};

use super::bind_statement;
use super::binder::{BindEnv, VariableConflict, VariableScope};
use super::display::statement_text;
use super::visit::{visit_statement, visit_statement_mut};
use crate::bound::{BoundExpr, BoundStatement, ExprKind};

fn column(name: &str, ty: Type) -> Column {
    Column::new(name, ty)
}

fn typed(oid: Oid, typmod: i32) -> Type {
    Type { oid, typmod }
}

fn table(oid: u32, name: &str, columns: Vec<Column>, key: &[u16]) -> Table {
    Table {
        columns,
        primary_key: Some(KeyConstraint {
            oid: Oid(oid + 3),
            name: format!("{name}_pkey"),
            columns: key.to_vec(),
            include: Vec::new(),
            parent: None,
            options: Vec::new(),
        }),
        distribution: Distribution::Column { column: 0, group: oid },
        tree: oid,
        version: 1,
        ..Table::new(Oid(oid), "public", name, TableKind::Table)
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
        result_domain: None,
        returns_set,
        strict: false,
        volatility: 'v',
        source: String::new(),
        distribution_arg: None,
        traits: Default::default(),
        aggregate: None,
        version: 1,
    }
}

fn arg(name: &str, mode: ArgMode, ty: Type, default: Option<&str>) -> RoutineArg {
    RoutineArg { name: Some(name.to_owned()), mode, ty, default: default.map(str::to_owned), domain: None }
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
    t.checks.push(Check {
        oid: Oid(20010),
        name: "t_c_check".to_owned(),
        condition: "c >= 0".to_owned(),
        not_valid: false,
        no_inherit: false,
        inherited: false,
    });
    t.indexes.push(Index {
        oid: Oid(20011),
        name: "t_b_key".to_owned(),
        columns: vec![IndexColumn { column: 1, descending: false, nulls_first: false, collation: None }],
        unique: true,
        nulls_equal: false,
        constraint: true,
        tree: 20011,
        global_group: Some(20011),
        include: Vec::new(),
        predicate: None,
        expressions: Vec::new(),
        parent: None,
        hash: false,
        classes: Vec::new(),
        options: Vec::new(),
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
            Type::of(Oid::row_type_of(Oid(20000))),
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

/// What a statement binds to, or its error with SQLSTATE and position.
fn outcome(text: &str) -> String {
    match bind(text, None) {
        Ok((statement, _)) => statement_text(&statement),
        Err(error) => {
            let position =
                error.fields().position.map(|position| format!(" @{position}")).unwrap_or_default();
            format!("! {} {}{position}", error.state().as_str(), error.message())
        }
    }
}

/// Every case of `cases.txt`: a line `> statement`, then what it binds to, then a blank line.
/// The expected column types, error texts and positions were compared with PostgreSQL 15.
/// `UPDATE_CASES=1 cargo test -p archipel-binder cases` writes the file anew.
#[test]
fn cases_bind_as_written() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/bind/cases.txt");
    let expected = std::fs::read_to_string(path).expect("the file of cases");
    let mut actual = String::new();
    for text in expected.lines().filter_map(|line| line.strip_prefix("> ")) {
        actual.push_str(&format!("> {text}\n{}\n\n", outcome(text)));
    }
    if std::env::var("UPDATE_CASES").is_ok() {
        std::fs::write(path, actual).expect("the file of cases can be written");
        return;
    }
    for (expected, actual) in expected.split("\n\n").zip(actual.split("\n\n")) {
        assert_eq!(expected, actual);
    }
    assert_eq!(expected.len(), actual.len());
}

/// Whoever may change a tree comes to the same parts in the same order as whoever only looks.
#[test]
fn walks_come_to_the_same_parts() {
    let mut parts = 0;
    for text in include_str!("cases.txt").lines().filter_map(|line| line.strip_prefix("> ")) {
        let Ok((mut statement, _)) = bind(text, None) else { continue };
        let (mut seen, mut lent) = (Vec::new(), Vec::new());
        visit_statement(&statement, 0, &mut |part, nesting| {
            seen.push(format!("{nesting} {part:?}"));
            true
        });
        visit_statement_mut(&mut statement, 0, &mut |part, nesting| {
            lent.push(format!("{nesting} {part:?}"));
            true
        });
        assert_eq!(seen, lent, "{text}");
        parts += seen.len();
    }
    assert!(parts > 100);
}

#[test]
fn parameters_take_the_types_their_places_ask_for() {
    let types = |text: &str| {
        let (_, types) = bind(text, None).expect(text);
        types.into_iter().map(|ty| ty.map_or(0, |ty| ty.oid.0)).collect::<Vec<_>>()
    };
    assert_eq!(types("select a from t where a = $1 and b = $2 limit $3"), [23, 25, 20]);
    assert_eq!(types("select $1, $2::int, $3 + 1, $4 || 'x'"), [25, 23, 23, 25]);
    assert_eq!(types("insert into t (a, b, c, d) values ($1, $2, $3, $4)"), [23, 25, 1700, 1114]);
    assert_eq!(types("update t set f = f + $1, g = $2 where d > $3"), [20, 16, 1114]);
    assert_eq!(types("select * from t where a in ($1, $2) or b = any($3)"), [23, 23, 1009]);
    assert_eq!(types("call proc($1, $2)"), [23, 23]);
    let error = bind("select $1::int, $1 || 'x' from t where b = $1", None).expect_err("two types");
    assert_eq!(error.state().as_str(), "42883");
}

#[test]
fn parameters_have_no_type_in_rows_before_something_asks_for_one() {
    let types = |text: &str| {
        let (_, types) = bind(text, None).expect(text);
        types.into_iter().map(|ty| ty.map_or(0, |ty| ty.oid.0)).collect::<Vec<_>>()
    };
    assert_eq!(types("select * from t where (a, f) in (($1, $2), ($3, $4))"), [23, 20, 23, 20]);
    assert_eq!(types("select * from t where (a, d) > ($1, $2)"), [23, 1114]);
    assert_eq!(types("select * from t where row(a, $1) = row($2, f)"), [20, 23]);
    assert_eq!(types("select * from t where (a, f) is distinct from ($1, $2)"), [23, 20]);
    assert_eq!(types("select * from t where ($1, $2) in (select a, f from t)"), [23, 20]);
    assert_eq!(types("select * from t where $1 between a and f"), [23]);
    assert_eq!(types("select ($1, $2) = ($3, $4)"), [25, 25, 25, 25]);
    // Nothing does: their types cannot be determined.
    assert_eq!(types("select row($1, $2::int)"), [0, 23]);
    assert_eq!(types("select pg_typeof($1)"), [0]);
    assert_eq!(types("select $1::int, pg_typeof($1)"), [23]);
    let error = bind("select pg_typeof($1), $1::int", None).expect_err("no type where it stands");
    assert_eq!((error.state().as_str(), error.fields().position), ("42P08", Some(18)));
    let error = bind("select row($1, $2) = row($2, 1)", None).expect_err("two types");
    assert_eq!(error.message(), "inconsistent types deduced for parameter $2");
}

#[test]
fn parameters_of_type_void_are_no_arguments_of_functions() {
    let types = |text: &str, declared: &[Oid]| {
        let catalog = catalog();
        let path = vec!["public".to_owned()];
        let context = FunctionContext::detached();
        let mut env = BindEnv::new(&catalog, &path, &context);
        env.text = text;
        env.param_types = declared.iter().map(|oid| Some(Type::of(*oid))).collect();
        let statement = archipel_sql::parser::parse_statement(text).expect(text);
        bind_statement(&statement, &mut env).map(|_| env.parameter_types().expect(text))
    };
    let (void, int) = (Type::VOID, Type::INT4);
    let given = [Oid::VOID, Oid::INT4];
    assert_eq!(
        types("select * from generate_series($1, $2, 3) as result", &given).expect("two"),
        [void, int]
    );
    assert_eq!(types("select abs($1, $2)", &given).expect("one"), [void, int]);
    assert!(types("select abs($1)", &given[..1]).is_err());
    // Of a procedure it is the argument that takes what it answers.
    assert_eq!(types("call proc($2, $1)", &given).expect("two"), [int, int]);
}

/// A routine's variables `v` (integer), `r.f` (text) and `a` (which is a column, too).
struct Variables(VariableConflict);

impl VariableScope for Variables {
    fn resolve(&self, parts: &[&str]) -> Option<BoundExpr> {
        let (register, ty) = match parts {
            ["v"] => (0, Type::INT4),
            ["r", "f"] => (1, Type::TEXT),
            ["a"] => (2, Type::INT4),
            _ => return None,
        };
        Some(BoundExpr::new(ExprKind::Variable(register), ty))
    }

    fn fields(&self, parts: &[&str]) -> Option<Vec<(String, BoundExpr)>> {
        (parts == ["r"]).then(|| vec![("f".to_owned(), BoundExpr::new(ExprKind::Variable(1), Type::TEXT))])
    }

    fn conflict(&self) -> VariableConflict {
        self.0
    }
}

#[test]
fn variables_and_columns_meet_by_the_conflict_rule() {
    let tree = |text: &str, conflict| {
        bind(text, Some(&Variables(conflict))).map(|(statement, _)| statement_text(&statement))
    };
    let error = tree("select a from t", VariableConflict::Error).expect_err("ambiguous");
    assert_eq!((error.state().as_str(), error.message()), ("42702", "column reference \"a\" is ambiguous"));
    assert!(tree("select a from t", VariableConflict::Column).expect("column").contains("project #0"));
    assert!(tree("select a from t", VariableConflict::Variable).expect("variable").contains("project @2"));
    let text =
        tree("select v, r.f, r.*, t.b from t where t.a = v", VariableConflict::Error).expect("variables");
    assert!(text.contains("project @0, @1, @1, #1") && text.contains("int4eq(#0, @0)"), "{text}");
    let error = tree("select r.nope", VariableConflict::Error).expect_err("no such field");
    assert_eq!(error.state().as_str(), "42P01");
}

#[test]
fn depth_is_limited_and_length_is_not() {
    let long = format!("select a from t where a = 0{}", " or a = 1 and a > 2".repeat(20_000));
    assert!(bind(&long, None).is_ok());
    let list = format!("select a from t where a in (0{})", ", 1".repeat(5000));
    assert!(bind(&list, None).is_ok());
    let chain = format!("select 1{}", " + 1".repeat(2500));
    assert_eq!(bind(&chain, None).expect_err("too deep").state().as_str(), "54001");
    let nested = format!("select {}1{}", "(".repeat(3000), ")".repeat(3000));
    assert_eq!(bind(&nested, None).expect_err("too deep").state().as_str(), "54001");
}
