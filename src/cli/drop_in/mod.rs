//! The program under the name of another server: a link or a copy called `redis-server` starts, speaks and ends like it, for
//! harnesses that start that.

mod explain;
pub mod log;
pub mod process;

pub use crate::net::without_number;
pub use explain::explain;

use std::path::Path;
use std::process::ExitCode;

use super::Options;
use super::serve;
use redlatch_core::version::Version;

/// The server that the process is started as, by the name of its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Identity {
    Redlatch,
    RedisServer,
    ValkeyServer,
}

/// The environment variable with arguments for a server that somebody else starts.
const EXTRA_ARGS: &str = "REDLATCH_ARGS";

impl Identity {
    /// Returns what a program of this path is. Only the beginning of its name counts: harnesses add versions and platforms.
    pub fn of(program: &str) -> Identity {
        let name = Path::new(program).file_name().map_or("".into(), |name| name.to_string_lossy());
        match &*name {
            name if name.starts_with("redis-server") => Identity::RedisServer,
            name if name.starts_with("redis-sentinel") => Identity::RedisServer,
            name if name.starts_with("valkey-server") => Identity::ValkeyServer,
            name if name.starts_with("valkey-sentinel") => Identity::ValkeyServer,
            _ => Identity::Redlatch,
        }
    }

    pub fn is_drop_in(self) -> bool {
        self != Identity::Redlatch
    }

    /// Returns whether a program of this path is a sentinel whatever its arguments are.
    fn is_sentinel(program: &str) -> bool {
        let name = Path::new(program).file_name().map_or("".into(), |name| name.to_string_lossy());
        name.starts_with("redis-sentinel") || name.starts_with("valkey-sentinel")
    }

    /// Returns the name of the server.
    pub fn server_name(self) -> &'static str {
        match self {
            Identity::Redlatch => "redlatch",
            Identity::RedisServer => "redis-server",
            Identity::ValkeyServer => "valkey-server",
        }
    }

    /// Returns the release that is emulated if nothing else is asked for.
    pub fn default_version(self) -> Version {
        match self {
            Identity::Redlatch | Identity::RedisServer => Version::DEFAULT,
            Identity::ValkeyServer => Version::Valkey9_1,
        }
    }
}

/// What redis-server does instead of serving.
const NOT_SERVED: [&str; 2] = ["--test-memory", "--check-system"];

/// The argument that makes a server a sentinel.
pub const SENTINEL: &str = "--sentinel";

/// Refuses an option for something that only the real server does.
///
/// # Errors
/// The exit code, after the message has been printed.
pub fn refuse_not_served(args: &[String]) -> Result<(), ExitCode> {
    match args.iter().find(|arg| NOT_SERVED.contains(&arg.as_str())) {
        Some(option) => {
            eprintln!("redlatch: {option} is for redis-server only");
            Err(ExitCode::FAILURE)
        }
        None => Ok(()),
    }
}

/// Begins the message about a configuration that is refused.
pub fn fatal_config(version: Version) -> String {
    format!("\n*** FATAL CONFIG FILE ERROR ({}) ***", version.title())
}

/// Runs the program as the server of this identity, with the arguments of the process, its name first.
pub fn main(identity: Identity, mut args: Vec<String>) -> ExitCode {
    match args.get(1).map(String::as_str) {
        Some("-v" | "--version") => {
            println!("{}", version_line(asked_version(identity)));
            return ExitCode::SUCCESS;
        }
        Some("-h" | "--help") => {
            eprint!("{}", usage(&args[0]));
            return ExitCode::FAILURE;
        }
        _ => {}
    }
    if let Err(exit) = refuse_not_served(&args) {
        return exit;
    }
    if Identity::is_sentinel(&args[0]) {
        args.push(SENTINEL.to_owned());
    }
    args.splice(1..1, extra_args());
    match Options::parse_as(identity, args) {
        Ok(options) => serve::serve(options),
        Err(exit) => exit,
    }
}

/// Returns the arguments of the environment: the caller of a harness cannot give others.
fn extra_args() -> Vec<String> {
    let text = std::env::var(EXTRA_ARGS).unwrap_or_default();
    text.split_ascii_whitespace().map(str::to_owned).collect()
}

/// Returns the release that the environment asks for, or the default.
fn asked_version(identity: Identity) -> Version {
    let args = std::iter::once("redlatch".to_owned()).chain(extra_args());
    Options::parse_as(identity, args).map_or(identity.default_version(), |options| options.version())
}

/// Returns the line of `--version`. Programs look in it for `v=`.
pub fn version_line(version: Version) -> String {
    format!("{} server v={} sha=00000000:0 malloc=libc bits=64 build=0", product(version), version.full())
}

/// Returns the name by which the emulated server speaks of itself.
fn product(version: Version) -> &'static str {
    if version.is_valkey() { "Valkey" } else { "Redis" }
}

fn usage(program: &str) -> String {
    format!(
        "Usage: {program} [CONFIG_FILE] [--NAME VALUE ...] [-]\n       {program} - (more lines of the configuration come from \
         standard input)\n       {program} -v or --version\n       {program} -h or --help\n       {program} \
         --explain-config [CONFIG_FILE] [--NAME VALUE ...]\n\nThis is Redlatch under the name of another server. \
         {EXTRA_ARGS} in the environment adds options of redlatch.\n"
    )
}
