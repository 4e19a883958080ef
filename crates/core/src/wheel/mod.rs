//! One hierarchical timing wheel for every timer of a node.
//!
//! Time is cut into ticks of 1 ms. Level 0 has one slot for each of the 64 ticks around now, level 1 has one slot for
//! each stretch of 64 ticks, level 2 for each of 64², and so on: eleven levels hold every `u64`. Compare a timer's
//! deadline with the wheel's time, in groups of six bits from the top: the first group that differs is the timer's
//! level, and the value of that group in the deadline is its slot. Two things follow:
//!
//! - A timer's slot depends on nothing but its deadline and the wheel's time. So equal deadlines always share a list,
//!   and the list, which only ever grows at its end, keeps the order in which they were armed.
//! - All timers of a level are due before those of the next level. So the next slot to process is the first one of the
//!   lowest level in use: skipping an empty hour, or 10¹² ms, takes a few steps.
//!
//! When time enters a slot of a higher level, the timers of that slot move to lower levels in order; a timer moves at
//! most ten times.
//!
//! Timers whose deadline is before the wheel's time (armed late, or left there when the clock was set back) are in a
//! sorted map of lists.

use std::collections::BTreeMap;

const BITS: u32 = 6;
const SLOTS: usize = 1 << BITS;
const LEVELS: usize = u64::BITS.div_ceil(BITS) as usize;
const NIL: u32 = u32::MAX;

/// Identifies an armed timer. Once the timer has fired or been cancelled, the id is stale; using it does nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TimerId {
    index: u32,
    generation: u32,
}

impl TimerId {
    /// The id of no timer: always stale.
    pub const NONE: TimerId = TimerId { index: NIL, generation: 0 };

    /// Returns whether this is [`NONE`](Self::NONE).
    pub fn is_none(self) -> bool {
        self == TimerId::NONE
    }
}

/// The place of a timer in the wheel, half the size of a [`TimerId`]. Once the timer has fired or been cancelled, another
/// timer may take its place; [`Wheel::at`] tells them apart by their payloads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimerPlace(u32);

impl TimerPlace {
    /// The place of no timer.
    pub const NONE: TimerPlace = TimerPlace(NIL);
}

impl From<TimerId> for TimerPlace {
    fn from(id: TimerId) -> TimerPlace {
        TimerPlace(id.index)
    }
}

impl Default for TimerId {
    fn default() -> Self {
        TimerId::NONE
    }
}

/// A slab entry: a timer, linked into one list, or a free entry, linked into the free list by `next`. Packed to 28 bytes for a
/// payload of 8: every lock has one.
#[repr(Rust, packed(4))]
#[derive(Clone, Copy)]
struct Node<T> {
    deadline_ms: u64,
    payload: T,
    prev: u32,
    next: u32,
    /// Odd while the timer is armed; arming and freeing each add one.
    generation: u32,
}

impl<T> Node<T> {
    fn is_armed(&self) -> bool {
        self.generation & 1 == 1
    }
}

/// The ends of a doubly linked list of nodes. The timer armed first is at the head.
#[derive(Clone, Copy)]
struct List {
    head: u32,
    tail: u32,
}

const EMPTY: List = List { head: NIL, tail: NIL };

/// Timers with payloads of type `T`. They fire in the order of their deadlines; equal deadlines fire in the order
/// armed.
#[derive(Clone)]
pub struct Wheel<T: Copy> {
    now_ms: u64,
    nodes: Vec<Node<T>>,
    first_free: u32,
    len: usize,
    /// One bit per slot that has timers.
    occupied: [u64; LEVELS],
    /// The list of slot `s` of level `l` is `slots[l * SLOTS + s]`.
    slots: Box<[List]>,
    /// Lists of the timers whose deadline is before `now_ms`, by deadline.
    behind: BTreeMap<u64, List>,
    /// The earliest deadline armed since nothing was due.
    armed_ms: u64,
}

impl<T: Copy> Wheel<T> {
    /// Creates an empty wheel whose time is `now_ms`.
    pub fn new(now_ms: u64) -> Self {
        Wheel {
            now_ms,
            nodes: Vec::new(),
            first_free: NIL,
            len: 0,
            occupied: [0; LEVELS],
            slots: vec![EMPTY; LEVELS * SLOTS].into(),
            behind: BTreeMap::new(),
            armed_ms: u64::MAX,
        }
    }

    /// Arms a timer. A deadline that has already passed is due at the next [`pop_due`](Self::pop_due).
    ///
    /// # Panics
    ///
    /// If 2³² − 1 timers are armed.
    pub fn arm(&mut self, deadline_ms: u64, payload: T) -> TimerId {
        let index = self.allocate(deadline_ms, payload);
        self.link(index);
        self.len += 1;
        TimerId { index, generation: self.nodes[index as usize].generation }
    }

    /// Moves a timer to another deadline; it fires after all timers already armed for that deadline. Returns false if
    /// `id` is stale.
    pub fn rearm(&mut self, id: TimerId, deadline_ms: u64) -> bool {
        if !self.is_armed(id) {
            return false;
        }
        self.unlink(id.index);
        self.nodes[id.index as usize].deadline_ms = deadline_ms;
        self.link(id.index);
        true
    }

    /// Cancels a timer and returns its payload, or `None` if `id` is stale.
    pub fn cancel(&mut self, id: TimerId) -> Option<T> {
        self.is_armed(id).then(|| self.remove(id.index).1)
    }

    /// Removes the next timer whose deadline is at most `now_ms`, and returns its deadline and payload.
    ///
    /// The wheel's time moves to that deadline, or to `now_ms` once nothing more is due. It never moves back.
    pub fn pop_due(&mut self, now_ms: u64) -> Option<(u64, T)> {
        if let Some(next) = self.find_due(now_ms) {
            return Some(self.remove(next));
        }
        if self.behind.is_empty() {
            self.now_ms = self.now_ms.max(now_ms);
            self.armed_ms = u64::MAX;
        }
        None
    }

    /// Returns whether [`pop_due`](Self::pop_due) would return a timer.
    pub fn is_due(&mut self, now_ms: u64) -> bool {
        self.find_due(now_ms).is_some()
    }

    /// Returns the node of the next timer whose deadline is at most `now_ms`. The wheel's time moves to that deadline.
    fn find_due(&mut self, now_ms: u64) -> Option<u32> {
        if let Some((&deadline_ms, list)) = self.behind.first_key_value() {
            return (deadline_ms <= now_ms).then_some(list.head);
        }
        while let Some((level, slot)) = self.first_slot() {
            let start_ms = self.slot_start_ms(level, slot);
            if start_ms > now_ms {
                break;
            }
            self.now_ms = start_ms;
            if level == 0 {
                return Some(self.slots[slot].head);
            }
            self.cascade(level, slot);
        }
        None
    }

    /// Returns whether a timer was armed whose deadline is at most `now_ms`, since [`pop_due`](Self::pop_due) found nothing
    /// due. Cheaper than [`next_wakeup_ms`](Self::next_wakeup_ms).
    pub fn was_armed_by(&self, now_ms: u64) -> bool {
        self.armed_ms <= now_ms
    }

    /// Returns when the caller has to call [`pop_due`](Self::pop_due) again: never later than the earliest deadline.
    /// Takes a few steps.
    pub fn next_wakeup_ms(&self) -> Option<u64> {
        if let Some((&deadline_ms, _)) = self.behind.first_key_value() {
            return Some(deadline_ms);
        }
        self.first_slot().map(|(level, slot)| self.slot_start_ms(level, slot))
    }

    /// Returns the earliest deadline. Takes time proportional to the number of timers in its slot.
    pub fn next_deadline_ms(&self) -> Option<u64> {
        if let Some((&deadline_ms, _)) = self.behind.first_key_value() {
            return Some(deadline_ms);
        }
        let (level, slot) = self.first_slot()?;
        let mut earliest_ms = u64::MAX;
        let mut index = self.slots[level * SLOTS + slot].head;
        while index != NIL {
            let node = &self.nodes[index as usize];
            earliest_ms = earliest_ms.min(node.deadline_ms);
            index = node.next;
        }
        Some(earliest_ms)
    }

    /// Returns the id of the timer armed at `place`, or [`TimerId::NONE`] if it does not have this payload.
    pub fn at(&self, place: TimerPlace, payload: T) -> TimerId
    where
        T: PartialEq,
    {
        match self.nodes.get(place.0 as usize) {
            Some(node) if node.is_armed() && { node.payload } == payload => {
                TimerId { index: place.0, generation: node.generation }
            }
            _ => TimerId::NONE,
        }
    }

    /// Returns the deadline and the payload of an armed timer.
    pub fn get(&self, id: TimerId) -> Option<(u64, T)> {
        let node = self.is_armed(id).then(|| &self.nodes[id.index as usize])?;
        Some((node.deadline_ms, node.payload))
    }

    /// Returns the deadline of an armed timer.
    pub fn deadline_ms(&self, id: TimerId) -> Option<u64> {
        self.is_armed(id).then(|| self.nodes[id.index as usize].deadline_ms)
    }

    /// Returns the deadlines and payloads of all timers, in slab order.
    pub fn iter(&self) -> impl Iterator<Item = (u64, T)> + '_ {
        self.nodes.iter().filter(|node| node.is_armed()).map(|node| (node.deadline_ms, node.payload))
    }

    /// Returns the number of armed timers.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether no timer is armed.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Cancels every timer. The wheel's time does not change.
    pub fn clear(&mut self) {
        for index in 0..self.nodes.len() as u32 {
            if self.nodes[index as usize].is_armed() {
                self.free(index);
            }
        }
        self.occupied = [0; LEVELS];
        self.slots.fill(EMPTY);
        self.behind.clear();
    }

    fn is_armed(&self, id: TimerId) -> bool {
        // Generations are odd while armed, so an id with the node's generation belongs to an armed timer.
        self.nodes.get(id.index as usize).is_some_and(|node| node.generation == id.generation)
    }

    /// Allocates a slab entry, reusing the one freed last if there is one.
    fn allocate(&mut self, deadline_ms: u64, payload: T) -> u32 {
        let index = self.first_free;
        if let Some(node) = self.nodes.get_mut(index as usize) {
            self.first_free = node.next;
            node.deadline_ms = deadline_ms;
            node.payload = payload;
            node.generation = node.generation.wrapping_add(1);
            return index;
        }
        assert!(self.nodes.len() < NIL as usize, "a wheel holds at most 2^32 - 1 timers");
        self.nodes.push(Node { deadline_ms, payload, prev: NIL, next: NIL, generation: 1 });
        (self.nodes.len() - 1) as u32
    }

    /// Frees the slab entry of a node that is in no list.
    fn free(&mut self, index: u32) {
        let node = &mut self.nodes[index as usize];
        node.generation = node.generation.wrapping_add(1);
        node.next = self.first_free;
        self.first_free = index;
        self.len -= 1;
    }

    fn remove(&mut self, index: u32) -> (u64, T) {
        self.unlink(index);
        self.free(index);
        let node = &self.nodes[index as usize];
        (node.deadline_ms, node.payload)
    }

    /// Returns the level and slot of a deadline that is not before the wheel's time.
    fn slot_of(&self, deadline_ms: u64) -> (usize, usize) {
        // Setting the lowest bit gives a deadline of now a leading bit too, which puts it on level 0.
        let level = ((deadline_ms ^ self.now_ms) | 1).ilog2() / BITS;
        let slot = (deadline_ms >> (level * BITS)) as usize % SLOTS;
        (level as usize, slot)
    }

    /// Appends a node to the list for its deadline.
    fn link(&mut self, index: u32) {
        let deadline_ms = self.nodes[index as usize].deadline_ms;
        self.armed_ms = self.armed_ms.min(deadline_ms);
        let list = if deadline_ms < self.now_ms {
            self.behind.entry(deadline_ms).or_insert(EMPTY)
        } else {
            let (level, slot) = self.slot_of(deadline_ms);
            self.occupied[level] |= 1 << slot;
            &mut self.slots[level * SLOTS + slot]
        };
        let tail = std::mem::replace(&mut list.tail, index);
        if tail == NIL {
            list.head = index;
        } else {
            self.nodes[tail as usize].next = index;
        }
        let node = &mut self.nodes[index as usize];
        node.prev = tail;
        node.next = NIL;
    }

    /// Removes a node from its list.
    fn unlink(&mut self, index: u32) {
        let Node { deadline_ms, prev, next, .. } = self.nodes[index as usize];
        if prev != NIL {
            self.nodes[prev as usize].next = next;
        }
        if next != NIL {
            self.nodes[next as usize].prev = prev;
        }
        if prev != NIL && next != NIL {
            return;
        }
        if deadline_ms >= self.now_ms {
            let (level, slot) = self.slot_of(deadline_ms);
            let list = &mut self.slots[level * SLOTS + slot];
            list.cut(prev, next);
            if list.head == NIL {
                self.occupied[level] &= !(1 << slot);
            }
        } else if let Some(list) = self.behind.get_mut(&deadline_ms) {
            list.cut(prev, next);
            if list.head == NIL {
                self.behind.remove(&deadline_ms);
            }
        }
    }

    /// Returns the slot with the earliest timers. Slots before the wheel's time are empty, so it is the first occupied
    /// one of the lowest occupied level.
    fn first_slot(&self) -> Option<(usize, usize)> {
        let level = self.occupied.iter().position(|&slots| slots != 0)?;
        Some((level, self.occupied[level].trailing_zeros() as usize))
    }

    /// Returns the first tick of a slot at or after the wheel's time.
    fn slot_start_ms(&self, level: usize, slot: usize) -> u64 {
        let shift = level as u32 * BITS;
        // The bits above this level's six are those of the wheel's time; the top level has none above.
        let above = self.now_ms.checked_shr(shift + BITS).unwrap_or(0);
        above.checked_shl(shift + BITS).unwrap_or(0) | (slot as u64) << shift
    }

    /// Moves the timers of a slot that time has just entered to lower levels, in order.
    fn cascade(&mut self, level: usize, slot: usize) {
        let list = std::mem::replace(&mut self.slots[level * SLOTS + slot], EMPTY);
        self.occupied[level] &= !(1 << slot);
        let mut index = list.head;
        while index != NIL {
            let next = self.nodes[index as usize].next;
            self.link(index);
            index = next;
        }
    }
}

impl List {
    /// Repairs the links after the removal of a node between `prev` and `next`.
    fn cut(&mut self, prev: u32, next: u32) {
        if prev == NIL {
            self.head = next;
        }
        if next == NIL {
            self.tail = prev;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_deadlines_fire_in_the_order_set_whatever_level_they_were_set_on() {
        let mut wheel = Wheel::new(0);
        wheel.arm(100_000, 'a');
        let moved = wheel.arm(7, 'c');
        assert_eq!(wheel.pop_due(99_000), Some((7, 'c')));
        assert_eq!(wheel.pop_due(99_000), None);
        wheel.arm(100_000, 'b');
        let last = wheel.arm(100_000, 'x');
        wheel.arm(100_000, 'd');
        assert!(wheel.rearm(last, 100_000));
        assert!(!wheel.rearm(moved, 1));
        let order: String =
            std::iter::from_fn(|| wheel.pop_due(200_000)).map(|(_, payload)| payload).collect();
        assert_eq!(order, "abdx");
    }

    #[test]
    fn the_ends_of_time_work() {
        let mut wheel = Wheel::new(0);
        wheel.arm(u64::MAX, 'z');
        wheel.arm(0, 'a');
        assert_eq!(wheel.pop_due(0), Some((0, 'a')));
        assert_eq!(wheel.pop_due(u64::MAX - 1), None);
        assert_eq!(wheel.next_deadline_ms(), Some(u64::MAX));
        assert_eq!(wheel.pop_due(u64::MAX), Some((u64::MAX, 'z')));
        wheel.arm(3, 'b');
        assert_eq!(wheel.next_wakeup_ms(), Some(3));
        assert_eq!(wheel.pop_due(2), None);
        assert_eq!(wheel.pop_due(3), Some((3, 'b')));
        assert!(wheel.is_empty());
    }

    #[test]
    fn the_slab_is_no_larger_than_the_most_timers_at_once() {
        let mut wheel = Wheel::new(0);
        for round in 0..1_000u64 {
            let ids: Vec<_> = (0..10).map(|i| wheel.arm(round + i, ())).collect();
            ids.into_iter().for_each(|id| assert_eq!(wheel.cancel(id), Some(())));
        }
        assert_eq!(wheel.nodes.len(), 10);
    }

    #[test]
    fn an_id_is_eight_bytes() {
        assert_eq!(size_of::<TimerId>(), 8);
        assert!(TimerId::default().is_none());
    }
}
