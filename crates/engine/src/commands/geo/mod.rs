//! Places: members of sorted sets whose scores are geohash numbers.

mod place;
mod search;

use crate::command::{Begin, KeyFlags, KeySpec};
use crate::ctx::Command;
use crate::double::parse_f64;
use crate::error::{CommandError, Result};
use crate::reply::{Outcome, Reply};
use brisk_resp::Protocol;
use brisk_structures::geohash::Point;

pub(super) const FAMILY: &[&[Command]] = &[place::COMMANDS, search::COMMANDS];

/// The key behind the word `keyword`, which is overwritten.
const fn stored_after(keyword: &'static str, from: i16) -> KeySpec {
    let mut spec = KeySpec::at(0).overwrite(KeyFlags::UPDATE);
    spec.begin = Begin::Keyword { keyword, from };
    spec
}

/// Metres of a unit by its name.
fn unit_m(name: &[u8]) -> Result<f64> {
    const UNITS: [(&str, f64); 4] = [("m", 1.0), ("km", 1000.0), ("ft", 0.3048), ("mi", 1609.34)];
    let unit = UNITS.iter().find(|unit| name.eq_ignore_ascii_case(unit.0.as_bytes()));
    unit.map(|unit| unit.1).ok_or_else(|| {
        CommandError::text("ERR unsupported unit provided. please use M, KM, FT, MI")
    })
}

/// Reads longitude and latitude.
fn point(longitude: &[u8], latitude: &[u8]) -> Result<Point> {
    let degrees = |word| parse_f64(word).ok_or(CommandError::NotAFloat);
    let point = Point { longitude: degrees(longitude)?, latitude: degrees(latitude)? };
    if point.is_valid() {
        return Ok(point);
    }
    Err(CommandError::text(format!(
        "ERR invalid longitude,latitude pair {:.6},{:.6}",
        point.longitude, point.latitude
    )))
}

/// The place of a score.
fn place_of(score: f64) -> Point {
    // Any score can stand in a sorted set; C turns negative ones into large numbers.
    let number = if score < 0.0 { score as i64 as u64 } else { score as u64 };
    Point::of_number(number)
}

/// A distance with four decimals, which is text in both protocols.
fn reply_distance(reply: &mut Reply<'_>, distance: f64) -> Outcome {
    reply.bulk(format!("{distance:.4}").as_bytes())
}

/// Two coordinates with up to 17 decimals.
fn reply_point(reply: &mut Reply<'_>, point: Point) {
    reply.array(2);
    for degrees in [point.longitude, point.latitude] {
        let text = format!("{degrees:.17}");
        let text = text.trim_end_matches('0').trim_end_matches('.');
        let text = if text == "-0" { "0" } else { text };
        match reply.protocol() {
            Protocol::Resp2 => {
                reply.bulk(text.as_bytes());
            }
            Protocol::Resp3 => {
                let bytes = reply.buffer().bytes_mut();
                bytes.push(b',');
                bytes.extend_from_slice(text.as_bytes());
                bytes.extend_from_slice(b"\r\n");
            }
        }
    }
}

#[cfg(test)]
mod tests;
