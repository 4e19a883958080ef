//! The state of a world as lines of words, and back.

use super::World;
use crate::image::{Reader, Words};
use crate::node::Node;
use crate::node::replication::Role;

impl World {
    /// Returns the lines of all nodes.
    pub fn image(&self) -> Vec<Words> {
        let cuts =
            self.partitions().map(|(sender, receiver)| Words::about("CUT").value(receiver).value(sender));
        self.nodes.iter().flat_map(|node| node.image()).chain(cuts).collect()
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
        let index: usize = line.value()?;
        if what == b"CUT" {
            let sender = line.value().filter(|&sender| sender < self.nodes.len())?;
            return self.partitions.restore_cut(sender, index);
        }
        let node = self.nodes.get_mut(index)?;
        if what == b"JUMP" {
            node.wall_jump_ms = line.value()?;
            node.set_now(self.clock.now());
            return Some(());
        }
        node.take_image(what, line)?;
        // A node follows another that is there, and not itself through others.
        let mut above = index;
        for _ in 0..self.nodes.len() {
            match self.nodes.get(above)?.replication.role {
                Role::Replica { of } => above = of,
                Role::Master => return Some(()),
            }
        }
        None
    }

    /// Connects what the lines have said about single nodes.
    pub fn finish_image(&mut self) {
        (0..self.nodes.len()).for_each(|node| self.show_peers(node));
        self.nodes.iter_mut().for_each(Node::resume_cluster);
        self.has_lost_inputs =
            self.nodes.iter().any(|node| node.sessions.iter().any(|session| session.is_input_lost));
        self.update_inspection();
    }
}
