//! Standard output and standard error, whose reader may close the pipe early (`redlatch scripts list JAR | head -1`).
//!
//! What a closed pipe no longer takes is dropped: the command does the rest of its work, and its exit code says what came of
//! it. The macros of this module hide those of the standard library, which panic then.

use std::fmt::Arguments;
use std::io::{self, ErrorKind, Write};

/// A writer that takes everything once the reader of the inner writer is gone.
pub struct Lenient<W>(pub W);

impl<W: Write> Write for Lenient<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.0.write(bytes) {
            Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(bytes.len()),
            result => result,
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self.0.flush() {
            Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
            result => result,
        }
    }
}

/// Returns the standard output for code that writes to any writer.
pub fn stdout() -> Lenient<io::StdoutLock<'static>> {
    Lenient(io::stdout().lock())
}

/// Prints to the standard output. Ends the process if the output cannot be written, a full disk for example.
pub fn print(text: Arguments) {
    if let Err(error) = stdout().write_fmt(text) {
        to_stderr(format_args!("redlatch: cannot write to standard output: {error}\n"));
        std::process::exit(2);
    }
}

/// Prints to the standard error; nobody is left to hear of an error there.
pub fn to_stderr(text: Arguments) {
    let _ = io::stderr().lock().write_fmt(text);
}

macro_rules! print {
    ($($text:tt)*) => { $crate::cli::output::print(format_args!($($text)*)) };
}

macro_rules! println {
    ($($text:tt)*) => { $crate::cli::output::print(format_args!("{}\n", format_args!($($text)*))) };
}

macro_rules! eprint {
    ($($text:tt)*) => { $crate::cli::output::to_stderr(format_args!($($text)*)) };
}

macro_rules! eprintln {
    ($($text:tt)*) => { $crate::cli::output::to_stderr(format_args!("{}\n", format_args!($($text)*))) };
}
