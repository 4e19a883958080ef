//! Sets of byte strings.
//!
//! A set of integers is a sorted `intset`. Since 7.2 a small set with other members is a `listpack` in insertion order.
//! Every other set is a table in slot order. Adding members never makes an encoding smaller.

use std::collections::BTreeSet;

use itoa::Buffer;

use super::limits::Limits;
use super::packed::Packed;
use super::slab_map::{SlabMap, scale};
use crate::num::parse_i64;
use crate::version::Version;

/// A set of byte strings. Boxed, so that it does not enlarge the values of other types.
#[derive(Clone)]
pub struct Set(Box<Form>);

#[derive(Clone)]
enum Form {
    Intset(Vec<i64>),
    Listpack(Packed),
    Table(SlabMap<()>),
}

/// A member in the form in which the set stores it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Member<'a> {
    Int(i64),
    Bytes(&'a [u8]),
}

impl Member<'_> {
    /// Returns the bytes. Those of an integer are written to `digits`.
    pub fn bytes<'a>(&'a self, digits: &'a mut Buffer) -> &'a [u8] {
        match self {
            Member::Int(number) => digits.format(*number).as_bytes(),
            Member::Bytes(bytes) => bytes,
        }
    }

    /// Returns a copy of the bytes.
    pub fn to_vec(&self) -> Vec<u8> {
        self.bytes(&mut Buffer::new()).to_vec()
    }
}

impl Set {
    /// Creates an empty set for `members` members (duplicates included), the first of which is `first`.
    pub fn for_members(first: &[u8], members: usize, limits: &Limits) -> Set {
        // Before 7.2 the announced number of members makes no difference.
        let members = if limits.version >= Version::V7_2 { members } else { 0 };
        if members <= limits.set_max_intset_entries && parse_i64(first).is_some() {
            Set::intset()
        } else if limits.version >= Version::V7_2 && members <= limits.set_max_listpack_entries {
            Set::listpack()
        } else {
            Set::table()
        }
    }

    /// Creates an empty intset.
    pub fn intset() -> Set {
        Set(Box::new(Form::Intset(Vec::new())))
    }

    /// Creates an empty listpack.
    pub fn listpack() -> Set {
        Set(Box::new(Form::Listpack(Packed::default())))
    }

    /// Creates an empty table.
    pub fn table() -> Set {
        Set(Box::new(Form::Table(SlabMap::new())))
    }

    /// Returns a listpack of distinct members in this order, or a table if there are too many. Their length does not
    /// matter.
    pub fn small(members: &[&[u8]], limits: &Limits) -> Set {
        let mut packed = Packed::default();
        packed.append(members);
        let mut set = Set(Box::new(Form::Listpack(packed)));
        if members.len() > limits.set_max_listpack_entries {
            set.become_table();
        }
        set
    }

    /// Returns the name that OBJECT ENCODING reports.
    pub fn encoding(&self) -> &'static str {
        match *self.0 {
            Form::Intset(_) => "intset",
            Form::Listpack(_) => "listpack",
            Form::Table(_) => "hashtable",
        }
    }

    /// Returns the number of members.
    pub fn len(&self) -> usize {
        match &*self.0 {
            Form::Intset(numbers) => numbers.len(),
            Form::Listpack(packed) => packed.count(),
            Form::Table(table) => table.len(),
        }
    }

    /// Returns whether the set has no members.
    pub fn is_empty(&self) -> bool {
        match &*self.0 {
            Form::Intset(numbers) => numbers.is_empty(),
            Form::Listpack(packed) => packed.is_empty(),
            Form::Table(table) => table.is_empty(),
        }
    }

    /// Returns whether the set contains a member.
    pub fn contains(&self, member: &[u8]) -> bool {
        match &*self.0 {
            Form::Intset(numbers) => {
                parse_i64(member).is_some_and(|number| numbers.binary_search(&number).is_ok())
            }
            Form::Listpack(packed) => packed.find(member, 1).is_some(),
            Form::Table(table) => table.contains(member),
        }
    }

    /// Announces how many members (duplicates included) one command is about to add. Since 7.2 a small set becomes a
    /// table at once if they exceed its limit.
    pub fn expect(&mut self, members: usize, limits: &Limits) {
        let most = match *self.0 {
            Form::Intset(_) => limits.set_max_intset_entries,
            Form::Listpack(_) => limits.set_max_listpack_entries,
            Form::Table(_) => return,
        };
        if limits.version >= Version::V7_2 && members > most {
            self.become_table();
        }
    }

    /// Adds a member. Returns whether it is new.
    pub fn add(&mut self, member: &[u8], limits: &Limits) -> bool {
        match &mut *self.0 {
            Form::Intset(numbers) => {
                let Some(number) = parse_i64(member) else { return self.add_text_to_intset(member, limits) };
                let Err(position) = numbers.binary_search(&number) else { return false };
                numbers.insert(position, number);
                if numbers.len() > limits.set_max_intset_entries {
                    self.become_table();
                }
                true
            }
            Form::Listpack(packed) => {
                if packed.find(member, 1).is_some() {
                    return false;
                }
                if packed.count() < limits.set_max_listpack_entries
                    && member.len() <= limits.set_max_listpack_value
                {
                    packed.append(&[member]);
                } else {
                    self.become_table();
                    self.add(member, limits);
                }
                true
            }
            Form::Table(table) => table.insert(member, ()).1.is_none(),
        }
    }

    /// Adds the first member that is not an integer. Converts the intset to a listpack if the limits allow one that
    /// large, else to a table.
    fn add_text_to_intset(&mut self, member: &[u8], limits: &Limits) -> bool {
        let longest = self.iter().map(|number| number.to_vec().len()).max().unwrap_or(0).max(member.len());
        if limits.version >= Version::V7_2
            && self.len() < limits.set_max_listpack_entries
            && longest <= limits.set_max_listpack_value
        {
            let mut packed = Packed::default();
            let digits: Vec<Vec<u8>> = self.iter().map(|number| number.to_vec()).collect();
            packed.append(&digits.iter().map(Vec::as_slice).chain([member]).collect::<Vec<_>>());
            *self.0 = Form::Listpack(packed);
        } else {
            self.become_table();
            self.add(member, limits);
        }
        true
    }

    /// Removes a member. Returns whether it existed.
    pub fn remove(&mut self, member: &[u8]) -> bool {
        match &mut *self.0 {
            Form::Intset(numbers) => {
                let position = parse_i64(member).and_then(|number| numbers.binary_search(&number).ok());
                position.map(|position| numbers.remove(position)).is_some()
            }
            Form::Listpack(packed) => {
                let position = packed.find(member, 1).map(|found| found.position);
                position.map(|position| packed.remove(position, 1)).is_some()
            }
            Form::Table(table) => table.remove(member).is_some(),
        }
    }

    /// Returns all members in order.
    pub fn iter(&self) -> Box<dyn Iterator<Item = Member<'_>> + '_> {
        match &*self.0 {
            Form::Intset(numbers) => Box::new(numbers.iter().map(|&number| Member::Int(number))),
            Form::Listpack(packed) => Box::new(packed.iter().map(Member::Bytes)),
            Form::Table(table) => Box::new(table.iter().map(|(member, ())| Member::Bytes(member))),
        }
    }

    /// Visits the next members of a scan, as [`SlabMap::scan`] does; small sets are visited whole.
    pub fn scan(&self, cursor: u64, count: usize, mut visit: impl FnMut(Member<'_>)) -> u64 {
        match &*self.0 {
            Form::Table(table) => table.scan(cursor, count, |member, ()| visit(Member::Bytes(member))),
            _ => {
                self.iter().for_each(visit);
                0
            }
        }
    }

    /// Returns the member that the random number `draw` selects.
    pub fn random(&self, draw: u64) -> Option<Member<'_>> {
        match &*self.0 {
            Form::Intset(numbers) => numbers.get(scale(draw, numbers.len())).copied().map(Member::Int),
            Form::Listpack(packed) => packed.iter().nth(scale(draw, packed.count())).map(Member::Bytes),
            Form::Table(table) => table.key(table.random(draw)?).map(Member::Bytes),
        }
    }

    /// Returns up to `count` distinct members selected by random numbers.
    pub fn sample(&self, count: usize, draw: &mut dyn FnMut() -> u64) -> Vec<Member<'_>> {
        let mut members: Vec<Member<'_>> = self.iter().collect();
        let count = count.min(members.len());
        for chosen in 0..count {
            let other = chosen + scale(draw(), members.len() - chosen);
            members.swap(chosen, other);
        }
        members.truncate(count);
        members
    }

    /// Removes and returns the member that the random number `draw` selects.
    pub fn pop_random(&mut self, draw: u64) -> Option<Vec<u8>> {
        let member = self.random(draw)?.to_vec();
        self.remove(&member);
        Some(member)
    }

    /// Returns the members at these positions of [`iter`](Self::iter).
    pub fn members_at(&self, positions: &[usize]) -> Vec<Vec<u8>> {
        let members: Vec<Member> = self.iter().collect();
        positions.iter().filter_map(|&position| members.get(position)).map(Member::to_vec).collect()
    }

    /// Removes and returns the members at these positions, in the given order. If few members remain, Redis builds a
    /// new set from them, which has the encoding of a set that they were added to.
    pub fn take(&mut self, positions: &[usize], limits: &Limits) -> Vec<Vec<u8>> {
        const FEW: usize = 5;
        let taken = self.members_at(positions);
        let stay = self.len() - taken.len();
        if stay * FEW > taken.len() {
            for member in &taken {
                self.remove(member);
            }
            return taken;
        }
        let gone: BTreeSet<usize> = positions.iter().copied().collect();
        let kept: Vec<usize> = (0..self.len()).filter(|position| !gone.contains(position)).collect();
        let kept = self.members_at(&kept);
        *self = match (&*self.0, kept.first()) {
            (Form::Intset(_), _) => Set::intset(),
            (_, Some(first)) if limits.version < Version::V7_2 => Set::for_members(first, 1, limits),
            _ => Set::listpack(),
        };
        for member in &kept {
            self.add(member, limits);
        }
        taken
    }

    /// Creates an empty set for the members of an intersection with this set.
    pub fn for_intersection(&self, limits: &Limits) -> Set {
        match &*self.0 {
            Form::Listpack(_) | Form::Table(_) if limits.version >= Version::V7_2 => Set::listpack(),
            _ => Set::intset(),
        }
    }

    /// Converts a set of integers to an intset if it is small enough. Set operations do this with their results.
    pub fn become_intset_if_possible(&mut self, limits: &Limits) {
        if self.len() > limits.set_max_intset_entries {
            return;
        }
        let numbers: Option<Vec<i64>> = self.iter().map(|member| parse_i64(&member.to_vec())).collect();
        if let Some(mut numbers) = numbers {
            numbers.sort_unstable();
            *self.0 = Form::Intset(numbers);
        }
    }

    fn become_table(&mut self) {
        if !matches!(*self.0, Form::Table(_)) {
            let mut table = SlabMap::with_capacity(self.len() + 1);
            let mut digits = Buffer::new();
            for member in self.iter() {
                table.insert(member.bytes(&mut digits), ());
            }
            *self.0 = Form::Table(table);
        }
    }
}

#[cfg(test)]
mod tests;
