//! The roles of the scripts in a jar: by class and method first, by text second.
//!
//! A script keeps its role however its text changes, as long as it stays where it is. Where both are known and differ, the
//! class and the method decide, and the difference is reported.

use std::collections::BTreeMap;

use super::catalogue::{OBJECTS, home, roles_at};
use super::jar::{JarScript, is_lock_class};
use super::role::{Role, role};

/// What a script in a jar is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// A lock script, by its class and method. `text`: the other role that its text alone would have, if it has one.
    Site { role: Role, text: Option<Role> },
    /// A lock script, by its text alone.
    Text(Role),
    /// A script of a lock's class that fits no role.
    Unknown,
    /// Not an operation of a lock.
    Other,
}

impl Reading {
    /// Returns the role.
    pub fn role(self) -> Option<Role> {
        match self {
            Reading::Site { role, .. } | Reading::Text(role) => Some(role),
            Reading::Unknown | Reading::Other => None,
        }
    }
}

/// Returns what each script of a jar is.
pub fn read(scripts: &[JarScript]) -> Vec<Reading> {
    let texts: Vec<Option<Role>> = scripts
        .iter()
        .map(|script| role(script.text.as_bytes()).map(|role| role.of_class(&script.class)))
        .collect();
    let mut readings = vec![Reading::Other; scripts.len()];
    let mut sites: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (at, script) in scripts.iter().enumerate() {
        sites.entry(script.site()).or_default().push(at);
    }
    for (site, members) in sites {
        let known = roles_at(&site);
        let by_text: Vec<Option<Role>> = members.iter().map(|at| texts[*at]).collect();
        let roles = by_site(known.unwrap_or_default(), &by_text);
        for ((at, role), text) in members.into_iter().zip(roles).zip(by_text) {
            readings[at] = match (role, known) {
                (Some(role), _) => Reading::Site { role, text: text.filter(|text| *text != role) },
                (None, Some([])) => Reading::Other,
                (None, Some(_)) => Reading::Unknown,
                (None, None) => elsewhere(&scripts[at].class, text),
            };
        }
    }
    readings
}

/// Returns the roles of the scripts at a site with the roles `known`. If the texts tell them apart, their order does not
/// matter.
fn by_site(known: &[Role], by_text: &[Option<Role>]) -> Vec<Option<Role>> {
    let is_one = |(at, role): (usize, &Option<Role>)| {
        role.is_some_and(|role| known.contains(&role)) && !by_text[..at].contains(role)
    };
    match by_text.iter().enumerate().all(is_one) {
        true => by_text.to_vec(),
        false => (0..by_text.len()).map(|at| known.get(at).copied()).collect(),
    }
}

/// Reads a script at a site that is not known. In the class of another object, its text does not count.
fn elsewhere(class: &str, text: Option<Role>) -> Reading {
    let is_home =
        |role: Role| home(role).is_some_and(|object| object.sites.iter().any(|(site, _)| is_in(site, class)));
    let is_known = OBJECTS.iter().flat_map(|object| object.sites).any(|(site, _)| is_in(site, class));
    match text {
        Some(role) if is_home(role) || !is_known => Reading::Text(role),
        _ if is_lock_class(class) => Reading::Unknown,
        _ => Reading::Other,
    }
}

/// Returns whether a site is in a class.
pub fn is_in(site: &str, class: &str) -> bool {
    site.rsplit_once('.').is_some_and(|(of, _)| of == class)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{fair, rlock, semaphore};

    fn script(site: &str, index: usize, text: &str) -> JarScript {
        let (class, method) = site.rsplit_once('.').unwrap();
        JarScript {
            class: class.to_owned(),
            method: method.to_owned(),
            index,
            text: text.to_owned(),
            call: None,
            uses: Vec::new(),
        }
    }

    const DEL: &str = "if (redis.call('del', KEYS[1]) == 1) then return 1 else return 0 end";
    const RENEW: &str = "if (redis.call('hexists', KEYS[1], ARGV[2]) == 1) then \
        redis.call('pexpire', KEYS[1], ARGV[1]); return 1; end; return 0;";

    #[test]
    fn class_and_method_go_before_the_text() {
        let read = |site: &str, text: &str| super::read(&[script(site, 0, text)])[0];
        let (role, spin) = (rlock::roles::FORCE_UNLOCK, rlock::roles::SPIN_FORCE_UNLOCK);
        assert_eq!(read("RedissonLock.forceUnlockAsync", DEL), Reading::Site { role, text: Some(spin) });
        assert_eq!(
            read("RedissonLock.forceUnlockAsync", "redis.call('x')"),
            Reading::Site { role, text: None }
        );
        assert_eq!(read("RedissonSpinLock.forceUnlockAsync", DEL), Reading::Site { role: spin, text: None });
        // A lambda, and an anonymous class.
        let role = rlock::roles::RENEW;
        assert_eq!(read("RedissonLock$7.run", RENEW), Reading::Site { role, text: None });
        assert_eq!(
            read("RedissonLock.lambda$renewExpirationAsync$3", RENEW),
            Reading::Site { role, text: None }
        );
    }

    #[test]
    fn at_an_unknown_site_the_text_counts_unless_the_class_is_of_another_object() {
        let read = |site: &str, text: &str| super::read(&[script(site, 0, text)])[0];
        assert_eq!(read("RedissonLock.renamed", RENEW), Reading::Text(rlock::roles::RENEW));
        assert_eq!(read("RedissonLock.renamed", DEL), Reading::Unknown);
        assert_eq!(read("RedissonNewLock.lock", "redis.call('x')"), Reading::Unknown);
        assert_eq!(read("com.acme.MyRenewal.run", RENEW), Reading::Text(rlock::roles::RENEW));
        assert_eq!(read("RedissonMap.get", "redis.call('hget', KEYS[1])"), Reading::Other);
        assert_eq!(read("RedissonFairLock.expireAsync", "redis.call('pexpire')"), Reading::Other);
    }

    #[test]
    fn several_scripts_of_a_method_are_told_apart_by_text_or_else_by_order() {
        let set = "local value = redis.call('get', KEYS[1]); if (value == false) then \
            redis.call('set', KEYS[1], ARGV[1]); redis.call('publish', KEYS[2], ARGV[1]); return 1;end;return 0;";
        let set_for = set.replace("ARGV[1]);", "ARGV[1], 'px', ARGV[3]);");
        let roles = |first: &str, second: &str| -> Vec<Option<Role>> {
            let site = "RedissonSemaphore.trySetPermitsAsync";
            let scripts = [script(site, 0, first), script(site, 1, second)];
            super::read(&scripts).into_iter().map(Reading::role).collect()
        };
        use semaphore::roles::{TRY_SET, TRY_SET_FOR};
        assert_eq!(roles(set, &set_for), [Some(TRY_SET), Some(TRY_SET_FOR)]);
        assert_eq!(roles(&set_for, set), [Some(TRY_SET_FOR), Some(TRY_SET)]);
        // The second lost what distinguishes it.
        assert_eq!(roles(set, set), [Some(TRY_SET), Some(TRY_SET_FOR)]);
        assert_eq!(roles("redis.call('x')", set), [Some(TRY_SET), Some(TRY_SET_FOR)]);
        let site = "RedissonFairLock.tryLockInnerAsync";
        let three = [0, 1, 2].map(|index| script(site, index, "redis.call('x')"));
        let read = super::read(&three);
        assert_eq!(read[1].role(), Some(fair::roles::ACQUIRE));
        assert_eq!(read[2], Reading::Unknown);
    }
}
