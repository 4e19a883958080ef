//! One lock of real clients, translated for its models.
//!
//! The shadow copies the lock's keys under the names that the models use, and replaces the real owners by the models'
//! owners. While it is not clear which object a lock is (RLock and spin lock use the same script to acquire), the
//! shadow follows all possible objects.

use std::collections::{BTreeMap, VecDeque};

use super::reading::{Reading, WRITER};
use super::{Checks, Finding, Start};
use crate::binding::{CHANNEL, LOCK};
use crate::catalogue::{OBJECTS, Object};
use crate::model::*;
use crate::permit::names::{PERMIT, PERMITS, permit_id};
use crate::role::Role;
use crate::rw::names::{HOLD_DEPTH, HOLDS, MODE, hold_prefixes};
use crate::script_set::ScriptSet;
use crate::show::{shorten, show_value};
use crate::view::View;
use crate::{own, permit, rlock, rw};
use redlatch_core::script::sha1_hex;
use redlatch_core::store::list::End;
use redlatch_core::store::{Db, Hash, Limits, List, Now, SortedSet, Store, Value, rdb};

/// The most requests that are remembered because they may be repeated.
const MAX_REQUESTS: usize = 256;

/// The most connections whose last owner is remembered.
const MAX_CONNECTIONS: usize = 256;

/// The most permits whose ids are remembered.
const MAX_PERMITS: usize = 10_000;

/// An object that the lock may be.
#[derive(Clone)]
struct Candidate {
    object: &'static Object,
    model: Box<dyn Model>,
}

/// One of the models' owners, and the real owner that it represents.
#[derive(Clone, Debug, Default)]
struct Seat {
    owner: Vec<u8>,
    used: u64,
    /// Whether no key names the owner.
    is_visitor: bool,
}

/// A request that may be repeated.
#[derive(Clone)]
struct Request {
    latch: Vec<u8>,
    reply: Vec<u8>,
    until_ms: i64,
}

/// A key in the state that the last script left: its DUMP and its expiry.
type Left = Option<(Vec<u8>, Option<i64>)>;

/// One lock of real clients.
#[derive(Clone)]
pub struct Shadow {
    db: usize,
    name: Vec<u8>,
    candidates: Vec<Candidate>,
    /// The script of read acquires when the models were created. It decides about the keys of holds.
    read_acquire: Option<[u8; 40]>,
    /// The keys and channels with their meaning.
    keys: Vec<(Parameter, Vec<u8>)>,
    /// The text before and after an owner in the keys of holds.
    holds: Option<(Vec<u8>, Vec<u8>)>,
    /// Whether scripts name owners.
    has_owners: bool,
    seats: [Seat; OWNERS],
    permits: BTreeMap<Vec<u8>, u64>,
    next_permit: u64,
    left: BTreeMap<Vec<u8>, Left>,
    requests: VecDeque<Request>,
    /// The last owner that each connection named, most recent last.
    named_by: VecDeque<(u64, Vec<u8>)>,
    turns: u64,
}

/// The operation of a script on a lock.
#[derive(Clone)]
pub struct Turn {
    call: Call,
    owner: Vec<u8>,
    /// The candidates that can judge the script, each with the operation that the script is for it.
    asked: Vec<(usize, usize)>,
    before: Vec<String>,
    latch: Option<(Vec<u8>, i64)>,
    /// The reply to the first of several equal requests.
    first_reply: Option<Vec<u8>>,
    /// The index of this lock, if the script treats several locks and replies with a list.
    index: usize,
    is_part: bool,
}

/// The present state of a database.
#[derive(Clone, Copy)]
struct Live<'a> {
    db: &'a Db,
    now: Now,
}

impl<'a> Live<'a> {
    fn of(store: &'a Store, db: usize) -> Live<'a> {
        Live { db: &store.dbs[db], now: store.now }
    }

    /// Returns the value of a key, and its expiry.
    fn value(self, key: &[u8]) -> Option<(&'a Value, Option<i64>)> {
        let entry = self.db.entry(self.db.find(key)?).filter(|entry| !entry.is_expired(self.now))?;
        Some((&entry.value, entry.expires_at_ms()))
    }

    fn exists(self, key: &[u8]) -> bool {
        self.value(key).is_some()
    }
}

impl Shadow {
    /// Creates the shadow of a lock that no script has used yet.
    pub fn new(db: usize, name: Vec<u8>) -> Shadow {
        Shadow {
            db,
            keys: vec![(LOCK, name.clone())],
            name,
            candidates: Vec::new(),
            read_acquire: None,
            holds: None,
            has_owners: false,
            seats: Default::default(),
            permits: BTreeMap::new(),
            next_permit: 0,
            left: BTreeMap::new(),
            requests: VecDeque::new(),
            named_by: VecDeque::new(),
            turns: 0,
        }
    }

    /// Returns the number of the lock's database.
    pub fn db(&self) -> usize {
        self.db
    }

    /// Returns the key of the lock.
    pub fn name(&self) -> &[u8] {
        &self.name
    }

    /// Returns whether any key of the lock exists.
    pub fn has_keys(&self, store: &Store) -> bool {
        let live = Live::of(store, self.db);
        self.data_keys().iter().any(|key| live.exists(key))
    }

    /// Prepares for a script that is about to run. Fails with the reason if the script cannot be judged.
    pub fn begin(
        &mut self,
        start: &Start,
        reading: Reading,
        scripts: &ScriptSet,
        store: &Store,
        scratch: &mut Store,
    ) -> Result<Turn, &'static str> {
        let role = reading.role;
        self.learn(role, &reading, start);
        self.choose(role, start.sha, reading.is_writer, scripts)?;
        let live = Live::of(store, self.db);
        let asked = self.fitting(role, reading.is_writer, live);
        if asked.is_empty() {
            return Err("its key has another form");
        }
        let is_own =
            asked.iter().any(|(candidate, _)| std::ptr::eq(self.candidates[*candidate].object, &own::OWN));
        let owner = match reading.owner {
            Some(owner) => owner,
            None if is_own => self.named_by(start.client).ok_or("it is not known who asks")?,
            None => Vec::new(),
        };
        let mut call = reading.call;
        call.request = self.turns;
        if !self.seat_all(&owner, live) {
            return Err("more than six owners at once");
        }
        call.owner = self.seat_of(&owner).unwrap_or(0);
        if !self.are_consecutive(&reading.own) {
            return Err("permits of several requests");
        }
        if call.count != 1 && role == permit::roles::ACQUIRE {
            return Err("several permits at once");
        }
        self.adopt(live);
        self.turns += 1;
        let mut before = Vec::new();
        for &(candidate, operation) in &asked {
            call.operation = operation;
            self.read_own(candidate, &reading.own, &mut call).ok_or("arguments out of the ordinary")?;
            self.fill(candidate, live, scratch);
            let copy = View::new(scratch, store.now);
            if before.is_empty() {
                before = lines(scratch);
            }
            self.candidates[candidate].model.before(&call, copy);
        }
        let now_ms = store.now.wall_ms();
        self.requests.retain(|request| request.until_ms >= now_ms);
        let latch = reading.latch;
        let first = latch.as_ref().and_then(|latch| self.requests.iter().find(|known| known.latch == *latch));
        Ok(Turn {
            first_reply: first.map(|first| first.reply.clone()),
            latch: latch.map(|latch| (latch, now_ms + reading.latch_ttl_ms.unwrap_or(LATCH_TTL_MS))),
            index: reading.index,
            is_part: matches!(role, rlock::roles::RENEW | rw::roles::READ_RENEW),
            call,
            owner,
            asked,
            before,
        })
    }

    /// Returns the models' verdict on the script, which has ended.
    pub fn finish(
        &mut self,
        turn: Turn,
        reply: &[u8],
        messages: &[Message],
        checks: &Checks,
        store: &Store,
        scratch: &mut Store,
    ) -> Option<Finding> {
        let live = Live::of(store, self.db);
        let bytes = reply;
        let reply = Reply::parse(bytes);
        let reply = if turn.is_part { reply.element(turn.index) } else { reply };
        let nothing = Wanted::nothing();
        let mut finding = None;
        for (rank, &(index, operation)) in turn.asked.iter().enumerate() {
            self.fill(index, live, scratch);
            let copy = View::new(scratch, store.now);
            let told = self.translate_messages(index, messages);
            let Candidate { object, model } = &mut self.candidates[index];
            // The other candidates are kept up to date, but do not report.
            let speaks = rank == 0
                && (checks.objects.is_empty() || checks.objects.iter().any(|name| name == object.name));
            let mut verdict = Verdict::new(checks.rules, if speaks { &checks.wanted } else { &nothing });
            verdict.operation = model.operations()[operation].name;
            let call = Call { operation, ..turn.call };
            let after = lines(scratch);
            let again = turn.first_reply.is_some();
            if let Some(first) = &turn.first_reply {
                expect_same(&mut verdict, Reply::parse(first), reply, turn.before == after);
            }
            let out = Outcome { reply, messages: &told, again };
            judge(&mut **model, Observation { call: &call, out, view: copy }, &mut verdict);
            if let Some(violation) = verdict.found {
                let object = object.name;
                let lock = model.names().lock.clone();
                let show = |text: &str| text.replace(&lock, &String::from_utf8_lossy(&self.name));
                let seats = self.seats.iter().enumerate().filter(|(_, seat)| !seat.owner.is_empty());
                finding = Some(Finding {
                    event: 0,
                    node: 0,
                    db: self.db,
                    object,
                    violation: Violation { text: show(&violation.text), ..violation },
                    key: self.name.clone(),
                    owner: turn.owner.clone(),
                    owners: seats.map(|(seat, of)| (owner_name(seat), of.owner.clone())).collect(),
                    reply: reply.to_string(),
                    messages: messages
                        .iter()
                        .map(|message| {
                            format!("{} ← {}", message.channel.escape_ascii(), message.payload.escape_ascii())
                        })
                        .collect(),
                    before: turn.before.iter().map(|line| show(line)).collect(),
                    after: after.iter().map(|line| show(line)).collect(),
                    cause: None,
                    grants: Vec::new(),
                    between: Vec::new(),
                });
            }
        }
        self.leave(live);
        self.remember(turn, bytes);
        finding
    }

    // ---- who and what it is --------------------------------------------------------------------------------------

    fn learn(&mut self, role: Role, reading: &Reading, start: &Start) {
        for (parameter, key) in &reading.keys {
            match self.keys.iter_mut().find(|(known, _)| known == parameter) {
                Some((_, known)) => known.clone_from(key),
                None => self.keys.push((*parameter, key.clone())),
            }
        }
        if let Some(owner) = &reading.owner {
            self.has_owners = true;
            if own::OWN.roles.contains(&role) {
                self.note_name(start.client, owner);
            }
            let holds = reading.keys.iter().find(|(parameter, _)| *parameter == HOLDS).map(|(_, key)| key);
            if let Some(holds) = holds
                && let Some(at) = memchr::memmem::find(holds, owner)
            {
                self.holds = Some((holds[..at].to_vec(), holds[at + owner.len()..].to_vec()));
            }
        }
    }

    fn named_by(&self, client: u64) -> Option<Vec<u8>> {
        self.named_by.iter().find(|(known, _)| *known == client).map(|(_, owner)| owner.clone())
    }

    fn note_name(&mut self, client: u64, owner: &[u8]) {
        self.named_by.retain(|(known, _)| *known != client);
        if self.named_by.len() >= MAX_CONNECTIONS {
            self.named_by.pop_front();
        }
        self.named_by.push_back((client, owner.to_vec()));
    }

    /// Keeps the candidates that have this operation, or starts again with all objects that have it.
    fn choose(
        &mut self,
        role: Role,
        sha: [u8; 40],
        is_writer: bool,
        scripts: &ScriptSet,
    ) -> Result<(), &'static str> {
        let other_holds = role == rw::roles::READ_ACQUIRE && self.read_acquire != Some(sha);
        let fits = |candidate: &Candidate| operation(&*candidate.model, role, is_writer).is_some();
        if !other_holds && self.candidates.iter().any(fits) {
            self.candidates.retain(fits);
            return Ok(());
        }
        // A node sees only a part of a lock that consists of several nodes.
        let all = OBJECTS.iter().map(|object| Candidate { object, model: (object.model)(scripts) });
        let all = all.filter(|candidate| candidate.model.nodes() == 1);
        let new: Vec<Candidate> = all.filter(fits).collect();
        if new.is_empty() {
            return Err("no promise is known");
        }
        self.candidates = new;
        self.read_acquire =
            scripts.script(rw::roles::READ_ACQUIRE).map(|script| sha1_hex(script.text.as_bytes()));
        self.left.clear();
        self.requests.clear();
        Ok(())
    }

    /// Returns the candidates whose form matches the lock, each with its operation for this script.
    fn fitting(&self, role: Role, is_writer: bool, live: Live) -> Vec<(usize, usize)> {
        let fits = |candidate: &Candidate| match live.value(&self.name) {
            _ if matches!(candidate.model.form(), Form::Permits | Form::Any) => true,
            Some((Value::Hash(hash), _)) => {
                let has_mode = hash.contains(MODE, live.now.wall_ms());
                has_mode == (candidate.model.form() == Form::OwnersWithMode)
            }
            // The first releases stored locks as strings.
            Some(_) => false,
            None => true,
        };
        let candidates = self.candidates.iter().enumerate().filter(|(_, candidate)| fits(candidate));
        candidates
            .filter_map(|(index, candidate)| Some((index, operation(&*candidate.model, role, is_writer)?)))
            .collect()
    }

    // ---- owners and permits --------------------------------------------------------------------------------------

    fn seat_of(&self, owner: &[u8]) -> Option<usize> {
        self.seats.iter().position(|seat| !owner.is_empty() && seat.owner == owner)
    }

    /// Returns all owners that the keys name.
    fn present(&self, live: Live) -> Vec<Vec<u8>> {
        let mut present: Vec<Vec<u8>> = Vec::new();
        if !self.has_owners {
            return present;
        }
        let mut add = |name: &[u8]| {
            let name = name.strip_suffix(WRITER).unwrap_or(name);
            if !present.iter().any(|known| known == name) {
                present.push(name.to_vec());
            }
        };
        for (_, key) in self.keys.iter().filter(|(parameter, _)| parameter.holds_data()) {
            match live.value(key) {
                Some((Value::Hash(hash), _)) => {
                    hash.iter().filter(|field| field.name != MODE).for_each(|field| add(field.name));
                }
                Some((Value::List(list), _)) => list.iter().for_each(&mut add),
                Some((Value::SortedSet(set), _)) => set.iter().for_each(|(member, _)| add(member)),
                _ => {}
            }
        }
        present
    }

    /// Gives the caller and all owners that the keys name a seat. Returns false if there are too many.
    fn seat_all(&mut self, caller: &[u8], live: Live) -> bool {
        let mut wanted = self.present(live);
        for seat in &mut self.seats {
            seat.is_visitor = !wanted.contains(&seat.owner);
        }
        // The owner of a string is unknown: while there is a string, everybody keeps the seat.
        let is_hidden = self.has_owners && matches!(live.value(&self.name), Some((Value::String(_), _)));
        if !caller.is_empty() && !wanted.iter().any(|owner| owner == caller) {
            wanted.push(caller.to_vec());
        }
        if wanted.len() > OWNERS {
            return false;
        }
        for owner in &wanted {
            if self.seat_of(owner).is_none() {
                let free =
                    self.seats.iter().enumerate().filter(|(_, seat)| {
                        seat.owner.is_empty() || !is_hidden && !wanted.contains(&seat.owner)
                    });
                let best = free.min_by_key(|(_, seat)| (!seat.owner.is_empty(), !seat.is_visitor, seat.used));
                let Some((index, _)) = best else { return false };
                self.seats[index] = Seat { owner: owner.clone(), used: self.turns, is_visitor: false };
            }
        }
        if let Some(seat) = self.seat_of(caller) {
            self.seats[seat].used = self.turns;
        }
        true
    }

    /// Numbers the permits that a request names. Returns whether their numbers are consecutive, as models require.
    fn are_consecutive(&mut self, own: &[(Parameter, Vec<u8>)]) -> bool {
        if self.permits.len() > MAX_PERMITS {
            self.permits.clear();
            self.left.clear();
        }
        let permits = own.iter().filter(|(parameter, _)| matches!(*parameter, PERMIT | PERMITS));
        let numbers: Vec<u64> = permits.map(|(_, permit)| self.number_of(permit)).collect();
        numbers.windows(2).all(|pair| pair[1] == pair[0] + 1)
    }

    /// Passes a model the arguments that only it understands.
    fn read_own(&mut self, candidate: usize, own: &[(Parameter, Vec<u8>)], call: &mut Call) -> Option<()> {
        for (index, (parameter, word)) in own.iter().enumerate() {
            // Of several permits, the model gets only the first.
            if parameter.takes_rest() && index > 0 && own[index - 1].0 == *parameter {
                continue;
            }
            let is_permit = matches!(*parameter, PERMIT | PERMITS);
            let id = is_permit.then(|| permit_id(self.number_of(word)));
            let word = id.as_ref().map_or(&word[..], |id| &id[..]);
            self.candidates[candidate].model.read(*parameter, word, call)?;
        }
        Some(())
    }

    fn number_of(&mut self, permit: &[u8]) -> u64 {
        *self.permits.entry(permit.to_vec()).or_insert_with(|| {
            self.next_permit += 1;
            self.next_permit - 1
        })
    }

    // ---- keys ----------------------------------------------------------------------------------------------------

    fn data_keys(&self) -> Vec<Vec<u8>> {
        let mut keys: Vec<Vec<u8>> = self
            .keys
            .iter()
            .filter(|(parameter, _)| parameter.holds_data())
            .map(|(_, key)| key.clone())
            .collect();
        if self.candidates.iter().any(|candidate| candidate.model.form() == Form::OwnersWithMode) {
            let owners = self.seats.iter().filter(|seat| !seat.owner.is_empty());
            keys.extend(owners.flat_map(|seat| self.hold_keys(&seat.owner)));
        }
        keys
    }

    /// Returns the keys of an owner's holds.
    fn hold_keys(&self, owner: &[u8]) -> Vec<Vec<u8>> {
        hold_prefixes(&self.name, owner, self.holds.as_ref())
            .iter()
            .flat_map(|prefix| {
                (1..=HOLD_DEPTH).map(move |hold| [prefix, &b":"[..], hold.to_string().as_bytes()].concat())
            })
            .collect()
    }

    /// Resets the models if the keys are not in the state that the last script left.
    fn adopt(&mut self, live: Live) {
        let now_ms = live.now.wall_ms();
        let is_as_left = self.left.iter().all(|(key, left)| {
            let lives = left.as_ref().filter(|(_, end)| end.is_none_or(|end| end >= now_ms));
            match (lives, state(live, key)) {
                (None, None) => true,
                (Some(left), Some(now)) => *left == now,
                _ => false,
            }
        });
        if self.left.is_empty() || !is_as_left {
            let is_empty = !self.data_keys().iter().any(|key| live.exists(key));
            for Candidate { model, .. } in &mut self.candidates {
                model.reset();
                if !is_empty {
                    model.disturbed();
                }
            }
        }
    }

    fn leave(&mut self, live: Live) {
        self.left = self.data_keys().into_iter().map(|key| (key.clone(), state(live, &key))).collect();
    }

    fn remember(&mut self, turn: Turn, reply: &[u8]) {
        let (Some((latch, until_ms)), None) = (turn.latch, turn.first_reply) else { return };
        if self.requests.len() >= MAX_REQUESTS {
            self.requests.pop_front();
        }
        self.requests.push_back(Request { latch, reply: reply.to_vec(), until_ms });
    }

    // ---- translation ---------------------------------------------------------------------------------------------

    /// Copies the keys of the lock into a store, under the names and owners of the model.
    fn fill(&mut self, index: usize, live: Live, scratch: &mut Store) {
        scratch.clear(0);
        scratch.now = live.now;
        let limits = scratch.limits.clone();
        let mut copies: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
        {
            let model = &*self.candidates[index].model;
            for (parameter, key) in self.keys.iter().filter(|(parameter, _)| parameter.holds_data()) {
                copies.extend(named(model, *parameter).map(|name| (key.clone(), name)));
            }
            let seats = self.seats.iter().enumerate().filter(|(_, seat)| !seat.owner.is_empty());
            for (seat, Seat { owner, .. }) in seats {
                let prefixes = model.hold_prefixes(seat);
                let model_keys = prefixes.iter().flat_map(|prefix| {
                    (1..=HOLD_DEPTH).map(move |hold| format!("{prefix}:{hold}").into_bytes())
                });
                copies.extend(self.hold_keys(owner).into_iter().zip(model_keys));
            }
        }
        let has_permits = self.candidates[index].model.form() == Form::Permits;
        for (key, name) in copies {
            let Some((value, end_ms)) = live.value(&key) else { continue };
            let value = self.translate(value, has_permits, &limits);
            let slot = scratch.insert(0, &name, value);
            scratch.set_expiry(0, slot, end_ms);
        }
    }

    fn translate(&mut self, value: &Value, has_permits: bool, limits: &Limits) -> Value {
        match value {
            Value::Hash(hash) if self.has_owners => {
                let mut copy = Hash::new();
                for field in hash.iter() {
                    copy.set(&self.model_owner(field.name), field.value, limits);
                }
                Value::Hash(copy)
            }
            Value::List(list) if self.has_owners => {
                let mut copy = List::new(limits);
                for element in list.iter() {
                    copy.push(End::Tail, &self.model_owner(element), limits);
                }
                Value::List(copy)
            }
            Value::SortedSet(set) if has_permits || self.has_owners => {
                let members: Vec<(Vec<u8>, f64)> =
                    set.iter().map(|(member, score)| (member.to_vec(), score)).collect();
                let mut copy = SortedSet::for_members(members.len(), OWNER_IDS[0].len(), limits);
                for (member, score) in members {
                    let member = if has_permits {
                        permit_id(self.number_of(&member)).to_vec()
                    } else {
                        self.model_owner(&member)
                    };
                    copy.add(&member, score, limits);
                }
                Value::SortedSet(copy)
            }
            _ => value.clone(),
        }
    }

    /// Replaces a real owner at the beginning of a text by the model's owner.
    fn model_owner(&self, text: &[u8]) -> Vec<u8> {
        let name = text.strip_suffix(WRITER).unwrap_or(text);
        match self.seat_of(name) {
            Some(seat) => [OWNER_IDS[seat].as_bytes(), &text[name.len()..]].concat(),
            None => text.to_vec(),
        }
    }

    fn translate_messages(&self, index: usize, messages: &[Message]) -> Vec<Message> {
        let model = &*self.candidates[index].model;
        let channel =
            self.keys.iter().find(|(parameter, _)| *parameter == CHANNEL).map(|(_, channel)| channel);
        let translate = |message: &Message| {
            let rest = channel.and_then(|channel| message.channel.strip_prefix(&channel[..]));
            let channel = match rest {
                Some([b':', owner @ ..]) => {
                    [model.names().channel.as_bytes(), b":", &self.model_owner(owner)].concat()
                }
                Some(rest) => [model.names().channel.as_bytes(), rest].concat(),
                None => message.channel.clone(),
            };
            Message { channel, payload: message.payload.clone() }
        };
        messages.iter().map(translate).collect()
    }
}

/// Returns a model's operation for the script with this role.
fn operation(model: &dyn Model, role: Role, is_writer: bool) -> Option<usize> {
    let roles: Vec<Role> = role.readings().collect();
    let sends = |operation: &Operation| match operation.sends {
        Sends::Either(first, second) => roles.contains(&first) || roles.contains(&second),
        sends => sends.role().is_some_and(|role| roles.contains(&role)),
    };
    let operations = || model.operations().iter().enumerate().filter(|(_, operation)| sends(operation));
    // The same script renews readers and writers.
    let mut of_kind = operations().filter(|(_, operation)| operation.as_writer == is_writer);
    of_kind.next().or_else(|| operations().next()).map(|(index, _)| index)
}

/// Returns the model's name for a key, if the model uses the key.
fn named(model: &dyn Model, parameter: Parameter) -> Option<Vec<u8>> {
    let mut args = Args::default();
    model.write(parameter, &Call::default(), &mut args);
    args.iter().next().map(<[u8]>::to_vec)
}

/// Returns all keys of a store in readable form, one line for each.
fn lines(store: &Store) -> Vec<String> {
    let ttl = |end_ms: Option<i64>| match end_ms {
        Some(end_ms) => format!("{} ms", end_ms - store.now.wall_ms()),
        None => "no end".to_owned(),
    };
    let keys = store.dbs[0].iter();
    let mut lines: Vec<String> = keys
        .map(|(_, key, entry)| {
            format!("{} = {}, {}", shorten(key), show_value(&entry.value), ttl(entry.expires_at_ms()))
        })
        .collect();
    lines.sort();
    lines
}

/// Returns a key's DUMP and expiry.
fn state(live: Live, key: &[u8]) -> Left {
    let (value, end_ms) = live.value(key)?;
    Some((rdb::dump(value, redlatch_core::version::Version::V7_4, false), end_ms))
}
