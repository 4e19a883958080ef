//! Geohashes of 52 bits: cells of a grid on the Earth, as Redis orders the members of a geospatial index.
//!
//! A geohash interleaves the bits of a latitude and a longitude, each as a fraction of its range. Cells of `step` bits per axis
//! have prefixes of `2 · step` bits, so that the points of a cell have adjacent scores. Distances are those on a sphere. The order of
//! the floating-point operations is that of Redis's `geohash.c` and `geohash_helper.c`, because the digits of replies depend on it.

/// Bits per axis of a score.
pub const STEPS: u32 = 26;
/// The limits of the web Mercator projection (EPSG:900913).
pub const MAX_LATITUDE: f64 = 85.05112878;
pub const MAX_LONGITUDE: f64 = 180.0;

/// In metres.
const EARTH_RADIUS: f64 = 6_372_797.560856;
/// Half the circumference of the projection, in metres.
const MERCATOR_MAX: f64 = 20_037_726.37;
const DEGREE: f64 = std::f64::consts::PI / 180.0;

/// The bits of latitudes; longitudes have the others.
const LATITUDE_BITS: u64 = 0x5555_5555_5555_5555;
const LONGITUDE_BITS: u64 = !LATITUDE_BITS;

/// A place, in degrees.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    pub longitude: f64,
    pub latitude: f64,
}

impl Point {
    /// Returns whether an index can hold the place.
    pub fn is_valid(self) -> bool {
        self.longitude.abs() <= MAX_LONGITUDE && self.latitude.abs() <= MAX_LATITUDE
    }

    /// Returns the score of the cell that contains the place.
    pub fn score(self) -> u64 {
        Cell::around(self, STEPS).bits
    }

    /// Returns the centre of the cell that a score stands for. Any score is one, because clients can set it.
    pub fn of_score(score: f64) -> Point {
        let area = Cell { bits: to_u64(score), steps: STEPS }.area();
        let middle = |(min, max): (f64, f64), limit: f64| ((min + max) / 2.0).min(limit).max(-limit);
        Point {
            longitude: middle(area.longitudes, MAX_LONGITUDE),
            latitude: middle(area.latitudes, MAX_LATITUDE),
        }
    }

    /// Returns the standard geohash of the place, whose latitudes range from −90 to 90. The last of its eleven characters is always
    /// `0`, because a score has no more bits.
    pub fn geohash(self) -> [u8; 11] {
        const ALPHABET: &[u8; 32] = b"0123456789bcdefghjkmnpqrstuvwxyz";
        let bits = encode(self, STEPS, 90.0);
        std::array::from_fn(|at| match at {
            10 => ALPHABET[0],
            _ => ALPHABET[(bits >> (52 - (at + 1) * 5)) as usize & 31],
        })
    }

    /// Returns the distance to another place in metres.
    pub fn distance(self, other: Point) -> f64 {
        let v = ((other.longitude * DEGREE - self.longitude * DEGREE) / 2.0).sin();
        if v == 0.0 {
            return latitude_distance(self.latitude, other.latitude);
        }
        let (latitude, other_latitude) = (self.latitude * DEGREE, other.latitude * DEGREE);
        let u = ((other_latitude - latitude) / 2.0).sin();
        let a = u * u + latitude.cos() * other_latitude.cos() * v * v;
        2.0 * EARTH_RADIUS * a.sqrt().asin()
    }
}

/// Returns the distance of two latitudes in metres.
fn latitude_distance(a: f64, b: f64) -> f64 {
    EARTH_RADIUS * (b * DEGREE - a * DEGREE).abs()
}

/// Converts as C does on x86-64: numbers out of range give what the machine's instruction leaves.
fn to_u64(value: f64) -> u64 {
    const HALF: f64 = 9_223_372_036_854_775_808.0;
    let truncate = |value: f64| if (-HALF..HALF).contains(&value) { value as i64 } else { i64::MIN };
    if value < HALF { truncate(value) as u64 } else { truncate(value - HALF) as u64 ^ 1 << 63 }
}

/// Returns the interleaved fractions of a place, whose latitude ranges up to `max_latitude`.
fn encode(point: Point, steps: u32, max_latitude: f64) -> u64 {
    let fraction = |value: f64, max: f64| ((value + max) / (max + max) * (1u64 << steps) as f64) as u32;
    spread(fraction(point.latitude, max_latitude)) | spread(fraction(point.longitude, MAX_LONGITUDE)) << 1
}

/// Moves each bit of a number to twice its position.
fn spread(number: u32) -> u64 {
    let mut bits = u64::from(number);
    for (shift, mask) in [
        (16, 0x0000_ffff_0000_ffff),
        (8, 0x00ff_00ff_00ff_00ff),
        (4, 0x0f0f_0f0f_0f0f_0f0f),
        (2, 0x3333_3333_3333_3333),
        (1, LATITUDE_BITS),
    ] {
        bits = (bits | bits << shift) & mask;
    }
    bits
}

/// Undoes [`spread`]; ignores the bits between.
fn gather(bits: u64) -> u32 {
    let mut bits = bits & LATITUDE_BITS;
    for (shift, mask) in [
        (1, 0x3333_3333_3333_3333),
        (2, 0x0f0f_0f0f_0f0f_0f0f),
        (4, 0x00ff_00ff_00ff_00ff),
        (8, 0x0000_ffff_0000_ffff),
        (16, 0x0000_0000_ffff_ffff),
    ] {
        bits = (bits | bits >> shift) & mask;
    }
    bits as u32
}

/// A cell of the grid with `steps` bits per axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell {
    bits: u64,
    steps: u32,
}

/// The extent of a cell in degrees: pairs of minimum and maximum.
struct Area {
    longitudes: (f64, f64),
    latitudes: (f64, f64),
}

impl Cell {
    fn around(point: Point, steps: u32) -> Cell {
        Cell { bits: encode(point, steps, MAX_LATITUDE), steps }
    }

    /// Returns the scores of the points in the cell, from the first on and up to, but not including, the second.
    pub fn scores(self) -> (f64, f64) {
        let align = |bits: u64| (bits << (52 - 2 * self.steps)) as f64;
        (align(self.bits), align(self.bits.wrapping_add(1)))
    }

    fn area(self) -> Area {
        let cells = (1u64 << self.steps) as f64;
        let range = |at: u32, max: f64| {
            let edge = |at: u32| -max + f64::from(at) / cells * (max + max);
            (edge(at), edge(at.wrapping_add(1)))
        };
        Area {
            longitudes: range(gather(self.bits >> 1), MAX_LONGITUDE),
            latitudes: range(gather(self.bits), MAX_LATITUDE),
        }
    }

    /// Returns the cell `east` cells to the east and `north` cells to the north, each −1, 0 or 1. The grid wraps around.
    fn neighbour(self, east: i32, north: i32) -> Cell {
        let used = u64::MAX >> (64 - 2 * self.steps);
        let longitude = shifted(self.bits, east, LONGITUDE_BITS, used);
        let latitude = shifted(self.bits, north, LATITUDE_BITS, used);
        Cell { bits: longitude | latitude, ..self }
    }
}

/// Adds −1, 0 or 1 to the number in the bits of one axis.
fn shifted(bits: u64, by: i32, axis: u64, used: u64) -> u64 {
    let (own, others) = (bits & axis, !axis & used);
    match by {
        0 => own,
        // The carry passes through the bits of the other axis if they are ones, and the borrow if they are zeros.
        1 => own.wrapping_add(others.wrapping_add(1)) & axis & used,
        _ => (own | others).wrapping_sub(others.wrapping_add(1)) & axis & used,
    }
}

/// The form of a searched region; lengths in metres.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Shape {
    Circle { radius: f64 },
    Box { width: f64, height: f64 },
}

/// A searched region.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Region {
    pub centre: Point,
    pub shape: Shape,
}

impl Region {
    /// Returns the distance in metres of a place from the centre, or `None` if the place is outside.
    pub fn distance_within(&self, point: Point) -> Option<f64> {
        let centre = self.centre;
        match self.shape {
            Shape::Circle { radius } => {
                let distance = centre.distance(point);
                if distance > radius { None } else { Some(distance) }
            }
            Shape::Box { width, height } => {
                let is_outside = latitude_distance(point.latitude, centre.latitude) > height / 2.0 || {
                    let beside = Point { latitude: point.latitude, ..centre };
                    point.distance(beside) > width / 2.0
                };
                if is_outside { None } else { Some(centre.distance(point)) }
            }
        }
    }

    /// Returns the extent in degrees.
    fn bounds(&self) -> Area {
        let (width, height) = match self.shape {
            Shape::Circle { radius } => (radius, radius),
            Shape::Box { width, height } => (width / 2.0, height / 2.0),
        };
        let Point { longitude, latitude } = self.centre;
        let north = height / EARTH_RADIUS / DEGREE;
        let nearer_pole = if latitude < 0.0 { latitude - north } else { latitude + north };
        let east = width / EARTH_RADIUS / (nearer_pole * DEGREE).cos() / DEGREE;
        Area {
            longitudes: (longitude - east, longitude + east),
            latitudes: (latitude - north, latitude + north),
        }
    }

    /// Returns the distance of the farthest point from the centre, in metres.
    fn radius(&self) -> f64 {
        match self.shape {
            Shape::Circle { radius } => radius,
            Shape::Box { width, height } => {
                ((width / 2.0) * (width / 2.0) + (height / 2.0) * (height / 2.0)).sqrt()
            }
        }
    }

    /// Returns the cells that may contain points of the region, in the order in which Redis scans them: that of the centre and
    /// those around it. No two successive cells are equal; in a large region others may be.
    pub fn cells(&self) -> Vec<Cell> {
        /// East and north of the centre's cell.
        const AROUND: [(i32, i32); 9] =
            [(0, 0), (0, 1), (0, -1), (1, 0), (-1, 0), (1, 1), (-1, 1), (1, -1), (-1, -1)];
        let bounds = self.bounds();
        let mut steps = estimate_steps(self.radius(), self.centre.latitude);
        let mut cell = Cell::around(self.centre, steps);
        let is_too_small = cell.neighbour(0, 1).area().latitudes.1 < bounds.latitudes.1
            || cell.neighbour(0, -1).area().latitudes.0 > bounds.latitudes.0
            || cell.neighbour(1, 0).area().longitudes.1 < bounds.longitudes.1
            || cell.neighbour(-1, 0).area().longitudes.0 > bounds.longitudes.0;
        if steps > 1 && is_too_small {
            steps -= 1;
            cell = Cell::around(self.centre, steps);
        }
        let area = cell.area();
        let is_useless = |(east, north): (i32, i32)| {
            steps >= 2
                && (north < 0 && area.latitudes.0 < bounds.latitudes.0
                    || north > 0 && area.latitudes.1 > bounds.latitudes.1
                    || east < 0 && area.longitudes.0 < bounds.longitudes.0
                    || east > 0 && area.longitudes.1 > bounds.longitudes.1)
        };
        let mut cells: Vec<Cell> = AROUND
            .into_iter()
            .filter(|&at| !is_useless(at))
            .map(|(east, north)| cell.neighbour(east, north))
            .collect();
        cells.dedup();
        cells
    }
}

/// Returns the bits per axis of cells that are about as large as a radius in metres.
fn estimate_steps(mut radius: f64, latitude: f64) -> u32 {
    if radius == 0.0 {
        return STEPS;
    }
    let mut steps = 1i32;
    while radius < MERCATOR_MAX {
        radius *= 2.0;
        steps += 1;
    }
    steps -= 2;
    // Towards the poles a degree of longitude is shorter.
    steps -= i32::from(latitude.abs() > 66.0) + i32::from(latitude.abs() > 80.0);
    steps.clamp(1, STEPS as i32) as u32
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn point(longitude: f64, latitude: f64) -> Point {
        Point { longitude, latitude }
    }

    #[test]
    fn places_have_the_scores_and_geohashes_of_the_documentation() {
        let palermo = point(13.361389, 38.115556);
        assert_eq!(palermo.score(), 3_479_099_956_230_698);
        let of_score = Point::of_score(palermo.score() as f64);
        assert_eq!(&of_score.geohash(), b"sqc8b49rny0");
        let catania = Point::of_score(point(15.087269, 37.502669).score() as f64);
        assert_eq!(format!("{:.4}", of_score.distance(catania)), "166274.1516");
    }

    #[test]
    fn neighbours_wrap_around() {
        let west = Cell::around(point(-180.0, 0.0), 3);
        assert_eq!(west.neighbour(-1, 0), Cell::around(point(179.9, 0.0), 3));
        assert_eq!(west.neighbour(-1, 0).neighbour(1, 0), west);
        assert_eq!(west.neighbour(1, 1).neighbour(-1, -1), west);
    }

    proptest! {
        #[test]
        fn spreading_keeps_every_bit(number: u32) {
            prop_assert_eq!(gather(spread(number)), number);
            prop_assert_eq!(gather(spread(number) | spread(!number) << 1), number);
        }

        #[test]
        fn a_cell_contains_its_place(
            longitude in -180.0..180.0, latitude in -MAX_LATITUDE..MAX_LATITUDE, steps in 1u32..=26,
        ) {
            let place = point(longitude, latitude);
            let area = Cell::around(place, steps).area();
            prop_assert!(area.longitudes.0 <= longitude && longitude <= area.longitudes.1);
            prop_assert!(area.latitudes.0 <= latitude && latitude <= area.latitudes.1);
        }

        #[test]
        fn a_search_misses_no_place_nearby(
            longitude in -170.0..170.0, latitude in -60.0..60.0, radius in 1.0..500_000.0,
            east in -1.0..1.0, north in -1.0..1.0,
        ) {
            let region = Region { centre: point(longitude, latitude), shape: Shape::Circle { radius } };
            let degrees = radius / 111_000.0;
            let place = point(longitude + east * degrees, latitude + north * degrees);
            let score = place.score() as f64;
            if region.distance_within(Point::of_score(score)).is_some() {
                let is_scanned = |cell: Cell| cell.scores().0 <= score && score < cell.scores().1;
                prop_assert!(region.cells().into_iter().any(is_scanned));
            }
        }

        #[test]
        fn no_numbers_panic(score: f64, radius: f64, width: f64, longitude in -180.0..=180.0, latitude in -85.0..=85.0) {
            let place = Point::of_score(score);
            place.geohash();
            for shape in [Shape::Circle { radius: radius.abs() }, Shape::Box { width: width.abs(), height: radius.abs() }] {
                let region = Region { centre: point(longitude, latitude), shape };
                region.distance_within(place);
                prop_assert!(region.cells().into_iter().all(|cell| cell.scores().0 >= 0.0));
            }
        }
    }
}
