//! CLIENT TRACKING, CACHING, TRACKINGINFO and GETREDIR.

use std::collections::BTreeSet;

use super::ctx::Ctx;
use crate::error::{self, Error, Outcome};
use crate::node::tracking::{Tracking, TrackingMode};
use crate::num;

pub(super) fn client_tracking(ctx: &mut Ctx) -> Outcome {
    let options = Options::parse(ctx)?;
    if ctx.argv[2].eq_ignore_ascii_case(b"on") {
        let tracking = options.check(ctx)?;
        ctx.node.enable_tracking(ctx.id, tracking);
    } else if ctx.argv[2].eq_ignore_ascii_case(b"off") {
        ctx.node.disable_tracking(ctx.id);
    } else {
        return Err(error::SYNTAX);
    }
    ctx.reply.ok();
    Ok(())
}

/// The options of CLIENT TRACKING as given.
#[derive(Default)]
struct Options<'a> {
    redirect: u64,
    broadcast: bool,
    opt_in: bool,
    opt_out: bool,
    no_loop: bool,
    prefixes: Vec<&'a [u8]>,
}

impl<'a> Options<'a> {
    fn parse(ctx: &Ctx<'a>) -> Result<Options<'a>, Error> {
        let mut options = Options::default();
        let mut words = ctx.argv[3..].iter();
        while let Some(word) = words.next() {
            let has_argument = !words.as_slice().is_empty();
            match word.to_ascii_lowercase().as_slice() {
                b"redirect" if has_argument => {
                    if options.redirect != 0 {
                        return Err(Error::new("ERR A client can only redirect to a single other client"));
                    }
                    let number = words.next().and_then(|word| num::parse_i64(word));
                    let number = number.ok_or(error::NOT_AN_INTEGER)?;
                    let client = u64::try_from(number).ok().and_then(|n| ctx.node.sessions.by_number(n));
                    if client.is_none() {
                        return Err(Error::new("ERR The client ID you want redirect to does not exist"));
                    }
                    options.redirect = number as u64;
                }
                b"prefix" if has_argument => options.prefixes.extend(words.next()),
                b"bcast" => options.broadcast = true,
                b"optin" => options.opt_in = true,
                b"optout" => options.opt_out = true,
                b"noloop" => options.no_loop = true,
                _ => return Err(error::SYNTAX),
            }
        }
        Ok(options)
    }

    /// Checks the options against each other and against the client's present ones, in Redis's order.
    fn check(self, ctx: &mut Ctx) -> Result<Tracking, Error> {
        let old = ctx.session().tracking.as_deref();
        let was = |mode| old.is_some_and(|old| old.mode == mode);
        if !self.broadcast && !self.prefixes.is_empty() {
            return Err(Error::new("ERR PREFIX option requires BCAST mode to be enabled"));
        }
        if old.is_some() && was(TrackingMode::Broadcast) != self.broadcast {
            return Err(Error::new(
                "ERR You can't switch BCAST mode on/off before disabling tracking for this client, and then re-enabling it with a different mode.",
            ));
        }
        if self.broadcast && (self.opt_in || self.opt_out) {
            return Err(Error::new("ERR OPTIN and OPTOUT are not compatible with BCAST"));
        }
        if self.opt_in && self.opt_out {
            return Err(Error::new("ERR You can't specify both OPTIN mode and OPTOUT mode"));
        }
        if self.opt_in && was(TrackingMode::OptOut) || self.opt_out && was(TrackingMode::OptIn) {
            return Err(Error::new(
                "ERR You can't switch OPTIN/OPTOUT mode before disabling tracking for this client, and then re-enabling it with a different mode.",
            ));
        }
        let mut prefixes = BTreeSet::new();
        if self.broadcast {
            let empty = BTreeSet::new();
            check_prefixes(&self.prefixes, old.map_or(&empty, |old| &old.prefixes))?;
            prefixes.extend(self.prefixes.iter().map(|prefix| Box::from(*prefix)));
            if prefixes.is_empty() {
                prefixes.insert(Box::default());
            }
        }
        let mode = match (self.broadcast, self.opt_in, self.opt_out) {
            (true, ..) => TrackingMode::Broadcast,
            (_, true, _) => TrackingMode::OptIn,
            (_, _, true) => TrackingMode::OptOut,
            _ => TrackingMode::All,
        };
        let caching = old.is_some_and(|old| old.caching);
        let (no_loop, redirect) = (self.no_loop, self.redirect);
        Ok(Tracking { mode, no_loop, redirect, is_redirect_broken: false, caching, prefixes })
    }
}

/// Checks that no two prefixes of a client begin alike.
fn check_prefixes(prefixes: &[&[u8]], old: &BTreeSet<Box<[u8]>>) -> Outcome {
    let overlap = |a: &[u8], b: &[u8]| a.starts_with(b) || b.starts_with(a);
    let refuse = |prefix: &[u8], other: &[u8], which: &[u8]| {
        let text: [&[u8]; 6] = [
            b"ERR Prefix '",
            error::c_text(prefix),
            b"' overlaps with an",
            which,
            error::c_text(other),
            b"'. Prefixes for a single client must not overlap.",
        ];
        Err(Error::owned(text.concat()))
    };
    for (at, prefix) in prefixes.iter().enumerate() {
        if let Some(other) = old.iter().find(|other| overlap(other, prefix)) {
            return refuse(prefix, other, b" existing prefix '");
        }
        if let Some(other) = prefixes[at + 1..].iter().find(|other| overlap(other, prefix)) {
            return refuse(prefix, other, b"other provided prefix '");
        }
    }
    Ok(())
}

pub(super) fn client_caching(ctx: &mut Ctx) -> Outcome {
    let word = ctx.argv[2].to_ascii_lowercase();
    let Some(tracking) = &mut ctx.session().tracking else {
        return Err(Error::new(
            "ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or OPTOUT mode enabled",
        ));
    };
    match (word.as_slice(), tracking.mode) {
        (b"yes", TrackingMode::OptIn) | (b"no", TrackingMode::OptOut) => tracking.caching = true,
        (b"yes", _) => {
            return Err(Error::new(
                "ERR CLIENT CACHING YES is only valid when tracking is enabled in OPTIN mode.",
            ));
        }
        (b"no", _) => {
            return Err(Error::new(
                "ERR CLIENT CACHING NO is only valid when tracking is enabled in OPTOUT mode.",
            ));
        }
        _ => return Err(error::SYNTAX),
    }
    ctx.reply.ok();
    Ok(())
}

pub(super) fn client_getredir(ctx: &mut Ctx) -> Outcome {
    let redirect = ctx.session().tracking.as_ref().map_or(-1, |tracking| tracking.redirect as i64);
    ctx.reply.int(redirect);
    Ok(())
}

pub(super) fn client_trackinginfo(ctx: &mut Ctx) -> Outcome {
    let none = Tracking::default();
    let session = &ctx.node.sessions[ctx.id];
    let is_on = session.tracking.is_some();
    let tracking = session.tracking.as_deref().unwrap_or(&none);
    let mut flags = vec![if is_on { "on" } else { "off" }];
    match tracking.mode {
        TrackingMode::All => {}
        TrackingMode::Broadcast => flags.push("bcast"),
        TrackingMode::OptIn => flags.push("optin"),
        TrackingMode::OptOut => flags.push("optout"),
    }
    if tracking.caching {
        flags.push(if tracking.mode == TrackingMode::OptIn { "caching-yes" } else { "caching-no" });
    }
    if tracking.no_loop {
        flags.push("noloop");
    }
    if tracking.is_redirect_broken {
        flags.push("broken_redirect");
    }
    let reply = &mut *ctx.reply;
    reply.map(3);
    reply.bulk(b"flags");
    reply.set(flags.len());
    flags.iter().for_each(|flag| reply.bulk(flag.as_bytes()));
    reply.bulk(b"redirect");
    reply.int(if is_on { tracking.redirect as i64 } else { -1 });
    reply.bulk(b"prefixes");
    reply.array(tracking.prefixes.len());
    tracking.prefixes.iter().for_each(|prefix| reply.bulk(prefix));
    Ok(())
}
