//! Copies of a whole world: data, clients, what they wait for, timers and settings. A copy goes on as the world does.

use std::rc::Rc;

use super::World;
use crate::node::Node;
use crate::stages::Stages;

impl World {
    /// Returns why a copy of this world would not go on as it does, or `None` if it would.
    pub fn uncopyable(&self) -> Option<&'static str> {
        self.nodes.iter().find_map(Node::uncopyable)
    }

    /// Returns a copy that calls `stages`. Lua states are not copied: the copy compiles scripts again.
    ///
    /// # Panics
    ///
    /// Panics if a script is suspended: [`uncopyable`](Self::uncopyable) tells.
    pub fn copy(&self, stages: Rc<dyn Stages>) -> World {
        let mut nodes = self.nodes.clone();
        nodes.iter_mut().for_each(|node| node.stages = Rc::clone(&stages));
        World {
            nodes,
            topology: self.topology,
            partitions: self.partitions.clone(),
            is_clustered: self.is_clustered,
            clock: self.clock.clone(),
            events: self.events,
            stages,
            interest: self.interest,
            inspects_requests: self.inspects_requests,
            has_lost_inputs: self.has_lost_inputs,
            sessions: Vec::new(),
        }
    }
}
