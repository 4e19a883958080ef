//! Every demo has the outcome that its schedule states.

use redlatch_lab::demo::DEMOS;
use redlatch_lab::schedule::NoFiles;

#[test]
fn every_outcome_is_the_expected_one() {
    for demo in DEMOS {
        let schedule = demo.schedule().unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(schedule.title(), Some(demo.title()));
        schedule.run(&mut NoFiles, &mut |_| {}).unwrap_or_else(|error| panic!("{error}"));
    }
}
