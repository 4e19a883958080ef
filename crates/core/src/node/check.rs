//! Checks the invariants of a node, which hold between two events.
//!
//! A broken invariant is a defect of this crate. Debug builds check after every event ([`World`](crate::world::World)),
//! fuzz targets after every request.

use std::collections::BTreeSet;

use super::Node;
use super::session::{SessionId, SubscriptionKind, Wait};
use crate::store::Timer;

impl Node {
    /// Asserts that the parts of the node agree with one another.
    ///
    /// # Panics
    /// If they do not. The message says which invariant is broken.
    pub fn check(&self) {
        #[cfg(debug_assertions)]
        self.check_announced();
        self.store.check();
        self.check_weights();
        self.sessions.check();
        self.scripts.check();
        self.check_blocked();
        self.check_subscriptions();
        self.check_watches();
        self.check_tracking();
        for session in self.sessions.iter() {
            let listed = self.monitors.contains(&session.id);
            assert_eq!(
                session.monitor, listed,
                "client {}: the list of MONITOR clients is wrong",
                session.id.number
            );
        }
        let unpause = self.store.timers.iter().any(|(_, timer)| timer == Timer::Unpause);
        assert!(self.pause.is_none() || unpause, "the pause has no timer that ends it");
        for &id in &self.inbox {
            let wait = self.wait_of(id);
            assert_eq!(
                wait,
                Some(Wait::Held),
                "client {}: in the inbox, but its request is not held",
                id.number
            );
        }
    }

    /// Checks after an event. Skips most events on a large node, so that the average cost of an event stays bounded.
    #[cfg(debug_assertions)]
    pub(crate) fn check_now_and_then(&mut self) {
        const ITEMS_PER_EVENT: usize = 256;
        if self.events_until_check > 0 {
            self.events_until_check -= 1;
            return self.check_announced();
        }
        self.check();
        let keys: usize = self.store.dbs.iter().map(|db| db.len()).sum();
        self.events_until_check = (keys + self.sessions.len() + self.watchers.len()) / ITEMS_PER_EVENT;
    }

    fn wait_of(&self, id: SessionId) -> Option<Wait> {
        Some(self.sessions.get(id)?.blocked.as_ref()?.wait)
    }

    /// Asserts that exactly the blocked clients are in the queues of their keys and have timers.
    fn check_blocked(&self) {
        let (mut blocked, mut queued, mut timed, mut postponed) = (0, 0, 0, 0);
        for session in self.sessions.iter() {
            let Some(waiting) = &session.blocked else { continue };
            let number = session.id.number;
            blocked += 1;
            postponed += (waiting.wait == Wait::Postponed) as usize;
            // A request may name a key twice, but the client is in the queue once.
            let keys: BTreeSet<&[u8]> = waiting.keys.iter().map(|key| &**key).collect();
            queued += keys.len();
            for key in keys {
                let is_queued = self.blocking.is_queued(waiting.db, key, waiting.ticket, session.id);
                assert!(is_queued, "client {number}: not in the queue of {}", key.escape_ascii());
            }
            if !waiting.timer.is_none() {
                let timer = self.store.timers.get(waiting.timer).map(|(_, timer)| timer);
                assert_eq!(
                    timer,
                    Some(Timer::Blocked { slot: session.id.slot }),
                    "client {number}: its timer"
                );
                timed += 1;
            }
        }
        self.blocking.check(&self.sessions, blocked, queued, postponed);
        let timers = self.store.timers.iter().filter(|(_, timer)| matches!(timer, Timer::Blocked { .. }));
        assert_eq!(timers.count(), timed, "wrong number of timers of blocked clients");
    }

    /// Asserts that sessions and the table of subscriptions agree.
    fn check_subscriptions(&self) {
        for kind in [SubscriptionKind::Channel, SubscriptionKind::Pattern, SubscriptionKind::Shard] {
            let mut subscriptions = 0;
            for session in self.sessions.iter() {
                for name in session.subscriptions(kind) {
                    let is_known = self.pubsub.subscribers(kind, name).contains(&session.id);
                    let name = name.escape_ascii();
                    assert!(
                        is_known,
                        "client {}: not among the subscribers of {kind:?} {name}",
                        session.id.number
                    );
                    subscriptions += 1;
                }
            }
            let subscribers = self.pubsub.names(kind).map(|name| self.pubsub.subscribers(kind, name).len());
            assert_eq!(subscribers.sum::<usize>(), subscriptions, "wrong number of subscribers of {kind:?}");
        }
    }

    /// Asserts that sessions and the table of watchers agree.
    fn check_watches(&self) {
        let mut watches = 0;
        for session in self.sessions.iter() {
            for watched in &session.watched {
                let is_known =
                    self.watchers.get(watched).is_some_and(|clients| clients.contains(&session.id));
                let key = watched.1.escape_ascii();
                assert!(is_known, "client {}: not among the watchers of {key}", session.id.number);
                watches += 1;
            }
        }
        let watchers = self.watchers.values();
        assert!(watchers.clone().all(|clients| !clients.is_empty()), "a key has an empty list of watchers");
        assert_eq!(watchers.map(Vec::len).sum::<usize>(), watches, "wrong number of watchers");
    }
}

#[cfg(test)]
mod tests {
    //! Each test breaks one invariant on purpose.

    use super::*;
    use crate::node::{Config, ConnId};
    use crate::version::Version;
    use crate::world::{ClockMode, World, WorldOptions};

    /// Returns a world whose node has executed these requests of one client, and that client's connection.
    fn after(requests: &[&str]) -> (World, ConnId) {
        let mut world = World::new(WorldOptions {
            seed: 0,
            clock: ClockMode::Manual,
            wall_start_ms: 1_700_000_000_000,
            nodes: vec![Config::new(Version::V7_4)],
            topology: None,
        });
        let conn = world.open(0, "127.0.0.1:50000".to_owned(), "127.0.0.1:6379".to_owned());
        for request in requests {
            let argv: Vec<&[u8]> = request.split(' ').map(str::as_bytes).collect();
            world.request(conn, &argv);
        }
        world.nodes()[0].check();
        (world, conn)
    }

    #[test]
    #[should_panic(expected = "h: the timer has a wrong deadline")]
    fn a_field_expiry_without_its_timer() {
        let (mut world, _) = after(&["HSET h a 1 b 2", "HPEXPIRE h 5000 FIELDS 1 a"]);
        let node = world.node_mut(0);
        let slot = node.store.dbs[0].find(b"h").unwrap();
        if let Some(crate::store::Value::Hash(hash)) = node.store.dbs[0].entry_mut(slot).map(|e| &mut e.value)
        {
            let now_ms = node.store.now.wall_ms();
            hash.set_expiry(b"b", Some(now_ms + 10));
        }
        node.check();
    }

    #[test]
    #[cfg(debug_assertions)]
    #[should_panic(expected = "k: changed without a word")]
    fn a_change_that_nobody_is_told_of() {
        let (mut world, _) = after(&["SET k 1"]);
        let node = world.begin(0);
        node.note_edit(0, b"k");
        let slot = node.store.dbs[0].find(b"k").unwrap();
        node.store.set_expiry(0, slot, Some(1));
        node.check();
    }

    #[test]
    fn a_suspended_script_keeps_the_messages_about_its_own_changes() {
        let endless = "EVAL redis.call('set','k',1)repeat(type)(1)until(false) 0";
        let (mut world, conn) = after(&["HELLO 3", "CLIENT TRACKING ON", "GET k", endless]);
        world.take_output(conn, &mut Vec::new());
        let other = world.open(0, "127.0.0.1:50001".to_owned(), "127.0.0.1:6379".to_owned());
        world.request(other, &[b"HELLO", b"3"]);
        world.begin(0).abort_script();
        world.end(0, None);
        let mut output = Vec::new();
        world.take_output(conn, &mut output);
        assert!(
            output.ends_with(b">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\nk\r\n"),
            "{}",
            output.escape_ascii()
        );
    }

    #[test]
    #[should_panic(expected = "l: an empty value was not deleted")]
    fn an_empty_value() {
        let (mut world, _) = after(&["RPUSH l a"]);
        let node = world.node_mut(0);
        let slot = node.store.dbs[0].find(b"l").unwrap();
        if let Some(crate::store::Value::List(list)) = node.store.dbs[0].entry_mut(slot).map(|e| &mut e.value)
        {
            list.pop(crate::store::list::End::Head);
        }
        node.check();
    }

    #[test]
    #[should_panic(expected = "wrong number of timers of blocked clients")]
    fn a_timer_left_behind() {
        let (mut world, conn) = after(&["BLPOP l 5"]);
        let node = world.node_mut(0);
        let slot = conn.session.slot;
        node.unblock(conn.session);
        node.store.timers.arm(1_000, Timer::Blocked { slot });
        node.check();
    }

    #[test]
    #[should_panic(expected = "wrong number of blocked clients")]
    fn a_session_dropped_while_it_is_blocked() {
        let (mut world, conn) = after(&["BLPOP l 0"]);
        let node = world.node_mut(0);
        node.sessions.remove(conn.session);
        node.check();
    }

    #[test]
    #[should_panic(expected = "wrong number of subscribers of Channel")]
    fn a_session_dropped_while_it_subscribes() {
        let (mut world, conn) = after(&["SUBSCRIBE c"]);
        let node = world.node_mut(0);
        node.sessions.remove(conn.session);
        node.check();
    }

    #[test]
    #[should_panic(expected = "wrong number of watchers")]
    fn a_watch_left_behind() {
        let (mut world, conn) = after(&["WATCH k"]);
        let node = world.node_mut(0);
        if let Some(session) = node.sessions.get_mut(conn.session) {
            session.watched.clear();
        }
        node.check();
    }
}
