//! Tests that the model of count-down latches reports violations, and only violations.

use super::model::CountDownLatch;
use crate::binding::MESSAGE;
use crate::invariant::Invariant;
use crate::model::{Args, Call, Model, Reply};
use crate::script_set::ScriptSet;
use crate::testing::{Keys, NO_MESSAGES, message};

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

#[test]
fn waiters_are_told_in_words_that_they_act_on() {
    const CHANNEL: &str = "redisson_countdownlatch__channel__{my:latch}";
    let opened =
        [(CHANNEL, "0", None), (CHANNEL, "1", Some(Invariant::C5)), (CHANNEL, "7", Some(Invariant::C2))];
    for (channel, payload, violated) in opened.into_iter().chain([("my:latch", "0", Some(Invariant::C2))]) {
        let (mut keys, mut model) = (Keys::new(), CountDownLatch::new(&ScriptSet::default()));
        keys.set_number("my:latch", 1);
        let told = [message(channel, payload)];
        let found = keys.judge(&mut model, ("delete", 0, 0), (Reply::Int(1), &told), |keys, _| {
            keys.delete("my:latch");
        });
        assert_eq!(found, violated, "{channel} {payload}");
    }
}

#[test]
fn a_new_count_is_told_and_answered() {
    let told = [message("redisson_countdownlatch__channel__{my:latch}", "1")];
    for (reply, told, violated) in
        [(1, &told[..], None), (0, &told[..], Some(Invariant::C3)), (1, NO_MESSAGES, Some(Invariant::C4))]
    {
        let (mut keys, mut model) = (Keys::new(), CountDownLatch::new(&ScriptSet::default()));
        let found = keys.judge(&mut model, ("try_set", 0, 0), (Reply::Int(reply), told), |keys, call| {
            keys.set_number("my:latch", call.count);
        });
        assert_eq!(found, violated);
    }
}
