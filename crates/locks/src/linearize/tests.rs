//! Tests: small histories as Knossos has them, and random ones against brute force.

use proptest::prelude::*;

use super::locks::{Action, Holders, LockKind, LockModel, LockOperation};
use super::*;

fn limit<T>(configurations: u64, run: impl FnOnce(&mut Limit) -> T) -> T {
    run(&mut Limit { configurations, is_over: &mut || false })
}

fn verdict(text: &str, model: Option<&str>) -> Option<bool> {
    let entries = read(text).unwrap();
    let model = model.map(|name| ModelName::parse(name).unwrap());
    limit(1 << 20, |limit| judge(&entries, model, limit)).unwrap().is_linearizable()
}

/// Writes a history in short: `0+acquire` invokes, `0-acquire` completes, `0!acquire` fails, `0?acquire` is cut off. Others follow the
/// name: `=9` is the value.
fn history(short: &str) -> String {
    let mut text = String::new();
    for (at, word) in short.split_whitespace().enumerate() {
        let (word, more) = word.split_once('/').unwrap_or((word, ""));
        let (word, value) = word.split_once('=').unwrap_or((word, "nil"));
        let cut = word.find(['+', '-', '!', '?']).unwrap();
        let kind = match &word[cut..=cut] {
            "+" => "invoke",
            "-" => "ok",
            "!" => "fail",
            _ => "info",
        };
        let more = more.replace('_', " ");
        let (process, f, time) = (&word[..cut], &word[cut + 1..], at * 1_000_000);
        text += &format!(
            "{{:process {process}, :type :{kind}, :f :{f}, :value {}, :time {time}, {more}}}\n",
            value.replace('_', " ")
        );
    }
    text
}

#[test]
fn small_histories_of_locks() {
    for (is_linearizable, model, short) in [
        (true, "mutex", "0+acquire 0-acquire 0+release 0-release 1+acquire 1-acquire"),
        (false, "mutex", "0+acquire 0-acquire 1+acquire 1-acquire"),
        (true, "mutex", "0+acquire 0-acquire 1+acquire 1!acquire"),
        // The release may have come first.
        (true, "mutex", "0+acquire 0-acquire 1+acquire 0+release 1-acquire 0-release"),
        (false, "mutex", "0+acquire 0-acquire 1+acquire 1-acquire 0+release 0-release"),
        // Nobody knows whether the release came through, or when.
        (true, "mutex", "0+acquire 0-acquire 0+release 0?release 1+acquire 1-acquire"),
        (true, "mutex", "0+acquire 0?acquire 1+acquire 1-acquire 1+release 1-release 2+acquire 2-acquire"),
        (false, "mutex", "0+acquire 0?acquire 1+acquire 1-acquire 2+acquire 2-acquire"),
        (false, "mutex", "0+release 0-release"),
        (false, "mutex", "0+acquire 0-acquire 1+release 1-release"),
        (false, "mutex", "0+acquire 0-acquire 0+acquire 0-acquire"),
        (
            true,
            "reentrant",
            "0+acquire 0-acquire 0+acquire 0-acquire 0+release 0-release 0+release 0-release",
        ),
        (
            false,
            "reentrant",
            "0+acquire 0-acquire 0+acquire 0-acquire 0+release 0-release 1+acquire 1-acquire",
        ),
        (false, "reentrant", "0+acquire 0-acquire 0+release 0-release/:held_true"),
        (false, "reentrant", "0+acquire 0-acquire 0+acquire 0-acquire 0+release 0-release/:held_false"),
        (
            true,
            "semaphore=2",
            "0+acquire 1+acquire 0-acquire 1-acquire 1+release 2+acquire 2-acquire 1-release",
        ),
        (false, "semaphore=2", "0+acquire 1+acquire 0-acquire 1-acquire 2+acquire 2-acquire"),
        (false, "semaphore=3", "0+acquire=2 0-acquire 1+acquire=2 1-acquire"),
        (false, "semaphore=3", "0+acquire=2 0-acquire 0+release=3 0-release"),
        (true, "fenced", "0+acquire 0-acquire=1 0+release 0-release 1+acquire 1-acquire=2"),
        (false, "fenced", "0+acquire 0-acquire=2 0+release 0-release 1+acquire 1-acquire=2"),
        (true, "fenced", "0+acquire 0-acquire=2 0+acquire 0-acquire=2"),
        // Leases, in entries that are 1 ms apart: over after 3 ms, after 1 ms; renewed; renewed in vain.
        (false, "mutex", "0+acquire/:lease_4 0-acquire 1+acquire 1-acquire"),
        (true, "mutex", "0+acquire/:lease_3 0-acquire 1+acquire 1-acquire"),
        (true, "mutex", "0+acquire/:lease_1 0-acquire 0+release 0-release"),
        (false, "mutex", "0+acquire/:lease_1 0-acquire 1+acquire 1-acquire 0+release 0-release"),
        (false, "mutex", "0+acquire/:lease_3 0-acquire 0+renew/:lease_9 0-renew 1+acquire 1-acquire"),
        (true, "mutex", "0+acquire/:lease_5 0-acquire 0+renew/:lease_9 0!renew 1+acquire 1-acquire"),
        (true, "mutex", "0+acquire/:lease_5 0-acquire 0+renew/:lease_9 0?renew 1+acquire 1-acquire"),
        (false, "mutex", "0+acquire/:lease_1 0-acquire 1+acquire 1-acquire 0+renew/:lease_1 0-renew"),
        (
            true,
            "reentrant",
            "0+acquire/:lease_2 0-acquire 0+acquire/:lease_2 0-acquire 0+release 0-release/:held_false",
        ),
        (
            false,
            "reentrant",
            "0+acquire/:lease_9 0-acquire 0+acquire/:lease_9 0-acquire 0+release 0-release/:held_false",
        ),
        // Which of two leases has ended?
        (
            true,
            "semaphore=2",
            "0+acquire/:lease_1 0-acquire 1+acquire/:lease_1 1-acquire 2+acquire 2-acquire 0+release 0-release",
        ),
        (
            true,
            "semaphore=2",
            "0+acquire/:lease_1 0-acquire 1+acquire/:lease_1 1-acquire 2+acquire 2-acquire 1+release 1-release",
        ),
        (
            false,
            "semaphore=2",
            "0+acquire/:lease_1 0-acquire 1+acquire/:lease_1 1-acquire 2+acquire 2-acquire 0+release 0-release 1+release 1-release",
        ),
        // Redisson's fair lock says so of what nobody holds.
        (true, "reentrant", "0+release/:object_\"fair\" 0-release"),
        (false, "reentrant", "1+acquire/:object_\"fair\" 1-acquire 0+release/:object_\"fair\" 0-release"),
        (
            true,
            "reentrant",
            "1+acquire/:object_\"fair\"_:lease_2 1-acquire 0+release/:object_\"fair\" 0-release",
        ),
        (true, "mutex", "0+acquire 0-acquire 1+force-release 1-force-release 2+acquire 2-acquire"),
        (true, "rw", "0+acquire/:object_\"rw.read\" 0-acquire 1+acquire/:object_\"rw.read\" 1-acquire"),
        (false, "rw", "0+acquire/:object_\"rw.read\" 0-acquire 1+acquire/:object_\"rw.write\" 1-acquire"),
        (
            true,
            "rw",
            "0+acquire/:object_\"rw.write\"_:owner_\"a:write\" 0-acquire 0+acquire/:object_\"rw.read\"_:owner_\"a\" 0-acquire",
        ),
    ] {
        assert_eq!(verdict(&history(short), Some(model)), Some(is_linearizable), "{model}: {short}");
    }
}

#[test]
fn small_histories_of_registers() {
    for (is_linearizable, short) in [
        (true, "0+write=1 1+read 1-read=1 0-write"),
        (true, "0+write=1 1+read 1-read=nil 0-write"),
        (false, "0+write=1 1+read 1-read=1 2+read 2-read=nil 0-write"),
        (true, "0+write=1 0-write 1+cas=[1_2] 1-cas 2+read 2-read=2"),
        (false, "0+write=1 0-write 1+cas=[1_2] 1!cas"),
        (true, "0+write=1 0?write 1+read 1-read=nil 2+read 2-read=1"),
        (false, "0+write=1 0?write 1+read 1-read=1 2+read 2-read=nil"),
        (true, "0+write=1 0-write 1+read 1?read"),
    ] {
        assert_eq!(verdict(&history(short), None), Some(is_linearizable), "{short}");
    }
}

#[test]
fn the_report_has_the_shortest_prefix() {
    let text = history(
        "0+acquire 0-acquire 2+release 1+acquire 1-acquire 0+release 0-release 2?release 3+acquire 3-acquire",
    );
    let entries = read(&text).unwrap();
    let report =
        limit(1 << 20, |limit| judge(&entries, Some(ModelName::Lock(LockKind::Mutex)), limit)).unwrap();
    let shown = report.to_string();
    for line in [
        " (mutex, 5 operations): not linearizable\n  the shortest prefix ends with the reply to\n    1 acquire: ok\n",
        "  operations under way then: 1\n    2 release: no reply\n",
        "(0 earlier):\n    0 acquire: ok\n  then 0 holds it\n",
        "not linearizable: locks 1; operations judged 5, without a reply 1; refused 0,",
    ] {
        assert!(shown.contains(line), "{shown}");
    }
}

#[test]
fn a_history_without_its_beginning_starts_from_any_state() {
    let text = history("0+release/:op_3 0-release 1+acquire/:op_4 1-acquire 2+acquire/:op_5 2!acquire");
    assert_eq!(verdict(&text, Some("reentrant")), Some(true));
    let text = history("1+acquire/:op_4 1-acquire 0+release/:op_3 0-release");
    assert_eq!(verdict(&text, Some("reentrant")), Some(false));
}

#[test]
fn operations_of_porcupine_are_read() {
    let operation = |client: u32, f: &str, value: &str, call: i32, output: &str, end: i32| {
        format!(
            r#"{{"ClientId": {client}, "Input": {{"F": "{f}", "Value": {value}}}, "Call": {call}, "Output": {output}, "Return": {end}}}"#
        )
    };
    // The first test of Porcupine, and one whose times touch.
    for (is_linearizable, operations) in [
        (
            true,
            [
                ("write", "100", 0, "null", 100),
                ("read", "null", 25, r#"{"Value": 100}"#, 75),
                ("read", "null", 30, "{}", 60),
            ],
        ),
        (
            false,
            [
                ("write", "200", 0, "null", 100),
                ("read", "null", 10, r#"{"Value": 200}"#, 30),
                ("read", "null", 40, "{}", 90),
            ],
        ),
        (
            true,
            [
                ("write", "1", -5, "null", 0),
                ("read", "null", 0, "{}", 0),
                ("read", "null", 0, r#"{"Value": 1}"#, 9),
            ],
        ),
    ] {
        let rows = operations.iter().enumerate();
        let rows: Vec<String> = rows
            .map(|(n, (f, value, call, output, end))| operation(n as u32, f, value, *call, output, *end))
            .collect();
        assert_eq!(verdict(&format!("[{}]", rows.join(", ")), None), Some(is_linearizable), "{rows:?}");
    }
}

#[test]
fn a_limit_gives_no_verdict() {
    let mut short = String::new();
    for process in 0..40 {
        short += &format!("{process}+write={process} {process}?write ");
    }
    let text = history(&format!("{short} 90+read 90-read=90"));
    let entries = read(&text).unwrap();
    let report = limit(1_000, |limit| judge(&entries, None, limit)).unwrap();
    assert_eq!(report.is_linearizable(), None);
    let mut is_over = || true;
    let report =
        judge(&entries, None, &mut Limit { configurations: u64::MAX, is_over: &mut is_over }).unwrap();
    assert!(report.to_string().contains("unknown: the limit was reached"), "{report}");
}

#[test]
fn wrong_histories_are_errors() {
    for (text, why) in [
        ("", "there are no operations"),
        ("{:process 0, :type :ok, :f :read}", "the process has invoked nothing"),
        ("{:process 0, :f :read}", "there is no :type"),
        (
            "[{:process 0, :type :invoke, :f :read} {:process 0, :type :invoke, :f :read}]",
            "has not completed",
        ),
        (r#"[{"ClientId": 0, "Call": 1, "Return": 2}]"#, "there is no F in Input"),
        ("{", "line 1: a bracket is not closed"),
    ] {
        let error = read(text).unwrap_err();
        assert!(error.contains(why), "{text}: {error}");
    }
    let entries = read(&history("0+enqueue 0-enqueue")).unwrap();
    assert!(limit(9, |limit| judge(&entries, None, limit)).unwrap_err().contains("no operation 'enqueue'"));
}

/// Tries all orders.
fn is_linearizable(
    model: &LockModel,
    calls: &[Call<LockOperation>],
    done: &mut Vec<bool>,
    state: &Holders,
) -> bool {
    let left: Vec<usize> = (0..calls.len()).filter(|index| !done[*index]).collect();
    if left.iter().all(|index| calls[*index].to.is_none()) {
        return true;
    }
    for &index in &left {
        let is_late = left.iter().any(|other| calls[*other].to.is_some_and(|to| to < calls[index].from));
        if is_late {
            continue;
        }
        let mut next = Vec::new();
        model.step(state, &calls[index].operation, &mut next);
        for state in next {
            done[index] = true;
            let is_good = is_linearizable(model, calls, done, &state);
            done[index] = false;
            if is_good {
                return true;
            }
        }
    }
    false
}

fn operation() -> impl Strategy<Value = Call<LockOperation>> {
    let action = prop_oneof![3 => Just(Action::Acquire), 3 => Just(Action::Release), 1 => Just(Action::Renew), 1 => Just(Action::ForceRelease)];
    let times = (0..30_u64, 0..8_u64, prop::bool::weighted(0.8));
    (
        action,
        0..3_u32,
        prop::option::weighted(0.4, 0..9_u64),
        times,
        prop::option::weighted(0.3, any::<bool>()),
        1..3_u32,
    )
        .prop_map(|(action, owner, lease_ms, (from, len, returns), is_held, permits)| {
            let to = returns.then_some(from + len);
            let operation = LockOperation {
                action,
                owner,
                person: owner,
                is_shared: owner == 2,
                permits,
                lease_ms,
                from_ms: from,
                to_ms: to,
                frees_what_is_free: owner == 1,
                token: (action == Action::Acquire && permits == 2).then_some(from as i64),
                is_held,
            };
            Call { operation, from, to }
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn the_search_agrees_with_brute_force(calls in prop::collection::vec(operation(), 0..7), kind in 0..5_usize, begins_late: bool) {
        let kind = [LockKind::Mutex, LockKind::Reentrant, LockKind::Fenced, LockKind::Semaphore(3), LockKind::ReadWrite][kind];
        let model = LockModel { kind, begins_late };
        let all = is_linearizable(&model, &calls, &mut vec![false; calls.len()], &model.start());
        match limit(1 << 20, |limit| check(&model, &calls, limit)) {
            Verdict::Linearizable(order) => {
                prop_assert!(all);
                // The order is a proof.
                let mut states = vec![model.start()];
                for (place, index) in order.iter().enumerate() {
                    let mut next = Vec::new();
                    states.iter().for_each(|state| model.step(state, &calls[*index].operation, &mut next));
                    prop_assert!(!next.is_empty());
                    states = next;
                    let is_late = order[place..].iter().any(|later| calls[*later].to.is_some_and(|to| to < calls[*index].from));
                    prop_assert!(!is_late);
                }
            }
            Verdict::Not { at, order, .. } => {
                prop_assert!(!all);
                // Up to the return before, there is an order; up to this one there is none.
                let end = calls[at].to.unwrap();
                let prefix = |is_in: &dyn Fn(u64, usize) -> bool| {
                    let began = calls.iter().enumerate().filter(|(_, call)| call.from <= end);
                    began.map(|(index, call)| Call { to: call.to.filter(|to| is_in(*to, index)), ..call.clone() }).collect::<Vec<_>>()
                };
                let brute = |calls: &[Call<LockOperation>]| is_linearizable(&model, calls, &mut vec![false; calls.len()], &model.start());
                prop_assert!(!brute(&prefix(&|to, index| to < end || to == end && index <= at)));
                prop_assert!(brute(&prefix(&|to, index| to < end || to == end && index < at)));
                prop_assert!(!order.contains(&at));
            }
            Verdict::Unknown => prop_assert!(false, "there is no limit"),
        }
    }
}
