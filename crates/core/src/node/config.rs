//! The configuration: the parameters that CONFIG GET shows and CONFIG SET changes.
//!
//! Every parameter of Redis is a row of `params`, with its type and default, so that clients and tools find what they
//! expect. Parameters that change the behaviour of Redlatch are also fields here, kept in step with their rows.

mod params;
mod rewrite;

use std::borrow::Cow;

use super::eviction;
use crate::acl::{Context, User};
use crate::commands::command::Command;
use crate::commands::table;
use crate::error::Error;
use crate::glob;
use crate::node::cluster::ClusterSettings;
use crate::node::notify::Class;
use crate::node::sentinel::SentinelSettings;
use crate::node::session::Session;
use crate::node::slowlog::LargeLimit;
use crate::num;
use crate::store::Limits;
use crate::store::usage::Decay;
use crate::version::Version;
use crate::wire::Args;
use crate::wire::request::split_words;

pub use params::{PARAMS, Param, ParamKind, parse_memory};

/// The reason why a parameter cannot be set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConfigError {
    /// No parameter has this name.
    UnknownParameter,
    /// The value is refused. The text is Redis's reason.
    Refused(Cow<'static, str>),
}

impl std::fmt::Display for ConfigError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            ConfigError::UnknownParameter => "Bad directive or wrong number of arguments",
            ConfigError::Refused(why) => why,
        })
    }
}

impl std::error::Error for ConfigError {}

impl From<&'static str> for ConfigError {
    fn from(why: &'static str) -> ConfigError {
        ConfigError::Refused(Cow::Borrowed(why))
    }
}

impl From<String> for ConfigError {
    fn from(why: String) -> ConfigError {
        ConfigError::Refused(Cow::Owned(why))
    }
}

impl From<ConfigError> for String {
    fn from(error: ConfigError) -> String {
        error.to_string()
    }
}

/// The settings of a node.
#[derive(Clone, Debug)]
pub struct Config {
    pub version: Version,
    /// The process id that INFO reports; 0 in a process that runs no server.
    pub process_id: u32,
    /// The file of the configuration, as the driver found it. CONFIG REWRITE asks the driver to write it.
    pub config_file: Option<String>,
    /// Whether a driver reads and writes `aclfile` and connects to other servers. Without it ACL SAVE and ACL LOAD keep the users
    /// in memory, and MIGRATE reaches no server outside of the world.
    pub has_driver: bool,
    /// The values as text, in the same order as [`PARAMS`].
    values: Vec<String>,
    pub databases: usize,
    pub maxclients: usize,
    /// The largest `maxclients` for which the process has file descriptors; its driver tells.
    pub most_clients: usize,
    pub requirepass: Vec<u8>,
    pub protected_mode: bool,
    pub notify_keyspace_events: Class,
    /// In bytes.
    pub proto_max_bulk_len: u64,
    pub query_buffer_limit: u64,
    pub busy_reply_threshold_ms: u64,
    /// The number of replicas without which writes are refused; 0 if that is not configured.
    pub min_replicas_to_write: usize,
    /// The most keys that are remembered for CLIENT TRACKING.
    pub tracking_table_max_keys: usize,
    /// A negative value turns the log off.
    pub slowlog_log_slower_than_us: i64,
    pub slowlog_max_len: usize,
    /// Valkey's logs of large requests and of large replies.
    pub large: [LargeLimit; 2],
    /// Whether some log may take commands that take no time.
    pub logs_commands: bool,
    pub eviction: eviction::Limits,
    pub cluster: ClusterSettings,
    /// The users of `user` lines and of the file of users: the name of each, and its rules.
    pub users: Vec<Vec<Vec<u8>>>,
    /// Whom the node watches, if it is a sentinel.
    pub sentinel: Option<Box<SentinelSettings>>,
    /// The commands of `rename-command`: their names in the table, and the names that clients use. An empty one is none.
    renames: Vec<(&'static str, Vec<u8>)>,
    /// The bytes of unread output at which a client is disconnected, 0 for no limit: for normal clients, for replicas
    /// (MONITOR clients here), and for subscribers.
    output_limits: [u64; 3],
}

impl Config {
    /// Creates the defaults of a release.
    pub fn new(version: Version) -> Config {
        let mut config = Config {
            version,
            process_id: 0,
            config_file: None,
            has_driver: false,
            values: PARAMS.iter().map(|param| param.default_in(version).to_owned()).collect(),
            databases: 16,
            maxclients: 0,
            most_clients: usize::MAX,
            requirepass: Vec::new(),
            protected_mode: false,
            notify_keyspace_events: Class(0),
            proto_max_bulk_len: 0,
            query_buffer_limit: 0,
            busy_reply_threshold_ms: 0,
            min_replicas_to_write: 0,
            tracking_table_max_keys: 0,
            slowlog_log_slower_than_us: 0,
            slowlog_max_len: 0,
            large: [LargeLimit { threshold: -1, max_len: 0 }; 2],
            logs_commands: false,
            eviction: eviction::Limits {
                maxmemory: 0,
                policy: eviction::Policy::NO_EVICTION,
                samples: 0,
                watches_changes: false,
                decay: Decay { log_factor: 0, minutes: 0 },
                replica_ignores: false,
            },
            cluster: ClusterSettings::default(),
            users: Vec::new(),
            sentinel: None,
            renames: Vec::new(),
            output_limits: [0; 3],
        };
        config.refresh();
        config
    }

    /// Returns the value of a parameter as CONFIG GET prints it.
    pub fn get(&self, name: &str) -> Option<&str> {
        let mut at = find(name.as_bytes(), self.version)?;
        if let ParamKind::Alias(other) = PARAMS[at].kind {
            at = find(other.as_bytes(), self.version)?;
        }
        Some(&self.values[at])
    }

    /// Returns the names and values of the parameters that match a pattern.
    pub fn matching(&self, pattern: &[u8]) -> impl Iterator<Item = (&'static str, &str)> {
        PARAMS
            .iter()
            .filter(move |param| {
                let name = param.name.as_bytes();
                let is_found = if param.is_hidden_in(self.version) {
                    pattern.eq_ignore_ascii_case(name)
                } else {
                    glob::matches(pattern, name, true)
                };
                param.exists_in(self.version) && is_found
            })
            .filter_map(|param| Some((param.name, self.get(param.name)?)))
    }

    /// Sets parameters, as CONFIG SET does: all of them or, on an error, none.
    ///
    /// # Errors
    ///
    /// Fails if a parameter is unknown or fixed, or if a value is refused.
    pub fn set(&mut self, pairs: &[(&[u8], &[u8])]) -> Result<(), Error> {
        let mut values = self.values.clone();
        // The text that is printed does not name every class.
        let mut classes = self.notify_keyspace_events;
        let mut seen: Vec<usize> = Vec::new();
        for (name, value) in pairs {
            let at = find(name, self.version).ok_or_else(|| unknown_option(name))?;
            let param = &PARAMS[at];
            if seen.contains(&at) {
                return Err(failed(param.name, &"duplicate parameter"));
            }
            seen.push(at);
            let target = match param.kind {
                ParamKind::Alias(other) => find(other.as_bytes(), self.version).unwrap_or(at),
                _ => at,
            };
            classes = PARAMS[target].keyspace_events(value).unwrap_or(classes);
            values[target] = PARAMS[target]
                .parse(value, &values[target], self.version)
                .map_err(|why| failed(param.name, &why))?;
            self.check_clients(param.name, &values[target])?;
        }
        self.values = values;
        self.notify_keyspace_events = classes;
        self.refresh();
        Ok(())
    }

    /// Fails if a new `maxclients` needs more file descriptors than the process may open.
    fn check_clients(&self, name: &str, value: &str) -> Result<(), Error> {
        let most = self.most_clients;
        if name != "maxclients" || value.parse().is_ok_and(|clients: usize| clients <= most) {
            return Ok(());
        }
        let why = "The operating system is not able to handle the specified number of clients, try with";
        Err(failed("maxclients", &format_args!("{why} {most}")))
    }

    /// Sets a parameter at start-up, when even fixed parameters may be set.
    ///
    /// # Errors
    /// If the parameter does not exist, or the value is refused.
    pub fn set_at_start(&mut self, name: &str, value: &[u8]) -> Result<(), ConfigError> {
        let at = find(name.as_bytes(), self.version).ok_or(ConfigError::UnknownParameter)?;
        let at = match PARAMS[at].kind {
            ParamKind::Alias(other) => find(other.as_bytes(), self.version).unwrap_or(at),
            _ => at,
        };
        if let Some(classes) = PARAMS[at].keyspace_events(value) {
            self.notify_keyspace_events = classes;
        }
        self.values[at] = match PARAMS[at].kind {
            ParamKind::Fixed | ParamKind::Protected => String::from_utf8_lossy(value).into_owned(),
            ParamKind::FixedBool => params::yes_or_no(&String::from_utf8_lossy(value))?,
            ParamKind::FixedChoice(words) => params::choice(words, &String::from_utf8_lossy(value))?,
            _ => PARAMS[at].parse(value, &self.values[at], self.version)?,
        };
        self.refresh();
        if !(1..=1024).contains(&self.databases) {
            return Err("argument must be between 1 and 1024 inclusive".into());
        }
        Ok(())
    }

    /// Returns whether a line of redis.conf may give a parameter several values.
    pub fn takes_several_values(name: &str) -> bool {
        let named = PARAMS.iter().filter(|param| param.name.eq_ignore_ascii_case(name));
        named.into_iter().any(Param::takes_several_values)
    }

    /// Gives a command another name at start-up, or none.
    ///
    /// # Errors
    /// If there is no such command, or the new name is taken.
    pub fn rename_command(&mut self, from: &[u8], to: &[u8]) -> Result<(), ConfigError> {
        let command = self.find_command(&[from]).ok_or("No such command in rename-command")?;
        if !to.is_empty() && self.find_command(&[to]).is_some() {
            return Err("Target command name already exists".into());
        }
        self.renames.retain(|(name, _)| *name != command.name);
        self.renames.push((command.name, to.to_ascii_lowercase()));
        Ok(())
    }

    /// Returns the row for a request, as [`table::find`] does, by the names that `rename-command` gave.
    #[inline]
    pub fn find_command(&self, argv: &[&[u8]]) -> Option<&'static Command> {
        match self.renames.is_empty() && self.sentinel.is_none() {
            true => table::find(argv, self.version),
            false => self.find_renamed(argv),
        }
    }

    fn find_renamed(&self, argv: &[&[u8]]) -> Option<&'static Command> {
        let name = argv.first()?;
        match self.renames.iter().find(|(_, to)| !to.is_empty() && to.eq_ignore_ascii_case(name)) {
            Some((original, _)) => {
                let mut argv: Args = argv.iter().copied().collect();
                argv[0] = original.as_bytes();
                self.commands().find(&argv)
            }
            None if self.renames.iter().any(|(from, _)| from.as_bytes().eq_ignore_ascii_case(name)) => None,
            None => self.commands().find(argv),
        }
    }

    /// Returns the commands of the node.
    pub fn commands(&self) -> &'static table::Commands {
        table::commands(self.version, self.sentinel.is_some())
    }

    /// Returns whether a parameter changes what the server does. The ziplist names of earlier releases count as those that
    /// they stand for.
    pub fn has_effect(name: &str) -> bool {
        let named = PARAMS.iter().find(|param| param.name.eq_ignore_ascii_case(name));
        named.is_some_and(|param| match param.kind {
            ParamKind::Alias(other) => params::EFFECTIVE.contains(&other),
            _ => params::EFFECTIVE.contains(&param.name),
        })
    }

    /// Adds a user at start-up, given its name and rules.
    ///
    /// # Errors
    /// If the name or a rule is wrong, or the user is there already.
    pub fn add_user(&mut self, words: &[String]) -> Result<(), ConfigError> {
        let words: Vec<&[u8]> = words.iter().map(String::as_bytes).collect();
        let [name, rules @ ..] = &words[..] else { return Err("wrong number of arguments".into()) };
        if !User::is_valid_name(name) {
            return Err("Usernames can't contain spaces or null characters".into());
        }
        if self.users.iter().any(|user| user[0] == *name) {
            return Err("the user is there twice".into());
        }
        let context = Context::of(self);
        User::new(name, context)
            .with_rules(rules, context)
            .map_err(|why| String::from_utf8_lossy(&why.explain()).into_owned())?;
        self.users.push(words.iter().map(|word| word.to_vec()).collect());
        Ok(())
    }

    /// Parses a line of a configuration file: the name of a parameter in lower case, and its values. Returns `None` for a
    /// blank line or a comment.
    ///
    /// # Errors
    /// If a quote is not closed.
    pub fn parse_line(line: &[u8]) -> Result<Option<(String, Vec<String>)>, ConfigError> {
        let line = line.trim_ascii();
        if line.is_empty() || line.starts_with(b"#") {
            return Ok(None);
        }
        let words = split_words(line).ok_or("Unbalanced quotes in configuration line")?;
        let mut words = words.into_iter().map(|word| String::from_utf8_lossy(&word).into_owned());
        let name = words.next().unwrap_or_default().to_ascii_lowercase();
        Ok(Some((name, words.collect())))
    }

    /// Updates the fields from the texts.
    fn refresh(&mut self) {
        let int = |config: &Config, name: &str| {
            config.get(name).and_then(|text| num::parse_i64(text.as_bytes())).unwrap_or_default()
        };
        self.databases = int(self, "databases") as usize;
        self.maxclients = int(self, "maxclients") as usize;
        self.requirepass = self.get("requirepass").unwrap_or_default().as_bytes().to_vec();
        self.protected_mode = self.get("protected-mode") == Some("yes");
        self.proto_max_bulk_len = int(self, "proto-max-bulk-len") as u64;
        self.query_buffer_limit = int(self, "client-query-buffer-limit") as u64;
        self.busy_reply_threshold_ms = int(self, "busy-reply-threshold") as u64;
        let is_counted = int(self, "min-replicas-max-lag") > 0;
        self.min_replicas_to_write = if is_counted { int(self, "min-replicas-to-write") as usize } else { 0 };
        self.tracking_table_max_keys = match int(self, "tracking-table-max-keys") {
            0 => usize::MAX,
            most => most as usize,
        };
        let maxmemory = int(self, "maxmemory") as u64;
        let policy = eviction::Policy::parse(self.get("maxmemory-policy").unwrap_or_default());
        self.eviction = eviction::Limits {
            maxmemory,
            policy,
            watches_changes: maxmemory > 0 || policy.order == Some(eviction::Order::Lrm),
            samples: int(self, "maxmemory-samples") as usize,
            decay: Decay {
                log_factor: int(self, "lfu-log-factor") as u32,
                minutes: int(self, "lfu-decay-time") as u32,
            },
            replica_ignores: self.get("replica-ignore-maxmemory") == Some("yes"),
        };
        self.cluster = ClusterSettings::of(self);
        self.slowlog_log_slower_than_us = int(self, "slowlog-log-slower-than");
        self.slowlog_max_len = int(self, "slowlog-max-len") as usize;
        if self.version.is_valkey() {
            self.large = ["request", "reply"].map(|kind| LargeLimit {
                threshold: int(self, &format!("commandlog-{kind}-larger-than")),
                max_len: int(self, &format!("commandlog-large-{kind}-max-len")) as usize,
            });
        }
        self.logs_commands =
            self.slowlog_log_slower_than_us == 0 || self.large.iter().any(|limit| limit.threshold >= 0);
        let limits = self.get("client-output-buffer-limit").unwrap_or_default().to_owned();
        for (limit, (_, hard, _, _)) in self.output_limits.iter_mut().zip(params::output_limits(&limits)) {
            *limit = hard;
        }
    }

    /// Returns the configured thresholds between small and large encodings.
    pub fn limits(&self) -> Limits {
        let size = |name: &str, default: usize| {
            self.get(name).and_then(|text| text.parse::<usize>().ok()).unwrap_or(default)
        };
        let defaults = Limits::for_version(self.version);
        Limits {
            hash_max_listpack_entries: size("hash-max-listpack-entries", defaults.hash_max_listpack_entries),
            hash_max_listpack_value: size("hash-max-listpack-value", defaults.hash_max_listpack_value),
            set_max_intset_entries: size("set-max-intset-entries", defaults.set_max_intset_entries),
            set_max_listpack_entries: size("set-max-listpack-entries", defaults.set_max_listpack_entries),
            set_max_listpack_value: size("set-max-listpack-value", defaults.set_max_listpack_value),
            zset_max_listpack_entries: size("zset-max-listpack-entries", defaults.zset_max_listpack_entries),
            zset_max_listpack_value: size("zset-max-listpack-value", defaults.zset_max_listpack_value),
            hll_sparse_max_bytes: size("hll-sparse-max-bytes", defaults.hll_sparse_max_bytes),
            list_max_listpack_size: self
                .get("list-max-listpack-size")
                .and_then(|text| text.parse().ok())
                .unwrap_or(defaults.list_max_listpack_size),
            stream_node_max_bytes: size("stream-node-max-bytes", defaults.stream_node_max_bytes),
            stream_node_max_entries: size("stream-node-max-entries", 100) as u64,
            counts_uses: self.eviction.policy.counts_uses(),
            stream_idmp_duration: size("stream-idmp-duration", 100) as u64,
            stream_idmp_maxsize: size("stream-idmp-maxsize", 100) as u64,
            ..defaults
        }
    }

    /// Returns the bytes of unread output at which a client is disconnected, or 0 for no limit.
    pub fn output_limit(&self, session: &Session) -> u64 {
        let [normal, everything, subscriber] = self.output_limits;
        match session {
            _ if session.monitor => everything,
            _ if session.is_subscriber() => subscriber,
            _ => normal,
        }
    }
}

fn find(name: &[u8], version: Version) -> Option<usize> {
    PARAMS
        .iter()
        .position(|param| param.name.as_bytes().eq_ignore_ascii_case(name) && param.exists_in(version))
}

fn unknown_option(name: &[u8]) -> Error {
    let mut text = b"ERR Unknown option or number of arguments for CONFIG SET - '".to_vec();
    text.extend_from_slice(name);
    text.push(b'\'');
    Error::owned(text)
}

fn failed(name: &str, why: &dyn std::fmt::Display) -> Error {
    format!("ERR CONFIG SET failed (possibly related to argument '{name}') - {why}").into()
}
