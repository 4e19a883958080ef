//! The way of a request past gates and rules.

use super::action::{Action, Keep, Place, Rewrite, Stage};
use super::gates::At;
use super::matching::{Request, Script, Subject, What, is_eval};
use super::words::quoted;
use super::{Due, Until};
use crate::locks::role::recognise;
use crate::node::faults::ReplyEffect;
use crate::node::session::{OwnedArgs, TimeoutReply, Wait};
use crate::num;
use crate::script::sha1_hex;
use crate::wire::Args;
use crate::world::{ConnId, World};

impl World {
    /// A request comes to a node that is paused, or past gates and rules.
    pub(crate) fn stage_request(&mut self, conn: ConnId, argv: &[&[u8]]) {
        let node = &mut self.nodes[conn.node];
        if node.sessions.get(conn.session).is_none_or(|session| session.is_deaf()) {
            return;
        }
        if node.paused {
            node.inbox.push(conn.session);
            return self.hold_request(conn, argv);
        }
        self.pass_gates(conn, argv);
    }

    pub(crate) fn pass_gates(&mut self, conn: ConnId, argv: &[&[u8]]) {
        let held = self.with_subject(conn, argv, |control, subject, now_ms| {
            let gate = control.gates.decide(subject, At::Pre)?;
            Some(control.hold(Until::Released(gate), conn, At::Pre, summary(argv), now_ms))
        });
        match held {
            Some(_) => self.hold_request(conn, argv),
            None => self.pass_rules(conn, argv),
        }
    }

    fn pass_rules(&mut self, conn: ConnId, argv: &[&[u8]]) {
        let (action, gate) = self.with_subject(conn, argv, |control, subject, _| {
            let action = control.rules.decide(subject, false, || summary(argv), &mut control.rng);
            (action, control.gates.decide(subject, At::Post))
        });
        let gate = gate.map(|gate| ReplyEffect::Withhold(Until::Released(gate)));
        self.act(conn, argv, action, gate);
    }

    /// Runs a request as an action wants it; the reply then waits at `gate`, if there is one.
    fn act(&mut self, conn: ConnId, argv: &[&[u8]], action: Option<Action>, gate: Option<ReplyEffect>) {
        let node = &mut self.nodes[conn.node];
        let now_ms = node.store.now.mono_ms();
        let mut effect = None;
        let mut rewritten: Option<Vec<Vec<u8>>> = None;
        let mut runs = (1, Keep::Last);
        match action {
            None => {}
            Some(Action::Drop(Stage::Request)) => {
                if let Some(session) = node.sessions.get_mut(conn.session) {
                    session.deafen();
                }
                self.control.borrow_mut().has_deafened = true;
                return;
            }
            Some(Action::Delay(Stage::Request, ms)) => {
                let mut control = self.control.borrow_mut();
                control.hold(Until::Passed(ms), conn, At::Pre, summary(argv), now_ms);
                drop(control);
                return self.hold_request(conn, argv);
            }
            Some(Action::CloseBefore) => return node.kill_session(conn.session),
            Some(Action::Error { text, runs: false }) => {
                return node.write_reply(conn.session, |reply| reply.error(&text));
            }
            Some(Action::Reply(bytes)) => return node.write_reply(conn.session, |reply| reply.raw(&bytes)),
            Some(Action::Error { text, runs: true }) => {
                let error = [b"-", &text[..], b"\r\n"].concat();
                effect = Some(ReplyEffect::Replace(error));
            }
            Some(Action::Drop(_)) => effect = Some(ReplyEffect::Lose),
            Some(Action::Delay(_, ms)) => effect = Some(ReplyEffect::Withhold(Until::Passed(ms))),
            Some(Action::CloseAfter(bytes)) => effect = Some(ReplyEffect::CloseAfter(bytes)),
            Some(Action::Dup(times, keep)) => runs = (times, keep),
            Some(Action::DupPush(_)) => {}
            Some(Action::FailSubcall(k, text)) => node.fail_subcall = Some((k, text)),
            Some(Action::Rewrite(place, rewrite)) => rewritten = rewrite_word(argv, place, &rewrite),
            Some(Action::ForgetScripts) => node.scripts.flush(),
        }
        let effects = effect.into_iter().chain(gate).collect();
        let words: Args = match &rewritten {
            Some(words) => words.iter().map(Vec::as_slice).collect(),
            None => argv.iter().copied().collect(),
        };
        self.run_repeatedly(conn, &words, runs, effects);
        self.nodes[conn.node].fail_subcall = None;
    }

    /// Runs a request several times; the client gets the first or the last reply.
    fn run_repeatedly(
        &mut self,
        conn: ConnId,
        argv: &[&[u8]],
        (times, keep): (u32, Keep),
        effects: Vec<ReplyEffect>,
    ) {
        let node = &mut self.nodes[conn.node];
        let mut first = None;
        for _ in 1..times {
            let start = node.sessions.get(conn.session).map_or(0, |session| session.out.len());
            node.execute(conn.session, argv);
            let reply = node.take_back_reply(conn.session, start);
            let waits = node.sessions.get(conn.session).is_none_or(|session| !session.is_ready());
            first.get_or_insert(reply);
            if waits {
                return;
            }
        }
        let kept = first.filter(|_| keep == Keep::First).map(ReplyEffect::Replace);
        if let Some(session) = node.sessions.get_mut(conn.session) {
            session.expect_reply_effects(kept.into_iter().chain(effects).collect());
        }
        node.execute(conn.session, argv);
    }

    /// The client of a request waits until it is let go.
    fn hold_request(&mut self, conn: ConnId, argv: &[&[u8]]) {
        let node = &mut self.nodes[conn.node];
        node.block(conn.session, Wait::Held, argv, Vec::new(), None, TimeoutReply::Null);
    }

    /// The request that a client waits with.
    pub(crate) fn take_held(&mut self, conn: ConnId) -> Option<OwnedArgs> {
        Some(self.nodes[conn.node].unblock(conn.session)?.argv)
    }

    /// Lets go what a ticket holds. False: there is no such ticket.
    pub fn release(&mut self, ticket: u64) -> bool {
        let Some(ticket) = self.control.borrow_mut().gates.take(ticket) else { return false };
        let conn = ticket.conn;
        if ticket.at != At::Pre {
            self.nodes[conn.node].open_dam(conn.session, ticket.id);
            return true;
        }
        if let Some(request) = self.take_held(conn) {
            self.begin(conn.node);
            match ticket.gate {
                Some(_) => self.pass_rules(conn, &request.args()),
                // The rule that delayed it has had its say.
                None => self.act(conn, &request.args(), None, None),
            }
        }
        true
    }

    /// What was armed is due.
    pub(crate) fn due(&mut self, due: Due) {
        match due {
            Due::Release(ticket) => {
                self.release(ticket);
            }
            Due::Start(node) => self.start_node(node),
        }
    }

    fn with_subject<T>(
        &mut self,
        conn: ConnId,
        argv: &[&[u8]],
        ask: impl FnOnce(&mut super::Control, &Subject, u64) -> T,
    ) -> T {
        let node = &mut self.nodes[conn.node];
        let now_ms = node.store.now.mono_ms();
        let sha = script_sha(argv);
        let lock = match &sha {
            Some(sha) if runs_by_sha(argv[0]) => node.scripts.peek(sha).and_then(|script| script.lock()),
            Some(_) => recognise(argv[1]),
            None => None,
        };
        let script = sha.as_ref().map(|sha| Script { sha, lock });
        let name = node.sessions.get(conn.session).map_or(&[][..], |session| &session.name);
        let request = Request::new(argv, script);
        let subject = Subject { conn, name, event: self.events, what: What::Request(request) };
        ask(&mut self.control.borrow_mut(), &subject, now_ms)
    }
}

/// The digest of the script that a request runs.
fn script_sha(argv: &[&[u8]]) -> Option<[u8; 40]> {
    let (&name, &script) = (argv.first()?, argv.get(1)?);
    if !is_eval(name) {
        return None;
    }
    if runs_by_sha(name) { script.to_ascii_lowercase().try_into().ok() } else { Some(sha1_hex(script)) }
}

fn runs_by_sha(name: &[u8]) -> bool {
    const EVALSHA: &[u8] = b"EVALSHA";
    name.get(..EVALSHA.len()).is_some_and(|name| name.eq_ignore_ascii_case(EVALSHA))
}

/// The request with one word changed; `None` if it has no such word, or a number is to be added to what is none.
fn rewrite_word(argv: &[&[u8]], place: Place, rewrite: &Rewrite) -> Option<Vec<Vec<u8>>> {
    let at = match place {
        Place::Arg(at) => at,
        Place::Argv(at) => {
            let keys = Request::new(argv, None).script_words()?.keys.len();
            3 + keys + at - 1
        }
    };
    let mut words: Vec<Vec<u8>> = argv.iter().map(|word| word.to_vec()).collect();
    let word = words.get_mut(at)?;
    *word = match rewrite {
        Rewrite::Set(new) => new.clone(),
        Rewrite::Add(n) => num::parse_i64(word)?.saturating_add(*n).to_string().into_bytes(),
    };
    Some(words)
}

/// A request in one short line.
pub fn summary(argv: &[&[u8]]) -> String {
    const WORDS: usize = 8;
    let shown = argv.iter().take(WORDS).enumerate().map(|(index, word)| match index {
        0 => String::from_utf8_lossy(word).into_owned(),
        _ => quoted(word),
    });
    let mut text = shown.collect::<Vec<_>>().join(" ");
    if argv.len() > WORDS {
        text.push_str(" …");
    }
    text
}
