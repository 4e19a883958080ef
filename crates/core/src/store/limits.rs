//! The settings that decide about the encoding of a value.

use crate::version::Version;

/// Thresholds between small and large encodings, named like the settings in `redis.conf`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The emulated release: some rules changed between releases without a setting.
    pub version: Version,
    /// Whether keys count their uses instead of remembering the last one (`maxmemory-policy`).
    pub counts_uses: bool,
    /// Fields of a hash.
    pub hash_max_listpack_entries: usize,
    /// Bytes of a field or its value.
    pub hash_max_listpack_value: usize,
    /// Integers of a set.
    pub set_max_intset_entries: usize,
    /// Members of a set; before 7.2 sets have no listpack form, and the setting does not exist.
    pub set_max_listpack_entries: usize,
    /// Bytes of a member of a set.
    pub set_max_listpack_value: usize,
    /// Bytes of a sparse HyperLogLog.
    pub hll_sparse_max_bytes: usize,
    /// Members of a sorted set.
    pub zset_max_listpack_entries: usize,
    /// Bytes of a member of a sorted set.
    pub zset_max_listpack_value: usize,
    /// Elements in one node of a list; −1 … −5 mean 4, 8, 16, 32, 64 KiB.
    pub list_max_listpack_size: i32,
    /// Bytes of a node of a stream; 0 means no limit.
    pub stream_node_max_bytes: usize,
    /// Entries of a node of a stream; 0 means no limit.
    pub stream_node_max_entries: u64,
    /// Seconds for which a stream remembers the ids of idempotent producers.
    pub stream_idmp_duration: u64,
    /// Ids of an idempotent producer that a stream remembers.
    pub stream_idmp_maxsize: u64,
}

impl Limits {
    /// Returns the defaults of a release.
    pub fn for_version(version: Version) -> Limits {
        Limits {
            version,
            counts_uses: false,
            hash_max_listpack_entries: 512,
            hash_max_listpack_value: 64,
            set_max_intset_entries: 512,
            set_max_listpack_entries: if version >= Version::V7_2 { 128 } else { 0 },
            set_max_listpack_value: 64,
            hll_sparse_max_bytes: 3000,
            zset_max_listpack_entries: 128,
            zset_max_listpack_value: 64,
            list_max_listpack_size: -2,
            stream_node_max_bytes: 4096,
            stream_node_max_entries: 100,
            stream_idmp_duration: 100,
            stream_idmp_maxsize: 100,
        }
    }
}
