//! Rules, gates, checks and counters, behind the core's trait [`Stages`].

use std::cell::{Cell, RefCell};

use super::Control;
use super::action::{Action, Keep, Position, Rewrite, Stage};
use super::args::{denied, quoted};
use super::commands::{Context, SimCommand, is_sim_command};
use super::cost::Costs;
use super::gates::At;
use super::matching::{Request, Script, Subject, What, is_eval};
use super::skew::Skews;
use redlatch_core::node::secrets::{Secret, hidden};
use redlatch_core::num;
use redlatch_core::rng::Rng;
use redlatch_core::script::{ScriptTag, sha1_hex};
use redlatch_core::stages::{
    HeldReply, Plan, Push, PushFate, Received, ReplyEffect, ScriptCall, ScriptEnd, ScriptStart, Stages,
    Ticket, Until, Verdict,
};
use redlatch_core::version::Version;
use redlatch_core::wire::Reply;
use redlatch_core::world::ConnId;
use redlatch_locks::check::{self, Checker};
use redlatch_locks::history::{Conn, History, Moment};
use redlatch_locks::role::{Recognised, recognise};

/// The part of the control plane that the core calls while it handles an event. All nodes of a world share it.
#[derive(Clone)]
pub struct Staging {
    pub(crate) control: RefCell<Control>,
    /// The observers of each node.
    pub(crate) watches: RefCell<Vec<Watch>>,
    /// The lock scripts that were recognised; the id of a tag is an index into this list.
    recognised: RefCell<Vec<Recognised>>,
    /// An injected failure: the k-th `redis.call` from now on fails with this error.
    fail_call: RefCell<Option<(u32, Vec<u8>)>>,
    /// Whether a rule with FAIL SUBCALL applies to the running request.
    has_injected_failure: Cell<bool>,
    /// SIM commands that scripts have called, with the node of each, to be applied when the present event is over.
    pub(crate) queued: RefCell<Vec<(usize, SimCommand)>>,
    pub(crate) has_queued: Cell<bool>,
    /// Slow readers that were disconnected in the present event.
    pub(crate) cut_off: RefCell<Vec<ConnId>>,
    /// Whether clients of other machines may send SIM commands without a password.
    pub(crate) serves_anyone: Cell<bool>,
    /// A trace is being recorded, which takes `cut_off` after each event.
    pub(crate) is_recording: Cell<bool>,
    /// Who holds which lock, if somebody wants to know.
    pub(crate) history: RefCell<Option<Box<History>>>,
}

/// The observers of one node: invariant checks, script costs, clock skews.
#[derive(Clone)]
pub(crate) struct Watch {
    pub checker: Option<Box<Checker>>,
    pub costs: Costs,
    pub skews: Skews,
    version: Version,
}

impl Staging {
    /// Creates an empty control plane. `nodes`: the release that each node emulates.
    pub(crate) fn new(rng: Rng, nodes: impl Iterator<Item = Version>) -> Staging {
        let watch =
            |version| Watch { checker: None, costs: Costs::default(), skews: Skews::default(), version };
        Staging {
            control: RefCell::new(Control::new(rng)),
            watches: RefCell::new(nodes.map(watch).collect()),
            recognised: RefCell::default(),
            fail_call: RefCell::default(),
            has_injected_failure: Cell::new(false),
            queued: RefCell::default(),
            has_queued: Cell::new(false),
            cut_off: RefCell::default(),
            serves_anyone: Cell::new(false),
            is_recording: Cell::new(false),
            history: RefCell::default(),
        }
    }

    /// Returns the lock script behind a tag of [`Stages::recognise`].
    pub(crate) fn recognised(&self, tag: ScriptTag) -> Option<Recognised> {
        self.recognised.borrow().get(tag.id as usize).copied()
    }

    /// Applies the rules to a request that has passed the gates at PRE.
    pub(crate) fn pass_rules(&self, request: &Received) -> Verdict {
        self.with_subject(request, |control, subject| {
            let argv = request.argv;
            let action = control.rules.decide(subject, false, || summary(argv), &mut control.rng);
            let gate = control.gates.decide(subject, At::Post);
            self.verdict(control, request, action, gate)
        })
    }

    /// Turns the action of a rule, and the gate that holds the reply, into the core's [`Verdict`].
    fn verdict(
        &self,
        control: &mut Control,
        request: &Received,
        action: Option<Action>,
        gate: Option<u64>,
    ) -> Verdict {
        let mut plan = Plan::default();
        match action {
            None | Some(Action::DupPush(_)) => {}
            Some(Action::Drop(Stage::Request)) => return Verdict::Lose,
            Some(Action::Delay(Stage::Request, ms)) => {
                hold_request(control, request, Until::Passed(ms));
                return Verdict::Hold;
            }
            Some(Action::CloseBefore) => return Verdict::Close,
            Some(Action::Error { text, runs: false }) => return Verdict::Refuse(text),
            Some(Action::Reply(bytes) | Action::Lose(bytes)) => return Verdict::Answer(bytes),
            Some(Action::Error { text, runs: true }) => {
                plan.effects.push(ReplyEffect::Replace([b"-", &text[..], b"\r\n"].concat()));
            }
            Some(Action::Drop(_)) => plan.effects.push(ReplyEffect::Lose),
            Some(Action::Delay(_, ms)) => plan.effects.push(ReplyEffect::Hold(Until::Passed(ms))),
            Some(Action::CloseAfter(bytes)) => plan.effects.push(ReplyEffect::CloseAfter(bytes)),
            Some(Action::Dup(times, keep)) => {
                plan.runs = times;
                plan.keeps_first_reply = keep == Keep::First;
            }
            Some(Action::FailSubcall(k, text)) => {
                plan.asks_calls = true;
                *self.fail_call.borrow_mut() = Some((k, text));
            }
            Some(Action::Rewrite(position, rewrite)) => {
                plan.argv = rewrite_argument(request.argv, position, &rewrite);
            }
            Some(Action::ForgetScripts) => plan.forgets_scripts = true,
        }
        self.has_injected_failure.set(plan.asks_calls);
        plan.effects.extend(gate.map(|gate| ReplyEffect::Hold(Until::Released(gate))));
        Verdict::Run(plan)
    }

    fn with_subject<T>(&self, request: &Received, ask: impl FnOnce(&mut Control, &Subject) -> T) -> T {
        let Received { conn, client_name: name, event, argv, cached, .. } = *request;
        let sha = script_sha(argv);
        let lock = match &sha {
            Some(sha) if runs_by_sha(argv[0]) => cached(sha).and_then(|tag| self.recognised(tag)),
            Some(_) => recognise(argv[1]),
            None => None,
        };
        let script = sha.as_ref().map(|sha| Script { sha, lock });
        let subject = Subject { conn, name, event, what: What::Request(Request::new(argv, script)) };
        ask(&mut self.control.borrow_mut(), &subject)
    }

    /// Measures the client's clock skew, if the script is a lock script with the client's time among its arguments.
    fn note_skew(&self, start: &ScriptStart, watch: &mut Watch) {
        let time = start.script.tag().and_then(|tag| self.recognised(tag)?.time);
        let Some(client_ms) = time.and_then(|place| num::parse_i64(start.argv.get(place - 1)?)) else {
            return;
        };
        watch.skews.note(start.client, client_ms.saturating_sub(start.store.now.wall_ms()));
    }
}

/// Holds a request and returns its ticket.
fn hold_request(control: &mut Control, request: &Received, until: Until) -> Ticket {
    control.hold(until, request.conn, At::Pre, summary(request.argv), request.now_ms)
}

impl Stages for Staging {
    fn received(&self, request: &Received) -> Verdict {
        let is_held = self.with_subject(request, |control, subject| {
            let gate = control.gates.decide(subject, At::Pre)?;
            Some(hold_request(control, request, Until::Released(gate)))
        });
        if is_held.is_some() { Verdict::Hold } else { self.pass_rules(request) }
    }

    fn reply_held(&self, held: &HeldReply) -> Ticket {
        let shown = String::from_utf8_lossy(held.bytes).into_owned();
        self.control.borrow_mut().hold(held.until, held.conn, At::Post, shown, held.now_ms)
    }

    fn push(&self, push: &Push) -> PushFate {
        let Push { conn, client_name: name, event, channel, .. } = *push;
        let subject = Subject { conn, name, event, what: What::Push { channel } };
        self.control.borrow_mut().decide_push(&subject, push.now_ms)
    }

    fn recognise(&self, script: &[u8]) -> Option<ScriptTag> {
        let found = recognise(script)?;
        let mut known = self.recognised.borrow_mut();
        let index = known.iter().position(|recognised| *recognised == found).unwrap_or_else(|| {
            known.push(found);
            known.len() - 1
        });
        Some(ScriptTag { id: index as u32, watched: found.time.is_some() })
    }

    fn script_begins(&self, start: &ScriptStart) {
        let mut watches = self.watches.borrow_mut();
        let Some(watch) = watches.get_mut(start.conn.node) else { return };
        self.note_skew(start, watch);
        let mut history = self.history.borrow_mut();
        if watch.checker.is_none() && history.is_none() {
            return;
        }
        let script = start.script;
        let lock = script.tag().and_then(|tag| self.recognised(tag));
        let started = check::Start {
            sha: script.digest(),
            lock: lock.map(|lock| (lock.role, script.text())),
            keys: start.keys,
            argv: start.argv,
            db: start.db,
            client: start.conn.session.number,
            is_sabotaged: self.has_injected_failure.get() && self.fail_call.borrow().is_some(),
        };
        if let Some(checker) = &mut watch.checker {
            checker.begin(&started, start.store);
        }
        if let Some(history) = &mut *history {
            history.script_begins(&started, conn_of(start.conn), script.text(), start.store);
        }
    }

    fn script_calls(&self, call: &ScriptCall) -> Result<(), Vec<u8>> {
        if call.argv.first().is_some_and(|name| is_sim_command(name)) {
            return Ok(());
        }
        let mut planned = self.fail_call.borrow_mut();
        match &mut *planned {
            Some((left, _)) if *left > 1 => *left -= 1,
            _ => {
                if let Some((_, text)) = planned.take() {
                    return Err(text);
                }
            }
        }
        Ok(())
    }

    fn foreign_call(&self, call: &ScriptCall, reply: &mut Reply) -> bool {
        if !call.argv.first().is_some_and(|name| is_sim_command(name)) {
            return false;
        }
        if !call.is_trusted && !self.serves_anyone.get() {
            reply.error(denied().to_string().as_bytes());
            return true;
        }
        let nodes = self.watches.borrow().len();
        match SimCommand::parse(call.argv, &Context { node: call.node, db: call.db, nodes }) {
            Ok(command) => {
                self.queued.borrow_mut().push((call.node, command));
                self.has_queued.set(true);
                reply.status("QUEUED");
            }
            Err(error) => reply.error(error.to_string().as_bytes()),
        }
        true
    }

    fn script_called(&self, call: &ScriptCall, reply_len: usize) {
        if let Some(watch) = self.watches.borrow_mut().get_mut(call.node)
            && watch.costs.on
        {
            watch.costs.count_call(call.argv, reply_len, watch.version);
        }
    }

    fn script_ended(&self, end: &ScriptEnd) {
        let mut watches = self.watches.borrow_mut();
        let Some(watch) = watches.get_mut(end.node) else { return };
        if watch.costs.on {
            let role = end.tag.and_then(|tag| self.recognised(tag)).map(|lock| lock.role);
            watch.costs.finish(end.sha, role, end.instructions);
        }
        if let Some(checker) = &mut watch.checker {
            checker.finish(end.reply, end.event, end.node, end.store);
        }
        if let Some(history) = &mut *self.history.borrow_mut() {
            let moment = Moment { event: end.event, now_ms: end.store.now.mono_ms() };
            history.script_ended(moment, end.node, end.store);
        }
    }

    fn published(&self, node: usize, channel: &[u8], message: &[u8]) {
        if let Some(checker) =
            self.watches.borrow_mut().get_mut(node).and_then(|watch| watch.checker.as_mut())
        {
            checker.published(channel, message);
        }
    }

    fn cut_off(&self, conn: ConnId) {
        if self.is_recording.get() {
            self.cut_off.borrow_mut().push(conn);
        }
    }
}

/// Returns the connection as the history of locks names it.
pub(crate) fn conn_of(conn: ConnId) -> Conn {
    Conn { node: conn.node, number: conn.session.number }
}

/// Returns the SHA-1 of the script that a request runs, in hexadecimal.
fn script_sha(argv: &[&[u8]]) -> Option<[u8; 40]> {
    let (&name, &script) = (argv.first()?, argv.get(1)?);
    if !is_eval(name) {
        return None;
    }
    if runs_by_sha(name) { script.to_ascii_lowercase().try_into().ok() } else { Some(sha1_hex(script)) }
}

/// Returns whether this is EVALSHA or EVALSHA_RO.
fn runs_by_sha(name: &[u8]) -> bool {
    const EVALSHA: &[u8] = b"EVALSHA";
    name.get(..EVALSHA.len()).is_some_and(|name| name.eq_ignore_ascii_case(EVALSHA))
}

/// Returns the request with one argument changed. `None`: it has no such argument, or ADD meets an argument that is not a number.
fn rewrite_argument(argv: &[&[u8]], position: Position, rewrite: &Rewrite) -> Option<Vec<Vec<u8>>> {
    let at = match position {
        Position::Arg(at) => at,
        Position::Argv(at) => {
            let keys = Request::new(argv, None).script_args()?.keys.len();
            3 + keys + at - 1
        }
    };
    let mut argv: Vec<Vec<u8>> = argv.iter().map(|arg| arg.to_vec()).collect();
    let arg = argv.get_mut(at)?;
    *arg = match rewrite {
        Rewrite::Set(new) => new.clone(),
        Rewrite::Add(n) => num::parse_i64(arg)?.saturating_add(*n).to_string().into_bytes(),
    };
    Some(argv)
}

/// Renders a request in one short line: its first arguments, quoted. Passwords are hidden.
pub fn summary(argv: &[&[u8]]) -> String {
    const SHOWN: usize = 8;
    let secrets = hidden(argv);
    let is_password =
        |at: usize| secrets.iter().any(|found| found.index == at && found.secret != Secret::User);
    let shown = argv.iter().take(SHOWN).enumerate().map(|(index, arg)| match index {
        0 => String::from_utf8_lossy(arg).into_owned(),
        _ if is_password(index) => "(redacted)".to_owned(),
        _ => quoted(arg),
    });
    let mut text = shown.collect::<Vec<_>>().join(" ");
    if argv.len() > SHOWN {
        text.push_str(" …");
    }
    text
}
