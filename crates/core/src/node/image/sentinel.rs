//! What a sentinel knows. Each line begins with the kind of what it tells; the identifiers of runs are not part of it.

use super::Node;
use crate::image::{Reader, Words, name_of, named};
use crate::node::sentinel::settings::Globals;
use crate::node::sentinel::{
    Address, Failover, Instance, Master, MasterSettings, Peer, Reconf, Replica, Sentinel, SentinelSettings,
    Stage,
};

const RECONFS: &[(&str, Reconf)] = &[
    ("none", Reconf::None),
    ("sent", Reconf::Sent),
    ("in-progress", Reconf::InProgress),
    ("done", Reconf::Done),
];

impl Node {
    pub(in crate::node) fn image_of_sentinel(&self, lines: &mut Vec<Words>) {
        let Some(sentinel) = &self.sentinel else { return };
        let line = |kind: &str| self.about("SENTINEL").word(kind.as_bytes());
        let globals = &sentinel.settings.globals;
        let own = line("own").word(sentinel.id.as_bytes()).value(sentinel.epoch).value(sentinel.crashes);
        let own =
            own.option(self.store.timers.deadline_ms(sentinel.timer)).flag(sentinel.settings.allows_scripts);
        let own = sentinel.times_ms.iter().fold(own, Words::value);
        lines.push(Globals::NAMES.iter().fold(own, |own, name| own.word(globals.get(name).as_bytes())));
        for master in &sentinel.masters {
            lines.push(write_settings(line("master"), &master.settings));
            lines.push(write_master(line("state"), master));
            lines.extend(master.replicas.iter().map(|replica| write_replica(line("replica"), replica)));
            lines.extend(master.peers.iter().map(|peer| write_peer(line("peer"), peer)));
        }
    }

    pub(super) fn take_sentinel(&mut self, line: &mut Reader) -> Option<()> {
        let kind = line.word()?;
        if kind == b"own" {
            return self.take_own(line);
        }
        let sentinel = self.sentinel.as_deref_mut()?;
        match kind {
            b"master" => {
                let settings = read_settings(line)?;
                sentinel.masters.push(Master::new(settings, None, 0));
            }
            b"state" => read_master(line, sentinel.masters.last_mut()?)?,
            b"replica" => {
                let replica = read_replica(line)?;
                sentinel.masters.last_mut()?.replicas.push(replica);
            }
            b"peer" => {
                let peer = read_peer(line)?;
                sentinel.masters.last_mut()?.peers.push(peer);
            }
            _ => return None,
        }
        Some(())
    }

    fn take_own(&mut self, line: &mut Reader) -> Option<()> {
        let mut sentinel = Sentinel::new(SentinelSettings::default(), line.text()?);
        (sentinel.epoch, sentinel.crashes) = (line.value()?, line.value()?);
        let due_ms: Option<u64> = line.option()?;
        sentinel.settings.allows_scripts = line.flag()?;
        for ms in &mut sentinel.times_ms {
            *ms = line.value()?;
        }
        for name in Globals::NAMES {
            sentinel.settings.globals.set(name, &line.text()?).ok()?;
        }
        self.sentinel = Some(Box::new(sentinel));
        due_ms.into_iter().for_each(|due_ms| self.look_at(due_ms));
        Some(())
    }
}

fn write_address(line: Words, address: &Address) -> Words {
    line.word(address.host.as_bytes()).value(address.port)
}

fn read_address(line: &mut Reader) -> Option<Address> {
    Some(Address { host: line.text()?, port: line.value()? })
}

/// Writes a text that may be absent, which is not the same as an empty one.
fn write_text(line: Words, text: Option<&String>) -> Words {
    let line = line.flag(text.is_some());
    line.word(text.map_or(&b""[..], |text| text.as_bytes()))
}

fn read_text(line: &mut Reader) -> Option<Option<String>> {
    let (is_there, text) = (line.flag()?, line.text()?);
    Some(is_there.then_some(text))
}

fn write_settings(line: Words, settings: &MasterSettings) -> Words {
    let line = write_address(line.word(settings.name.as_bytes()), &settings.address);
    let line = line.value(settings.quorum).value(settings.down_after_ms).value(settings.failover_timeout_ms);
    let line = line.value(settings.parallel_syncs).value(settings.reboot_down_after_ms);
    let line = write_text(line, settings.auth_user.as_ref());
    let line = write_text(line, settings.auth_pass.as_ref());
    let line = write_text(line, settings.notification_script.as_ref());
    let line = write_text(line, settings.client_reconfig_script.as_ref());
    let renames = settings.renames.iter().flat_map(|(from, to)| [from.as_bytes(), to.as_bytes()]);
    line.words(renames)
}

fn read_settings(line: &mut Reader) -> Option<MasterSettings> {
    let (name, address) = (line.text()?, read_address(line)?);
    let mut settings = MasterSettings {
        name,
        address,
        quorum: line.value()?,
        down_after_ms: line.value()?,
        failover_timeout_ms: line.value()?,
        parallel_syncs: line.value()?,
        reboot_down_after_ms: line.value()?,
        auth_user: read_text(line)?,
        auth_pass: read_text(line)?,
        notification_script: read_text(line)?,
        client_reconfig_script: read_text(line)?,
        renames: Vec::new(),
        config_epoch: 0,
    };
    while !line.is_empty() {
        settings.renames.push((line.text()?, line.text()?));
    }
    Some(settings)
}

fn write_instance(line: Words, own: &Instance) -> Words {
    let line = write_address(line, &own.address).option(own.node).value(own.since_ms).option(own.lost_ms);
    line.value(own.delay_ms).option(own.sdown_ms).flag(own.is_replica).value(own.role_ms)
}

fn read_instance(line: &mut Reader) -> Option<Instance> {
    Some(Instance {
        address: read_address(line)?,
        node: line.option()?,
        run_id: String::new(),
        since_ms: line.value()?,
        lost_ms: line.option()?,
        delay_ms: line.value()?,
        sdown_ms: line.option()?,
        is_replica: line.flag()?,
        role_ms: line.value()?,
    })
}

fn write_master(line: Words, master: &Master) -> Words {
    let line = write_instance(line, &master.own).value(master.config_epoch).option(master.leader.as_ref());
    let line = line.value(master.leader_epoch).option(master.odown_ms);
    let Failover { stage, epoch, tried_ms, changed_ms, asked_ms, is_forced } = master.failover;
    let line = line.word(name_of(&Stage::NAMES, stage).as_bytes()).value(epoch).option(tried_ms);
    line.value(changed_ms).value(asked_ms).flag(is_forced)
}

fn read_master(line: &mut Reader, master: &mut Master) -> Option<()> {
    master.own = read_instance(line)?;
    master.config_epoch = line.value()?;
    master.leader = line.option()?;
    master.leader_epoch = line.value()?;
    master.odown_ms = line.option()?;
    master.failover = Failover {
        stage: named(&Stage::NAMES, line.word()?)?,
        epoch: line.value()?,
        tried_ms: line.option()?,
        changed_ms: line.value()?,
        asked_ms: line.value()?,
        is_forced: line.flag()?,
    };
    Some(())
}

fn write_replica(line: Words, replica: &Replica) -> Words {
    let line = write_instance(line, &replica.own).flag(replica.follows.is_some());
    let line = write_address(line, replica.follows.as_ref().unwrap_or(&Address::default()));
    let line = line.value(replica.follows_ms).option(replica.unlinked_ms).value(replica.offset);
    let line = line.value(replica.priority).flag(replica.is_promoted);
    line.word(name_of(RECONFS, replica.reconf).as_bytes()).value(replica.reconf_ms)
}

fn read_replica(line: &mut Reader) -> Option<Replica> {
    let own = read_instance(line)?;
    let (has_master, master) = (line.flag()?, read_address(line)?);
    Some(Replica {
        own,
        follows: has_master.then_some(master),
        follows_ms: line.value()?,
        unlinked_ms: line.option()?,
        offset: line.value()?,
        priority: line.value()?,
        is_promoted: line.flag()?,
        reconf: named(RECONFS, line.word()?)?,
        reconf_ms: line.value()?,
    })
}

fn write_peer(line: Words, peer: &Peer) -> Words {
    let line = write_instance(line.word(peer.own.run_id.as_bytes()), &peer.own).value(peer.heard_ms);
    line.flag(peer.says_down).option(peer.leader.as_ref()).value(peer.leader_epoch)
}

fn read_peer(line: &mut Reader) -> Option<Peer> {
    let run_id = line.text()?;
    Some(Peer {
        own: Instance { run_id, ..read_instance(line)? },
        heard_ms: line.value()?,
        says_down: line.flag()?,
        leader: line.option()?,
        leader_epoch: line.value()?,
    })
}
