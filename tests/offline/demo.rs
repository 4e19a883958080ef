//! Every demo comes out as it says.

use redlatch_lab::demo::{self, DEMOS};

#[test]
fn every_outcome_is_the_expected_one() {
    let failed: Vec<String> = DEMOS.iter().filter_map(|demo| demo.run(&mut |_| {}).err()).collect();
    assert!(failed.is_empty(), "{failed:#?}");
}

#[test]
fn another_outcome_is_noticed() {
    let run = |text: &str| demo::run(text, &mut |_| {});
    assert_eq!(run("# t\nc1: INCR n\n= 1\noutcome: fine"), Ok(()));
    assert_eq!(run("# t\nc1: INCR n\n= 2"), Err((3, "c1 receives 1, and not 2".to_owned())));
    assert_eq!(run("# t\nc1: INCR n\noutcome: fine"), Err((3, "c1 receives 1 as well".to_owned())));
    assert_eq!(run("# t\nwhat"), Err((2, "'what' is not understood".to_owned())));
}
