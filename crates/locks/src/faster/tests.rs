//! Tests that the model of group locks reports violations, and only violations.

use super::model::FasterMultiLock;
use super::names::{ALL_MEMBERS, members};
use crate::invariant::Invariant;
use crate::model::{Args, Call, Model, OWNER_IDS, Reply};
use crate::testing::{Keys, NO_MESSAGES};

/// Writes the fields of member `m1` when `owner` holds it once.
fn held(keys: &mut Keys, owner: &str, lease_ms: i64) {
    let until = (keys.now_ms() + lease_ms).to_string();
    let (until_field, holds) = (format!("m1:{owner}:expire_time"), format!("m1:{owner}:lock_count"));
    keys.set_hash("my:group", &[("m1", owner), (&until_field, &until), (&holds, "1")], lease_ms);
}

#[test]
fn a_member_has_one_owner() {
    let (mut keys, mut model) = (Keys::new(), FasterMultiLock::default());
    let acquire = |owner, keys: &mut Keys, model: &mut FasterMultiLock| {
        keys.judge(model, ("acquire", owner, 0), (Reply::Nil, NO_MESSAGES), |keys, call| {
            held(keys, OWNER_IDS[owner], call.lease_ms);
        })
    };
    assert_eq!(acquire(0, &mut keys, &mut model), None);
    assert_eq!(acquire(1, &mut keys, &mut model), Some(Invariant::A2));
}

#[test]
fn the_members_that_were_asked_for_are_sent() {
    assert_eq!(members(0b101).collect::<Vec<_>>(), [0, 2]);
    let mut model = FasterMultiLock::default();
    let mut call = Call::default();
    assert!(model.ask(&mut call, 2));
    let mut args = Args::default();
    model.write(ALL_MEMBERS, &call, &mut args);
    assert_eq!(args.iter().collect::<Vec<_>>(), [b"m1", b"m2"]);
}
