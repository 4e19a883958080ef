//! The role of a lock script, recognised by its text alone. For the scripts of a jar, [`sites`](super::sites) goes first.
//!
//! The sequence of commands that a script calls identifies it; parts of its text distinguish scripts with the same
//! commands. White space does not matter. The shapes of all [objects](super::catalogue) together cover Redisson 2.2 to
//! 4.7. A changed script is still recognised if it calls the same commands, and not recognised if it calls others.
//!
//! ```
//! use redlatch_locks::{rlock, role::recognise};
//!
//! let script = b"if (redis.call('hexists', KEYS[1], ARGV[2]) == 1) then \
//!     redis.call('pexpire', KEYS[1], ARGV[1]); return 1; end; return 0;";
//! let found = recognise(script).unwrap();
//! assert_eq!((found.role, found.owner), (rlock::roles::RENEW, Some(2)));
//! assert_eq!(found.role.name(), "rlock.renew");
//! ```

use super::catalogue::{OBJECTS, home};
use super::text::{self, Commands};

/// What a script does, and to which object. Each object's folder declares its roles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Role(&'static str);

impl Role {
    /// Creates a role named `object.operation`.
    pub(super) const fn new(name: &'static str) -> Role {
        Role(name)
    }

    /// Iterates over the roles of all objects.
    pub fn all() -> impl Iterator<Item = Role> {
        OBJECTS.iter().flat_map(|object| object.roles).copied()
    }

    /// Returns `object.operation`: `rlock.acquire`, `rw.read.unlock`.
    pub fn name(self) -> &'static str {
        self.0
    }

    /// Returns the object: `rlock`, `rw.read`.
    pub fn object(self) -> &'static str {
        self.0.rsplit_once('.').map_or(self.0, |(object, _)| object)
    }

    /// Returns the role that the script has in a class: some objects share the text of a script.
    pub fn of_class(self, class: &str) -> Role {
        let shared = OBJECTS.iter().flat_map(|object| object.shared);
        shared
            .into_iter()
            .find(|shared| shared.of == self && shared.class == class)
            .map_or(self, |shared| shared.role)
    }

    /// Iterates over the roles that a script with this text can have: first this role, then those of other objects that
    /// use the same text.
    pub fn readings(self) -> impl Iterator<Item = Role> {
        let shared = OBJECTS.iter().flat_map(|object| object.shared);
        std::iter::once(self).chain(shared.filter(move |shared| shared.of == self).map(|shared| shared.role))
    }
}

/// The commands that the scripts of a role call, and parts of their text.
pub struct Shape {
    role: Role,
    /// The commands in order. `x?` is optional, `x|y` matches either; `publish` also matches a command that is taken
    /// from `ARGV`.
    commands: &'static str,
    /// Parts of the text, joined by ` & `, without spaces.
    words: &'static str,
}

impl Shape {
    pub(super) const fn new(role: Role, commands: &'static str, words: &'static str) -> Shape {
        Shape { role, commands, words }
    }

    #[cfg(test)]
    pub(super) fn role(&self) -> Role {
        self.role
    }

    fn fits(&self, script: &[u8], commands: &Commands) -> bool {
        text::matches(self.commands, commands)
            && self.words.split(" & ").all(|word| text::contains(script, word.as_bytes()))
    }
}

/// Where clients send scripts: a method, as [`JarScript::site`](super::jar::JarScript::site) names it, and the roles of
/// the scripts that it loads, in order. A method without roles loads scripts that are not operations of the lock.
pub type Site = (&'static str, &'static [Role]);

/// A method that sends a plain command in place of a script in the releases that lack the script, and the field or method that it
/// uses for that.
pub struct Plain {
    pub role: Role,
    pub site: &'static str,
    pub uses: &'static str,
}

/// A script whose text another object's script has too.
pub struct Shared {
    /// The role as which the text is recognised.
    pub of: Role,
    /// The class in which the script has the other role.
    pub class: &'static str,
    pub role: Role,
}

/// A recognised script. Indexes count from 1, as in Lua.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recognised {
    pub role: Role,
    /// The index in `ARGV` of the caller's id, `uuid:thread`. If the script takes several, the index of the first.
    pub owner: Option<usize>,
    /// The index in `ARGV` of the client's clock as Unix time in ms.
    pub time: Option<usize>,
    /// The index in `KEYS` of the object. If the script takes several, the index of the first.
    pub lock: Option<usize>,
}

/// Returns the role of a script, or `None` if it is not a known lock script. The first shape that matches decides.
pub fn role(script: &[u8]) -> Option<Role> {
    let commands = text::commands(script)?;
    let mut shapes = OBJECTS.iter().flat_map(|object| object.shapes);
    shapes.find(|shape| shape.fits(script, &commands)).map(|shape| shape.role)
}

/// Returns the role of a script and the positions of its arguments, or `None` if it is not a known lock script.
pub fn recognise(script: &[u8]) -> Option<Recognised> {
    let role = role(script)?;
    let lock = home(role).is_none_or(|object| object.arguments.has_lock(role)).then_some(1);
    Some(Recognised { role, owner: owner_index(script), time: clock_index(script), lock })
}

/// Returns the index in `ARGV` of the owner.
pub(super) fn owner_index(script: &[u8]) -> Option<usize> {
    OWNER.iter().find_map(|(words, add)| Some(text::digit_after(script, words)? + add))
}

/// Returns the index in `ARGV` of the client's clock.
pub(super) fn clock_index(script: &[u8]) -> Option<usize> {
    CLOCK.iter().find_map(|words| text::digit_after(script, words))
}

/// Text before the index of the owner (as a field, as a member, by the name of a variable), and the number to add to
/// that index.
const OWNER: &[(&str, usize)] = &[
    ("'hincrby',KEYS[1],ARGV[", 0),
    ("'hexists',KEYS[1],ARGV[", 0),
    ("'hexists',KEYS[i],ARGV[i+", 1),
    ("'lrem',KEYS[1],0,ARGV[", 0),
    ("localcounter=redis.call('hget',KEYS[1],ARGV[", 0),
    ("localj=", 1),
    ("localargIdx=", 1),
    ("currentThread=ARGV[", 0),
    ("lockName=ARGV[", 0),
    ("o['o']==ARGV[", 0),
];

/// Text before the index of the client's clock, which scripts compare with deadlines.
const CLOCK: &[&str] = &[
    "timeout<=tonumber(ARGV[",
    "tonumber(timeout)<=tonumber(ARGV[",
    "currentTime=tonumber(ARGV[",
    "tonumber(ARGV[3])+tonumber(ARGV[",
    "'zrangebyscore',KEYS[2],0,ARGV[",
    "'zrangebyscore',KEYS[3],0,ARGV[",
    "tonumber(expire)<=tonumber(ARGV[",
    "permitsName,0,tonumber(ARGV[",
    "now=tonumber(ARGV[",
];
