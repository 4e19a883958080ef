//! The Redis releases that the server can emulate.

/// A Redis release line. Later lines compare greater, so `version >= Version::V7_2` reads as "since 7.2".
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Version {
    V7_0,
    V7_2,
    V7_4,
}

impl Version {
    pub const ALL: [Version; 3] = [Version::V7_0, Version::V7_2, Version::V7_4];

    /// Returns the exact release whose details are followed, as `INFO` and `HELLO` report it.
    pub fn full(self) -> &'static str {
        match self {
            Version::V7_0 => "7.0.15",
            Version::V7_2 => "7.2.6",
            Version::V7_4 => "7.4.1",
        }
    }

    /// Returns the release as scripts see it in `redis.REDIS_VERSION_NUM`: `0x00MMmmpp`.
    pub const fn number(self) -> u32 {
        match self {
            Version::V7_0 => 0x0007_000f,
            Version::V7_2 => 0x0007_0206,
            Version::V7_4 => 0x0007_0401,
        }
    }

    /// Returns the number of the first release of the line: `0x00MMmm00`.
    pub fn first_number(self) -> u32 {
        self.number() & !0xff
    }
}

/// Returns a release such as `7.0.15` as `0x00MMmmpp`, so that 8.10 is later than 8.6. This is on the way of every request.
pub fn release_number(text: &str) -> u32 {
    let (mut parts, mut at) = ([0u32; 3], 0);
    for &byte in text.as_bytes() {
        match byte {
            b'.' => at += 1,
            _ => parts[at] = parts[at] * 10 + u32::from(byte - b'0'),
        }
    }
    parts[0] << 16 | parts[1] << 8 | parts[2]
}

/// The name of a release that cannot be emulated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownVersion(pub String);

impl std::fmt::Display for UnknownVersion {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "'{}' is not one of 7.0, 7.2, 7.4", self.0)
    }
}

impl std::error::Error for UnknownVersion {}

impl std::str::FromStr for Version {
    type Err = UnknownVersion;

    fn from_str(text: &str) -> Result<Self, UnknownVersion> {
        match text {
            "7.0" => Ok(Version::V7_0),
            "7.2" => Ok(Version::V7_2),
            "7.4" => Ok(Version::V7_4),
            _ => Err(UnknownVersion(text.to_owned())),
        }
    }
}

impl std::fmt::Display for Version {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
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
        assert_eq!(Version::V7_4.to_string().parse(), Ok(Version::V7_4));
    }

    #[test]
    fn number_packs_the_three_parts_into_bytes() {
        for version in Version::ALL {
            assert_eq!(version.number(), release_number(version.full()));
        }
    }
}
