//! Geohash: points on Earth as 52-bit numbers whose order keeps neighbors together.
//!
//! Longitude and latitude are halved alternately. Each bit pair, from the highest on, selects the
//! quarter that contains the point. A *cell* of step n is the area that the first 2n bits select:
//! half the Earth wide at step 1, about 0.6 m at step 26. All points of a cell have consecutive
//! numbers, so a cell is a range of scores.
//!
//! ```text
//!  longitude  -180 ... 180    lon bits   1   0   1        odd positions
//!  latitude    -85 ...  85    lat bits     0   1   1      even positions   ->  cell 100111, step 3
//! ```
//!
//! A search looks at the cell of its center and its eight neighbors, at the finest step whose
//! cells are large enough. The formulas, including their order of evaluation, are those of Redis's
//! GEO commands, since users compare the results with ==.

use std::cmp::Ordering;
use std::f64::consts::PI;
use std::ops::RangeInclusive;

/// Maximum longitude and latitude in degrees that can be encoded (the square of the web Mercator
/// projection).
pub const LONGITUDE_MAX: f64 = 180.0;
pub const LATITUDE_MAX: f64 = 85.051_128_78;
/// Number of bits per coordinate in a full-precision geohash.
pub const STEP_MAX: u32 = 26;

const EARTH_RADIUS_M: f64 = 6_372_797.560_856;
/// Half the length of the projection's equator, in meters.
const MERCATOR_MAX_M: f64 = 20_037_726.37;
const RADIANS_PER_DEGREE: f64 = PI / 180.0;

/// A point: degrees east and north.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    pub longitude: f64,
    pub latitude: f64,
}

/// A square of the grid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cell {
    bits: u64,
    step: u32,
}

/// A bounding box in degrees.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Bounds {
    west: f64,
    south: f64,
    east: f64,
    north: f64,
}

/// The range of degrees that the numbers cover, as half-widths.
#[derive(Clone, Copy)]
struct Grid {
    longitude: f64,
    latitude: f64,
}

const GRID: Grid = Grid { longitude: LONGITUDE_MAX, latitude: LATITUDE_MAX };
/// The grid for the textual form.
const TEXT_GRID: Grid = Grid { longitude: 180.0, latitude: 90.0 };

impl Grid {
    fn cell(self, point: Point, step: u32) -> Cell {
        let part = |at: f64, half: f64| (at + half) / (half + half) * (1u64 << step) as f64;
        let latitude = part(point.latitude, self.latitude) as u32;
        let longitude = part(point.longitude, self.longitude) as u32;
        Cell { bits: spread(latitude) | spread(longitude) << 1, step }
    }

    fn bounds(self, cell: Cell) -> Bounds {
        let edge = |index: u64, half: f64| {
            -half + (index as f64 / (1u64 << cell.step) as f64) * (half + half)
        };
        let (x, y) = (u64::from(gather(cell.bits >> 1)), u64::from(gather(cell.bits)));
        Bounds {
            west: edge(x, self.longitude),
            south: edge(y, self.latitude),
            east: edge(x + 1, self.longitude),
            north: edge(y + 1, self.latitude),
        }
    }
}

/// Puts bit i of `bits` at position 2i.
fn spread(bits: u32) -> u64 {
    let mut x = u64::from(bits);
    x = (x | x << 16) & 0x0000_ffff_0000_ffff;
    x = (x | x << 8) & 0x00ff_00ff_00ff_00ff;
    x = (x | x << 4) & 0x0f0f_0f0f_0f0f_0f0f;
    x = (x | x << 2) & 0x3333_3333_3333_3333;
    (x | x << 1) & 0x5555_5555_5555_5555
}

/// The reverse of [`spread`]; odd positions are ignored.
fn gather(bits: u64) -> u32 {
    let mut x = bits & 0x5555_5555_5555_5555;
    x = (x | x >> 1) & 0x3333_3333_3333_3333;
    x = (x | x >> 2) & 0x0f0f_0f0f_0f0f_0f0f;
    x = (x | x >> 4) & 0x00ff_00ff_00ff_00ff;
    x = (x | x >> 8) & 0x0000_ffff_0000_ffff;
    (x | x >> 16) as u32
}

impl Point {
    /// Returns true if the point can be encoded.
    #[must_use]
    pub fn is_valid(self) -> bool {
        (-LONGITUDE_MAX..=LONGITUDE_MAX).contains(&self.longitude)
            && (-LATITUDE_MAX..=LATITUDE_MAX).contains(&self.latitude)
    }

    /// Returns the 52-bit number of a valid point.
    #[must_use]
    pub fn number(self) -> u64 {
        GRID.cell(self, STEP_MAX).first()
    }

    /// Returns the center of the cell that a number represents.
    #[must_use]
    pub fn of_number(number: u64) -> Point {
        let bounds = GRID.bounds(Cell { bits: number, step: STEP_MAX });
        let middle = |low: f64, high: f64, max: f64| ((low + high) / 2.0).clamp(-max, max);
        Point {
            longitude: middle(bounds.west, bounds.east, LONGITUDE_MAX),
            latitude: middle(bounds.south, bounds.north, LATITUDE_MAX),
        }
    }

    /// Returns the eleven characters of the textual geohash of the point; the last one is always
    /// `0`.
    #[must_use]
    pub fn text(self) -> [u8; 11] {
        const LETTERS: &[u8; 32] = b"0123456789bcdefghjkmnpqrstuvwxyz";
        let bits = TEXT_GRID.cell(self, STEP_MAX).bits;
        let mut text = [b'0'; 11];
        for (at, letter) in text.iter_mut().take(10).enumerate() {
            *letter = LETTERS[(bits >> (52 - (at + 1) * 5) & 31) as usize];
        }
        text
    }

    /// Returns the great-circle distance in meters (haversine).
    #[must_use]
    pub fn distance_m(self, to: Point) -> f64 {
        let radians = |degrees: f64| degrees * RADIANS_PER_DEGREE;
        let v = ((radians(to.longitude) - radians(self.longitude)) / 2.0).sin();
        if v == 0.0 {
            return latitude_distance_m(self.latitude, to.latitude);
        }
        let (here, there) = (radians(self.latitude), radians(to.latitude));
        let u = ((there - here) / 2.0).sin();
        let a = u * u + here.cos() * there.cos() * v * v;
        2.0 * EARTH_RADIUS_M * a.sqrt().asin()
    }
}

fn latitude_distance_m(a: f64, b: f64) -> f64 {
    EARTH_RADIUS_M * (b * RADIANS_PER_DEGREE - a * RADIANS_PER_DEGREE).abs()
}

impl Cell {
    /// Returns the lowest number in the cell.
    #[must_use]
    pub fn first(self) -> u64 {
        self.bits << (2 * (STEP_MAX - self.step))
    }

    /// Returns one more than the highest number in the cell.
    #[must_use]
    pub fn end(self) -> u64 {
        (self.bits + 1) << (2 * (STEP_MAX - self.step))
    }

    /// Returns the cell `east` columns to the east and `north` rows to the north; the grid wraps
    /// around.
    fn neighbor(self, east: i32, north: i32) -> Cell {
        let mask = ((1u64 << self.step) - 1) as u32;
        // The row or column of a center on the very edge is one beyond the last. As in Redis, it
        // stays there unless it is moved.
        let moved = |bits: u64, by: i32| match gather(bits) {
            at if by == 0 => spread(at),
            at => spread(at.wrapping_add_signed(by) & mask),
        };
        Cell { bits: moved(self.bits, north) | moved(self.bits >> 1, east) << 1, step: self.step }
    }
}

/// The searched area, in meters around a center.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Shape {
    Circle {
        radius_m: f64,
    },
    /// The sides run along parallels and meridians.
    Box {
        width_m: f64,
        height_m: f64,
    },
}

impl Shape {
    /// Returns the distance of `point` from `center` if `point` is within the shape.
    #[must_use]
    pub fn distance_within(self, center: Point, point: Point) -> Option<f64> {
        match self {
            Shape::Circle { radius_m } => {
                let distance = center.distance_m(point);
                // A NaN distance counts as within, as in Redis.
                let beyond = distance.partial_cmp(&radius_m) == Some(Ordering::Greater);
                (!beyond).then_some(distance)
            }
            Shape::Box { width_m, height_m } => {
                if latitude_distance_m(point.latitude, center.latitude) > height_m / 2.0 {
                    return None;
                }
                let below = Point { longitude: center.longitude, latitude: point.latitude };
                if point.distance_m(below) > width_m / 2.0 {
                    return None;
                }
                Some(center.distance_m(point))
            }
        }
    }

    /// Prepares the shape around its center to test many points.
    #[must_use]
    pub fn around(self, center: Point) -> Around {
        let everything = 0..=u32::MAX;
        let (columns, rows) =
            self.frame(center).unwrap_or_else(|| (everything.clone(), everything));
        Around { shape: self, center, columns, rows }
    }

    /// Returns the columns and rows of the finest grid outside of which no point is within the
    /// shape. `None` if the shape is too large, or too close to a pole or to the 180th meridian,
    /// for this to be worthwhile.
    fn frame(self, center: Point) -> Option<(RangeInclusive<u32>, RangeInclusive<u32>)> {
        // Reject a point only if it is clearly too far away: rounding errors are far smaller than
        // this margin.
        let reach = |degrees: f64| degrees * (1.0 + 1e-6) + 1e-5;
        let (width, height) = self.halves_m();
        if !(width <= FRAME_MAX_M && height <= FRAME_MAX_M && center.is_valid()) {
            return None;
        }
        let north = reach(height / EARTH_RADIUS_M / RADIANS_PER_DEGREE);
        let edge = center.latitude.abs() + north;
        if edge > 89.0 {
            return None;
        }
        // The haversine of a distance is at least the haversine of the difference in longitude
        // times the cosines of both latitudes. These cosines are at least the cosine at the edge.
        let least = (edge * RADIANS_PER_DEGREE).cos();
        let own = match self {
            Shape::Circle { .. } => (center.latitude * RADIANS_PER_DEGREE).cos(),
            Shape::Box { .. } => least,
        };
        let half = (width / EARTH_RADIUS_M / 2.0).sin() / (own * least).sqrt();
        if half > 0.99 {
            return None;
        }
        let east = reach(2.0 * half.asin() / RADIANS_PER_DEGREE);
        if center.longitude.abs() + east > LONGITUDE_MAX {
            return None;
        }
        let part = |at: f64, half: f64| (at + half) / (half + half) * f64::from(1u32 << STEP_MAX);
        // Casts saturate at 0.
        let parts = |at: f64, reach: f64, half: f64| {
            part(at - reach, half) as u32..=part(at + reach, half) as u32 + 1
        };
        Some((
            parts(center.longitude, east, LONGITUDE_MAX),
            parts(center.latitude, north, LATITUDE_MAX),
        ))
    }

    /// Returns half the width and half the height.
    fn halves_m(self) -> (f64, f64) {
        match self {
            Shape::Circle { radius_m } => (radius_m, radius_m),
            Shape::Box { width_m, height_m } => (width_m / 2.0, height_m / 2.0),
        }
    }

    /// Returns the distance from the center to the farthest point.
    fn reach_m(self) -> f64 {
        match self {
            Shape::Circle { radius_m } => radius_m,
            Shape::Box { width_m, height_m } => {
                ((width_m / 2.0) * (width_m / 2.0) + (height_m / 2.0) * (height_m / 2.0)).sqrt()
            }
        }
    }

    fn bounds(self, center: Point) -> Bounds {
        let (width, height) = self.halves_m();
        let degrees = |radians: f64| radians / RADIANS_PER_DEGREE;
        let latitude = degrees(height / EARTH_RADIUS_M);
        // Meridians are closest together at the edge nearest to the pole.
        let edge = if center.latitude < 0.0 {
            center.latitude - latitude
        } else {
            center.latitude + latitude
        };
        let longitude = degrees(width / EARTH_RADIUS_M / (edge * RADIANS_PER_DEGREE).cos());
        Bounds {
            west: center.longitude - longitude,
            south: center.latitude - latitude,
            east: center.longitude + longitude,
            north: center.latitude + latitude,
        }
    }

    /// Returns the cells that together contain all points within the shape, in the order in which
    /// Redis visits them. Some cells may occur more than once if the shape spans much of the Earth.
    #[must_use]
    pub fn cells(self, center: Point) -> Vec<Cell> {
        let wanted = self.bounds(center);
        let mut step = step_for(self.reach_m(), center.latitude);
        let mut cell = GRID.cell(center, step);
        if step > 1 && !is_covered(cell, &wanted) {
            step -= 1;
            cell = GRID.cell(center, step);
        }
        let own = GRID.bounds(cell);
        // Leave out columns and rows that the shape does not reach.
        let prune = step >= 2;
        let useless = |east: i32, north: i32| {
            prune
                && (north < 0 && own.south < wanted.south
                    || north > 0 && own.north > wanted.north
                    || east < 0 && own.west < wanted.west
                    || east > 0 && own.east > wanted.east)
        };
        const AROUND: [(i32, i32); 9] =
            [(0, 0), (0, 1), (0, -1), (1, 0), (-1, 0), (1, 1), (-1, 1), (1, -1), (-1, -1)];
        let mut cells: Vec<Cell> = Vec::with_capacity(AROUND.len());
        for (east, north) in AROUND {
            if !useless(east, north) {
                let next = cell.neighbor(east, north);
                // Only adjacent repetitions are skipped, as in Redis.
                if cells.len() < 2 || cells.last() != Some(&next) {
                    cells.push(next);
                }
            }
        }
        cells
    }
}

/// Maximum half-width and half-height in meters of a shape that is searched with a frame.
const FRAME_MAX_M: f64 = 1_000_000.0;

/// A shape and its center.
#[derive(Debug, Clone)]
pub struct Around {
    shape: Shape,
    center: Point,
    /// Ranges in the finest grid; points outside of them are not within the shape.
    columns: RangeInclusive<u32>,
    rows: RangeInclusive<u32>,
}

impl Around {
    /// Returns the distance of the point that `number` represents if that point is within the
    /// shape. The result is that of [`Shape::distance_within`], but most points outside are
    /// rejected without trigonometry.
    #[inline]
    #[must_use]
    pub fn distance_of_number(&self, number: u64) -> Option<f64> {
        // Numbers of more than 52 bits represent points at the edge.
        let last = (1 << STEP_MAX) - 1;
        let (x, y) = (gather(number >> 1).min(last), gather(number).min(last));
        if !self.columns.contains(&x) || !self.rows.contains(&y) {
            return None;
        }
        self.shape.distance_within(self.center, Point::of_number(number))
    }
}

/// Returns true if the neighbors of a cell reach as far as the bounds.
fn is_covered(cell: Cell, wanted: &Bounds) -> bool {
    let bounds = |east, north| GRID.bounds(cell.neighbor(east, north));
    bounds(0, 1).north >= wanted.north
        && bounds(0, -1).south <= wanted.south
        && bounds(1, 0).east >= wanted.east
        && bounds(-1, 0).west <= wanted.west
}

/// Returns the finest step whose cells are about as large as the reach.
fn step_for(reach_m: f64, latitude: f64) -> u32 {
    if reach_m == 0.0 {
        return STEP_MAX;
    }
    let mut step = 1;
    let mut reach = reach_m;
    while reach < MERCATOR_MAX_M {
        reach *= 2.0;
        step += 1;
    }
    // Two steps coarser, so that most shapes fit into the nine cells.
    step -= 2;
    // Cells get narrow towards the poles.
    if latitude.abs() > 66.0 {
        step -= 1;
        if latitude.abs() > 80.0 {
            step -= 1;
        }
    }
    step.clamp(1, STEP_MAX as i32) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    const PALERMO: Point = Point { longitude: 13.361389, latitude: 38.115556 };
    const CATANIA: Point = Point { longitude: 15.087269, latitude: 37.502669 };

    #[test]
    fn numbers_texts_and_distances_are_those_of_redis() {
        assert_eq!(PALERMO.number(), 3_479_099_956_230_698);
        assert_eq!(CATANIA.number(), 3_479_447_370_796_909);
        let (palermo, catania) =
            (Point::of_number(PALERMO.number()), Point::of_number(CATANIA.number()));
        assert_eq!(&palermo.text(), b"sqc8b49rny0");
        assert_eq!(&catania.text(), b"sqdtr74hyu0");
        assert_eq!(format!("{:.4}", palermo.distance_m(catania)), "166274.1516");
        assert_eq!(format!("{:.17}", palermo.longitude), "13.36138933897018433");
        assert_eq!(format!("{:.17}", palermo.latitude), "38.11555639549629859");
    }

    #[test]
    fn bits_are_spread_and_gathered() {
        for bits in [0, 1, 2, 0x8000_0001, u32::MAX, 0x1234_5678] {
            assert_eq!(gather(spread(bits)), bits);
            assert_eq!(gather(spread(bits) | spread(!bits) << 1), bits);
        }
    }

    #[test]
    fn every_point_within_a_shape_is_in_its_cells() {
        let mut random = 1u64;
        let mut unit = || {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (random >> 11) as f64 / (1u64 << 53) as f64
        };
        let mut within = 0;
        for _ in 0..if cfg!(miri) { 50 } else { 20_000 } {
            let center =
                Point { longitude: unit() * 340.0 - 170.0, latitude: unit() * 140.0 - 70.0 };
            let radius_m = 10f64.powf(unit() * 5.5);
            let shape = if unit() < 0.5 {
                Shape::Circle { radius_m }
            } else {
                Shape::Box { width_m: 2.0 * radius_m, height_m: radius_m }
            };
            let degrees = radius_m / 111_000.0;
            let point = Point {
                longitude: center.longitude + (unit() - 0.5) * 3.0 * degrees,
                latitude: center.latitude + (unit() - 0.5) * 3.0 * degrees,
            };
            if !point.is_valid() || shape.distance_within(center, point).is_none() {
                continue;
            }
            within += 1;
            let number = point.number();
            let cells = shape.cells(center);
            assert!(
                cells.iter().any(|cell| (cell.first()..cell.end()).contains(&number)),
                "{center:?} {shape:?} {point:?}"
            );
        }
        assert!(within > 10);
    }

    #[test]
    fn the_bounding_box_of_a_shape_contains_all_its_points() {
        let mut random = 5u64;
        let mut unit = || {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (random >> 11) as f64 / (1u64 << 53) as f64
        };
        let (mut within, mut framed) = (0, 0);
        for _ in 0..if cfg!(miri) { 100 } else { 200_000 } {
            let center =
                Point { longitude: unit() * 360.0 - 180.0, latitude: unit() * 170.0 - 85.0 };
            let radius_m = 10f64.powf(unit() * 7.5);
            let shape = if unit() < 0.5 {
                Shape::Circle { radius_m }
            } else {
                Shape::Box { width_m: 2.0 * radius_m, height_m: radius_m * 2.0 * unit() }
            };
            // Most points are near the edge, where a frame that is too narrow would be noticed.
            let degrees = radius_m / 111_000.0;
            let (east, north) = (unit() * 2.0 - 1.0, unit() * 2.0 - 1.0);
            let narrow = (center.latitude * RADIANS_PER_DEGREE).cos();
            let point = Point {
                longitude: center.longitude + east * degrees / narrow * 1.1,
                latitude: center.latitude + north * degrees * 1.1,
            };
            let number = if point.is_valid() { point.number() } else { (unit() * 1e19) as u64 };
            let around = shape.around(center);
            framed += usize::from(around.rows != (0..=u32::MAX));
            let plain = shape.distance_within(center, Point::of_number(number));
            assert_eq!(around.distance_of_number(number), plain, "{center:?} {shape:?} {number}");
            within += usize::from(plain.is_some());
        }
        assert!(cfg!(miri) || within > 10_000 && framed > 100_000, "{within} {framed}");
    }

    #[test]
    fn the_grid_wraps_around() {
        let cell = GRID.cell(Point { longitude: 179.9, latitude: 0.1 }, 4);
        assert_eq!(cell.neighbor(1, 0), GRID.cell(Point { longitude: -179.9, latitude: 0.1 }, 4));
        assert_eq!(cell.neighbor(1, 0).neighbor(-1, 0), cell);
    }
}
