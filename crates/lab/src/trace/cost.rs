//! The cost of each script in a trace, as a table that is the same on every machine.

use super::replay::{Replay, ReplayError};

/// Replays a trace, counts every instruction, and returns the costs as a table.
///
/// # Errors
/// Why the trace does not replay.
pub fn table(text: &str) -> Result<String, ReplayError> {
    let (_, lab) = Replay::run_counting(text)?;
    let mut rows = vec![
        ["script", "sha", "runs", "instructions", "calls", "keys", "bytes in", "bytes out"]
            .map(str::to_owned)
            .to_vec(),
    ];
    for watch in lab.staging.watches.borrow().iter() {
        for (sha, cost) in watch.costs.iter() {
            let mean = |sum: u64| format!("{:.1}", sum as f64 / cost.runs as f64);
            rows.push(vec![
                cost.role.map_or("-", |role| role.name()).to_owned(),
                String::from_utf8_lossy(&sha[..8]).into_owned(),
                cost.runs.to_string(),
                mean(cost.instructions),
                mean(cost.calls),
                mean(cost.keys),
                mean(cost.bytes_in),
                mean(cost.bytes_out),
            ]);
        }
    }
    rows[1..].sort();
    let widths: Vec<usize> = (0..rows[0].len())
        .map(|column| rows.iter().map(|row| row[column].len()).max().unwrap_or(0))
        .collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).enumerate().map(|(index, (cell, &width))| match index {
            0 | 1 => format!("{cell:<width$}"),
            _ => format!("{cell:>width$}"),
        });
        cells.collect::<Vec<_>>().join("  ")
    };
    let lines: Vec<String> = rows.iter().map(line).collect();
    Ok(format!("{}\n\nCounts are means over the runs of a script.\n", lines.join("\n")))
}
