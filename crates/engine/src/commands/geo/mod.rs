//! The geo group: points on Earth as members of sorted sets, whose scores are geohash numbers.
//!
//! | file | commands |
//! |---|---|
//! | `position` | GEOADD, GEODIST, GEOHASH, GEOPOS |
//! | `search` | the common part of all searches: options, search, reply |
//! | `by_shape`, `by_radius` | the rows: GEOSEARCH and GEOSEARCHSTORE; the older GEORADIUS family |

mod by_radius;
mod by_shape;
mod position;
mod search;

#[cfg(test)]
mod tests;

use crate::base::double::parse_f64;
use crate::base::error::{CommandError, Result};
use crate::base::fixed::FixedText;
use crate::call::ctx::Command;
use crate::command::Arg;
use crate::reply::Reply;
use brisk_resp::Protocol;
use brisk_structures::geohash::Point;

/// The unit of a distance in COMMAND DOCS.
const UNIT: Arg = Arg::one_of(
    "unit",
    &[Arg::token("m", "M"), Arg::token("km", "KM"), Arg::token("ft", "FT"), Arg::token("mi", "MI")],
);

/// Number of meters in a unit.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Unit(f64);

impl Unit {
    fn parse(word: &[u8]) -> Result<Unit> {
        let units = [(b"m" as &[u8], 1.0), (b"km", 1000.0), (b"ft", 0.3048), (b"mi", 1609.34)];
        let found = units.iter().find(|(name, _)| word.eq_ignore_ascii_case(name));
        let unknown = "ERR unsupported unit provided. please use M, KM, FT, MI";
        found.map(|(_, meters)| Unit(*meters)).ok_or_else(|| CommandError::text(unknown))
    }
}

/// The geohash number in a score. Any score is accepted: C converts negative ones to large numbers,
/// and those beyond 64 bits to 0.
#[inline]
fn number_of_score(score: f64) -> u64 {
    const BEYOND: f64 = 18_446_744_073_709_551_616.0;
    match score {
        ..0.0 => score as i64 as u64,
        BEYOND.. => 0,
        _ => score as u64,
    }
}

/// The point for a score.
fn place_of_score(score: f64) -> Point {
    Point::of_number(number_of_score(score))
}

/// The point with this longitude and latitude.
fn point([longitude, latitude]: [&[u8]; 2]) -> Result<Point> {
    let degrees = |word: &[u8]| parse_f64(word).ok_or(CommandError::NotAFloat);
    let point = Point { longitude: degrees(longitude)?, latitude: degrees(latitude)? };
    if point.is_valid() {
        return Ok(point);
    }
    let Point { longitude, latitude } = point;
    let text = format!("ERR invalid longitude,latitude pair {longitude:.6},{latitude:.6}");
    Err(CommandError::text(text))
}

/// Writes a point: degrees with 17 digits after the decimal point, without trailing zeros.
fn reply_point(reply: &mut Reply<'_>, point: Point) {
    reply.array(2);
    for degrees in [point.longitude, point.latitude] {
        with_decimals(degrees, 17, |text| {
            let end = text.iter().rposition(|byte| *byte != b'0').map_or(0, |last| last + 1);
            let text = text[..end].strip_suffix(b".").unwrap_or(&text[..end]);
            match reply.protocol() {
                Protocol::Resp2 => drop(reply.bulk(text)),
                // The text is written, because a double would be written with fewer digits.
                Protocol::Resp3 => {
                    let bytes = reply.buffer().bytes_mut();
                    bytes.push(b',');
                    bytes.extend_from_slice(text);
                    bytes.extend_from_slice(b"\r\n");
                }
            }
        });
    }
}

/// Writes a distance with four digits after the decimal point.
fn reply_distance(reply: &mut Reply<'_>, distance: f64) {
    with_decimals(distance, 4, |text| reply.bulk(text));
}

/// Calls `write` with the text of a number with this number of digits after the decimal point.
fn with_decimals<R>(number: f64, decimals: u32, write: impl FnOnce(&[u8]) -> R) -> R {
    match FixedText::new(number, decimals) {
        Some(text) => write(&text),
        None => write(format!("{number:.*}", decimals as usize).as_bytes()),
    }
}

/// All commands of the group.
pub(super) const GROUP_COMMANDS: &[&[Command]] =
    &[position::COMMANDS, by_shape::COMMANDS, by_radius::COMMANDS];
