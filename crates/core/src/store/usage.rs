//! What an entry remembers of its use, for the policies that evict keys: the last use, or how often it was used.

/// Minutes are kept in 16 bits.
const MINUTES: u64 = 1 << 16;
/// The counter of a new key: it must not look less used than keys whose counters have decayed.
const NEW: u8 = 5;

/// The time of the last use, or a counter of uses with the time of its last decay. The policy says which: like Redis, an
/// entry keeps its bits when the policy changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage(u32);

/// The settings of the counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decay {
    /// The larger, the more uses a counter of 255 stands for (`lfu-log-factor`).
    pub log_factor: u32,
    /// The minutes after which a counter loses one (`lfu-decay-time`), or 0 if counters do not decay.
    pub minutes: u32,
}

impl Usage {
    /// Returns the usage of a key that was last used at this monotonic time in seconds.
    pub fn at(used_at_s: u32) -> Usage {
        Usage(used_at_s)
    }

    /// Returns the usage with these bits.
    pub fn from_bits(bits: u32) -> Usage {
        Usage(bits)
    }

    /// Returns the bits, whose meaning depends on the policy.
    pub fn bits(self) -> u32 {
        self.0
    }

    /// Returns the usage of a key whose counter is `count` at this monotonic time in seconds.
    pub fn counted(count: u8, now_s: u32) -> Usage {
        Usage((minute(now_s) as u32) << 8 | count as u32)
    }

    /// Returns the usage of a new key whose uses are counted.
    pub fn new_counted(now_s: u32) -> Usage {
        Usage::counted(NEW, now_s)
    }

    /// Returns the monotonic time of the last use in seconds.
    pub fn used_at_s(self) -> u32 {
        self.0
    }

    /// Returns the counter, decayed to this monotonic time in seconds.
    pub fn count(self, now_s: u32, decay: Decay) -> u8 {
        let decayed_at = (self.0 >> 8) as u16;
        let passed = minute(now_s).wrapping_sub(decayed_at) as u32;
        let lost = passed.checked_div(decay.minutes).unwrap_or(0);
        (self.0 as u8).saturating_sub(lost.min(u8::MAX as u32) as u8)
    }

    /// Returns the usage after one more use. A counter grows with a probability that falls as it rises; `draw` decides.
    pub fn counted_once_more(self, now_s: u32, decay: Decay, draw: u64) -> Usage {
        let count = self.count(now_s, decay);
        let above = count.saturating_sub(NEW) as u128;
        let grows = u128::from(draw) * (above * u128::from(decay.log_factor) + 1) <= u128::from(u64::MAX);
        Usage::counted(count.saturating_add(grows as u8), now_s)
    }
}

fn minute(now_s: u32) -> u16 {
    (u64::from(now_s) / 60 % MINUTES) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    const DECAY: Decay = Decay { log_factor: 10, minutes: 1 };

    #[test]
    fn a_counter_decays_by_the_minute() {
        let usage = Usage::counted(100, 600);
        assert_eq!(usage.count(659, DECAY), 100);
        assert_eq!(usage.count(660, DECAY), 99);
        assert_eq!(usage.count(600 + 60 * 40, DECAY), 60);
        assert_eq!(usage.count(600 + 60 * 400, DECAY), 0);
        assert_eq!(usage.count(6000, Decay { minutes: 0, ..DECAY }), 100);
    }

    #[test]
    fn a_counter_grows_ever_more_slowly() {
        let mut rng = crate::rng::Rng::new(1);
        let mut usage = Usage::new_counted(0);
        usage = usage.counted_once_more(0, DECAY, rng.next_u64());
        assert_eq!(usage.count(0, DECAY), 6, "the first use always counts");
        let mut count_after = |uses: usize| {
            (0..uses).for_each(|_| usage = usage.counted_once_more(0, DECAY, rng.next_u64()));
            usage.count(0, DECAY)
        };
        // Redis's documentation gives 10 after 100 uses, 18 after 1,000 and 142 after 100,000 for this factor.
        assert!((7..=14).contains(&count_after(99)));
        assert!((14..=24).contains(&count_after(900)));
        assert!((130..=155).contains(&count_after(99_000)));
    }
}
