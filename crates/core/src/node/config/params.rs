//! The table of parameters and the rules for their values.

mod texts;

use crate::node::ConfigError;
use crate::node::notify::Class;
use crate::num;
use crate::version::{NEVER, Version};
use ParamKind::*;

const INT_MAX: i64 = i32::MAX as i64;

/// The type and range of a parameter's values.
#[derive(Clone, Copy, Debug)]
pub enum ParamKind {
    /// Another name for the parameter named here.
    Alias(&'static str),
    Bool,
    /// Exactly one of these words.
    Choice(&'static [&'static str]),
    /// Can be set at start-up only.
    Fixed,
    /// `yes` or `no`, at start-up only.
    FixedBool,
    /// One of these words, at start-up only.
    FixedChoice(&'static [&'static str]),
    Int(i64, i64),
    /// Classes of keyspace events, except these.
    KeyspaceEvents(Class),
    /// A number of bytes of at least this many and at most [`i64::MAX`], with an optional unit (`kb`, `mb`, …).
    Memory(u64),
    /// A number of bytes up to [`u64::MAX`].
    UnsignedMemory,
    /// The same, or a share of `maxmemory` such as `20%`.
    MemoryOrPercent,
    OutputLimits,
    /// Cannot be set over a connection.
    Protected,
    SavePoints,
    Text,
    /// Any of these words.
    Words(&'static [&'static str]),
}

/// One parameter.
pub struct Param {
    pub name: &'static str,
    default: &'static str,
    /// Valkey's default, where it is another.
    valkey_default: Option<&'static str>,
    pub kind: ParamKind,
    /// The first releases of Redis and of Valkey that have the parameter; see [`Version::has`].
    since: (&'static str, &'static str),
    /// The first releases of Redis and of Valkey that no longer have it.
    until: (&'static str, &'static str),
    hidden_since_7_2: bool,
}

impl Param {
    const fn new(name: &'static str, default: &'static str, kind: ParamKind) -> Param {
        let (since, until) = (("1.0.0", ""), (NEVER, ""));
        Param { name, default, valkey_default: None, kind, since, until, hidden_since_7_2: false }
    }

    const fn hidden_since_7_2(self) -> Param {
        Param { hidden_since_7_2: true, ..self }
    }

    const fn since_7_2(self) -> Param {
        self.since("7.2.0", "")
    }

    const fn since(self, redis: &'static str, valkey: &'static str) -> Param {
        Param { since: (redis, valkey), ..self }
    }

    const fn until(self, redis: &'static str, valkey: &'static str) -> Param {
        Param { until: (redis, valkey), ..self }
    }

    const fn valkey_default(self, default: &'static str) -> Param {
        Param { valkey_default: Some(default), ..self }
    }

    /// Returns the value that a release starts with.
    pub fn default_in(&self, version: Version) -> &'static str {
        self.valkey_default.filter(|_| version.is_valkey()).unwrap_or(self.default)
    }

    /// Returns whether the parameter is found only by its exact name, never by a pattern.
    pub fn is_hidden_in(&self, version: Version) -> bool {
        self.hidden_since_7_2 && version >= Version::V7_2
    }

    /// Returns whether a release has the parameter.
    pub fn exists_in(&self, version: Version) -> bool {
        version.has(self.since.0, self.since.1) && !version.has(self.until.0, self.until.1)
    }

    /// Returns whether no release of Redis has the parameter.
    pub(super) fn is_of_valkey_alone(&self) -> bool {
        self.since.0 == NEVER
    }

    /// Returns the classes that a value of `notify-keyspace-events` names, or `None` if it names others or the parameter is
    /// another one.
    pub fn keyspace_events(&self, value: &[u8]) -> Option<Class> {
        let KeyspaceEvents(unknown) = self.kind else { return None };
        Class::parse(value).filter(|classes| !classes.has(unknown))
    }

    /// Returns whether its value is a list of words, which a line of redis.conf gives one by one.
    pub fn takes_several_values(&self) -> bool {
        const LISTS: [&str; 6] = [
            "bind",
            "latency-tracking-info-percentiles",
            "oom-score-adj-values",
            "rdma-bind",
            "replicaof",
            "slaveof",
        ];
        matches!(self.kind, OutputLimits | SavePoints | Words(_)) || LISTS.contains(&self.name)
    }

    /// Returns whether the parameter cannot be turned on.
    fn is_never_on(&self, version: Version) -> bool {
        match self.name {
            "tls-cluster" | "tls-replication" => !version.is_valkey(),
            name => name == "key-memory-histograms",
        }
    }

    /// Returns the least number of bytes that a smaller one stands for.
    fn least(&self) -> u64 {
        const SMALLEST_BACKLOG: u64 = 16 << 10;
        if self.name == "repl-backlog-size" { SMALLEST_BACKLOG } else { 0 }
    }

    /// Returns the canonical text of a new value, or Redis's reason for refusing it.
    ///
    /// # Errors
    ///
    /// Fails if the value has the wrong type or is out of range.
    pub fn parse(&self, value: &[u8], old: &str, version: Version) -> Result<String, ConfigError> {
        let text = String::from_utf8_lossy(value).into_owned();
        match self.kind {
            Alias(_) => Ok(text),
            Text => texts::check(self.name, &text, version).map(|()| text),
            Fixed | FixedBool | FixedChoice(_) => Err("can't set immutable config".into()),
            Protected => Err("can't set protected config".into()),
            Bool if text.eq_ignore_ascii_case("yes") && self.is_never_on(version) => {
                Err(match self.name.starts_with("tls") {
                    true => "Unable to update TLS configuration. Check server logs.".into(),
                    false => "memory tracking cannot be enabled at runtime".into(),
                })
            }
            Bool => yes_or_no(&text),
            Choice(words) => choice(words, &text),
            Words(words) => {
                let given: Vec<&str> = text.split_ascii_whitespace().collect();
                let known = |word: &&str| words.iter().any(|known| known.eq_ignore_ascii_case(word));
                if given.is_empty() || !given.iter().all(known) {
                    return Err(one_of(words).into());
                }
                Ok(given.join(" ").to_ascii_lowercase())
            }
            Int(min, max) => {
                let n = num::parse_i64(value).ok_or("argument couldn't be parsed into an integer")?;
                if !(min..=max).contains(&n) {
                    return Err(format!("argument must be between {min} and {max} inclusive").into());
                }
                Ok(if self.name == "hz" { n.clamp(1, 500) } else { n }.to_string())
            }
            Memory(min) => match parse_memory(&text, version) {
                Some(bytes) if (min..=i64::MAX as u64).contains(&bytes) => {
                    Ok(bytes.max(self.least()).to_string())
                }
                Some(_) => Err(format!("argument must be between {min} and {} inclusive", i64::MAX).into()),
                None => Err("argument must be a memory value".into()),
            },
            UnsignedMemory => match parse_memory(&text, version) {
                Some(bytes) => Ok(bytes.to_string()),
                None => Err("argument must be a memory value".into()),
            },
            MemoryOrPercent => match (text.strip_suffix('%'), parse_memory(&text, version)) {
                (Some(percent), _) => match percent.parse::<u64>() {
                    Ok(percent) if percent > 100 => {
                        Err("percentage argument must be less or equal to 100".into())
                    }
                    Ok(percent) => Ok(format!("{percent}%")),
                    Err(_) => Err("argument must be a memory or percent value".into()),
                },
                // Redis keeps a share as a negative number.
                (None, Some(bytes)) if (bytes as i64) < 0 => match bytes.wrapping_neg() {
                    percent @ ..=100 => Ok(format!("{percent}%")),
                    _ => Err("percentage argument must be less or equal to 100".into()),
                },
                (None, Some(bytes)) => Ok(bytes.to_string()),
                (None, None) => Err("argument must be a memory or percent value".into()),
            },
            KeyspaceEvents(_) => match self.keyspace_events(value) {
                Some(classes) => Ok(classes.letters()),
                None => Err("Invalid event class character. Use 'Ag$lshzxeKEtmdn'.".into()),
            },
            OutputLimits => parse_output_limits(&text, old, version),
            SavePoints => parse_save_points(&text),
        }
    }
}

/// Returns `yes` or `no`, which `text` is in any case.
pub(super) fn yes_or_no(text: &str) -> Result<String, ConfigError> {
    match text.to_ascii_lowercase().as_str() {
        flag @ ("yes" | "no") => Ok(flag.to_owned()),
        _ => Err("argument must be 'yes' or 'no'".into()),
    }
}

/// Returns the word that `text` is, in any case.
pub(super) fn choice(words: &[&str], text: &str) -> Result<String, ConfigError> {
    match words.iter().find(|word| word.eq_ignore_ascii_case(text)) {
        Some(word) => Ok((*word).to_owned()),
        None => Err(one_of(words).into()),
    }
}

fn one_of(words: &[&str]) -> String {
    format!("argument(s) must be one of the following: {}", words.join(", "))
}

/// Parses a size such as `100mb` and returns it in bytes. `k` is 1000, `kb` is 1024. Like C's `strtoull`, takes no digits for
/// zero and, except in Valkey, a number that is too large for the largest.
pub fn parse_memory(text: &str, version: Version) -> Option<u64> {
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let unit: u64 = match text[digits..].to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" => 1000,
        "kb" => 1 << 10,
        "m" => 1_000_000,
        "mb" => 1 << 20,
        "g" => 1_000_000_000,
        "gb" => 1 << 30,
        _ => return None,
    };
    let number = match text[..digits].parse::<u64>() {
        Ok(number) => number,
        Err(_) if digits == 0 => 0,
        Err(_) if version.is_valkey_since(Version::Valkey9_0) => return None,
        Err(_) => u64::MAX,
    };
    Some(number.saturating_mul(unit))
}

const CLIENT_CLASSES: [&str; 3] = ["normal", "slave", "pubsub"];

/// Returns the classes of `client-output-buffer-limit`, given its canonical text: name, hard limit, soft limit,
/// seconds.
pub fn output_limits(text: &str) -> Vec<(&str, u64, u64, u64)> {
    let words: Vec<&str> = text.split_ascii_whitespace().collect();
    let number = |word: &str| word.parse().unwrap_or(0);
    words.chunks_exact(4).map(|c| (c[0], number(c[1]), number(c[2]), number(c[3]))).collect()
}

fn parse_output_limits(text: &str, old: &str, version: Version) -> Result<String, ConfigError> {
    let words: Vec<&str> = text.split_ascii_whitespace().collect();
    if !words.len().is_multiple_of(4) {
        return Err("Wrong number of arguments in buffer limit configuration.".into());
    }
    let mut limits = output_limits(old);
    for class in words.chunks_exact(4) {
        let name = if class[0].eq_ignore_ascii_case("replica") { "slave" } else { class[0] };
        let at = CLIENT_CLASSES
            .iter()
            .position(|known| known.eq_ignore_ascii_case(name))
            .ok_or("Invalid client class specified in buffer limit configuration.")?;
        let bad = "Error in hard, soft or soft_seconds setting in buffer limit configuration.";
        let hard = parse_memory(class[1], version).ok_or(bad)?;
        let soft = parse_memory(class[2], version).ok_or(bad)?;
        let seconds = class[3].parse::<u64>().map_err(|_| bad)?;
        limits[at] = (CLIENT_CLASSES[at], hard, soft, seconds);
    }
    let parts: Vec<String> =
        limits.iter().map(|(name, hard, soft, seconds)| format!("{name} {hard} {soft} {seconds}")).collect();
    Ok(parts.join(" "))
}

fn parse_save_points(text: &str) -> Result<String, ConfigError> {
    let words: Vec<&str> = text.split_ascii_whitespace().collect();
    let valid = |word: &&str| word.parse::<u32>().is_ok();
    if !words.len().is_multiple_of(2)
        || !words.iter().all(valid)
        || words.chunks(2).any(|pair| pair[0] == "0")
    {
        return Err("Invalid save parameters".into());
    }
    Ok(words.join(" "))
}

/// The parameters that change what the server does. All others are only kept, for CONFIG GET.
pub(super) const EFFECTIVE: &[&str] = &[
    "acl-pubsub-default",
    "aclfile",
    "acllog-max-len",
    "bind",
    "busy-reply-threshold",
    "client-output-buffer-limit",
    "client-query-buffer-limit",
    "cluster-allow-pubsubshard-when-down",
    "cluster-allow-reads-when-down",
    "cluster-allow-replica-migration",
    "cluster-announce-bus-port",
    "cluster-announce-hostname",
    "cluster-announce-ip",
    "cluster-announce-port",
    "cluster-enabled",
    "cluster-node-timeout",
    "cluster-port",
    "cluster-preferred-endpoint-type",
    "cluster-replica-no-failover",
    "cluster-replica-validity-factor",
    "cluster-require-full-coverage",
    "commandlog-large-reply-max-len",
    "commandlog-large-request-max-len",
    "commandlog-reply-larger-than",
    "commandlog-request-larger-than",
    "daemonize",
    "databases",
    "dbfilename",
    "dir",
    "enable-debug-command",
    "hash-max-listpack-entries",
    "hash-max-listpack-value",
    "hll-sparse-max-bytes",
    "lfu-decay-time",
    "lfu-log-factor",
    "list-max-listpack-size",
    "logfile",
    "loglevel",
    "lua-time-limit",
    "maxclients",
    "maxmemory",
    "maxmemory-policy",
    "maxmemory-samples",
    "min-replicas-max-lag",
    "min-replicas-to-write",
    "notify-keyspace-events",
    "pidfile",
    "port",
    "protected-mode",
    "proto-max-bulk-len",
    "rdbcompression",
    "replica-announced",
    "replica-ignore-maxmemory",
    "replica-priority",
    "replica-serve-stale-data",
    "replicaof",
    "requirepass",
    "save",
    "set-max-intset-entries",
    "set-max-listpack-entries",
    "set-max-listpack-value",
    "slowlog-log-slower-than",
    "slowlog-max-len",
    "stream-idmp-duration",
    "stream-idmp-maxsize",
    "stream-node-max-bytes",
    "stream-node-max-entries",
    "tls-auth-clients",
    "tls-ca-cert-dir",
    "tls-ca-cert-file",
    "tls-cert-file",
    "tls-key-file",
    "tls-port",
    "tls-protocols",
    "tracking-table-max-keys",
    "unixsocket",
    "unixsocketperm",
    "zset-max-listpack-entries",
    "zset-max-listpack-value",
];

/// All parameters, sorted by name, with the types, ranges and defaults of Redis's `CONFIG GET` and `CONFIG SET`.
pub const PARAMS: &[Param] = &[
    Param::new("acl-pubsub-default", "resetchannels", Choice(&["allchannels", "resetchannels"])),
    Param::new("aclfile", "", Fixed),
    Param::new("acllog-max-len", "128", Int(0, i64::MAX)),
    Param::new("active-defrag-cycle-max", "25", Int(1, 99)),
    Param::new("active-defrag-cycle-min", "1", Int(1, 99)),
    Param::new("active-defrag-cycle-us", "500", Int(0, 100_000)).since(NEVER, "8.0.0"),
    Param::new("active-defrag-ignore-bytes", "104857600", Memory(1)),
    Param::new("active-defrag-max-scan-fields", "1000", Int(1, i64::MAX)),
    Param::new("active-defrag-threshold-lower", "10", Int(0, 1000)),
    Param::new("active-defrag-threshold-upper", "100", Int(0, 1000)),
    Param::new("active-expire-effort", "1", Int(1, 10)),
    Param::new("activedefrag", "no", Bool),
    Param::new("activerehashing", "yes", Bool),
    Param::new("always-show-logo", "no", FixedBool),
    Param::new("aof-disable-auto-gc", "no", Bool).hidden_since_7_2(),
    Param::new("aof-load-corrupt-tail-max-size", "0", Int(0, i64::MAX)).since("8.6.0", ""),
    Param::new("aof-load-truncated", "yes", Bool),
    Param::new("aof-rewrite-cpulist", "", Fixed).since_7_2(),
    Param::new("aof-rewrite-incremental-fsync", "yes", Bool),
    Param::new("aof-timestamp-enabled", "no", Bool),
    Param::new("aof-use-rdb-preamble", "yes", Bool),
    Param::new("aof_rewrite_cpulist", "", Fixed),
    Param::new("appenddirname", "appendonlydir", Fixed),
    Param::new("appendfilename", "appendonly.aof", Fixed),
    Param::new("appendfsync", "everysec", Choice(&["everysec", "always", "no"])),
    Param::new("appendonly", "no", Bool),
    Param::new("auto-aof-rewrite-min-size", "67108864", Memory(0)),
    Param::new("auto-aof-rewrite-percentage", "100", Int(0, INT_MAX)),
    Param::new("availability-zone", "", Text).since(NEVER, "8.0.0"),
    Param::new("bgsave-cpulist", "", Fixed).since_7_2(),
    Param::new("bgsave_cpulist", "", Fixed),
    Param::new("bind", "127.0.0.1", Fixed),
    Param::new("bind-source-addr", "", Text),
    Param::new("bio-cpulist", "", Fixed).since_7_2(),
    Param::new("bio_cpulist", "", Fixed),
    Param::new("busy-reply-threshold", "5000", Int(0, i64::MAX)),
    Param::new(
        "client-output-buffer-limit",
        "normal 0 0 0 slave 268435456 67108864 60 pubsub 33554432 8388608 60",
        OutputLimits,
    ),
    Param::new("client-query-buffer-limit", "1073741824", Memory(1 << 20)),
    Param::new("cluster-allow-pubsubshard-when-down", "yes", Bool),
    Param::new("cluster-allow-reads-when-down", "no", Bool),
    Param::new("cluster-allow-replica-migration", "yes", Bool),
    Param::new("cluster-announce-bus-port", "0", Int(0, 65535)),
    Param::new("cluster-announce-client-ipv4", "", Text).since(NEVER, "8.0.0"),
    Param::new("cluster-announce-client-ipv6", "", Text).since(NEVER, "8.0.0"),
    Param::new("cluster-announce-client-port", "0", Int(0, 65535)).since(NEVER, "9.1.0"),
    Param::new("cluster-announce-client-tls-port", "0", Int(0, 65535)).since(NEVER, "9.1.0"),
    Param::new("cluster-announce-hostname", "", Text),
    Param::new("cluster-announce-human-nodename", "", Text).since_7_2(),
    Param::new("cluster-announce-ip", "", Text),
    Param::new("cluster-announce-port", "0", Int(0, 65535)),
    Param::new("cluster-announce-tls-port", "0", Int(0, 65535)),
    Param::new("cluster-blacklist-ttl", "60", Int(i64::MIN, i64::MAX)).since(NEVER, "8.0.0"),
    Param::new("cluster-compatibility-sample-ratio", "0", Int(0, 100)).since("8.0.0", ""),
    Param::new("cluster-config-file", "nodes.conf", Fixed),
    Param::new("cluster-config-save-behavior", "sync", Choice(&["sync", "best-effort"]))
        .since(NEVER, "9.1.0"),
    Param::new("cluster-databases", "1", Fixed).since(NEVER, "9.0.0"),
    Param::new("cluster-enabled", "no", FixedBool),
    Param::new("cluster-link-sendbuf-limit", "0", UnsignedMemory),
    Param::new("cluster-manual-failover-timeout", "5000", Int(1, INT_MAX)).since(NEVER, "8.0.0"),
    Param::new("cluster-migration-barrier", "1", Int(0, INT_MAX)),
    Param::new("cluster-node-timeout", "15000", Int(0, i64::MAX)),
    Param::new("cluster-port", "0", Fixed),
    Param::new("cluster-preferred-endpoint-type", "ip", Choice(&["ip", "hostname", "unknown-endpoint"])),
    Param::new("cluster-replica-no-failover", "no", Bool),
    Param::new("cluster-replica-validity-factor", "10", Int(0, INT_MAX)),
    Param::new("cluster-require-full-coverage", "yes", Bool),
    Param::new("cluster-slave-no-failover", "no", Alias("cluster-replica-no-failover")),
    Param::new("cluster-slave-validity-factor", "10", Alias("cluster-replica-validity-factor")),
    Param::new("cluster-slot-migration-handoff-max-lag-bytes", "1048576", Memory(0)).since("8.4.0", ""),
    Param::new("cluster-slot-migration-log-max-len", "1000", Int(0, i64::MAX)).since(NEVER, "9.0.0"),
    Param::new("cluster-slot-migration-write-pause-timeout", "10000", Int(0, i64::MAX)).since("8.4.0", ""),
    Param::new("cluster-slot-stats-enabled", "no", Words(&["no", "yes", "cpu", "net", "mem"]))
        .since("8.2.0", NEVER),
    Param::new("cluster-slot-stats-enabled", "no", Bool).since(NEVER, "8.0.0"),
    Param::new("commandlog-execution-slower-than", "10000", Alias("slowlog-log-slower-than"))
        .since(NEVER, "8.0.0"),
    Param::new("commandlog-large-reply-max-len", "128", Int(0, i64::MAX)).since(NEVER, "8.0.0"),
    Param::new("commandlog-large-request-max-len", "128", Int(0, i64::MAX)).since(NEVER, "8.0.0"),
    Param::new("commandlog-reply-larger-than", "1048576", Int(-1, i64::MAX)).since(NEVER, "8.0.0"),
    Param::new("commandlog-request-larger-than", "1048576", Int(-1, i64::MAX)).since(NEVER, "8.0.0"),
    Param::new("commandlog-slow-execution-max-len", "128", Alias("slowlog-max-len")).since(NEVER, "8.0.0"),
    Param::new("crash-log-enabled", "yes", Bool),
    Param::new("crash-memcheck-enabled", "yes", Bool),
    Param::new("daemonize", "no", FixedBool),
    Param::new("databases", "16", Fixed),
    Param::new("dbfilename", "dump.rdb", Protected),
    Param::new("dir", ".", Fixed),
    Param::new("disable-thp", "yes", FixedBool),
    Param::new("dual-channel-replication-enabled", "no", Bool).since(NEVER, "8.0.0"),
    Param::new("dynamic-hz", "yes", Bool).until(NEVER, "8.1.0"),
    Param::new("enable-debug-command", "no", FixedChoice(&["no", "yes", "local"])),
    Param::new("enable-module-command", "no", Fixed),
    Param::new("enable-protected-configs", "no", Fixed),
    Param::new("extended-redis-compatibility", "no", Bool).since(NEVER, "8.0.0"),
    Param::new("hash-max-listpack-entries", "512", Int(0, i64::MAX)),
    Param::new("hash-max-listpack-value", "64", Memory(0)),
    Param::new("hash-max-ziplist-entries", "512", Alias("hash-max-listpack-entries")),
    Param::new("hash-max-ziplist-value", "64", Alias("hash-max-listpack-value")),
    Param::new("hash-seed", "", Fixed).since(NEVER, "9.0.0"),
    Param::new("hide-user-data-from-log", "no", Bool).since_7_2().valkey_default("yes"),
    Param::new("hll-sparse-max-bytes", "3000", Memory(0)),
    Param::new("hz", "10", Int(0, INT_MAX)),
    Param::new("ignore-warnings", "", Text),
    Param::new("import-mode", "no", Bool).since(NEVER, "8.0.0"),
    Param::new("io-threads", "1", Fixed),
    Param::new("io-threads-do-reads", "no", Fixed).until("8.0.0", "8.1.0"),
    Param::new("jemalloc-bg-thread", "yes", Bool),
    Param::new("key-memory-histograms", "no", Bool).since("8.6.0", ""),
    Param::new("latency-monitor-threshold", "0", Int(0, i64::MAX)),
    Param::new("latency-tracking", "yes", Bool),
    Param::new("latency-tracking-info-percentiles", "50 99 99.9", Text),
    Param::new("lazyfree-lazy-eviction", "no", Bool).valkey_default("yes"),
    Param::new("lazyfree-lazy-expire", "no", Bool).valkey_default("yes"),
    Param::new("lazyfree-lazy-server-del", "no", Bool).valkey_default("yes"),
    Param::new("lazyfree-lazy-user-del", "no", Bool).valkey_default("yes"),
    Param::new("lazyfree-lazy-user-flush", "no", Bool).valkey_default("yes"),
    Param::new("lfu-decay-time", "1", Int(0, INT_MAX)),
    Param::new("lfu-log-factor", "10", Int(0, INT_MAX)),
    Param::new("list-compress-depth", "0", Int(0, INT_MAX)),
    Param::new("list-max-listpack-size", "-2", Int(-INT_MAX - 1, INT_MAX)),
    Param::new("list-max-ziplist-size", "-2", Alias("list-max-listpack-size")),
    Param::new("locale-collate", "", Text).since_7_2(),
    Param::new("log-format", "legacy", Choice(&["legacy", "logfmt"]))
        .since(NEVER, "8.0.0")
        .until(NEVER, "9.1.0"),
    Param::new("log-format", "legacy", Choice(&["legacy", "logfmt", "json"])).since(NEVER, "9.1.0"),
    Param::new("log-timestamp-format", "legacy", Choice(&["legacy", "iso8601", "milliseconds"]))
        .since(NEVER, "8.0.0"),
    Param::new("logfile", "", Fixed),
    Param::new("loglevel", "notice", Choice(&["debug", "verbose", "notice", "warning", "nothing"])),
    Param::new("lookahead", "16", Int(1, INT_MAX)).since("8.4.0", ""),
    Param::new("lua-time-limit", "5000", Alias("busy-reply-threshold")),
    Param::new("masterauth", "", Text),
    Param::new("masteruser", "", Text),
    Param::new("max-new-connections-per-cycle", "10", Int(1, 1000)).since_7_2(),
    Param::new("max-new-tls-connections-per-cycle", "1", Int(1, 1000)).since_7_2(),
    Param::new("maxclients", "10000", Int(1, 4294967295)),
    Param::new("maxmemory", "0", UnsignedMemory),
    Param::new("maxmemory-clients", "0", MemoryOrPercent),
    Param::new("maxmemory-eviction-tenacity", "10", Int(0, 100)),
    Param::new(
        "maxmemory-policy",
        "noeviction",
        Choice(&[
            "volatile-lru",
            "volatile-lfu",
            "volatile-random",
            "volatile-ttl",
            "allkeys-lru",
            "allkeys-lfu",
            "allkeys-random",
            "noeviction",
        ]),
    )
    .until("8.6.0", ""),
    Param::new(
        "maxmemory-policy",
        "noeviction",
        Choice(&[
            "volatile-lru",
            "volatile-lfu",
            "volatile-random",
            "volatile-ttl",
            "volatile-lrm",
            "allkeys-lru",
            "allkeys-lfu",
            "allkeys-random",
            "allkeys-lrm",
            "noeviction",
        ]),
    )
    .since("8.6.0", NEVER),
    Param::new("maxmemory-samples", "5", Int(1, INT_MAX)).until("7.2.0", ""),
    Param::new("maxmemory-samples", "5", Int(1, 64)).since_7_2(),
    Param::new("min-replicas-max-lag", "10", Int(0, INT_MAX)),
    Param::new("min-replicas-to-write", "0", Int(0, INT_MAX)),
    Param::new("min-slaves-max-lag", "10", Alias("min-replicas-max-lag")),
    Param::new("min-slaves-to-write", "0", Alias("min-replicas-to-write")),
    Param::new("mptcp", "no", Fixed).since(NEVER, "9.0.0"),
    Param::new("no-appendfsync-on-rewrite", "no", Bool),
    Param::new("notify-keyspace-events", "", KeyspaceEvents(Class::SINCE_8_2)).until("8.2.0", ""),
    Param::new("notify-keyspace-events", "", KeyspaceEvents(Class(0))).since("8.2.0", NEVER),
    Param::new("oom-score-adj", "no", Choice(&["no", "yes", "relative", "absolute"])),
    Param::new("oom-score-adj-values", "0 200 800", Text),
    Param::new("pidfile", "", Fixed),
    Param::new("port", "6379", Fixed),
    Param::new("prefetch-batch-max-size", "16", Int(0, 128)).since(NEVER, "8.0.0"),
    Param::new("primaryauth", "", Alias("masterauth")).since(NEVER, "8.0.0"),
    Param::new("primaryuser", "", Alias("masteruser")).since(NEVER, "8.0.0"),
    Param::new("proc-title-template", "{title} {listen-addr} {server-mode}", Text),
    Param::new("propagation-error-behavior", "ignore", Choice(&["ignore", "panic", "panic-on-replicas"])),
    Param::new("protected-mode", "yes", Bool),
    Param::new("proto-max-bulk-len", "536870912", Memory(1 << 20)),
    Param::new("rdb-del-sync-files", "no", Bool),
    Param::new("rdb-save-incremental-fsync", "yes", Bool),
    Param::new("rdb-version-check", "strict", Choice(&["strict", "relaxed"])).since(NEVER, "8.0.0"),
    Param::new("rdbchecksum", "yes", Fixed),
    Param::new("rdbcompression", "yes", Bool),
    Param::new("rdma-bind", "", Fixed).since(NEVER, "8.0.0"),
    Param::new("rdma-completion-vector", "-1", Fixed).since(NEVER, "8.0.0"),
    Param::new("rdma-port", "0", Int(0, 65535)).since(NEVER, "8.0.0"),
    Param::new("rdma-rx-size", "1048576", Fixed).since(NEVER, "8.0.0"),
    Param::new("repl-backlog-size", "1048576", Memory(1)).valkey_default("10485760"),
    Param::new("repl-backlog-ttl", "3600", Int(0, i64::MAX)),
    Param::new("repl-disable-tcp-nodelay", "no", Bool),
    Param::new("repl-diskless-load", "disabled", Choice(&["disabled", "on-empty-db", "swapdb"]))
        .until("8.0.0", "8.1.0"),
    Param::new("repl-diskless-load", "disabled", Choice(&["disabled", "on-empty-db", "swapdb", "flushdb"]))
        .since("8.0.0", NEVER),
    Param::new(
        "repl-diskless-load",
        "disabled",
        Choice(&["disabled", "on-empty-db", "swapdb", "flush-before-load"]),
    )
    .since(NEVER, "8.1.0"),
    Param::new("repl-diskless-sync", "yes", Bool),
    Param::new("repl-diskless-sync-delay", "5", Int(0, INT_MAX)),
    Param::new("repl-diskless-sync-max-replicas", "0", Int(0, INT_MAX)),
    Param::new("repl-mptcp", "no", Fixed).since(NEVER, "9.0.0"),
    Param::new("repl-ping-replica-period", "10", Int(1, INT_MAX)),
    Param::new("repl-ping-slave-period", "10", Alias("repl-ping-replica-period")),
    Param::new("repl-timeout", "60", Int(1, INT_MAX)),
    Param::new("replica-announce-ip", "", Text),
    Param::new("replica-announce-port", "0", Int(0, 65535)),
    Param::new("replica-announced", "yes", Bool),
    Param::new("replica-full-sync-buffer-limit", "0", Memory(0)).since("8.0.0", ""),
    Param::new("replica-ignore-disk-write-errors", "no", Bool),
    Param::new("replica-ignore-maxmemory", "yes", Bool),
    Param::new("replica-lazy-flush", "no", Bool).valkey_default("yes"),
    Param::new("replica-priority", "100", Int(0, INT_MAX)),
    Param::new("replica-read-only", "yes", Bool),
    Param::new("replica-serve-stale-data", "yes", Bool),
    Param::new("replicaof", "", Fixed),
    Param::new("requirepass", "", Text),
    Param::new("sanitize-dump-payload", "no", Choice(&["no", "yes", "clients"])).until(NEVER, "9.1.0"),
    Param::new("save", "3600 1 300 100 60 10000", SavePoints),
    Param::new("server-cpulist", "", Fixed).since_7_2(),
    Param::new("server_cpulist", "", Fixed),
    Param::new("set-max-intset-entries", "512", Int(0, i64::MAX)),
    Param::new("set-max-listpack-entries", "128", Int(0, i64::MAX)).since_7_2(),
    Param::new("set-max-listpack-value", "64", Int(0, i64::MAX)).since_7_2(),
    Param::new("set-proc-title", "yes", FixedBool),
    Param::new("shutdown-on-sigint", "default", Words(&["default", "save", "nosave", "now", "force"]))
        .until(NEVER, "9.0.0"),
    Param::new(
        "shutdown-on-sigint",
        "default",
        Words(&["default", "save", "nosave", "now", "force", "safe", "failover"]),
    )
    .since(NEVER, "9.0.0"),
    Param::new("shutdown-on-sigterm", "default", Words(&["default", "save", "nosave", "now", "force"]))
        .until(NEVER, "9.0.0"),
    Param::new(
        "shutdown-on-sigterm",
        "default",
        Words(&["default", "save", "nosave", "now", "force", "safe", "failover"]),
    )
    .since(NEVER, "9.0.0"),
    Param::new("shutdown-timeout", "10", Int(0, INT_MAX)),
    Param::new("slave-announce-ip", "", Alias("replica-announce-ip")),
    Param::new("slave-announce-port", "0", Alias("replica-announce-port")),
    Param::new("slave-ignore-maxmemory", "yes", Alias("replica-ignore-maxmemory")),
    Param::new("slave-lazy-flush", "no", Alias("replica-lazy-flush")),
    Param::new("slave-priority", "100", Alias("replica-priority")),
    Param::new("slave-read-only", "yes", Alias("replica-read-only")),
    Param::new("slave-serve-stale-data", "yes", Alias("replica-serve-stale-data")),
    Param::new("slaveof", "", Alias("replicaof")),
    Param::new("slot-migration-max-failover-repl-bytes", "0", Memory(0)).since(NEVER, "9.1.0"),
    Param::new("slowlog-log-slower-than", "10000", Int(-1, i64::MAX)),
    Param::new("slowlog-max-len", "128", Int(0, i64::MAX)),
    Param::new("socket-mark-id", "0", Fixed),
    Param::new("stop-writes-on-bgsave-error", "yes", Bool),
    Param::new("stream-idmp-duration", "100", Int(1, 86400)).since("8.6.0", ""),
    Param::new("stream-idmp-maxsize", "100", Int(1, 10_000)).since("8.6.0", ""),
    Param::new("stream-node-max-bytes", "4096", Memory(0)),
    Param::new("stream-node-max-entries", "100", Int(0, i64::MAX)),
    Param::new("supervised", "no", FixedChoice(&["upstart", "systemd", "auto", "no"])),
    Param::new("syslog-enabled", "no", FixedBool),
    Param::new("syslog-facility", "local0", Fixed),
    Param::new("syslog-ident", "redis", Fixed).valkey_default("valkey"),
    Param::new("tcp-backlog", "511", Fixed),
    Param::new("tcp-keepalive", "300", Int(0, INT_MAX)),
    Param::new("timeout", "0", Int(0, INT_MAX)),
    Param::new("tls-auth-clients", "yes", Choice(&["no", "yes", "optional"])),
    Param::new("tls-auth-clients-user", "off", Choice(&["CN", "off"])).since("8.6.0", NEVER),
    Param::new("tls-auth-clients-user", "off", Choice(&["CN", "URI", "off"])).since(NEVER, "9.1.0"),
    Param::new("tls-auto-reload-interval", "0", Int(0, INT_MAX)).since(NEVER, "9.1.0"),
    Param::new("tls-ca-cert-dir", "", Text),
    Param::new("tls-ca-cert-file", "", Text),
    Param::new("tls-cert-file", "", Text),
    Param::new("tls-ciphers", "", Text),
    Param::new("tls-ciphersuites", "", Text),
    Param::new("tls-client-cert-file", "", Text),
    Param::new("tls-client-key-file", "", Text),
    Param::new("tls-client-key-file-pass", "", Text),
    Param::new("tls-cluster", "no", Bool),
    Param::new("tls-dh-params-file", "", Text),
    Param::new("tls-key-file", "", Text),
    Param::new("tls-key-file-pass", "", Text),
    Param::new("tls-port", "0", Int(0, 65535)),
    Param::new("tls-prefer-server-ciphers", "no", Bool),
    Param::new("tls-protocols", "", Text),
    Param::new("tls-replication", "no", Bool),
    Param::new("tls-session-cache-size", "20480", Int(0, INT_MAX)),
    Param::new("tls-session-cache-timeout", "300", Int(0, INT_MAX)),
    Param::new("tls-session-caching", "yes", Bool),
    Param::new("tracking-table-max-keys", "1000000", Int(0, i64::MAX)),
    Param::new("unixsocket", "", Fixed),
    Param::new("unixsocketgroup", "", Fixed).since(NEVER, "8.0.0"),
    Param::new("unixsocketperm", "0", Fixed),
    Param::new("vset-force-single-threaded-execution", "no", Bool).since("8.2.0", ""),
    Param::new("zset-max-listpack-entries", "128", Int(0, i64::MAX)),
    Param::new("zset-max-listpack-value", "64", Memory(0)),
    Param::new("zset-max-ziplist-entries", "128", Alias("zset-max-listpack-entries")),
    Param::new("zset-max-ziplist-value", "64", Alias("zset-max-listpack-value")),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn param(name: &str) -> &'static Param {
        PARAMS.iter().find(|param| param.name == name).unwrap()
    }

    #[test]
    fn values_are_checked_and_made_canonical() {
        assert_eq!(param("maxmemory").parse(b"10mb", "0", Version::V7_4), Ok("10485760".into()));
        assert_eq!(param("appendonly").parse(b"YES", "no", Version::V7_4), Ok("yes".into()));
        assert!(param("maxclients").parse(b"0", "1", Version::V7_4).is_err());
        let limits = param("client-output-buffer-limit");
        assert_eq!(
            limits.parse(b"pubsub 1mb 0 0", limits.default_in(Version::V7_4), Version::V7_4).unwrap(),
            "normal 0 0 0 slave 268435456 67108864 60 pubsub 1048576 0 0"
        );
    }

    #[test]
    fn every_alias_names_a_parameter() {
        for row in PARAMS {
            if let Alias(other) = row.kind {
                assert!(!matches!(param(other).kind, Alias(_)), "{}", row.name);
            }
        }
    }
}
