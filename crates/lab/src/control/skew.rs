//! The skew between the clocks of clients and of their node, measured from the times that lock scripts carry.

use std::collections::BTreeMap;

/// The skew of one client's clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Skew {
    /// The client's time minus the node's time at its last script, in ms.
    pub last_ms: i64,
    pub samples: u64,
}

/// The skews by client: by its name, or by its address if it has none.
#[derive(Clone, Debug, Default)]
pub struct Skews(BTreeMap<Vec<u8>, Skew>);

/// The most clients that are tracked.
const MAX_CLIENTS: usize = 10_000;

impl Skews {
    /// Adds a sample.
    pub fn note(&mut self, client: &[u8], skew_ms: i64) {
        if self.0.len() >= MAX_CLIENTS && !self.0.contains_key(client) {
            return;
        }
        let skew = self.0.entry(client.to_vec()).or_default();
        skew.last_ms = skew_ms;
        skew.samples += 1;
    }

    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &Skew)> {
        self.0.iter().map(|(client, skew)| (&client[..], skew))
    }
}
