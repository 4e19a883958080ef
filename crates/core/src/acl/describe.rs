//! Users as ACL LIST and ACL GETUSER print them.

use super::catalog::{self, CATEGORIES};
use super::selector::{Access, KeyPattern};
use super::{Context, Selector, User};
use crate::version::Version;

impl User {
    /// Returns the names of the user's flags.
    pub fn flags(&self) -> Vec<&'static str> {
        let mut flags = vec![if self.is_on { "on" } else { "off" }];
        if self.no_password {
            flags.push("nopass");
        }
        // Valkey 9 has dropped these flags.
        let version = self.root.version;
        if !version.is_valkey() || version < Version::Valkey9_0 {
            flags.extend(
                self.sanitize.map(|on| if on { "sanitize-payload" } else { "skip-sanitize-payload" }),
            );
        }
        flags
    }

    /// Returns the SHA-256 of the passwords, in hex.
    pub fn password_hashes(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        self.passwords.iter().map(|hash| hash.digits().as_slice())
    }

    pub fn root_selector(&self) -> &Selector {
        &self.root
    }

    pub fn further_selectors(&self) -> &[Selector] {
        &self.selectors
    }

    /// Returns the line of the user in ACL LIST.
    pub fn describe(&self) -> Vec<u8> {
        let mut line = [b"user ", self.name(), b" "].concat();
        for flag in self.flags() {
            line.extend_from_slice(flag.as_bytes());
            line.push(b' ');
        }
        for hash in self.password_hashes() {
            line.push(b'#');
            line.extend_from_slice(hash);
            line.push(b' ');
        }
        line.extend(self.root.describe());
        for selector in &self.selectors {
            line.extend_from_slice(b" (");
            line.extend(selector.describe());
            line.push(b')');
        }
        line
    }
}

impl Selector {
    fn describe(&self) -> Vec<u8> {
        let mut parts = Vec::new();
        let keys = self.keys();
        if !keys.is_empty() {
            parts.push(keys);
        }
        if !self.all_channels {
            parts.push(b"resetchannels".to_vec());
        }
        let channels = self.channels();
        if !channels.is_empty() {
            parts.push(channels);
        }
        parts.push(self.commands());
        parts.join(&b' ')
    }

    /// Returns the key patterns.
    pub fn keys(&self) -> Vec<u8> {
        if self.all_keys {
            return b"~*".to_vec();
        }
        let print = |KeyPattern { text, access }: &KeyPattern| {
            let prefix: &[u8] = match access {
                Access { read: true, write: true } => b"~",
                Access { write: true, .. } => b"%W~",
                _ => b"%R~",
            };
            [prefix, text].concat()
        };
        self.keys.iter().map(print).collect::<Vec<_>>().join(&b' ')
    }

    /// Returns the channel patterns.
    pub fn channels(&self) -> Vec<u8> {
        if self.all_channels {
            return b"&*".to_vec();
        }
        self.channels.iter().map(|name| [b"&", &**name].concat()).collect::<Vec<_>>().join(&b' ')
    }

    /// Returns the rules about commands. Since 7.2, Redis keeps them as they were given; before, it made up rules that
    /// have the same effect.
    pub fn commands(&self) -> Vec<u8> {
        let start: &[u8] = if self.future_commands { b"+@all" } else { b"-@all" };
        let rules = if self.version >= Version::V7_2 { self.rules.clone() } else { self.equivalent_rules() };
        let words = std::iter::once(start).chain(rules.iter().map(Vec::as_slice));
        words.collect::<Vec<_>>().join(&b' ')
    }

    /// Returns rules that lead from all or no commands to those of this selector: the categories that fit best, then single
    /// commands. This is how Redis 7.0 describes a selector.
    fn equivalent_rules(&self) -> Vec<Vec<u8>> {
        let adds = !self.future_commands;
        let sign = |allow: bool| if allow { b'+' } else { b'-' };
        let mut rules = Vec::new();
        // What the rules so far lead to, and the commands that they do not explain yet.
        let mut reached = Selector::new(Context { version: self.version, all_channels: false });
        reached.set_all_commands(!adds);
        let mut rest = self.clone();
        let mut applied = Vec::new();
        while let Some(best) = rest.best_category(adds, &applied) {
            reached.set_commands_of(best, adds);
            rest.set_commands_of(best, !adds);
            rules.push([&[sign(adds)], &b"@"[..], best.as_bytes()].concat());
            applied.push(best);
        }
        for (number, row) in catalog::all_rows(self.version).iter().enumerate() {
            let allow = self.allowed.contains(number);
            if allow != reached.allowed.contains(number) {
                reached.set_command(row, allow);
                rules.push([&[sign(allow)], row.name.as_bytes()].concat());
            }
            if !allow && let Some(words) = self.first_args.get(&number) {
                let rule = |word: &[u8]| [b"+", row.name.as_bytes(), b"|", word].concat();
                rules.extend(words.iter().map(|word| rule(word)));
            }
        }
        rules
    }

    /// Returns the category most of whose commands are allowed (forbidden unless `adds`), with the fewest exceptions.
    fn best_category(&self, adds: bool, applied: &[&str]) -> Option<&'static str> {
        let mut best = None;
        let (mut least_different, mut most_same) = (usize::MAX, 0);
        for category in CATEGORIES.into_iter().filter(|name| !applied.contains(name)) {
            let rows = catalog::all_rows(self.version).iter().enumerate();
            let in_category = rows.filter(|(_, row)| catalog::is_in(row, category));
            let (same, different): (Vec<_>, Vec<_>) =
                in_category.partition(|(number, _)| self.allowed.contains(*number) == adds);
            let (same, different) = (same.len(), different.len());
            let is_better = different < least_different || different == least_different && same > most_same;
            if same > different && is_better {
                (best, least_different, most_same) = (Some(category), different, same);
            }
        }
        best
    }
}
