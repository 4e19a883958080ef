//! The first byte of a serialized object: its type and encoding.

use crate::version::Version;

pub const STRING: u8 = 0;
pub const LIST: u8 = 1;
pub const SET: u8 = 2;
/// A sorted set with its scores as text.
pub const ZSET: u8 = 3;
pub const HASH: u8 = 4;
/// A sorted set with its scores as binary doubles.
pub const ZSET_2: u8 = 5;
pub const HASH_ZIPMAP: u8 = 9;
pub const LIST_ZIPLIST: u8 = 10;
pub const SET_INTSET: u8 = 11;
pub const ZSET_ZIPLIST: u8 = 12;
pub const HASH_ZIPLIST: u8 = 13;
/// A list whose nodes are ziplists.
pub const LIST_QUICKLIST: u8 = 14;
pub const HASH_LISTPACK: u8 = 16;
pub const ZSET_LISTPACK: u8 = 17;
/// A list whose nodes are listpacks or plain.
pub const LIST_QUICKLIST_2: u8 = 18;
pub const SET_LISTPACK: u8 = 20;
/// A stream, as Redis 5 wrote it.
pub const STREAM_LISTPACKS: u8 = 15;
/// A stream with its first id, its largest deleted id and counts of entries.
pub const STREAM_LISTPACKS_2: u8 = 19;
/// The same, with the last activity of each consumer.
pub const STREAM_LISTPACKS_3: u8 = 21;
/// A hash with an expiry for each field, as Valkey writes it. Redis has another use for the number.
pub const HASH_2: u8 = 22;
/// A hash with an expiry for each field, as release candidates of 7.4 wrote it.
pub const HASH_METADATA_PRE_GA: u8 = 22;
pub const HASH_LISTPACK_EX_PRE_GA: u8 = 23;
pub const HASH_METADATA: u8 = 24;
pub const HASH_LISTPACK_EX: u8 = 25;
/// A stream with the ids of idempotent producers.
pub const STREAM_LISTPACKS_4: u8 = 26;

/// Returns the highest of these numbers that a release knows.
pub fn newest(version: Version) -> u8 {
    match version {
        Version::V7_0 => 19,
        Version::V7_2 | Version::Valkey8_1 => 21,
        Version::Valkey9_0 | Version::Valkey9_1 | Version::Valkey9_2 => 22,
        Version::V7_4 | Version::V8_0 | Version::V8_2 | Version::V8_4 => HASH_LISTPACK_EX,
        Version::V8_6 | Version::V8_8 | Version::V8_10 => STREAM_LISTPACKS_4,
    }
}

/// The kinds of list nodes: one large element, or a listpack.
pub const NODE_PLAIN: u64 = 1;
pub const NODE_PACKED: u64 = 2;
