//! The cluster in the view of a node.

use super::Node;
use crate::image::{Reader, Words};
use crate::node::cluster::{Address, Cluster, Health, Member, NodeId};

impl Node {
    pub(super) fn image_of_cluster(&self, lines: &mut Vec<Words>) {
        let Some(cluster) = self.cluster.as_deref() else { return };
        for member in cluster.members() {
            let Address { ip, port, bus_port, hostname } = &member.address;
            let line = self.about("MEMBER").word(member.id.as_bytes()).word(member.shard.as_bytes());
            let line = line.value(member.node).value(ip).value(port).value(bus_port).value(hostname);
            let line = line.option(member.master).value(member.config_epoch).flag(member.no_failover);
            let line = line.value(member.offset).option(member.silent_since_ms).option(member.voted_ms);
            let line = match member.health {
                Health::Fine => line.value("fine"),
                Health::Suspected => line.value("suspected"),
                Health::Failed { since_ms } => line.value("failed").value(since_ms),
            };
            lines.push(line);
        }
        for member in cluster.members() {
            let ranges = cluster.slots_of(member.id).ranges();
            if !ranges.is_empty() {
                let line = self.about("SLOTS").word(member.id.as_bytes());
                lines.push(ranges.iter().fold(line, |line, (first, last)| line.value(first).value(last)));
            }
            for (reporter, said_ms) in &member.reports {
                let line = self.about("REPORT").word(member.id.as_bytes());
                lines.push(line.word(reporter.as_bytes()).value(said_ms));
            }
        }
        for (what, moves) in [("MIGRATING", &cluster.migrating), ("IMPORTING", &cluster.importing)] {
            let moves = moves.iter();
            lines.extend(moves.map(|(slot, id)| self.about(what).value(slot).word(id.as_bytes())));
        }
        for session in self.sessions.iter().filter(|session| session.asks || session.reads_replicas) {
            let line = self.about_client("REDIRECTED", session);
            lines.push(line.flag(session.asks).flag(session.reads_replicas));
        }
        cluster.image_of_state(self.about("CLUSTER"), lines);
    }

    pub(super) fn take_cluster(&mut self, what: &[u8], line: &mut Reader) -> Option<()> {
        let nodes = self.replication.ports.len();
        if what == b"REDIRECTED" {
            let id = self.sessions.by_number(line.value()?)?.id;
            let session = &mut self.sessions[id];
            (session.asks, session.reads_replicas) = (line.flag()?, line.flag()?);
            return Some(());
        }
        let cluster = self.cluster.as_deref_mut()?;
        match what {
            b"MEMBER" => cluster.take_member(read_member(line).filter(|member| member.node < nodes)?)?,
            b"SLOTS" => {
                let id = NodeId::parse(line.word()?)?;
                cluster.member(id)?;
                while !line.is_empty() {
                    let (first, last): (u16, u16) = (line.value()?, line.value()?);
                    (last < 16_384).then_some(())?;
                    (first..=last).for_each(|slot| cluster.assign(slot, Some(id)));
                }
            }
            b"REPORT" => {
                let (about, reporter) = (NodeId::parse(line.word()?)?, NodeId::parse(line.word()?)?);
                cluster.take_report(about, reporter, line.value()?)?;
            }
            b"MIGRATING" | b"IMPORTING" => {
                let (slot, id): (u16, _) = (line.value()?, NodeId::parse(line.word()?)?);
                (slot < 16_384).then_some(())?;
                let moves =
                    if what == b"MIGRATING" { &mut cluster.migrating } else { &mut cluster.importing };
                moves.insert(slot, id);
            }
            _ => cluster.take_state(line)?,
        }
        Some(())
    }
}

fn read_member(line: &mut Reader) -> Option<Member> {
    let (id, shard) = (NodeId::parse(line.word()?)?, NodeId::parse(line.word()?)?);
    let node = line.value()?;
    let address =
        Address { ip: line.text()?, port: line.value()?, bus_port: line.value()?, hostname: line.text()? };
    let mut member = Member::new(id, shard, node, address);
    member.master = match line.word()? {
        b"-" => None,
        id => Some(NodeId::parse(id)?),
    };
    member.config_epoch = line.value()?;
    member.no_failover = line.flag()?;
    member.offset = line.value()?;
    member.silent_since_ms = line.option()?;
    member.voted_ms = line.option()?;
    member.health = match line.word()? {
        b"fine" => Health::Fine,
        b"suspected" => Health::Suspected,
        b"failed" => Health::Failed { since_ms: line.value()? },
        _ => return None,
    };
    Some(member)
}

impl Cluster {
    /// Feeds what decides over requests to `sink`.
    pub(in crate::node) fn digest(&self, sink: &mut dyn FnMut(&[u8])) {
        let mut number = |number: u64| sink(&number.to_le_bytes());
        for count in [self.current_epoch, self.last_vote_epoch, u64::from(self.is_ok)] {
            number(count);
        }
        for member in self.members() {
            number(member.config_epoch);
            number(match member.health {
                Health::Fine => 0,
                Health::Suspected => 1,
                Health::Failed { since_ms } => since_ms.saturating_add(2),
            });
            number(member.node as u64);
        }
        for member in self.members() {
            sink(member.id.as_bytes());
            sink(member.master.as_ref().map_or(&b"-"[..], NodeId::as_bytes));
            self.slots_of(member.id).digest(sink);
        }
        for (slot, id) in self.migrating.iter().chain(&self.importing) {
            sink(&slot.to_le_bytes());
            sink(id.as_bytes());
        }
    }
}
