//! Standard output and standard error, whose reader may close the pipe early (`redlatch scripts list JAR | head -1`).
//!
//! Output to a closed pipe is discarded: the command completes its work, and its exit code tells the result. The macros of this
//! module hide those of the standard library, which would panic.

use std::fmt::Arguments;
use std::io::{self, ErrorKind, Write};

/// A writer that discards output once the reader of the inner writer has closed the pipe.
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

/// Prints to the standard output. Exits with code 2 if the output cannot be written, for example to a full disk.
pub fn print(text: Arguments) {
    if let Err(error) = stdout().write_fmt(text) {
        to_stderr(format_args!("redlatch: cannot write to standard output: {error}\n"));
        std::process::exit(2);
    }
}

/// Prints to the standard error. Ignores errors, which could not be reported anywhere.
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
