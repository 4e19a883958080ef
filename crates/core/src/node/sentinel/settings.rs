//! What is configured for a sentinel: the `sentinel` lines of its file, SENTINEL MONITOR, SET and CONFIG.

use std::fmt;
use std::net::IpAddr;

use super::TIMES;
use crate::error::Error;
use crate::num;

pub const NO_SUCH_MASTER: Error = Error::new("ERR No such master with that name");

/// Why a line about a master is refused that no line before it names.
pub const NO_SUCH_MASTER_LINE: &str = "No such master with specified name.";

/// Where a process listens.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Address {
    pub host: String,
    pub port: u16,
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.host, self.port)
    }
}

/// The settings of a sentinel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SentinelSettings {
    pub id: Option<String>,
    pub epoch: u64,
    pub globals: Globals,
    /// Whether clients may change which scripts are run.
    pub allows_scripts: bool,
    pub masters: Vec<MasterSettings>,
}

/// The settings that SENTINEL CONFIG shows and changes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Globals {
    pub resolve_hostnames: bool,
    pub announce_hostnames: bool,
    pub announce_ip: String,
    pub announce_port: u16,
    pub user: String,
    pub pass: String,
}

/// The settings of a master.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MasterSettings {
    pub name: String,
    pub address: Address,
    pub quorum: u32,
    pub down_after_ms: u64,
    pub failover_timeout_ms: u64,
    pub parallel_syncs: u32,
    pub auth_user: Option<String>,
    pub auth_pass: Option<String>,
    /// Scripts are not run.
    pub notification_script: Option<String>,
    pub client_reconfig_script: Option<String>,
    pub reboot_down_after_ms: u64,
    pub renames: Vec<(String, String)>,
    pub config_epoch: u64,
}

/// Why a setting is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// There is no such option, or it needs more words.
    Unknown,
    /// The value is none for the option.
    Value,
    /// Clients may not change scripts.
    Scripts,
}

impl MasterSettings {
    /// Checks what SENTINEL MONITOR and a line `sentinel monitor` say.
    ///
    /// # Errors
    /// Fails with the text of SENTINEL MONITOR.
    pub fn new(
        name: &str,
        host: &str,
        port: &str,
        quorum: &str,
        globals: &Globals,
    ) -> Result<Self, &'static str> {
        let quorum = num::parse_i64(quorum.as_bytes()).ok_or("Invalid quorum")?;
        let port = num::parse_i64(port.as_bytes()).ok_or("Invalid port")?;
        if quorum <= 0 {
            return Err("Quorum must be 1 or greater.");
        }
        let port = u16::try_from(port).map_err(|_| "Invalid port number")?;
        if host.parse::<IpAddr>().is_err() && !globals.resolve_hostnames {
            return Err("Invalid IP address or hostname specified");
        }
        let time_of = |name: &str| TIMES.iter().find(|(known, _)| *known == name).map_or(0, |(_, ms)| *ms);
        Ok(MasterSettings {
            name: name.to_owned(),
            address: Address { host: globals.shown(host), port },
            quorum: u32::try_from(quorum).unwrap_or(u32::MAX),
            down_after_ms: time_of("DEFAULT-DOWN-AFTER"),
            failover_timeout_ms: time_of("DEFAULT-FAILOVER-TIMEOUT"),
            parallel_syncs: 1,
            auth_user: None,
            auth_pass: None,
            notification_script: None,
            client_reconfig_script: None,
            reboot_down_after_ms: 0,
            renames: Vec::new(),
            config_epoch: 0,
        })
    }

    fn lines(&self) -> Vec<Vec<String>> {
        let Address { host, port } = &self.address;
        let line = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<String>>();
        let mut lines =
            vec![line(&["monitor", &self.name, host, &port.to_string(), &self.quorum.to_string()])];
        for (name, number) in [
            ("down-after-milliseconds", self.down_after_ms),
            ("failover-timeout", self.failover_timeout_ms),
            ("parallel-syncs", self.parallel_syncs.into()),
            ("master-reboot-down-after-period", self.reboot_down_after_ms),
            ("config-epoch", self.config_epoch),
        ] {
            lines.push(line(&[name, &self.name, &number.to_string()]));
        }
        let scripts = [
            ("notification-script", &self.notification_script),
            ("client-reconfig-script", &self.client_reconfig_script),
        ];
        for (name, script) in scripts {
            lines.extend(script.iter().map(|script| line(&[name, &self.name, script])));
        }
        lines.extend(self.renames.iter().map(|(from, to)| line(&["rename-command", &self.name, from, to])));
        lines
    }

    /// Sets an option from the words that begin with it. Returns how many words that took.
    ///
    /// # Errors
    /// Fails if there is no such option, or its value is refused.
    pub fn set(&mut self, words: &[&str], allows_scripts: bool) -> Result<usize, (Refusal, usize)> {
        let [option, values @ ..] = words else { return Err((Refusal::Unknown, 0)) };
        let [value, ..] = values else { return Err((Refusal::Unknown, 1)) };
        let refused = (Refusal::Value, 1);
        let positive = |max: u64| {
            let value = value.parse::<u64>().ok();
            value.filter(|number| (1..=max).contains(number)).ok_or(refused)
        };
        let optional = |value: &str| Some(value.to_owned()).filter(|value| !value.is_empty());
        let max_ms = i64::MAX as u64;
        match option.to_ascii_lowercase().as_str() {
            "down-after-milliseconds" => self.down_after_ms = positive(max_ms)?,
            "failover-timeout" => self.failover_timeout_ms = positive(max_ms)?,
            "parallel-syncs" => self.parallel_syncs = positive(i32::MAX as u64)? as u32,
            "quorum" => self.quorum = positive(i32::MAX as u64)? as u32,
            "auth-pass" => self.auth_pass = optional(value),
            "auth-user" => self.auth_user = optional(value),
            "master-reboot-down-after-period" => {
                self.reboot_down_after_ms = value.parse().map_err(|_| refused)?;
            }
            "notification-script" | "client-reconfig-script" if !allows_scripts => {
                return Err((Refusal::Scripts, 1));
            }
            "notification-script" => self.notification_script = optional(value),
            "client-reconfig-script" => self.client_reconfig_script = optional(value),
            "rename-command" => {
                let [from, to, ..] = values else { return Err((Refusal::Unknown, 2)) };
                if from.is_empty() || to.is_empty() {
                    return Err((Refusal::Value, if from.is_empty() { 1 } else { 2 }));
                }
                self.renames.retain(|(known, _)| !known.eq_ignore_ascii_case(from));
                if !from.eq_ignore_ascii_case(to) {
                    self.renames.push(((*from).to_owned(), (*to).to_owned()));
                }
                return Ok(3);
            }
            _ => return Err((Refusal::Unknown, 1)),
        }
        Ok(2)
    }
}

impl Globals {
    /// The names, in the order of SENTINEL CONFIG GET.
    pub const NAMES: [&'static str; 6] = [
        "resolve-hostnames",
        "announce-hostnames",
        "announce-ip",
        "announce-port",
        "sentinel-user",
        "sentinel-pass",
    ];

    /// Returns a value as text.
    pub fn get(&self, name: &str) -> String {
        let flag = |on: bool| if on { "yes" } else { "no" }.to_owned();
        match name {
            "resolve-hostnames" => flag(self.resolve_hostnames),
            "announce-hostnames" => flag(self.announce_hostnames),
            "announce-ip" => self.announce_ip.clone(),
            "announce-port" => self.announce_port.to_string(),
            "sentinel-user" => self.user.clone(),
            _ => self.pass.clone(),
        }
    }

    /// Sets a value.
    ///
    /// # Errors
    /// Fails if there is no such name, or its value is refused.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), Refusal> {
        let flag = || match value.to_ascii_lowercase().as_str() {
            "yes" => Ok(true),
            "no" => Ok(false),
            _ => Err(Refusal::Value),
        };
        match name.to_ascii_lowercase().as_str() {
            "resolve-hostnames" => self.resolve_hostnames = flag()?,
            "announce-hostnames" => self.announce_hostnames = flag()?,
            "announce-ip" => self.announce_ip = value.to_owned(),
            "announce-port" => self.announce_port = value.parse().map_err(|_| Refusal::Value)?,
            "sentinel-user" => self.user = value.to_owned(),
            "sentinel-pass" => self.pass = value.to_owned(),
            _ => return Err(Refusal::Unknown),
        }
        Ok(())
    }

    /// Returns a host as it is shown: this machine's own name as an address, unless names are announced. Other names are not
    /// looked up.
    fn shown(&self, host: &str) -> String {
        match host.eq_ignore_ascii_case("localhost") && !self.announce_hostnames {
            true => "127.0.0.1".to_owned(),
            false => host.to_owned(),
        }
    }
}

impl SentinelSettings {
    /// Applies the words of a line of the configuration after `sentinel`.
    ///
    /// # Errors
    /// Fails with the text that redis-sentinel prints.
    pub fn read_line(&mut self, words: &[String]) -> Result<(), String> {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let unrecognized = || "Unrecognized sentinel configuration statement.".to_owned();
        let [statement, rest @ ..] = &words[..] else { return Err(unrecognized()) };
        let statement = statement.to_ascii_lowercase();
        match (statement.as_str(), rest) {
            ("monitor", [name, host, port, quorum]) => {
                let globals = &self.globals;
                let master =
                    MasterSettings::new(name, host, port, quorum, globals).map_err(|why| match why {
                        "Invalid IP address or hostname specified" => {
                            "Can't resolve instance hostname.".to_owned()
                        }
                        "Invalid port" | "Invalid port number" => "Invalid port number.".to_owned(),
                        "Invalid quorum" => "Quorum must be 1 or greater.".to_owned(),
                        why => why.to_owned(),
                    })?;
                if self.masters.iter().any(|known| known.name == master.name) {
                    return Err("Duplicate master name.".to_owned());
                }
                self.masters.push(master);
            }
            ("myid", [id]) if id.len() == 40 => self.id = Some((*id).to_owned()),
            ("myid", [_]) => return Err("Malformed Sentinel id in myid option.".to_owned()),
            ("current-epoch", [epoch]) => self.epoch = epoch.parse().unwrap_or(0),
            ("deny-scripts-reconfig", [value]) => {
                self.allows_scripts = match *value {
                    "yes" => false,
                    "no" => true,
                    _ => {
                        return Err(
                            "Please specify yes or no for the deny-scripts-reconfig options.".to_owned()
                        );
                    }
                };
            }
            ("config-epoch", [name, epoch]) => {
                self.named(name)?.config_epoch = epoch.parse().unwrap_or(0);
            }
            // What an earlier run has found is found again.
            ("leader-epoch", [name, _])
            | ("known-replica" | "known-slave", [name, _, _])
            | ("known-sentinel", [name, _, _] | [name, _, _, _]) => {
                self.named(name)?;
            }
            (name, [value]) if Globals::NAMES.contains(&name) => {
                self.globals.set(name, value).map_err(|_| match name {
                    "announce-port" => "Invalid port number.".to_owned(),
                    _ => format!("Please specify yes or no for the {name} option."),
                })?;
            }
            (option, [name, values @ ..]) if MASTER_OPTIONS.contains(&option) && !values.is_empty() => {
                let words: Vec<&str> = std::iter::once(option).chain(values.iter().copied()).collect();
                let taken = self.named(name)?.set(&words, true).map_err(|_| match option {
                    "parallel-syncs" | "rename-command" => unrecognized(),
                    "down-after-milliseconds" | "failover-timeout" => {
                        "negative or zero time parameter.".to_owned()
                    }
                    _ => "negative time parameter.".to_owned(),
                })?;
                if taken != words.len() {
                    return Err(unrecognized());
                }
            }
            _ => return Err(unrecognized()),
        }
        Ok(())
    }

    /// Returns lines that lead to these settings, without passwords, which decide nothing here.
    pub fn lines(&self) -> Vec<Vec<String>> {
        let own = [("myid", self.id.clone()), ("current-epoch", Some(self.epoch.to_string()))];
        let own = own.into_iter().filter_map(|(name, value)| Some(vec![name.to_owned(), value?]));
        let scripts = if self.allows_scripts { "no" } else { "yes" };
        let scripts = vec!["deny-scripts-reconfig".to_owned(), scripts.to_owned()];
        let globals = Globals::NAMES.iter().filter(|name| **name != "sentinel-pass");
        let globals = globals.map(|name| vec![(*name).to_owned(), self.globals.get(name)]);
        let masters = self.masters.iter().flat_map(MasterSettings::lines);
        own.chain([scripts]).chain(globals).chain(masters).collect()
    }

    fn named(&mut self, name: &str) -> Result<&mut MasterSettings, String> {
        let found = self.masters.iter_mut().find(|master| master.name == name);
        found.ok_or_else(|| NO_SUCH_MASTER_LINE.to_owned())
    }
}

/// The options of a master that a line of the configuration may set.
const MASTER_OPTIONS: [&str; 9] = [
    "down-after-milliseconds",
    "failover-timeout",
    "parallel-syncs",
    "notification-script",
    "client-reconfig-script",
    "auth-pass",
    "auth-user",
    "rename-command",
    "master-reboot-down-after-period",
];
