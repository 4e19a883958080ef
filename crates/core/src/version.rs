//! The releases of Redis and Valkey that the server can emulate.

/// A release line. `version >= Version::V7_2` reads as "since Redis 7.2".
///
/// Valkey went its own way after Redis 7.2, so its lines stand between 7.2 and 7.4: they have what Redis had until then
/// and nothing of what came later, unless a row or a handler says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Version {
    V7_0,
    V7_2,
    Valkey8_1,
    Valkey9_0,
    Valkey9_1,
    Valkey9_2,
    V7_4,
    V8_0,
    V8_2,
    V8_4,
    V8_6,
    V8_8,
    V8_10,
}

impl Version {
    pub const ALL: [Version; 13] = [
        Version::V7_0,
        Version::V7_2,
        Version::Valkey8_1,
        Version::Valkey9_0,
        Version::Valkey9_1,
        Version::Valkey9_2,
        Version::V7_4,
        Version::V8_0,
        Version::V8_2,
        Version::V8_4,
        Version::V8_6,
        Version::V8_8,
        Version::V8_10,
    ];

    /// The release that is emulated unless another is asked for.
    pub const DEFAULT: Version = Version::V8_6;

    /// Returns the exact release whose details are followed, as `INFO` and `HELLO` report it.
    pub const fn full(self) -> &'static str {
        match self {
            Version::V7_0 => "7.0.15",
            Version::V7_2 => "7.2.6",
            Version::Valkey8_1 => "8.1.8",
            Version::Valkey9_0 => "9.0.0",
            Version::Valkey9_1 => "9.1.2",
            Version::Valkey9_2 => "9.2.0",
            Version::V7_4 => "7.4.1",
            Version::V8_0 => "8.0.6",
            Version::V8_2 => "8.2.0",
            Version::V8_4 => "8.4.0",
            Version::V8_6 => "8.6.3",
            Version::V8_8 => "8.8.0",
            Version::V8_10 => "8.10.0",
        }
    }

    pub const fn is_valkey(self) -> bool {
        matches!(self, Version::Valkey8_1 | Version::Valkey9_0 | Version::Valkey9_1 | Version::Valkey9_2)
    }

    /// Returns whether this is a line of Valkey, `first` or a later one. Lines of Redis compare greater too.
    pub fn is_valkey_since(self, first: Version) -> bool {
        self.is_valkey() && self >= first
    }

    /// Returns the product's own name, as `INFO` and `HELLO` report it.
    pub const fn product(self) -> &'static str {
        if self.is_valkey() { "valkey" } else { "redis" }
    }

    /// Returns the product and the release for people, such as `Valkey 9.1.2`.
    pub fn title(self) -> String {
        format!("{} {}", if self.is_valkey() { "Valkey" } else { "Redis" }, self.full())
    }

    /// Returns the release of Redis that clients and scripts are told. All of Valkey says 7.2.4.
    pub const fn redis_release(self) -> &'static str {
        if self.is_valkey() { "7.2.4" } else { self.full() }
    }

    /// Returns the product's release as scripts see it, for example in `redis.REDIS_VERSION_NUM`: `0x00MMmmpp`.
    pub const fn number(self) -> u32 {
        release_number(self.full())
    }

    /// Returns the number of the first release of the line of Redis: `0x00MMmm00`.
    pub const fn first_redis_number(self) -> u32 {
        release_number(self.redis_release()) & !0xff
    }

    /// Returns whether something that came with these releases of Redis and of Valkey is there. An empty release of Valkey
    /// means that Valkey has it if it came with Redis before the two parted.
    pub const fn has(self, since_redis: &str, since_valkey: &str) -> bool {
        if self.is_valkey() && !since_valkey.is_empty() {
            release_number(since_valkey) <= self.number()
        } else {
            release_number(since_redis) <= release_number(self.redis_release())
        }
    }

    /// Returns whether what the release answers was compared with a server of its line, or of lines on both sides of it.
    pub const fn is_verified(self) -> bool {
        !matches!(self, Version::V8_8 | Version::V8_10 | Version::Valkey9_2)
    }
}

/// The release of a product that never had something.
pub const NEVER: &str = "255";

/// Returns a release such as `7.0.15` as `0x00MMmmpp`, so that 8.10 is later than 8.6.
pub const fn release_number(text: &str) -> u32 {
    let (text, mut parts, mut part, mut at) = (text.as_bytes(), [0u32; 3], 0, 0);
    while at < text.len() {
        match text[at] {
            b'.' => part += 1,
            digit => parts[part] = parts[part] * 10 + (digit - b'0') as u32,
        }
        at += 1;
    }
    parts[0] << 16 | parts[1] << 8 | parts[2]
}

/// The name of a release that cannot be emulated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownVersion(pub String);

impl std::fmt::Display for UnknownVersion {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names = Version::ALL.map(|version| version.to_string());
        write!(f, "'{}' is not one of {}", self.0, names.join(", "))
    }
}

impl std::error::Error for UnknownVersion {}

/// Reads a line such as `8.6` or `valkey-9.1`.
impl std::str::FromStr for Version {
    type Err = UnknownVersion;

    fn from_str(text: &str) -> Result<Self, UnknownVersion> {
        let found = Version::ALL.into_iter().find(|version| version.to_string() == text);
        found.ok_or_else(|| UnknownVersion(text.to_owned()))
    }
}

impl std::fmt::Display for Version {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.is_valkey() {
            f.write_str("valkey-")?;
        }
        let line: Vec<&str> = self.full().split('.').take(2).collect();
        f.write_str(&line.join("."))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_compare_as_numbers() {
        assert!(release_number("8.10.0") > release_number("8.6.3"));
        assert!(release_number("7.0.15") > release_number("7.0"));
        for version in Version::ALL {
            assert_eq!(version.to_string().parse(), Ok(version));
        }
    }

    #[test]
    fn later_lines_compare_greater_within_a_product() {
        for pair in Version::ALL.windows(2) {
            assert!(pair[0] < pair[1]);
            if pair[0].is_valkey() == pair[1].is_valkey() {
                assert!(pair[0].number() < pair[1].number());
            }
        }
    }

    #[test]
    fn valkey_has_what_redis_had_until_they_parted() {
        assert!(Version::Valkey9_1.has("7.2.0", "") && !Version::Valkey9_1.has("7.4.0", ""));
        assert!(Version::Valkey9_1.has("7.4.0", "9.0.0") && !Version::Valkey8_1.has("7.4.0", "9.0.0"));
        assert!(Version::Valkey9_1.has(NEVER, "9.0.0") && !Version::V8_10.has(NEVER, "9.0.0"));
    }
}
