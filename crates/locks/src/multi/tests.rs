//! Tests that the model of locks on several nodes reports violations, and only violations.

use super::model::MultiLock;
use crate::invariant::Invariant;
use crate::model::{Model, OWNER_IDS, Reply};
use crate::testing::{Keys, NO_MESSAGES};

/// Lets a client acquire and extend a lock on three nodes, which share one store here. Returns the violations.
fn acquire(model: &mut dyn Model, keys: &mut Keys, keeps: bool) -> Vec<Option<Invariant>> {
    let mut found = Vec::new();
    for step in 0..6 {
        let operation = if step < 3 { "acquire" } else { "extend" };
        let reply = if step < 3 { Reply::Nil } else { Reply::Int(1) };
        found.push(keys.judge(model, (operation, 0, 0), (reply, NO_MESSAGES), |keys, call| {
            if keeps {
                keys.set_hash("my:lock", &[(OWNER_IDS[0], "1")], call.lease_ms);
            }
        }));
    }
    found
}

#[test]
fn a_client_that_was_told_that_it_has_the_lock_has_enough_nodes() {
    // The store represents one node.
    let found = acquire(&mut MultiLock::of(1), &mut Keys::new(), true);
    assert_eq!(found, [None; 6]);
    let found = acquire(&mut MultiLock::of(1), &mut Keys::new(), false);
    assert_eq!(found[5], Some(Invariant::R1));
}
