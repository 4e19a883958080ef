//! `redlatch fuzz` on jars whose scripts were edited: nothing is left out silently.

#![allow(clippy::disallowed_types, clippy::disallowed_methods)]

use std::io::{Cursor, Read, Write};
use std::path::PathBuf;
use std::process::Command;

use crate::jars;

/// Replaces a text in the constant pool of a class file: in the first constant that contains it.
fn edit(class: &[u8], from: &str, to: &str) -> Vec<u8> {
    const UTF8: u8 = 1;
    let number = |at: usize| usize::from(u16::from_be_bytes([class[at], class[at + 1]]));
    let mut at = 10;
    for _ in 1..number(8) {
        let len = match class[at] {
            UTF8 => {
                let (start, end) = (at + 3, at + 3 + number(at + 1));
                let text = String::from_utf8_lossy(&class[start..end]);
                if text.contains(from) {
                    let text = text.replacen(from, to, 1);
                    let len = (text.len() as u16).to_be_bytes();
                    return [&class[..=at], &len, text.as_bytes(), &class[end..]].concat();
                }
                3 + number(at + 1)
            }
            7 | 8 | 16 | 19 | 20 => 3,
            15 => 4,
            5 | 6 => 9,
            _ => 5,
        };
        at += len;
    }
    panic!("the class has no '{from}'");
}

/// Writes 4.7.0 with one text of one class replaced.
fn edited_jar(name: &str, class: &str, from: &str, to: &str) -> PathBuf {
    let mut jar = zip::ZipArchive::new(Cursor::new(jars::bytes("4.7.0"))).unwrap();
    let mut out = zip::ZipWriter::new(Cursor::new(Vec::new()));
    let class = format!("org/redisson/{class}.class");
    for index in 0..jar.len() {
        let file = jar.by_index_raw(index).unwrap();
        let name = file.name().unwrap().into_owned();
        let is_lock = ["Lock", "Semaphore", "Latch", "Rate"].iter().any(|part| name.contains(part));
        if name == class {
            drop(file);
            let mut bytes = Vec::new();
            jar.by_index(index).unwrap().read_to_end(&mut bytes).unwrap();
            out.start_file(&class, zip::write::SimpleFileOptions::default()).unwrap();
            out.write_all(&edit(&bytes, from, to)).unwrap();
        } else if is_lock {
            out.raw_copy_file(file).unwrap();
        }
    }
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join(format!("target/jars/edited-{name}-{}.jar", std::process::id()));
    std::fs::write(&path, out.finish().unwrap().into_inner()).unwrap();
    path
}

/// Fuzzes an edited jar. Returns the exit code and the output.
fn fuzz(name: &str, class: &str, from: &str, to: &str, args: &[&str]) -> (i32, String) {
    let jar = edited_jar(name, class, from, to);
    let output = Command::new(env!("CARGO_BIN_EXE_redlatch"))
        .args(["fuzz", "--runs", "500", "--jar"])
        .arg(&jar)
        .args(args)
        .output()
        .unwrap();
    std::fs::remove_file(jar).unwrap();
    let said = [output.stdout, output.stderr].concat();
    (output.status.code().unwrap_or(-1), String::from_utf8_lossy(&said).into_owned())
}

const DELETE: &str = "redis.call('del', KEYS[1]);";

#[test]
fn an_edited_script_is_run() {
    if jars::are_missing() {
        return;
    }
    let rlock = |name, from, to| fuzz(name, "RedissonLock", from, to, &["--object", "rlock"]);
    let (code, said) = rlock("unlink", DELETE, "redis.call('unlink', KEYS[1]);");
    assert_eq!(code, 0, "{said}");
    let (code, said) = rlock("keeps", DELETE, "");
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("violated at unlock"), "{said}");
    // Nothing but an answer.
    let whole = "if (redis.call('del', KEYS[1]) == 1) then redis.call(ARGV[2], KEYS[2], ARGV[1]); return 1 else return 0 end";
    let (code, said) = rlock("answers", whole, "return 1");
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("violated at force_unlock"), "{said}");
    // One call more in the renewal.
    let (from, to) = ("redis.call('pexpire'", "redis.call('pttl', KEYS[1]); redis.call('pexpire'");
    let (code, said) = fuzz("pttl", "renewal/LockTask", from, to, &["--object", "rlock"]);
    assert_eq!(code, 0, "{said}");
}

#[test]
fn a_script_that_reads_like_another_keeps_its_role_and_is_reported() {
    if jars::are_missing() {
        return;
    }
    let publish = "redis.call(ARGV[2], KEYS[2], ARGV[1]);";
    let silent = |objects: &[&str]| {
        let pattern = format!("if (redis.call('del', KEYS[1]) == 1) then {publish}");
        fuzz("silent", "RedissonLock", &pattern, &pattern.replace(publish, ""), objects)
    };
    let doubt =
        "doubtful: RedissonLock.forceUnlockAsync (rlock.force_unlock): its text is that of spin.force_unlock";
    let (code, said) = silent(&["--object", "rlock"]);
    assert_eq!(code, 1, "{said}");
    assert!(said.contains(doubt) && said.contains("violated at force_unlock"), "{said}");
    let (code, said) = silent(&["--object", "spin"]);
    assert_eq!(code, 0, "{said}");
}

#[test]
fn a_script_that_is_not_understood_is_an_error() {
    if jars::are_missing() {
        return;
    }
    let renamed = |args: &[&str]| {
        let args = [&["--object", "rlock"], args].concat();
        fuzz("renamed", "renewal/LockTask", "getLockName", "getLeaseName", &args)
    };
    let what = "renewal.LockTask.buildChunk (rlock.renew): ARGV[2] is getLeaseName(getFirstThreadId()), which is not understood";
    let (code, said) = renamed(&[]);
    assert_eq!(code, 3, "{said}");
    assert!(said.contains(&format!("not run: {what}")), "{said}");
    assert!(said.contains("renew            not run"), "{said}");
    let (code, said) = renamed(&["--format", "junit"]);
    assert_eq!(code, 3, "{said}");
    assert!(said.contains("errors=\"1\"") && said.contains("<error message=\"not run: "), "{said}");
    let (_, said) = renamed(&["--format", "json"]);
    let report: serde_json::Value = serde_json::from_str(&said).unwrap();
    assert_eq!(report["problems"][0]["run"], false, "{said}");
}
