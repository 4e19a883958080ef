//! What cannot be compared byte for byte, and why. This is the only place that says so.

/// How two replies to a command are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compare {
    Exactly,
    /// The parts may come in any order.
    AnyOrder,
    /// Numbers may differ by 100: they come from a clock.
    Nearly,
    /// The same kind of reply, of the same number of parts.
    Kind,
}

/// Commands that are not sent, with the reason.
pub const EXCLUDED: &[(&str, &str)] = &[
    ("spop", "Redis chooses at random"),
    ("srandmember", "Redis chooses at random"),
    ("hrandfield", "Redis chooses at random"),
    ("zrandmember", "Redis chooses at random"),
    ("randomkey", "Redis chooses at random"),
    ("time", "the clock of the machine"),
    ("lastsave", "the clock of the machine"),
    ("object|idletime", "the clock of the machine"),
    ("object|refcount", "tells what shares a number inside Redis"),
    ("object|freq", "a random counter"),
    ("dump", "holds hash tables in their order"),
    ("info", "figures of the process"),
    ("client|list", "figures of the process"),
    ("client|info", "figures of the process"),
    ("client|id", "counts the connections of a server's whole life"),
    ("client|getredir", "counts the connections of a server's whole life"),
    ("memory|usage", "figures of the memory allocator"),
    ("memory|stats", "figures of the memory allocator"),
    ("memory|malloc-stats", "figures of the memory allocator"),
    ("memory|doctor", "figures of the memory allocator"),
    ("memory|purge", "figures of the memory allocator"),
    ("slowlog|get", "which commands are slow depends on the machine"),
    ("slowlog|len", "which commands are slow depends on the machine"),
    ("latency|doctor", "which commands are slow depends on the machine"),
    ("latency|graph", "which commands are slow depends on the machine"),
    ("latency|histogram", "which commands are slow depends on the machine"),
    ("latency|history", "which commands are slow depends on the machine"),
    ("latency|latest", "which commands are slow depends on the machine"),
    ("latency|reset", "which commands are slow depends on the machine"),
    ("lolwut", "art"),
    ("monitor", "carries the time and the address of each client"),
    ("client|pause", "stops the clients that compare"),
    ("debug", "works on the process"),
    ("shutdown", "works on the process"),
    ("save", "writes to the disk"),
    ("bgsave", "writes to the disk"),
    ("bgrewriteaof", "writes to the disk"),
    ("config|rewrite", "writes to the disk"),
    ("command", "lists every command; Redlatch has those that locks and their tests need"),
    ("command|count", "counts every command"),
    ("command|list", "lists every command"),
    ("client|help", "Redlatch explains itself in its own words"),
    ("command|help", "Redlatch explains itself in its own words"),
    ("config|help", "Redlatch explains itself in its own words"),
    ("latency|help", "Redlatch explains itself in its own words"),
    ("memory|help", "Redlatch explains itself in its own words"),
    ("object|help", "Redlatch explains itself in its own words"),
    ("pubsub|help", "Redlatch explains itself in its own words"),
    ("script|help", "Redlatch explains itself in its own words"),
    ("slowlog|help", "Redlatch explains itself in its own words"),
    ("command|docs", "Redlatch explains itself in its own words"),
    ("script|debug", "turns the connection into a debugger"),
    ("script|kill", "is about scripts that run at that moment"),
];

/// Commands whose replies are compared less strictly, with the reason.
pub const RELAXED: &[(&str, Compare, &str)] = &[
    ("hgetall", Compare::AnyOrder, HASHED),
    ("hkeys", Compare::AnyOrder, HASHED),
    ("hvals", Compare::AnyOrder, HASHED),
    ("hscan", Compare::AnyOrder, HASHED),
    ("smembers", Compare::AnyOrder, HASHED),
    ("sscan", Compare::AnyOrder, HASHED),
    ("sdiff", Compare::AnyOrder, HASHED),
    ("sinter", Compare::AnyOrder, HASHED),
    ("sunion", Compare::AnyOrder, HASHED),
    ("zscan", Compare::AnyOrder, HASHED),
    ("sort", Compare::AnyOrder, "equal elements, and those of BY nosort, come in the order of a hash table"),
    (
        "sort_ro",
        Compare::AnyOrder,
        "equal elements, and those of BY nosort, come in the order of a hash table",
    ),
    ("keys", Compare::AnyOrder, "the order of the table of keys"),
    ("scan", Compare::AnyOrder, "the order of the table of keys"),
    ("pubsub|channels", Compare::AnyOrder, "the order of the table of channels"),
    ("pubsub|shardchannels", Compare::AnyOrder, "the order of the table of channels"),
    ("unsubscribe", Compare::AnyOrder, "without arguments: the order of the table of channels"),
    ("punsubscribe", Compare::AnyOrder, "without arguments: the order of the table of patterns"),
    ("sunsubscribe", Compare::AnyOrder, "without arguments: the order of the table of channels"),
    ("config|get", Compare::AnyOrder, "the order of the table of parameters"),
    ("ttl", Compare::Nearly, CLOCK),
    ("pttl", Compare::Nearly, CLOCK),
    ("expiretime", Compare::Nearly, CLOCK),
    ("pexpiretime", Compare::Nearly, CLOCK),
    ("httl", Compare::Nearly, CLOCK),
    ("hpttl", Compare::Nearly, CLOCK),
    ("hexpiretime", Compare::Nearly, CLOCK),
    ("hpexpiretime", Compare::Nearly, CLOCK),
    ("hello", Compare::Kind, "carries the number of the connection"),
];

/// Commands that answer with several messages or with none, so that the parts of an EXEC that has one of them cannot be told
/// apart: of that EXEC only the kind and the size are compared.
pub const UNFRAMED: &[&str] = &[
    "SUBSCRIBE",
    "UNSUBSCRIBE",
    "PSUBSCRIBE",
    "PUNSUBSCRIBE",
    "SSUBSCRIBE",
    "SUNSUBSCRIBE",
    "AUTH",
    "HELLO",
];

const HASHED: &str =
    "the order of a hash table; compact values are compared in order at the end of each round";
const CLOCK: &str = "read from a clock: numbers may differ by 100";

pub fn is_excluded(command: &str) -> bool {
    EXCLUDED.iter().any(|(name, _)| *name == command)
}

pub fn compare_of(command: &str) -> Compare {
    RELAXED.iter().find(|(name, ..)| *name == command).map_or(Compare::Exactly, |(_, compare, _)| *compare)
}

/// Both lists as tables for the documentation.
pub fn as_markdown() -> String {
    let name = |name: &str| format!("`{}`", name.to_ascii_uppercase().replace('|', " "));
    let mut text = String::from("| not sent | because |\n|---|---|\n");
    for (command, reason) in EXCLUDED {
        text += &format!("| {} | {reason} |\n", name(command));
    }
    text += "\n| compared less strictly | how | because |\n|---|---|---|\n";
    for (command, compare, reason) in RELAXED {
        let how = match compare {
            Compare::Exactly => "byte for byte",
            Compare::AnyOrder => "in any order",
            Compare::Nearly => "numbers ± 100",
            Compare::Kind => "kind and size",
        };
        text += &format!("| {} | {how} | {reason} |\n", name(command));
    }
    text
}
