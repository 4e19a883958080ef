//! Every demo has the outcome that its schedule states.

use redlatch_lab::demo::{self, DEMOS};

#[test]
fn every_outcome_is_the_expected_one() {
    let failed: Vec<_> =
        DEMOS.iter().filter_map(|demo| Some((demo.name, demo.run(&mut |_| {}).err()?))).collect();
    assert!(failed.is_empty(), "{failed:#?}");
}

#[test]
fn another_outcome_is_noticed() {
    let run = |text: &str| demo::run(text, &mut |_| {});
    assert_eq!(run("# t\nc1: INCR n\n= 1\noutcome: fine"), Ok(()));
    let error = |text: &str| run(text).unwrap_err().to_string();
    assert_eq!(error("# t\nc1: INCR n\n= 2"), "line 3: c1 receives 1, not 2");
    assert_eq!(error("# t\nc1: INCR n\noutcome: fine"), "line 3: c1 receives 1 as well");
    assert_eq!(error("# t\nwhat"), "line 2: 'what' is not a line of a schedule");
    assert_eq!(error("# t\nc1@7: PING"), "line 2: there is no node '7'");
}
