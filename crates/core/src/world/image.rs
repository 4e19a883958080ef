//! The state of a world as lines of words, and back.

use super::World;
use crate::image::{Reader, Words};
use crate::node::Node;
use crate::node::replication::Role;

impl World {
    /// Returns the lines of all nodes.
    pub fn image(&self) -> Vec<Words> {
        let partitions = self.partitions();
        let partitions =
            partitions.map(|(sender, receiver)| Words::about("PARTITION").value(sender).value(receiver));
        self.nodes.iter().flat_map(|node| node.image()).chain(partitions).collect()
    }

    /// Lets all nodes begin anew, so that they can take an image.
    ///
    /// # Panics
    ///
    /// May panic later if a script is running.
    pub fn begin_anew(&mut self) {
        for node in &mut self.nodes {
            node.wall_jump_ms = 0;
            node.set_now(self.clock.now());
            node.begin_anew();
        }
        self.partitions = Default::default();
        self.has_lost_inputs = false;
        self.update_inspection();
    }

    /// Takes a line; `what` is its first word. Returns `None` if it is malformed.
    pub fn take_image(&mut self, what: &[u8], line: &mut Reader) -> Option<()> {
        let (index, nodes): (usize, usize) = (line.value()?, self.nodes.len());
        if what == b"PARTITION" {
            let receiver = line.value().filter(|&receiver| receiver < nodes)?;
            self.nodes.get(index)?;
            self.partitions.cut(index, receiver);
            return Some(());
        }
        let node = self.nodes.get_mut(index)?;
        if what == b"JUMP" {
            node.wall_jump_ms = line.value()?;
            node.set_now(self.clock.now());
            return Some(());
        }
        node.take_image(what, line)?;
        if node.sentinel.as_ref().is_some_and(|sentinel| sentinel.nodes().any(|known| known >= nodes)) {
            return None;
        }
        // A node follows another that is there, and not itself through others.
        let mut above = index;
        for _ in 0..self.nodes.len() {
            match self.nodes.get(above)?.replication.role {
                Role::Replica { of } => above = of,
                Role::Master | Role::Stray => return Some(()),
            }
        }
        None
    }

    /// Connects what the lines have said about single nodes.
    pub fn finish_image(&mut self) {
        (0..self.nodes.len()).for_each(|node| self.show_peers(node));
        let run_ids: Vec<String> = self.nodes.iter().map(|node| node.run_id.clone()).collect();
        self.nodes
            .iter_mut()
            .filter_map(|node| node.sentinel.as_mut())
            .for_each(|sentinel| sentinel.know(&run_ids));
        self.nodes.iter_mut().for_each(Node::resume_cluster);
        self.has_lost_inputs =
            self.nodes.iter().any(|node| node.sessions.iter().any(|session| session.is_input_lost));
        self.update_inspection();
    }
}
