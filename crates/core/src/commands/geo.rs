//! Geospatial indexes: sorted sets whose scores are geohashes. Searches are in [`geo_search`](super::geo_search).

use super::command::*;
use super::ctx::Ctx;
use super::sorted_sets::{AddOptions, add_entries};
use crate::error::{self, Error, Outcome};
use crate::geohash::Point;
use crate::num;
use crate::store::SortedSet;
use crate::version::Version;
use crate::wire::Reply;

pub const COMMANDS: &[Command] = &[
    Command {
        name: "geoadd",
        arity: -5,
        since: "3.2.0",
        flags: WRITE | DENYOOM,
        keys: &[key(&["RW", "update"], 1)],
        summary: "Adds members with their coordinates, or moves members.",
        complexity: "O(log(N)) for each member",
        run: geoadd,
        ..Command::of(Group::Geo)
    },
    Command {
        name: "geodist",
        arity: -4,
        since: "3.2.0",
        flags: READONLY,
        keys: &[key(&["RO", "access"], 1)],
        summary: "Gives the distance of two members.",
        complexity: "O(1)",
        run: geodist,
        ..Command::of(Group::Geo)
    },
    Command {
        name: "geohash",
        arity: -2,
        since: "3.2.0",
        flags: READONLY,
        keys: &[key(&["RO", "access"], 1)],
        summary: "Gives the standard geohashes of members.",
        complexity: "O(1) for each member requested",
        run: geohash,
        ..Command::of(Group::Geo)
    },
    Command {
        name: "geopos",
        arity: -2,
        since: "3.2.0",
        flags: READONLY,
        keys: &[key(&["RO", "access"], 1)],
        summary: "Gives the coordinates of members.",
        complexity: "O(1) for each member requested",
        run: geopos,
        ..Command::of(Group::Geo)
    },
];

/// Parses a longitude and a latitude in degrees.
///
/// # Errors
/// If either is not a number, or no index can hold the place.
pub(super) fn parse_point(longitude: &[u8], latitude: &[u8], version: Version) -> Result<Point, Error> {
    let longitude = num::parse_operand(longitude, version).ok_or(error::NOT_A_FLOAT)?;
    let latitude = num::parse_operand(latitude, version).ok_or(error::NOT_A_FLOAT)?;
    let point = Point { longitude, latitude };
    if !point.is_valid() {
        return Err(format!("ERR invalid longitude,latitude pair {longitude:.6},{latitude:.6}").into());
    }
    Ok(point)
}

/// Returns the length of a unit in metres.
///
/// # Errors
/// If there is no such unit.
pub(super) fn parse_unit(word: &[u8]) -> Result<f64, Error> {
    match error::c_text(word).to_ascii_lowercase().as_slice() {
        b"m" => Ok(1.0),
        b"km" => Ok(1000.0),
        b"ft" => Ok(0.3048),
        b"mi" => Ok(1609.34),
        _ => Err(Error::new("ERR unsupported unit provided. please use M, KM, FT, MI")),
    }
}

/// Writes a distance with four decimals.
pub(super) fn reply_distance(reply: &mut Reply, distance: f64) {
    reply.bulk(format!("{distance:.4}").as_bytes());
}

/// Writes a longitude and a latitude.
pub(super) fn reply_point(reply: &mut Reply, point: Point) {
    reply.array(2);
    reply.coordinate(point.longitude);
    reply.coordinate(point.latitude);
}

/// Returns the place of a member.
pub(super) fn place(set: &SortedSet, member: &[u8]) -> Option<Point> {
    set.score(member).map(Point::of_score)
}

fn geoadd(ctx: &mut Ctx) -> Outcome {
    let mut options = AddOptions::default();
    let mut words = ctx.words(2);
    loop {
        if words.take("NX") {
            options.nx = true;
        } else if words.take("XX") {
            options.xx = true;
        } else if words.take("CH") {
            options.ch = true;
        } else {
            break;
        }
    }
    let (triples, []) = words.rest().as_chunks::<3>() else { return Err(error::SYNTAX) };
    if options.nx && options.xx || triples.is_empty() {
        return Err(error::SYNTAX);
    }
    let mut entries = Vec::with_capacity(triples.len());
    for [longitude, latitude, member] in triples {
        entries.push((*member, parse_point(longitude, latitude, ctx.version())?.score() as f64));
    }
    add_entries(ctx, options, &entries)
}

fn geodist(ctx: &mut Ctx) -> Outcome {
    let unit = match &ctx.argv[4..] {
        [] => 1.0,
        [word] => parse_unit(word)?,
        _ => return Err(error::SYNTAX),
    };
    let (key, from, to) = (ctx.argv[1], ctx.argv[2], ctx.argv[3]);
    let (set, reply) = ctx.read_and_reply::<SortedSet>(key)?;
    match set.and_then(|set| place(set, from).zip(place(set, to))) {
        Some((from, to)) => reply_distance(reply, from.distance(to) / unit),
        None => reply.null(),
    }
    Ok(())
}

fn geohash(ctx: &mut Ctx) -> Outcome {
    for_each_member(ctx, |reply, point| match point {
        Some(point) => reply.bulk(&point.geohash()),
        None => reply.null(),
    })
}

fn geopos(ctx: &mut Ctx) -> Outcome {
    for_each_member(ctx, |reply, point| match point {
        Some(point) => reply_point(reply, point),
        None => reply.null_array(),
    })
}

/// Writes an array with an element for each member that the call names, given its place.
fn for_each_member(ctx: &mut Ctx, mut write: impl FnMut(&mut Reply, Option<Point>)) -> Outcome {
    let (key, members) = (ctx.argv[1], &ctx.argv[2..]);
    let (set, reply) = ctx.read_and_reply::<SortedSet>(key)?;
    reply.array(members.len());
    for member in members {
        write(reply, set.and_then(|set| place(set, member)));
    }
    Ok(())
}
