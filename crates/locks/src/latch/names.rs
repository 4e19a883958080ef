//! The keys and arguments of a count-down latch.

use super::roles::TRY_SET;
use crate::binding::{Arguments, COUNT, MESSAGE};
use crate::model::Names;

pub const ARGUMENTS: Arguments = Arguments {
    passed_args: &[
        ("count", COUNT),
        ("zeroCountMessage", MESSAGE),
        ("ZERO_COUNT_MESSAGE", MESSAGE),
        ("newCountMessage", MESSAGE),
        ("NEW_COUNT_MESSAGE", MESSAGE),
    ],
    args_of: &[(TRY_SET, "'set',KEYS[1],ARGV[", COUNT)],
    ..Arguments::COMMON
};

/// Returns the names of the latch.
pub fn names() -> Names {
    Names::with_channel("my:latch", "redisson_countdownlatch__channel__{my:latch}".to_owned())
}
