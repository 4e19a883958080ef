//! Decides which commands may run: the checks that Redis makes before it calls a command, in Redis's order.

use super::Node;
use super::permissions::Source;
use super::session::SessionId;
use crate::commands::command::{
    ADMIN, ALLOW_BUSY, Command, MAY_REPLICATE, NO_AUTH, NO_MULTI, NOSCRIPT, WRITE,
};
use crate::error::{self, Error};
use crate::version::Version;
use crate::wire::Protocol;

/// The commands that a RESP2 client may send while it is subscribed.
const FOR_SUBSCRIBERS: [&str; 9] = [
    "ping",
    "subscribe",
    "ssubscribe",
    "psubscribe",
    "unsubscribe",
    "sunsubscribe",
    "punsubscribe",
    "quit",
    "reset",
];

/// The caller of a command.
#[derive(Clone, Copy)]
pub(super) enum Caller {
    /// A client that sent the command as a request.
    Client,
    /// A client's script that used `redis.call`.
    Script(Access),
}

/// What a script may do.
#[derive(Clone, Copy)]
pub(super) struct Access {
    pub read_only: bool,
    /// Whether the script may write although the server is out of memory.
    pub allow_oom: bool,
    /// Whether the script has called a write command.
    pub wrote: bool,
    /// Whether the script may use keys of several hash slots.
    pub cross_slot: bool,
}

impl Node {
    /// Returns the row of a command, or the error that says why it may not run.
    #[inline(always)] // Every command passes here, from two places.
    pub(super) fn admit(
        &mut self,
        id: SessionId,
        argv: &[&[u8]],
        caller: Caller,
    ) -> Result<&'static Command, Error> {
        if self.asks_calls && matches!(caller, Caller::Script(_)) {
            self.stages.script_calls(&self.script_call(id, argv)).map_err(Error::owned)?;
        }
        let version = self.config.version;
        let found = self.config.find_command(argv);
        if matches!(caller, Caller::Client)
            && self.must_authenticate(&self.sessions[id])
            && version.is_valkey_since(Version::Valkey9_1)
            && !found.is_some_and(|command| command.has(NO_AUTH))
        {
            // Everywhere else, whoever is not authenticated learns first whether the command exists.
            return Err(error::NO_AUTH);
        }
        let command = found.ok_or_else(|| self.unknown(argv, caller))?;
        if !command.accepts(argv.len(), version) {
            return Err(match caller {
                Caller::Client => error::wrong_arity(command.name),
                Caller::Script(_) if version.is_valkey() => {
                    Error::new("ERR Wrong number of args calling command from script")
                }
                Caller::Script(_) => Error::new("ERR Wrong number of args calling Redis command from script"),
            });
        }
        match caller {
            Caller::Client => {
                self.check_protected(id, command)?;
                self.admit_request(id, command, argv)?;
            }
            Caller::Script(access) => self.admit_call(id, command, argv, access)?,
        }
        Ok(command)
    }

    /// Fails if the configuration does not let a client use a command at all.
    fn check_protected(&self, id: SessionId, command: &Command) -> Result<(), Error> {
        if !command.has(ADMIN) {
            return Ok(());
        }
        let (name, setting) = match command.name {
            "debug" => ("DEBUG", "enable-debug-command"),
            "module|load" | "module|loadex" | "module|unload" => ("MODULE", "enable-module-command"),
            _ => return Ok(()),
        };
        match self.config.get(setting) {
            Some("yes") => Ok(()),
            Some("local") if self.sessions[id].is_local => Ok(()),
            _ => Err(error::protected_command(name, setting)),
        }
    }

    /// Makes the checks that apply only to clients' requests.
    fn admit_request(
        &mut self,
        id: SessionId,
        command: &'static Command,
        argv: &[&[u8]],
    ) -> Result<(), Error> {
        let session = &self.sessions[id];
        if self.must_authenticate(session) && !command.has(NO_AUTH) {
            return Err(error::NO_AUTH);
        }
        if session.multi.is_some() && command.has(NO_MULTI) {
            return Err(match self.config.version {
                version if version.is_valkey_since(Version::Valkey9_1) => {
                    format!("ERR Command '{}' not allowed inside a transaction", command.name).into()
                }
                _ => Error::new("ERR Command not allowed inside a transaction"),
            });
        }
        self.authorize(id, command, argv, Source::Request)?;
        if self.cluster.is_some() {
            self.redirect(id, command, argv)?;
        }
        self.make_room();
        self.check_writes(id, command, argv)?;
        let session = &self.sessions[id];
        if session.protocol() == Protocol::Resp2
            && session.is_subscriber()
            && !FOR_SUBSCRIBERS.contains(&command.name)
        {
            return Err(format!(
                "ERR Can't execute '{}': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context",
                command.name
            )
            .into());
        }
        self.check_availability(command, argv)?;
        if self.scripts.is_busy() && !command.has(ALLOW_BUSY) {
            return Err(self.scripts.busy_error());
        }
        Ok(())
    }

    /// Makes the checks that apply only to calls from scripts.
    fn admit_call(
        &mut self,
        id: SessionId,
        command: &'static Command,
        argv: &[&[u8]],
        access: Access,
    ) -> Result<(), Error> {
        if command.has(NOSCRIPT) {
            return Err(Error::new(match self.config.version {
                version if version.is_valkey_since(Version::Valkey9_1) => {
                    "ERR This Valkey command is not allowed from script"
                }
                _ => "ERR This Redis command is not allowed from script",
            }));
        }
        self.authorize(id, command, argv, Source::Script)?;
        let looks_at_memory_first = self.config.version.is_valkey_since(Version::Valkey9_1);
        if access.read_only && looks_at_memory_first {
            self.check_memory_of_call(command, access)?;
        }
        if access.read_only && command.has(WRITE | MAY_REPLICATE) {
            return Err(Error::new("ERR Write commands are not allowed from read-only scripts."));
        }
        self.check_script_writes(command, access)?;
        if self.cluster.is_some() { self.redirect_call(id, command, argv, access.cross_slot) } else { Ok(()) }
    }
}

/// The fewest ms between two log lines about HTTP requests.
const HTTP_LOG_INTERVAL_MS: u64 = 60_000;

impl Node {
    /// Ends the connection of a client that speaks HTTP, without a reply. A browser sends what a web page asks for, and
    /// the body of such a request could hold commands.
    pub(super) fn end_http(&mut self, id: SessionId) {
        let now_ms = self.store.now.mono_ms();
        if self.http_logged_ms.is_none_or(|logged_ms| now_ms - logged_ms > HTTP_LOG_INTERVAL_MS) {
            self.http_logged_ms = Some(now_ms);
            tracing::warn!(
                "Possible SECURITY ATTACK detected. It looks like somebody is sending POST or Host: commands to Redis. \
                 This is likely due to an attacker attempting to use Cross Protocol Scripting to compromise your Redis \
                 instance. Connection from {} aborted.",
                self.sessions[id].addr
            );
        }
        self.kill_session(id);
    }
}

/// Returns whether the first word of a request is that of a line of HTTP, as Redis compares it: a C string in any case.
pub(super) fn is_http(argv: &[&[u8]]) -> bool {
    let name = argv.first().map_or(&b""[..], |name| error::c_text(name));
    name.eq_ignore_ascii_case(b"POST") || name.eq_ignore_ascii_case(b"Host:")
}

impl Node {
    /// Returns the error for a command or subcommand that does not exist.
    fn unknown(&self, argv: &[&[u8]], caller: Caller) -> Error {
        let version = self.config.version;
        let from_script = matches!(caller, Caller::Script(_));
        let tells_subcommand = !from_script || version.is_valkey_since(Version::Valkey9_1);
        if tells_subcommand && self.config.find_command(&argv[..argv.len().min(1)]).is_some() {
            return error::unknown_subcommand(argv);
        }
        match from_script {
            true if version.is_valkey() => Error::new("ERR Unknown command called from script"),
            true => Error::new("ERR Unknown Redis command called from script"),
            false => error::unknown_command(argv, version),
        }
    }
}
