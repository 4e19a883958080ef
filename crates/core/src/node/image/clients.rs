//! What clients wait for, their transactions, watched keys, tracking and held output.

use std::collections::BTreeSet;

use super::Node;
use crate::acl::DEFAULT_USER;
use crate::image::{Reader, Words, name_of, named};
use crate::node::session::{Blocked, Multi, OwnedArgs, ReplyMode, Session, SessionId, TimeoutReply, Wait};
use crate::node::tracking::{Tracking, TrackingMode};

/// What a client may wait for, without a number of replicas. There is no image of a running script.
const WAITS: &[(&str, Wait)] = &[
    ("list", Wait::List),
    ("sorted-set", Wait::SortedSet),
    ("stream", Wait::Stream),
    ("stream-group", Wait::StreamGroup),
    ("sleep", Wait::Sleep),
    ("postponed", Wait::Postponed),
    ("held", Wait::Held),
    ("gate", Wait::Gate),
];

const TIMEOUT_REPLIES: &[(&str, TimeoutReply)] = &[
    ("ok", TimeoutReply::Ok),
    ("null", TimeoutReply::Null),
    ("null-array", TimeoutReply::NullArray),
    ("acks", TimeoutReply::Acks),
    ("local-and-acks", TimeoutReply::LocalAndAcks),
];

const MODES: &[(&str, TrackingMode)] = &[
    ("all", TrackingMode::All),
    ("opt-in", TrackingMode::OptIn),
    ("opt-out", TrackingMode::OptOut),
    ("broadcast", TrackingMode::Broadcast),
];

impl Node {
    pub(super) fn image_of_clients(&self, lines: &mut Vec<Words>) {
        for session in self.sessions.iter() {
            self.image_of_session(session, lines);
        }
        for (key, readers) in self.tracking.readers() {
            let line = self.about("READERS").word(key);
            lines.push(readers.iter().fold(line, |line, number| line.value(number)));
        }
        let mut blocked: Vec<(&Session, &Blocked)> = self
            .sessions
            .iter()
            .filter_map(|session| session.blocked.as_ref().map(|blocked| (session, blocked)))
            .collect();
        blocked.sort_by_key(|(_, blocked)| blocked.ticket);
        for (session, blocked) in blocked {
            lines.push(self.image_of_blocked(session, blocked));
            if let Some(due_ms) = self.claim_of(session.id) {
                lines.push(self.about_client("CLAIM", session).option(due_ms));
            }
        }
        if !self.inbox.is_empty() {
            let line = self.about("INBOX");
            lines.push(self.inbox.iter().fold(line, |line, id| line.value(id.number)));
        }
    }

    fn image_of_session(&self, session: &Session, lines: &mut Vec<Words>) {
        let flags = [
            session.authenticated,
            session.can_redirect,
            session.watch_broken,
            session.closing,
            session.killed,
            session.is_input_lost,
            session.reply_mode == ReplyMode::Skip,
        ];
        let is_plain = session.user.name() == DEFAULT_USER && session.write_offset == 0;
        if !is_plain || flags != [true, false, false, false, false, false, false] {
            let line = self.about_client("CLIENT", session);
            let line = line.word(session.user.name()).value(session.write_offset);
            lines.push(flags.into_iter().fold(line, Words::flag));
        }
        if let Some(multi) = &session.multi {
            lines.push(self.about_client("MULTI", session).flag(multi.refused));
            for command in &multi.commands {
                lines.push(self.about_client("QUEUED", session).words(command.args()));
            }
        }
        for (db, key) in &session.watched {
            lines.push(self.about_client("WATCHED", session).value(db).word(key));
        }
        if let Some(tracking) = &session.tracking {
            let line = self.about_client("TRACKING", session);
            let line = line.word(name_of(MODES, tracking.mode).as_bytes()).value(tracking.redirect);
            let line = line.flag(tracking.no_loop).flag(tracking.is_redirect_broken).flag(tracking.caching);
            lines.push(line.words(tracking.prefixes.iter().map(|prefix| &**prefix)));
        }
        if session.output.is_interfered_with() {
            lines.push(session.output.image(self.about_client("OUTPUT", session)));
        }
    }

    fn image_of_blocked(&self, session: &Session, blocked: &Blocked) -> Words {
        let (wait, replicas) = match blocked.wait {
            Wait::Replicas(count) => ("replicas", count),
            Wait::AppendOnlyFile(count) => ("append-only-file", count),
            wait => (name_of(WAITS, wait), 0),
        };
        let line = self.about_client("BLOCKED", session).word(wait.as_bytes()).value(replicas);
        let line = line.option(self.store.timers.deadline_ms(blocked.timer));
        let line = line.word(name_of(TIMEOUT_REPLIES, blocked.timeout_reply).as_bytes());
        let line = line.value(blocked.keys.len()).words(blocked.keys.iter().map(|key| &**key));
        line.words(blocked.argv.args())
    }

    fn session_of(&self, line: &mut Reader) -> Option<SessionId> {
        self.sessions.by_number(line.value()?).map(|session| session.id)
    }

    pub(super) fn take_client(&mut self, what: &[u8], line: &mut Reader) -> Option<()> {
        match what {
            b"READERS" => return self.take_readers(line),
            b"INBOX" => {
                while !line.is_empty() {
                    let id = self.session_of(line)?;
                    self.inbox.push(id);
                }
                return Some(());
            }
            _ => {}
        }
        let id = self.session_of(line)?;
        match what {
            b"CLIENT" => self.take_session(id, line)?,
            b"MULTI" => {
                self.sessions[id].multi = Some(Multi { refused: line.flag()?, ..Multi::default() });
            }
            b"QUEUED" if !line.is_empty() => {
                self.sessions[id].multi.as_mut()?.commands.push(OwnedArgs::new(line.rest()));
            }
            b"WATCHED" => self.watch_in(id, line.value()?, line.word()?),
            b"TRACKING" => {
                let tracking = Tracking {
                    mode: named(MODES, line.word()?)?,
                    redirect: line.value()?,
                    no_loop: line.flag()?,
                    is_redirect_broken: line.flag()?,
                    caching: line.flag()?,
                    prefixes: line.rest().iter().map(|prefix| (*prefix).into()).collect(),
                };
                self.enable_tracking(id, tracking);
            }
            b"OUTPUT" => self.sessions[id].output.take_image(line)?,
            b"BLOCKED" => self.take_blocked(id, line)?,
            b"CLAIM" => self.retry_at(id, line.option()?),
            _ => return None,
        }
        Some(())
    }

    fn take_session(&mut self, id: SessionId, line: &mut Reader) -> Option<()> {
        let user = self.acl.user(line.word()?)?.clone();
        let session = &mut self.sessions[id];
        session.user = user;
        session.write_offset = line.value()?;
        session.authenticated = line.flag()?;
        session.can_redirect = line.flag()?;
        session.watch_broken = line.flag()?;
        session.closing = line.flag()?;
        session.killed = line.flag()?;
        session.is_input_lost = line.flag()?;
        if line.flag()? {
            session.reply_mode = ReplyMode::Skip;
        }
        Some(())
    }

    fn take_blocked(&mut self, id: SessionId, line: &mut Reader) -> Option<()> {
        let (wait, replicas) = (line.word()?, line.value()?);
        let wait = match wait {
            b"replicas" => Wait::Replicas(replicas),
            b"append-only-file" => Wait::AppendOnlyFile(replicas),
            name => named(WAITS, name)?,
        };
        let deadline_ms = line.option()?;
        let timeout_reply = named(TIMEOUT_REPLIES, line.word()?)?;
        let count = line.value()?;
        let keys = line.words(count)?.iter().map(|key| (*key).into()).collect();
        let has_request = !line.is_empty() || wait == Wait::Gate;
        if self.sessions[id].blocked.is_some() || !has_request {
            return None;
        }
        self.block(id, wait, line.rest(), keys, deadline_ms, timeout_reply);
        Some(())
    }

    fn take_readers(&mut self, line: &mut Reader) -> Option<()> {
        let key = line.word()?;
        let mut readers = BTreeSet::new();
        while !line.is_empty() {
            readers.insert(line.value()?);
        }
        self.tracking.take_readers(key, readers);
        Some(())
    }

    /// Ends everything about clients that [`image`](Self::image) has lines for.
    pub(in crate::node) fn forget_clients(&mut self) {
        for id in self.sessions.iter().map(|session| session.id).collect::<Vec<_>>() {
            self.unblock(id);
            self.unwatch(id);
            self.disable_tracking(id);
            let user = self.acl.default_user().clone();
            let session = &mut self.sessions[id];
            session.user = user;
            session.multi = None;
            (session.asks, session.reads_replicas) = (false, false);
            session.write_offset = 0;
        }
        self.blocking = Default::default();
        self.tracking = Default::default();
        self.watchers.clear();
        self.inbox.clear();
    }
}
