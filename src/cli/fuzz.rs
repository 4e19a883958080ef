//! `redlatch fuzz`: broken promises of lock scripts, with the shortest schedule that shows each.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, ValueEnum};

use redlatch_locks::fuzz::real::Real;
use redlatch_locks::fuzz::runner::Line;
use redlatch_locks::fuzz::{self, Options, compare, report};
use redlatch_locks::invariant::{Invariant, Rules};
use redlatch_locks::model::{Violation, Wanted};
use redlatch_locks::script_set::ScriptSet;

/// Looks for broken promises in the lock scripts of a Redisson release.
///
/// Runs random schedules of several owners against the scripts in a jar, on a server in this process whose clock moves only when
/// told, and compares every reply, message and key with what the lock promises. Each broken promise is printed with the shortest
/// schedule that shows it. The exit code is 1 if there is one, 0 if there is none, 2 if nothing could be run.
#[derive(Parser, Debug)]
#[command(name = "redlatch fuzz", max_term_width = 100)]
#[command(after_help = "\
Examples:
  redlatch fuzz --jar redisson-3.4.2.jar --object rw
  redlatch fuzz --jar redisson-4.7.0.jar --invariant M2@read.unlock --seconds 20
  redlatch fuzz --jar redisson-4.7.0.jar --object rlock --exhaustive --owners 2 --depth 4
  redlatch fuzz --old redisson-3.8.1.jar --new redisson-3.8.2.jar --object rw
  redlatch fuzz --jar redisson-4.7.0.jar --shard 1/2 --format json >1.json      and so on for 2/2
  redlatch fuzz merge 1.json 2.json
  redlatch fuzz --list")]
struct Cli {
    /// The release: a jar with its classes.
    #[arg(long, value_name = "JAR", required_unless_present_any = ["list", "old", "scripts"])]
    jar: Option<PathBuf>,

    /// In place of --jar: a file that describes a lock of one's own, such as docs/locks/set-nx.toml.
    #[arg(long, value_name = "TOML", conflicts_with_all = ["jar", "old"])]
    scripts: Option<PathBuf>,

    /// In place of --jar, with --new: the first difference that clients of two releases see.
    #[arg(long, value_name = "JAR", requires = "new", conflicts_with = "jar")]
    old: Option<PathBuf>,

    /// See --old.
    #[arg(long, value_name = "JAR", requires = "old")]
    new: Option<PathBuf>,

    /// An object: rlock, rw, fair, fair-nonreentrant, spin, fenced, nonreentrant, semaphore, permit, latch, rate, faster, multi, redlock. By
    /// default all.
    #[arg(long, value_name = "NAME")]
    object: Vec<String>,

    /// A promise, such as M1, or M2@read.unlock for what breaks at one operation. By default all.
    #[arg(long, value_name = "ID", value_parser = parse_wanted)]
    invariant: Vec<(Invariant, Option<String>)>,

    /// What counts: as-documented allows what Redisson does on purpose, strict does not.
    #[arg(long, value_name = "RULES", value_enum, default_value = "as-documented")]
    rules: RulesName,

    /// How long to search, for each object.
    #[arg(long, value_name = "SECONDS", default_value = "5")]
    seconds: f64,

    /// How many schedules to try, for each object and job, in place of a time.
    #[arg(long, value_name = "N")]
    runs: Option<u64>,

    /// Where the schedules come from.
    #[arg(long, value_name = "NUMBER", default_value = "0")]
    seed: u64,

    /// How many threads search.
    #[arg(long, value_name = "N", default_value = "1")]
    jobs: usize,

    /// Which part of the schedules to try: 2/4 is the second of four.
    #[arg(long, value_name = "I/N", default_value = "1/1", value_parser = parse_shard)]
    shard: (u64, u64),

    /// Try all schedules of up to --depth steps instead of random ones.
    #[arg(long)]
    exhaustive: bool,

    /// How many steps the schedules of --exhaustive have at most.
    #[arg(long, value_name = "N", default_value = "4")]
    depth: usize,

    /// How many owners there are, at most 3.
    #[arg(long, value_name = "N", default_value = "3", value_parser = clap::value_parser!(u8).range(1..=3))]
    owners: u8,

    /// No lost replies, lost keys and wrong clocks.
    #[arg(long)]
    no_faults: bool,

    /// Runs one schedule, as a report named it.
    #[arg(long, value_name = "WORD")]
    replay: Option<String>,

    /// Runs what was found on a real server without keys too, and says whether it answers the same.
    #[arg(long, value_name = "HOST:PORT")]
    against: Option<String>,

    /// Adds to each finding a test in Rust that repeats it.
    #[arg(long)]
    emit_test: bool,

    /// How to report.
    #[arg(long, value_name = "FORMAT", value_enum, default_value = "text")]
    format: Format,

    /// Lists the promises and ends.
    #[arg(long)]
    list: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum RulesName {
    AsDocumented,
    Strict,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    Text,
    Json,
    Junit,
}

fn parse_wanted(word: &str) -> Result<(Invariant, Option<String>), String> {
    Wanted::parse(word).ok_or_else(|| "no such promise; --list shows them".to_owned())
}

fn parse_shard(word: &str) -> Result<(u64, u64), String> {
    let parse = || {
        let (part, parts) = word.split_once('/')?;
        let (part, parts): (u64, u64) = (part.parse().ok()?, parts.parse().ok()?);
        (1..=parts).contains(&part).then_some((part - 1, parts))
    };
    parse().ok_or_else(|| "not a part such as 2/4".to_owned())
}

/// `redlatch fuzz merge`: adds up the JSON reports of several processes.
fn merge(paths: &[String]) -> Result<(), String> {
    let read = |path: &String| {
        let bytes = std::fs::read(path).map_err(|error| format!("cannot read {path}: {error}"))?;
        serde_json::from_slice(&bytes).map_err(|error| format!("{path}: {error}"))
    };
    let documents: Vec<serde_json::Value> = paths.iter().map(read).collect::<Result<_, String>>()?;
    print!("{:#}\n", report::merge(documents));
    Ok(())
}

/// Runs the subcommand.
pub fn main(args: impl IntoIterator<Item = String>) -> ExitCode {
    let args: Vec<String> = args.into_iter().collect();
    if args.get(1).is_some_and(|word| word == "merge") {
        return match merge(&args[2..]) {
            Ok(()) => ExitCode::SUCCESS,
            Err(message) => {
                eprintln!("redlatch fuzz: {message}");
                ExitCode::from(2)
            }
        };
    }
    let cli = match Cli::try_parse_from(args) {
        Ok(cli) => cli,
        Err(error) => {
            let _ = error.print();
            return ExitCode::from(if error.use_stderr() { 2 } else { 0 });
        }
    };
    match run(&cli) {
        Ok(broken) => ExitCode::from(broken as u8),
        Err(message) => {
            eprintln!("redlatch fuzz: {message}");
            ExitCode::from(2)
        }
    }
}

fn run(cli: &Cli) -> Result<bool, String> {
    if cli.list {
        for invariant in Invariant::ALL {
            print!("{:4} {}\n", invariant.id(), invariant.text());
        }
        return Ok(false);
    }
    let rules = match cli.rules {
        RulesName::AsDocumented => Rules::AsDocumented,
        RulesName::Strict => Rules::Strict,
    };
    let wanted = Wanted::these(cli.invariant.clone());
    let options = Options {
        objects: cli.object.clone(),
        wanted: wanted.clone(),
        rules,
        seed: cli.seed,
        runs: cli.runs,
        time: Duration::from_secs_f64(cli.seconds.max(0.0)),
        faults: !cli.no_faults,
        owners: usize::from(cli.owners),
        exhaustive: cli.exhaustive.then_some(cli.depth),
        jobs: cli.jobs,
        shard: cli.shard,
        ..Options::default()
    };
    if let (Some(old), Some(new)) = (&cli.old, &cli.new) {
        let differences = compare::compare(&kit(old)?, &kit(new)?, &options);
        let (old, new) = (old.display().to_string(), new.display().to_string());
        differences.iter().for_each(|difference| print!("{}\n", report::difference(difference, &old, &new)));
        print!("{} objects differ\n", differences.len());
        return Ok(!differences.is_empty());
    }
    let (kit, source) = match (&cli.jar, &cli.scripts) {
        (Some(jar), _) => (kit(jar)?, format!("--jar {}", jar.display())),
        (None, Some(file)) => (own(file)?, format!("--scripts {}", file.display())),
        (None, None) => return Err("no jar".to_owned()),
    };
    if let Some(word) = &cli.replay {
        return replay(&kit, cli, word, rules, &wanted);
    }
    let mut real =
        cli.against.as_deref().map(Real::connect).transpose().map_err(|error| error.to_string())?;
    let reports = fuzz::run(&kit, &options).map_err(|error| error.to_string())?;
    match cli.format {
        Format::Text => {
            for report in &reports {
                for finding in &report.findings {
                    print!("{}", report::text(finding, &source));
                    if let Some(real) = &mut real {
                        print!("  {}\n", compared(real, &finding.lines)?);
                    }
                    if cli.emit_test {
                        print!("\n{}\n", report::test(finding));
                    }
                    print!("\n");
                }
            }
            for report in &reports {
                print!("{}", report::coverage(report));
            }
            kit.left_out().iter().for_each(|why| print!("not run: {why}\n"));
        }
        Format::Json => print!("{}", report::json(&reports, &source)),
        Format::Junit => print!("{}", report::junit(&reports, &source)),
    }
    Ok(reports.iter().any(|report| !report.findings.is_empty()))
}

/// What a real server makes of a run.
fn compared(real: &mut Real, lines: &[Line]) -> Result<String, String> {
    Ok(match real.compare(lines).map_err(|error| error.to_string())? {
        None => "the real server: the same replies".to_owned(),
        Some(difference) => format!("the real server: differs at {difference}"),
    })
}

/// The scripts that a file describes.
fn own(file: &Path) -> Result<ScriptSet, String> {
    let text =
        std::fs::read_to_string(file).map_err(|error| format!("cannot read {}: {error}", file.display()))?;
    ScriptSet::of_own(&text).map_err(|error| format!("{}: {error}", file.display()))
}

/// The lock scripts of a jar.
pub fn kit(jar: &Path) -> Result<ScriptSet, String> {
    let bytes = std::fs::read(jar).map_err(|error| format!("cannot read {}: {error}", jar.display()))?;
    let scripts =
        redlatch_locks::jar::scripts(&bytes).map_err(|error| format!("{}: {error}", jar.display()))?;
    let kit = ScriptSet::new(&scripts);
    match kit.scripts().is_empty() {
        true => Err(format!("{} has no lock scripts that are known", jar.display())),
        false => Ok(kit),
    }
}

fn replay(kit: &ScriptSet, cli: &Cli, word: &str, rules: Rules, wanted: &Wanted) -> Result<bool, String> {
    let [object] = &cli.object[..] else { return Err("--replay needs one --object".to_owned()) };
    let steps = fuzz::schedule::decode(word).ok_or("not a schedule")?;
    let mut runner =
        fuzz::runner_for(kit, object).ok_or_else(|| format!("no object '{object}' in this release"))?;
    let mut lines = Vec::new();
    let broken = runner.run(&steps, rules, wanted, Some(&mut lines));
    print!("{}", report::table(&lines));
    if let Some(address) = &cli.against {
        print!("  {}\n", compared(&mut Real::connect(address).map_err(|error| error.to_string())?, &lines)?);
    }
    if let Some((_, Violation { invariant, operation, text })) = &broken {
        print!(
            "\n{object}: {} broken at {operation}: {text}\n  promised: {}\n",
            invariant.id(),
            invariant.text()
        );
    }
    Ok(broken.is_some())
}
