fn main() -> std::process::ExitCode {
    redlatch::cli::main(std::env::args())
}
