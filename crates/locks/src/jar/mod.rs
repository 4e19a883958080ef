//! Reads the Lua scripts out of a jar.
//!
//! A Java compiler folds the literals that make up a script into one string constant, and loads it where the script is
//! used: the whole text of a script is in its class file, and the method around it tells its name.

#[cfg(feature = "jar")]
mod read;

#[cfg(feature = "jar")]
pub use read::{JarError, scripts};

/// A Lua script and where its text is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JarScript {
    /// The class without its package: `RedissonReadLock`, `renewal.LockTask`.
    pub class: String,
    pub method: String,
    /// Counts the scripts of one method, from 0.
    pub index: usize,
    pub text: String,
    /// The fields and methods that the method around it uses: what its arguments are made of.
    pub uses: Vec<String>,
}

impl JarScript {
    /// Returns `Class.method`, with the number of the script where a method has several: `RedissonFairLock.tryLockInnerAsync#1`.
    pub fn name(&self) -> String {
        let JarScript { class, method, index, .. } = self;
        if *index == 0 { format!("{class}.{method}") } else { format!("{class}.{method}#{index}") }
    }
}
