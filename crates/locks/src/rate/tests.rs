//! Tests that the model of rate limiters reports violations, and only violations.

use super::model::RateLimiter;
use crate::invariant::Invariant;
use crate::model::Reply;
use crate::script_set::ScriptSet;
use crate::testing::{Keys, NO_MESSAGES};

fn one_in_five_seconds(keys: &mut Keys) {
    keys.set_hash("my:limiter", &[("rate", "1"), ("interval", "5000"), ("type", "0")], 60_000);
}

#[test]
fn no_more_is_granted_in_an_interval_than_the_rate() {
    for (ms, violated) in [(4_999, Some(Invariant::L1)), (5_000, None)] {
        let (mut keys, mut model) = (Keys::new(), RateLimiter::new(&ScriptSet::default()));
        one_in_five_seconds(&mut keys);
        let first = keys.judge(&mut model, ("acquire", 0, 0), (Reply::Nil, NO_MESSAGES), |_, _| {});
        keys.advance(ms);
        let second = keys.judge(&mut model, ("acquire", 1, 0), (Reply::Nil, NO_MESSAGES), |_, _| {});
        assert_eq!((first, second), (None, violated), "after {ms} ms");
    }
}

#[test]
fn who_is_refused_is_told_to_ask_again_within_the_interval() {
    for (told_ms, violated) in [(5_000, None), (0, Some(Invariant::L3)), (9_000, Some(Invariant::L3))] {
        let (mut keys, mut model) = (Keys::new(), RateLimiter::new(&ScriptSet::default()));
        one_in_five_seconds(&mut keys);
        let reply = (Reply::Int(told_ms), NO_MESSAGES);
        assert_eq!(keys.judge(&mut model, ("acquire", 0, 0), reply, |_, _| {}), violated, "{told_ms} ms");
    }
}
