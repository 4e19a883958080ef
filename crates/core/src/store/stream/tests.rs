//! The stream against a list of entries, and the shape of its radix tree against one that is built.

use proptest::prelude::*;

use super::*;
use crate::store::Limits;
use crate::version::Version;

fn id(ms: u64) -> StreamId {
    StreamId { ms, seq: ms % 3 }
}

/// An entry as text: its id, its fields and values.
type Model = (StreamId, Vec<Vec<u8>>);

fn read(entry: Entry) -> Model {
    let text =
        |element: crate::store::rdb::listpack::Element| element.bytes(&mut itoa::Buffer::new()).to_vec();
    (entry.id, entry.pairs().flat_map(|(field, value)| [text(field), text(value)]).collect())
}

#[derive(Clone, Debug)]
enum Op {
    Append(u64, Vec<Vec<u8>>),
    Delete(u64),
    Trim(Trim),
}

fn part() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![Just(b"f".to_vec()), Just(b"12".to_vec()), prop::collection::vec(any::<u8>(), 0..40)]
}

fn op() -> impl Strategy<Value = Op> {
    let threshold = prop_oneof![
        (0..40u64).prop_map(Threshold::MaxLen),
        (0..200u64).prop_map(|ms| Threshold::MinId(id(ms))),
    ];
    prop_oneof![
        8 => (1..5u64, prop::collection::vec(part(), 1..4)).prop_map(|(step, mut parts)| {
            let again = parts.clone();
            parts.extend(again);
            Op::Append(step, parts)
        }),
        3 => (0..200u64).prop_map(Op::Delete),
        1 => (threshold, any::<bool>(), 0..20u64)
            .prop_map(|(threshold, is_approximate, limit)| Op::Trim(Trim { threshold, is_approximate, limit, references: References::Keep })),
    ]
}

proptest! {
    #[test]
    fn behaves_as_a_list(ops in prop::collection::vec(op(), 1..120), max_entries in 0..8u64, max_bytes in 0..300usize) {
        let limits = Limits {
            stream_node_max_entries: max_entries,
            stream_node_max_bytes: max_bytes,
            ..Limits::for_version(Version::V7_4)
        };
        let mut stream = Stream::new(&limits);
        let mut model: Vec<Model> = Vec::new();
        let mut ms = 0;
        for op in ops {
            match op {
                Op::Append(step, parts) => {
                    ms += step;
                    let words: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
                    stream.append(id(ms), &words, &limits);
                    model.push((id(ms), parts));
                }
                Op::Delete(ms) => {
                    let before = model.len();
                    model.retain(|(known, _)| *known != id(ms));
                    prop_assert_eq!(stream.delete(id(ms)), model.len() < before);
                }
                Op::Trim(trim) => {
                    let removed = stream.trim(&trim) as usize;
                    let most = model.iter().enumerate().filter(|(at, (id, _))| match trim.threshold {
                        Threshold::MaxLen(most) => (model.len() - at) as u64 > most,
                        Threshold::MinId(least) => *id < least,
                    }).count();
                    if trim.is_approximate || trim.limit > 0 {
                        prop_assert!(removed <= most);
                    } else {
                        prop_assert_eq!(removed, most);
                    }
                    model.drain(..removed);
                }
            }
            prop_assert_eq!(stream.len(), model.len());
            prop_assert_eq!(stream.first_id, model.first().map_or(StreamId::MIN, |(id, _)| *id));
            prop_assert_eq!(stream.last_live_id(), model.last().map_or(StreamId::MIN, |(id, _)| *id));
            let all: Vec<Model> = stream.range(StreamId::MIN, StreamId::MAX).map(read).collect();
            prop_assert_eq!(&all, &model);
            for (from, to) in [(ms / 3, ms / 2), (ms - ms / 8, ms), (ms, ms)].map(|(from, to)| (id(from), id(to))) {
                let expected: Vec<Model> =
                    model.iter().filter(|(id, _)| (from..=to).contains(id)).cloned().collect();
                prop_assert_eq!(&stream.range(from, to).map(read).collect::<Vec<_>>(), &expected);
                let mut back: Vec<Model> = stream.range_back(from, to).map(read).collect();
                back.reverse();
                prop_assert_eq!(back, expected);
            }
            for (first, node) in stream.nodes() {
                let read = Node::from_listpack(node.bytes()).expect("a sound node");
                prop_assert_eq!(read.entries(first).count(), node.entries(first).count());
            }
        }
    }

    #[test]
    fn counts_the_nodes_of_a_radix_tree(mut keys in prop::collection::btree_set((0..5u64, 0..70_000u64), 0..60)) {
        keys.insert((u64::MAX, 0));
        let keys: Vec<[u8; 16]> = keys.iter().map(|&(ms, seq)| StreamId { ms, seq }.to_bytes()).collect();
        let counted = radix_tree_nodes(keys.iter().map(|&bytes| StreamId::from_bytes(bytes)));
        prop_assert_eq!(counted, built(&keys, 0));
    }
}

/// Returns the number of nodes of a radix tree below `depth`, counted by its definition.
fn built(keys: &[[u8; 16]], depth: usize) -> usize {
    let last = keys.len() - 1;
    let shared = (depth..16).take_while(|&at| keys[0][at] == keys[last][at]).count();
    let run = (shared > 0) as usize;
    if depth + shared == 16 {
        return run + 1;
    }
    let children = keys.chunk_by(|a, b| a[depth + shared] == b[depth + shared]);
    run + 1 + children.map(|keys| built(keys, depth + shared + 1)).sum::<usize>()
}

#[test]
fn consumers_and_their_group_agree_on_what_is_pending() {
    let mut group = Group::new(StreamId::MIN, None);
    let (a, b) = (group.add_consumer(b"a", 1), group.add_consumer(b"b", 1));
    let pending = |consumer| Pending { consumer, delivered_ms: 1, deliveries: 1 };
    (1..5).for_each(|ms| group.deliver(id(ms), pending(a)));
    group.deliver(id(2), pending(b));
    group.check();
    assert!(group.acknowledge(id(1)) && !group.acknowledge(id(1)));
    assert_eq!(group.delete_consumer(b"a"), Some(2));
    assert_eq!(group.pending_len(), 1);
    assert_eq!(group.add_consumer(b"c", 1), a);
    group.check();
}
