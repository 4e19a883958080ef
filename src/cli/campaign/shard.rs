//! The share of a campaign that a process takes, and the report that it leaves.

use std::path::Path;

use serde_json::Value;

/// A share: the number of the shard, from 0, and how many there are.
pub type Shard = (u64, u64);

/// Where the environment gives the number of a job, counted from 0, and where the number of the first one.
const NUMBERS: [(&str, Option<&str>); 2] =
    [("JOB_COMPLETION_INDEX", None), ("SLURM_ARRAY_TASK_ID", Some("SLURM_ARRAY_TASK_MIN"))];

/// Where the environment gives the number of jobs.
const COUNT: &str = "SLURM_ARRAY_TASK_COUNT";

/// Parses a share: `2/8` is the second of eight. `auto/8` takes the number from the environment of an indexed Kubernetes job or of a
/// Slurm array, `auto` both numbers of an array.
pub fn parse(text: &str) -> Result<Shard, String> {
    parse_in(text, |name| std::env::var(name).ok())
}

fn parse_in(text: &str, variable: impl Fn(&str) -> Option<String>) -> Result<Shard, String> {
    let no_share = || "not a share such as 2/4 or auto/4".to_owned();
    let (part, parts) = match text.split_once('/') {
        Some((part, parts)) => (part, parts.parse().map_err(|_| no_share())?),
        None if text == "auto" => {
            let count = variable(COUNT).and_then(|count| count.parse().ok());
            (text, count.ok_or_else(|| format!("{COUNT} is not set: write auto/4 for four shards"))?)
        }
        None => return Err(no_share()),
    };
    let index: u64 = match part {
        "auto" => from_environment(variable)?,
        part => part.parse::<u64>().ok().and_then(|part| part.checked_sub(1)).ok_or_else(no_share)?,
    };
    if index < parts {
        Ok((index, parts))
    } else {
        Err(format!("there is no shard {} of {parts}", index.saturating_add(1)))
    }
}

fn from_environment(variable: impl Fn(&str) -> Option<String>) -> Result<u64, String> {
    let number = |name: &str| variable(name).and_then(|number| number.parse::<u64>().ok());
    NUMBERS
        .iter()
        .find_map(|(name, first)| number(name)?.checked_sub(first.and_then(number).unwrap_or(0)))
        .ok_or_else(|| format!("neither {} nor {} is set", NUMBERS[0].0, NUMBERS[1].0))
}

/// Adds to a report which shard it is of, and of what campaign: the kind and all options that its shards share.
pub fn label(report: &mut Value, (index, shards): Shard, mut campaign: Value) {
    campaign["version"] = env!("CARGO_PKG_VERSION").into();
    campaign["shards"] = shards.into();
    report["campaign"] = campaign;
    report["shard"] = (index + 1).into();
}

/// Writes a labelled report into a directory, which is created, as `fuzz-2-of-8.json`.
///
/// A report appears as a whole or not at all, so one of a killed process is missing and not broken.
pub fn write(directory: &Path, report: &Value) -> Result<(), String> {
    let campaign = &report["campaign"];
    let kind = campaign["kind"].as_str().unwrap_or_default();
    let name = format!("{kind}-{}-of-{}.json", report["shard"], campaign["shards"]);
    let part = directory.join(format!(".{name}.part"));
    std::fs::create_dir_all(directory)
        .and_then(|()| std::fs::write(&part, format!("{report:#}\n")))
        .and_then(|()| std::fs::rename(&part, directory.join(&name)))
        .map_err(|error| format!("cannot write {}: {error}", directory.join(&name).display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_come_from_the_text_or_from_the_environment() {
        let none = |_: &str| None;
        assert_eq!(parse_in("2/8", none), Ok((1, 8)));
        for wrong in ["", "0/8", "9/8", "1/0", "x/8", "2", "-1/8", "auto/x", "auto", "auto/8", "1/8/2"] {
            assert!(parse_in(wrong, none).is_err(), "{wrong}");
        }
        let kubernetes = |name: &str| (name == "JOB_COMPLETION_INDEX").then(|| "7".to_owned());
        assert_eq!(parse_in("auto/8", kubernetes), Ok((7, 8)));
        assert_eq!(parse_in("auto/7", kubernetes), Err("there is no shard 8 of 7".to_owned()));
        let slurm = |name: &str| match name {
            "SLURM_ARRAY_TASK_ID" => Some("3".to_owned()),
            "SLURM_ARRAY_TASK_MIN" => Some("1".to_owned()),
            "SLURM_ARRAY_TASK_COUNT" => Some("5".to_owned()),
            _ => None,
        };
        assert_eq!(parse_in("auto", slurm), Ok((2, 5)));
        assert_eq!(parse_in("auto/8", slurm), Ok((2, 8)));
    }
}
