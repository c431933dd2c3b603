//! Directories of older formats and catalogs: backups that the last version of each has made are restored,
//! looked at, served, changed, and served again after a crash. They lie in `tests/directories`.

use std::path::{Path, PathBuf};

use archipel_tests::server::Server;
use tokio_postgres::{Client, SimpleQueryMessage};

/// Values of `char(n)` and `bpchar` as they were stored before they had their blanks, in keys, indexes,
/// arrays, rows and partitions, some of them in the log alone: statements and what they answer, rows by
/// semicolons and columns by slashes, or the code of their error.
const OF_FORMAT_2: &[(&str, &str)] = &[
    ("SELECT a, octet_length(a), b || '|' FROM c ORDER BY a", "     /5/|;a    /5/y|;ab   /5/x|;late /5/z|"),
    ("INSERT INTO c VALUES ('ab  ', 'x', 5)", "23505"),
    ("SELECT n FROM c WHERE a = 'late   ' OR b = 'y ' ORDER BY n", "2;4"),
    ("UPDATE c SET b = 'x  ' WHERE a = 'ab ' RETURNING octet_length(b)", "3"),
    ("SELECT n FROM k WHERE a = 'three  ' OR b = 'p  ' ORDER BY n", "1;3"),
    ("INSERT INTO k VALUES ('two ', 'new', 4)", "23505"),
    ("INSERT INTO k VALUES ('four  ', 'q  ', 4)", "23505"),
    ("INSERT INTO k VALUES ('four  ', 's  ', 4)", ""),
    ("INSERT INTO k VALUES ('four', 't', 5)", "23505"),
    ("SELECT n FROM k WHERE a IN ('four', 'one   ') AND b > 'o' ORDER BY n", "1;4"),
    ("INSERT INTO k VALUES ('two  ', 'q', 9) ON CONFLICT (a) DO UPDATE SET n = excluded.n RETURNING n", "9"),
    (
        "SELECT id, l, m, c, octet_length(l[1]), octet_length((c).x) FROM v ORDER BY id",
        "1/{\"a  \",\"bc \",NULL}/{q}/(\"a   \",b)/3/4;2/{\"x  \"}/{r,s}/(\"aa  \",)/3/4",
    ),
    ("SELECT (c).x || '|', concat((c).x, '|') FROM v WHERE (c).x LIKE 'a   '", "a|/a   |"),
    ("SELECT id FROM v WHERE l = array['a', 'bc ', NULL]::char(3)[]", "1"),
    ("SELECT id FROM v WHERE m = array['r ', 's']::bpchar[] AND c = ROW('aa  ', NULL)::pair", "2"),
    ("INSERT INTO v VALUES (3, '{\"a \",bc,NULL}', NULL, NULL)", "23505"),
    ("INSERT INTO v VALUES (3, NULL, '{\"q \"}', ROW('a ', 'b '))", "23505"),
    ("INSERT INTO v VALUES (3, '{b}', '{\"q \"}', ROW('a', 'c'))", ""),
    ("SELECT id FROM v WHERE m = array['q']::bpchar[] ORDER BY id", "1;3"),
    (
        "SELECT tableoid::regclass, n FROM parts WHERE a = 'a  ' OR a = 'z' ORDER BY n",
        "parts_a/1;parts_rest/2",
    ),
    ("INSERT INTO f VALUES ('late ', 'two  ')", ""),
    ("INSERT INTO f VALUES ('none', NULL)", "23503"),
    ("DELETE FROM c WHERE a = 'late'", "23503"),
    ("SELECT c.n, k.n FROM f JOIN c ON c.a = f.x JOIN k ON k.a = f.y ORDER BY c.n", "1/1;4/9"),
    ("SELECT count(*) FROM c JOIN v ON (v.c).x = c.a", "2"),
    ("SELECT octet_length(e), octet_length(s), octet_length(t) FROM w WHERE s = 'ab'", "5/7/2"),
    ("SELECT octet_length((c).x), octet_length((c).y) FROM v ORDER BY id", "4/1;4/NULL;4/1"),
];

/// What is there after these, whichever version has written it.
const AFTER_FORMAT_2: &[(&str, &str)] = &[
    ("SELECT a, b || '|', octet_length(b) FROM c WHERE a = 'ab'", "ab   /x|/3"),
    ("SELECT n FROM k WHERE a = 'four ' OR a = 'three' ORDER BY n", "3;4"),
    ("SELECT count(*), count(DISTINCT a) FROM k", "4/4"),
    ("SELECT id, (c).x, (c).y FROM v WHERE l = array['b  ']::bpchar[]", "3/a   /c"),
    ("SELECT n FROM parts WHERE a = 'z  '", "2"),
    ("SELECT x FROM f WHERE y = 'two'", "late "),
];

/// What stands in the definitions of a catalog whose texts said names, once everything has another: the first
/// part of `tests/slt/ids_in_definitions.slt` has made it.
const OF_CATALOG_1: &[(&str, &str)] = &[
    ("INSERT INTO ids.t DEFAULT VALUES", ""),
    ("ALTER FUNCTION ids.twice(integer) RENAME TO doubled", ""),
    ("ALTER FUNCTION ids.label_of SET SCHEMA other", ""),
    ("ALTER TYPE ids.mood RENAME TO feeling", ""),
    ("ALTER TYPE ids.feeling RENAME VALUE 'sad' TO 'blue'", ""),
    ("ALTER TYPE ids.feeling RENAME VALUE 'so so' TO 'middling'", ""),
    ("ALTER TYPE ids.pair RENAME TO couple", ""),
    ("ALTER SEQUENCE ids.numbers RENAME TO counted", ""),
    ("ALTER FUNCTION ids.full_name RENAME TO whole_name", ""),
    ("ALTER SCHEMA ids RENAME TO ours", ""),
];

const AFTER_CATALOG_1: &[(&str, &str)] = &[
    ("INSERT INTO ours.t (n, m) VALUES (21, 'blue') RETURNING note, g", "seen/43"),
    ("INSERT INTO ours.t (n) VALUES (80)", "23514"),
    (
        "INSERT INTO ours.t (n) VALUES (1) RETURNING m, ms[1:2], p, k, ty, fn",
        "middling/{blue,middling}/(1,one)/ours.counted/ours.feeling/other.label_of",
    ),
    ("SELECT * FROM ours.v ORDER BY id LIMIT 1", "7/16/is middling/blue/{blue,middling}/9"),
    ("SELECT * FROM ours.inner_names ORDER BY more LIMIT 1", "8/blue"),
    ("SELECT one FROM ours.of_rows", "10"),
    ("SELECT ours.named(1, 'middling')", "is middling2"),
    ("SELECT * FROM ours.cards", "Ada Lovelace/Ada Lovelace"),
    (
        "SELECT pg_get_expr(adbin, adrelid) FROM pg_attrdef WHERE adrelid = 'ours.t'::regclass AND adnum = 2",
        "ours.doubled(4)",
    ),
    ("SELECT pg_get_partkeydef('ours.parts'::regclass)", "RANGE (ours.doubled(n))"),
    ("DROP SEQUENCE ours.counted", "2BP01"),
];

/// What a catalog says that kept default privileges in roles, and the rest of this with what is a database's own.
const OF_CATALOG_2: &[(&str, &str)] = &[
    (
        "SELECT datname, datdba::regrole, datacl, datallowconn, datistemplate, datconnlimit FROM pg_database
          WHERE oid = 5",
        "archipel/archipel/{=c/archipel,archipel=CTc/archipel,team=C/archipel}/t/f/-1",
    ),
    (
        "SELECT defaclrole::regrole, defaclnamespace::regnamespace, defaclobjtype, defaclacl
           FROM pg_default_acl ORDER BY oid",
        "alice/s/r/{bob=r/alice};alice/-/f/{alice=X/alice};archipel/-/S/{archipel=rwU/archipel,team=U/archipel}",
    ),
    (
        "SELECT shobj_description('alice'::regrole, 'pg_authid'), shobj_description(5, 'pg_database'),
                obj_description('s.t'::regclass)",
        "first of all/all of it/a table",
    ),
    ("SELECT description FROM pg_description WHERE objoid = 's.t'::regclass", "a table"),
    (
        "SELECT count(*) FROM pg_description WHERE description IN ('first of all', 'looks on', 'all of it')",
        "0",
    ),
    (
        "SELECT objoid, classoid::regclass, description FROM pg_shdescription ORDER BY description LIMIT 1",
        "5/pg_database/all of it",
    ),
    ("SELECT rolconfig FROM pg_roles WHERE rolname = 'alice'", "{\"search_path=s, public\"}"),
    ("SELECT admin_option FROM pg_auth_members WHERE member = 'alice'::regrole", "t"),
];

/// The databases that a directory of format 4 has besides the only one of before.
const DATABASES_OF_FORMAT_4: &[(&str, &str)] = &[
    ("SELECT datname, oid FROM pg_database ORDER BY oid", "template1/1;template0/4;archipel/5;postgres/6"),
    ("SELECT datacl FROM pg_database WHERE datname = 'template1'", "{=c/archipel,archipel=CTc/archipel}"),
    ("SELECT current_database()", "archipel"),
];

/// The same, changed.
const CHANGES_OF_CATALOG_2: &[(&str, &str)] = &[
    ("ALTER ROLE alice CREATEROLE", ""),
    ("COMMENT ON ROLE pg_monitor IS NULL", ""),
    ("COMMENT ON DATABASE archipel IS 'all'", ""),
    ("ALTER DEFAULT PRIVILEGES FOR ROLE alice IN SCHEMA s REVOKE SELECT ON TABLES FROM bob", ""),
    ("ALTER DEFAULT PRIVILEGES FOR ROLE alice IN SCHEMA s GRANT INSERT ON TABLES TO bob", ""),
    ("REVOKE CREATE ON DATABASE archipel FROM team", ""),
    ("DROP ROLE bob", "2BP01"),
    ("DROP ROLE team", "2BP01"),
    ("ALTER DEFAULT PRIVILEGES REVOKE USAGE ON SEQUENCES FROM team", ""),
    ("DROP ROLE team", ""),
];

const AFTER_CATALOG_2: &[(&str, &str)] = &[
    ("SELECT datacl FROM pg_database WHERE oid = 5", "{=c/archipel,archipel=CTc/archipel}"),
    (
        "SELECT defaclrole::regrole, defaclnamespace::regnamespace, defaclobjtype, defaclacl
           FROM pg_default_acl ORDER BY defaclobjtype",
        "alice/-/f/{alice=X/alice};alice/s/r/{bob=a/alice}",
    ),
    ("SELECT description FROM pg_shdescription WHERE objoid NOT IN (1, 4, 6) ORDER BY 1", "all;first of all"),
    ("SELECT count(*) FROM pg_auth_members WHERE member = 'alice'::regrole", "0"),
    ("SELECT rolcreaterole FROM pg_roles WHERE rolname = 'alice'", "t"),
];

/// What a log says that knows no transactions, behind a checkpoint that has less: rows that were changed, grew,
/// went, were put again in one transaction and in several; a table that was emptied, and others that came and went.
const OF_FORMAT_4: &[(&str, &str)] = &[
    ("SELECT count(*), sum(id), sum(n) FROM t", "48/1245/3245"),
    (
        "SELECT id, v, n FROM t WHERE id BETWEEN 10 AND 17 ORDER BY id",
        "10/row 10/110;11/longer than before 11/11;12/again/12;13/in one/13;15/twice/1015;17/row 17/17",
    ),
    ("SELECT id FROM t WHERE n BETWEEN 100 AND 103 ORDER BY n", "1;2;3"),
    ("SELECT id, v FROM emptied", "1/new"),
    ("SELECT * FROM late ORDER BY id", "1/one/7;2/two/7"),
    ("SELECT count(*) FROM gone", "42P01"),
    ("SELECT code, price FROM item ORDER BY code", "1/10;2/21;3/30;4/40"),
    ("SELECT last_value >= 4 FROM s", "t"),
];

/// The same keys again, in the log that comes behind.
const CHANGES_OF_FORMAT_4: &[(&str, &str)] = &[
    ("UPDATE t SET n = n + 1 WHERE id <= 2", ""),
    ("INSERT INTO t VALUES (14, 'new', 14), (16, 'new', 16)", ""),
    ("BEGIN; DELETE FROM t WHERE id = 13; INSERT INTO t VALUES (13, 'once more', 13); COMMIT", ""),
    ("DELETE FROM t WHERE id BETWEEN 40 AND 50", ""),
    ("TRUNCATE late", ""),
    ("INSERT INTO late VALUES (2, 'again', 8)", ""),
    ("UPDATE item SET price = 31 WHERE code = 3", ""),
    ("SELECT nextval('s') > 4", "t"),
];

const AFTER_FORMAT_4: &[(&str, &str)] = &[
    ("SELECT count(*), sum(id) FROM t", "39/780"),
    (
        "SELECT id, v, n FROM t WHERE id <= 2 OR id BETWEEN 12 AND 16 ORDER BY id",
        "1/row 1/102;2/row 2/103;12/again/12;13/once more/13;14/new/14;15/twice/1015;16/new/16",
    ),
    ("SELECT id FROM t WHERE n BETWEEN 100 AND 103 ORDER BY n, id", "1;2;3"),
    ("SELECT * FROM late", "2/again/8"),
    ("SELECT id, v FROM emptied", "1/new"),
    ("SELECT code, price FROM item ORDER BY code", "1/10;2/21;3/31;4/40"),
    ("SELECT nextval('s') > 5", "t"),
];

/// What a directory says whose log knows no parts, behind a checkpoint that has less.
const OF_FORMAT_5: &[(&str, &str)] = &[
    ("SELECT count(*), sum(id), sum(n) FROM t", "51/1330/1830"),
    (
        "SELECT id, v, n FROM t WHERE id IN (1, 7, 8, 50, 55) ORDER BY id",
        "1/row 1/101;7/longer than before 7/7;8/in one/8;50/row 50/50;55/again/55",
    ),
    ("SELECT id FROM t WHERE n BETWEEN 100 AND 103 ORDER BY n", "1;2;3"),
    ("SELECT count(*), sum(id), sum(length(v)) FROM late", "190/18145/19462"),
    ("SELECT last_value >= 3 FROM s", "t"),
];

/// The same keys in a transaction that has parts, and one behind it.
const CHANGES_OF_FORMAT_5: &[(&str, &str)] = &[
    (
        "BEGIN; UPDATE t SET n = n + 1000; DELETE FROM late; INSERT INTO late
         SELECT i, repeat('y', 1000) || i FROM generate_series(1, 4000) i; DELETE FROM t WHERE id <= 3; COMMIT",
        "",
    ),
    ("UPDATE late SET v = 'short' WHERE id = 4000", ""),
    ("SELECT nextval('s') > 3", "t"),
];

const AFTER_FORMAT_5: &[(&str, &str)] = &[
    ("SELECT count(*), sum(id), sum(n) FROM t", "48/1324/49524"),
    ("SELECT count(*), sum(id), sum(length(v)) FROM late", "4000/8002000/4013894"),
    ("SELECT id, v FROM late WHERE id IN (4000, 4001)", "4000/short"),
    ("SELECT id FROM t WHERE n BETWEEN 1100 AND 1106 ORDER BY n", "4;5"),
    ("SELECT nextval('s') > 4", "t"),
];

async fn answer(client: &Client, statement: &str) -> String {
    let messages = match client.simple_query(statement).await {
        Ok(messages) => messages,
        Err(error) => {
            return error.code().map_or_else(|| error.to_string(), |code| code.code().to_owned());
        }
    };
    let rows = messages.iter().filter_map(|message| match message {
        SimpleQueryMessage::Row(row) => {
            let values: Vec<&str> = (0..row.len()).map(|place| row.get(place).unwrap_or("NULL")).collect();
            Some(values.join("/"))
        }
        _ => None,
    });
    rows.collect::<Vec<String>>().join(";")
}

fn ask(server: &Server, statements: &[(&str, &str)]) {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime can be made");
    runtime.block_on(async {
        let client = server.connect().await;
        for (statement, expected) in statements {
            assert_eq!(answer(&client, statement).await, *expected, "{statement}");
        }
    });
}

fn archipel(arguments: &[&str]) -> String {
    let output = Server::archipel(arguments);
    let told =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "archipel {arguments:?}:\n{told}");
    told
}

fn text(path: &Path) -> &str {
    path.to_str().expect("paths are UTF-8")
}

#[test]
fn a_directory_of_format_2_is_brought_up_to_date() {
    let folder = tempfile::tempdir().expect("a temporary directory can be made");
    let data = folder.path().join("data");
    let backup = Path::new(env!("CARGO_MANIFEST_DIR")).join("directories/format_2.tar");
    archipel(&["restore", "--from", text(&backup), "--data-dir", text(&data)]);
    let format = || std::fs::read_to_string(data.join("FORMAT")).expect("readable");
    assert!(archipel(&["check", "--data-dir", text(&data)]).contains("table public.k: 3 rows"));
    assert_eq!(format(), "2\n", "a look changes nothing");
    let mut server = Server::start(&[]);
    server.kill();
    server.move_to(&data);
    server.restart();
    assert_ne!(format(), "2\n", "what is written from here on is not for older versions");
    ask(&server, OF_FORMAT_2);
    server.kill();
    server.restart();
    ask(&server, AFTER_FORMAT_2);
    ask(&server, &[("CHECKPOINT", "")]);
    server.kill();
    server.restart();
    ask(&server, AFTER_FORMAT_2);
    server.stop();
    archipel(&["check", "--data-dir", text(&data)]);
}

#[test]
fn a_catalog_of_names_gets_ids() {
    let folder = tempfile::tempdir().expect("a temporary directory can be made");
    let data = folder.path().join("data");
    let backup = Path::new(env!("CARGO_MANIFEST_DIR")).join("directories/catalog_1.tar");
    archipel(&["restore", "--from", text(&backup), "--data-dir", text(&data)]);
    let mut server = Server::start(&[]);
    server.kill();
    server.move_to(&data);
    server.restart();
    ask(&server, OF_CATALOG_1);
    ask(&server, AFTER_CATALOG_1);
    server.kill();
    server.restart();
    ask(&server, AFTER_CATALOG_1);
    server.stop();
    archipel(&["check", "--data-dir", text(&data)]);
}

#[test]
fn what_all_databases_share_gets_rows_of_its_own() {
    let folder = tempfile::tempdir().expect("a temporary directory can be made");
    let data = folder.path().join("data");
    let backup = Path::new(env!("CARGO_MANIFEST_DIR")).join("directories/catalog_2.tar");
    archipel(&["restore", "--from", text(&backup), "--data-dir", text(&data)]);
    let format = || std::fs::read_to_string(data.join("FORMAT")).expect("readable");
    let looked = archipel(&["check", "--data-dir", text(&data)]);
    assert!(looked.contains("database archipel: ") && !looked.contains("database postgres: "), "{looked}");
    assert_eq!(format(), "3\n", "a look changes nothing");
    let mut server = Server::start(&[]);
    server.kill();
    server.move_to(&data);
    server.restart();
    assert_eq!(format(), "6\n", "what is written from here on is not for older versions");
    ask(&server, OF_CATALOG_2);
    ask(&server, DATABASES_OF_FORMAT_4);
    server.kill();
    let looked = archipel(&["check", "--data-dir", text(&data)]);
    assert!(looked.contains("database postgres: 0 tables"), "{looked}");
    server.restart();
    ask(&server, OF_CATALOG_2);
    ask(&server, DATABASES_OF_FORMAT_4);
    ask(&server, CHANGES_OF_CATALOG_2);
    ask(&server, AFTER_CATALOG_2);
    server.kill();
    server.restart();
    ask(&server, AFTER_CATALOG_2);
    server.stop();
    archipel(&["check", "--data-dir", text(&data)]);
}

#[test]
fn an_upgrade_that_was_cut_short_goes_on() {
    let folder = tempfile::tempdir().expect("a temporary directory can be made");
    let data = folder.path().join("data");
    let backup = Path::new(env!("CARGO_MANIFEST_DIR")).join("directories/catalog_2.tar");
    archipel(&["restore", "--from", text(&backup), "--data-dir", text(&data)]);
    // The mark is written before the rows are.
    std::fs::write(data.join("FORMAT"), "4\n").expect("writable");
    let looked = archipel(&["check", "--data-dir", text(&data)]);
    assert!(looked.contains("database archipel: ") && !looked.contains("database postgres: "), "{looked}");
    let mut server = Server::start(&[]);
    server.kill();
    server.move_to(&data);
    // Killed as early as may be, and started again.
    for patience in [20, 60, 120, 200] {
        let mut child = server.command(archipel_tests::port::free()).spawn().expect("the binary can be run");
        std::thread::sleep(std::time::Duration::from_millis(patience));
        child.kill().expect("a child can be killed");
        child.wait().expect("a killed child ends");
        archipel(&["check", "--data-dir", text(&data)]);
    }
    server.restart();
    ask(&server, OF_CATALOG_2);
    ask(&server, DATABASES_OF_FORMAT_4);
    server.stop();
    archipel(&["check", "--data-dir", text(&data)]);
}

/// The mark of a directory's format.
fn format_of(data: &Path) -> String {
    std::fs::read_to_string(data.join("FORMAT")).expect("readable")
}

/// A server on a directory of an earlier format, kept as test data, after twenty starts that were each killed a
/// little later than the one before. Whatever `archipel check` is to tell of it, it tells after each of them.
fn killed_at_each_moment_of_its_first_start(format: u32, told: &[&str]) -> (Server, TestData) {
    let folder = tempfile::tempdir().expect("a temporary directory can be made");
    let data = TestData { path: folder.path().join("data"), _folder: folder };
    let backup = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("directories/format_{format}.tar"));
    archipel(&["restore", "--from", text(&backup), "--data-dir", text(&data)]);
    let check = || {
        let looked = archipel(&["check", "--data-dir", text(&data)]);
        assert!(told.iter().all(|told| looked.contains(told)), "{looked}");
    };
    check();
    assert_eq!(format_of(&data), format!("{format}\n"), "a look changes nothing");
    let mut server = Server::start(&[]);
    server.kill();
    server.move_to(&data);
    for moment in 1..=20 {
        let mut child = server.command(archipel_tests::port::free()).spawn().expect("the binary can be run");
        std::thread::sleep(std::time::Duration::from_millis(moment * 12));
        child.kill().expect("a child can be killed");
        child.wait().expect("a killed child ends");
        check();
    }
    server.restart();
    (server, data)
}

/// A data directory that goes when it is dropped.
struct TestData {
    path: PathBuf,
    _folder: tempfile::TempDir,
}

impl std::ops::Deref for TestData {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.path
    }
}

/// Killed wherever a start may be: before the directory's mark, behind it, before the engine's, behind it.
#[test]
fn a_log_of_before_transactions_is_read_and_goes_on_with_them() {
    let (mut server, data) =
        killed_at_each_moment_of_its_first_start(4, &["table public.t: 48 rows", "index t_n: 48 entries"]);
    assert_eq!(format_of(&data), "6\n", "older versions know no transactions");
    ask(&server, OF_FORMAT_4);
    ask(&server, CHANGES_OF_FORMAT_4);
    server.kill();
    // The log has both formats now.
    archipel(&["check", "--data-dir", text(&data)]);
    assert!(archipel(&["reset-log", "--data-dir", text(&data)]).contains("the log is whole"));
    server.restart();
    ask(&server, AFTER_FORMAT_4);
    ask(&server, &[("CHECKPOINT", "")]);
    server.kill();
    server.restart();
    ask(&server, AFTER_FORMAT_4);
    server.stop();
    archipel(&["check", "--data-dir", text(&data)]);
}

/// Killed wherever a start may be: the family of parts is made behind the directory's mark.
#[test]
fn a_directory_of_before_parts_gets_their_family_and_goes_on_with_them() {
    let (mut server, data) = killed_at_each_moment_of_its_first_start(
        5,
        &["table public.t: 51 rows", "table public.late: 190 rows"],
    );
    assert_eq!(format_of(&data), "6\n", "older versions know no parts");
    ask(&server, OF_FORMAT_5);
    ask(&server, CHANGES_OF_FORMAT_5);
    server.kill();
    let looked = archipel(&["check", "--data-dir", text(&data)]);
    assert!(looked.contains("parts of large transactions"), "{looked}");
    assert!(archipel(&["reset-log", "--data-dir", text(&data)]).contains("the log is whole"));
    server.restart();
    ask(&server, AFTER_FORMAT_5);
    ask(&server, &[("CHECKPOINT", "")]);
    server.kill();
    let looked = archipel(&["check", "--data-dir", text(&data)]);
    assert!(!looked.contains("parts of large transactions"), "{looked}");
    server.restart();
    ask(&server, AFTER_FORMAT_5);
    server.stop();
    archipel(&["check", "--data-dir", text(&data)]);
}
