use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

fn limits() -> Limits {
    Limits::for_version(Version::V7_4)
}

fn names(hash: &Hash) -> String {
    hash.iter().map(|field| String::from_utf8_lossy(field.name).into_owned()).collect()
}

fn hash_of(names: &str) -> Hash {
    let mut hash = Hash::new();
    for name in names.chars() {
        assert!(hash.set(name.to_string().as_bytes(), b"1", &limits()));
    }
    hash
}

#[test]
fn a_small_hash_keeps_the_order_of_insertion() {
    let mut hash = hash_of("abcd");
    assert!(hash.remove(b"b"));
    assert!(!hash.set(b"a", b"2", &limits()));
    assert!(hash.set(b"b", b"3", &limits()));
    assert_eq!((names(&hash).as_str(), hash.encoding()), ("acdb", "listpack"));
    assert_eq!(hash.get(b"a", 0), Some(b"2".as_slice()));
}

#[test]
fn fields_with_an_expiry_come_first_and_equals_in_reverse() {
    let mut hash = hash_of("abcd");
    hash.set_expiry(b"c", Some(100));
    hash.set_expiry(b"d", Some(50));
    hash.set_expiry(b"b", Some(50));
    assert_eq!((names(&hash).as_str(), hash.encoding()), ("bdca", "listpackex"));
    hash.set(b"e", b"5", &limits());
    hash.set(b"d", b"9", &limits());
    hash.set_keeping_expiry(b"c", b"8", &limits());
    assert_eq!(names(&hash), "bcaed");
    hash.set_expiry(b"b", None);
    hash.set_expiry(b"c", None);
    assert_eq!((names(&hash).as_str(), hash.next_expiry_ms()), ("aedbc", None));
}

#[test]
fn a_field_is_alive_to_the_end_of_its_last_millisecond() {
    let mut hash = hash_of("ab");
    hash.set_expiry(b"b", Some(100));
    assert!(hash.contains(b"b", 100) && !hash.contains(b"b", 101));
    assert_eq!(hash.len(), 2);
    assert!(hash.remove_expired(100).is_empty());
    assert_eq!(hash.remove_expired(101), [b"b".to_vec().into_boxed_slice()]);
    assert_eq!(hash.len(), 1);
}

#[test]
fn length_and_size_turn_it_into_a_table() {
    let mut hash = Hash::new();
    for i in 0..512 {
        hash.set(format!("{i}").as_bytes(), b"", &limits());
    }
    assert_eq!(hash.encoding(), "listpack");
    hash.set_expiry(b"7", Some(70));
    hash.set(b"one more", b"", &limits());
    assert_eq!((hash.encoding(), hash.len(), hash.next_expiry_ms()), ("hashtable", 513, Some(70)));

    let mut hash = Hash::new();
    hash.set(b"a", &[0; 64], &limits());
    assert_eq!(hash.encoding(), "listpack");
    hash.set(b"a", &[0; 65], &limits());
    assert_eq!(hash.encoding(), "hashtable");

    let mut hash = Hash::new();
    hash.expect(513, &Limits::for_version(Version::V7_0));
    assert_eq!(hash.encoding(), "listpack");
    hash.expect(513, &limits());
    assert_eq!(hash.encoding(), "hashtable");
}

#[test]
fn the_hash_of_a_lock_needs_no_allocation() {
    assert_eq!(size_of::<Hash>(), 16);
    let mut hash = Hash::new();
    hash.set(b"8743c9c0-0795-4907-87fd-6c719a6b4586:12345", b"10", &limits());
    assert!(matches!(&hash.0, Form::Listpack(packed) if packed.is_in_place()));
}

proptest! {
    /// Compares hashes with a map: small and large ones hold the same fields, small ones in the order of expiry.
    #[test]
    fn behaves_as_a_map(
        large in any::<bool>(),
        ops in prop::collection::vec((0..7u8, 0..12u8, 0..300usize), 1..200),
    ) {
        let limits = Limits { hash_max_listpack_value: 1000, ..limits() };
        let mut hash = Hash::new();
        hash.expect(if large { 513 } else { 0 }, &limits);
        let mut model: BTreeMap<u8, (Vec<u8>, Option<i64>)> = BTreeMap::new();
        for (op, name, number) in ops {
            let value = vec![number as u8; number];
            match op {
                0 | 1 => {
                    prop_assert_eq!(hash.set(&[name], &value, &limits), !model.contains_key(&name));
                    model.insert(name, (value, None));
                }
                2 => {
                    let is_new = !model.contains_key(&name);
                    prop_assert_eq!(hash.set_keeping_expiry(&[name], &value, &limits), is_new);
                    model.entry(name).or_default().0 = value;
                }
                3 => prop_assert_eq!(hash.remove(&[name]), model.remove(&name).is_some()),
                4 | 5 => {
                    let end_ms = (op == 4).then_some(number as i64);
                    prop_assert_eq!(hash.set_expiry(&[name], end_ms), model.contains_key(&name));
                    if let Some(entry) = model.get_mut(&name) { entry.1 = end_ms; }
                }
                _ => {
                    let now_ms = number as i64 / 10;
                    let before = model.len();
                    model.retain(|_, (_, end_ms)| end_ms.is_none_or(|end_ms| now_ms <= end_ms));
                    prop_assert_eq!(hash.remove_expired(now_ms).len(), before - model.len());
                }
            }
            prop_assert_eq!(hash.len(), model.len());
            prop_assert_eq!(hash.next_expiry_ms(), model.values().filter_map(|(_, end_ms)| *end_ms).min());
            for (name, (value, end_ms)) in &model {
                let field = Field { name: &[*name], value, expires_at_ms: *end_ms };
                prop_assert_eq!(hash.field(&[*name]), Some(field));
            }
            if !large {
                prop_assert!(hash.iter().is_sorted_by_key(|field| field.expires_at_ms.unwrap_or(NEVER)));
            }
        }
        prop_assert_eq!(hash.encoding() == "hashtable", large);
        let mut seen = BTreeMap::new();
        let mut cursor = 0;
        loop {
            cursor = hash.scan(cursor, 3, |field| { seen.insert(field.name[0], field.value.to_vec()); });
            if cursor == 0 { break; }
        }
        prop_assert_eq!(seen, model.into_iter().map(|(name, (value, _))| (name, value)).collect());
    }
}
