//! What the configuration says to the process: its directory, its file of data, whether it is a daemon, its file of its number.

use std::path::PathBuf;

use redlatch_core::node::Config;

/// The settings of the process.
#[derive(Clone, Debug, Default)]
pub struct ProcessOptions {
    /// The directory to work in, absolute.
    pub dir: Option<PathBuf>,
    /// `dbfilename`, if it was given.
    pub dump_name: Option<String>,
    pub daemonize: bool,
    pub pidfile: Option<PathBuf>,
    /// Whether anything was configured.
    pub is_configured: bool,
}

impl ProcessOptions {
    /// Sets the directory to work in.
    ///
    /// # Errors
    /// If there is no such directory.
    pub fn set_dir(&mut self, path: &str) -> Result<(), String> {
        match std::fs::metadata(path) {
            Ok(metadata) if metadata.is_dir() => {
                self.dir = std::path::absolute(path).ok();
                Ok(())
            }
            Ok(_) => Err("Not a directory".to_owned()),
            Err(error) => Err(super::without_number(&error)),
        }
    }

    /// Moves to the directory, and puts its full name into the settings.
    ///
    /// # Errors
    /// If the directory cannot be entered.
    pub fn enter_directory(&self, config: &mut Config) -> Result<(), String> {
        let Some(dir) = &self.dir else { return Ok(()) };
        std::env::set_current_dir(dir)
            .map_err(|error| format!("Can't chdir to '{}': {error}", dir.display()))?;
        Ok(config.set_at_start("dir", dir.display().to_string().as_bytes())?)
    }

    /// Returns the file of data, if the configuration names one or its directory. Without either nothing is read or written.
    pub fn dump_file(&self) -> Option<PathBuf> {
        let dir = self.dir.clone().or_else(|| std::env::current_dir().ok())?;
        let name = self.dump_name.as_deref().unwrap_or("dump.rdb");
        (self.dir.is_some() || self.dump_name.is_some()).then(|| dir.join(name))
    }

    /// Becomes a daemon if the configuration says so: the process that was started ends, and another one goes on.
    ///
    /// Must come before any thread begins.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn daemonize(&self) -> Result<(), String> {
        match self.daemonize {
            true => {
                nix::unistd::daemon(true, false).map_err(|error| format!("cannot become a daemon: {error}"))
            }
            false => Ok(()),
        }
    }

    /// Writes the number of the process to its file, if there is to be one. The file is removed when the result is dropped.
    pub fn write_pidfile(&self) -> Option<PidFile> {
        const DEFAULT: &str = "/var/run/redis.pid";
        let path = self.pidfile.clone().or_else(|| self.daemonize.then(|| DEFAULT.into()))?;
        match std::fs::write(&path, format!("{}\n", std::process::id())) {
            Ok(()) => Some(PidFile(path)),
            Err(error) => {
                tracing::warn!("Failed to write PID file: {error}");
                None
            }
        }
    }
}

/// The file with the number of the process.
pub struct PidFile(PathBuf);

impl Drop for PidFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}
