//! The tokio shell: sockets and the real clock around a world.
//!
//! One thread reads, executes and writes (docs/design.md says why). A connection is a task that takes all complete
//! requests of a read, runs them in one turn and writes once. Output for other connections wakes their tasks.

// A driver: here, and nowhere below, is the real world.
#![allow(clippy::disallowed_types, clippy::disallowed_methods)]

mod connection;
mod errands;
mod listener;
mod migrate;
mod race;
mod stream;
#[cfg(feature = "tls")]
mod tls;
mod trace_file;

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::Notify;
use tokio::task::JoinHandle;

use redlatch_core::world::ConnId;
use redlatch_lab::control::Lab;
use redlatch_lab::handle::{Job, Watch};

pub use errands::without_number;
pub use listener::{Endpoint, Listener};
use race::{First, race};
#[cfg(feature = "tls")]
pub use tls::Acceptor;

/// The size of the one buffer that idle connections read into.
const READ_BUFFER: usize = 64 * 1024;

/// A lab behind sockets.
pub struct Server {
    lab: RefCell<Lab>,
    began: Instant,
    /// How to wake the task of each connection.
    connections: RefCell<HashMap<ConnId, Rc<Notify>>>,
    /// Set when the timer task has to look at the clock earlier than it planned.
    timer: Notify,
    timer_at_us: Cell<u64>,
    stopped: Notify,
    scratch: RefCell<Vec<u8>>,
    dirty: RefCell<Vec<ConnId>>,
    /// Where the trace goes, if one is written.
    trace: Rc<RefCell<Option<std::fs::File>>>,
    /// The file with the data of the first node, if it has one.
    dump: RefCell<Option<PathBuf>>,
    /// Whether the trace is written at the end of each turn.
    syncs_trace: Cell<bool>,
    jumps: Rc<Jumps>,
    /// Questions that other threads ask again after each event.
    watches: RefCell<Vec<Watch>>,
    /// Scripts that loop give up.
    stopping: Arc<AtomicBool>,
}

/// By how much the clock of a command is still to jump.
#[derive(Default)]
pub struct Jumps {
    ms: Cell<i64>,
    ordered: Notify,
}

impl Jumps {
    fn order(&self, ms: i64) {
        self.ms.set(self.ms.get().saturating_add(ms));
        self.ordered.notify_one();
    }

    /// Waits for the next jump; ms.
    pub async fn next(&self) -> i64 {
        self.ordered.notified().await;
        self.ms.take()
    }
}

impl Server {
    pub fn new(lab: Lab) -> Rc<Server> {
        Rc::new(Server {
            lab: RefCell::new(lab),
            began: Instant::now(),
            connections: RefCell::default(),
            timer: Notify::new(),
            timer_at_us: Cell::new(u64::MAX),
            stopped: Notify::new(),
            scratch: RefCell::new(vec![0; READ_BUFFER]),
            dirty: RefCell::new(Vec::new()),
            trace: Rc::default(),
            dump: RefCell::default(),
            syncs_trace: Cell::new(false),
            jumps: Rc::default(),
            watches: RefCell::default(),
            stopping: Arc::default(),
        })
    }

    /// Jumps that clients order for the clock of the command that runs with the server.
    pub fn command_jumps(&self) -> Rc<Jumps> {
        self.jumps.clone()
    }

    /// Accepts on the listeners and keeps the timers until a client or `stop` ends the server.
    pub async fn run(self: &Rc<Server>, listeners: Vec<Listener>, stop: impl Future<Output = ()>) {
        let mut tasks: Vec<JoinHandle<()>> = Vec::new();
        for listener in listeners {
            tasks.push(tokio::task::spawn_local(listener.accept(self.clone())));
        }
        tasks.push(tokio::task::spawn_local(keep_timers(self.clone())));
        tasks.push(tokio::task::spawn_local(trace_file::write_now_and_then(self.clone())));
        match race(stop, self.stopped.notified()).await {
            First::Left(()) => tracing::info!("A signal came, shutting down..."),
            First::Right(()) => tracing::info!("User requested shutdown..."),
        }
        tasks.iter().for_each(JoinHandle::abort);
        let mut lab = self.lab.borrow_mut();
        if lab.is_traced() {
            self.end_trace(&mut lab);
        }
        if lab.is_checking() {
            lab.check_report().iter().for_each(|line| tracing::warn!("{line}"));
        }
    }

    /// What another thread sets before it stops the server, so that a script that loops does not keep it.
    pub fn stopping(&self) -> Arc<AtomicBool> {
        self.stopping.clone()
    }

    /// Does what another thread asks for.
    pub fn run_job(self: &Rc<Server>, job: Job) {
        self.turn(None, |lab| {
            lab.catch_up_fully();
            job(lab);
        });
    }

    /// Asks now, and again after each event until the answer is true.
    pub fn add_watch(self: &Rc<Server>, watch: Watch) {
        self.watches.borrow_mut().push(watch);
        self.turn(None, |_| ());
    }

    /// Loads the data of the first node from its file, if the file is there, and writes it when a client asks for that.
    /// Returns how many keys were loaded.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn keep_data_in(&self, path: PathBuf) -> Result<Option<usize>, String> {
        let loaded = match std::fs::read(&path) {
            Ok(bytes) => Some(self.lab.borrow_mut().load_file(0, &bytes).map_err(|error| error.to_string())?),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
            Err(error) => return Err(error.to_string()),
        };
        *self.dump.borrow_mut() = Some(path);
        Ok(loaded)
    }

    fn save(&self, path: &Path, data: &[u8]) {
        match errands::replace(path, data) {
            Ok(()) => tracing::info!("DB saved on disk"),
            Err(error) => tracing::warn!("Failed to save the DB to {}: {error}", path.display()),
        }
    }

    fn elapsed_us(&self) -> u64 {
        self.began.elapsed().as_micros() as u64
    }

    /// Does something with the world at the present time, then wakes those it concerns. A script that this has begun, for
    /// whichever client, runs to its end or until it is busy.
    fn turn<T>(self: &Rc<Server>, caller: Option<ConnId>, act: impl FnOnce(&mut Lab) -> T) -> T {
        let result = self.act(caller, act);
        self.run_scripts();
        result
    }

    fn act<T>(self: &Rc<Server>, caller: Option<ConnId>, act: impl FnOnce(&mut Lab) -> T) -> T {
        let mut lab = self.lab.borrow_mut();
        lab.tick(self.elapsed_us());
        let result = act(&mut lab);
        self.after(&mut lab, caller);
        result
    }

    /// Wakes the tasks of connections that have output, and the timer task if it sleeps too long.
    fn after(self: &Rc<Server>, lab: &mut Lab, caller: Option<ConnId>) {
        if !self.watches.borrow().is_empty() {
            self.watches.borrow_mut().retain_mut(|watch| !watch(lab));
        }
        while let Some((node, task)) = lab.next_task() {
            let outcome = errands::run(task, &lab.world().nodes()[node]);
            lab.report(node, outcome.as_deref().map_err(String::as_bytes));
        }
        let mut dirty = self.dirty.borrow_mut();
        let connections = self.connections.borrow();
        lab.take_dirty(&mut dirty);
        for &conn in dirty.iter() {
            if Some(conn) != caller
                && let Some(task) = connections.get(&conn)
            {
                task.notify_one();
            }
        }
        if let Some(path) = &*self.dump.borrow()
            && let Some(data) = lab.take_saved(0)
        {
            self.save(path, &data);
        }
        if let Some(ms) = lab.take_command_jump() {
            self.jumps.order(ms);
        }
        if lab.is_traced() {
            self.keep_trace(lab);
        }
        if lab.is_behind() || lab.next_wakeup_us().is_some_and(|at_us| at_us < self.timer_at_us.get()) {
            self.timer.notify_one();
        }
        if lab.world().shutdown_requested() {
            self.stopped.notify_one();
        }
    }

    fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }

    /// Lets suspended scripts go on. Until a script counts as busy nobody else is served, as in Redis.
    fn run_scripts(self: &Rc<Server>) {
        let urgent = || self.lab.borrow().urgent_script();
        let Some(mut node) = urgent() else { return };
        let mut began = Instant::now();
        while !self.is_stopping() {
            self.act(None, |lab| lab.run_slice_after(node, began.elapsed().as_millis() as u64));
            if self.lab.borrow().world().is_busy(node) {
                tracing::warn!(node, "a script has been running for longer than busy-reply-threshold");
                tokio::task::spawn_local(run_busy_script(self.clone(), node));
            }
            match urgent() {
                Some(next) if next == node => {}
                Some(next) => (node, began) = (next, Instant::now()),
                None => return,
            }
        }
    }
}

/// Runs a busy script slice by slice; others are served in between.
async fn run_busy_script(server: Rc<Server>, node: usize) {
    const WHILE_PAUSED: Duration = Duration::from_millis(10);
    while !server.is_stopping() && server.lab.borrow().world().is_busy(node) {
        if server.lab.borrow().world().nodes()[node].paused {
            tokio::time::sleep(WHILE_PAUSED).await;
        } else {
            server.turn(None, |lab| lab.run_slice(node));
            tokio::task::yield_now().await;
        }
    }
}

/// Sleeps from timer to timer.
async fn keep_timers(server: Rc<Server>) {
    loop {
        let (is_behind, next_us) = server.turn(None, |lab| (lab.catch_up(), lab.next_wakeup_us()));
        if is_behind {
            // Clients are served before the next timers fire.
            tokio::task::yield_now().await;
            continue;
        }
        server.timer_at_us.set(next_us.unwrap_or(u64::MAX));
        match next_us {
            None => server.timer.notified().await,
            Some(at_us) => {
                let wait = Duration::from_micros(at_us.saturating_sub(server.elapsed_us()));
                race(tokio::time::sleep(wait.min(Duration::from_secs(3600))), server.timer.notified()).await;
            }
        }
    }
}
