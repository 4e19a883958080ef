//! Which Redis release the server stands for.

/// A Redis release line. Later lines compare greater, so `version >= Version::V7_2` reads as "since 7.2".
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Version {
    V7_0,
    V7_2,
    V7_4,
}

impl Version {
    pub const ALL: [Version; 3] = [Version::V7_0, Version::V7_2, Version::V7_4];

    /// The exact release whose details are followed, as `INFO` and `HELLO` report it.
    pub fn full(self) -> &'static str {
        match self {
            Version::V7_0 => "7.0.15",
            Version::V7_2 => "7.2.6",
            Version::V7_4 => "7.4.1",
        }
    }

    /// The release as scripts see it in `redis.REDIS_VERSION_NUM`: `0x00MMmmpp`.
    pub fn number(self) -> u32 {
        let mut parts = self.full().split('.').map(|part| part.parse::<u32>().unwrap_or(0));
        parts.by_ref().take(3).fold(0, |number, part| number << 8 | part)
    }
}

impl std::str::FromStr for Version {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "7.0" => Ok(Version::V7_0),
            "7.2" => Ok(Version::V7_2),
            "7.4" => Ok(Version::V7_4),
            _ => Err(format!("'{text}' is not one of 7.0, 7.2, 7.4")),
        }
    }
}

impl std::fmt::Display for Version {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.full()[..3])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn number_packs_the_three_parts_into_bytes() {
        assert_eq!(Version::V7_0.number(), 0x0007_000f);
        assert_eq!(Version::V7_4.number(), 0x0007_0401);
    }
}
