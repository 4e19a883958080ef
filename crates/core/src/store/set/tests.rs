use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

fn limits(version: Version) -> Limits {
    Limits::for_version(version)
}

fn set_of(members: &[&str], limits: &Limits) -> Set {
    let mut set = Set::for_members(members[0].as_bytes(), members.len(), limits);
    for member in members {
        set.add(member.as_bytes(), limits);
    }
    set
}

fn members(set: &Set) -> Vec<String> {
    set.iter().map(|member| String::from_utf8_lossy(&member.to_vec()).into_owned()).collect()
}

#[test]
fn integers_are_sorted_and_a_text_comes_after_them() {
    let limits = limits(Version::V7_4);
    let mut set = set_of(&["3", "-1", "20"], &limits);
    assert_eq!((members(&set), set.encoding()), (vec!["-1".into(), "3".into(), "20".into()], "intset"));
    set.add(b"a", &limits);
    set.add(b"1", &limits);
    set.remove(b"3");
    set.add(b"3", &limits);
    assert_eq!((members(&set).join(" "), set.encoding()), ("-1 20 a 1 3".into(), "listpack"));
}

#[test]
fn before_7_2_there_is_no_listpack() {
    let limits = limits(Version::V7_0);
    assert_eq!(set_of(&["a"], &limits).encoding(), "hashtable");
    assert_eq!(set_of(&["1", "a"], &limits).encoding(), "hashtable");
    assert_eq!(set_of(&["1"; 600], &limits).encoding(), "intset");
}

#[test]
fn sizes_turn_it_into_a_table() {
    let limits = limits(Version::V7_4);
    let numbers: Vec<String> = (0..513).map(|i| i.to_string()).collect();
    let mut set = set_of(&["0"], &limits);
    for number in &numbers {
        assert_eq!(set.encoding(), "intset");
        set.add(number.as_bytes(), &limits);
    }
    assert_eq!(set.encoding(), "hashtable");
    set.become_intset_if_possible(&limits);
    assert_eq!(set.encoding(), "hashtable");
    set.remove(b"7");
    set.become_intset_if_possible(&limits);
    assert_eq!((set.encoding(), set.len()), ("intset", 512));
    set.add(b"x", &limits);
    assert_eq!((set.encoding(), set.len()), ("hashtable", 513));

    assert_eq!(set_of(&["a"; 129], &limits).encoding(), "hashtable");
    let mut set = set_of(&["a"], &limits);
    set.add(&[b'x'; 64], &limits);
    assert_eq!(set.encoding(), "listpack");
    set.expect(128, &limits);
    assert_eq!(set.encoding(), "listpack");
    set.add(&[b'x'; 65], &limits);
    assert_eq!(set.encoding(), "hashtable");
}

proptest! {
    #[test]
    fn behaves_as_a_set(
        ops in prop::collection::vec((0..4u8, prop_oneof!["[0-9]{1,2}", "[a-c]{0,2}"], any::<u64>()), 1..200),
        most in 0..40usize,
    ) {
        let limits = Limits { set_max_listpack_entries: most, set_max_intset_entries: 20, ..limits(Version::V7_4) };
        let mut set = Set::for_members(ops[0].1.as_bytes(), 1, &limits);
        let mut model = BTreeSet::new();
        for (op, member, draw) in ops {
            let member = member.into_bytes();
            match op {
                0 => prop_assert_eq!(set.remove(&member), model.remove(&member)),
                1 => {
                    let popped = set.pop_random(draw);
                    prop_assert_eq!(popped.is_some(), !model.is_empty());
                    prop_assert!(popped.is_none_or(|member| model.remove(&member)));
                }
                _ => prop_assert_eq!(set.add(&member, &limits), model.insert(member.clone())),
            }
            prop_assert_eq!(set.len(), model.len());
            prop_assert_eq!(set.contains(&member), model.contains(&member));
            let all: BTreeSet<_> = set.iter().map(|member| member.to_vec()).collect();
            prop_assert_eq!(&all, &model);
            let mut draws = draw;
            let sample = set.sample(5, &mut || { draws = draws.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1); draws });
            let different: BTreeSet<_> = sample.iter().map(Member::to_vec).collect();
            prop_assert_eq!(different.len(), model.len().min(5));
            prop_assert!(different.is_subset(&model));
        }
    }
}
