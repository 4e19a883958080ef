//! Tests that the model of count-down latches reports violations, and only violations.

use super::model::CountDownLatch;
use crate::binding::MESSAGE;
use crate::invariant::Invariant;
use crate::model::{Args, Call, Model, Reply};
use crate::script_set::ScriptSet;
use crate::testing::{Keys, NO_MESSAGES};

#[test]
fn a_request_counts_down_by_one() {
    for (left, violated) in [(2, None), (1, Some(Invariant::C1))] {
        let (mut keys, mut model) = (Keys::new(), CountDownLatch::new(&ScriptSet::default()));
        keys.set_number("my:latch", 3);
        let found = keys.judge(&mut model, ("count_down", 0, 0), (Reply::Nil, NO_MESSAGES), |keys, _| {
            keys.set_number("my:latch", left);
        });
        assert_eq!(found, violated, "{left} left");
    }
}

#[test]
fn opening_sends_one_message() {
    let (mut keys, mut model) = (Keys::new(), CountDownLatch::new(&ScriptSet::default()));
    keys.set_number("my:latch", 1);
    let found = keys.judge(&mut model, ("count_down", 0, 0), (Reply::Nil, NO_MESSAGES), |keys, _| {
        keys.delete("my:latch");
    });
    assert_eq!(found, Some(Invariant::C2));
}

#[test]
fn setting_and_opening_send_different_messages() {
    let model = CountDownLatch::new(&ScriptSet::default());
    let mut args = Args::default();
    for operation in [0, 1] {
        model.write(MESSAGE, &Call { operation, ..Call::default() }, &mut args);
    }
    assert_eq!(args.iter().collect::<Vec<_>>(), [b"1", b"0"]);
}
