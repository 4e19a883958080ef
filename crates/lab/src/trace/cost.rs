//! What the scripts of a trace cost: the same table on every machine.

use super::replay::Replay;

/// Replays a trace with every instruction counted. The error tells why it does not replay.
pub fn table(text: &str) -> Result<String, String> {
    let (_, lab) = Replay::run_counting(text).map_err(|error| error.to_string())?;
    let mut rows = vec![
        ["script", "sha", "runs", "instructions", "calls", "keys", "bytes in", "bytes out"]
            .map(str::to_owned)
            .to_vec(),
    ];
    for watch in lab.staging.watches.borrow().iter() {
        for (sha, cost) in watch.costs.iter() {
            let each = |sum: u64| format!("{:.1}", sum as f64 / cost.runs as f64);
            rows.push(vec![
                cost.role.map_or("-", |role| role.name()).to_owned(),
                String::from_utf8_lossy(&sha[..8]).into_owned(),
                cost.runs.to_string(),
                each(cost.instructions),
                each(cost.calls),
                each(cost.keys),
                each(cost.bytes_in),
                each(cost.bytes_out),
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
