//! `redlatch fuzz`: searches lock scripts for violated invariants, and shrinks the schedule that shows each.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, ValueEnum};

use super::campaign::shard::{self, Shard};
use redlatch_locks::fuzz::baseline::{self, Baseline};
use redlatch_locks::fuzz::corpus::Corpus;
use redlatch_locks::fuzz::real::Real;
use redlatch_locks::fuzz::report::Origin;
use redlatch_locks::fuzz::runner::Line;
use redlatch_locks::fuzz::{self, ObjectReport, Options, Strategy, compare, report};
use redlatch_locks::invariant::{Invariant, Rules};
use redlatch_locks::model::{Violation, Wanted};
use redlatch_locks::own::description::{self, Broken, DescriptionError};
use redlatch_locks::script_set::{Problem, ScriptSet};

/// Searches the lock scripts of a Redisson release for violated invariants.
///
/// Runs random schedules of several owners against the scripts in a jar, on a server in this process with a
/// simulated clock, and checks every reply, message and key against a model of the lock. Prints each violation
/// with the shortest schedule found that shows it.
///
/// The exit code is 1 if an invariant is violated, and 2 if the search cannot run. If no invariant is violated, it is 0,
/// or 3 if a lock script of the jar was not run or may not be what it was run as.
#[derive(Parser, Debug)]
#[command(name = "redlatch fuzz", bin_name = "redlatch fuzz", max_term_width = 100)]
#[command(after_help = "\
Examples:
  redlatch fuzz --jar redisson-3.4.2.jar --object rw
  redlatch fuzz --jar redisson-4.7.0.jar --invariant M2@read.unlock --seconds 20
  redlatch fuzz --jar redisson-4.7.0.jar --object rlock --exhaustive --owners 2 --depth 4
  redlatch fuzz --jar redisson-4.7.0.jar --baseline redisson-4.6.1.jar
  redlatch fuzz --scripts docs/locks/set-nx.toml
  redlatch fuzz --scripts docs/locks/set-nx.toml --broken
  redlatch fuzz --old redisson-3.8.1.jar --new redisson-3.8.2.jar --object rw
  redlatch fuzz --jar redisson-4.7.0.jar --shard 1/2 --output reports      and so on for 2/2
  redlatch campaign merge reports
  redlatch fuzz --list")]
struct Cli {
    /// The jar of the Redisson release to search.
    #[arg(long, value_name = "JAR", required_unless_present_any = ["list", "old", "scripts"])]
    jar: Option<PathBuf>,

    /// Search a custom lock instead of a jar: a file that describes it, such as docs/locks/set-nx.toml.
    /// docs/own-locks.md explains the form.
    #[arg(long, value_name = "TOML", conflicts_with_all = ["jar", "old"])]
    scripts: Option<PathBuf>,

    /// Make each [[broken]] change of the file of --scripts in turn, and report whether the search notices it. The exit
    /// code is 1 if it does not.
    #[arg(long, requires = "scripts", conflicts_with_all = ["replay", "write_baseline", "baseline"])]
    broken: bool,

    /// Compare two releases instead: prints the first difference for each object. Needs --new.
    #[arg(long, value_name = "JAR", requires = "new", conflicts_with = "jar")]
    old: Option<PathBuf>,

    /// The jar of the release to compare with --old.
    #[arg(long, value_name = "JAR", requires = "old")]
    new: Option<PathBuf>,

    /// An object to search: rlock, rw, fair, fair-nonreentrant, spin, fenced, nonreentrant, semaphore, permit,
    /// latch, rate, faster, multi or redlock. Can be repeated [default: all].
    #[arg(long, value_name = "NAME")]
    object: Vec<String>,

    /// An invariant to check: M1, or M2@read.unlock for one operation only. Can be repeated [default: all].
    #[arg(long, value_name = "ID", value_parser = parse_wanted)]
    invariant: Vec<(Invariant, Option<String>)>,

    /// An invariant not to check: M1, or M2@read.unlock for one operation only. Can be repeated.
    #[arg(long, value_name = "ID", value_parser = parse_wanted)]
    except: Vec<(Invariant, Option<String>)>,

    /// Report only what is new: not what this older release (a jar, or with --scripts a .toml file) violates too in the
    /// same schedule at the same step, or not what this file lists, as --write-baseline or --format json wrote it.
    #[arg(long, value_name = "FILE", conflicts_with = "old")]
    baseline: Option<PathBuf>,

    /// Write the violations to a file for --baseline. The exit code is then 0 or 3.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["old", "replay"])]
    write_baseline: Option<PathBuf>,

    /// Whether to accept behaviour that Redisson documents as intended (as-documented) or to report it (strict).
    #[arg(long, value_name = "RULES", value_enum, default_value = "as-documented")]
    rules: RulesName,

    /// How long to search each object, in seconds.
    #[arg(long, value_name = "SECONDS", default_value = "5")]
    seconds: f64,

    /// How many schedules to try for each object and job, instead of --seconds.
    #[arg(long, value_name = "N")]
    runs: Option<u64>,

    /// The seed of the random schedules.
    #[arg(long, value_name = "NUMBER", default_value = "0")]
    seed: u64,

    /// The number of threads.
    #[arg(long, value_name = "N", default_value = "1")]
    jobs: usize,

    /// Which share of the schedules to try: 2/4 is the second of four; auto/4 takes the number from JOB_COMPLETION_INDEX or
    /// SLURM_ARRAY_TASK_ID.
    #[arg(long, value_name = "I/N", default_value = "1/1", value_parser = shard::parse)]
    shard: Shard,

    /// Write the report of this shard into a directory, for redlatch campaign merge. The exit code is then 0 or 3.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["old", "replay", "write_baseline"])]
    output: Option<PathBuf>,

    /// How to choose schedules: each step by itself (random), owners with priorities that change at a few points (pct), or half of
    /// them from schedules that reached something new (guided).
    #[arg(long, value_name = "STRATEGY", value_enum, default_value = "random", conflicts_with_all = ["exhaustive", "old"])]
    search: Search,

    /// Begin a guided search with the schedules of this report in JSON. Can be repeated.
    #[arg(long, value_name = "FILE", conflicts_with = "old")]
    corpus: Vec<PathBuf>,

    /// Try all schedules of up to --depth steps instead of random ones.
    #[arg(long)]
    exhaustive: bool,

    /// The greatest number of steps in a schedule of --exhaustive.
    #[arg(long, value_name = "N", default_value = "4")]
    depth: usize,

    /// The number of lock owners, 1 to 6.
    #[arg(long, value_name = "N", default_value = "3", value_parser = clap::value_parser!(u8).range(1..=6))]
    owners: u8,

    /// Inject no faults: no lost replies, lost keys or clock jumps.
    #[arg(long)]
    no_faults: bool,

    /// Run only the schedule with this token from a report. Needs one --object.
    #[arg(long, value_name = "TOKEN")]
    replay: Option<String>,

    /// Run each schedule found on a real, empty server too, and report whether its replies are the same.
    #[arg(long, value_name = "HOST:PORT")]
    against: Option<String>,

    /// Print a test in Rust for each violation.
    #[arg(long)]
    emit_test: bool,

    /// The format of the report.
    #[arg(long, value_name = "FORMAT", value_enum, default_value = "text")]
    format: Format,

    /// List the invariants and exit.
    #[arg(long)]
    list: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum RulesName {
    AsDocumented,
    Strict,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Search {
    Random,
    Pct,
    Guided,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    Text,
    Json,
    Junit,
}

fn parse_wanted(text: &str) -> Result<(Invariant, Option<String>), String> {
    Wanted::parse(text).ok_or_else(|| "no such invariant; --list shows them".to_owned())
}

/// Reads a report in JSON.
fn read_report(path: &Path) -> Result<serde_json::Value, String> {
    let bytes = std::fs::read(path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    serde_json::from_slice(&bytes).map_err(|error| format!("{}: {error}", path.display()))
}

/// Runs the subcommand.
pub fn main(args: impl IntoIterator<Item = String>) -> ExitCode {
    let args: Vec<String> = args.into_iter().collect();
    // The earlier name of `redlatch campaign merge`.
    if args.get(1).is_some_and(|arg| arg == "merge") {
        let merge = ["redlatch campaign", "merge", "--format", "json"].map(str::to_owned);
        return super::campaign::main(merge.into_iter().chain(args.into_iter().skip(2)));
    }
    let cli = match super::parse::<Cli>(args) {
        Ok(cli) => cli,
        Err(exit) => return exit,
    };
    match run(&cli) {
        Ok(code) => ExitCode::from(code),
        Err(message) => {
            eprintln!("redlatch fuzz: {message}");
            ExitCode::from(2)
        }
    }
}

/// Returns the exit code of a search.
fn code(is_violated: bool, problems: &[Problem]) -> u8 {
    match (is_violated, problems.is_empty()) {
        (true, _) => 1,
        (false, true) => 0,
        (false, false) => 3,
    }
}

fn run(cli: &Cli) -> Result<u8, String> {
    if cli.list {
        for invariant in Invariant::ALL {
            print!("{:4} {}\n", invariant.id(), invariant.text());
        }
        return Ok(0);
    }
    let rules = match cli.rules {
        RulesName::AsDocumented => Rules::AsDocumented,
        RulesName::Strict => Rules::Strict,
    };
    let wanted = Wanted::these(cli.invariant.clone()).except(cli.except.clone());
    let options = Options {
        objects: cli.object.clone(),
        wanted: wanted.clone(),
        rules,
        seed: cli.seed,
        runs: cli.runs,
        time: Duration::from_secs_f64(cli.seconds.max(0.0)),
        faults: !cli.no_faults,
        owners: usize::from(cli.owners),
        strategy: match cli.search {
            _ if cli.exhaustive => Strategy::Exhaustive(cli.depth),
            Search::Random => Strategy::Random,
            Search::Pct => Strategy::Priorities,
            Search::Guided => Strategy::Guided,
        },
        corpora: corpora(&cli.corpus)?,
        jobs: cli.jobs,
        shard: cli.shard,
        baseline: cli.baseline.as_deref().map(baseline).transpose()?,
        ..Options::default()
    };
    if let (Some(old), Some(new)) = (&cli.old, &cli.new) {
        return differences(old, new, &options);
    }
    let (script_set, origin, source) = match (&cli.jar, &cli.scripts) {
        (Some(jar), _) => (script_set(jar)?, Origin::Jar(jar), format!("--jar {}", jar.display())),
        (None, Some(file)) if cli.broken => return broken(file, options),
        (None, Some(file)) => (own(file)?, Origin::File(file), format!("--scripts {}", file.display())),
        (None, None) => return Err("--jar or --scripts is missing".to_owned()),
    };
    let problems = script_set.problems(&options.objects);
    if let Some(token) = &cli.replay {
        let is_violated = replay(&script_set, cli, token, rules, &wanted)?;
        print!("{}", report::problems(&problems));
        return Ok(code(is_violated, &problems));
    }
    let mut real =
        cli.against.as_deref().map(Real::connect).transpose().map_err(|error| error.to_string())?;
    let reports = fuzz::run(&script_set, &options)
        .map_err(|error| format!("{error}\n{}", report::problems(&problems)).trim_end().to_owned())?;
    match cli.format {
        Format::Text => {
            for report in &reports {
                for cause in report::causes(&report.findings) {
                    print!("{}{}", report::text(cause[0], &source), report::further(&cause));
                    for finding in cause {
                        if let Some(real) = &mut real {
                            print!("  {}: {}\n", report::name(finding), compared(real, &finding.lines)?);
                        }
                        if cli.emit_test {
                            print!("\n{}\n", report::test(finding, origin));
                        }
                    }
                    print!("\n");
                }
            }
            for report in &reports {
                print!("{}", report::coverage(report));
            }
            print!("{}", report::problems(&problems));
            let outdated = options.baseline.as_ref().map(|baseline| baseline.outdated(&script_set, rules));
            for baseline::Known { object, invariant, operation, .. } in outdated.into_iter().flatten() {
                print!("not violated any more: {object} {}@{operation}\n", invariant.id());
            }
        }
        Format::Json => print!("{:#}\n", document(cli, &reports, &problems, &source)),
        Format::Junit => print!("{}", report::junit(&reports, &problems, &source)),
    }
    if let Some(directory) = &cli.output {
        shard::write(directory, &document(cli, &reports, &problems, &source))?;
        return Ok(code(false, &problems));
    }
    if let Some(path) = &cli.write_baseline {
        std::fs::write(path, baseline::list(&reports))
            .map_err(|error| format!("cannot write {}: {error}", path.display()))?;
        return Ok(code(false, &problems));
    }
    Ok(code(reports.iter().any(|report| !report.findings.is_empty()), &problems))
}

/// Returns the reports as a JSON document that can be merged with those of other shards.
fn document(cli: &Cli, reports: &[ObjectReport], problems: &[Problem], source: &str) -> serde_json::Value {
    let mut document = report::json(reports, problems, source);
    let campaign = serde_json::json!({
        "kind": "fuzz", "source": source, "objects": cli.object, "runs": cli.runs, "jobs": cli.jobs, "seed": cli.seed,
        "seconds": cli.runs.is_none().then_some(cli.seconds), "search": format!("{:?}", cli.search).to_lowercase(),
        "depth": cli.exhaustive.then_some(cli.depth), "rules": format!("{:?}", cli.rules), "owners": cli.owners,
        "faults": !cli.no_faults,
    });
    shard::label(&mut document, cli.shard, campaign);
    document
}

/// Prints the differences between two releases, and what was not compared. Returns the exit code.
fn differences(old: &Path, new: &Path, options: &Options) -> Result<u8, String> {
    let sets = [(script_set(old)?, old.display().to_string()), (script_set(new)?, new.display().to_string())];
    let [(old_set, old), (new_set, new)] = &sets;
    let differences = compare::compare(old_set, new_set, options).map_err(|error| error.to_string())?;
    differences.iter().for_each(|difference| print!("{}\n", report::difference(difference, old, new)));
    let mut problems = Vec::new();
    for (set, jar) in &sets {
        let of_set = set.problems(&options.objects);
        of_set.iter().for_each(|problem| print!("{jar}: {problem}\n"));
        problems.extend(of_set);
    }
    for (object, jar) in compare::only_in_one([old_set, new_set]).into_iter().zip([old, new]) {
        object.iter().for_each(|object| print!("only in {jar}: {object}\n"));
    }
    print!("{} objects differ\n", differences.len());
    Ok(code(!differences.is_empty(), &problems))
}

/// Runs a schedule on a real server and tells whether its replies are the same.
fn compared(real: &mut Real, lines: &[Line]) -> Result<String, String> {
    Ok(match real.compare(lines).map_err(|error| error.to_string())? {
        None => "the real server: the same replies".to_owned(),
        Some(difference) => format!("the real server: differs at {difference}"),
    })
}

/// Reads the schedules of all objects from reports.
fn corpora(paths: &[PathBuf]) -> Result<Vec<(String, Corpus)>, String> {
    let mut corpora: Vec<(String, Corpus)> = Vec::new();
    for path in paths {
        for object in read_report(path)?["objects"].as_array().into_iter().flatten() {
            let name = object["object"].as_str().unwrap_or_default();
            let known = corpora.iter_mut().find(|(known, _)| known == name);
            match known {
                Some((_, corpus)) => corpus.add_json(&object["corpus"]),
                None => {
                    let mut corpus = Corpus::default();
                    corpus.add_json(&object["corpus"]);
                    corpora.push((name.to_owned(), corpus));
                }
            }
        }
    }
    Ok(corpora)
}

/// Reads the description of a custom lock.
fn own(file: &Path) -> Result<ScriptSet, String> {
    crate::fuzz::own_from(file, &read(file)?).map_err(|error| format!("{}: {error}", file.display()))
}

fn read(file: &Path) -> Result<String, String> {
    std::fs::read_to_string(file).map_err(|error| format!("cannot read {}: {error}", file.display()))
}

/// Searches a custom lock with each of the changes that its file says to break it. Returns the exit code.
fn broken(file: &Path, options: Options) -> Result<u8, String> {
    let at = |error: DescriptionError| format!("{}: {error}", file.display());
    let text = read(file)?;
    let changes = description::broken(&text).map_err(at)?;
    if changes.is_empty() {
        return Err(format!("{} has no [[broken]]", file.display()));
    }
    let mut missed = 0;
    for change in &changes {
        let Broken { why, violates, .. } = change;
        let (invariant, operation) = violates;
        let name = operation.iter().fold(invariant.id().to_owned(), |id, at| format!("{id}@{at}"));
        let set = crate::fuzz::own_from(file, &change.apply(&text))
            .map_err(|error| format!("{}: with the change \"{why}\": {error}", file.display()))?;
        let wanted = Wanted::these(vec![violates.clone()]);
        let reports = fuzz::run(&set, &Options { wanted, stop_at_first: true, ..options.clone() })
            .map_err(|error| error.to_string())?;
        match reports.iter().flat_map(|report| &report.findings).next() {
            Some(finding) => print!(
                "noticed: {why}: {name} after {} schedules, in {} steps\n",
                finding.schedules,
                finding.steps.len()
            ),
            None => {
                missed += 1;
                print!("NOT noticed: {why}: no {name}\n");
            }
        }
    }
    Ok(u8::from(missed > 0))
}

/// Reads a baseline: a jar, the description of a custom lock, or a list of violations.
fn baseline(path: &Path) -> Result<Baseline, String> {
    if path.extension().is_some_and(|extension| extension == "toml") {
        return Ok(Baseline::Release(Box::new(own(path)?)));
    }
    let bytes = std::fs::read(path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    if bytes.starts_with(b"PK") {
        return Ok(Baseline::Release(Box::new(script_set(path)?)));
    }
    Baseline::parse(&String::from_utf8_lossy(&bytes)).map_err(|error| format!("{}: {error}", path.display()))
}

/// Reads the lock scripts of a jar.
pub fn script_set(jar: &Path) -> Result<ScriptSet, String> {
    let bytes = std::fs::read(jar).map_err(|error| format!("cannot read {}: {error}", jar.display()))?;
    let contents =
        redlatch_locks::jar::read(&bytes).map_err(|error| format!("{}: {error}", jar.display()))?;
    let script_set = ScriptSet::of_jar(&contents);
    match script_set.scripts().is_empty() {
        true => {
            let problems = report::problems(&script_set.problems(&[]));
            Err(format!("{} has no known lock scripts\n{problems}", jar.display()).trim_end().to_owned())
        }
        false => Ok(script_set),
    }
}

/// Runs the schedule of a token, prints every step, and returns whether an invariant was violated.
fn replay(
    script_set: &ScriptSet,
    cli: &Cli,
    token: &str,
    rules: Rules,
    wanted: &Wanted,
) -> Result<bool, String> {
    let [object] = &cli.object[..] else { return Err("--replay needs one --object".to_owned()) };
    let steps = fuzz::schedule::decode(token).ok_or("not a schedule token")?;
    let mut runner = fuzz::runner_for(script_set, object)
        .ok_or_else(|| format!("no object '{object}' in this release"))?;
    let mut lines = Vec::new();
    let violation = runner.run(&steps, rules, wanted, Some(&mut lines));
    print!("{}", report::table(&lines));
    if let Some(address) = &cli.against {
        print!("  {}\n", compared(&mut Real::connect(address).map_err(|error| error.to_string())?, &lines)?);
    }
    if let Some((_, Violation { invariant, operation, text })) = &violation {
        print!(
            "\n{object}: {} violated at {operation}: {text}\n  invariant: {}\n",
            invariant.id(),
            invariant.text()
        );
    }
    Ok(violation.is_some())
}
