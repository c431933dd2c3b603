//! What Cargo.toml names is used: a dependency by the crate that names it, one of the workspace by some
//! crate.

use std::path::PathBuf;

use crate::{read, root, sources};

/// The names of a table of Cargo.toml and its lines' keys.
struct Named {
    table: String,
    name: String,
}

/// The keys of all tables of a Cargo.toml.
fn named(manifest: &str) -> Vec<Named> {
    let (mut table, mut found) = (String::new(), Vec::new());
    for line in manifest.lines() {
        if let Some(header) = line.strip_prefix('[') {
            table = header.trim_end_matches(']').to_owned();
            continue;
        }
        let name: String =
            line.chars().take_while(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_')).collect();
        if !name.is_empty() && line[name.len()..].starts_with([' ', '=', '.']) {
            found.push(Named { table: table.clone(), name });
        }
    }
    found
}

fn manifest(folder: &str) -> String {
    read(&root().join(folder).join("Cargo.toml"))
}

/// The folders of the workspace's crates.
fn members() -> Vec<String> {
    let text = manifest("");
    let members = text.lines().find_map(|line| line.strip_prefix("members = "));
    let members = members.expect("the workspace names its members in one line");
    members.split('"').skip(1).step_by(2).map(str::to_owned).collect()
}

/// The sources of a crate without those of the crates below its folder.
fn sources_of(folder: &str, members: &[String]) -> Vec<PathBuf> {
    let below = |path: &PathBuf| {
        let other = members.iter().filter(|other| other.len() > folder.len());
        other.map(|other| root().join(other)).any(|other| path.starts_with(other))
    };
    sources(folder).into_iter().filter(|path| !below(path)).collect()
}

/// Whether code says `name::…` or `use name`.
fn uses(code: &str, name: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    code.lines().filter(|line| !line.trim_start().starts_with("//")).any(|line| {
        line.match_indices(name).any(|(at, _)| {
            let (before, behind) = (&line[..at], &line[at + name.len()..]);
            let whole = !before.ends_with(is_part) && !behind.starts_with(is_part);
            whole && (behind.starts_with("::") || before.ends_with("use "))
        })
    })
}

#[test]
fn dependencies_are_used() {
    let members = members();
    let mut unused = Vec::new();
    for folder in &members {
        let code: Vec<String> = sources_of(folder, &members).iter().map(|path| read(path)).collect();
        for Named { table, name } in named(&manifest(folder)) {
            let is_dependency = ["dependencies", "dev-dependencies", "build-dependencies"].contains(&&*table);
            let word = name.replace('-', "_");
            if is_dependency && !code.iter().any(|code| uses(code, &word)) {
                unused.push(format!("{folder}/Cargo.toml names {name}, which nothing there uses"));
            }
        }
    }
    assert!(unused.is_empty(), "{}", unused.join("\n"));
}

#[test]
fn dependencies_of_the_workspace_are_named_by_a_crate() {
    let manifests: Vec<Named> = members().iter().flat_map(|folder| named(&manifest(folder))).collect();
    let is_named = |name: &str| {
        manifests.iter().any(|named| named.table.ends_with("dependencies") && named.name == name)
    };
    let unused: Vec<String> = named(&manifest(""))
        .into_iter()
        .filter(|named| named.table == "workspace.dependencies" && !is_named(&named.name))
        .map(|named| named.name)
        .collect();
    assert!(unused.is_empty(), "Cargo.toml names what no crate does: {}", unused.join(", "));
}
