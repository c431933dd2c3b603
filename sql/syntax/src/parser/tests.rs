use proptest::prelude::*;
use sqlparser::ast::{Expr, LockClause, SetExpr};

use super::*;
use crate::ast::*;
use crate::types::Type;

mod copy;
mod databases;
mod endings;

#[track_caller]
fn one(text: &str) -> Statement {
    match parse_statement(text) {
        Ok(statement) => statement,
        Err(error) => panic!("{text}: {error:?}"),
    }
}

#[track_caller]
fn fails(text: &str) -> (String, String, Option<u32>) {
    match parse(text) {
        Ok(statements) => panic!("{text} was accepted: {statements:?}"),
        Err(error) => (error.state().as_str().into(), error.message().into(), error.fields().position),
    }
}

#[track_caller]
fn check_syntax_error(text: &str, near: &str, position: u32) {
    let message = match near {
        "" => "syntax error at end of input".to_string(),
        near => format!("syntax error at or near \"{near}\""),
    };
    assert_eq!(fails(text), ("42601".to_string(), message, Some(position)), "{text}");
}

#[track_caller]
fn check_refused(text: &str, what: &str) {
    let refused = match parse_statement(text) {
        Ok(Statement::Unsupported { what }) => Statement::refusal(&what),
        Ok(other) => panic!("{text} was accepted: {other:?}"),
        Err(error) => error,
    };
    let expected = ("0A000", format!("{what} is not supported"));
    assert_eq!((refused.state().as_str(), refused.message().to_string()), expected, "{text}");
}

#[test]
fn a_script_is_cut_into_statements_with_their_bytes() {
    let text = "select 1; ; create table t (a int);";
    let statements = parse(text).unwrap();
    assert_eq!(statements.len(), 2);
    assert_eq!(&text[statements[1].range.clone()], "create table t (a int)");
    assert!(parse(" -- nothing\n ;; ").unwrap().is_empty());
}

#[test]
fn syntax_errors_name_the_token_and_its_character() {
    check_syntax_error("selec 1", "selec", 1);
    check_syntax_error("select 1 from", "", 14);
    check_syntax_error("select * form t", "t", 15);
    check_syntax_error("select 'é', , 2", ",", 13);
    check_syntax_error("select 1;\n select (1 + ) ", ")", 24);
    check_syntax_error("create table t (a int b)", "b", 23);
    check_syntax_error("create table t (a int not nul)", "nul", 27);
    check_syntax_error("drop table", "", 11);
    check_syntax_error("insert into t as x valeus (1)", "valeus", 20);
    check_syntax_error("begin isolation level chaos", "chaos", 23);
    check_syntax_error("create index on t", "", 18);
    check_syntax_error("select 1 select 2", "2", 17);
    check_syntax_error("insert overwrite into t values (1)", "overwrite", 8);
}

#[test]
fn text_that_cannot_be_cut_into_tokens() {
    let check = |text: &str, message: &str, position| {
        assert_eq!(fails(text), ("42601".to_string(), message.to_string(), Some(position)), "{text}");
    };
    check("select 'abc", "unterminated quoted string at or near \"'abc\"", 8);
    check("select \"abc", "unterminated quoted identifier at or near \"\"abc\"", 8);
    check("select /* abc", "unterminated /* comment at or near \"/* abc\"", 8);
    check("select $x$ abc", "unterminated dollar-quoted string at or near \"$x$ abc\"", 8);
    check("select \"\"", "zero-length delimited identifier at or near \"\"\"\"", 8);
}

#[test]
fn routines_in_any_order_of_clauses() {
    let text = "create or replace function s.f(a int, inout b text default 'x', variadic c int[])
                returns record language plpgsql immutable strict security definer cost 10 rows 5
                parallel safe as $body$ begin end $body$";
    let Statement::CreateRoutine(f) = one(text) else { panic!() };
    assert_eq!((f.name.schema.as_deref(), f.name.name.as_str(), f.or_replace), (Some("s"), "f", true));
    assert_eq!(f.language.as_deref(), Some("plpgsql"));
    assert_eq!((f.clauses.volatility, f.clauses.strict), (Some('i'), Some(true)));
    assert_eq!(f.args.len(), 3);
    assert_eq!(f.args[1].default.as_ref().unwrap().text, "'x'");
    let RoutineBody::Text { text: body, offset: Some(offset) } = &f.body else { panic!() };
    assert_eq!(&text[*offset..*offset + body.len()], body);

    let Statement::CreateRoutine(p) =
        one("create procedure p(IN x integer, OUT y double precision) as 'begin end' language 'plpgsql'")
    else {
        panic!()
    };
    assert_eq!((p.kind, p.args[1].ty.resolve().unwrap()), (RoutineWord::Procedure, Type::FLOAT8));
    let Statement::CreateRoutine(t) = one(
        "create function t(int, timestamp with time zone, n numeric(12, 2)) returns table (a int, b text) as $$ select 1 $$ language sql",
    ) else {
        panic!()
    };
    let names: Vec<_> = t.args.iter().map(|arg| arg.name.as_deref()).collect();
    assert_eq!(names, [None, None, Some("n"), Some("a"), Some("b")]);
    let Statement::CreateRoutine(r) = one(
        "create function r(w warehouse.w_id%TYPE) returns setof warehouse language sql begin atomic; select case when true then 1 end; end",
    ) else {
        panic!()
    };
    assert!(r.args[0].ty.percent_type && matches!(&r.returns, Some(Returns::Type(ty)) if ty.setof));
    assert!(matches!(&r.body, RoutineBody::Atomic(_)));
    assert_eq!(fails("create function f() returns int as 'x'").1, "no language specified");
    assert_eq!(fails("create function f() returns int language sql").1, "no function body specified");
}

#[test]
fn calls_and_blocks() {
    let Statement::Call(call) = one("call s.p(1, b => 2 + 3, c := 'x')") else { panic!() };
    let args: Vec<_> = call.args.iter().map(|arg| (arg.name.as_deref(), arg.value.text.as_str())).collect();
    assert_eq!(args, [(None, "1"), (Some("b"), "2 + 3"), (Some("c"), "'x'")]);
    assert!(matches!(one("do $$ begin end $$"), Statement::Do(Do { language, .. }) if language == "plpgsql"));
    for text in ["do language sql 'select 1'", "do language 'sql' $$select 1$$"] {
        assert!(matches!(one(text), Statement::Do(Do { language, .. }) if language == "sql"), "{text}");
    }
    let Statement::Explain(explain) = one("explain (analyze, costs off) call p(1)") else { panic!() };
    assert_eq!((explain.options.analyze, explain.options.costs), (true, Some(false)));
    assert!(matches!(explain.statement.statement, Statement::Call(_)));
}

#[test]
fn transactions_and_their_modes() {
    let modes = |text: &str| match one(text) {
        Statement::Transaction(TransactionStatement::Begin { modes, .. }) => modes,
        other => panic!("{other:?}"),
    };
    let full = modes("begin transaction isolation level repeatable read, read only, not deferrable");
    assert_eq!(full.isolation, Some(IsolationLevel::RepeatableRead));
    assert_eq!((full.read_only, full.deferrable), (Some(true), Some(false)));
    assert_eq!(
        modes("start transaction read write serializable".replace(" serializable", "").as_str()).read_only,
        Some(false)
    );
    for (text, expected) in [
        ("commit and chain", TransactionStatement::Commit { chain: true }),
        ("end work", TransactionStatement::Commit { chain: false }),
        ("abort", TransactionStatement::Rollback { chain: false }),
        ("rollback and no chain", TransactionStatement::Rollback { chain: false }),
        ("rollback to savepoint a", TransactionStatement::RollbackTo("a".into())),
        ("release a", TransactionStatement::Release("a".into())),
        ("savepoint \"A\"", TransactionStatement::Savepoint("A".into())),
    ] {
        assert_eq!(one(text), Statement::Transaction(expected), "{text}");
    }
}

#[test]
fn settings() {
    let list = |items: &[&str]| SetValue::List(items.iter().map(|item| (*item).to_string()).collect());
    for (text, local, name, value) in [
        ("set search_path to a, \"B\", 'c'", false, "search_path", list(&["a", "B", "c"])),
        ("set local work_mem = '4MB'", true, "work_mem", list(&["4MB"])),
        ("set session x.y = -5", false, "x.y", list(&["-5"])),
        ("set time zone 'Europe/Berlin'", false, "timezone", list(&["Europe/Berlin"])),
        ("set time zone local", false, "timezone", SetValue::Default),
        ("set names 'utf8'", false, "client_encoding", list(&["utf8"])),
        ("set role none", false, "role", list(&["none"])),
        ("set extra_float_digits to default", false, "extra_float_digits", SetValue::Default),
        ("set synchronous_commit = off", false, "synchronous_commit", list(&["off"])),
    ] {
        assert_eq!(one(text), Statement::Set(Set { local, name: name.into(), value }), "{text}");
    }
    assert_eq!(
        one("show transaction isolation level"),
        Statement::Show(Show::Name("transaction_isolation".into()))
    );
    assert_eq!(one("reset all"), Statement::Reset(Reset::All));
    assert!(
        matches!(one("set session characteristics as transaction read only"), Statement::SetTransaction(s) if s.session)
    );
}

fn locks(text: &str) -> Vec<RowLockClause> {
    let Statement::Query(query) = one(text) else { panic!("{text}") };
    query.locks.iter().map(|clause: &LockClause| row_lock(clause).unwrap()).collect()
}

#[test]
fn row_locks_keep_strength_tables_and_wait() {
    use RowLockStrength::*;
    for (text, strength) in [
        ("for update", Update),
        ("for no key update", NoKeyUpdate),
        ("for share", Share),
        ("for key share", KeyShare),
    ] {
        let found = locks(&format!("select * from t {text} skip locked"));
        assert_eq!(found, [RowLockClause { strength, wait: RowLockWait::SkipLocked, of: None }], "{text}");
    }
    let found = locks("select * from a, b for update of a, b nowait for key share of c limit 1");
    let shown: Vec<_> = found.iter().map(|l| (l.strength, l.wait, l.of.as_deref())).collect();
    assert_eq!(
        shown,
        [
            (Update, RowLockWait::NoWait, Some("a")),
            (Update, RowLockWait::NoWait, Some("b")),
            (KeyShare, RowLockWait::Block, Some("c")),
        ]
    );
    let Statement::Query(query) = one("select * from (select * from t for share) s") else { panic!() };
    assert!(query.locks.is_empty() && query.to_string().contains("FOR UPDATE OF"));
    assert_eq!(fails("select * from t for update of").0, "42601");
}

#[test]
fn what_sqlparser_lacks_reaches_its_trees() {
    let expression = |text: &str| parse_expression(text).unwrap().to_string();
    assert_eq!(expression("a between symmetric 1 and 2"), "(a BETWEEN 1 AND 2 OR a BETWEEN 2 AND 1)");
    assert_eq!(expression("a isnull"), "a IS NULL");
    assert_eq!(expression("a::text collate \"C\" < b"), "a::TEXT COLLATE \"C\" < b");
    assert!(matches!(parse_expression("inet '1.2.3.4'").unwrap(), Expr::TypedString(_)));
    assert_eq!(expression("trim(both from x)"), "TRIM(BOTH ' ' FROM x)");
    assert_eq!(expression("'a'\n'b'"), "'ab'");
    assert!(expression("f(1, variadic x)").contains(VARIADIC_ARGUMENT));
    let Statement::Insert(insert) = one("insert into t (a) overriding system value values (1)") else {
        panic!()
    };
    assert!(insert.overwrite);
    assert!(matches!(one("update only t set a = 1"), Statement::Update(_)));
    let Statement::Query(query) = one("table s.t order by 1") else { panic!() };
    assert_eq!(query.to_string(), "SELECT * FROM s.t ORDER BY 1");
    assert_eq!(
        parse("table t; select 1; create table x as table t; (table t) union table u").unwrap().len(),
        4
    );
    let Statement::Query(query) = one("with x as (select 1) insert into t select * from x") else { panic!() };
    assert!(matches!(query.body.as_ref(), SetExpr::Insert(_)));
}

#[test]
fn keywords_of_other_dialects_are_names() {
    for word in
        ["top", "pivot", "minus", "sort", "output", "format", "view", "start", "partition", "semi", "qualify"]
    {
        one(&format!(
            "select {word}.a, {word}.{word} {word} from t {word} join u on true where {word}.a = 1"
        ));
        one(&format!("update {word} set {word} = {word} + 1"));
    }
    one("update t set a = 1");
    one("insert into t values (1)");
    assert!(matches!(one("select 1 as top"), Statement::Query(_)));
}

#[test]
fn types_resolve_to_postgresqls_oids_and_typmods() {
    let resolve = |text: &str| parse_type_name(text).unwrap().resolve().unwrap();
    let typmod = |ty: Type, typmod| Type { typmod, ..ty };
    for (text, expected) in [
        ("int", Type::INT4),
        ("double precision", Type::FLOAT8),
        ("character varying(10)", typmod(Type::VARCHAR, 14)),
        ("char", typmod(Type::BPCHAR, 5)),
        ("\"char\"", Type::CHAR),
        ("bit", typmod(Type::BIT, 1)),
        ("bit(8)", typmod(Type::BIT, 8)),
        ("\"bit\"", Type::BIT),
        ("bit varying", Type::VARBIT),
        ("varbit(3)", typmod(Type::VARBIT, 3)),
        ("pg_catalog.int8", Type::INT8),
        ("numeric(12,2)", typmod(Type::NUMERIC, (12 << 16 | 2) + 4)),
        ("numeric(3,-1)", typmod(Type::NUMERIC, (3 << 16 | 0x7ff) + 4)),
        ("timestamp(3) with time zone", typmod(Type::TIMESTAMPTZ, 3)),
        ("time without time zone", Type::TIME),
        ("interval day to second(3)", typmod(Type::INTERVAL, (0x1c08 << 16) | 3)),
        ("int[]", Type::INT4_ARRAY),
        ("_text", Type::TEXT_ARRAY),
        ("varchar(5)[3][]", typmod(Type::VARCHAR_ARRAY, 9)),
        ("float(24)", Type::FLOAT4),
    ] {
        assert_eq!(resolve(text), expected, "{text}");
    }
    assert_eq!(
        parse_type_name("nonsense").unwrap().resolve().unwrap_err().state(),
        SqlState::UNDEFINED_OBJECT
    );
    let cast = parse_expression("x::numeric(5,1)").unwrap();
    let Expr::Cast { data_type, .. } = cast else { panic!() };
    assert_eq!(
        data_type_name(&data_type).unwrap().resolve().unwrap(),
        typmod(Type::NUMERIC, (5 << 16 | 1) + 4)
    );
}

#[test]
fn tables_and_indexes() {
    let Statement::CreateTable(table) = one(
        "create table if not exists s.t (a int primary key, b numeric(5,2) default 1 + 2 not null check (b > 0),
         c int references r (x) on delete restrict, constraint k unique (a, b), foreign key (a) references r,
         check (a <> b)) with (fillfactor = 90)",
    ) else {
        panic!()
    };
    assert_eq!((table.columns.len(), table.constraints.len(), table.options.len()), (3, 3, 1));
    let ColumnConstraintKind::Default(default) = &table.columns[1].constraints[0].kind else { panic!() };
    assert_eq!(default.text, "1 + 2");
    let Statement::CreateIndex(index) = one(
        "create unique index concurrently if not exists i on t using btree (a desc nulls last, lower(b), (c + 1)) where a > 0",
    ) else {
        panic!()
    };
    assert!(index.unique && index.concurrently && index.predicate.is_some());
    assert_eq!((index.elements[0].descending, index.elements[0].nulls_first), (true, Some(false)));
    let Statement::AlterTable(alter) =
        one("alter table only t add primary key (a), add column b int, alter c drop not null")
    else {
        panic!()
    };
    assert_eq!(alter.actions.len(), 3);
    let Statement::CreateSequence(sequence) =
        one("create sequence s start 5 increment by -2 no maxvalue cycle owned by t.a")
    else {
        panic!()
    };
    assert_eq!(sequence.options.len(), 5);
    assert!(matches!(one("create table t as select 1"), Statement::CreateTableAs(_)));
    assert!(
        matches!(one("create table t (a, b) as table u with no data"), Statement::CreateTableAs(t) if !t.with_data)
    );
    let Statement::CreateTableAs(create) =
        one("create temp table t (a) with (fillfactor = 70) on commit drop as execute q (1, 'x') with data")
    else {
        panic!()
    };
    let RowSource::Execute(execute) = &create.source else { panic!() };
    assert_eq!((execute.name.as_str(), execute.args.len(), create.with_data), ("q", 2, true));
}

#[test]
fn statements_without_an_equivalent_are_refused_by_name() {
    for (text, what) in [
        (
            "create constraint trigger x after insert on t from u for each row execute function f()",
            "CREATE CONSTRAINT TRIGGER … FROM",
        ),
        ("create rule r as on insert to t do instead (delete from u; delete from v)", "CREATE RULE"),
        ("create user mapping for r server s", "CREATE USER MAPPING"),
        ("grant usage on foreign server s to r", "GRANT on this kind of object"),
        ("select * from rows from (f(1) as (a int), g(2))", "ROWS FROM"),
    ] {
        check_refused(text, what);
    }
}

#[test]
fn every_utility_statement_has_its_node() {
    for (text, tag) in [
        ("create view v as select 1", "CREATE VIEW"),
        ("create or replace temp view v (a) as (select 1) with local check option", "CREATE VIEW"),
        ("create temp table t (a int) on commit drop", "CREATE TABLE"),
        ("create temp sequence s", "CREATE SEQUENCE"),
        ("create or replace recursive view v (a) as select 1", "CREATE VIEW"),
        ("merge into t using s on true when matched then do nothing", "MERGE"),
        ("merge into t using s on true when not matched then insert default values", "MERGE"),
        ("insert into t (a[1], b[1:2]) overriding user value values (1, '{}')", "INSERT"),
        ("update t set a[1][2] = 3, (b[1], c) = (1, 2) where d[1] = 2", "UPDATE"),
        ("create unlogged table t (a int)", "CREATE TABLE"),
        ("create table t (a int) inherits (u, s.v)", "CREATE TABLE"),
        ("create table t (a int, b int) partition by range (a, (b + 1), lower(c) text_ops)", "CREATE TABLE"),
        ("create table p partition of t default partition by list (a)", "CREATE TABLE"),
        (
            "create table p partition of t (b with options not null, c default 1, check (a > 1)) \
             for values from (minvalue, 1) to (10, maxvalue)",
            "CREATE TABLE",
        ),
        ("create table p partition of t for values with (modulus 4, remainder 1)", "CREATE TABLE"),
        ("alter table t attach partition p for values in (1, null, 'x')", "ALTER TABLE"),
        ("alter table t detach partition p concurrently", "ALTER TABLE"),
        ("alter table t detach partition p finalize", "ALTER TABLE"),
        ("alter table t inherit u", "ALTER TABLE"),
        ("alter table only t no inherit u", "ALTER TABLE"),
        ("alter index i attach partition j", "ALTER INDEX"),
        ("create index on only t (a)", "CREATE INDEX"),
        ("create table t (like u including all, b int)", "CREATE TABLE"),
        ("select a into temp table t from u", "SELECT"),
        ("with c as (select 1) insert into t select * from c", "INSERT"),
        ("truncate table a, only b restart identity cascade", "TRUNCATE TABLE"),
        ("comment on column s.t.a is 'x'", "COMMENT"),
        ("comment on function f(int) is null", "COMMENT"),
        ("grant select, insert on all tables in schema public to public", "GRANT"),
        ("revoke all privileges on schema s from archipel cascade", "REVOKE"),
        ("grant select (a, b), insert on t to r with grant option granted by current_user", "GRANT"),
        ("grant a, b to c with admin option", "GRANT ROLE"),
        ("revoke admin option for a from b cascade", "REVOKE ROLE"),
        ("create user r with password 'x' valid until 'infinity' in role a, b", "CREATE ROLE"),
        ("alter role r nologin connection limit -1", "ALTER ROLE"),
        ("alter user r set search_path to a, b", "ALTER ROLE"),
        ("alter group g add user a, b", "ALTER ROLE"),
        ("drop role if exists a, b", "DROP ROLE"),
        ("reassign owned by a, b to session_user", "REASSIGN OWNED"),
        ("drop owned by a cascade", "DROP OWNED"),
        (
            "alter default privileges for role a in schema s grant select on tables to public",
            "ALTER DEFAULT PRIVILEGES",
        ),
        ("prepare q (int, text) as select $1, $2", "PREPARE"),
        ("execute q (1, 'x')", "EXECUTE"),
        ("deallocate prepare all", "DEALLOCATE ALL"),
        ("declare c insensitive no scroll cursor with hold for select 1", "DECLARE CURSOR"),
        ("fetch backward all from c", "FETCH"),
        ("move 5 in c", "MOVE"),
        ("close all", "CLOSE CURSOR ALL"),
        ("discard temp", "DISCARD TEMP"),
        ("listen x", "LISTEN"),
        ("notify x, 'payload'", "NOTIFY"),
        ("unlisten *", "UNLISTEN"),
        ("lock table t in share row exclusive mode nowait", "LOCK TABLE"),
        ("vacuum (analyze, parallel 2) t (a)", "VACUUM"),
        ("vacuum full verbose", "VACUUM"),
        ("analyze verbose t", "ANALYZE"),
        ("cluster", "CLUSTER"),
        ("cluster verbose t using i", "CLUSTER"),
        ("reindex table concurrently t", "REINDEX"),
        ("reindex (concurrently) table t", "REINDEX"),
        ("insert into t (a) table u", "INSERT"),
        ("checkpoint", "CHECKPOINT"),
        ("base_backup", "BASE_BACKUP"),
        ("alter system set max_connections = 5", "ALTER SYSTEM"),
        ("alter sequence s restart with 7", "ALTER SEQUENCE"),
        ("alter function f(int) rename to g", "ALTER FUNCTION"),
        ("alter index i rename to j", "ALTER INDEX"),
        ("drop procedure if exists p(int), q", "DROP PROCEDURE"),
        ("drop index concurrently i", "DROP INDEX"),
        ("create schema if not exists s authorization archipel", "CREATE SCHEMA"),
        ("create schema s create table t (a int) grant create on schema s to r", "CREATE SCHEMA"),
        ("set constraints all deferred", "SET CONSTRAINTS"),
        ("merge into t using s on t.a = s.a when matched then delete", "MERGE"),
        ("merge into t using r left join s using (a) on t.a = s.a when matched then delete", "MERGE"),
    ] {
        assert_eq!(one(text).tag(), tag, "{text}");
    }
}

#[test]
fn depth_is_bounded_without_exhausting_the_stack() {
    let deep = |open: &str, core: &str, close: &str, n: usize| {
        format!("select {}{core}{}", open.repeat(n), close.repeat(n))
    };
    for text in [
        deep("(", "1", ")", 100_000),
        deep("f(", "1", ")", 5_000),
        deep("not ", "true", "", 50_000),
        deep("- ", "1", "", 50_000),
        deep("array[", "1", "]", 5_000),
        deep("case when true then ", "1", " end", 5_000),
        deep("(select ", "1", ")", 5_000),
        format!("select 1{}", " + 1".repeat(100_000)),
        format!("select 1{}", " union select 1".repeat(50_000)),
        format!("select * from {}t{}", "(".repeat(5_000), ")".repeat(5_000)),
        format!("{}select 1", "explain ".repeat(10_000)),
        format!("select 1::int{}", "[]".repeat(100_000)),
        format!("select {}a", "a.".repeat(400_000)),
        format!("select (a){}", ".a".repeat(400_000)),
    ] {
        let error = parse(&text).expect_err("too deep");
        let state = error.state().as_str().to_string();
        assert!(state == "54001" || state == "42601", "{}: {error:?}", &text[..40]);
    }
    // The grammar would read the rest of the names again behind each.
    let dots = format!("select {}a", "a.".repeat(3_000));
    assert!(super::lexer::tokens::tokenize(&super::Positions::new(&dots)).is_err());
    for text in [
        deep("(", "1", ")", 60),
        format!("select 1{}", " + 1".repeat(1_500)),
        format!("select 1{}", " or a = 2".repeat(900)),
    ] {
        parse(&text).expect("not too deep");
    }
}

#[test]
fn nested_parentheses_in_from_take_no_exponential_time() {
    let text = format!("select * from {}t{}", "(".repeat(40), ")".repeat(40));
    let started = std::time::Instant::now();
    let _ = parse(&text);
    assert!(started.elapsed().as_secs() < 5, "{:?}", started.elapsed());
}

const WORDS: &[&str] = &[
    "select",
    "from",
    "where",
    "insert",
    "into",
    "values",
    "update",
    "set",
    "delete",
    "create",
    "table",
    "function",
    "procedure",
    "index",
    "on",
    "as",
    "(",
    ")",
    "[",
    "]",
    ",",
    ";",
    ".",
    "*",
    "+",
    "-",
    "=",
    "<",
    ">",
    "::",
    "=>",
    ":=",
    "1",
    "1.5",
    "'x'",
    "\"Q\"",
    "$1",
    "$$b$$",
    "a",
    "t",
    "null",
    "not",
    "and",
    "or",
    "in",
    "between",
    "case",
    "when",
    "then",
    "else",
    "end",
    "for",
    "update",
    "share",
    "key",
    "no",
    "of",
    "nowait",
    "group",
    "by",
    "order",
    "limit",
    "offset",
    "union",
    "all",
    "with",
    "recursive",
    "join",
    "left",
    "using",
    "begin",
    "commit",
    "copy",
    "stdin",
    "primary",
    "references",
    "check",
    "default",
    "language",
    "returns",
    "setof",
    "int",
    "text",
    "numeric",
    "interval",
    "alter",
    "add",
    "column",
    "drop",
    "grant",
    "to",
    "explain",
    "analyze",
    "call",
    "do",
    "declare",
    "cursor",
    "fetch",
    "variadic",
    "overriding",
    "both",
    "only",
    "e'\\n'",
    "u&'x'",
    "b'1'",
    "x'f'",
    "--c\n",
    "/*c*/",
    "trim",
    "cast",
    "extract",
    "substring",
    "position",
    "overlay",
    "array",
    "row",
    "exists",
    "any",
    "is",
    "distinct",
    "filter",
    "over",
    "partition",
    "window",
    "lateral",
    "ordinality",
    "returning",
    "conflict",
    "nothing",
    "%",
    "type",
    "#",
    "@",
    "~",
    "?",
    "é",
    "\\",
    "|",
    "||",
    "&&",
    "<->",
    "'",
    "\"",
    "$x$",
    "0x1",
    "1e",
    "..",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    /// No soup of tokens panics; every error has a SQLSTATE and a place inside the text.
    #[test]
    fn token_soup(words in proptest::collection::vec(proptest::sample::select(WORDS), 0..24), glue: bool) {
        let text = words.join(if glue { "" } else { " " });
        let length = text.chars().count() as u32 + 1;
        if let Err(error) = parse(&text) {
            prop_assert!(error.fields().position.is_none_or(|p| (1..=length).contains(&p)), "{text}: {error:?}");
        }
        let _ = parse_expression(&text);
        let _ = parse_type_name(&text);
        let _ = lexemes(&text);
    }

    /// Nor does a statement that begins well.
    #[test]
    fn broken_statements(start in 0_usize..12, words in proptest::collection::vec(proptest::sample::select(WORDS), 0..12)) {
        const STARTS: [&str; 12] = [
            "select", "insert into t", "create table t (", "create function f(", "alter table t", "copy t from", "grant",
            "create index", "explain (", "with x as (", "update t set a =", "declare c cursor for",
        ];
        let _ = parse(&format!("{} {}", STARTS[start], words.join(" ")));
    }

    /// Arbitrary text.
    #[test]
    fn any_text(text in "\\PC{0,40}") {
        let _ = parse(&text);
    }
}
