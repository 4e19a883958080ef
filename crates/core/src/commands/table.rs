//! The table of all commands.

use std::sync::OnceLock;

use super::command::{Command, Group};
use super::*;
use crate::version::Version;

/// The rows of every family.
const FAMILIES: &[&[Command]] = &[
    acl::COMMANDS,
    bitfield::COMMANDS,
    bitmaps::COMMANDS,
    clients::COMMANDS,
    cluster::COMMANDS,
    command_log::COMMANDS,
    conditions::COMMANDS,
    config::COMMANDS,
    connection::COMMANDS,
    debug::COMMANDS,
    dump::COMMANDS,
    expiry::COMMANDS,
    functions::COMMANDS,
    geo::COMMANDS,
    geo_search::COMMANDS,
    hash_ex::COMMANDS,
    hash_expiry::COMMANDS,
    hashes::COMMANDS,
    hotkeys::COMMANDS,
    hyperloglogs::COMMANDS,
    introspection::COMMANDS,
    keys::COMMANDS,
    list_moves::COMMANDS,
    lists::COMMANDS,
    migrate::COMMANDS,
    modules::COMMANDS,
    observability::COMMANDS,
    pubsub::COMMANDS,
    replication::COMMANDS,
    scripting::COMMANDS,
    sentinel::COMMANDS,
    server::COMMANDS,
    set_algebra::COMMANDS,
    sets::COMMANDS,
    sorted_set_algebra::COMMANDS,
    sorted_set_pops::COMMANDS,
    sorted_set_ranges::COMMANDS,
    sorted_sets::COMMANDS,
    sort::COMMANDS,
    stream_deletes::COMMANDS,
    stream_groups::COMMANDS,
    stream_info::COMMANDS,
    stream_producers::COMMANDS,
    stream_reads::COMMANDS,
    streams::COMMANDS,
    strings::COMMANDS,
    transactions::COMMANDS,
];

/// The commands that sentinels have too.
const OF_SENTINELS: [&str; 14] = [
    "acl",
    "auth",
    "client",
    "command",
    "hello",
    "info",
    "ping",
    "psubscribe",
    "publish",
    "punsubscribe",
    "role",
    "shutdown",
    "subscribe",
    "unsubscribe",
];

/// Returns the commands that exist in a release, as they are there, without their subcommands.
pub fn all(version: Version) -> impl Iterator<Item = &'static Command> {
    commands(version, false).rows.iter()
}

/// Returns the row for a request, or `None` if there is no such command. For a command with subcommands this is the
/// subcommand's row.
pub fn find(argv: &[&[u8]], version: Version) -> Option<&'static Command> {
    commands(version, false).find(argv)
}

/// Returns the row of a command, given its name in any case. Ignores subcommands.
pub fn find_by_name(name: &[u8], version: Version) -> Option<&'static Command> {
    commands(version, false).index.find(name)
}

/// The commands of the servers, or of the sentinels, of one release.
pub struct Commands {
    pub rows: &'static [Command],
    index: Index,
}

impl Commands {
    /// Returns the row for a request; see [`find`].
    pub fn find(&self, argv: &[&[u8]]) -> Option<&'static Command> {
        let command = self.index.find(argv.first()?)?;
        match argv.get(1) {
            Some(word) if !command.subcommands.is_empty() => command.subcommand(word),
            _ => Some(command),
        }
    }

    /// Returns the row of a command or, given `container|name`, a subcommand, in any case.
    pub fn named(&self, name: &[u8]) -> Option<&'static Command> {
        match name.iter().position(|&byte| byte == b'|') {
            Some(bar) => self.index.find(&name[..bar])?.subcommand(&name[bar + 1..]),
            None => self.index.find(name),
        }
    }
}

/// Returns the commands of a release. They are made when they are first needed, and live as long as the process.
pub fn commands(version: Version, of_sentinels: bool) -> &'static Commands {
    static RELEASES: [[OnceLock<Commands>; 2]; Version::ALL.len()] =
        [const { [const { OnceLock::new() }; 2] }; Version::ALL.len()];
    RELEASES[version as usize][usize::from(of_sentinels)].get_or_init(|| {
        let is_there = |row: &&Command| {
            let is_theirs = row.group == Group::Sentinel || OF_SENTINELS.contains(&row.name);
            let is_here = if of_sentinels { is_theirs } else { row.group != Group::Sentinel };
            is_here && row.exists_in(version)
        };
        let rows = FAMILIES.iter().flat_map(|family| family.iter()).filter(is_there);
        let rows: &[Command] = Vec::leak(rows.map(|row| row.in_release(version)).collect());
        Commands { rows, index: Index::of(rows) }
    })
}

/// A hash table of rows by name, at most half full. A row is in the slot of its name's hash, or in the first free slot
/// after it.
struct Index(Box<[Option<(Name, &'static Command)>]>);

impl Index {
    fn of(rows: &'static [Command]) -> Index {
        let slots = 2 * rows.len().next_power_of_two();
        let mut index = Index(vec![None; slots].into());
        for row in rows {
            let name = Name::of(row.name.as_bytes());
            let mut slot = index.home(&name);
            while index.0[slot].is_some() {
                slot = index.next(slot);
            }
            index.0[slot] = Some((name, row));
        }
        index
    }

    fn find(&self, name: &[u8]) -> Option<&'static Command> {
        let wanted = Name::of(name);
        // Scripts and most clients write names in lower case.
        let is_wanted = |known: &Name| *known == wanted || *known == wanted.in_lower_case();
        let mut slot = self.home(&wanted);
        while let Some((known, row)) = &self.0[slot] {
            if is_wanted(known) && (name.len() <= 16 || row.name.as_bytes().eq_ignore_ascii_case(name)) {
                return Some(row);
            }
            slot = self.next(slot);
        }
        None
    }

    fn home(&self, name: &Name) -> usize {
        name.hash() as usize & (self.0.len() - 1)
    }

    fn next(&self, slot: usize) -> usize {
        (slot + 1) & (self.0.len() - 1)
    }
}

/// A name as its length, its first eight and its last eight bytes. That is the whole name up to 16 bytes, and needs no
/// loop.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Name {
    first: u64,
    last: u64,
    len: usize,
}

impl Name {
    fn of(name: &[u8]) -> Name {
        let (first, last) = match (name.first_chunk::<8>(), name.last_chunk::<8>()) {
            (Some(&first), Some(&last)) => (u64::from_le_bytes(first), u64::from_le_bytes(last)),
            _ => match (name.first_chunk::<4>(), name.last_chunk::<4>()) {
                (Some(&first), Some(&last)) => {
                    (u32::from_le_bytes(first).into(), u32::from_le_bytes(last).into())
                }
                _ => name.iter().fold((0, 0), |(word, _), &byte| (word << 8 | u64::from(byte), 0)),
            },
        };
        Name { first, last, len: name.len() }
    }

    fn in_lower_case(self) -> Name {
        Name { first: lower_case(self.first), last: lower_case(self.last), ..self }
    }

    /// Returns a hash that is the same in any case.
    fn hash(&self) -> u64 {
        const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
        const NO_CASE: u64 = 0x2020_2020_2020_2020;
        let mixed = (self.first | NO_CASE) ^ (self.last | NO_CASE).rotate_left(29) ^ self.len as u64;
        mixed.wrapping_mul(ODD) >> 32
    }
}

/// Converts eight bytes at once from upper to lower case.
fn lower_case(word: u64) -> u64 {
    const EACH: u64 = 0x0101_0101_0101_0101;
    let low = word & (0x7f * EACH);
    // In the top bit of each byte: whether it is at least `A`, and whether it is after `Z`.
    let from_a = low + (0x80 - b'A' as u64) * EACH;
    let beyond_z = low + (0x7f - b'Z' as u64) * EACH;
    let upper = from_a & !beyond_z & !word & (0x80 * EACH);
    word | upper >> 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_found_in_any_case_and_nothing_else_is() {
        for version in Version::ALL {
            for row in all(version) {
                let found = |name: &str| find_by_name(name.as_bytes(), version).map(|found| found.name);
                assert_eq!(found(row.name), Some(row.name));
                assert_eq!(found(&row.name.to_uppercase()), Some(row.name));
                assert_eq!(found(&format!("{}x", row.name)).filter(|found| *found == row.name), None);
            }
        }
        for name in [&b""[..], b"e\x18ists", b"\xc7et", b"GE", b"@et", b"georadiusbymemberxro"] {
            assert!(find_by_name(name, Version::V7_4).is_none(), "{name:?}");
        }
    }

    #[test]
    fn only_letters_have_a_lower_case() {
        for byte in 0..=255u8 {
            let word = u64::from_le_bytes([byte, b'Q', byte, b'[', b'@', byte, 0xff, byte]);
            let expected = word.to_le_bytes().map(|byte| byte.to_ascii_lowercase());
            assert_eq!(lower_case(word).to_le_bytes(), expected);
        }
    }
}
