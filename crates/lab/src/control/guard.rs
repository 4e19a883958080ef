//! Guards for tests in Rust: dropping one removes its fault rule or gate.

use std::rc::Rc;

use super::{Gate, Lab, Rule, Staging};

/// Removes its fault rule when dropped.
pub struct FaultGuard {
    staging: Rc<Staging>,
    rule: u64,
}

/// Removes its gate when dropped. The removal, with the release of what the gate holds, happens at the next request or clock
/// advance.
pub struct GateGuard {
    staging: Rc<Staging>,
    gate: u64,
}

impl FaultGuard {
    /// Returns how often the rule has applied.
    pub fn hits(&self) -> u64 {
        let control = self.staging.control.borrow();
        control.rules.iter().find(|active| active.id == self.rule).map_or(0, |active| active.hits)
    }
}

impl GateGuard {
    /// Returns how many requests, replies or messages the gate holds now.
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
    /// Adds a fault rule; dropping the guard removes it.
    pub fn add_rule(&mut self, rule: Rule) -> FaultGuard {
        let id = self.staging.control.borrow_mut().rules.add(rule);
        self.refresh_interest();
        FaultGuard { staging: Rc::clone(&self.staging), rule: id }
    }

    /// Adds a gate; dropping the guard removes it.
    pub fn add_gate(&mut self, gate: Gate) -> GateGuard {
        let id = self.staging.control.borrow_mut().gates.add(gate, None);
        self.refresh_interest();
        GateGuard { staging: Rc::clone(&self.staging), gate: id }
    }

    /// Removes the gates whose guards were dropped.
    pub(crate) fn remove_abandoned(&mut self) {
        let abandoned = std::mem::take(&mut self.staging.control.borrow_mut().abandoned);
        abandoned.into_iter().for_each(|gate| self.remove_gate(gate));
    }
}
