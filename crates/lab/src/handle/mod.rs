//! The control plane for tests in Rust: the SIM.* commands as methods with typed results.
//!
//! [`Control`] works on a [`Sim`](crate::Sim) and on a server in another thread, which it reaches through a [`Remote`].

mod guard;
mod results;

use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use crate::control::args::{Code, SimError, state, unknown};
use crate::control::commands::key::DbId;
use crate::control::commands::run::Fence;
use crate::control::commands::{
    Answer, CheckCommand, ClockCommand, FaultCommand, GateCommand, KeyCommand, LinkCommand, NodeCommand,
    RunCommand, SimCommand, TraceCommand, gate::Released,
};
use crate::control::{Gate, Lab, Rule};
use redlatch_core::node::replication::Link;
use redlatch_core::node::states::State;
use redlatch_core::world::ClockMode;
use redlatch_locks::check::{Checks, Finding, Tally};

pub use guard::{FaultGuard, GateGuard};
pub use results::{
    Advanced, ClockReading, DumpedKey, FaultHit, FaultId, FaultInfo, GateId, Held, NodeInfo, PendingTimer,
    ScriptCost, SkewInfo, Ticket,
};

/// Work for the thread that owns a lab.
pub type Job = Box<dyn FnOnce(&mut Lab) + Send>;

/// A condition that is evaluated after each event until it is true.
pub type Watch = Box<dyn FnMut(&mut Lab) -> bool + Send>;

/// A lab on another thread.
pub trait Remote: Send + Sync {
    /// Passes work to the lab's thread. A lab that has stopped drops it.
    fn run(&self, job: Job);

    /// Passes a condition to the lab's thread. A lab that has stopped drops it.
    fn watch(&self, watch: Watch);
}

/// Where the lab is.
pub(crate) enum Reach<'a> {
    Here(&'a mut Lab),
    There(Arc<dyn Remote>),
}

/// The control plane: the clock, faults, gates, keys, nodes, checks, costs and traces.
///
/// [`Sim::control`](crate::Sim::control) and `TestServer::control` give it. Each method acts between two events, as the SIM.*
/// command of the same name does (docs/control-plane.md). What a method does is not an input of a trace, except that time passes: a run
/// that is to be replayed sends its SIM.* commands as a client.
///
/// # Errors
///
/// Every method fails with [`Code::Stopped`] if the server has ended, and with [`Code::State`], [`Code::Unknown`] or [`Code::Range`] if it
/// names a node, rule, gate, ticket or snapshot that does not exist.
///
/// ```
/// use redlatch_lab::{Sim, SimOptions};
///
/// let mut sim = Sim::new(SimOptions::default());
/// let client = sim.connect(0);
/// sim.call(client, &["SET", "lock", "me", "PX", "1000"]);
/// let advanced = sim.control().advance(1_001)?;
/// assert_eq!(advanced.expired, 1);
/// # Ok::<(), redlatch_lab::SimError>(())
/// ```
pub struct Control<'a> {
    reach: Reach<'a>,
}

impl<'a> Control<'a> {
    /// Controls a lab of this thread.
    pub fn of(lab: &'a mut Lab) -> Control<'a> {
        Control { reach: Reach::Here(lab) }
    }

    /// Controls a lab of another thread.
    pub fn remote(remote: Arc<dyn Remote>) -> Control<'static> {
        Control { reach: Reach::There(remote) }
    }

    /// Runs `act` on the lab between two events and waits for its result.
    fn run<T: Send + 'static>(
        &mut self,
        act: impl FnOnce(&mut Lab) -> Result<T, SimError> + Send + 'static,
    ) -> Result<T, SimError> {
        match &mut self.reach {
            Reach::Here(lab) => {
                let result = settled(lab, act);
                lab.run_scripts();
                result
            }
            Reach::There(remote) => run_remotely(&**remote, act),
        }
    }

    fn apply_all(&mut self, command: SimCommand) -> Result<(), SimError> {
        self.apply(command).map(drop)
    }

    /// Applies any SIM command and returns its reply.
    pub fn apply(&mut self, command: SimCommand) -> Result<Answer, SimError> {
        self.run(|lab| lab.apply(command, None))
    }

    // ---- the clock -----------------------------------------------------------------------------------------------

    /// Reads the clock.
    pub fn now(&mut self) -> Result<ClockReading, SimError> {
        self.run(|lab| Ok(lab.clock_reading()))
    }

    /// Makes the clock run in real time, at a multiple of it, or only when told.
    pub fn set_clock_mode(&mut self, mode: ClockMode) -> Result<(), SimError> {
        self.apply_all(SimCommand::Clock(ClockCommand::Mode(mode)))
    }

    /// Moves the clock on by `ms`. Every timer on the way fires at its own instant.
    pub fn advance(&mut self, ms: u64) -> Result<Advanced, SimError> {
        self.run(move |lab| Ok(lab.advance_and_count(ms)))
    }

    /// Moves the clock on to a Unix time in ms.
    ///
    /// # Errors
    ///
    /// Fails if that time has passed: time does not run backwards, but a wall clock can [jump](Self::jump).
    pub fn advance_to(&mut self, wall_ms: i64) -> Result<Advanced, SimError> {
        self.run(move |lab| lab.advance_to_wall(wall_ms))
    }

    /// Moves the clock on to the next timer, but by no more than `max_ms`.
    pub fn advance_to_next_timer(&mut self, max_ms: u64) -> Result<Advanced, SimError> {
        self.run(move |lab| Ok(lab.advance_to_next(max_ms)))
    }

    /// Moves the wall clock of a node by `ms`, which may be negative. No timer fires. Returns its Unix time in ms.
    pub fn jump(&mut self, node: usize, ms: i64) -> Result<i64, SimError> {
        self.run(move |lab| {
            let node = lab.check_node(node)?;
            Ok(lab.world.jump(node, ms))
        })
    }

    /// Returns the next `count` timers, the earliest first.
    pub fn timers(&mut self, count: usize) -> Result<Vec<PendingTimer>, SimError> {
        self.run(move |lab| Ok(lab.pending_timers(count)))
    }

    /// Returns how far the clocks of clients, as their lock scripts show them, are from their node's.
    pub fn skews(&mut self) -> Result<Vec<SkewInfo>, SimError> {
        self.run(|lab| Ok(lab.skew_infos()))
    }

    // ---- faults --------------------------------------------------------------------------------------------------

    /// Adds a fault rule; dropping the guard removes it.
    ///
    /// # Errors
    ///
    /// Fails if the rule names a node that does not exist, or could never match.
    ///
    /// ```
    /// use redlatch_lab::control::action::{Action, Stage};
    /// use redlatch_lab::control::{Clause, Match, Rule};
    /// use redlatch_lab::{Sim, SimOptions};
    ///
    /// let mut sim = Sim::new(SimOptions::default());
    /// let app = sim.connect(0);
    /// let incr = Match::any().and(Clause::Cmd(b"incr".to_vec()));
    /// let lost = sim.control().fault(Rule::new(incr, Action::Drop(Stage::Reply)))?;
    /// assert_eq!(sim.call(app, &["INCR", "n"]), b"");
    /// assert_eq!(lost.hits(), 1);
    /// # Ok::<(), redlatch_lab::SimError>(())
    /// ```
    pub fn fault(&mut self, rule: Rule) -> Result<FaultGuard, SimError> {
        let id = self.add_fault(rule)?;
        Ok(FaultGuard::new(&self.reach, id))
    }

    /// Adds a fault rule, which stays until it is [removed](Self::remove_fault).
    ///
    /// # Errors
    ///
    /// As [`fault`](Self::fault).
    pub fn add_fault(&mut self, rule: Rule) -> Result<FaultId, SimError> {
        self.run(|lab| {
            rule.check()?;
            lab.check_match(&rule.matching)?;
            match lab.apply(SimCommand::Fault(FaultCommand::Add(rule)), None)? {
                Answer::Int(id) => Ok(FaultId(id as u64)),
                _ => Err(state("the rule has no number")),
            }
        })
    }

    /// Removes a fault rule.
    pub fn remove_fault(&mut self, fault: FaultId) -> Result<(), SimError> {
        self.apply_all(SimCommand::Fault(FaultCommand::Delete(fault.0.to_string())))
    }

    /// Returns all fault rules in the order in which they are tried.
    pub fn faults(&mut self) -> Result<Vec<FaultInfo>, SimError> {
        self.run(|lab| Ok(lab.fault_infos()))
    }

    /// Returns the latest 1,000 times that a fault rule was applied.
    pub fn fault_hits(&mut self, fault: FaultId) -> Result<Vec<FaultHit>, SimError> {
        self.run(move |lab| {
            lab.fault_hits(fault).ok_or_else(|| unknown(format!("there is no rule {}", fault.0)))
        })
    }

    /// Removes all fault rules.
    pub fn clear_faults(&mut self) -> Result<(), SimError> {
        self.apply_all(SimCommand::Fault(FaultCommand::Clear))
    }

    /// Suspends all fault rules until [`resume_faults`](Self::resume_faults).
    pub fn pause_faults(&mut self) -> Result<(), SimError> {
        self.apply_all(SimCommand::Fault(FaultCommand::Pause))
    }

    /// Resumes all fault rules.
    pub fn resume_faults(&mut self) -> Result<(), SimError> {
        self.apply_all(SimCommand::Fault(FaultCommand::Resume))
    }

    // ---- gates ---------------------------------------------------------------------------------------------------

    /// Adds a gate; dropping the guard removes it and releases what it holds.
    ///
    /// # Errors
    ///
    /// Fails if the gate names a node that does not exist, or could never match.
    ///
    /// ```
    /// use redlatch_lab::control::gates::At;
    /// use redlatch_lab::control::{Clause, Gate, Match};
    /// use redlatch_lab::{Sim, SimOptions};
    ///
    /// let mut sim = Sim::new(SimOptions::default());
    /// let app = sim.connect(0);
    /// let get = Match::any().and(Clause::Cmd(b"get".to_vec()));
    /// let gate = sim.control().gate(Gate::new(get, At::Pre))?;
    /// assert_eq!(sim.call(app, &["GET", "k"]), b"");
    /// let held = sim.control().held()?;
    /// assert_eq!(held[0].summary, r#"GET "k""#);
    /// sim.control().release(held[0].ticket)?;
    /// assert_eq!(sim.received(app), b"$-1\r\n");
    /// # Ok::<(), redlatch_lab::SimError>(())
    /// ```
    pub fn gate(&mut self, gate: Gate) -> Result<GateGuard, SimError> {
        let id = self.add_gate(gate)?;
        Ok(GateGuard::new(&self.reach, id))
    }

    /// Adds a gate, which stays until it is [removed](Self::remove_gate).
    ///
    /// # Errors
    ///
    /// As [`gate`](Self::gate).
    pub fn add_gate(&mut self, gate: Gate) -> Result<GateId, SimError> {
        self.run(|lab| {
            gate.matching.check(gate.at == crate::control::gates::At::Push)?;
            lab.check_match(&gate.matching)?;
            match lab.apply(SimCommand::Gate(GateCommand::Add(gate)), None)? {
                Answer::Int(id) => Ok(GateId(id as u64)),
                _ => Err(state("the gate has no number")),
            }
        })
    }

    /// Removes a gate and releases what it holds.
    pub fn remove_gate(&mut self, gate: GateId) -> Result<(), SimError> {
        self.apply_all(SimCommand::Gate(GateCommand::Delete(gate.0.to_string())))
    }

    /// Returns what gates and delays hold, the oldest first.
    pub fn held(&mut self) -> Result<Vec<Held>, SimError> {
        self.run(|lab| Ok(lab.held_infos()))
    }

    /// Waits until a gate holds `count` requests, replies or messages, and returns their tickets.
    ///
    /// # Errors
    ///
    /// Fails with [`Code::State`] if it holds fewer when `timeout` has passed in real time. A [`Sim`](crate::Sim) does not wait, for nothing
    /// could happen meanwhile.
    pub fn await_held(
        &mut self,
        gate: GateId,
        count: usize,
        timeout: Duration,
    ) -> Result<Vec<Ticket>, SimError> {
        let look = move |lab: &mut Lab| {
            let held = lab.tickets_of(gate)?;
            Ok(if held.len() >= count { Ok(held) } else { Err(held.len()) })
        };
        let too_few = |held: usize| state(format!("the gate holds {held} and not {count}"));
        let Reach::There(remote) = &self.reach else {
            return self.run(look)?.map_err(too_few);
        };
        let (answer, answers) = channel();
        let alive = Arc::new(());
        let waits = Arc::downgrade(&alive);
        remote.watch(Box::new(move |lab| {
            let found = settled(lab, look);
            let is_over = waits.strong_count() == 0 || !matches!(found, Ok(Err(_)));
            if is_over {
                // Nobody listens after the timeout.
                let _ = answer.send(found);
            }
            is_over
        }));
        match answers.recv_timeout(timeout) {
            Ok(found) => found?.map_err(too_few),
            Err(RecvTimeoutError::Disconnected) => Err(stopped()),
            Err(RecvTimeoutError::Timeout) => {
                drop(alive);
                self.run(look)?.map_err(too_few)
            }
        }
    }

    /// Releases what a ticket holds.
    pub fn release(&mut self, ticket: Ticket) -> Result<(), SimError> {
        let what = Released::Ticket(ticket.0);
        self.apply_all(SimCommand::Gate(GateCommand::Release { what, last_first: false }))
    }

    /// Releases what a gate holds, the oldest first. The gate stays. Returns how many tickets there were.
    pub fn release_gate(&mut self, gate: GateId) -> Result<usize, SimError> {
        self.release_many(Released::Gate(gate.0.to_string()), false)
    }

    /// Releases what a gate holds, the newest first.
    pub fn release_gate_reversed(&mut self, gate: GateId) -> Result<usize, SimError> {
        self.release_many(Released::Gate(gate.0.to_string()), true)
    }

    /// Releases what all gates hold, the oldest first.
    pub fn release_all(&mut self) -> Result<usize, SimError> {
        self.release_many(Released::All, false)
    }

    fn release_many(&mut self, what: Released, last_first: bool) -> Result<usize, SimError> {
        self.apply(SimCommand::Gate(GateCommand::Release { what, last_first })).map(count)
    }

    /// Releases the oldest `count` things that gates hold. Returns how many there were.
    pub fn step(&mut self, count: usize) -> Result<usize, SimError> {
        self.apply(SimCommand::Gate(GateCommand::Step(count))).map(self::count)
    }

    // ---- keys ----------------------------------------------------------------------------------------------------

    /// Silently deletes a key: without a keyspace event, and without failing a WATCH. Returns whether the key existed.
    pub fn lose_key(&mut self, db: DbId, key: impl AsRef<[u8]>) -> Result<bool, SimError> {
        let key = key.as_ref().to_vec();
        self.apply(SimCommand::Key(KeyCommand::Lose { key, db })).map(is_one)
    }

    /// Silently changes the TTL of a key; `None` removes it. Returns whether the key exists.
    pub fn set_ttl(
        &mut self,
        db: DbId,
        key: impl AsRef<[u8]>,
        ttl_ms: Option<u64>,
    ) -> Result<bool, SimError> {
        let key = key.as_ref().to_vec();
        self.apply(SimCommand::Key(KeyCommand::Ttl { key, ttl_ms, db })).map(is_one)
    }

    /// Returns the keys of a database that match a glob, sorted.
    pub fn dump_keys(&mut self, db: DbId, pattern: impl AsRef<[u8]>) -> Result<Vec<DumpedKey>, SimError> {
        let pattern = pattern.as_ref().to_vec();
        self.run(move |lab| lab.dump_keys(&pattern, db))
    }

    // ---- nodes ---------------------------------------------------------------------------------------------------

    /// Describes all nodes.
    pub fn nodes(&mut self) -> Result<Vec<NodeInfo>, SimError> {
        self.run(|lab| Ok(lab.node_infos()))
    }

    /// Pauses a node: its requests and timers wait, as if SIGSTOP had stopped its process.
    pub fn pause_node(&mut self, node: usize) -> Result<(), SimError> {
        self.apply_all(SimCommand::Node(NodeCommand::Pause(node)))
    }

    /// Resumes a paused node.
    pub fn resume_node(&mut self, node: usize) -> Result<(), SimError> {
        self.apply_all(SimCommand::Node(NodeCommand::Resume(node)))
    }

    /// Closes all connections of a node and refuses new ones. With `wipe` the node also loses its data.
    pub fn stop_node(&mut self, node: usize, wipe: bool) -> Result<(), SimError> {
        self.apply_all(SimCommand::Node(NodeCommand::Stop { node, wipe }))
    }

    /// Starts a stopped node.
    pub fn start_node(&mut self, node: usize) -> Result<(), SimError> {
        self.start_node_after(node, 0)
    }

    /// Starts a stopped node when `after_ms` have passed on the emulated clock.
    pub fn start_node_after(&mut self, node: usize, after_ms: u64) -> Result<(), SimError> {
        self.apply_all(SimCommand::Node(NodeCommand::Start { node, after_ms }))
    }

    /// Turns a simulated state of a node on or off, such as out of memory, loading or read-only.
    pub fn set_state(&mut self, node: usize, state: State, on: bool) -> Result<(), SimError> {
        self.apply_all(SimCommand::Node(NodeCommand::State { node, state, on }))
    }

    /// Makes a node a replica of another.
    pub fn replicate(&mut self, node: usize, master: usize) -> Result<(), SimError> {
        self.apply_all(SimCommand::Node(NodeCommand::Replicate { node, master }))
    }

    /// Sets how the replication link delivers writes to a replica.
    pub fn set_link(&mut self, replica: usize, link: Link) -> Result<(), SimError> {
        self.apply_all(SimCommand::Node(NodeCommand::Link { replica, link }))
    }

    /// Makes a replica a master.
    pub fn promote(&mut self, node: usize) -> Result<(), SimError> {
        self.apply_all(SimCommand::Node(NodeCommand::Promote(node)))
    }

    /// Cuts what `sender` sends to `receiver`, and with `both_ways` also what it receives from it.
    pub fn cut(&mut self, sender: usize, receiver: usize, both_ways: bool) -> Result<(), SimError> {
        self.apply_all(SimCommand::Link(LinkCommand::Between { sender, receiver, both_ways, is_cut: true }))
    }

    /// Ends all partitions between nodes.
    pub fn heal(&mut self) -> Result<(), SimError> {
        self.apply_all(SimCommand::Link(LinkCommand::HealAll))
    }

    /// Sets how many replicas WAIT and WAITAOF count; `None` counts the existing replicas.
    pub fn set_acks(&mut self, node: usize, replicas: Option<u64>) -> Result<(), SimError> {
        self.apply_all(SimCommand::Node(NodeCommand::Ack { node, replicas }))
    }

    // ---- the run -------------------------------------------------------------------------------------------------

    /// Sets the seed of all later random choices.
    pub fn reseed(&mut self, seed: u64) -> Result<(), SimError> {
        self.apply_all(SimCommand::Run(RunCommand::Seed(seed)))
    }

    /// Removes all data, scripts, rules, gates and states; releases held output. All nodes run and are masters; connections stay open.
    pub fn reset(&mut self) -> Result<(), SimError> {
        self.apply_all(SimCommand::Run(RunCommand::Reset(None)))
    }

    /// Saves the data of all nodes under a name.
    pub fn snapshot(&mut self, name: impl Into<String>) -> Result<(), SimError> {
        self.apply_all(SimCommand::Run(RunCommand::Snapshot(name.into())))
    }

    /// Restores the data of a snapshot, with the TTLs that the keys had then.
    pub fn restore(&mut self, name: impl Into<String>) -> Result<(), SimError> {
        self.apply_all(SimCommand::Run(RunCommand::Restore(name.into())))
    }

    /// Writes to the fenced store, which checks fencing tokens. Returns whether it accepted the write.
    pub fn store_write(
        &mut self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        token: u64,
        fence: Fence,
    ) -> Result<bool, SimError> {
        let (key, value) = (key.as_ref().to_vec(), value.as_ref().to_vec());
        self.apply(SimCommand::Run(RunCommand::StoreWrite { key, value, token, fence })).map(is_one)
    }

    /// Returns a value of the fenced store and the largest token of its writes.
    pub fn store_read(&mut self, key: impl AsRef<[u8]>) -> Result<Option<(Vec<u8>, u64)>, SimError> {
        let key = key.as_ref().to_vec();
        self.run(move |lab| Ok(lab.registers.get(&key).map(|register| register.parts())))
    }

    /// Returns a hash over the state of all nodes.
    pub fn digest(&mut self) -> Result<String, SimError> {
        self.run(|lab| Ok(lab.world().digest()))
    }

    // ---- checks --------------------------------------------------------------------------------------------------

    /// Starts to check the invariants of locks while clients use them.
    pub fn start_checks(&mut self, checks: Checks) -> Result<(), SimError> {
        self.apply_all(SimCommand::Check(CheckCommand::On(checks)))
    }

    /// Stops the checks. The violations remain readable.
    pub fn stop_checks(&mut self) -> Result<(), SimError> {
        self.apply_all(SimCommand::Check(CheckCommand::Off))
    }

    /// Forgets all violations and all known locks.
    pub fn reset_checks(&mut self) -> Result<(), SimError> {
        self.apply_all(SimCommand::Check(CheckCommand::Reset))
    }

    /// Returns the first 1,000 violations.
    pub fn violations(&mut self) -> Result<Vec<Finding>, SimError> {
        self.run(|lab| Ok(lab.findings().to_vec()))
    }

    /// Returns how many operations on locks were checked, and how many could not be.
    pub fn checked(&mut self) -> Result<Tally, SimError> {
        self.run(|lab| Ok(lab.check_tally()))
    }

    // ---- costs ---------------------------------------------------------------------------------------------------

    /// Starts or stops counting what scripts cost. Counting makes scripts slower.
    pub fn count_costs(&mut self, on: bool) -> Result<(), SimError> {
        self.run(move |lab| {
            lab.count_costs(on);
            Ok(())
        })
    }

    /// Returns what each script has cost, in counts that are the same on every machine.
    pub fn costs(&mut self) -> Result<Vec<ScriptCost>, SimError> {
        self.run(|lab| Ok(lab.script_costs()))
    }

    /// Forgets what scripts have cost.
    pub fn clear_costs(&mut self) -> Result<(), SimError> {
        self.apply_all(SimCommand::Cost(crate::control::commands::CostCommand::Clear))
    }

    // ---- traces --------------------------------------------------------------------------------------------------

    /// Starts to record a trace, which ends with [`finish_trace`](Self::finish_trace).
    ///
    /// # Errors
    ///
    /// Fails if a trace is being recorded, or if there are keys: a trace begins without data.
    pub fn start_trace(&mut self) -> Result<(), SimError> {
        self.run(Lab::begin_trace)
    }

    /// Ends the trace and returns its lines, for `redlatch replay`.
    ///
    /// # Errors
    ///
    /// Fails if no trace is being recorded.
    pub fn finish_trace(&mut self) -> Result<String, SimError> {
        self.run(|lab| {
            if !lab.is_traced() {
                return Err(state("no trace is being recorded"));
            }
            Ok(lab.finish_trace())
        })
    }

    /// Writes a remark into the trace.
    pub fn mark(&mut self, text: impl AsRef<[u8]>) -> Result<(), SimError> {
        self.apply_all(SimCommand::Trace(TraceCommand::Mark(text.as_ref().to_vec())))
    }
}

/// Runs `act`, then ends the event on all nodes.
fn settled<T>(lab: &mut Lab, act: impl FnOnce(&mut Lab) -> Result<T, SimError>) -> Result<T, SimError> {
    lab.remove_abandoned();
    let result = act(lab);
    lab.settle_all();
    result
}

/// Runs `act` on the thread of a lab and waits for its result.
fn run_remotely<T: Send + 'static>(
    remote: &dyn Remote,
    act: impl FnOnce(&mut Lab) -> Result<T, SimError> + Send + 'static,
) -> Result<T, SimError> {
    let (answer, answers) = channel();
    remote.run(Box::new(move |lab| {
        // The caller may have stopped waiting.
        let _ = answer.send(settled(lab, act));
    }));
    answers.recv().unwrap_or_else(|_| Err(stopped()))
}

fn stopped() -> SimError {
    SimError { code: Code::Stopped, text: "the server has stopped".to_owned() }
}

fn is_one(answer: Answer) -> bool {
    answer == Answer::Int(1)
}

fn count(answer: Answer) -> usize {
    match answer {
        Answer::Int(n) => n as usize,
        _ => 0,
    }
}
