//! `redlatch`: see the library, whose `cli` this runs.

/// Has a size class of 48 bytes, which the data of a lock takes; the C library's allocator takes 64.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

#[allow(clippy::disallowed_methods)]
fn main() -> std::process::ExitCode {
    redlatch::cli::main(std::env::args())
}
