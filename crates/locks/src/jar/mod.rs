//! Reads the Lua scripts out of a jar.
//!
//! A Java compiler joins the literals of a script into one string constant, and loads it where the script is used. So
//! the class file contains the whole text of a script, and the method that loads it gives the script its name.

use std::collections::{BTreeMap, BTreeSet};

#[cfg(feature = "jar")]
mod flow;
#[cfg(feature = "jar")]
mod read;
#[cfg(all(test, feature = "jar"))]
mod tests;

#[cfg(feature = "jar")]
pub use read::{JarError, class_scripts, read, scripts};

/// The parts of a jar that show how its clients lock.
#[derive(Clone, Debug, Default)]
pub struct Jar {
    pub scripts: Vec<JarScript>,
    /// The classes, named as in [`JarScript::class`].
    pub classes: BTreeSet<String>,
    /// The fields and methods that the methods of lock classes use, by `Class.method`.
    pub uses: BTreeMap<String, Vec<String>>,
}

/// Returns whether a class is that of a lock object, by its name.
pub fn is_lock_class(class: &str) -> bool {
    let name = class.split('$').next().unwrap_or(class);
    let ends = ["Lock", "Semaphore", "Latch", "RateLimiter"];
    name.starts_with("renewal.") || name.starts_with("Redisson") && ends.iter().any(|end| name.ends_with(end))
}

/// A Lua script and its location in the jar.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JarScript {
    /// The class without its package: `RedissonReadLock`, `renewal.LockTask`.
    pub class: String,
    pub method: String,
    /// The index among the scripts of the method, from 0.
    pub index: usize,
    /// Empty if the method puts the text together when it sends it.
    pub text: String,
    /// How the method passes the script to the server; `None` if its byte code does not show it.
    pub call: Option<Call>,
    /// The fields and methods that the surrounding method uses, from which it builds the arguments.
    pub uses: Vec<String>,
}

/// The call of a method that sends a script. A key or an argument is the Java expression that makes it, without
/// conversions and without the object whose method is called: `getLockName(threadId)`. An expression after `*` makes
/// any number of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Call {
    /// `evalWriteAsync`.
    pub method: String,
    pub keys: Vec<String>,
    pub args: Vec<String>,
}

impl JarScript {
    /// Returns `Class.method`, followed by the script's index if the method has several:
    /// `RedissonFairLock.tryLockInnerAsync#1`.
    pub fn name(&self) -> String {
        let JarScript { class, method, index, .. } = self;
        if *index == 0 { format!("{class}.{method}") } else { format!("{class}.{method}#{index}") }
    }

    /// Returns the class and the method as [sites](super::role::Site) name them.
    pub fn site(&self) -> String {
        site(&self.class, &self.method)
    }
}

/// Returns `Class.method` without the numbers of anonymous classes, and with the method that contains a lambda.
fn site(class: &str, method: &str) -> String {
    let class = match class.rsplit_once('$') {
        Some((outer, number)) if number.bytes().all(|byte| byte.is_ascii_digit()) => outer,
        _ => class,
    };
    let method = method.strip_prefix("lambda$").and_then(|lambda| lambda.split('$').next()).unwrap_or(method);
    format!("{class}.{method}")
}
