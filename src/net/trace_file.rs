//! The file that a trace goes to.

use std::fs::{File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
#[cfg(feature = "cli")]
use std::path::Component;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use super::Server;
use redlatch_lab::control::Lab;

/// Lines are written when there are so many bytes of them, or a little later.
const ENOUGH: usize = 256 * 1024;
const A_LITTLE: Duration = Duration::from_millis(50);

impl Server {
    /// Writes the trace of this world from its beginning.
    ///
    /// # Errors
    /// Fails if the file cannot be written, or is there and not a regular file.
    pub fn trace_to(&self, path: &str) -> io::Result<()> {
        *self.trace.borrow_mut() = Some(create(Path::new(path))?);
        let mut lab = self.lab.borrow_mut();
        lab.start_trace();
        // A process that is killed at once leaves a trace as well.
        self.write_trace(&mut lab);
        Ok(())
    }

    /// Sets whether the trace is written at the end of each turn, before the replies leave.
    pub fn sync_trace(&self, on: bool) {
        self.syncs_trace.set(on);
    }

    /// Lets clients write traces below a directory, with SIM.TRACE START.
    ///
    /// # Errors
    /// Fails if there is no such directory.
    #[cfg(feature = "cli")]
    pub fn allow_traces_below(&self, dir: &str) -> io::Result<()> {
        let dir = Path::new(dir).canonicalize()?;
        if !dir.is_dir() {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        let trace = self.trace.clone();
        self.lab.borrow_mut().open_traces_with(Box::new(move |name| {
            *trace.borrow_mut() = Some(create_below(&dir, name)?);
            Ok(())
        }));
        Ok(())
    }

    /// Ends the trace if a client has asked for that, and writes if there is enough.
    pub(super) fn keep_trace(&self, lab: &mut Lab) {
        if lab.take_trace_end() {
            return self.end_trace(lab);
        }
        if lab.trace_len() >= if self.syncs_trace.get() { 1 } else { ENOUGH } {
            self.write_trace(lab);
        }
    }

    /// Writes the last line and closes the file.
    pub(super) fn end_trace(&self, lab: &mut Lab) {
        lab.end_trace();
        self.write_trace(lab);
        lab.stop_trace();
        self.trace.borrow_mut().take();
    }

    /// Writes the lines that there are, unless the trace goes to no file but to the test that asked for it.
    fn write_trace(&self, lab: &mut Lab) {
        let mut file = self.trace.borrow_mut();
        let Some(open) = file.as_mut() else { return };
        let mut lines = Vec::new();
        lab.take_trace(&mut lines);
        if let Err(error) = open.write_all(&lines) {
            tracing::error!(%error, "cannot write the trace: it ends here");
            *file = None;
            lab.stop_trace();
        }
    }
}

/// Only the user who runs the server may read what clients have sent.
const OWNER_ONLY: u32 = 0o600;

/// Creates the file that the user has named, or empties it. Other kinds of files are refused: to open a pipe that nobody
/// reads would block.
fn create(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    let file = options.write(true).create(true).mode(OWNER_ONLY).custom_flags(libc::O_NONBLOCK).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    file.set_permissions(Permissions::from_mode(OWNER_ONLY))?;
    file.set_len(0)?;
    Ok(file)
}

/// Creates the file that a client has named: a new one, inside `dir`.
#[cfg(feature = "cli")]
fn create_below(dir: &Path, name: &str) -> Result<File, String> {
    let cannot =
        |why: &dyn std::fmt::Display| format!("cannot write the trace to '{}': {why}", name.escape_debug());
    let path = Path::new(name);
    let is_below = path.components().all(|part| matches!(part, Component::Normal(_)));
    let (Some(file), Some(parent), true) = (path.file_name(), path.parent(), is_below) else {
        return Err(cannot(&"not the name of a file below the directory of --trace-dir"));
    };
    // A directory on the way may be a link to anywhere.
    let parent = dir.join(parent).canonicalize().map_err(|error| cannot(&error))?;
    if !parent.starts_with(dir) {
        return Err(cannot(&"it is outside of the directory of --trace-dir"));
    }
    let mut options = File::options();
    options
        .write(true)
        .create_new(true)
        .mode(OWNER_ONLY)
        .open(parent.join(file))
        .map_err(|error| cannot(&error))
}

/// Writes what there is of a trace again and again, so that it can be read while it grows.
pub(super) async fn write_now_and_then(server: Rc<Server>) {
    loop {
        tokio::time::sleep(A_LITTLE).await;
        let mut lab = server.lab.borrow_mut();
        if lab.trace_len() > 0 {
            server.write_trace(&mut lab);
        }
    }
}
