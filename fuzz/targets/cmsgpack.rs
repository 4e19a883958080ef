#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| redlatch::byte_fuzz::run("cmsgpack", bytes));
