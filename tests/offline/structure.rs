//! The rules of docs/design.md about who may use what: crates by their manifests, the modules of the core by their source.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// What each crate may depend on within the workspace.
const CRATES: &[(&str, &[&str])] = &[
    ("core", &[]),
    ("locks", &["redlatch-core"]),
    ("lab", &["redlatch-core", "redlatch-locks"]),
    ("compare", &["redlatch-core", "redlatch-lab"]),
];

/// What each module of the core may use of the others. Only node and commands use each other, as in Redis.
const CORE: &[(&str, &[&str])] = &[
    ("wheel", &[]),
    ("wire", &[]),
    ("conn", &[]),
    ("store", &["wheel"]),
    ("script", &["wire"]),
    ("stages", &["conn", "script", "store", "wire"]),
    ("node", &["commands", "conn", "script", "stages", "store", "wheel", "wire"]),
    ("commands", &["node", "script", "store", "wire"]),
    ("world", &["node", "stages", "store", "wire"]),
];

/// Used by everybody, and using none of the modules above.
const LEAVES: &[&str] =
    &["error", "glob", "grisu", "image", "long_double", "num", "rng", "slots", "topology", "version"];

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// The modules of its own crate that a file or a folder names outside of comments and tests.
fn used(path: &Path) -> BTreeSet<String> {
    if path.is_dir() {
        let entries = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
        return entries.filter(|path| !path.ends_with("tests.rs")).flat_map(|path| used(&path)).collect();
    }
    let source = fs::read_to_string(path).unwrap();
    let code = source.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
    let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
    let names = lines.flat_map(|line| line.split("crate::").skip(1));
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    names.map(|rest| rest.split(|c| !is_word(c)).next().unwrap_or_default().to_owned()).collect()
}

#[test]
fn crates_depend_on_what_they_may() {
    for (name, allowed) in CRATES {
        let manifest = fs::read_to_string(root().join("crates").join(name).join("Cargo.toml")).unwrap();
        let manifest: toml::Table = manifest.parse().unwrap();
        let dependencies = manifest["dependencies"].as_table().unwrap().keys();
        let own: Vec<&str> =
            dependencies.map(String::as_str).filter(|name| name.starts_with("redlatch")).collect();
        assert_eq!(own, *allowed, "crates/{name}/Cargo.toml");
    }
}

#[test]
fn modules_of_the_core_use_what_they_may() {
    let core = root().join("crates/core/src");
    let place = |name: &str| Some(core.join(name)).filter(|path| path.is_dir());
    let mut graph: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for (name, allowed) in CORE {
        let mut others = used(&place(name).unwrap_or_else(|| core.join(format!("{name}.rs"))));
        others.retain(|other| other != name && CORE.iter().any(|(known, _)| known == other));
        let allowed: BTreeSet<String> = allowed.iter().map(|name| (*name).to_owned()).collect();
        assert!(others.is_subset(&allowed), "{name} uses {others:?}, and may use {allowed:?}");
        graph.insert(name, others);
    }
    for name in LEAVES {
        let others = used(&core.join(format!("{name}.rs")));
        assert!(others.iter().all(|other| LEAVES.contains(&other.as_str())), "{name} uses {others:?}");
    }
    assert!(graph["node"].contains("script"), "the uses of a module are found");
    for (name, others) in &graph {
        for other in others {
            let is_circle = graph[other.as_str()].contains(*name);
            let is_known =
                ["node", "commands"].contains(name) && ["node", "commands"].contains(&other.as_str());
            assert!(!is_circle || is_known, "{name} and {other} use each other");
        }
    }
}

#[test]
fn the_core_knows_nothing_of_what_is_built_on_it() {
    let words = ["SIM.", "edisson", "redlatch_lab", "redlatch_locks", "redlatch_compare"];
    let mut folders = vec![root().join("crates/core/src")];
    while let Some(folder) = folders.pop() {
        for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let source = fs::read_to_string(&path).unwrap();
            let code = source.lines().filter(|line| !line.trim_start().starts_with("//"));
            for line in code {
                let found = words.iter().find(|word| line.contains(**word));
                assert_eq!(found, None, "{}: {line}", path.display());
            }
        }
    }
}
