//! Reports of a search, for people and programs.

use std::fmt::Write;
use std::path::Path;

use super::runner::{self, Coverage, Line, REPLIES};
use super::{Finding, ObjectReport, OperationReport, schedule};
use crate::invariant::Rules;
use crate::own::OWN;
use crate::script_set::Problem;

/// Renders a violation as a table, with the command that repeats it. `source`: the option that names the scripts' origin.
pub fn text(finding: &Finding, source: &str) -> String {
    let Finding { object, violation, steps, lines, schedules, after, first_steps, reduction, .. } = finding;
    let mut out = String::new();
    let _ = writeln!(
        out,
        "{object}: {} violated at {}: {}",
        violation.invariant.id(),
        violation.operation,
        violation.text
    );
    let _ = writeln!(out, "  invariant: {}", violation.invariant.text());
    let _ = writeln!(
        out,
        "  found after {schedules} schedules, {:.2} s; shrunk from {first_steps} steps to {} in {:.3} s:\n",
        after.as_secs_f64(),
        steps.len(),
        reduction.as_secs_f64()
    );
    out.push_str(&table(lines));
    let _ = writeln!(out, "\n  repeat with: {}", again(finding, source));
    out
}

/// Groups violations that one cause explains: the same operation, at the end of schedules of the same shape. Owners and
/// actions make the shape, leases and times do not.
pub fn causes(findings: &[Finding]) -> Vec<Vec<&Finding>> {
    let shape = |finding: &Finding| (finding.violation.operation, schedule::shape(&finding.steps));
    let mut causes: Vec<Vec<&Finding>> = Vec::new();
    for finding in findings {
        match causes.iter_mut().find(|cause| shape(cause[0]) == shape(finding)) {
            Some(cause) => cause.push(finding),
            None => causes.push(vec![finding]),
        }
    }
    causes
}

/// Renders the further violations of a cause, one in a line.
pub fn further(cause: &[&Finding]) -> String {
    let line = |finding: &&Finding| {
        let Finding { violation, steps, .. } = finding;
        format!("  also: {}: {} ({})\n", name(finding), violation.text, schedule::encode(steps))
    };
    cause.iter().skip(1).map(line).collect()
}

/// Returns the name of a violation: `M2@read.unlock`.
pub fn name(finding: &Finding) -> String {
    format!("{}@{}", finding.violation.invariant.id(), finding.violation.operation)
}

/// Returns a run as a table: each step's request, reply and messages, and the keyspace after it.
pub fn table(lines: &[Line]) -> String {
    let mut out = String::new();
    let width = lines.iter().map(|line| line.what.chars().count()).max().unwrap_or(0).max(4);
    let _ = writeln!(out, "  {:>4} {:>9}  {:2} {:width$}  reply", "step", "at", "by", "what");
    for line in lines {
        let Line { step, at_ms, who, what, reply, messages, keys, .. } = line;
        let _ = writeln!(out, "  {:>4} {:>6} ms  {who:2} {what:width$}  {reply}", step + 1, at_ms);
        for message in messages {
            let _ = writeln!(out, "  {:>18} message {message}", "");
        }
        for key in keys {
            let _ = writeln!(out, "  {:>18} {key}", "");
        }
    }
    out
}

/// Returns the command that repeats a violation.
pub fn again(finding: &Finding, source: &str) -> String {
    let Finding { object, violation, rules, steps, .. } = finding;
    let (id, operation) = (violation.invariant.id(), violation.operation);
    let strict = if *rules == Rules::Strict { " --rules strict" } else { "" };
    let token = match &schedule::encode(steps)[..] {
        "" => "''".to_owned(),
        token => token.to_owned(),
    };
    format!("redlatch fuzz {source} --object {object} --invariant {id}@{operation}{strict} --replay {token}")
}

/// Renders the coverage of a search: schedules, scripts, speed, and the branches that were never reached.
pub fn coverage(report: &ObjectReport) -> String {
    let mut out = String::new();
    let seconds = report.took.as_secs_f64().max(1e-9);
    let _ = writeln!(
        out,
        "{}: {} schedules, {} scripts, {} states, {:.0} scripts/s, {} invariants violated",
        report.object,
        report.schedules,
        report.coverage.scripts,
        report.corpus.reached(),
        report.coverage.scripts as f64 / seconds,
        report.findings.len(),
    );
    let Coverage { replies, branches, .. } = &report.coverage;
    for ((operation, replies), taken) in report.operations.iter().zip(replies).zip(branches) {
        let OperationReport { name, is_present, is_refused, script, branches } = operation;
        // A file describes what it likes.
        if !is_present && report.object == OWN.name {
            continue;
        }
        let seen: Vec<String> = REPLIES
            .iter()
            .zip(replies)
            .filter(|(_, count)| **count > 0)
            .map(|(kind, count)| format!("{kind} {count}"))
            .collect();
        let seen = match (is_present, seen.is_empty()) {
            (false, _) if *is_refused => "not run".to_owned(),
            (false, _) => "not in this release".to_owned(),
            (true, true) => "never reached".to_owned(),
            (true, false) => seen.join(", "),
        };
        let _ = writeln!(out, "  {name:16} {seen}");
        let never = branches.iter().zip(taken).filter(|(_, taken)| **taken == 0);
        for (branch, _) in never {
            let _ = writeln!(out, "  {:16} branch never reached: {script}: {branch}", "");
        }
    }
    out
}

/// Renders the scripts that were not run, or may not be what they were run as, one in a line.
pub fn problems(problems: &[Problem]) -> String {
    problems.iter().map(|problem| format!("{problem}\n")).collect()
}

/// Returns the reports as one JSON document.
pub fn json(reports: &[ObjectReport], problems: &[Problem], source: &str) -> serde_json::Value {
    let objects = reports.iter().map(|report| {
        let causes = causes(&report.findings);
        let findings = causes.iter().flat_map(|cause| cause.iter().map(|finding| (cause[0], *finding)));
        let findings = findings.map(|(first, finding)| {
            let Finding { violation, steps, lines, number, schedules, after, first_steps, reduction, .. } = finding;
            let lines = lines.iter().map(|line| {
                serde_json::json!({
                    "step": line.step + 1, "at_ms": line.at_ms, "by": line.who, "what": line.what,
                    "reply": line.reply, "messages": line.messages, "keys": line.keys,
                })
            });
            serde_json::json!({
                "invariant": violation.invariant.id(), "promise": violation.invariant.text(),
                "operation": violation.operation, "text": violation.text,
                "steps": steps.len(), "schedule": schedule::encode(steps), "number": number, "schedules": schedules,
                "seconds": after.as_secs_f64(), "first_steps": first_steps,
                "cause": name(first), "reduction_seconds": reduction.as_secs_f64(), "again": again(finding, source), "run": lines.collect::<Vec<_>>(),
            })
        });
        let Coverage { replies, branches, scripts, .. } = &report.coverage;
        let operations = report.operations.iter().zip(replies).zip(branches).map(|((operation, replies), taken)| {
            let OperationReport { name, is_present, script, branches, .. } = operation;
            let replies = counts(REPLIES.iter().copied().zip(replies));
            let branches = counts(branches.iter().map(String::as_str).zip(taken));
            serde_json::json!({
                "operation": name, "present": is_present, "replies": replies, "script": script, "branches": branches,
            })
        });
        let mut object = serde_json::json!({
            "object": report.object, "schedules": report.schedules, "scripts": scripts,
            "seconds": report.took.as_secs_f64(), "findings": findings.collect::<Vec<_>>(),
            "coverage": operations.collect::<Vec<_>>(), "corpus": report.corpus.minimal().json(),
        });
        list_never_reached(&mut object);
        object
    });
    let problems = problems.iter().map(
        |Problem { script, what, is_run, .. }| serde_json::json!({"script": script, "what": what, "run": is_run}),
    );
    serde_json::json!({
        "source": source, "objects": objects.collect::<Vec<_>>(), "problems": problems.collect::<Vec<_>>(),
    })
}

/// Converts names with their counts to a JSON object.
fn counts<'a>(
    counts: impl Iterator<Item = (&'a str, &'a u64)>,
) -> serde_json::Map<String, serde_json::Value> {
    counts.map(|(name, count)| (name.to_owned(), (*count).into())).collect()
}

/// Adds the branches that were never reached to the report of an object.
pub(super) fn list_never_reached(object: &mut serde_json::Value) {
    let operations = object["coverage"].as_array().into_iter().flatten();
    let never = operations.flat_map(|operation| {
        let branches = operation["branches"].as_object().into_iter().flatten();
        branches.filter(|(_, taken)| **taken == 0).map(|(branch, _)| {
            serde_json::json!({
                "operation": operation["operation"], "script": operation["script"], "branch": branch,
            })
        })
    });
    object["branches_never_reached"] = never.collect();
}

/// Renders the reports as JUnit XML: a failed test case for each cause of violations, a passed one for each object without
/// violations, an erroneous one for each script that was not run or may not be what it was run as, and the coverage as text.
pub fn junit(reports: &[ObjectReport], problems: &[Problem], source: &str) -> String {
    let escape = |text: &str| {
        text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
    };
    let broken: usize = reports.iter().map(|report| causes(&report.findings).len()).sum();
    let sound = reports.iter().filter(|report| report.findings.is_empty()).count();
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let _ = writeln!(
        out,
        "<testsuite name=\"{}\" tests=\"{}\" failures=\"{broken}\" errors=\"{}\">",
        escape(source),
        broken + sound + problems.len(),
        problems.len()
    );
    for report in reports {
        if report.findings.is_empty() {
            let seconds = report.took.as_secs_f64();
            let _ = writeln!(
                out,
                "  <testcase classname=\"{}\" name=\"all\" time=\"{seconds:.3}\"/>",
                report.object
            );
        }
        for cause in causes(&report.findings) {
            let Finding { object, violation, after, .. } = cause[0];
            let (name, seconds) = (name(cause[0]), after.as_secs_f64());
            let _ =
                writeln!(out, "  <testcase classname=\"{object}\" name=\"{name}\" time=\"{seconds:.3}\">");
            let report = text(cause[0], source) + &further(&cause);
            let (what, report) = (escape(&violation.text), escape(&report));
            let _ = writeln!(out, "    <failure message=\"{what}\">{report}</failure>\n  </testcase>");
        }
    }
    for problem in problems {
        let (name, what) = (escape(&problem.script), escape(&problem.to_string()));
        let _ = writeln!(
            out,
            "  <testcase classname=\"scripts\" name=\"{name}\">\n    <error message=\"{what}\"/>\n  </testcase>"
        );
    }
    let reached: String = reports.iter().map(coverage).collect();
    let _ = writeln!(out, "  <system-out>{}</system-out>\n</testsuite>", escape(&reached));
    out
}

/// The file from which scripts come.
#[derive(Clone, Copy, Debug)]
pub enum Origin<'a> {
    /// The description of a lock.
    File(&'a Path),
    Jar(&'a Path),
}

/// Renders a violation as a test in Rust. For the lock that a file describes, the test repeats the schedule on what the file
/// says then, and expects no violation. For the scripts of a jar, it sends the same commands, expects the same replies, and expects that the
/// schedule violates the invariant in the release.
pub fn test(finding: &Finding, origin: Origin) -> String {
    let Finding { object, violation, rules, lines, steps, .. } = finding;
    let name = format!("{object}_{}_{}", violation.invariant.id(), violation.operation)
        .to_lowercase()
        .replace('.', "_");
    let mut out =
        format!("/// {}: {}.\n#[test]\nfn {name}() {{\n", violation.invariant.text(), violation.text);
    let (Origin::File(path) | Origin::Jar(path)) = origin;
    if let Origin::File(_) = origin {
        let _ = writeln!(
            out,
            "    // {}\n    let found = redlatch::replay_lock_file({:?}, {:?}).expect(\"the file describes a lock\");\n    \
             assert_eq!(found, []);\n}}",
            table(lines).trim_end().replace('\n', "\n    // "),
            path.display().to_string(),
            schedule::encode(steps)
        );
        return out;
    }
    let nodes = runner::nodes(lines);
    let _ = writeln!(out, "    let options = redlatch::SimOptions::default().nodes({nodes});");
    out.push_str("    let mut sim = redlatch::Sim::new(options);\n");
    for node in 0..nodes {
        let _ = writeln!(out, "    let node_{node} = sim.connect({node});");
    }
    for line in lines {
        if line.advanced_ms > 0 {
            let _ = writeln!(out, "    sim.advance({});", line.advanced_ms);
        }
        for exchange in &line.exchanges {
            let _ = writeln!(out, "    // {} {}", line.who, line.what);
            let words: Vec<String> =
                exchange.argv.iter().map(|word| format!("{:?}", String::from_utf8_lossy(word))).collect();
            let reply = exchange.reply.escape_ascii();
            let _ = writeln!(
                out,
                "    assert_eq!(sim.call(node_{}, &[{}]), b\"{reply}\");",
                exchange.node,
                words.join(", ")
            );
        }
    }
    let _ = writeln!(
        out,
        "    let found = redlatch::replay_jar({:?}, {object:?}, {:?}, redlatch::Rules::{rules:?}).expect(\"a jar\");\n    \
         assert!(found.iter().any(|found| (found.invariant, found.operation) == ({:?}, {:?})));\n}}",
        path.display().to_string(),
        schedule::encode(steps),
        violation.invariant.id(),
        violation.operation,
    );
    out
}

/// Shows the runs of a schedule in two releases that behave differently, step by step.
pub fn difference(difference: &super::compare::Difference, old: &str, new: &str) -> String {
    let super::compare::Difference { object, steps, old: before, new: after } = difference;
    format!(
        "{object}: differ after {} steps ({})\n{old}\n{}{new}\n{}",
        steps.len(),
        schedule::encode(steps),
        table(before),
        table(after)
    )
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::fuzz::corpus::Corpus;
    use crate::invariant::Invariant;
    use crate::violation::Violation;

    fn finding(invariant: Invariant, operation: &'static str, token: &str) -> Finding {
        Finding {
            object: "rw",
            violation: Violation { invariant, operation, text: String::new() },
            rules: Rules::AsDocumented,
            steps: schedule::decode(token).expect("a token"),
            lines: Vec::new(),
            number: 0,
            schedules: 1,
            after: Duration::ZERO,
            first_steps: 1,
            reduction: Duration::ZERO,
        }
    }

    #[test]
    fn one_cause_is_an_operation_and_a_shape_of_schedules() {
        let findings = [
            finding(Invariant::M1, "unlock", "500600"),
            finding(Invariant::U1, "unlock", "507602"),
            finding(Invariant::U1, "acquire", "500600"),
            finding(Invariant::M2, "unlock", "500610"),
            finding(Invariant::M3, "unlock", "500"),
        ];
        let causes = causes(&findings);
        let names: Vec<Vec<String>> =
            causes.iter().map(|cause| cause.iter().copied().map(name).collect()).collect();
        assert_eq!(
            names,
            [vec!["M1@unlock", "U1@unlock"], vec!["U1@acquire"], vec!["M2@unlock"], vec!["M3@unlock"]]
        );
        assert_eq!(further(&causes[0]), "  also: U1@unlock:  (507602)\n");
        let report = ObjectReport {
            object: "rw",
            findings: findings.to_vec(),
            schedules: 1,
            coverage: Coverage::default(),
            operations: Vec::new(),
            corpus: Corpus::default(),
            took: Duration::ZERO,
        };
        assert!(junit(&[report], &[], "").contains("tests=\"4\" failures=\"4\" errors=\"0\""));
    }
}
