//! LCS: the longest common subsequence of two strings.

use super::ctx::Ctx;
use crate::error::{self, Error, Outcome};
use crate::store::StringValue;

/// A range that both strings have in common: the indexes of its first and last byte in each string.
struct Match {
    a: (usize, usize),
    b: (usize, usize),
}

impl Match {
    fn len(&self) -> usize {
        self.a.1 - self.a.0 + 1
    }
}

pub fn lcs(ctx: &mut Ctx) -> Outcome {
    let not_strings = |_| Error::new("ERR The specified keys must contain string values");
    let mut strings = Vec::new();
    for key in &ctx.argv[1..3] {
        strings.push(
            ctx.read::<StringValue>(key).map_err(not_strings)?.map(StringValue::to_vec).unwrap_or_default(),
        );
    }
    let (mut len_only, mut matches_only, mut with_len, mut min_len) = (false, false, false, 0);
    let mut words = ctx.words(3);
    while !words.is_empty() {
        if words.take("IDX") {
            matches_only = true;
        } else if words.take("LEN") {
            len_only = true;
        } else if words.take("WITHMATCHLEN") {
            with_len = true;
        } else if words.take_with("MINMATCHLEN", 1) {
            min_len = words.int()?.max(0) as usize;
        } else {
            return Err(error::SYNTAX);
        }
    }
    if len_only && matches_only {
        return Err(Error::new("ERR If you want both the length and indexes, please just use IDX."));
    }
    let (a, b) = (&strings[0], &strings[1]);
    if (a.len() as u64 + 1).saturating_mul(b.len() as u64 + 1) > MAX_CELLS {
        return Err(Error::new(
            "ERR Insufficient memory, transient memory for LCS exceeds proto-max-bulk-len",
        ));
    }
    let (common, matches) = solve(a, b);
    if matches_only {
        let shown: Vec<&Match> = matches.iter().filter(|found| found.len() >= min_len).collect();
        ctx.reply.map(2);
        ctx.reply.bulk(b"matches");
        ctx.reply.array(shown.len());
        for found in shown {
            ctx.reply.array(2 + with_len as usize);
            for (start, end) in [found.a, found.b] {
                ctx.reply.array(2);
                ctx.reply.int(start as i64);
                ctx.reply.int(end as i64);
            }
            if with_len {
                ctx.reply.int(found.len() as i64);
            }
        }
        ctx.reply.bulk(b"len");
        ctx.reply.int(common.len() as i64);
    } else if len_only {
        ctx.reply.int(common.len() as i64);
    } else {
        ctx.reply.bulk(&common);
    }
    Ok(())
}

/// The most cells in the table of lengths: as many as fit into 512 MiB.
const MAX_CELLS: u64 = (512 << 20) / 4;

/// Returns the subsequence, and its ranges from the last to the first.
fn solve(a: &[u8], b: &[u8]) -> (Vec<u8>, Vec<Match>) {
    let width = b.len() + 1;
    let mut lengths = vec![0u32; (a.len() + 1) * width];
    for i in 1..=a.len() {
        for j in 1..=b.len() {
            lengths[i * width + j] = if a[i - 1] == b[j - 1] {
                lengths[(i - 1) * width + j - 1] + 1
            } else {
                lengths[(i - 1) * width + j].max(lengths[i * width + j - 1])
            };
        }
    }
    let (mut i, mut j) = (a.len(), b.len());
    let mut common = Vec::new();
    let mut matches: Vec<Match> = Vec::new();
    while i > 0 && j > 0 {
        if a[i - 1] == b[j - 1] {
            (i, j) = (i - 1, j - 1);
            common.push(a[i]);
            match matches.last_mut() {
                Some(last) if last.a.0 == i + 1 && last.b.0 == j + 1 => (last.a.0, last.b.0) = (i, j),
                _ => matches.push(Match { a: (i, i), b: (j, j) }),
            }
        } else if lengths[(i - 1) * width + j] > lengths[i * width + j - 1] {
            i -= 1;
        } else {
            j -= 1;
        }
    }
    common.reverse();
    (common, matches)
}
