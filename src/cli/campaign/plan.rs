//! Prints the job that runs a campaign on an engine for arrays of jobs.

use std::time::Duration;

use clap::{Args, ValueEnum};

/// How much longer than its searches a shard may take.
const SLACK: Duration = Duration::from_secs(300);

/// The most jobs of a matrix of GitHub Actions.
const MATRIX: u64 = 256;

#[derive(Args, Debug)]
pub struct Plan {
    /// How long all jobs together may search: 90s, 45m, 10h or 3d.
    #[arg(long, value_name = "TIME", value_parser = parse_budget)]
    budget: Duration,

    /// The number of jobs, one for each shard.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    jobs: u64,

    /// What to print: the commands, or the job for an engine.
    #[arg(long, value_name = "FORMAT", value_enum, default_value = "text")]
    format: Format,

    /// The container image of the Kubernetes job.
    #[arg(long, value_name = "IMAGE", default_value = concat!("redlatch:", env!("CARGO_PKG_VERSION")))]
    image: String,

    /// The campaign: fuzz or mutate with its options, after --.
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    Text,
    Kubernetes,
    Slurm,
    Github,
}

fn parse_budget(text: &str) -> Result<Duration, String> {
    let wrong = || "not a time such as 90s, 45m, 10h or 3d".to_owned();
    let unit = text.chars().last().ok_or_else(wrong)?;
    let seconds_per_unit = match unit {
        's' => 1.0,
        'm' => 60.0,
        'h' => 3_600.0,
        'd' => 86_400.0,
        _ => return Err(wrong()),
    };
    let number: f64 = text[..text.len() - 1].parse().map_err(|_| wrong())?;
    Duration::try_from_secs_f64(number * seconds_per_unit)
        .ok()
        .filter(|time| !time.is_zero())
        .ok_or_else(wrong)
}

/// The objects of the newest release of Redisson, which a campaign searches if it names none.
const OBJECTS: u32 = 14;

impl Plan {
    pub fn run(&self) -> Result<u8, String> {
        let share = self.budget / u32::try_from(self.jobs).unwrap_or(u32::MAX);
        let mut command = self.command.clone();
        let given =
            |name: &str| command.iter().any(|word| word == name || word.starts_with(&format!("{name}=")));
        if let Some(own) = ["--shard", "--output", "--seconds"].into_iter().find(|name| given(name)) {
            return Err(format!("the plan sets {own} itself"));
        }
        match command[0].as_str() {
            "fuzz" if given("--runs") || given("--exhaustive") => {}
            "fuzz" => {
                let named = command
                    .iter()
                    .filter(|word| *word == "--object" || word.starts_with("--object="))
                    .count();
                let objects = if named > 0 { named as u32 } else { OBJECTS };
                let seconds = (share / objects).as_secs_f64();
                if seconds < 1.0 {
                    return Err(format!(
                        "{seconds:.2} s for each object of a shard are too little: use fewer jobs"
                    ));
                }
                command.extend(["--seconds".to_owned(), format!("{seconds:.0}")]);
            }
            "mutate" => {}
            other => return Err(format!("a campaign is fuzz or mutate, not {other}")),
        }
        let deadline = share + SLACK;
        match self.format {
            Format::Text => print!("{}", self.text(&command, share)),
            Format::Kubernetes => print!("{}", self.kubernetes(&command, deadline)),
            Format::Slurm => print!("{}", self.slurm(&command, deadline)),
            Format::Github if self.jobs > MATRIX => {
                return Err(format!("a matrix of GitHub Actions has at most {MATRIX} jobs"));
            }
            Format::Github => print!("{}", self.github(&command, deadline)),
        }
        Ok(0)
    }

    fn text(&self, command: &[String], share: Duration) -> String {
        let Plan { jobs, .. } = self;
        format!(
            "# {jobs} jobs, each about {:.0} s. Job I of 1 to {jobs}:\n{} --shard I/{jobs} --output reports\n\n# Then, with the reports of all:\nredlatch campaign merge reports\n",
            share.as_secs_f64(),
            shell("redlatch", command)
        )
    }

    fn kubernetes(&self, command: &[String], deadline: Duration) -> String {
        let Plan { jobs, image, .. } = self;
        let shard = format!("auto/{jobs}");
        let words = command.iter().map(String::as_str).chain(["--shard", &shard, "--output", "/reports"]);
        let args: String = words.map(|word| format!("            - {}\n", serde_json::json!(word))).collect();
        format!(
            r#"# An indexed job: pod I runs shard I of {jobs}. A violation does not fail a pod, the merge tells it:
#   redlatch campaign merge reports
apiVersion: batch/v1
kind: Job
metadata:
  name: redlatch-campaign
spec:
  completionMode: Indexed
  completions: {jobs}
  parallelism: {jobs}
  backoffLimitPerIndex: 1
  maxFailedIndexes: {jobs}
  activeDeadlineSeconds: {}
  template:
    spec:
      restartPolicy: Never
      containers:
        - name: redlatch
          image: {}
          args:
{args}          resources:
            requests:
              cpu: "1"
              memory: 256Mi
          volumeMounts:
            - name: jars
              mountPath: /jars
              readOnly: true
            - name: reports
              mountPath: /reports
      volumes:
        - name: jars
          persistentVolumeClaim:
            claimName: redlatch-jars
            readOnly: true
        - name: reports
          persistentVolumeClaim:
            claimName: redlatch-reports
"#,
            2 * deadline.as_secs(),
            serde_json::json!(image),
        )
    }

    fn slurm(&self, command: &[String], deadline: Duration) -> String {
        let Plan { jobs, .. } = self;
        format!(
            r#"#!/usr/bin/env bash
# An array of {jobs} jobs, one for each shard. In a directory that all share:
#   mkdir -p reports && sbatch slurm.sh
#   redlatch campaign merge reports
#SBATCH --job-name=redlatch-campaign
#SBATCH --array=1-{jobs}
#SBATCH --ntasks=1
#SBATCH --cpus-per-task=1
#SBATCH --mem=256M
#SBATCH --time={}
#SBATCH --output=reports/%a.log
{} --shard auto/{jobs} --output reports
"#,
            deadline.as_secs().div_ceil(60),
            shell("redlatch", command)
        )
    }

    fn github(&self, command: &[String], deadline: Duration) -> String {
        let Plan { jobs, .. } = self;
        let shards: Vec<String> = (1..=*jobs).map(|shard| shard.to_string()).collect();
        format!(
            r#"# A matrix of {jobs} jobs, one for each shard, and a job that merges their reports.
name: campaign

on:
  workflow_dispatch:

permissions:
  contents: read

jobs:
  shard:
    runs-on: ubuntu-24.04
    timeout-minutes: {}
    strategy:
      fail-fast: false
      matrix:
        shard: [{}]
    steps:
      - uses: actions/checkout@v4
      - run: cargo install --path . --locked
      - run: {} --shard ${{{{ matrix.shard }}}}/{jobs} --output reports
      - uses: actions/upload-artifact@v4
        with:
          name: shard-${{{{ matrix.shard }}}}
          path: reports
  merge:
    runs-on: ubuntu-24.04
    needs: shard
    if: always()
    steps:
      - uses: actions/checkout@v4
      - run: cargo install --path . --locked
      - uses: actions/download-artifact@v4
        with:
          path: reports
          merge-multiple: true
      - run: redlatch campaign merge reports
"#,
            deadline.as_secs().div_ceil(60) + 20,
            shards.join(", "),
            shell("redlatch", command),
        )
    }
}

/// Returns a command as a shell reads it.
fn shell(program: &str, args: &[String]) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./@=:,+%".contains(c);
    let quote = |word: &String| match !word.is_empty() && word.chars().all(plain) {
        true => word.clone(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    };
    let words: Vec<String> = args.iter().map(quote).collect();
    format!("{program} {}", words.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_has_a_unit() {
        assert_eq!(parse_budget("10h"), Ok(Duration::from_secs(36_000)));
        assert_eq!(parse_budget("1.5m"), Ok(Duration::from_secs(90)));
        for wrong in ["", "10", "h", "-1h", "0s", "1e300d", "10 h ours", "nanh", "5µ"] {
            assert!(parse_budget(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn words_are_quoted_for_a_shell() {
        let words = ["fuzz", "a b", "it's", ""].map(str::to_owned);
        assert_eq!(shell("redlatch", &words), r"redlatch fuzz 'a b' 'it'\''s' ''");
    }
}
