//! CREATE, ALTER and DROP DATABASE, settings of databases and of roles in them.

use super::*;

fn option(name: &str, value: OptionValue, position: u32) -> DatabaseOption {
    DatabaseOption { name: name.to_owned(), value, position }
}

fn text(value: &str) -> OptionValue {
    OptionValue::Text(value.to_owned())
}

#[track_caller]
fn created(statement: &str) -> Vec<DatabaseOption> {
    match one(statement) {
        Statement::CreateDatabase(create) => create.options,
        other => panic!("{statement}: {other:?}"),
    }
}

#[track_caller]
fn altered(statement: &str) -> DatabaseAction {
    match one(statement) {
        Statement::AlterDatabase(alter) => alter.action,
        other => panic!("{statement}: {other:?}"),
    }
}

#[test]
fn options_stand_with_and_without_equals_signs() {
    assert!(created("create database d").is_empty());
    assert!(created("create database d with").is_empty());
    assert_eq!(
        created(
            "create database \"D\" with owner = r template template0 encoding 'UTF8' connection limit -1"
        ),
        [
            option("owner", text("r"), 26),
            option("template", text("template0"), 36),
            option("encoding", text("UTF8"), 55),
            option("connection_limit", OptionValue::Integer(-1), 71),
        ]
    );
    assert_eq!(
        created(
            "create database d Is_Template = TRUE allow_connections off \"Foo\" \"Bar\" connection_limit +3"
        ),
        [
            option("is_template", text("true"), 19),
            option("allow_connections", text("off"), 38),
            option("Foo", text("Bar"), 60),
            option("connection_limit", OptionValue::Integer(3), 72),
        ]
    );
    assert_eq!(
        created("create database d oid = 4294967295 tablespace default location 'x' strategy 1.5"),
        [
            option("oid", OptionValue::Number("4294967295".into()), 19),
            option("tablespace", OptionValue::Default, 36),
            option("location", text("x"), 55),
            option("strategy", OptionValue::Number("1.5".into()), 68),
        ]
    );
}

#[test]
fn every_option_of_a_dump_is_read() {
    let names: Vec<String> = created(
        "create database d with template = template0 encoding = 'UTF8' locale_provider = libc locale = 'C' \
         lc_collate 'C' lc_ctype 'C' icu_locale 'en' collation_version = '1' strategy = wal_log oid = 16400",
    )
    .into_iter()
    .map(|option| option.name)
    .collect();
    assert_eq!(
        names,
        [
            "template",
            "encoding",
            "locale_provider",
            "locale",
            "lc_collate",
            "lc_ctype",
            "icu_locale",
            "collation_version",
            "strategy",
            "oid"
        ]
    );
}

#[test]
fn words_of_the_grammar_are_no_options() {
    check_syntax_error("create database", "", 16);
    check_syntax_error("create database d schema 'a'", "schema", 19);
    check_syntax_error("create database d connection 3", "3", 30);
    check_syntax_error("create database d owner", "", 24);
    check_syntax_error("create database d owner all", "all", 25);
    check_syntax_error("create database d owner current_user", "current_user", 25);
    check_syntax_error("create database d owner = = r", "=", 27);
    check_syntax_error("create database d owner = r, template = t", ",", 28);
    check_syntax_error("create database d owner r 5", "5", 27);
    check_syntax_error("create database d with with", "with", 24);
    check_syntax_error("create database a.b", ".", 18);
    check_syntax_error("create database 'a'", "'a'", 17);
    check_syntax_error("create database user", "user", 17);
    check_syntax_error("create or replace database d", "database", 19);
    check_syntax_error("create database if not exists d", "not", 20);
    check_syntax_error("create schema s create database d", "database", 24);
}

#[test]
fn alterations_of_databases() {
    assert_eq!(altered("alter database d"), DatabaseAction::Options(Vec::new()));
    assert_eq!(
        altered("alter database d with is_template 1"),
        DatabaseAction::Options(vec![option("is_template", OptionValue::Integer(1), 23)])
    );
    assert_eq!(altered("alter database d rename to e"), DatabaseAction::RenameTo("e".into()));
    assert_eq!(altered("alter database d owner to current_user"), DatabaseAction::OwnerTo(RoleName::Current));
    assert_eq!(
        altered("alter database d owner r"),
        DatabaseAction::Options(vec![option("owner", text("r"), 18)])
    );
    assert_eq!(altered("alter database d set tablespace t"), DatabaseAction::SetTablespace("t".into()));
    assert_eq!(
        altered("alter database d refresh collation version"),
        DatabaseAction::RefreshCollationVersion
    );
    check_syntax_error("alter database d rename e", "e", 25);
    check_syntax_error("alter database d refresh version", "version", 26);
    check_syntax_error("alter database d refresh collation", "", 35);
    check_syntax_error("alter database d set tablespace t connection limit 1", "connection", 35);
    check_syntax_error("alter database user reset all", "user", 16);
}

#[test]
fn settings_of_databases_and_of_roles_in_them() {
    let set =
        |name: &str, value: SetValue| SettingChange::Set(Set { local: false, name: name.into(), value });
    let list = |value: &str| SetValue::List(vec![value.to_owned()]);
    for (said, change) in [
        ("set work_mem to '5MB'", set("work_mem", list("5MB"))),
        ("set work_mem from current", set("work_mem", SetValue::Current)),
        ("set tablespace to x", set("tablespace", list("x"))),
        ("set search_path to default", set("search_path", SetValue::Default)),
        ("set time zone 'UTC'", set("timezone", list("UTC"))),
        ("reset work_mem", SettingChange::Reset("work_mem".into())),
        ("reset time zone", SettingChange::Reset("timezone".into())),
        ("reset all", SettingChange::ResetAll),
    ] {
        assert_eq!(altered(&format!("alter database d {said}")), DatabaseAction::Setting(change.clone()));
        for (who, role) in [("role r", Some(RoleName::Name("r".into()))), ("user all", None)] {
            let expected = AlterRoleSetting { role, database: Some("d".into()), change: change.clone() };
            let written = format!("alter {who} in database d {said}");
            assert_eq!(one(&written), Statement::AlterRoleSetting(expected), "{written}");
        }
    }
    let expected = AlterRoleSetting { role: None, database: None, change: SettingChange::ResetAll };
    assert_eq!(one("alter role all reset all"), Statement::AlterRoleSetting(expected));
    assert!(matches!(one("alter role \"all\" reset all"), Statement::AlterRole(_)));
    check_syntax_error("alter user r in database d", "", 27);
    check_syntax_error("alter user r in database d login", "login", 28);
    check_syntax_error("alter role r in login", "login", 17);
    check_syntax_error("alter role all login", "login", 16);
    check_syntax_error("alter role all rename to x", "rename", 16);
    check_syntax_error("alter group r in database d reset all", "in", 15);
    check_syntax_error("alter database d reset a, b", ",", 25);
    check_syntax_error("alter database d set local a to 5", "a", 28);
}

#[test]
fn databases_are_dropped_one_by_one() {
    let drop = |if_exists: bool, force: bool| {
        Statement::DropDatabase(DropDatabase { name: "d".into(), if_exists, force })
    };
    assert_eq!(one("drop database d"), drop(false, false));
    assert_eq!(one("drop database if exists d"), drop(true, false));
    assert_eq!(one("drop database if exists d with (force)"), drop(true, true));
    assert_eq!(one("drop database d (force, force)"), drop(false, true));
    check_syntax_error("drop database d, e", ",", 16);
    check_syntax_error("drop database d with force", "force", 22);
    check_syntax_error("drop database d with ()", ")", 23);
    check_syntax_error("drop database d with (slowly)", "slowly", 23);
    check_syntax_error("drop database d with (force true)", "true", 29);
    check_syntax_error("drop database d cascade", "cascade", 17);
    check_syntax_error("drop database if not exists d", "not", 18);
}

#[test]
fn what_no_block_may_hold_says_so() {
    for (text, command) in [
        ("create database d", Some("CREATE DATABASE")),
        ("drop database if exists d", Some("DROP DATABASE")),
        ("alter database d set tablespace t", Some("ALTER DATABASE SET TABLESPACE")),
        ("alter database d tablespace = t", Some("ALTER DATABASE SET TABLESPACE")),
        // Another error comes first.
        ("alter database d tablespace t connection limit 3", None),
        ("alter database d connection limit 3", None),
        ("alter database d rename to e", None),
        ("alter database d set work_mem to 3", None),
        ("alter role all in database d reset all", None),
    ] {
        assert_eq!(one(text).refused_in_blocks(), command, "{text}");
    }
    assert_eq!(one("alter database d reset all").tag(), "ALTER DATABASE");
    assert_eq!(one("alter user all reset all").tag(), "ALTER ROLE");
}
