//! `redlatch run`: runs a server and a command that share one clock.
//!
//! A JVM sleeps and computes deadlines by its own clock. libfaketime replaces that clock: it runs as fast as the server's clock,
//! or jumps when `SIM.CLOCK JUMP <ms> COMMAND` says so.

mod reach;

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::rc::Rc;

use tokio::process::{Child, Command};

use super::Options;
use super::serve;
use crate::net::Endpoint;
use reach::Reach;
use redlatch_core::world::ClockMode;
use redlatch_lab::control::Lab;

const USAGE: &str = "\
Runs a command (a test run, a JVM, Python) and a server that share one clock.

Usage: redlatch run [--speed N] [--start-at UNIX_SECONDS] [SERVER OPTIONS] -- COMMAND [ARGUMENTS]

      --speed N                  time runs N times as fast for both: with 10, a lease of 30 s ends
                                 after 3 s [default: 1]
      --start-at UNIX_SECONDS    the time at which both clocks start, in s [default: now]
      SERVER OPTIONS             the options of redlatch; --port defaults to a free port

The command's environment has the server's port in REDLATCH_PORT, and redis://127.0.0.1:PORT in
REDLATCH_ADDRESS. Without --speed, SIM.CLOCK JUMP <ms> COMMAND makes the command's clock jump. The
exit code is the command's, or 2 if the command cannot run or its clock does not move: Go programs,
statically linked and setuid programs keep the real time.

This needs libfaketime (Debian and Ubuntu: apt-get install faketime).";

/// The arguments of the subcommand: those before `--`, and the command after it.
struct Arguments {
    speed: f64,
    start_at_s: Option<i64>,
    server: Vec<String>,
    command: Vec<String>,
}

/// Runs the subcommand with its arguments, its name first.
pub fn main(args: Vec<String>) -> ExitCode {
    if args.iter().take_while(|arg| *arg != "--").any(|arg| arg == "--help" || arg == "-h") {
        println!("{USAGE}");
        return ExitCode::SUCCESS;
    }
    let arguments = match Arguments::parse(args) {
        Ok(arguments) => arguments,
        Err(why) => return refuse(&why),
    };
    let mut options = match Options::parse(arguments.server.clone()) {
        Ok(options) => options,
        Err(_) => return ExitCode::from(2),
    };
    options.clock = if arguments.speed == 1.0 { ClockMode::Real } else { ClockMode::Rate(arguments.speed) };
    options.wall_start_ms = arguments.start_at_s.map(|seconds| seconds.saturating_mul(1000));
    let Some(library) = find_library() else {
        return refuse("libfaketime is missing; on Debian and Ubuntu: apt-get install faketime");
    };
    let faked = Faked::new(library, arguments);
    if let Err(why) = faked.reach.borrow_mut().check_command(&faked.command[0]) {
        return refuse(&why);
    }
    match serve::serve_until(options, faked) {
        Ok(code) => ExitCode::from(code),
        Err(why) => refuse(&why),
    }
}

fn refuse(why: &str) -> ExitCode {
    eprintln!("redlatch run: {why}");
    ExitCode::from(2)
}

impl Arguments {
    fn parse(args: Vec<String>) -> Result<Arguments, String> {
        let mut args = args.into_iter().skip(1);
        let mut parsed = Arguments {
            speed: 1.0,
            start_at_s: None,
            server: vec!["redlatch".to_owned()],
            command: Vec::new(),
        };
        let mut names_port = false;
        while let Some(arg) = args.next() {
            match arg.as_str() {
                "--" => {
                    parsed.command = args.collect();
                    break;
                }
                "--speed" => {
                    let speed = args.next().and_then(|arg| arg.parse::<f64>().ok());
                    parsed.speed = speed
                        .filter(|speed| speed.is_finite() && *speed > 0.0)
                        .ok_or("--speed takes a positive number")?;
                }
                "--start-at" => {
                    let seconds = args.next().and_then(|arg| arg.parse().ok());
                    parsed.start_at_s = Some(seconds.ok_or("--start-at takes a Unix time in seconds")?);
                }
                _ => {
                    names_port |= arg == "--port" || arg == "-p" || arg.starts_with("--port=");
                    parsed.server.push(arg);
                }
            }
        }
        if parsed.command.is_empty() {
            return Err("the command after -- is missing".to_owned());
        }
        if !names_port {
            parsed.server.extend(["--port".to_owned(), "0".to_owned()]);
        }
        Ok(parsed)
    }
}

/// Finds libfaketime's preloadable library for programs with threads.
fn find_library() -> Option<PathBuf> {
    const NAME: &str = "faketime/libfaketimeMT.so.1";
    let roots = ["/usr/lib", "/usr/lib64", "/usr/local/lib"].map(Path::new);
    let below = roots.iter().flat_map(|root| std::fs::read_dir(root).into_iter().flatten().flatten());
    let places = roots.iter().map(|root| root.to_path_buf()).chain(below.map(|entry| entry.path()));
    places.map(|place| place.join(NAME)).find(|path| path.exists())
}

/// A command under libfaketime.
pub struct Faked {
    library: PathBuf,
    speed: f64,
    start_at_s: Option<i64>,
    command: Vec<String>,
    /// The file from which libfaketime reads the offset of the command's clock.
    offset_file: PathBuf,
    jumped_ms: i64,
    reach: Rc<RefCell<Reach>>,
    /// The process of the command, once it has started.
    pid: Rc<Cell<Option<u32>>>,
    /// The programs that the user was warned of.
    warned: BTreeSet<PathBuf>,
}

impl Faked {
    fn new(library: PathBuf, arguments: Arguments) -> Faked {
        let Arguments { speed, start_at_s, command, .. } = arguments;
        let offset_file = std::env::temp_dir().join(format!("redlatch-run-{}", std::process::id()));
        let reach = Rc::new(RefCell::new(Reach::new(library.clone())));
        let (pid, warned) = Default::default();
        Faked { library, speed, start_at_s, command, offset_file, jumped_ms: 0, reach, pid, warned }
    }

    /// Returns the offset of the command's clock from the real clock at the start, in ms.
    fn offset_ms(&self, now_ms: i64) -> i64 {
        self.start_at_s.map_or(0, |seconds| seconds.saturating_mul(1000) - now_ms)
    }

    /// Starts the command. `now_ms`: the real Unix time at which the server's clock started, in ms.
    pub fn start(&self, endpoints: &[Endpoint], now_ms: i64) -> Result<Child, String> {
        let port = endpoints.iter().find_map(Endpoint::tcp_port);
        let mut command = if self.speed == 1.0 {
            self.write_offset(now_ms)?;
            let mut command = Command::new(&self.command[0]);
            command
                .args(&self.command[1..])
                .env("LD_PRELOAD", &self.library)
                .env("FAKETIME_TIMESTAMP_FILE", &self.offset_file)
                // Without a cache, every reading of the clock would read the file, and a JVM reads the clock often.
                .env("FAKETIME_CACHE_DURATION", "1");
            command
        } else {
            // The `faketime` program makes all processes of the command count from one start time.
            let mut command = Command::new("faketime");
            let offset_s = self.offset_ms(now_ms) / 1000;
            command.args(["-m", "-f", &format!("{offset_s:+} x{}", self.speed)]).args(&self.command);
            command
        };
        let port = port.unwrap_or_default();
        command
            .env("REDLATCH_PORT", port.to_string())
            .env("REDLATCH_ADDRESS", format!("redis://127.0.0.1:{port}"))
            .kill_on_drop(true);
        let child = command.spawn().map_err(|error| format!("cannot run {}: {error}", self.command[0]))?;
        self.pid.set(child.id());
        Ok(child)
    }

    /// Tells the control plane whether the command's clock can jump.
    pub fn introduce(&self, lab: &mut Lab) {
        let (speed, reach, pid) = (self.speed, self.reach.clone(), self.pid.clone());
        lab.run_command_with(Box::new(move || {
            if speed != 1.0 {
                return Some("with --speed the clock of the command cannot jump".to_owned());
            }
            let unmoved = reach.borrow_mut().unmoved(pid.get()?);
            unmoved.first().map(|found| format!("{found} (process {})", found.pid))
        }));
    }

    /// Looks at the processes of the command. Warns of each program that it has started and whose clock does not move.
    ///
    /// # Errors
    /// The clock of the command itself does not move.
    pub fn look_at_processes(&mut self) -> Result<(), String> {
        let Some(pid) = self.pid.get() else { return Ok(()) };
        for found in self.reach.borrow_mut().unmoved(pid) {
            if found.pid == pid {
                return Err(found.to_string());
            }
            if self.warned.insert(found.program.clone()) {
                eprintln!("redlatch run: warning: {found}");
            }
        }
        Ok(())
    }

    /// Makes the command's clock jump by `ms`.
    pub fn jump(&mut self, ms: i64, now_ms: i64) {
        self.jumped_ms = self.jumped_ms.saturating_add(ms);
        if let Err(why) = self.write_offset(now_ms) {
            tracing::error!("{why}");
        }
    }

    fn write_offset(&self, now_ms: i64) -> Result<(), String> {
        let seconds = (self.offset_ms(now_ms) + self.jumped_ms) as f64 / 1000.0;
        std::fs::write(&self.offset_file, format!("{seconds:+.3}\n"))
            .map_err(|error| format!("cannot write {}: {error}", self.offset_file.display()))
    }
}

impl Drop for Faked {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.offset_file);
    }
}
