//! What the timers of a store's wheel are for.

/// Says what happens when a timer fires. The store arms timers of keys; its owner shares the wheel for the others, so that
/// all timers of a node fire in one order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timer {
    /// A key, or the first of its hash fields, has reached its end.
    Key { db: u32, slot: u32 },
    /// The blocked client at this place has waited long enough.
    Blocked { place: u32 },
    /// CLIENT PAUSE is over.
    Unpause,
}
