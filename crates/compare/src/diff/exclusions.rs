//! The commands that cannot be compared byte for byte, and why. No other file makes exceptions.

/// How two replies to a command are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compare {
    Exactly,
    /// The elements may come in any order.
    AnyOrder,
    /// Numbers may differ by 100, because they come from a clock.
    Nearly,
    /// Only the type of the reply and its number of elements are compared, and errors.
    Kind,
}

/// The commands that are not sent, with the reason.
pub const EXCLUDED: &[(&str, &str)] = &[
    ("spop", "random choice"),
    ("info", "statistics of the process"),
    ("memory|stats", "statistics of the memory allocator"),
    ("memory|malloc-stats", "statistics of the memory allocator"),
    ("slowlog|get", "depends on the machine's speed"),
    ("slowlog|len", "depends on the machine's speed"),
    ("commandlog|get", "depends on the machine's speed"),
    ("commandlog|len", "depends on the machine's speed"),
    ("hotkeys|get", "depends on the machine's speed"),
    ("latency|histogram", "depends on the machine's speed"),
    ("monitor", "shows the time and the address of each client"),
    ("client|pause", "blocks the comparing clients"),
    ("psync", "acts on other servers"),
    ("sync", "acts on other servers"),
    ("save", "writes to the disk"),
    ("bgsave", "writes to the disk"),
    ("bgrewriteaof", "writes to the disk"),
    ("config|rewrite", "writes to the disk"),
    ("replconf", "may disconnect the client"),
    ("pfselftest", "takes a second"),
    ("command", "lists all commands, in hash-table order"),
    ("acl|log", "shows the time and the address of each client"),
    ("command|count", "counts all commands; there are no vector sets"),
    ("acl|help", "Redlatch has its own texts"),
    ("client|help", "Redlatch has its own texts"),
    ("command|help", "Redlatch has its own texts"),
    ("commandlog|help", "Redlatch has its own texts"),
    ("config|help", "Redlatch has its own texts"),
    ("cluster|help", "Redlatch has its own texts"),
    ("function|help", "Redlatch has its own texts"),
    ("hotkeys|help", "Redlatch has its own texts"),
    ("latency|help", "Redlatch has its own texts"),
    ("memory|help", "Redlatch has its own texts"),
    ("module|help", "Redlatch has its own texts"),
    ("object|help", "Redlatch has its own texts"),
    ("pubsub|help", "Redlatch has its own texts"),
    ("script|help", "Redlatch has its own texts"),
    ("slowlog|help", "Redlatch has its own texts"),
    ("xgroup|help", "Redlatch has its own texts"),
    ("xinfo|help", "Redlatch has its own texts"),
    ("command|docs", "Redlatch has its own texts"),
    ("script|debug", "switches the connection to the debugger"),
    ("script|kill", "depends on a script that is running"),
];

/// The commands whose replies are compared less strictly, with the reason.
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
    ("sort", Compare::AnyOrder, "equal elements, and all with BY nosort, come in hash-table order"),
    ("sort_ro", Compare::AnyOrder, "equal elements, and all with BY nosort, come in hash-table order"),
    ("keys", Compare::AnyOrder, "hash-table order of keys"),
    ("scan", Compare::AnyOrder, "hash-table order of keys"),
    ("function|list", Compare::AnyOrder, "hash-table order of libraries"),
    ("pubsub|channels", Compare::AnyOrder, "hash-table order of channels"),
    ("pubsub|shardchannels", Compare::AnyOrder, "hash-table order of channels"),
    ("unsubscribe", Compare::AnyOrder, "without arguments: hash-table order of channels"),
    ("punsubscribe", Compare::AnyOrder, "without arguments: hash-table order of patterns"),
    ("sunsubscribe", Compare::AnyOrder, "without arguments: hash-table order of channels"),
    ("config|get", Compare::AnyOrder, "hash-table order of parameters"),
    ("ttl", Compare::Nearly, CLOCK),
    ("pttl", Compare::Nearly, CLOCK),
    ("expiretime", Compare::Nearly, CLOCK),
    ("pexpiretime", Compare::Nearly, CLOCK),
    ("httl", Compare::Nearly, CLOCK),
    ("hpttl", Compare::Nearly, CLOCK),
    ("hexpiretime", Compare::Nearly, CLOCK),
    ("hpexpiretime", Compare::Nearly, CLOCK),
    ("xpending", Compare::Nearly, CLOCK),
    ("xreadgroup", Compare::Nearly, CLOCK),
    ("xinfo|consumers", Compare::Nearly, CLOCK),
    ("xinfo|stream", Compare::Nearly, CLOCK),
    ("hello", Compare::Kind, "contains the number of the connection"),
    ("acl|cat", Compare::AnyOrder, "hash-table order of commands"),
    ("command|list", Compare::AnyOrder, "hash-table order of commands"),
    ("srandmember", Compare::Kind, RANDOM),
    ("hrandfield", Compare::Kind, RANDOM),
    ("zrandmember", Compare::Kind, RANDOM),
    ("randomkey", Compare::Kind, RANDOM),
    ("acl|genpass", Compare::Kind, RANDOM),
    ("time", Compare::Kind, CLOCK),
    ("lastsave", Compare::Kind, CLOCK),
    ("object|idletime", Compare::Kind, CLOCK),
    ("object|refcount", Compare::Kind, "depends on integers that Redis shares internally"),
    ("object|freq", Compare::Kind, "a random counter"),
    ("dump", Compare::Kind, "contains hash tables in table order"),
    ("function|dump", Compare::Kind, "contains libraries in table order"),
    ("client|list", Compare::Kind, PROCESS),
    ("client|info", Compare::Kind, PROCESS),
    ("client|id", Compare::Kind, "counts all connections since the server started"),
    ("memory|usage", Compare::Kind, ALLOCATOR),
    ("memory|doctor", Compare::Kind, "Redlatch has its own texts"),
    ("latency|doctor", Compare::Kind, "Redlatch has its own texts"),
    ("lolwut", Compare::Kind, "version art"),
];

/// Commands that answer with several messages or with none. In the reply to an EXEC with one of them, the replies of single
/// commands cannot be told apart, so only the type and the size of that reply are compared.
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

const HASHED: &str = "hash-table order; compact values are compared in order at the end of each round";
const CLOCK: &str = "depends on a clock";
const RANDOM: &str = "random choice";
const PROCESS: &str = "statistics of the process";
const ALLOCATOR: &str = "statistics of the memory allocator";

/// Returns whether a command is not sent.
pub fn is_excluded(command: &str) -> bool {
    EXCLUDED.iter().any(|(name, _)| *name == command)
}

/// Returns how the replies to a command are compared.
pub fn compare_of(command: &str) -> Compare {
    RELAXED.iter().find(|(name, ..)| *name == command).map_or(Compare::Exactly, |(_, compare, _)| *compare)
}

/// Renders both lists as tables for the documentation.
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
            Compare::Kind => "type and size",
        };
        text += &format!("| {} | {how} | {reason} |\n", name(command));
    }
    text
}
