//! The path of a request into a node: direct if nothing interferes, otherwise through pauses and stages.

use super::World;
use crate::node::ConnId;
use crate::node::session::{OwnedArgs, TimeoutReply, Wait};
use crate::stages::{Plan, Received, ReplyEffect, Verdict};
use crate::wire::Args;

impl World {
    /// Executes a client's request. The client has to be [ready](Self::is_ready).
    pub fn request(&mut self, conn: ConnId, argv: &[&[u8]]) {
        let inspects_requests = self.inspects_requests;
        let node = self.begin(conn.node);
        if inspects_requests {
            self.stage_request(conn, argv);
        } else {
            node.execute(conn.session, argv);
        }
        self.end(conn.node, Some(conn.session));
    }

    /// Executes a request that is neither an event nor visible to stages, to restore the state of a client.
    pub fn set_up(&mut self, conn: ConnId, argv: &[&[u8]]) {
        let events = self.events;
        self.begin(conn.node).execute(conn.session, argv);
        self.events = events;
    }

    fn stage_request(&mut self, conn: ConnId, argv: &[&[u8]]) {
        let node = &mut self.nodes[conn.node];
        if node.sessions.get(conn.session).is_none_or(|session| session.is_input_lost) {
            return;
        }
        if node.paused {
            node.inbox.push(conn.session);
            return self.hold_request(conn, argv);
        }
        self.show_request(conn, argv);
    }

    /// Asks the stages for a verdict on a request, and applies it.
    pub(super) fn show_request(&mut self, conn: ConnId, argv: &[&[u8]]) {
        let verdict = self.with_received(conn, argv, |request| self.stages.received(request));
        self.carry_out(conn, argv, verdict);
    }

    /// Shows a request to `ask` as stages see it.
    pub fn with_received<T>(&self, conn: ConnId, argv: &[&[u8]], ask: impl FnOnce(&Received) -> T) -> T {
        let node = &self.nodes[conn.node];
        ask(&Received {
            conn,
            client_name: node.sessions.get(conn.session).map_or(&[][..], |session| &session.name),
            event: self.events,
            now_ms: node.store.now.mono_ms(),
            argv,
            cached: &|sha| node.scripts.peek(sha)?.tag(),
        })
    }

    /// Applies the stages' verdict on a request.
    pub fn carry_out(&mut self, conn: ConnId, argv: &[&[u8]], verdict: Verdict) {
        let node = &mut self.nodes[conn.node];
        match verdict {
            Verdict::Run(plan) => self.run_as_planned(conn, argv, plan),
            Verdict::Hold => self.hold_request(conn, argv),
            Verdict::Lose => {
                if let Some(session) = node.sessions.get_mut(conn.session) {
                    session.is_input_lost = true;
                    // The connection stays lost even if the rule that lost the request is removed.
                    self.has_lost_inputs = true;
                    self.update_inspection();
                }
            }
            Verdict::Refuse(text) => node.write_reply(conn.session, |reply| reply.error(&text)),
            Verdict::Answer(bytes) => node.write_reply(conn.session, |reply| reply.raw(&bytes)),
            Verdict::Close => node.kill_session(conn.session),
        }
    }

    fn run_as_planned(&mut self, conn: ConnId, argv: &[&[u8]], plan: Plan) {
        let node = &mut self.nodes[conn.node];
        if plan.forgets_scripts {
            node.scripts.flush();
        }
        node.asks_calls = plan.asks_calls;
        let argv: Args = match &plan.argv {
            Some(words) => words.iter().map(Vec::as_slice).collect(),
            None => argv.iter().copied().collect(),
        };
        let mut first = None;
        for _ in 1..plan.runs {
            let start = node.sessions.get(conn.session).map_or(0, |session| session.output.len());
            node.execute(conn.session, &argv);
            let session = node.sessions.get_mut(conn.session);
            let Some(session) = session else { break };
            first.get_or_insert(session.output.take_back(start));
            if !session.is_ready() {
                node.asks_calls = false;
                return;
            }
        }
        if let Some(session) = node.sessions.get_mut(conn.session) {
            let kept = first.filter(|_| plan.keeps_first_reply).map(ReplyEffect::Replace);
            session.output.expect_effects(kept.into_iter().chain(plan.effects).collect());
        }
        node.execute(conn.session, &argv);
        node.asks_calls = false;
    }

    /// Blocks the client of a request until it is released.
    fn hold_request(&mut self, conn: ConnId, argv: &[&[u8]]) {
        let node = &mut self.nodes[conn.node];
        node.block(conn.session, Wait::Held, argv, Vec::new(), None, TimeoutReply::Null);
    }

    /// Unblocks a client whose request is held, and returns the request.
    pub fn take_held(&mut self, conn: ConnId) -> Option<OwnedArgs> {
        Some(self.nodes[conn.node].unblock(conn.session)?.argv)
    }
}
