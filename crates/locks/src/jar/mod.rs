//! Reads the Lua scripts out of a jar.
//!
//! A Java compiler joins the literals of a script into one string constant, and loads it where the script is used. So
//! the class file contains the whole text of a script, and the method that loads it gives the script its name.

#[cfg(feature = "jar")]
mod read;

#[cfg(feature = "jar")]
pub use read::{JarError, class_scripts, scripts};

/// A Lua script and its location in the jar.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JarScript {
    /// The class without its package: `RedissonReadLock`, `renewal.LockTask`.
    pub class: String,
    pub method: String,
    /// The index among the scripts of the method, from 0.
    pub index: usize,
    pub text: String,
    /// The fields and methods that the surrounding method uses, from which it builds the arguments.
    pub uses: Vec<String>,
}

impl JarScript {
    /// Returns `Class.method`, followed by the script's index if the method has several:
    /// `RedissonFairLock.tryLockInnerAsync#1`.
    pub fn name(&self) -> String {
        let JarScript { class, method, index, .. } = self;
        if *index == 0 { format!("{class}.{method}") } else { format!("{class}.{method}#{index}") }
    }
}
