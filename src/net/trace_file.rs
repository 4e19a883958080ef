//! The file that a trace goes to.

use std::fs::File;
use std::io::{self, Write};
use std::rc::Rc;
use std::time::Duration;

use super::Server;
use redlatch_lab::control::Lab;
use redlatch_lab::control::commands::trace::TraceFile;

/// Lines are written when there are so many bytes of them, or a little later.
const ENOUGH: usize = 256 * 1024;
const A_LITTLE: Duration = Duration::from_millis(50);

impl Server {
    /// Writes the trace of this world from its beginning.
    pub fn trace_to(&self, path: &str) -> io::Result<()> {
        *self.trace.borrow_mut() = Some(File::create(path)?);
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

    /// Opens or closes the file as the world was asked to, and writes if there is enough.
    pub(super) fn keep_trace(self: &Rc<Server>, lab: &mut Lab) {
        match lab.take_trace_file() {
            Some(TraceFile::Open(path)) => match File::create(&path) {
                Ok(file) => *self.trace.borrow_mut() = Some(file),
                Err(error) => {
                    tracing::error!(path, %error, "cannot write the trace");
                    lab.stop_trace();
                }
            },
            Some(TraceFile::Close) => {
                self.end_trace(lab);
            }
            None => {}
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
