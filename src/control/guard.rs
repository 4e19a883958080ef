//! Rules and gates that go with a value of a test in Rust.

use std::rc::Rc;

use super::{Gate, Rule, Shared};
use crate::world::World;

/// A fault rule that ends when this is dropped.
#[derive(Debug)]
pub struct FaultGuard {
    control: Shared,
    rule: u64,
}

/// A gate that ends when this is dropped, as soon as something happens to the world.
#[derive(Debug)]
pub struct GateGuard {
    control: Shared,
    gate: u64,
}

impl FaultGuard {
    /// How often the rule has acted.
    pub fn hits(&self) -> u64 {
        let control = self.control.borrow();
        control.rules.iter().find(|active| active.id == self.rule).map_or(0, |active| active.hits)
    }
}

impl GateGuard {
    /// How many things the gate holds now.
    pub fn held(&self) -> usize {
        self.control.borrow().gates.held_by(self.gate).count()
    }
}

impl Drop for FaultGuard {
    fn drop(&mut self) {
        self.control.borrow_mut().rules.remove_by_id(self.rule);
    }
}

impl Drop for GateGuard {
    fn drop(&mut self) {
        self.control.borrow_mut().abandoned.push(self.gate);
    }
}

impl World {
    pub fn add_rule(&mut self, rule: Rule) -> FaultGuard {
        let id = self.control.borrow_mut().rules.add(rule);
        self.refresh_stages();
        FaultGuard { control: Rc::clone(&self.control), rule: id }
    }

    pub fn add_gate(&mut self, gate: Gate) -> GateGuard {
        let id = self.control.borrow_mut().gates.add(gate, None);
        self.refresh_stages();
        GateGuard { control: Rc::clone(&self.control), gate: id }
    }

    /// Takes away the gates whose guards were dropped.
    pub(crate) fn remove_abandoned(&mut self) {
        let abandoned = std::mem::take(&mut self.control.borrow_mut().abandoned);
        abandoned.into_iter().for_each(|gate| self.remove_gate(gate));
    }
}
