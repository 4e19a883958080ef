//! The commands as permissions see them: every command and subcommand has a number, and belongs to categories.

use std::sync::OnceLock;

use crate::commands::command::{ADMIN, BLOCKING, Command, FAST, Group, PUBSUB, READONLY, WRITE};
use crate::commands::table;
use crate::version::Version;

/// The categories, in the order in which ACL CAT and COMMAND INFO list them.
pub const CATEGORIES: [&str; 21] = [
    "keyspace",
    "read",
    "write",
    "set",
    "sortedset",
    "list",
    "hash",
    "string",
    "bitmap",
    "hyperloglog",
    "geo",
    "stream",
    "pubsub",
    "admin",
    "fast",
    "slow",
    "blocking",
    "dangerous",
    "connection",
    "transaction",
    "scripting",
];

/// Returns all categories of a command: those of its row and those that its flags imply.
pub fn categories(row: &Command) -> impl Iterator<Item = &'static str> {
    CATEGORIES.iter().copied().filter(|name| is_in(row, name))
}

/// Returns whether a command belongs to a category.
pub(super) fn is_in(row: &Command, category: &str) -> bool {
    let is_implied = match category {
        "write" => row.has(WRITE),
        "read" => row.has(READONLY) && row.group != Group::Scripting,
        "admin" | "dangerous" => row.has(ADMIN),
        "pubsub" => row.has(PUBSUB),
        "fast" => row.has(FAST),
        "slow" => !row.has(FAST),
        "blocking" => row.has(BLOCKING),
        _ => false,
    };
    is_implied || row.acl.contains(&category)
}

/// Returns the commands and subcommands of a release, sorted by their full names. A command's number is its index.
pub fn all_rows(version: Version) -> &'static [&'static Command] {
    static ROWS: [OnceLock<Vec<&'static Command>>; Version::ALL.len()] =
        [const { OnceLock::new() }; Version::ALL.len()];
    ROWS[version as usize].get_or_init(|| {
        let with_subcommands =
            table::all(version).flat_map(|row| std::iter::once(row).chain(subcommands(row, version)));
        let mut rows: Vec<&Command> = with_subcommands.collect();
        rows.sort_by_key(|row| row.name);
        rows
    })
}

/// Returns the subcommands of a command that exist in a release.
pub(super) fn subcommands(row: &'static Command, version: Version) -> impl Iterator<Item = &'static Command> {
    row.subcommands.iter().filter(move |sub| sub.exists_in(version))
}

/// Returns the number of a command or subcommand.
pub(super) fn number(row: &Command, version: Version) -> Option<usize> {
    all_rows(version).binary_search_by_key(&row.name, |known| known.name).ok()
}

/// Finds a row by `name` or `container|name`, in any case.
pub fn row_named(name: &[u8], version: Version) -> Option<&'static Command> {
    table::commands(version, false).named(name)
}

/// A set of commands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CommandSet(Box<[u64]>);

impl CommandSet {
    /// Creates the set of no command, or of every command of a release.
    pub fn new(version: Version, all: bool) -> CommandSet {
        let words = all_rows(version).len().div_ceil(64);
        CommandSet(vec![if all { u64::MAX } else { 0 }; words].into())
    }

    pub fn contains(&self, number: usize) -> bool {
        self.0.get(number / 64).is_some_and(|word| word & 1 << (number % 64) != 0)
    }

    pub fn put(&mut self, number: usize, is_in: bool) {
        if let Some(word) = self.0.get_mut(number / 64) {
            let bit = 1 << (number % 64);
            *word = if is_in { *word | bit } else { *word & !bit };
        }
    }
}
