//! Whom a node follows, and the writes that are on their way to it.

use std::rc::Rc;

use super::{Node, read_value, write_value};
use crate::image::{Reader, Words, name_of, named};
use crate::node::replication::{Effect, Entry, Link, Peer, Role};
use crate::node::session::SUBSCRIPTION_KINDS;
use crate::store::Limits;
use crate::version::Version;

impl Node {
    pub(super) fn image_of_replication(&self, lines: &mut Vec<Words>) {
        let replication = &self.replication;
        if let Role::Replica { of } = replication.role {
            let kept = match replication.link {
                Link::Up => Some(0),
                Link::Lag(writes) => Some(writes),
                Link::Down => None,
            };
            lines.push(self.about("REPLICA").value(of).option(kept));
        }
        if replication.role == Role::Stray {
            let Peer { host, port, .. } = &replication.master;
            lines.push(self.about("STRAY").word(host.as_bytes()).word(port.as_bytes()));
        }
        if replication.offset != 0 {
            lines.push(self.about("OFFSET").value(replication.offset));
        }
        for entry in &replication.in_transit {
            let line = self.about("TRANSIT").value(entry.offset);
            lines.push(
                entry
                    .effects
                    .iter()
                    .fold(line, |line, effect| write_effect(line, effect, self.config.version)),
            );
        }
    }

    pub(super) fn take_replication(&mut self, what: &[u8], line: &mut Reader) -> Option<()> {
        match what {
            b"REPLICA" => {
                self.replication.role = Role::Replica { of: line.value()? };
                self.replication.link = match line.option()? {
                    Some(0) => Link::Up,
                    Some(writes) => Link::Lag(writes),
                    None => Link::Down,
                };
            }
            b"STRAY" => {
                let mut text = || String::from_utf8(line.word()?.to_vec()).ok();
                self.replication.master = Peer { host: text()?, port: text()?, ..Peer::default() };
                self.replication.role = Role::Stray;
                self.replication.link = Link::Down;
            }
            b"OFFSET" => self.replication.offset = line.value()?,
            _ => {
                let offset = line.value()?;
                let mut effects = Vec::new();
                while !line.is_empty() {
                    effects.push(read_effect(line, &self.store.limits)?);
                }
                self.replication.in_transit.push_back(Rc::new(Entry { effects, offset }));
            }
        }
        Some(())
    }
}

fn write_effect(line: Words, effect: &Effect, version: Version) -> Words {
    match effect {
        Effect::Key { db, key, state: Some((value, expires_at_ms)) } => {
            write_value(line.word(b"KEY").value(db).word(key), value, *expires_at_ms, version)
        }
        Effect::Key { db, key, state: None } => line.word(b"GONE").value(db).word(key),
        Effect::Message { kind, channel, message } => line
            .word(b"MESSAGE")
            .word(name_of(SUBSCRIPTION_KINDS, *kind).as_bytes())
            .word(channel)
            .word(message),
        Effect::Functions(texts) => {
            line.word(b"LIBRARIES").value(texts.len()).words(texts.iter().map(|text| &**text))
        }
    }
}

fn read_effect(line: &mut Reader, limits: &Limits) -> Option<Effect> {
    Some(match line.word()? {
        b"KEY" => {
            let (db, key) = (line.value()?, line.word()?.into());
            Effect::Key { db, key, state: Some(read_value(line, limits)?) }
        }
        b"GONE" => Effect::Key { db: line.value()?, key: line.word()?.into(), state: None },
        b"MESSAGE" => {
            let kind = named(SUBSCRIPTION_KINDS, line.word()?)?;
            Effect::Message { kind, channel: line.word()?.into(), message: line.word()?.into() }
        }
        b"LIBRARIES" => {
            let count = line.value()?;
            Effect::Functions(line.words(count)?.iter().map(|text| (*text).into()).collect())
        }
        _ => return None,
    })
}
