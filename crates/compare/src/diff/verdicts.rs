//! What is known of each command on each compared release, as the table of `docs/commands.md`.

use std::collections::BTreeMap;

use redlatch_core::commands::command::Command;
use redlatch_core::commands::table;
use redlatch_core::version::Version;

use super::exclusions::EXCLUDED;

/// The compared releases.
const RELEASES: [Version; 4] = [Version::V7_0, Version::V7_4, Version::V8_6, Version::Valkey9_1];

/// Known differences: the command, the releases if it is not all, and what differs.
const DIFFERENCES: &[(&str, &[Version], &str)] = &[
    ("acl|setuser", &[Version::Valkey9_1], "no rules for databases (`db=`)"),
    ("bgrewriteaof", &[], "writes no file"),
    ("bgsave", &[], "writes no file, and takes no time"),
    ("command|docs", &[], "own words; fields, arguments and releases are equal"),
    ("debug", &[], "what ends the process, and the allocator, are missing"),
    ("failover", &[], "between nodes of the process"),
    ("geosearch", &[Version::Valkey9_1], "no `BYPOLYGON`"),
    ("geosearchstore", &[Version::Valkey9_1], "no `BYPOLYGON`"),
    ("hotkeys|get", &[], "commands take no time; bytes are equal"),
    ("info", &[], "fields and their order are equal; what a node does not have is zero"),
    ("latency|doctor", &[], "own text"),
    ("latency|graph", &[], "no samples: commands take no time"),
    ("latency|histogram", &[], "commands take no time; calls are equal"),
    ("lolwut", &[], "own text"),
    ("memory|doctor", &[], "own text"),
    ("memory|malloc-stats", &[], "no statistics"),
    ("memory|stats", &[], "fields are equal, numbers estimated"),
    ("memory|usage", &[], "estimated"),
    ("migrate", &[], "not from transactions and scripts; keeps no connection for the next"),
    ("module|load", &[], "always fails"),
    ("module|loadex", &[], "always fails"),
    ("module|unload", &[Version::Valkey9_1], "the module lua stays"),
    ("psync", &[], "refuses replicas"),
    ("replicaof", &[], "nodes of the process only"),
    ("save", &[], "writes no file"),
    ("slaveof", &[], "nodes of the process only"),
    ("sync", &[], "refuses replicas"),
];

/// The commands of the module of vector sets, which Redis 8.x has and Redlatch has not.
const MISSING: &str = "`VADD`, `VCARD`, `VDIM`, `VEMB`, `VGETATTR`, `VINFO`, `VISMEMBER`, `VLINKS`, `VRANDMEMBER`, `VRANGE`, \
                       `VREM`, `VSETATTR`, `VSIM`";

/// Renders the table for the documentation.
pub fn as_markdown() -> String {
    let mut rows: BTreeMap<&str, [bool; RELEASES.len()]> = BTreeMap::new();
    for (at, release) in RELEASES.into_iter().enumerate() {
        let with_subcommands = |row: &'static Command| std::iter::once(row).chain(row.subcommands);
        for row in table::all(release).flat_map(with_subcommands) {
            rows.entry(row.name).or_default()[at] = true;
        }
    }
    let titles = RELEASES.map(Version::title).join(" | ");
    let mut text = format!("| command | {titles} | remark |\n|---|---|---|---|---|---|\n");
    for (name, exists) in rows {
        let known = DIFFERENCES.iter().find(|(other, ..)| *other == name);
        let excluded = EXCLUDED.iter().find(|(other, _)| *other == name);
        let cells = RELEASES.iter().zip(exists).map(|(release, exists)| match known {
            _ if !exists => " ",
            Some((_, releases, _)) if releases.is_empty() || releases.contains(release) => "≠",
            _ if excluded.is_some() => "·",
            _ => "=",
        });
        let cells: Vec<&str> = cells.collect();
        let remark = known.map(|(_, _, remark)| *remark).or(excluded.map(|(_, reason)| *reason));
        let title = name.to_ascii_uppercase().replace('|', " ");
        text += &format!("| `{title}` | {} | {} |\n", cells.join(" | "), remark.unwrap_or_default());
    }
    text + &format!(
        "\nRedis 8.x has these too, with vector sets: {MISSING}. Redlatch answers that they are unknown.\n"
    )
}
