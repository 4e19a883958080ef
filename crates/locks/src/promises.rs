//! What locks promise, and which checks hold them to it.
//!
//! [`OBJECTS`] are the kinds of locks that the [`history`](crate::history) and [`linearize`](crate::linearize) tell apart: those of
//! Redisson by their scripts, all others as [`KEY_LOCK`], by what is done to their key. [`LIBRARIES`] says which libraries have such locks.
//! `docs/locks/promises.md` shows both tables; a test compares it with them.

use crate::invariant::Invariant::{self, H1, H2, H3, H4};
use crate::linearize::locks::LockKind;

/// The object of locks that keep the token of their owner in a string.
pub const KEY_LOCK: &str = "set-nx";

/// What a kind of lock promises.
#[derive(Clone, Copy, Debug)]
pub struct Object {
    /// The name in reports and in exported histories.
    pub name: &'static str,
    /// The model of its linearizability.
    pub kind: LockKind,
    /// Whether several owners may hold it at once.
    pub is_shared: bool,
    /// Whether a release succeeds if nobody holds the lock.
    pub frees_what_is_free: bool,
    /// The invariants of the history that it is judged by.
    pub checks: &'static [Invariant],
}

const fn object(name: &'static str, kind: LockKind, checks: &'static [Invariant]) -> Object {
    Object { name, kind, is_shared: false, frees_what_is_free: false, checks }
}

/// The kinds of locks.
pub const OBJECTS: &[Object] = &[
    object("rlock", LockKind::Reentrant, &[H1, H2, H3, H4]),
    object("spin", LockKind::Reentrant, &[H1, H2, H3, H4]),
    Object { frees_what_is_free: true, ..object("fair", LockKind::Reentrant, &[H1, H2, H3, H4]) },
    object("fenced", LockKind::Fenced, &[H1, H2, H3, H4]),
    object("nonreentrant", LockKind::Mutex, &[H1, H2, H3]),
    Object { frees_what_is_free: true, ..object("fair.nonreentrant", LockKind::Mutex, &[H1, H2, H3]) },
    // A reader who releases is not told whether he still holds the lock, so holds are not counted.
    Object {
        is_shared: true,
        frees_what_is_free: true,
        ..object("rw.read", LockKind::ReadWrite, &[H1, H2, H3])
    },
    Object { frees_what_is_free: true, ..object("rw.write", LockKind::ReadWrite, &[H1, H2, H3]) },
    object(KEY_LOCK, LockKind::Mutex, &[H1, H2, H3]),
];

/// Returns what a kind of lock promises, or `None` if the history does not judge it.
pub fn object_named(name: &str) -> Option<&'static Object> {
    OBJECTS.iter().find(|object| object.name == name)
}

/// Returns whether a kind of lock is judged by an invariant of the history.
pub fn is_judged(object: &str, invariant: Invariant) -> bool {
    object_named(object).is_some_and(|object| object.checks.contains(&invariant))
}

/// What a library promises of one of its locks.
#[derive(Clone, Copy, Debug)]
pub struct Library {
    pub name: &'static str,
    /// The kinds of lock in reports.
    pub objects: &'static [&'static str],
    /// How long one owner excludes the others, and on how many nodes.
    pub exclusion: &'static str,
    pub fencing: bool,
    /// Whether an owner may acquire it again.
    pub reentrancy: &'static str,
    /// Whether a release compares the owner.
    pub release: &'static str,
    pub extension: &'static str,
}

/// What libraries promise. None promises more than a lease: an owner who is paused beyond it is not alone, unless what he writes to compares
/// fencing tokens. None keeps a lock through a failover that loses it.
pub const LIBRARIES: &[Library] = &[
    Library {
        name: "Redisson RLock, spin lock, fair lock",
        objects: &["rlock", "spin", "fair"],
        exclusion: "until the lease ends, or while the watchdog renews it",
        fencing: false,
        reentrancy: "yes, by client and thread",
        release: "compares; forceUnlock does not",
        extension: "by the watchdog, if no lease is given",
    },
    Library {
        name: "Redisson fenced lock",
        objects: &["fenced"],
        exclusion: "as RLock",
        fencing: true,
        reentrancy: "yes, by client and thread",
        release: "compares; forceUnlock does not",
        extension: "by the watchdog, if no lease is given",
    },
    Library {
        name: "Redisson read/write lock",
        objects: &["rw.read", "rw.write"],
        exclusion: "as RLock: one writer, or any number of readers",
        fencing: false,
        reentrancy: "yes; a writer may read",
        release: "compares; forceUnlock does not",
        extension: "by the watchdog, if no lease is given",
    },
    Library {
        name: "Redisson MultiLock, RedLock",
        objects: &["rlock"],
        exclusion: "as RLock, of several locks; RedLock on most of several nodes",
        fencing: false,
        reentrancy: "yes, by client and thread",
        release: "compares",
        extension: "by the watchdog, if no lease is given",
    },
    Library {
        name: "SET NX PX by hand, released by a script, DELEX IFEQ or DELIFEQ",
        objects: &[KEY_LOCK],
        exclusion: "until the lease ends",
        fencing: false,
        reentrancy: "no",
        release: "compares; a plain DEL does not",
        extension: "SET IFEQ, or a script",
    },
    Library {
        name: "redis-py Lock",
        objects: &[KEY_LOCK],
        exclusion: "until the lease ends; without a timeout there is no lease",
        fencing: false,
        reentrancy: "no",
        release: "compares",
        extension: "extend, reacquire",
    },
    Library {
        name: "redsync",
        objects: &[KEY_LOCK],
        exclusion: "until the lease ends, on most of several nodes",
        fencing: false,
        reentrancy: "no",
        release: "compares",
        extension: "Extend",
    },
    Library {
        name: "node-redlock",
        objects: &[KEY_LOCK],
        exclusion: "until the lease ends, on most of several nodes",
        fencing: false,
        reentrancy: "no",
        release: "compares",
        extension: "extend, or by using()",
    },
    Library {
        name: "ShedLock",
        objects: &[KEY_LOCK],
        exclusion: "until lockAtMostFor ends; kept until lockAtLeastFor ends",
        fencing: false,
        reentrancy: "no",
        release: "compares, unless safe updates are off or the release is an old one",
        extension: "extend",
    },
    Library {
        name: "Spring RedisLockRegistry",
        objects: &[KEY_LOCK],
        exclusion: "until the lease ends; the threads of one registry share a token",
        fencing: false,
        reentrancy: "yes, within one registry",
        release: "compares",
        extension: "when it is acquired again",
    },
    Library {
        name: "python-redis-lock",
        objects: &[KEY_LOCK],
        exclusion: "until the lease ends; without expire there is no lease",
        fencing: false,
        reentrancy: "no",
        release: "compares; reset does not",
        extension: "extend, or by auto_renewal",
    },
    Library {
        name: "pottery Redlock",
        objects: &[KEY_LOCK],
        exclusion: "until the lease ends, on most of several nodes",
        fencing: false,
        reentrancy: "no",
        release: "compares",
        extension: "extend, three times unless told otherwise",
    },
];

impl Library {
    /// Returns the row of the library in the page.
    pub fn row(&self) -> String {
        let checks = |of: &str| object_named(of).map(|object| object.checks).unwrap_or_default();
        let mut checks: Vec<&str> =
            self.objects.iter().flat_map(|of| checks(of)).map(|invariant| invariant.id()).collect();
        checks.sort_unstable();
        checks.dedup();
        let objects: Vec<String> = self.objects.iter().map(|object| format!("`{object}`")).collect();
        format!(
            "| {} | {} | {} | {} | {} | {} | {} | {} |",
            self.name,
            objects.join(", "),
            self.exclusion,
            if self.fencing { "yes" } else { "no" },
            self.reentrancy,
            self.release,
            self.extension,
            checks.join(" ")
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_has_the_table() {
        let page = include_str!("../../../docs/locks/promises.md");
        let rows: Vec<&str> = page.lines().filter(|line| line.contains(" | H1 ")).collect();
        let expected: Vec<String> = LIBRARIES.iter().map(Library::row).collect();
        assert_eq!(rows, expected, "\n{}", expected.join("\n"));
    }

    #[test]
    fn objects_have_scripts() {
        for object in OBJECTS.iter().filter(|object| object.name != KEY_LOCK) {
            let has_role = crate::role::Role::all().any(|role| role.object() == object.name);
            assert!(has_role, "{}", object.name);
        }
        let objects = LIBRARIES.iter().flat_map(|library| library.objects);
        assert!(objects.into_iter().all(|name| object_named(name).is_some()));
    }
}
