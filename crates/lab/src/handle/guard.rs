//! Guards for tests in Rust: dropping one removes its fault rule or gate.

use std::rc::Rc;
use std::sync::Arc;

use super::{FaultId, GateId, Reach, Remote, run_remotely};
use crate::control::{Lab, Staging};

/// Where the rule or the gate is.
enum Home {
    Here(Rc<Staging>),
    There(Arc<dyn Remote>),
}

impl Home {
    fn of(reach: &Reach) -> Home {
        match reach {
            Reach::Here(lab) => Home::Here(Rc::clone(&lab.staging)),
            Reach::There(remote) => Home::There(Arc::clone(remote)),
        }
    }

    /// Counts hits or tickets; 0 if the server has stopped.
    fn count(&self, count: impl FnOnce(&Staging) -> u64 + Send + 'static) -> u64 {
        match self {
            Home::Here(staging) => count(staging),
            Home::There(remote) => {
                run_remotely(&**remote, move |lab: &mut Lab| Ok(count(&lab.staging))).unwrap_or(0)
            }
        }
    }
}

/// Removes its fault rule when dropped.
#[must_use = "dropping the guard removes the rule"]
pub struct FaultGuard {
    home: Home,
    id: FaultId,
}

/// Removes its gate when dropped, which releases what the gate holds: at once on a server, and at the next request or clock
/// advance in a [`Sim`](crate::Sim).
#[must_use = "dropping the guard removes the gate"]
pub struct GateGuard {
    home: Home,
    id: GateId,
}

impl FaultGuard {
    pub(crate) fn new(reach: &Reach, id: FaultId) -> FaultGuard {
        FaultGuard { home: Home::of(reach), id }
    }

    /// Returns the number of the rule.
    pub fn id(&self) -> FaultId {
        self.id
    }

    /// Returns how often the rule has applied.
    pub fn hits(&self) -> u64 {
        let id = self.id.0;
        self.home.count(move |staging| {
            let control = staging.control.borrow();
            control.rules.iter().find(|active| active.id == id).map_or(0, |active| active.hits)
        })
    }
}

impl GateGuard {
    pub(crate) fn new(reach: &Reach, id: GateId) -> GateGuard {
        GateGuard { home: Home::of(reach), id }
    }

    /// Returns the number of the gate.
    pub fn id(&self) -> GateId {
        self.id
    }

    /// Returns how many requests, replies and messages the gate holds now.
    pub fn held(&self) -> usize {
        let id = self.id.0;
        self.home.count(move |staging| staging.control.borrow().gates.held_by(id).count() as u64) as usize
    }
}

impl Drop for FaultGuard {
    fn drop(&mut self) {
        let id = self.id.0;
        match &self.home {
            Home::Here(staging) => staging.control.borrow_mut().rules.remove_by_id(id),
            Home::There(remote) => {
                // A server that has stopped has no rules.
                let _ = run_remotely(&**remote, move |lab| {
                    lab.staging.control.borrow_mut().rules.remove_by_id(id);
                    lab.refresh_interest();
                    Ok(())
                });
            }
        }
    }
}

impl Drop for GateGuard {
    fn drop(&mut self) {
        let id = self.id.0;
        match &self.home {
            Home::Here(staging) => staging.control.borrow_mut().abandoned.push(id),
            Home::There(remote) => {
                // A server that has stopped has no gates.
                let _ = run_remotely(&**remote, move |lab| {
                    lab.remove_gate(id);
                    Ok(())
                });
            }
        }
    }
}

impl Lab {
    /// Removes the gates whose guards were dropped.
    pub(crate) fn remove_abandoned(&mut self) {
        let abandoned = std::mem::take(&mut self.staging.control.borrow_mut().abandoned);
        abandoned.into_iter().for_each(|gate| self.remove_gate(gate));
    }
}
