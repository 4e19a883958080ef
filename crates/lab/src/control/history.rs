//! The lab's side of the history of locks: what it sees, and which of its findings count.

use super::Lab;
use super::staging::conn_of;
use redlatch_core::node::replication::Role;
use redlatch_core::node::session::{ReplyMode, Session};
use redlatch_core::world::ConnId;
use redlatch_locks::check::Finding;
use redlatch_locks::history::{History, Moment};

impl Lab {
    /// Returns whether a history of locks is kept.
    pub(super) fn has_history(&self) -> bool {
        self.keeps_history || self.checks.is_some() && self.judges_owners
    }

    /// Begins a new history of locks, or none if nobody wants one.
    pub(super) fn begin_history(&mut self) {
        let earlier = self.staging.history.borrow_mut().take();
        let after = |earlier: Option<Box<History>>| Box::new(History::after(earlier.map(|earlier| *earlier)));
        let mut history = self.has_history().then(|| after(earlier));
        if let Some(history) = &mut history {
            let nodes = self.world.nodes().iter();
            let sessions = nodes.flat_map(|node| node.sessions.iter().map(move |session| (node, session)));
            for (node, session) in sessions.filter(|(_, session)| is_hard_to_follow(session)) {
                history.ignore(conn_of(node.conn(session.id)));
            }
            if self.recorder.is_none() {
                self.skip_outputs();
            }
        }
        *self.staging.history.borrow_mut() = history;
        self.show_nodes();
        self.refresh_interest();
    }

    /// Leaves out what was sent before: it is not a reply to anything that the history has.
    fn skip_outputs(&mut self) {
        for node in self.world.nodes_mut() {
            for session in node.sessions.with_new_output() {
                if let Some(session) = node.sessions.get_mut(session) {
                    session.output.take_untraced();
                }
            }
        }
    }

    /// Keeps a history of locks from here on, whether or not checks are on.
    pub fn keep_history(&mut self) {
        self.keeps_history = true;
        if self.staging.history.borrow().is_none() {
            self.begin_history();
        }
    }

    /// Keeps a history of locks from here on, with all operations, however many there are.
    pub fn keep_whole_history(&mut self) {
        self.keep_history();
        if let Some(history) = &mut *self.staging.history.borrow_mut() {
            history.log.keep_all();
        }
    }

    /// Asks the history of locks, if there is one.
    pub fn with_history<T>(&self, ask: impl FnOnce(&History) -> T) -> Option<T> {
        self.staging.history.borrow().as_deref().map(ask)
    }

    /// Shows a request that has arrived to the history of locks.
    pub(super) fn show_request(&mut self, conn: ConnId, argv: &[&[u8]]) {
        let at = Moment { event: self.when().event, now_ms: self.world.clock().now().mono_ms() };
        let Some(node) = self.world.nodes().get(conn.node) else { return };
        let Some(session) = node.sessions.get(conn.session) else { return };
        if let Some(history) = &mut *self.staging.history.borrow_mut() {
            history.request(at, conn_of(conn), session.db, argv, &node.store);
        }
    }

    /// Shows to the history of locks which nodes share their data, and how many keys were evicted.
    pub(super) fn show_nodes(&mut self) {
        let at = Moment { event: self.world.events(), now_ms: self.world.clock().now().mono_ms() };
        let mut history = self.staging.history.borrow_mut();
        let Some(history) = &mut *history else { return };
        for node in self.world.nodes() {
            if let Role::Replica { of } = node.replication.role {
                history.join(node.index, of);
            }
            history.evicted(at, node.index, node.stats.evicted_keys);
        }
    }

    /// Keeps the findings of the history that the checks ask for.
    pub(super) fn judge_history(&mut self, found: Vec<Finding>) {
        let Some(checks) = self.checks.as_ref().filter(|_| self.judges_owners) else { return };
        let found = found.into_iter().filter(|finding| checks.asks_for(finding)).collect();
        self.keep_findings(found);
    }
}

/// Returns whether messages come among the replies to a client, or replies are left out.
fn is_hard_to_follow(session: &Session) -> bool {
    session.is_subscriber() || session.monitor || session.reply_mode != ReplyMode::On
}
