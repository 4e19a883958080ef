use proptest::prelude::*;

use super::*;
use crate::version::Version;

fn limits(hll_sparse_max_bytes: usize) -> Limits {
    Limits { hll_sparse_max_bytes, ..Limits::for_version(Version::V7_0) }
}

/// Adds the numbers below `count` as texts.
fn filled(count: usize, max_sparse_bytes: usize) -> Vec<u8> {
    let mut bytes = empty();
    (0..count).for_each(|number| {
        add(&mut bytes, number.to_string().as_bytes(), &limits(max_sparse_bytes)).unwrap();
    });
    bytes
}

#[test]
fn an_empty_one_is_one_run_of_zeros() {
    assert_eq!(empty(), b"HYLL\x01\0\0\0\0\0\0\0\0\0\0\0\x7f\xff");
    assert_eq!(
        (encoding(&empty()), cached(&empty()), count(&empty())),
        (Some(Encoding::Sparse), Some(0), Ok(0))
    );
}

#[test]
fn both_forms_have_the_same_registers() {
    for elements in [0, 1, 10, 300, 1000] {
        let sparse = filled(elements, usize::MAX);
        let mut converted = sparse.clone();
        assert_eq!(make_dense(&mut converted, &limits(0)), Ok(true));
        let dense = filled(elements, 0);
        assert_eq!(encoding(&sparse), Some(Encoding::Sparse));
        assert_eq!(converted[HEADER..], if elements == 0 { converted.clone() } else { dense }[HEADER..]);
        assert_eq!(count(&converted), count(&sparse));
        let mut union = Registers::default();
        union.merge(&sparse, &limits(0)).and(union.merge(&converted, &limits(0))).unwrap();
        assert_eq!(Ok(union.count()), count(&sparse));
    }
}

#[test]
fn estimates_are_close() {
    for elements in [100, 1000, 10_000, 100_000] {
        let estimate = count(&filled(elements, 3000)).unwrap() as f64;
        assert!((estimate / elements as f64 - 1.0).abs() < 0.03, "{elements}: {estimate}");
    }
}

#[test]
fn a_sparse_form_becomes_dense_beyond_its_limit() {
    assert_eq!(encoding(&filled(500, 3000)), Some(Encoding::Sparse));
    let large = filled(2000, 3000);
    assert_eq!((encoding(&large), large.len()), (Some(Encoding::Dense), DENSE_LEN));
    let mut high = empty();
    assert_eq!(raise(&mut high, 5, 33, &limits(3000)), Ok(true));
    assert_eq!(encoding(&high), Some(Encoding::Dense));
}

proptest! {
    #[test]
    fn registers_are_those_of_a_plain_array(
        raised in prop::collection::vec((prop_oneof![0usize..40, 16_300usize..REGISTERS, 0..REGISTERS], 1u8..34), 0..200),
        limit in prop_oneof![Just(0usize), Just(60), Just(3000)],
    ) {
        let mut bytes = empty();
        let mut model = vec![0; REGISTERS];
        for (index, rank) in raised {
            prop_assert_eq!(raise(&mut bytes, index, rank, &limits(limit)), Ok(rank > model[index]));
            model[index] = rank.max(model[index]);
        }
        let mut registers = Registers::default();
        registers.merge(&bytes, &limits(0)).unwrap();
        prop_assert!(registers.iter().eq(model));
        prop_assert_eq!(count(&bytes), Ok(registers.count()));
    }

    #[test]
    fn no_bytes_panic(
        dense: bool, tail in prop::collection::vec(any::<u8>(), 0..60), index in 0..REGISTERS, rank in 1u8..52,
    ) {
        let mut bytes = b"HYLL\x01\0\0\0\0\0\0\0\0\0\0\0".to_vec();
        bytes.extend(tail);
        if dense {
            bytes[4] = 0;
            let tail = bytes.split_off(HEADER);
            bytes.extend(tail.iter().cycle().chain(std::iter::repeat(&0)).take(DENSE_LEN - HEADER));
        }
        let _ = count(&bytes);
        let _ = Registers::default().merge(&bytes, &limits(0));
        opcodes(&bytes).for_each(drop);
        let _ = raise(&mut bytes, index, rank, &limits(40));
        let _ = add(&mut bytes, b"element", &limits(3000));
        let _ = make_dense(&mut bytes, &limits(0));
        let _ = count(&bytes);
    }
}
