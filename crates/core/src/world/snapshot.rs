//! A copy of the data of all nodes at one moment, which can be restored.

use super::World;
use crate::image::{Reader, Words};
use crate::node::image::{read_value, write_value};
use crate::store::Value;

/// The data that SIM.RUN SNAPSHOT keeps: the keys and libraries of all nodes. Excludes connections, subscriptions, rules and the
/// clock.
#[derive(Clone, Default)]
pub struct Snapshot {
    keys: Vec<Key>,
    /// The texts of each node's libraries of functions.
    libraries: Vec<Vec<Box<[u8]>>>,
}

#[derive(Clone)]
struct Key {
    node: usize,
    db: usize,
    name: Box<[u8]>,
    value: Value,
    /// The remaining time to live in ms.
    ttl_ms: Option<i64>,
}

impl Snapshot {
    /// Copies the data of all nodes.
    pub fn of(world: &World) -> Snapshot {
        let mut keys = Vec::new();
        for (index, node) in world.nodes.iter().enumerate() {
            let now_ms = world.clock.now().wall_ms() + node.wall_jump_ms;
            for (db, data) in node.store.dbs.iter().enumerate() {
                keys.extend(data.iter().map(|(_, name, entry)| Key {
                    node: index,
                    db,
                    name: name.into(),
                    value: entry.value.clone(),
                    ttl_ms: entry.expires_at_ms().map(|end_ms| end_ms - now_ms),
                }));
            }
        }
        let libraries =
            world.nodes.iter().map(|node| node.functions.texts().map(Box::from).collect()).collect();
        Snapshot { keys, libraries }
    }

    /// Returns lines that bring an empty snapshot to this one; each begins with `begin`.
    pub fn image(&self, world: &World, begin: &Words) -> Vec<Words> {
        let libraries = self.libraries.iter().enumerate().map(|(node, texts)| {
            begin.clone().word(b"LIBRARIES").value(node).words(texts.iter().map(|text| &**text))
        });
        let keys = self.keys.iter().map(|key| {
            let version = world.nodes[key.node].config.version;
            let line = begin.clone().word(b"KEY").value(key.node).value(key.db).word(&key.name);
            write_value(line, &key.value, key.ttl_ms, version)
        });
        libraries.chain(keys).collect()
    }

    /// Takes a line, without the words with which it begins. Returns `None` if it is malformed.
    pub fn take_image(&mut self, world: &World, line: &mut Reader) -> Option<()> {
        let (what, node) = (line.word()?, line.value()?);
        let limits = &world.nodes.get::<usize>(node)?.store.limits;
        match what {
            b"LIBRARIES" => {
                self.libraries.resize(self.libraries.len().max(node + 1), Vec::new());
                self.libraries[node] = line.rest().iter().map(|text| (*text).into()).collect();
            }
            _ => {
                let (db, name) = (line.value()?, line.word()?.into());
                world.nodes[node].store.dbs.get(db)?;
                let (value, ttl_ms) = read_value(line, limits)?;
                self.keys.push(Key { node, db, name, value, ttl_ms });
            }
        }
        Some(())
    }

    /// Replaces the data of all nodes. The remaining times to live continue from the moment of the snapshot.
    pub fn restore(&self, world: &mut World) {
        for index in 0..world.nodes.len() {
            let node = world.begin(index);
            (0..node.store.dbs.len()).for_each(|db| node.flush_db(db));
            node.replace_functions(self.libraries.get(index).map_or(&[], Vec::as_slice));
        }
        for key in &self.keys {
            let node = world.begin(key.node);
            let slot = node.store.insert(key.db, &key.name, key.value.clone());
            let end_ms = key.ttl_ms.map(|ttl_ms| node.store.now.wall_ms() + ttl_ms);
            node.store.set_expiry(key.db, slot, end_ms);
        }
        (0..world.nodes.len()).for_each(|node| world.resync_replicas(node));
        world.nodes.iter_mut().for_each(|node| node.serve_ready_keys());
    }
}
