//! What SCAN, HSCAN, SSCAN and ZSCAN have in common: cursor and options.

use super::ctx::{Ctx, Words};
use crate::error::{self, Error};
use crate::glob;
use crate::num;

/// The options of a scan.
pub struct ScanOptions<'a> {
    pub cursor: u64,
    /// About how many elements to visit.
    pub count: usize,
    pattern: Option<&'a [u8]>,
    /// SCAN only: the type that keys must have.
    pub kind: Option<&'a [u8]>,
    /// HSCAN only: fields without values.
    pub no_values: bool,
}

/// The words that a kind of scan knows besides MATCH and COUNT.
#[derive(Clone, Copy, Default)]
pub struct Extra {
    pub kind: bool,
    pub no_values: bool,
    /// NOVALUES is known, but for another kind of scan.
    pub no_values_elsewhere: bool,
}

impl<'a> ScanOptions<'a> {
    /// Reads the cursor and the options behind it.
    pub fn parse(cursor: &[u8], mut words: Words<'a>, extra: Extra) -> Result<ScanOptions<'a>, Error> {
        let mut options = ScanOptions {
            cursor: num::parse_cursor(cursor).ok_or(error::INVALID_CURSOR)?,
            count: 10,
            pattern: None,
            kind: None,
            no_values: false,
        };
        while !words.is_empty() {
            if words.take_with("COUNT", 1) {
                let count = words.int()?;
                if count < 1 {
                    return Err(error::SYNTAX);
                }
                options.count = count as usize;
            } else if words.take_with("MATCH", 1) {
                options.pattern = words.next();
            } else if extra.kind && words.take_with("TYPE", 1) {
                options.kind = words.next();
            } else if extra.no_values && words.take("NOVALUES") {
                options.no_values = true;
            } else if extra.no_values_elsewhere && words.take("NOVALUES") {
                return Err(Error::new("ERR NOVALUES option can only be used in HSCAN"));
            } else {
                return Err(error::SYNTAX);
            }
        }
        Ok(options)
    }

    pub fn matches(&self, element: &[u8]) -> bool {
        match self.pattern {
            None | Some(b"*") => true,
            Some(pattern) => glob::matches(pattern, element, false),
        }
    }
}

/// Writes the next cursor and the elements found.
pub fn reply(ctx: &mut Ctx, cursor: u64, elements: &[impl AsRef<[u8]>]) {
    ctx.reply.array(2);
    ctx.reply.bulk(cursor.to_string().as_bytes());
    ctx.reply.array(elements.len());
    for element in elements {
        ctx.reply.bulk(element.as_ref());
    }
}
