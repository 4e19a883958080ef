//! The search for an order of the operations that a model allows.
//!
//! Wing and Gong try, at each point, every operation whose call comes before the first return that is left. Lowe remembers
//! the configurations that were tried: the set of operations that have taken effect, and the state of the model. Such a set is
//! all calls up to one, but for a few: it is kept as that number and the exceptions, so that it stays small in a long history.

use std::hash::Hash;

use foldhash::fast::FixedState;
use hashbrown::HashSet;

/// An operation with its call and its return.
#[derive(Clone, Debug)]
pub struct Call<O> {
    pub operation: O,
    /// The place of the call in the order of all calls and returns.
    pub from: u64,
    /// The place of the return. `None`: it never returned, so it may have taken effect at any time after the call, or not at
    /// all. A call at the same place as a return comes before it.
    pub to: Option<u64>,
}

/// What a sequential object does. One operation may lead to several states, if it is not known which.
pub trait Model {
    type State: Clone + Eq + Hash;
    type Operation;

    /// Returns the state at the beginning.
    fn start(&self) -> Self::State;

    /// Adds the states that an operation with this result can lead to; none if the result is impossible.
    fn step(&self, state: &Self::State, operation: &Self::Operation, next: &mut Vec<Self::State>);
}

/// How long a search may go on.
pub struct Limit<'a> {
    /// The most configurations to try.
    pub configurations: u64,
    /// Says that the time is over. It is asked once in 1,024 configurations.
    pub is_over: &'a mut dyn FnMut() -> bool,
}

/// What a search has found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict<S> {
    /// The operations in an order that the model allows. Operations that never returned may be missing.
    Linearizable(Vec<usize>),
    /// No order explains the results up to a return, and some do up to the return before.
    Not {
        /// The operation that returns there.
        at: usize,
        /// The longest order that explains all returns before, and the state after it.
        order: Vec<usize>,
        state: S,
    },
    /// The limit was reached.
    Unknown,
}

/// The place before the first call or return, and the one after the last.
const HEAD: usize = 0;

/// Calls and returns in a list from which operations are taken out and put back.
struct List {
    /// For each place its operation, and whether it is the return.
    places: Vec<(usize, bool)>,
    next: Vec<usize>,
    previous: Vec<usize>,
    /// For each operation the places of its call and its return.
    of: Vec<(usize, Option<usize>)>,
}

impl List {
    fn of<O>(calls: &[Call<O>]) -> List {
        let mut order: Vec<(u64, bool, usize)> = Vec::with_capacity(calls.len() * 2);
        for (index, call) in calls.iter().enumerate() {
            order.push((call.from, false, index));
            order.extend(call.to.map(|to| (to, true, index)));
        }
        order.sort_unstable();
        let mut list = List {
            places: vec![(usize::MAX, false)],
            next: (1..=order.len()).chain([HEAD]).collect(),
            previous: [order.len()].into_iter().chain(0..order.len()).collect(),
            of: vec![(HEAD, None); calls.len()],
        };
        for (place, (_, is_return, index)) in order.into_iter().enumerate() {
            list.places.push((index, is_return));
            match is_return {
                false => list.of[index].0 = place + 1,
                true => list.of[index].1 = Some(place + 1),
            }
        }
        list
    }

    fn take_out(&mut self, operation: usize) {
        let (call, end) = self.of[operation];
        for place in [Some(call), end].into_iter().flatten() {
            let (before, after) = (self.previous[place], self.next[place]);
            self.next[before] = after;
            self.previous[after] = before;
        }
    }

    fn put_back(&mut self, operation: usize) {
        let (call, end) = self.of[operation];
        for place in [end, Some(call)].into_iter().flatten() {
            let (before, after) = (self.previous[place], self.next[place]);
            self.next[before] = place;
            self.previous[after] = place;
        }
    }
}

/// A set of places of calls: all below a bound, but for some.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Done {
    bound: usize,
    missing: Vec<usize>,
}

impl Done {
    /// Returns the set with one more call.
    fn with(&self, rank: usize) -> Done {
        let mut more = self.clone();
        match more.missing.binary_search(&rank) {
            Ok(index) => drop(more.missing.remove(index)),
            Err(_) => {
                more.missing.extend(more.bound..rank);
                more.bound = rank + 1;
            }
        }
        more
    }
}

/// An operation that was taken out, and what was there before.
struct Frame<S> {
    operation: usize,
    state: S,
    done: Done,
    /// Other states that the operation can lead to.
    others: Vec<S>,
}

/// Looks for an order of the operations that the model allows.
pub fn check<M: Model>(model: &M, calls: &[Call<M::Operation>], limit: &mut Limit) -> Verdict<M::State> {
    let mut list = List::of(calls);
    let mut ranks = vec![0; calls.len()];
    let by_call = list.places.iter().filter(|(_, is_return)| !is_return).skip(1);
    by_call.enumerate().for_each(|(rank, (operation, _))| ranks[*operation] = rank);
    let mut left = calls.iter().filter(|call| call.to.is_some()).count();
    let mut tried: HashSet<(Done, M::State), FixedState> = HashSet::default();
    let mut frames: Vec<Frame<M::State>> = Vec::new();
    let (mut state, mut done) = (model.start(), Done::default());
    let mut furthest: Option<(usize, Vec<usize>, M::State)> = None;
    let mut next = Vec::new();
    let mut place = list.next[HEAD];
    while left > 0 {
        let (operation, is_return) = list.places[place];
        next.clear();
        let mut before = None;
        if is_return {
            let order = || frames.iter().map(|frame| frame.operation).collect::<Vec<usize>>();
            if furthest.as_ref().is_none_or(|(known, order, _)| {
                *known < place || *known == place && order.len() < frames.len()
            }) {
                furthest = Some((place, order(), state.clone()));
            }
            // Nothing else can come before this return: another way.
            let Some(frame) = frames.pop() else { break };
            list.put_back(frame.operation);
            left += usize::from(calls[frame.operation].to.is_some());
            (state, done, next) = (frame.state, frame.done, frame.others);
            before = Some(frame.operation);
        } else {
            model.step(&state, &calls[operation].operation, &mut next);
        }
        let operation = before.unwrap_or(operation);
        let with = if next.is_empty() { Done::default() } else { done.with(ranks[operation]) };
        let new = loop {
            match next.pop() {
                Some(new) if tried.insert((with.clone(), new.clone())) => break Some(new),
                Some(_) => {}
                None => break None,
            }
        };
        match new {
            Some(new) => {
                let tried = tried.len() as u64;
                if tried > limit.configurations || tried.is_multiple_of(1024) && (limit.is_over)() {
                    return Verdict::Unknown;
                }
                list.take_out(operation);
                left -= usize::from(calls[operation].to.is_some());
                let state = std::mem::replace(&mut state, new);
                let others = std::mem::take(&mut next);
                frames.push(Frame { operation, state, done: std::mem::replace(&mut done, with), others });
                place = list.next[HEAD];
            }
            None => place = list.next[list.of[operation].0],
        }
    }
    match furthest {
        Some((place, order, state)) if left > 0 => Verdict::Not { at: list.places[place].0, order, state },
        _ => Verdict::Linearizable(frames.iter().map(|frame| frame.operation).collect()),
    }
}
