//! All commands, found by name.

use std::hash::{BuildHasher, Hasher};
use std::sync::OnceLock;

use foldhash::fast::FixedState;
use hashbrown::HashTable;

use super::command::Command;
use super::*;
use crate::version::Version;

/// The rows of every family.
const FAMILIES: &[&[Command]] = &[
    clients::COMMANDS,
    config::COMMANDS,
    connection::COMMANDS,
    dump::COMMANDS,
    expiry::COMMANDS,
    hash_expiry::COMMANDS,
    hashes::COMMANDS,
    introspection::COMMANDS,
    keys::COMMANDS,
    list_moves::COMMANDS,
    lists::COMMANDS,
    observability::COMMANDS,
    pubsub::COMMANDS,
    scripting::COMMANDS,
    server::COMMANDS,
    set_algebra::COMMANDS,
    sets::COMMANDS,
    sorted_set_algebra::COMMANDS,
    sorted_set_pops::COMMANDS,
    sorted_set_ranges::COMMANDS,
    sorted_sets::COMMANDS,
    sort::COMMANDS,
    strings::COMMANDS,
    transactions::COMMANDS,
];

/// Commands that exist in a release, without their subcommands.
pub fn all(version: Version) -> impl Iterator<Item = &'static Command> {
    FAMILIES.iter().flat_map(|family| family.iter()).filter(move |command| command.exists_in(version))
}

/// The row of a request: that of the subcommand if the command has any. `None` if there is no such command.
pub fn find(argv: &[&[u8]], version: Version) -> Option<&'static Command> {
    let command = find_by_name(argv.first()?, version)?;
    match argv.get(1) {
        Some(word) if !command.subcommands.is_empty() => command.subcommand(word, version),
        _ => Some(command),
    }
}

/// The row of a name in any case, without regard to subcommands.
pub fn find_by_name(name: &[u8], version: Version) -> Option<&'static Command> {
    static INDEXES: OnceLock<[Index; Version::ALL.len()]> = OnceLock::new();
    let indexes = INDEXES.get_or_init(|| Version::ALL.map(index));
    let is_named = |row: &&Command| {
        let known = row.name.as_bytes();
        known == name || known.eq_ignore_ascii_case(name)
    };
    indexes[version as usize].find(hash(name), is_named).copied()
}

type Index = HashTable<&'static Command>;

fn index(version: Version) -> Index {
    let mut index = HashTable::new();
    for row in all(version) {
        index.insert_unique(hash(row.name.as_bytes()), row, |row| hash(row.name.as_bytes()));
    }
    index
}

/// A hash that is the same in any case. Names differ in their length or in their first and last bytes, and these take no loop.
fn hash(name: &[u8]) -> u64 {
    const LOWER_CASE: u64 = 0x2020_2020_2020_2020;
    let (first, last) = match (name.first_chunk::<8>(), name.last_chunk::<8>()) {
        (Some(&first), Some(&last)) => (u64::from_le_bytes(first), u64::from_le_bytes(last)),
        _ => match (name.first_chunk::<4>(), name.last_chunk::<4>()) {
            (Some(&first), Some(&last)) => {
                (u32::from_le_bytes(first).into(), u32::from_le_bytes(last).into())
            }
            _ => name.iter().fold((0, 0), |(word, _), &byte| (word << 8 | u64::from(byte), 0)),
        },
    };
    let mut hasher = FixedState::default().build_hasher();
    hasher.write_u64((first | LOWER_CASE) ^ name.len() as u64);
    hasher.write_u64(last | LOWER_CASE);
    hasher.finish()
}
