//! Tests that the model of permits with leases reports violations, and only violations.

use super::model::PermitSemaphore;
use super::names::{permit_id, permit_number};
use crate::invariant::Invariant;
use crate::model::Reply;
use crate::script_set::ScriptSet;
use crate::testing::{Keys, NO_MESSAGES, message};

#[test]
fn a_permit_is_known_by_its_id() {
    assert_eq!(&permit_id(17), b"p000000000000017");
    assert_eq!(permit_number(&permit_id(17)), Some(17));
    assert_eq!(permit_number(b"q000000000000017"), None);
}

#[test]
fn free_and_held_permits_add_up() {
    for (free, violated) in [(0, None), (1, Some(Invariant::P1))] {
        let (mut keys, mut model) = (Keys::new(), PermitSemaphore::new(&ScriptSet::default()));
        let told = [message("redisson_sc:{my:semaphore}", "1")];
        let set = keys.judge(&mut model, ("try_set", 0, 0), (Reply::Int(1), &told), |keys, call| {
            keys.set_number("my:semaphore", call.count);
        });
        assert_eq!(set, None);
        // The setting took the number of one permit.
        let id = permit_id(1);
        let reply = (Reply::Text(&id), NO_MESSAGES);
        let acquired = keys.judge(&mut model, ("acquire", 0, 0), reply, |keys, call| {
            keys.set_number("my:semaphore", free);
            keys.set_sorted_set("{my:semaphore}:timeout", &[(&id, call.now_ms + call.lease_ms)]);
        });
        assert_eq!(acquired, violated, "{free} free");
    }
}
