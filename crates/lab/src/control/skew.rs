//! How far the clocks of clients are from the node's, as far as their lock scripts show it.

use std::collections::BTreeMap;

/// What was seen of one client's clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Skew {
    /// The client's time minus the node's when its last script came, in ms.
    pub last_ms: i64,
    pub samples: u64,
}

/// By the client's name, or by its address if it has none.
#[derive(Clone, Debug, Default)]
pub struct Skews(BTreeMap<Vec<u8>, Skew>);

/// Clients beyond this many are not watched.
const MAX_CLIENTS: usize = 10_000;

impl Skews {
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
