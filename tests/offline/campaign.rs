//! Campaigns of several processes, tried as a user would: shards, what is lost with one, and the files for engines.

// A process has to search for a while before it is killed.
#![allow(clippy::disallowed_methods)]

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use serde_json::Value;

const BROKEN: &str = "docs/locks/broken.toml";
const SOUND: &str = "docs/locks/set-nx.toml";

fn redlatch(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_redlatch"));
    command.args(args).current_dir(env!("CARGO_MANIFEST_DIR"));
    for name in
        ["JOB_COMPLETION_INDEX", "SLURM_ARRAY_TASK_ID", "SLURM_ARRAY_TASK_MIN", "SLURM_ARRAY_TASK_COUNT"]
    {
        command.env_remove(name);
    }
    command
}

fn run(args: &[&str]) -> Output {
    redlatch(args).output().expect("redlatch runs")
}

/// Returns the exit code and what was printed.
fn outcome(args: &[&str]) -> (i32, String) {
    let Output { status, stdout, stderr } = run(args);
    let text = [stdout, stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
    (status.code().expect("not a signal"), text)
}

/// Creates an empty directory for reports.
fn directory(name: &str) -> PathBuf {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("campaigns").join(name);
    let _ = std::fs::remove_dir_all(&directory);
    std::fs::create_dir_all(&directory).expect("a directory");
    directory
}

fn shard(lock: &str, shard: &str, into: &Path) -> i32 {
    let into = into.display().to_string();
    outcome(&["fuzz", "--scripts", lock, "--runs", "1000", "--shard", shard, "--output", &into]).0
}

fn merged(directory: &Path) -> Value {
    let output = run(&["campaign", "merge", "--format", "json", &directory.display().to_string()]);
    serde_json::from_slice(&output.stdout).expect("a report")
}

/// Returns what does not depend on the speed of the machine.
fn essence(report: &Value) -> Value {
    let object = &report["objects"][0];
    let findings = object["findings"].as_array().expect("findings").iter().map(|finding| {
        let names =
            ["invariant", "operation", "text", "schedule", "number", "cause", "again", "run", "first_steps"];
        names.map(|name| finding[name].clone()).into_iter().collect::<Value>()
    });
    let mut reached: Vec<&str> = object["corpus"]
        .as_array()
        .expect("a corpus")
        .iter()
        .flat_map(|entry| entry["reached"].as_array().expect("digests"))
        .map(|digest| digest.as_str().expect("a digest"))
        .collect();
    reached.sort_unstable();
    serde_json::json!({
        "findings": findings.collect::<Vec<_>>(), "coverage": object["coverage"], "reached": reached, "schedules": object["schedules"],
        "scripts": object["scripts"], "never": object["branches_never_reached"],
    })
}

#[test]
fn eight_shards_find_what_one_run_finds() {
    let directory = directory("eight");
    for number in 1..=8 {
        assert_eq!(shard(BROKEN, &format!("{number}/8"), &directory), 0);
    }
    let one = run(&["fuzz", "--scripts", BROKEN, "--runs", "8000", "--format", "json"]);
    assert_eq!(one.status.code(), Some(1));
    let one: Value = serde_json::from_slice(&one.stdout).expect("a report");
    let all = merged(&directory);
    assert!(all["objects"][0]["findings"].as_array().expect("findings").len() > 1);
    assert_eq!(essence(&all), essence(&one));
    assert_eq!(all["missing_shards"], serde_json::json!([]));
    let (code, text) = outcome(&["campaign", "merge", &directory.display().to_string()]);
    assert_eq!(code, 1);
    assert!(
        text.contains("U1@release")
            && text.contains("repeat with: redlatch fuzz")
            && text.contains("merged 8 reports"),
        "{text}"
    );

    // Threads share the schedules in the same way.
    let two = run(&["fuzz", "--scripts", BROKEN, "--runs", "4000", "--jobs", "2", "--format", "json"]);
    assert_eq!(essence(&serde_json::from_slice(&two.stdout).expect("a report")), essence(&one));
}

#[test]
fn a_lost_shard_loses_only_itself() {
    let directory = directory("lost");
    for number in [1, 2, 4] {
        assert_eq!(shard(SOUND, &format!("{number}/4"), &directory), 0);
    }
    let path = directory.display().to_string();
    let mut killed =
        redlatch(&["fuzz", "--scripts", SOUND, "--seconds", "600", "--shard", "3/4", "--output", &path])
            .stdout(Stdio::null())
            .spawn()
            .expect("redlatch runs");
    std::thread::sleep(Duration::from_millis(300));
    killed.kill().expect("it still searches");
    killed.wait().expect("it ends");
    let (code, text) = outcome(&["campaign", "merge", &path]);
    assert_eq!(code, 3, "{text}");
    assert!(text.contains("merged 3 reports\nmissing: shard 3 of 4\n"), "{text}");
    assert_eq!(merged(&directory)["objects"][0]["schedules"], 3_000);
    assert_eq!(shard(SOUND, "3/4", &directory), 0);
    assert_eq!(outcome(&["campaign", "merge", &path]).0, 0);
}

#[test]
fn what_is_no_shard_of_the_campaign_is_left_out_and_named() {
    let directory = directory("foreign");
    let path = directory.display().to_string();
    assert_eq!(outcome(&["campaign", "merge", &path]).0, 2);
    assert_eq!(shard(SOUND, "1/1", &directory), 0);
    let first = directory.join("fuzz-1-of-1.json");
    let report = std::fs::read_to_string(&first).expect("a report");
    std::fs::write(directory.join("half.json"), &report[..report.len() / 2]).expect("a file");
    std::fs::write(directory.join("list.json"), "[1]").expect("a file");
    std::fs::write(directory.join("notes.txt"), "not a report").expect("a file");
    std::fs::write(directory.join("other.json"), report.replace("\"seed\": 0", "\"seed\": 1"))
        .expect("a file");
    std::fs::write(directory.join("twice.json"), &report).expect("a file");
    let (code, text) = outcome(&["campaign", "merge", &path]);
    assert_eq!(code, 3, "{text}");
    for why in [
        "half.json: ",
        "list.json: not a report",
        "other.json: of another campaign: seed is 1, not 0",
        "is in ",
    ] {
        assert_eq!(
            text.lines().filter(|line| line.starts_with("left out: ") && line.contains(why)).count(),
            1,
            "{why}: {text}"
        );
    }
    assert!(text.contains("merged 1 reports") && !text.contains("notes.txt"), "{text}");
    assert_eq!(outcome(&["campaign", "merge", "no/such/directory"]).0, 2);
}

#[test]
fn jobs_of_engines_know_their_shard() {
    let directory = directory("engines");
    let path = directory.display().to_string();
    let run = |shard: &str, variables: &[(&str, &str)]| {
        let mut command =
            redlatch(&["fuzz", "--scripts", SOUND, "--runs", "10", "--output", &path, "--shard", shard]);
        command.envs(variables.iter().copied()).output().expect("redlatch runs").status.code()
    };
    assert_eq!(run("auto/2", &[("JOB_COMPLETION_INDEX", "0")]), Some(0));
    let second =
        [("SLURM_ARRAY_TASK_ID", "2"), ("SLURM_ARRAY_TASK_MIN", "1"), ("SLURM_ARRAY_TASK_COUNT", "2")];
    assert_eq!(run("auto", &second), Some(0));
    assert_eq!(outcome(&["campaign", "merge", &path]).0, 0);
    assert_eq!(run("auto/2", &[]), Some(2));
    assert_eq!(run("auto/2", &[("JOB_COMPLETION_INDEX", "2")]), Some(2));
}

#[test]
fn a_guided_search_begins_with_what_shards_have_reached() {
    let directory = directory("guided");
    assert_eq!(shard(SOUND, "1/1", &directory), 0);
    let corpus = directory.join("fuzz-1-of-1.json").display().to_string();
    let states = |args: &[&str]| {
        let guided = ["fuzz", "--scripts", SOUND, "--runs", "2", "--search", "guided", "--format", "json"];
        let output = run(&[&guided[..], args].concat());
        assert_eq!(output.status.code(), Some(0));
        let report: Value = serde_json::from_slice(&output.stdout).expect("a report");
        essence(&report)["reached"].as_array().expect("digests").len()
    };
    assert!(states(&["--corpus", &corpus]) > states(&[]));
    assert_eq!(outcome(&["fuzz", "--scripts", SOUND, "--search", "guided", "--corpus", "no-such-file"]).0, 2);
}

/// The files in `deploy` are what `redlatch campaign plan` prints. `REDLATCH_UPDATE_DOCS=1` writes them.
#[test]
fn ready_files_are_plans() {
    let campaign = ["--", "fuzz", "--jar", "/jars/redisson-4.7.0.jar", "--search", "guided"];
    for (format, jobs, file) in [
        ("kubernetes", "200", "deploy/kubernetes.yaml"),
        ("slurm", "200", "deploy/slurm.sh"),
        ("github", "8", "deploy/github-actions.yml"),
    ] {
        let budget = if format == "github" { "1h" } else { "10h" };
        let plan = ["campaign", "plan", "--budget", budget, "--jobs", jobs, "--format", format];
        let (code, text) = outcome(&[&plan[..], &campaign].concat());
        assert_eq!(code, 0, "{text}");
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
        if std::env::var_os("REDLATCH_UPDATE_DOCS").is_some() {
            std::fs::write(&path, &text).expect("the file can be written");
        }
        assert_eq!(std::fs::read_to_string(&path).expect(file), text, "{file}");
    }
}

#[test]
fn plans_that_cannot_work_are_refused() {
    let refused = |args: &[&str], why: &str| {
        let (code, text) = outcome(&[&["campaign", "plan"], args].concat());
        assert!(code == 2 && text.contains(why), "{args:?}: {text}");
    };
    refused(&["--budget", "10", "--jobs", "2", "--", "fuzz"], "not a time");
    refused(&["--budget", "1h", "--jobs", "0", "--", "fuzz"], "0 is not in");
    refused(&["--budget", "10s", "--jobs", "200", "--", "fuzz"], "too little");
    refused(&["--budget", "1h", "--jobs", "2", "--", "fuzz", "--seconds", "3"], "sets --seconds itself");
    refused(&["--budget", "1h", "--jobs", "2", "--", "bench"], "not bench");
    refused(&["--budget", "9d", "--jobs", "300", "--format", "github", "--", "fuzz"], "at most 256");
    refused(&["--budget", "1h", "--jobs", "2"], "required");
}
