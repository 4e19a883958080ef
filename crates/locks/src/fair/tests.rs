//! Tests that the model of fair locks reports violations, and only violations.

use super::model::Fair;
use crate::invariant::Invariant;
use crate::model::{OWNER_IDS, Reply};
use crate::script_set::ScriptSet;
use crate::testing::{Keys, NO_MESSAGES};

const A: &str = OWNER_IDS[0];
const B: &str = OWNER_IDS[1];

/// Sets up the keys as when A has released the lock and B is still waiting.
fn waiting(keys: &mut Keys) {
    let deadline_ms = keys.now_ms() + 5_000;
    keys.set_list("redisson_lock_queue:{my:lock}", &[B]);
    keys.set_sorted_set("redisson_lock_timeout:{my:lock}", &[(B.as_bytes(), deadline_ms)]);
}

#[test]
fn the_first_waiter_comes_first() {
    for (owner, id, violated) in [(0, A, Some(Invariant::F1)), (1, B, None)] {
        let (mut keys, mut model) = (Keys::new(), Fair::new(&ScriptSet::default(), true));
        waiting(&mut keys);
        let found = keys.judge(&mut model, ("acquire", owner, 0), (Reply::Nil, NO_MESSAGES), |keys, call| {
            keys.set_hash("my:lock", &[(id, "1")], call.lease_ms);
            if owner == 1 {
                keys.delete("redisson_lock_queue:{my:lock}");
                keys.delete("redisson_lock_timeout:{my:lock}");
            }
        });
        assert_eq!(found, violated, "{id}");
    }
}

#[test]
fn a_queued_waiter_needs_a_deadline() {
    let (mut keys, mut model) = (Keys::new(), Fair::new(&ScriptSet::default(), true));
    keys.set_list("redisson_lock_queue:{my:lock}", &[B]);
    let found = keys.judge(&mut model, ("acquire", 0, 0), (Reply::Int(5_000), NO_MESSAGES), |_, _| {});
    assert_eq!(found, Some(Invariant::F2));
}

#[test]
fn a_live_waiter_stays_in_the_queue() {
    let (mut keys, mut model) = (Keys::new(), Fair::new(&ScriptSet::default(), true));
    waiting(&mut keys);
    let found = keys.judge(&mut model, ("force_unlock", 0, 0), (Reply::Int(0), NO_MESSAGES), |keys, _| {
        keys.delete("redisson_lock_queue:{my:lock}");
        keys.delete("redisson_lock_timeout:{my:lock}");
    });
    assert_eq!(found, Some(Invariant::F9));
}
