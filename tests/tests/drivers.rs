//! What users connect with: each driver's own program of `tests/drivers`, in its own language and
//! with pinned versions, against a server of its own, which takes nobody without TLS and a password.
//!
//! What a program expects holds on PostgreSQL 15; `tests/run --long` runs each there too, and the
//! programs that take longer to install. `tests/drivers/run NAME` runs one by hand. The suites that
//! come with drivers are in `driver_suites.rs`.

use std::process::{Command, Stdio};

use archipel_tests::postgres::Postgres;
use archipel_tests::secured::Certificates;
use archipel_tests::server::Server;

/// How long a program may run. Each of its checks is bounded already, by 30 s.
const LIMIT_S: &str = "600";

/// Installs what a driver's program needs; `tests/run` has done so already.
fn prepare(driver: &str) {
    let script = archipel_tests::file("drivers/prepare");
    let output = Command::new(&script)
        .arg(driver)
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .expect("the script can be run");
    assert!(output.status.success(), "{} {driver}: {}", script.display(), output.status);
}

/// Runs a driver's program, which empties schema `public` first; panics with its output unless
/// all its checks pass.
fn run(driver: &str, server: &str, url: &str) {
    let output = Command::new("timeout")
        .args(["-k", "5", LIMIT_S])
        .arg(archipel_tests::file("drivers/run"))
        .arg(driver)
        .env("DATABASE_URL", url)
        .stdin(Stdio::null())
        .output()
        .expect("timeout of coreutils is installed");
    let said = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    let count = said.lines().last().unwrap_or_default();
    println!("{driver} on {server}: {count}");
    let all_passed = count.ends_with(" passed, 0 failed") && !count.starts_with("0 ");
    assert!(
        output.status.success() && all_passed,
        "{driver} on {server}: {}\n{said}\n{errors}",
        output.status
    );
}

fn works(driver: &str) {
    prepare(driver);
    let certificates = Certificates::make();
    if archipel_tests::long() {
        let postgres = Postgres::start_secured(&certificates);
        run(driver, "PostgreSQL", &certificates.url(postgres.port()));
    }
    let server = Server::start_secured(&certificates);
    run(driver, "Archipel", &certificates.url(server.port()));
}

/// For drivers that take long to install or to run.
fn works_at_length(driver: &str) {
    if archipel_tests::long() {
        works(driver);
    } else {
        archipel_tests::skipped("belongs to tests/run --long");
    }
}

#[test]
fn psql_works() {
    works("psql");
}

#[test]
fn psycopg_works() {
    works("psycopg");
}

#[test]
fn psycopg2_works() {
    works("psycopg2");
}

#[test]
fn asyncpg_works() {
    works("asyncpg");
}

#[test]
fn sqlalchemy_works() {
    works("sqlalchemy");
}

#[test]
fn node_postgres_works() {
    works("node-postgres");
}

#[test]
fn pgx_works() {
    works("pgx");
}

#[test]
fn lib_pq_and_gorm_work() {
    works("pq");
}

#[test]
fn sequel_works() {
    works("sequel");
}

#[test]
fn php_works() {
    works("php");
}

#[test]
fn pgbouncer_works_in_front() {
    works("pgbouncer");
}

#[test]
fn jdbc_works() {
    works("jdbc");
}

#[test]
fn tokio_postgres_works() {
    works("tokio-postgres");
}

#[test]
fn django_and_wagtail_work() {
    works_at_length("django");
}

#[test]
fn hibernate_works() {
    works_at_length("hibernate");
}

#[test]
fn postgres_js_works() {
    works_at_length("postgres.js");
}

#[test]
fn typeorm_works() {
    works_at_length("typeorm");
}

#[test]
fn knex_works() {
    works_at_length("knex");
}

#[test]
fn drizzle_works() {
    works_at_length("drizzle");
}

#[test]
fn active_record_works() {
    works_at_length("activerecord");
}

#[test]
fn hikari_flyway_liquibase_and_jooq_work() {
    works_at_length("java-tools");
}

#[test]
fn pgcli_works() {
    works_at_length("pgcli");
}

#[test]
fn sqlx_works() {
    works_at_length("sqlx");
}

#[test]
fn diesel_works() {
    works_at_length("diesel");
}

#[test]
fn sea_orm_works() {
    works_at_length("sea-orm");
}
