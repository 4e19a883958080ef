//! `redlatch`: see the library, whose `cli` this runs.

#[allow(clippy::disallowed_methods)]
fn main() -> std::process::ExitCode {
    redlatch::cli::main(std::env::args())
}
