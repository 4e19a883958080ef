//! Asks a script of the user's about the data of a moment, without a trace of the question.

use redlatch_core::node::Config;
use redlatch_core::node::replication::Role;
use redlatch_core::world::{ClockMode, ConnId, World, WorldOptions};
use redlatch_locks::model::Reply;

/// The most slices of 100,000 instructions that a script may take on one node.
const MAX_SLICES: u32 = 1_000;

/// A world of its own, in which the script runs. It borrows the data of each node while it does.
pub struct Asker {
    world: World,
    conns: Vec<ConnId>,
    text: Vec<u8>,
}

impl Asker {
    /// Prepares to ask a script about nodes with these settings.
    pub fn new(text: &[u8], nodes: Vec<Config>) -> Asker {
        let options =
            WorldOptions { seed: 0, clock: ClockMode::Manual, wall_start_ms: 0, nodes, topology: None };
        let mut world = World::new(options);
        let mut conns = Vec::new();
        for index in 0..world.nodes().len() {
            let conn = world.open_as(index, true, String::new(), String::new());
            let node = world.node_mut(index);
            // Replicas do not remove what has expired when it is read.
            node.replication.role = Role::Replica { of: index };
            let session = &mut node.sessions[conn.session];
            (session.authenticated, session.no_touch) = (true, true);
            conns.push(conn);
        }
        Asker { world, conns, text: text.to_vec() }
    }

    /// Runs the script on each node of a world. Returns whether it answers 1 on any.
    ///
    /// # Errors
    /// The error of the script, among them that it writes.
    pub fn ask(&mut self, of: &mut World) -> Result<bool, String> {
        self.world.clock_mut().clone_from(of.clock());
        let mut is_true = false;
        for index in 0..self.conns.len() {
            is_true |= self.ask_node(of, index)?;
        }
        Ok(is_true)
    }

    fn ask_node(&mut self, of: &mut World, index: usize) -> Result<bool, String> {
        let conn = self.conns[index];
        let node = of.node_mut(index);
        self.world.node_mut(index).wall_jump_ms = node.wall_jump_ms;
        let now = node.store.now;
        std::mem::swap(&mut self.world.node_mut(index).store, &mut node.store);
        self.world.set_up(conn, &[b"EVAL_RO", &self.text, b"0", index.to_string().as_bytes()]);
        for _ in 0..MAX_SLICES {
            if self.world.is_running_script(index) {
                self.world.begin(index).resume_script(0);
            }
        }
        let is_endless = self.world.is_running_script(index);
        self.world.node_mut(index).abort_script();
        std::mem::swap(&mut self.world.node_mut(index).store, &mut node.store);
        node.store.now = now;
        let mut reply = Vec::new();
        self.world.take_output(conn, &mut reply);
        match Reply::parse(&reply) {
            _ if is_endless => Err("it does not end".to_owned()),
            Reply::Error(error) => Err(String::from_utf8_lossy(error).into_owned()),
            reply => Ok(reply == Reply::Int(1)),
        }
    }
}
