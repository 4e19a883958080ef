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
    let name = Name::new(name)?;
    let (_, row) = indexes[version as usize].find(name.hash(), |(known, _)| *known == name)?;
    Some(row)
}

type Index = HashTable<(Name, &'static Command)>;

fn index(version: Version) -> Index {
    let mut index = HashTable::new();
    for row in all(version) {
        let name = Name::new(row.name.as_bytes()).expect("no command has a longer name");
        index.insert_unique(name.hash(), (name, row), |(name, _)| name.hash());
    }
    index
}

/// A name in lower case, filled up with NULs: of one size, so that it is compared and hashed without a loop.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Name([u8; 32]);

impl Name {
    /// `None`: longer than any.
    fn new(name: &[u8]) -> Option<Name> {
        let mut lower = [0; 32];
        lower.get_mut(..name.len())?.copy_from_slice(name);
        lower.make_ascii_lowercase();
        // A NUL inside would look like the end of a shorter name.
        (name.last() != Some(&0)).then_some(Name(lower))
    }

    fn hash(self) -> u64 {
        let (words, _) = self.0.as_chunks::<8>();
        let mut hasher = FixedState::default().build_hasher();
        words.iter().for_each(|word| hasher.write_u64(u64::from_le_bytes(*word)));
        hasher.finish()
    }
}
