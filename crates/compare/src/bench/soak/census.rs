//! What a server holds.

use super::super::server::Server;
use crate::diff::link::Link;

/// By how much resident memory may grow: a tenth, and at least this many bytes. Allocators keep pages of which a little is in use.
const MEMORY_SLACK: u64 = 8 << 20;

/// The fields of INFO that are counted, and the names that they are shown with.
const HELD: &[(&str, &str)] = &[
    ("connected_clients:", "sessions"),
    ("blocked_clients:", "blocked clients"),
    ("tracking_clients:", "tracking clients"),
    ("pubsub_channels:", "channels"),
    ("pubsub_patterns:", "patterns"),
];

/// The fields of INFO that count what has been done.
const DONE: &[(&str, &str)] = &[
    ("total_connections_received:", "connections"),
    ("total_commands_processed:", "commands"),
    ("expired_keys:", "expired keys"),
    ("client_output_buffer_limit_disconnections:", "slow readers that were disconnected"),
    ("total_error_replies:", "error replies"),
];

pub struct Census {
    memory: u64,
    /// Names and numbers that have to be exactly as before.
    exact: Vec<(&'static str, u64)>,
    done: Vec<(&'static str, u64)>,
}

/// One number before and after a soak.
pub struct Row {
    pub what: &'static str,
    pub before: u64,
    pub after: u64,
    allowed: u64,
}

impl Row {
    pub fn is_fine(&self) -> bool {
        self.after <= self.allowed
    }
}

impl Census {
    /// Counts what a server holds.
    ///
    /// # Errors
    /// The server does not answer, or is no redlatch of this machine.
    pub fn take(server: &Server, link: &mut Link) -> Result<Census, String> {
        let memory = server.resident_bytes().ok_or("the server is no process of this machine")?;
        let files = server.open_files().ok_or("the server is no process of this user")?;
        let mut call = |argv: &[&str]| {
            let reply = link.call(argv).ok_or_else(|| format!("{} stopped answering", server.addr))?;
            Ok::<_, String>(String::from_utf8_lossy(&reply).into_owned())
        };
        let info = call(&["INFO"])?;
        let timers = call(&["SIM.CLOCK", "TIMERS", "COUNT", "10000000"])?;
        let number = |reply: &str| {
            let line = reply.lines().next().and_then(|line| line.get(1..));
            line.and_then(|text| text.parse().ok()).ok_or_else(|| format!("unexpected reply: {reply:.100}"))
        };
        let mut exact = vec![
            ("file descriptors", files),
            ("timers", number(&timers)?),
            ("keys", number(&call(&["DBSIZE"])?)?),
        ];
        let field = |name: &str| {
            let line = info.lines().find_map(|line| line.strip_prefix(name));
            line.and_then(|text| text.parse().ok()).ok_or_else(|| format!("INFO has no {name}"))
        };
        let fields = |of: &[(&'static str, &'static str)]| {
            of.iter().map(|(name, shown)| Ok((*shown, field(name)?))).collect::<Result<Vec<_>, String>>()
        };
        exact.extend(fields(HELD)?);
        Ok(Census { memory, exact, done: fields(DONE)? })
    }

    /// Returns whether no session but that of the census is left, and no timer.
    pub fn is_idle(&self) -> bool {
        self.exact.iter().all(|(what, number)| match *what {
            "sessions" => *number == 1,
            "timers" | "keys" => *number == 0,
            _ => true,
        })
    }

    pub fn holds_as_much_as(&self, other: &Census) -> bool {
        self.exact == other.exact
    }

    /// Returns what was done between two censuses.
    pub fn done_since(&self, before: &Census) -> impl Iterator<Item = (&'static str, u64)> {
        self.done.iter().zip(&before.done).map(|((what, after), (_, before))| (*what, after - before))
    }

    /// Returns the numbers side by side.
    pub fn compared_with(&self, before: &Census) -> Vec<Row> {
        let memory = Row {
            what: "resident memory in bytes",
            before: before.memory,
            after: self.memory,
            allowed: before.memory + (before.memory / 10).max(MEMORY_SLACK),
        };
        let exact = self.exact.iter().zip(&before.exact).map(|(&(what, after), &(_, before))| Row {
            what,
            before,
            after,
            allowed: before,
        });
        std::iter::once(memory).chain(exact).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_session_more_is_too_much_and_a_page_of_memory_is_not() {
        let census =
            |memory, sessions| Census { memory, exact: vec![("sessions", sessions)], done: Vec::new() };
        let fine = |before: &Census, after: &Census| after.compared_with(before).iter().all(Row::is_fine);
        assert!(fine(&census(1 << 20, 1), &census((1 << 20) + 4096, 1)));
        assert!(!fine(&census(1 << 20, 1), &census(1 << 20, 2)));
        assert!(!fine(&census(1 << 20, 1), &census(10 << 20, 1)));
        assert!(!census(0, 2).is_idle() && census(0, 1).is_idle());
    }
}
