//! Rules and gates that go with a value of a test in Rust.

use std::rc::Rc;

use super::{Gate, Lab, Rule, Staging};

/// A fault rule that ends when this is dropped.
pub struct FaultGuard {
    staging: Rc<Staging>,
    rule: u64,
}

/// A gate that ends when this is dropped, as soon as something happens to the world.
pub struct GateGuard {
    staging: Rc<Staging>,
    gate: u64,
}

impl FaultGuard {
    /// How often the rule has acted.
    pub fn hits(&self) -> u64 {
        let control = self.staging.control.borrow();
        control.rules.iter().find(|active| active.id == self.rule).map_or(0, |active| active.hits)
    }
}

impl GateGuard {
    /// How many things the gate holds now.
    pub fn held(&self) -> usize {
        self.staging.control.borrow().gates.held_by(self.gate).count()
    }
}

impl Drop for FaultGuard {
    fn drop(&mut self) {
        self.staging.control.borrow_mut().rules.remove_by_id(self.rule);
    }
}

impl Drop for GateGuard {
    fn drop(&mut self) {
        self.staging.control.borrow_mut().abandoned.push(self.gate);
    }
}

impl Lab {
    pub fn add_rule(&mut self, rule: Rule) -> FaultGuard {
        let id = self.staging.control.borrow_mut().rules.add(rule);
        self.refresh_interest();
        FaultGuard { staging: Rc::clone(&self.staging), rule: id }
    }

    pub fn add_gate(&mut self, gate: Gate) -> GateGuard {
        let id = self.staging.control.borrow_mut().gates.add(gate, None);
        self.refresh_interest();
        GateGuard { staging: Rc::clone(&self.staging), gate: id }
    }

    /// Takes away the gates whose guards were dropped.
    pub(crate) fn remove_abandoned(&mut self) {
        let abandoned = std::mem::take(&mut self.staging.control.borrow_mut().abandoned);
        abandoned.into_iter().for_each(|gate| self.remove_gate(gate));
    }
}
