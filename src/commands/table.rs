//! All commands, found by name.

use std::hash::BuildHasher;
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
    static INDEX: OnceLock<HashTable<&'static Command>> = OnceLock::new();
    let index = INDEX.get_or_init(|| {
        let rows = FAMILIES.iter().flat_map(|family| family.iter());
        let mut index = HashTable::new();
        for row in rows {
            index.insert_unique(hash(row.name.as_bytes()), row, |row| hash(row.name.as_bytes()));
        }
        index
    });
    let mut lower = [0; MAX_NAME];
    let lower = lower.get_mut(..name.len())?;
    lower.copy_from_slice(name);
    lower.make_ascii_lowercase();
    let row = index.find(hash(lower), |row| row.name.as_bytes() == lower)?;
    row.exists_in(version).then_some(*row)
}

/// No command has a longer name.
const MAX_NAME: usize = 32;

fn hash(name: &[u8]) -> u64 {
    FixedState::default().hash_one(name)
}
