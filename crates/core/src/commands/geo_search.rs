//! Searches of geospatial indexes, for members in a circle or a box.

use std::cmp::Ordering;

use super::command::*;
use super::ctx::{Ctx, Words};
use super::geo::{parse_point, parse_unit, place, reply_distance, reply_point};
use crate::error::{self, Error, Outcome};
use crate::geohash::{Point, Region, Shape};
use crate::num;
use crate::partial_sort::sort_range;
use crate::store::SortedSet;
use crate::store::sorted_set::ScoreBound;
use crate::version::Version;
use crate::wire::Reply;

const COMPLEXITY: &str = "O(N+log(M)) with N members in the grid cells around the region and M in the index";

/// Returns the specification of a key that follows a keyword, which is searched from argument `from` on.
const fn key_after(keyword: &'static str, from: i32) -> KeySpec {
    KeySpec { flags: STORED, notes: "", begin: Begin::Keyword(keyword, from), find: ONE }
}

const STORED: &[&str] = &["OW", "update"];
const ONE: Find = Find::Range { last: 0, step: 1, limit: 0 };

/// Since Valkey 9.1 only the last of the keywords that say where to store names a key.
const ONE_TARGET: Change = Change {
    since: (NEVER, "9.1.0"),
    apply: |row| {
        row.keys = if row.name == "georadius" { TARGETS_OF_GEORADIUS } else { TARGETS_OF_GEORADIUSBYMEMBER };
        row.keys_of_calls = Some(KEYS_OF_CALLS);
    },
};

const TARGETS_OF_GEORADIUS: &[KeySpec] =
    &[key(&["RO", "access"], 1), variable(key_after("STORE", 6)), variable(key_after("STOREDIST", 6))];
const TARGETS_OF_GEORADIUSBYMEMBER: &[KeySpec] =
    &[key(&["RO", "access"], 1), variable(key_after("STORE", 5)), variable(key_after("STOREDIST", 5))];
const KEYS_OF_CALLS: &[KeySpec] = &[
    key(&["RO", "access"], 1),
    KeySpec {
        begin: Begin::Option { keywords: &["store", "storedist"], from: 5, skipping: &[] },
        ..key_after("", 5)
    },
];

const fn variable(spec: KeySpec) -> KeySpec {
    KeySpec { flags: &["OW", "update", "variable_flags"], ..spec }
}

pub const COMMANDS: &[Command] = &[
    Command {
        name: "georadius",
        arity: -6,
        since: "3.2.0",
        flags: WRITE | DENYOOM | MOVABLEKEYS,
        keys: &[key(&["RO", "access"], 1), key_after("STORE", 6), key_after("STOREDIST", 6)],
        changes: &[ONE_TARGET],
        summary: "Finds the members in a circle around a place, and stores them if asked.",
        complexity: COMPLEXITY,
        run: georadius,
        ..Command::of(Group::Geo)
    },
    Command {
        name: "georadius_ro",
        arity: -6,
        since: "3.2.10",
        flags: READONLY,
        keys: &[key(&["RO", "access"], 1)],
        summary: "Finds the members in a circle around a place.",
        complexity: COMPLEXITY,
        run: georadius_ro,
        ..Command::of(Group::Geo)
    },
    Command {
        name: "georadiusbymember",
        arity: -5,
        since: "3.2.0",
        flags: WRITE | DENYOOM | MOVABLEKEYS,
        keys: &[key(&["RO", "access"], 1), key_after("STORE", 5), key_after("STOREDIST", 5)],
        changes: &[ONE_TARGET],
        summary: "Finds the members in a circle around a member, and stores them if asked.",
        complexity: COMPLEXITY,
        run: georadiusbymember,
        ..Command::of(Group::Geo)
    },
    Command {
        name: "georadiusbymember_ro",
        arity: -5,
        since: "3.2.10",
        flags: READONLY,
        keys: &[key(&["RO", "access"], 1)],
        summary: "Finds the members in a circle around a member.",
        complexity: COMPLEXITY,
        run: georadiusbymember_ro,
        ..Command::of(Group::Geo)
    },
    Command {
        name: "geosearch",
        arity: -7,
        since: "6.2.0",
        flags: READONLY,
        keys: &[key(&["RO", "access"], 1)],
        summary: "Finds the members in a circle or a box.",
        complexity: COMPLEXITY,
        run: geosearch,
        ..Command::of(Group::Geo)
    },
    Command {
        name: "geosearchstore",
        arity: -8,
        since: "6.2.0",
        flags: WRITE | DENYOOM,
        keys: &[key(&["OW", "update"], 1), key(&["RO", "access"], 2)],
        summary: "Stores the members in a circle or a box.",
        complexity: COMPLEXITY,
        run: geosearchstore,
        ..Command::of(Group::Geo)
    },
];

fn georadius(ctx: &mut Ctx) -> Outcome {
    run(ctx, Form::Place { stores: true })
}

fn georadius_ro(ctx: &mut Ctx) -> Outcome {
    run(ctx, Form::Place { stores: false })
}

fn georadiusbymember(ctx: &mut Ctx) -> Outcome {
    run(ctx, Form::Member { stores: true })
}

fn georadiusbymember_ro(ctx: &mut Ctx) -> Outcome {
    run(ctx, Form::Member { stores: false })
}

fn geosearch(ctx: &mut Ctx) -> Outcome {
    run(ctx, Form::Search)
}

fn geosearchstore(ctx: &mut Ctx) -> Outcome {
    run(ctx, Form::SearchStore)
}

/// The forms of a search.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// GEORADIUS: a circle around a place. `stores` allows STORE.
    Place { stores: bool },
    /// GEORADIUSBYMEMBER: a circle around a member.
    Member { stores: bool },
    /// GEOSEARCH: options name the centre and the shape.
    Search,
    /// GEOSEARCHSTORE: the same, and the first key takes the result.
    SearchStore,
}

impl Form {
    fn is_search(self) -> bool {
        matches!(self, Form::Search | Form::SearchStore)
    }

    fn takes_store(self) -> bool {
        matches!(self, Form::Place { stores: true } | Form::Member { stores: true })
    }
}

/// The arguments of a search.
#[derive(Clone, Copy, Default)]
struct Query<'a> {
    has_centre: Centre,
    /// `None` if the member that it names cannot be looked up, because there is no such key.
    centre: Option<Point>,
    /// Lengths in metres, and the unit of the reply.
    shape: Option<(Shape, f64)>,
    order: Option<Order>,
    /// The greatest number of members, and whether the first that are found suffice.
    count: Option<usize>,
    any: bool,
    with_distance: bool,
    with_hash: bool,
    with_place: bool,
    store_at: Option<&'a [u8]>,
    stores_distance: bool,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Centre {
    #[default]
    None,
    Member,
    Place,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Order {
    Ascending,
    Descending,
}

/// Parses a length, which must be at least zero. The errors depend on what it is a length of.
fn parse_length(word: &[u8], not_a_number: &'static str, version: Version) -> Result<f64, Error> {
    num::parse_operand(word, version).ok_or(Error::new(not_a_number))
}

/// Takes a radius and its unit.
fn take_circle(words: &mut Words, version: Version) -> Result<(Shape, f64), Error> {
    let radius = parse_length(words.word()?, "ERR need numeric radius", version)?;
    if radius < 0.0 {
        return Err(Error::new("ERR radius cannot be negative"));
    }
    let unit = parse_unit(words.word()?)?;
    Ok((Shape::Circle { radius: radius * unit }, unit))
}

/// Takes a width, a height and their unit.
fn take_box(words: &mut Words, version: Version) -> Result<(Shape, f64), Error> {
    let width = parse_length(words.word()?, "ERR need numeric width", version)?;
    let height = parse_length(words.word()?, "ERR need numeric height", version)?;
    if height < 0.0 || width < 0.0 {
        return Err(Error::new("ERR height or width cannot be negative"));
    }
    let unit = parse_unit(words.word()?)?;
    Ok((Shape::Box { width: width * unit, height: height * unit }, unit))
}

/// Returns the place of a member, or `None` if there is no index.
fn place_of(set: Option<&SortedSet>, member: &[u8], version: Version) -> Result<Option<Point>, Error> {
    let Some(set) = set else { return Ok(None) };
    place(set, member).map(Some).ok_or_else(|| match version.is_valkey_since(Version::Valkey9_1) {
        true => Error::owned([b"ERR member ".as_slice(), error::c_text(member), b" does not exist"].concat()),
        false => Error::new("ERR could not decode requested zset member"),
    })
}

/// Parses what follows the key. `set` is the index, if it exists.
fn parse<'a>(
    form: Form,
    mut words: Words<'a>,
    set: Option<&SortedSet>,
    version: Version,
) -> Result<Query<'a>, Error> {
    let mut query = Query::default();
    match form {
        Form::Place { .. } => {
            query.centre = Some(parse_point(words.word()?, words.word()?, version)?);
            query.shape = Some(take_circle(&mut words, version)?);
        }
        Form::Member { .. } => {
            query.centre = place_of(set, words.word()?, version)?;
            match set {
                Some(_) => query.shape = Some(take_circle(&mut words, version)?),
                // Without an index Redis does not look at the radius.
                None => words.skip(2),
            }
        }
        Form::Search | Form::SearchStore => {}
    }
    while !words.is_empty() {
        query.take_option(form, &mut words, set, version)?;
    }
    Ok(query)
}

impl<'a> Query<'a> {
    fn take_option(
        &mut self,
        form: Form,
        words: &mut Words<'a>,
        set: Option<&SortedSet>,
        version: Version,
    ) -> Outcome {
        if words.take("WITHDIST") {
            self.with_distance = true;
        } else if words.take("WITHHASH") {
            self.with_hash = true;
        } else if words.take("WITHCOORD") {
            self.with_place = true;
        } else if words.take("ANY") {
            self.any = true;
        } else if words.take("ASC") {
            self.order = Some(Order::Ascending);
        } else if words.take("DESC") {
            self.order = Some(Order::Descending);
        } else if words.take_with("COUNT", 1) {
            let count = usize::try_from(words.int()?).ok().filter(|count| *count > 0);
            self.count = Some(count.ok_or(Error::new("ERR COUNT must be > 0"))?);
        } else if form.takes_store() && words.take_with("STORE", 1) {
            (self.store_at, self.stores_distance) = (words.pop(), false);
        } else if form.takes_store() && words.take_with("STOREDIST", 1) {
            (self.store_at, self.stores_distance) = (words.pop(), true);
        } else if form == Form::SearchStore && words.take("STOREDIST") {
            self.stores_distance = true;
        } else if form.is_search() {
            self.take_region(words, set, version)?;
        } else {
            return Err(error::SYNTAX);
        }
        Ok(())
    }

    /// Takes an option that says where to search.
    fn take_region(&mut self, words: &mut Words, set: Option<&SortedSet>, version: Version) -> Outcome {
        let is_box = matches!(self.shape, Some((Shape::Box { .. }, _)));
        let is_circle = matches!(self.shape, Some((Shape::Circle { .. }, _)));
        if self.has_centre != Centre::Place && words.take_with("FROMMEMBER", 1) {
            self.centre = place_of(set, words.word()?, version)?;
            self.has_centre = Centre::Member;
        } else if self.has_centre != Centre::Member && words.take_with("FROMLONLAT", 2) {
            self.centre = Some(parse_point(words.word()?, words.word()?, version)?);
            self.has_centre = Centre::Place;
        } else if !is_box && words.take_with("BYRADIUS", 2) {
            self.shape = Some(take_circle(words, version)?);
        } else if !is_circle && words.take_with("BYBOX", 3) {
            self.shape = Some(take_box(words, version)?);
        } else {
            return Err(error::SYNTAX);
        }
        Ok(())
    }

    /// Checks that the options fit together.
    fn check(&self, form: Form, name: &[u8], version: Version) -> Outcome {
        let with_details = self.with_distance || self.with_hash || self.with_place;
        let name = error::c_text(name);
        let missing = |what: &str| Error::owned([what.as_bytes(), name].concat());
        if with_details && (self.store_at.is_some() || form == Form::SearchStore) {
            let what = if form == Form::SearchStore { "GEOSEARCHSTORE" } else { "STORE option in GEORADIUS" };
            return Err(format!(
                "ERR {what} is not compatible with WITHDIST, WITHHASH and WITHCOORD options"
            )
            .into());
        }
        if form.is_search() && self.has_centre == Centre::None {
            return Err(missing("ERR exactly one of FROMMEMBER or FROMLONLAT can be specified for "));
        }
        if form.is_search() && self.shape.is_none() {
            return Err(missing(match version.is_valkey_since(Version::Valkey9_0) {
                true => "ERR exactly one of BYRADIUS, BYBOX and BYPOLYGON can be specified for ",
                false => "ERR exactly one of BYRADIUS and BYBOX can be specified for ",
            }));
        }
        if self.any && self.count.is_none() {
            return Err(Error::new("ERR the ANY argument requires COUNT argument"));
        }
        Ok(())
    }

    /// Returns the members of the index in the region, in the order of the reply.
    fn find(&self, set: &SortedSet) -> Vec<Found> {
        let (Some(centre), Some((shape, _))) = (self.centre, self.shape) else { return Vec::new() };
        let enough = self.count.filter(|_| self.any).unwrap_or(usize::MAX);
        let mut found = scan(set, Region { centre, shape }, enough);
        let wanted = self.count.unwrap_or(usize::MAX).min(found.len());
        // Without ANY, COUNT asks for the nearest.
        let nearest_first = self.count.filter(|_| !self.any).map(|_| Order::Ascending);
        if let Some(order) = self.order.or(nearest_first) {
            let compare = |a: &Found, b: &Found| {
                let ascending = a.distance.partial_cmp(&b.distance).unwrap_or(Ordering::Equal);
                if order == Order::Ascending { ascending } else { ascending.reverse() }
            };
            if wanted == found.len() {
                found.sort_by(compare);
            } else {
                sort_range(&mut found, 0..wanted, compare);
            }
        }
        found.truncate(wanted);
        found
    }
}

/// A member that was found, and its distance in metres.
struct Found {
    member: Vec<u8>,
    score: f64,
    point: Point,
    distance: f64,
}

/// Returns the members in a region, cell by cell, until there are `enough`.
fn scan(set: &SortedSet, region: Region, enough: usize) -> Vec<Found> {
    let mut found = Vec::new();
    for cell in region.cells() {
        let (first, end) = cell.scores();
        let ranks = set.ranks_by_score(ScoreBound::Inclusive(first), ScoreBound::Exclusive(end));
        for (member, score) in set.iter_from(ranks.start).take(ranks.len()) {
            let point = Point::of_score(score);
            let Some(distance) = region.distance_within(point) else { continue };
            found.push(Found { member: member.to_vec(), score, point, distance });
            if found.len() >= enough {
                return found;
            }
        }
    }
    found
}

fn run(ctx: &mut Ctx, form: Form) -> Outcome {
    let source = if form == Form::SearchStore { 2 } else { 1 };
    let (key, words) = (ctx.argv[source], ctx.words(source + 1));
    let name = ctx.argv[0];
    let version = ctx.version();
    let set = ctx.read::<SortedSet>(key)?;
    let mut query = parse(form, words, set, version)?;
    query.check(form, name, version)?;
    let found = set.map_or_else(Vec::new, |set| query.find(set));
    if form == Form::SearchStore {
        query.store_at = Some(ctx.argv[1]);
    }
    let unit = query.shape.map_or(1.0, |(_, unit)| unit);
    match query.store_at {
        Some(target) => {
            let event = if form.is_search() { "geosearchstore" } else { "georadiusstore" };
            store(ctx, target, &found, query.stores_distance.then_some(unit), event);
        }
        None => reply_all(ctx.reply, &found, &query, unit),
    }
    Ok(())
}

/// Stores members with their scores or, in this unit, their distances.
fn store(ctx: &mut Ctx, target: &[u8], found: &[Found], unit: Option<f64>, event: &str) {
    let limits = ctx.node.store.limits.clone();
    let mut result = SortedSet::skiplist();
    for Found { member, score, distance, .. } in found {
        result.add(member, unit.map_or(*score, |unit| distance / unit), &limits);
    }
    result.become_listpack_if_possible(&limits);
    ctx.store_result(target, (!found.is_empty()).then_some(result), event, found.len());
    ctx.reply.int(found.len() as i64);
}

fn reply_all(reply: &mut Reply, found: &[Found], query: &Query, unit: f64) {
    let details = query.with_distance as usize + query.with_hash as usize + query.with_place as usize;
    reply.array(found.len());
    for Found { member, score, point, distance } in found {
        if details > 0 {
            reply.array(1 + details);
        }
        reply.bulk(member);
        if query.with_distance {
            reply_distance(reply, distance / unit);
        }
        if query.with_hash {
            reply.int(*score as i64);
        }
        if query.with_place {
            reply_point(reply, *point);
        }
    }
}
