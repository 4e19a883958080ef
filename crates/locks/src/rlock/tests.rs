//! Tests that the model of RLock and its variants reports violations, and only violations.

use super::model::{RLock, Variant};
use crate::invariant::Invariant;
use crate::model::{OWNER_IDS, Reply};
use crate::testing::{Keys, NO_MESSAGES, message};

const A: &str = OWNER_IDS[0];
const B: &str = OWNER_IDS[1];

#[test]
fn two_owners_at_once_violate_m1() {
    let (mut keys, mut model) = (Keys::new(), RLock::new(Variant::RLock));
    let granted = keys.judge(&mut model, ("acquire", 0, 0), (Reply::Nil, NO_MESSAGES), |keys, call| {
        keys.set_hash("my:lock", &[(A, "1")], call.lease_ms);
    });
    assert_eq!(granted, None);
    let both = keys.judge(&mut model, ("acquire", 1, 0), (Reply::Nil, NO_MESSAGES), |keys, call| {
        keys.set_hash("my:lock", &[(A, "1"), (B, "1")], call.lease_ms);
    });
    assert_eq!(both, Some(Invariant::M1));
}

#[test]
fn a_silent_release_violates_m3_unless_it_is_a_spin_lock() {
    for (variant, violated) in [(Variant::RLock, Some(Invariant::M3)), (Variant::Spin, None)] {
        let (mut keys, mut model) = (Keys::new(), RLock::new(variant));
        keys.set_hash("my:lock", &[(A, "1")], 10_000);
        let released = keys.judge(&mut model, ("unlock", 0, 0), (Reply::Int(1), NO_MESSAGES), |keys, _| {
            keys.delete("my:lock");
        });
        assert_eq!(released, violated, "{variant:?}");
    }
    let (mut keys, mut model) = (Keys::new(), RLock::new(Variant::RLock));
    keys.set_hash("my:lock", &[(A, "1")], 10_000);
    let told = [message("redisson_lock__channel:{my:lock}", "0")];
    let released = keys.judge(&mut model, ("unlock", 0, 0), (Reply::Int(1), &told), |keys, _| {
        keys.delete("my:lock");
    });
    assert_eq!(released, None);
}

#[test]
fn a_release_is_told_on_the_channel_in_words_that_waiters_act_on() {
    let told = |channel, payload| [message(channel, payload)];
    const CHANNEL: &str = "redisson_lock__channel:{my:lock}";
    for (told, violated) in [
        (told(CHANNEL, "0"), None),
        (told(CHANNEL, "30000"), Some(Invariant::M3)),
        (told("my:lock", "0"), Some(Invariant::M3)),
    ] {
        let (mut keys, mut model) = (Keys::new(), RLock::new(Variant::RLock));
        keys.set_hash("my:lock", &[(OWNER_IDS[0], "1")], 10_000);
        let found = keys
            .judge(&mut model, ("unlock", 0, 0), (Reply::Int(1), &told), |keys, _| keys.delete("my:lock"));
        assert_eq!(found, violated, "{told:?}");
    }
}
