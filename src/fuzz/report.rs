//! What people and programs read of a search.

use std::fmt::Write;

use super::runner::{Line, REPLIES};
use super::{Finding, ObjectReport, schedule};
use crate::locks::invariant::Rules;

/// A finding as a table, with the line that repeats it. `jar` is what the user named.
pub fn text(finding: &Finding, jar: &str) -> String {
    let Finding { object, violation, steps, lines, schedules, after, .. } = finding;
    let mut out = String::new();
    let _ = writeln!(
        out,
        "{object}: {} broken at {}: {}",
        violation.invariant.id(),
        violation.operation,
        violation.text
    );
    let _ = writeln!(out, "  promised: {}", violation.invariant.text());
    let _ = writeln!(
        out,
        "  found after {schedules} schedules, {:.2} s; shortest of {} steps:\n",
        after.as_secs_f64(),
        steps.len()
    );
    out.push_str(&table(lines));
    let _ = writeln!(out, "\n  again: {}", again(finding, jar));
    out
}

/// A run step by step: what was sent, answered and published, and the keyspace after it.
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

/// The command that shows a finding again.
pub fn again(finding: &Finding, jar: &str) -> String {
    let Finding { object, violation, rules, steps, .. } = finding;
    let (id, operation) = (violation.invariant.id(), violation.operation);
    let strict = if *rules == Rules::Strict { " --rules strict" } else { "" };
    let word = schedule::encode(steps);
    format!(
        "redlatch fuzz --jar {jar} --object {object} --invariant {id}@{operation}{strict} --replay {word}"
    )
}

/// How far a search went: schedules, scripts, speed, and what was never seen.
pub fn coverage(report: &ObjectReport) -> String {
    let mut out = String::new();
    let seconds = report.took.as_secs_f64().max(1e-9);
    let _ = writeln!(
        out,
        "{}: {} schedules, {} scripts, {:.0} scripts/s, {} promises broken",
        report.object,
        report.schedules,
        report.coverage.scripts,
        report.coverage.scripts as f64 / seconds,
        report.findings.len(),
    );
    for (operation, (name, present)) in report.operations.iter().enumerate() {
        let seen: Vec<String> = REPLIES
            .iter()
            .zip(&report.coverage.replies[operation])
            .filter(|(_, count)| **count > 0)
            .map(|(kind, count)| format!("{kind} {count}"))
            .collect();
        let seen = match (present, seen.is_empty()) {
            (false, _) => "not in this release".to_owned(),
            (true, true) => "never reached".to_owned(),
            (true, false) => seen.join(", "),
        };
        let _ = writeln!(out, "  {name:16} {seen}");
    }
    out
}

/// One JSON document.
pub fn json(reports: &[ObjectReport], jar: &str) -> String {
    let objects = reports.iter().map(|report| {
        let findings = report.findings.iter().map(|finding| {
            let Finding { violation, steps, lines, schedules, after, .. } = finding;
            let lines = lines.iter().map(|line| {
                serde_json::json!({
                    "step": line.step + 1, "at_ms": line.at_ms, "by": line.who, "what": line.what,
                    "reply": line.reply, "messages": line.messages, "keys": line.keys,
                })
            });
            serde_json::json!({
                "invariant": violation.invariant.id(), "promise": violation.invariant.text(),
                "operation": violation.operation, "text": violation.text,
                "steps": steps.len(), "schedule": schedule::encode(steps), "schedules": schedules,
                "seconds": after.as_secs_f64(), "again": again(finding, jar), "run": lines.collect::<Vec<_>>(),
            })
        });
        let operations = report.operations.iter().zip(&report.coverage.replies).map(|((name, present), replies)| {
            let replies: serde_json::Map<_, _> =
                REPLIES.iter().zip(replies).map(|(kind, count)| ((*kind).to_owned(), (*count).into())).collect();
            serde_json::json!({"operation": name, "present": present, "replies": replies})
        });
        serde_json::json!({
            "object": report.object, "schedules": report.schedules, "scripts": report.coverage.scripts,
            "seconds": report.took.as_secs_f64(), "findings": findings.collect::<Vec<_>>(),
            "coverage": operations.collect::<Vec<_>>(),
        })
    });
    let document = serde_json::json!({"jar": jar, "objects": objects.collect::<Vec<_>>()});
    format!("{document:#}\n")
}

/// One test case for each promise that is broken, and one that passes for each object without any.
pub fn junit(reports: &[ObjectReport], jar: &str) -> String {
    let escape = |text: &str| {
        text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
    };
    let broken: usize = reports.iter().map(|report| report.findings.len()).sum();
    let sound = reports.iter().filter(|report| report.findings.is_empty()).count();
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let _ = writeln!(
        out,
        "<testsuite name=\"{}\" tests=\"{}\" failures=\"{broken}\">",
        escape(jar),
        broken + sound
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
        for finding in &report.findings {
            let Finding { object, violation, after, .. } = finding;
            let name = format!("{}@{}", violation.invariant.id(), violation.operation);
            let seconds = after.as_secs_f64();
            let _ =
                writeln!(out, "  <testcase classname=\"{object}\" name=\"{name}\" time=\"{seconds:.3}\">");
            let (what, report) = (escape(&violation.text), escape(&text(finding, jar)));
            let _ = writeln!(out, "    <failure message=\"{what}\">{report}</failure>\n  </testcase>");
        }
    }
    out.push_str("</testsuite>\n");
    out
}
