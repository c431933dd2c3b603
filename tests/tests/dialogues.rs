//! Every file of `tests/dialogues` with PostgreSQL 15 and with Archipel: both must answer what
//! the file says. `tests/run --record` writes the answers anew from PostgreSQL.

use archipel_tests::dialogue::hold;
use archipel_tests::postgres::Postgres;
use archipel_tests::server::{Server, connect};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_meet_as_on_postgresql() {
    let (postgres, server) = (Postgres::start(), Server::start(&[]));
    let recording = std::env::var_os("ARCHIPEL_TEST_RECORD").is_some_and(|value| value == "1");
    let mut files: Vec<_> = std::fs::read_dir(archipel_tests::file("dialogues"))
        .expect("the dialogues are there")
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "txt"))
        .collect();
    files.sort();
    assert!(!files.is_empty(), "no dialogue found");
    let mut differences = Vec::new();
    for path in files {
        let script = std::fs::read_to_string(&path).expect("a dialogue can be read");
        let servers = [("PostgreSQL", postgres.url()), ("Archipel", server.url())];
        for (name, url) in servers.iter().take(if recording { 1 } else { 2 }) {
            connect(url)
                .await
                .batch_execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public")
                .await
                .expect("the schema can be emptied");
            let held = hold(url, &script).await;
            if recording {
                std::fs::write(&path, held).expect("a dialogue can be written");
            } else if held != script {
                let told = path.with_extension(name.to_lowercase());
                let changed: Vec<String> = script
                    .lines()
                    .zip(held.lines())
                    .enumerate()
                    .find(|(_, (expected, got))| expected != got)
                    .map(|(at, (expected, got))| format!("line {}: {expected:?}, but {got:?}", at + 1))
                    .into_iter()
                    .collect();
                differences.push(format!("{name}, {}: {}\n{held}", told.display(), changed.join("")));
            }
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n\n"));
}
