use proptest::prelude::*;

use super::*;

fn limits() -> Limits {
    Limits::for_version(Version::V7_4)
}

fn push(list: &mut List, end: End, element: &[u8], limits: &Limits) {
    list.prepare([element], limits);
    list.push(end, element, limits);
}

#[test]
fn encoding_by_version() {
    assert_eq!(List::new(&Limits::for_version(Version::V7_0)).encoding(), "quicklist");
    assert_eq!(List::new(&Limits::for_version(Version::V7_2)).encoding(), "listpack");
}

#[test]
fn a_listpack_grows_to_eight_kib_and_shrinks_at_four() {
    let mut list = List::new(&limits());
    // 7 bytes of frame, 81 entries of 98 + 2 + 1, and what the next element brings.
    (0..81).for_each(|_| push(&mut list, End::Tail, &[b'x'; 98], &limits()));
    list.prepare([[b'x'; 4].as_slice()], &limits());
    assert_eq!(list.encoding(), "listpack");
    list.prepare([[b'x'; 5].as_slice()], &limits());
    assert_eq!(list.encoding(), "quicklist");
    while list.len() > 40 {
        list.pop(End::Head);
        list.shrink(&limits());
        assert_eq!(list.encoding(), if list.len() > 40 { "quicklist" } else { "listpack" });
    }
}

#[test]
fn a_large_element_stands_alone_since_7_4() {
    for (version, encoding) in [(Version::V7_2, "quicklist"), (Version::V7_4, "quicklist")] {
        let limits = Limits::for_version(version);
        let mut list = List::new(&limits);
        push(&mut list, End::Tail, &[b'x'; 9000], &limits);
        list.shrink(&limits);
        assert_eq!((list.encoding(), list.0.nodes[0].is_plain), (encoding, version == Version::V7_4));
        list.set(0, b"small", &limits);
        list.shrink(&limits);
        assert_eq!(list.encoding(), "listpack");
    }
}

#[derive(Clone, Debug)]
enum Op {
    Push(bool, usize),
    Pop(bool),
    Set(prop::sample::Index, usize),
    Insert(prop::sample::Index, bool, usize),
    Remove(bool, prop::sample::Index, usize),
    Trim(prop::sample::Index, prop::sample::Index),
}

fn op() -> impl Strategy<Value = Op> {
    let size = || prop_oneof![4 => 0..4usize, 2 => 0..100usize, 1 => 0..5000usize];
    let index = any::<prop::sample::Index>;
    prop_oneof![
        8 => (any::<bool>(), size()).prop_map(|(at_head, size)| Op::Push(at_head, size)),
        2 => any::<bool>().prop_map(Op::Pop),
        3 => (index(), size()).prop_map(|(index, size)| Op::Set(index, size)),
        5 => (index(), any::<bool>(), size()).prop_map(|(index, after, size)| Op::Insert(index, after, size)),
        1 => (any::<bool>(), index(), 1..4usize).prop_map(|(head, index, limit)| Op::Remove(head, index, limit)),
        1 => (index(), index()).prop_map(|(start, count)| Op::Trim(start, count)),
    ]
}

fn end(at_head: bool) -> End {
    if at_head { End::Head } else { End::Tail }
}

/// The same operation on a plain vector.
fn apply_to_model(model: &mut Vec<Vec<u8>>, op: &Op) {
    let len = model.len();
    match op {
        Op::Push(true, size) => model.insert(0, vec![b'x'; *size]),
        Op::Push(false, size) => model.push(vec![b'x'; *size]),
        _ if len == 0 => {}
        Op::Pop(at_head) => drop(model.remove(if *at_head { 0 } else { len - 1 })),
        Op::Set(index, size) => model[index.index(len)] = vec![b'x'; *size],
        Op::Insert(index, after, size) => {
            let pivot = model[index.index(len)].clone();
            let at = model.iter().position(|other| *other == pivot).unwrap_or(0);
            model.insert(at + *after as usize, vec![b'x'; *size]);
        }
        Op::Remove(from_head, index, limit) => {
            let doomed = model[index.index(len)].clone();
            for _ in 0..*limit {
                let mut all = model.iter();
                let at = if *from_head {
                    all.position(|other| *other == doomed)
                } else {
                    all.rposition(|other| *other == doomed)
                };
                if let Some(at) = at {
                    model.remove(at);
                }
            }
        }
        Op::Trim(start, count) => {
            let start = start.index(len);
            *model = model[start..start + count.index(len - start) + 1].to_vec();
        }
    }
}

fn apply(list: &mut List, op: &Op, limits: &Limits) {
    let len = list.len();
    let element = |size: &usize| vec![b'x'; *size];
    match op {
        Op::Push(at_head, size) => push(list, end(*at_head), &element(size), limits),
        _ if len == 0 => {}
        Op::Pop(at_head) => assert!(list.pop(end(*at_head)).is_some()),
        Op::Set(index, size) => {
            list.prepare([element(size).as_slice()], limits);
            assert!(list.set(index.index(len), &element(size), limits));
        }
        Op::Insert(index, after, size) => {
            list.prepare([element(size).as_slice()], limits);
            let pivot = list.get(index.index(len)).unwrap_or_default().to_vec();
            assert!(list.insert(&pivot, *after, &element(size), limits));
        }
        Op::Remove(from_head, index, limit) => {
            let doomed = list.get(index.index(len)).unwrap_or_default().to_vec();
            assert!(list.remove(&doomed, end(*from_head), *limit) > 0);
        }
        Op::Trim(start, count) => {
            let start = start.index(len);
            list.trim(start, count.index(len - start) + 1);
        }
    }
    list.shrink(limits);
}

proptest! {
    #[test]
    fn behaves_as_a_vector(size in prop_oneof![Just(-1), Just(-2), 1..6], ops in prop::collection::vec(op(), 1..120)) {
        let limits = Limits { list_max_listpack_size: size, ..limits() };
        let mut list = List::new(&limits);
        let mut model: Vec<Vec<u8>> = Vec::new();
        for op in ops {
            apply(&mut list, &op, &limits);
            apply_to_model(&mut model, &op);
            prop_assert_eq!(list.iter().map(<[u8]>::to_vec).collect::<Vec<_>>(), model.clone());
            prop_assert_eq!(list.len(), model.len());
            prop_assert!(list.0.nodes.iter().all(|node| !node.is_empty()));
            for node in &list.0.nodes {
                let mut copy = node.clone();
                prop_assert!(node.is_plain || copy.split_off(0).bytes == node.bytes);
            }
        }
        for start in 0..=model.len() {
            prop_assert!(list.iter_from(start).eq(model[start..].iter().map(Vec::as_slice)));
            prop_assert_eq!(list.get(start), model.get(start).map(Vec::as_slice));
            let back = model.get(..=start).unwrap_or_default();
            prop_assert!(list.iter_back_from(start).eq(back.iter().rev().map(Vec::as_slice)));
        }
    }
}
