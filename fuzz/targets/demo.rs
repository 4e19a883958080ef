#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| redlatch_fuzz_targets::run("demo", bytes));
