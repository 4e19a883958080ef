//! The cursor and the options that SCAN, HSCAN, SSCAN and ZSCAN have in common.

use super::ctx::Ctx;
use crate::error::{self, Error, Outcome};
use crate::glob;
use crate::num;
use crate::store::ValueType;
use crate::version::Version;

/// The types of keys, which Valkey checks the option TYPE against.
const TYPE_NAMES: [&[u8]; 6] = [b"string", b"list", b"set", b"zset", b"hash", b"stream"];

/// The options of a scan.
pub struct ScanOptions<'a> {
    pub cursor: u64,
    /// The approximate number of elements to visit.
    pub count: usize,
    pattern: Option<&'a [u8]>,
    /// SCAN only: the type of the keys to return.
    pub kind: Option<&'a [u8]>,
    /// HSCAN only: return fields without values.
    pub no_values: bool,
}

impl<'a> ScanOptions<'a> {
    /// Parses the cursor in argument `cursor` and the options after it.
    ///
    /// # Errors
    ///
    /// Fails if the cursor or an option is invalid.
    pub fn parse(ctx: &Ctx<'a>, cursor: usize) -> Result<ScanOptions<'a>, Error> {
        let mut words = ctx.words(cursor + 1);
        let mut options = ScanOptions {
            cursor: num::parse_cursor(ctx.argv[cursor], ctx.version()).ok_or(error::INVALID_CURSOR)?,
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
                options.pattern = words.pop();
            } else if ctx.command.name == "scan" && words.take_with("TYPE", 1) {
                options.kind = words.pop();
                if let Some(kind) = options.kind
                    && ctx.version().is_valkey()
                    && !TYPE_NAMES.iter().any(|name| name.eq_ignore_ascii_case(kind))
                {
                    return Err(Error::owned(
                        [b"ERR unknown type name '", error::c_text(kind), b"'"].concat(),
                    ));
                }
            } else if ctx.version() > Version::V7_2 && words.take("NOVALUES") {
                if ctx.command.name != "hscan" {
                    return Err(Error::new("ERR NOVALUES option can only be used in HSCAN"));
                }
                options.no_values = true;
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

/// Executes HSCAN, SSCAN or ZSCAN: `visit` scans the value and returns the next cursor. As in Redis, options are not
/// checked if the key does not exist.
pub fn scan_value<T: ValueType>(
    ctx: &mut Ctx,
    visit: impl FnOnce(&T, &ScanOptions, &mut Vec<Vec<u8>>) -> u64,
) -> Outcome {
    let (key, version) = (ctx.argv[1], ctx.version());
    num::parse_cursor(ctx.argv[2], version).ok_or(error::INVALID_CURSOR)?;
    let options = ScanOptions::parse(ctx, 2);
    let mut found = Vec::new();
    let next = match ctx.read::<T>(key)? {
        Some(value) => visit(value, &options?, &mut found),
        None => 0,
    };
    reply(ctx, next, &found);
    Ok(())
}

/// Writes the next cursor and the elements.
pub fn reply(ctx: &mut Ctx, cursor: u64, elements: &[impl AsRef<[u8]>]) {
    ctx.reply.array(2);
    ctx.reply.bulk(cursor.to_string().as_bytes());
    ctx.reply.array(elements.len());
    for element in elements {
        ctx.reply.bulk(element.as_ref());
    }
}
