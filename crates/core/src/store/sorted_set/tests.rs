use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;

fn limits() -> Limits {
    Limits::for_version(Version::V7_4)
}

#[test]
fn encodings_follow_number_and_length() {
    let mut set = SortedSet::for_members(1, 1, &limits());
    for i in 0..128 {
        set.add(format!("{i}").as_bytes(), 1.0, &limits());
    }
    assert_eq!(set.encoding(), "listpack");
    set.add(b"7", 2.0, &limits());
    assert_eq!(set.encoding(), "listpack");
    set.add(b"one more", 1.0, &limits());
    assert_eq!(set.encoding(), "skiplist");
    set.become_listpack_if_possible(&limits());
    assert_eq!(set.encoding(), "skiplist");
    set.pop_max();
    set.become_listpack_if_possible(&limits());
    assert_eq!((set.encoding(), set.len()), ("listpack", 128));
    set.add(&[0; 65], 1.0, &limits());
    assert_eq!(set.encoding(), "skiplist");

    assert_eq!(SortedSet::for_members(129, 1, &limits()).encoding(), "skiplist");
    assert_eq!(SortedSet::for_members(129, 1, &Limits::for_version(Version::V7_0)).encoding(), "listpack");
}

#[test]
fn negative_zero_is_kept_by_large_sets_only() {
    for (longest, sign) in [(1, false), (65, true)] {
        let mut set = SortedSet::for_members(1, longest, &limits());
        set.add(b"a", -0.0, &limits());
        assert_eq!(set.score(b"a").map(f64::is_sign_negative), Some(sign));
    }
}

fn score() -> impl Strategy<Value = f64> {
    prop_oneof![
        8 => (-3..4i32).prop_map(f64::from),
        1 => Just(f64::INFINITY),
        1 => Just(f64::NEG_INFINITY),
        1 => -1.0..1.0,
    ]
}

fn bound() -> impl Strategy<Value = ScoreBound> {
    (score(), any::<bool>()).prop_map(|(score, exclusive)| {
        if exclusive { ScoreBound::Exclusive(score) } else { ScoreBound::Inclusive(score) }
    })
}

/// Returns the members and scores in order.
fn sorted(model: &BTreeMap<Vec<u8>, f64>) -> Vec<(&[u8], f64)> {
    let mut entries: Vec<(&[u8], f64)> =
        model.iter().map(|(member, &score)| (member.as_slice(), score)).collect();
    entries.sort_by(|a, b| a.1.total_cmp(&b.1).then(a.0.cmp(b.0)));
    entries
}

proptest! {
    #[test]
    fn behaves_as_a_sorted_map(
        large in any::<bool>(),
        ops in prop::collection::vec((0..9u8, "[a-e]{1,2}", score(), bound(), bound()), 1..150),
    ) {
        let limits = limits();
        let mut set = SortedSet::for_members(if large { 129 } else { 1 }, 1, &limits);
        let mut model: BTreeMap<Vec<u8>, f64> = BTreeMap::new();
        for (op, member, score, min, max) in ops {
            let member = member.into_bytes();
            match op {
                0 => prop_assert_eq!(set.remove(&member), model.remove(&member)),
                1 => {
                    let expected = sorted(&model).first().map(|&(member, score)| (member.into(), score));
                    prop_assert_eq!(set.pop_min(), expected.clone());
                    expected.map(|(member, _): (Box<[u8]>, f64)| model.remove(&*member));
                }
                2 => {
                    let ranks = set.ranks_by_score(min, max);
                    let doomed: Vec<Vec<u8>> = sorted(&model)[ranks.clone()].iter().map(|entry| entry.0.to_vec()).collect();
                    prop_assert_eq!(set.remove_ranks(ranks), doomed.len());
                    model.retain(|member, _| !doomed.contains(member));
                }
                _ => prop_assert_eq!(set.add(&member, score, &limits), model.insert(member.clone(), score)),
            }
            let entries = sorted(&model);
            prop_assert_eq!(set.iter().collect::<Vec<_>>(), entries.clone());
            prop_assert_eq!(set.rank(&member), entries.iter().position(|entry| entry.0 == member));
            prop_assert_eq!(set.score(&member), model.get(&member).copied());
            let inside: Vec<_> = entries.iter().filter(|entry| !min.is_above(entry.1) && max.reaches(entry.1)).collect();
            prop_assert_eq!(set.ranks_by_score(min, max).len(), inside.len());
            let rank = member.len() * 3;
            prop_assert_eq!(set.get(rank), entries.get(rank).copied());
            let back = entries.get(..=rank).unwrap_or_default();
            prop_assert!(rank >= entries.len() || set.iter_back_from(rank).eq(back.iter().rev().copied()));
        }
        prop_assert_eq!(set.encoding() == "skiplist", large);
        let mut seen = BTreeSet::new();
        let mut cursor = 0;
        loop {
            cursor = set.scan(cursor, 3, |member, _| { seen.insert(member.to_vec()); });
            if cursor == 0 { break; }
        }
        prop_assert_eq!(seen, model.into_keys().collect());
    }

    #[test]
    fn ranges_by_bytes(members in prop::collection::btree_set("[a-d]{1,3}", 0..30), min in "[a-d]{0,3}", max in "[a-d]{0,3}", large in any::<bool>()) {
        let mut set = SortedSet::for_members(if large { 129 } else { 1 }, 1, &limits());
        for member in &members {
            set.add(member.as_bytes(), 0.0, &limits());
        }
        let in_range = |min, max| {
            let ranks = set.ranks_by_lex(min, max);
            set.iter_from(ranks.start).take(ranks.len()).map(|(member, _)| String::from_utf8_lossy(member).into_owned()).collect::<Vec<_>>()
        };
        let (from, to) = (min.as_bytes(), max.as_bytes());
        let model = |test: &dyn Fn(&String) -> bool| members.iter().filter(|member| test(member)).cloned().collect::<Vec<_>>();
        prop_assert_eq!(in_range(LexBound::Inclusive(from), LexBound::Inclusive(to)), model(&|m| *m >= min && *m <= max));
        prop_assert_eq!(in_range(LexBound::Exclusive(from), LexBound::Highest), model(&|m| *m > min));
        prop_assert_eq!(in_range(LexBound::Lowest, LexBound::Exclusive(to)), model(&|m| *m < max));
        prop_assert_eq!(in_range(LexBound::Highest, LexBound::Lowest), Vec::<String>::new());
    }
}
