//! Sets of byte strings.
//!
//! Integers stand sorted in an `intset`. Since 7.2 a small set of other members is a `listpack`, in the order in which they
//! were added; everything else is a table in the order of its slots. Adding never makes a set smaller again.

use std::collections::BTreeSet;

use itoa::Buffer;

use super::limits::Limits;
use super::packed::Packed;
use super::slab_map::{SlabMap, scale};
use crate::num::parse_i64;
use crate::version::Version;

/// A set of byte strings. Boxed, so that it does not make the keys of locks larger.
#[derive(Clone)]
pub struct Set(Box<Form>);

#[derive(Clone)]
enum Form {
    Intset(Vec<i64>),
    Listpack(Packed),
    Table(SlabMap<()>),
}

/// A member as the set holds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Member<'a> {
    Int(i64),
    Bytes(&'a [u8]),
}

impl Member<'_> {
    /// Returns the bytes; `digits` is where those of an integer are written.
    pub fn bytes<'a>(&'a self, digits: &'a mut Buffer) -> &'a [u8] {
        match self {
            Member::Int(number) => digits.format(*number).as_bytes(),
            Member::Bytes(bytes) => bytes,
        }
    }

    pub fn to_vec(&self) -> Vec<u8> {
        self.bytes(&mut Buffer::new()).to_vec()
    }
}

impl Set {
    /// Returns an empty set for `members` members (repeated ones included), the first of which is `first`.
    pub fn for_members(first: &[u8], members: usize, limits: &Limits) -> Set {
        // Before 7.2 the number of members to come makes no difference.
        let members = if limits.version >= Version::V7_2 { members } else { 0 };
        if members <= limits.set_max_intset_entries && parse_i64(first).is_some() {
            Set::intset()
        } else if limits.version >= Version::V7_2 && members <= limits.set_max_listpack_entries {
            Set::listpack()
        } else {
            Set::table()
        }
    }

    pub fn intset() -> Set {
        Set(Box::new(Form::Intset(Vec::new())))
    }

    pub fn listpack() -> Set {
        Set(Box::new(Form::Listpack(Packed::default())))
    }

    pub fn table() -> Set {
        Set(Box::new(Form::Table(SlabMap::new())))
    }

    /// Returns a listpack of different members in this order, or a table if they are too many, whatever their length.
    pub fn small(members: &[&[u8]], limits: &Limits) -> Set {
        let mut packed = Packed::default();
        packed.append(members);
        let mut set = Set(Box::new(Form::Listpack(packed)));
        if members.len() > limits.set_max_listpack_entries {
            set.become_table();
        }
        set
    }

    pub fn encoding(&self) -> &'static str {
        match *self.0 {
            Form::Intset(_) => "intset",
            Form::Listpack(_) => "listpack",
            Form::Table(_) => "hashtable",
        }
    }

    pub fn len(&self) -> usize {
        match &*self.0 {
            Form::Intset(numbers) => numbers.len(),
            Form::Listpack(packed) => packed.count(),
            Form::Table(table) => table.len(),
        }
    }

    pub fn is_empty(&self) -> bool {
        match &*self.0 {
            Form::Intset(numbers) => numbers.is_empty(),
            Form::Listpack(packed) => packed.is_empty(),
            Form::Table(table) => table.is_empty(),
        }
    }

    pub fn contains(&self, member: &[u8]) -> bool {
        match &*self.0 {
            Form::Intset(numbers) => {
                parse_i64(member).is_some_and(|number| numbers.binary_search(&number).is_ok())
            }
            Form::Listpack(packed) => packed.find(member, 1).is_some(),
            Form::Table(table) => table.contains(member),
        }
    }

    /// Tells how many members (repeated ones included) one command is about to add.
    /// Since 7.2, more than a small form may have turn it into a table at once.
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
                let Err(place) = numbers.binary_search(&number) else { return false };
                numbers.insert(place, number);
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

    /// Returns the first member that is no integer makes a set of integers a listpack if that may hold it and them.
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

    /// Removes a member. Returns whether it was there.
    pub fn remove(&mut self, member: &[u8]) -> bool {
        match &mut *self.0 {
            Form::Intset(numbers) => {
                let place = parse_i64(member).and_then(|number| numbers.binary_search(&number).ok());
                place.map(|place| numbers.remove(place)).is_some()
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

    /// Returns a member chosen by a random number.
    pub fn random(&self, draw: u64) -> Option<Member<'_>> {
        match &*self.0 {
            Form::Intset(numbers) => numbers.get(scale(draw, numbers.len())).copied().map(Member::Int),
            Form::Listpack(packed) => packed.iter().nth(scale(draw, packed.count())).map(Member::Bytes),
            Form::Table(table) => table.key(table.random(draw)?).map(Member::Bytes),
        }
    }

    /// Up to `count` different members chosen by random numbers.
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

    /// Takes out a member chosen by a random number.
    pub fn pop_random(&mut self, draw: u64) -> Option<Vec<u8>> {
        let member = self.random(draw)?.to_vec();
        self.remove(&member);
        Some(member)
    }

    /// Returns the members at these places of the order of [`iter`](Self::iter).
    pub fn members_at(&self, places: &[usize]) -> Vec<Vec<u8>> {
        let members: Vec<Member> = self.iter().collect();
        places.iter().filter_map(|&place| members.get(place)).map(Member::to_vec).collect()
    }

    /// Takes out the members at these places, in the order they are named. If few stay Redis builds a new set of them, whose form
    /// is that of a set to which they are added.
    pub fn take(&mut self, places: &[usize], limits: &Limits) -> Vec<Vec<u8>> {
        const FEW: usize = 5;
        let taken = self.members_at(places);
        let stay = self.len() - taken.len();
        if stay * FEW > taken.len() {
            for member in &taken {
                self.remove(member);
            }
            return taken;
        }
        let gone: BTreeSet<usize> = places.iter().copied().collect();
        let kept: Vec<usize> = (0..self.len()).filter(|place| !gone.contains(place)).collect();
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

    /// Returns an empty set to which the members of an intersection with this set are added.
    pub fn for_intersection(&self, limits: &Limits) -> Set {
        match &*self.0 {
            Form::Listpack(_) | Form::Table(_) if limits.version >= Version::V7_2 => Set::listpack(),
            _ => Set::intset(),
        }
    }

    /// Makes a set of integers an intset, if that may hold as many. The results of set operations end so.
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
