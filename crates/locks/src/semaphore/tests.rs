//! Tests that the model of semaphores reports violations, and only violations.

use super::model::Semaphore;
use crate::invariant::Invariant;
use crate::model::Reply;
use crate::testing::{Keys, NO_MESSAGES, message};

#[test]
fn permits_change_by_the_requested_number() {
    for (left, violated) in [(2, None), (1, Some(Invariant::Q1))] {
        let (mut keys, mut model) = (Keys::new(), Semaphore::default());
        keys.set_number("my:semaphore", 3);
        let found = keys.judge(&mut model, ("acquire", 0, 0), (Reply::Int(1), NO_MESSAGES), |keys, _| {
            keys.set_number("my:semaphore", left);
        });
        assert_eq!(found, violated, "{left} left");
    }
}

#[test]
fn messages_have_no_negative_number() {
    for (number, violated) in [("1", None), ("-1", Some(Invariant::Q3))] {
        let (mut keys, mut model) = (Keys::new(), Semaphore::default());
        keys.set_number("my:semaphore", 0);
        let told = [message("redisson_sc:{my:semaphore}", number)];
        let found = keys.judge(&mut model, ("release", 0, 0), (Reply::Int(1), &told), |keys, _| {
            keys.set_number("my:semaphore", 1);
        });
        assert_eq!(found, violated, "told {number}");
    }
}

#[test]
fn messages_have_the_number_of_free_permits() {
    for (number, violated) in [("3", None), ("1", Some(Invariant::Q4))] {
        let (mut keys, mut model) = (Keys::new(), Semaphore::default());
        keys.set_number("my:semaphore", 2);
        let told = [message("redisson_sc:{my:semaphore}", number)];
        let found = keys.judge(&mut model, ("release", 0, 0), (Reply::Int(1), &told), |keys, _| {
            keys.set_number("my:semaphore", 3);
        });
        assert_eq!(found, violated, "told {number}");
    }
}

#[test]
fn a_semaphore_lives_as_long_as_was_asked_for() {
    let told = [message("redisson_sc:{my:semaphore}", "1")];
    let (mut keys, mut model) = (Keys::new(), Semaphore::default());
    let found = keys.judge(&mut model, ("try_set_for", 0, 1), (Reply::Int(1), &told), |keys, _| {
        keys.set_number("my:semaphore", 1);
    });
    assert_eq!(found, Some(Invariant::Q5));
}
