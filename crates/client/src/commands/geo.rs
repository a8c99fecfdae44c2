//! Commands of the group `geo`.
//!
//! Written by the test `client_commands` from the server's command table: do not edit.

use super::{PLAIN, READS};
use crate::arg::{ToArg, ToArgs};
use crate::command::Command;
use crate::commands::{options, types};
use crate::request::Request;

/// Adds members with a longitude and latitude, or updates their position.
///
/// `GEOADD key [NX | XX] [CH] longitude latitude member …`
///
/// O(log(N)) for each added member, with N members. Since Redis 3.2.0. Errors: those of the server.
pub fn geoadd(key: impl ToArg, places: impl ToArgs) -> Command<(), i64, options::Geoadd> {
    let mut request = Request::new("GEOADD", PLAIN);
    request.key(key);
    request.end_of_options();
    request.args(places);
    Command::typed(request)
}

/// Returns the distance between two members.
///
/// `GEODIST key member1 member2 [M | KM | FT | MI]`
///
/// O(log(N)). Since Redis 3.2.0. Errors: those of the server.
pub fn geodist(
    key: impl ToArg,
    member1: impl ToArg,
    member2: impl ToArg,
) -> Command<(), Option<f64>, options::Geodist> {
    let mut request = Request::new("GEODIST", READS);
    request.key(key);
    request.arg(member1);
    request.arg(member2);
    Command::typed(request)
}

/// Returns the geohash strings of members.
///
/// `GEOHASH key member …`
///
/// O(log(N)) for each requested member, with N members. Since Redis 3.2.0. Errors: those of the server;
/// `UnexpectedReply` if the reply cannot be converted to `T`.
pub fn geohash<T>(key: impl ToArg, members: impl ToArgs) -> Command<(), Vec<Option<T>>> {
    let mut request = Request::new("GEOHASH", READS);
    request.key(key);
    request.args(members);
    Command::typed(request)
}

/// Returns the longitude and latitude of members.
///
/// `GEOPOS key member …`
///
/// O(N) in the number of requested members. Since Redis 3.2.0. Errors: those of the server.
pub fn geopos(key: impl ToArg, members: impl ToArgs) -> Command<(), Vec<Option<(f64, f64)>>> {
    let mut request = Request::new("GEOPOS", READS);
    request.key(key);
    request.args(members);
    Command::typed(request)
}

/// Returns or stores the members within a given distance of a point.
///
/// `GEORADIUS key longitude latitude radius <M | KM | FT | MI> [WITHCOORD] [WITHDIST] [WITHHASH] [COUNT count
/// [ANY]] [ASC | DESC]`
///
/// O(N+log(M)) with N members in the square around the circle, and M members in total. Since Redis 3.2.0.
/// Errors: those of the server; `UnexpectedReply` if the reply cannot be converted to `T`.
#[deprecated(
    note = "since Redis 6.2.0: `GEOSEARCH` and `GEOSEARCHSTORE` with the `BYRADIUS` argument instead"
)]
pub fn georadius<T>(
    key: impl ToArg,
    longitude: impl ToArg,
    latitude: impl ToArg,
    radius: impl ToArg,
    unit: types::Unit,
) -> Command<(), Vec<T>, options::Georadius> {
    let mut request = Request::new("GEORADIUS", PLAIN);
    request.key(key);
    request.arg(longitude);
    request.arg(latitude);
    request.arg(radius);
    request.arg(unit);
    Command::typed(request)
}

/// Returns or stores the members within a given distance of a point.
///
/// `GEORADIUS key longitude latitude radius <M | KM | FT | MI> [WITHCOORD] [WITHDIST] [WITHHASH] [COUNT count
/// [ANY]] [ASC | DESC] STORE destination`
///
/// O(N+log(M)) with N members in the square around the circle, and M members in total. Since Redis 3.2.0.
/// Errors: those of the server.
#[deprecated(
    note = "since Redis 6.2.0: `GEOSEARCH` and `GEOSEARCHSTORE` with the `BYRADIUS` argument instead"
)]
pub fn georadius_store(
    key: impl ToArg,
    longitude: impl ToArg,
    latitude: impl ToArg,
    radius: impl ToArg,
    unit: types::Unit,
    destination: impl ToArg,
) -> Command<(), i64, options::GeoradiusStore> {
    let mut request = Request::new("GEORADIUS", PLAIN);
    request.key(key);
    request.arg(longitude);
    request.arg(latitude);
    request.arg(radius);
    request.arg(unit);
    request.end_of_options();
    request.arg("STORE");
    request.key(destination);
    Command::typed(request)
}

/// Returns or stores the members within a given distance of a point.
///
/// `GEORADIUS key longitude latitude radius <M | KM | FT | MI> [WITHCOORD] [WITHDIST] [WITHHASH] [COUNT count
/// [ANY]] [ASC | DESC] STOREDIST destination`
///
/// O(N+log(M)) with N members in the square around the circle, and M members in total. Since Redis 3.2.0.
/// Errors: those of the server.
#[deprecated(
    note = "since Redis 6.2.0: `GEOSEARCH` and `GEOSEARCHSTORE` with the `BYRADIUS` argument instead"
)]
pub fn georadius_store_dist(
    key: impl ToArg,
    longitude: impl ToArg,
    latitude: impl ToArg,
    radius: impl ToArg,
    unit: types::Unit,
    destination: impl ToArg,
) -> Command<(), i64, options::GeoradiusStoreDist> {
    let mut request = Request::new("GEORADIUS", PLAIN);
    request.key(key);
    request.arg(longitude);
    request.arg(latitude);
    request.arg(radius);
    request.arg(unit);
    request.end_of_options();
    request.arg("STOREDIST");
    request.key(destination);
    Command::typed(request)
}

/// Returns the members within a given distance of a point. Read-only.
///
/// `GEORADIUS_RO key longitude latitude radius <M | KM | FT | MI> [WITHCOORD] [WITHDIST] [WITHHASH] [COUNT
/// count [ANY]] [ASC | DESC]`
///
/// O(N+log(M)) with N members in the square around the circle, and M members in total. Since Redis 3.2.10.
/// Errors: those of the server; `UnexpectedReply` if the reply cannot be converted to `T`.
#[deprecated(note = "since Redis 6.2.0: `GEOSEARCH` with the `BYRADIUS` argument instead")]
pub fn georadius_ro<T>(
    key: impl ToArg,
    longitude: impl ToArg,
    latitude: impl ToArg,
    radius: impl ToArg,
    unit: types::Unit,
) -> Command<(), Vec<T>, options::GeoradiusRo> {
    let mut request = Request::new("GEORADIUS_RO", READS);
    request.key(key);
    request.arg(longitude);
    request.arg(latitude);
    request.arg(radius);
    request.arg(unit);
    Command::typed(request)
}

/// Returns or stores the members within a given distance of a member.
///
/// `GEORADIUSBYMEMBER key member radius <M | KM | FT | MI> [WITHCOORD] [WITHDIST] [WITHHASH] [COUNT count
/// [ANY]] [ASC | DESC]`
///
/// O(N+log(M)) with N members in the square around the circle, and M members in total. Since Redis 3.2.0.
/// Errors: those of the server; `UnexpectedReply` if the reply cannot be converted to `T`.
#[deprecated(
    note = "since Redis 6.2.0: `GEOSEARCH` and `GEOSEARCHSTORE` with the `BYRADIUS` and `FROMMEMBER` arguments instead"
)]
pub fn georadiusbymember<T>(
    key: impl ToArg,
    member: impl ToArg,
    radius: impl ToArg,
    unit: types::Unit,
) -> Command<(), Vec<T>, options::Georadiusbymember> {
    let mut request = Request::new("GEORADIUSBYMEMBER", PLAIN);
    request.key(key);
    request.arg(member);
    request.arg(radius);
    request.arg(unit);
    Command::typed(request)
}

/// Returns or stores the members within a given distance of a member.
///
/// `GEORADIUSBYMEMBER key member radius <M | KM | FT | MI> [WITHCOORD] [WITHDIST] [WITHHASH] [COUNT count
/// [ANY]] [ASC | DESC] STORE destination`
///
/// O(N+log(M)) with N members in the square around the circle, and M members in total. Since Redis 3.2.0.
/// Errors: those of the server.
#[deprecated(
    note = "since Redis 6.2.0: `GEOSEARCH` and `GEOSEARCHSTORE` with the `BYRADIUS` and `FROMMEMBER` arguments instead"
)]
pub fn georadiusbymember_store(
    key: impl ToArg,
    member: impl ToArg,
    radius: impl ToArg,
    unit: types::Unit,
    destination: impl ToArg,
) -> Command<(), i64, options::GeoradiusbymemberStore> {
    let mut request = Request::new("GEORADIUSBYMEMBER", PLAIN);
    request.key(key);
    request.arg(member);
    request.arg(radius);
    request.arg(unit);
    request.end_of_options();
    request.arg("STORE");
    request.key(destination);
    Command::typed(request)
}

/// Returns or stores the members within a given distance of a member.
///
/// `GEORADIUSBYMEMBER key member radius <M | KM | FT | MI> [WITHCOORD] [WITHDIST] [WITHHASH] [COUNT count
/// [ANY]] [ASC | DESC] STOREDIST destination`
///
/// O(N+log(M)) with N members in the square around the circle, and M members in total. Since Redis 3.2.0.
/// Errors: those of the server.
#[deprecated(
    note = "since Redis 6.2.0: `GEOSEARCH` and `GEOSEARCHSTORE` with the `BYRADIUS` and `FROMMEMBER` arguments instead"
)]
pub fn georadiusbymember_store_dist(
    key: impl ToArg,
    member: impl ToArg,
    radius: impl ToArg,
    unit: types::Unit,
    destination: impl ToArg,
) -> Command<(), i64, options::GeoradiusbymemberStoreDist> {
    let mut request = Request::new("GEORADIUSBYMEMBER", PLAIN);
    request.key(key);
    request.arg(member);
    request.arg(radius);
    request.arg(unit);
    request.end_of_options();
    request.arg("STOREDIST");
    request.key(destination);
    Command::typed(request)
}

/// Returns the members within a given distance of a member. Read-only.
///
/// `GEORADIUSBYMEMBER_RO key member radius <M | KM | FT | MI> [WITHCOORD] [WITHDIST] [WITHHASH] [COUNT count
/// [ANY]] [ASC | DESC]`
///
/// O(N+log(M)) with N members in the square around the circle, and M members in total. Since Redis 3.2.10.
/// Errors: those of the server; `UnexpectedReply` if the reply cannot be converted to `T`.
#[deprecated(
    note = "since Redis 6.2.0: `GEOSEARCH` with the `BYRADIUS` and `FROMMEMBER` arguments instead"
)]
pub fn georadiusbymember_ro<T>(
    key: impl ToArg,
    member: impl ToArg,
    radius: impl ToArg,
    unit: types::Unit,
) -> Command<(), Vec<T>, options::GeoradiusbymemberRo> {
    let mut request = Request::new("GEORADIUSBYMEMBER_RO", READS);
    request.key(key);
    request.arg(member);
    request.arg(radius);
    request.arg(unit);
    Command::typed(request)
}

/// Returns the members within a circle or a box.
///
/// `GEOSEARCH key <FROMMEMBER member | FROMLONLAT longitude latitude> <BYRADIUS radius <M | KM | FT | MI> |
/// BYBOX width height <M | KM | FT | MI>> [ASC | DESC] [COUNT count [ANY]] [WITHCOORD] [WITHDIST] [WITHHASH]`
///
/// O(N+log(M)) with N members in the rectangle around the shape, and M members in total. Since Redis 6.2.0.
/// Errors: those of the server; `UnexpectedReply` if the reply cannot be converted to `T`.
pub fn geosearch_from_member_by_radius<T>(
    key: impl ToArg,
    member: impl ToArg,
    radius: impl ToArg,
    unit: types::Unit,
) -> Command<(), Vec<T>, options::Geosearch> {
    let mut request = Request::new("GEOSEARCH", READS);
    request.key(key);
    request.arg("FROMMEMBER");
    request.arg(member);
    request.arg("BYRADIUS");
    request.arg(radius);
    request.arg(unit);
    Command::typed(request)
}

/// Returns the members within a circle or a box.
///
/// `GEOSEARCH key <FROMMEMBER member | FROMLONLAT longitude latitude> <BYRADIUS radius <M | KM | FT | MI> |
/// BYBOX width height <M | KM | FT | MI>> [ASC | DESC] [COUNT count [ANY]] [WITHCOORD] [WITHDIST] [WITHHASH]`
///
/// O(N+log(M)) with N members in the rectangle around the shape, and M members in total. Since Redis 6.2.0.
/// Errors: those of the server; `UnexpectedReply` if the reply cannot be converted to `T`.
pub fn geosearch_from_member_by_box<T>(
    key: impl ToArg,
    member: impl ToArg,
    width: impl ToArg,
    height: impl ToArg,
    unit: types::Unit,
) -> Command<(), Vec<T>, options::Geosearch> {
    let mut request = Request::new("GEOSEARCH", READS);
    request.key(key);
    request.arg("FROMMEMBER");
    request.arg(member);
    request.arg("BYBOX");
    request.arg(width);
    request.arg(height);
    request.arg(unit);
    Command::typed(request)
}

/// Returns the members within a circle or a box.
///
/// `GEOSEARCH key <FROMMEMBER member | FROMLONLAT longitude latitude> <BYRADIUS radius <M | KM | FT | MI> |
/// BYBOX width height <M | KM | FT | MI>> [ASC | DESC] [COUNT count [ANY]] [WITHCOORD] [WITHDIST] [WITHHASH]`
///
/// O(N+log(M)) with N members in the rectangle around the shape, and M members in total. Since Redis 6.2.0.
/// Errors: those of the server; `UnexpectedReply` if the reply cannot be converted to `T`.
pub fn geosearch_from_lon_lat_by_radius<T>(
    key: impl ToArg,
    position: impl ToArgs,
    radius: impl ToArg,
    unit: types::Unit,
) -> Command<(), Vec<T>, options::Geosearch> {
    let mut request = Request::new("GEOSEARCH", READS);
    request.key(key);
    request.arg("FROMLONLAT");
    request.args(position);
    request.arg("BYRADIUS");
    request.arg(radius);
    request.arg(unit);
    Command::typed(request)
}

/// Returns the members within a circle or a box.
///
/// `GEOSEARCH key <FROMMEMBER member | FROMLONLAT longitude latitude> <BYRADIUS radius <M | KM | FT | MI> |
/// BYBOX width height <M | KM | FT | MI>> [ASC | DESC] [COUNT count [ANY]] [WITHCOORD] [WITHDIST] [WITHHASH]`
///
/// O(N+log(M)) with N members in the rectangle around the shape, and M members in total. Since Redis 6.2.0.
/// Errors: those of the server; `UnexpectedReply` if the reply cannot be converted to `T`.
pub fn geosearch_from_lon_lat_by_box<T>(
    key: impl ToArg,
    position: impl ToArgs,
    width: impl ToArg,
    height: impl ToArg,
    unit: types::Unit,
) -> Command<(), Vec<T>, options::Geosearch> {
    let mut request = Request::new("GEOSEARCH", READS);
    request.key(key);
    request.arg("FROMLONLAT");
    request.args(position);
    request.arg("BYBOX");
    request.arg(width);
    request.arg(height);
    request.arg(unit);
    Command::typed(request)
}

/// Stores the members within a circle or a box under another key.
///
/// `GEOSEARCHSTORE destination source <FROMMEMBER member | FROMLONLAT longitude latitude> <BYRADIUS radius <M |
/// KM | FT | MI> | BYBOX width height <M | KM | FT | MI>> [ASC | DESC] [COUNT count [ANY]] [STOREDIST]`
///
/// O(N+log(M)) with N members in the rectangle around the shape, and M members in total. Since Redis 6.2.0.
/// Errors: those of the server.
pub fn geosearchstore_from_member_by_radius(
    destination: impl ToArg,
    source: impl ToArg,
    member: impl ToArg,
    radius: impl ToArg,
    unit: types::Unit,
) -> Command<(), i64, options::Geosearchstore> {
    let mut request = Request::new("GEOSEARCHSTORE", PLAIN);
    request.key(destination);
    request.key(source);
    request.arg("FROMMEMBER");
    request.arg(member);
    request.arg("BYRADIUS");
    request.arg(radius);
    request.arg(unit);
    Command::typed(request)
}

/// Stores the members within a circle or a box under another key.
///
/// `GEOSEARCHSTORE destination source <FROMMEMBER member | FROMLONLAT longitude latitude> <BYRADIUS radius <M |
/// KM | FT | MI> | BYBOX width height <M | KM | FT | MI>> [ASC | DESC] [COUNT count [ANY]] [STOREDIST]`
///
/// O(N+log(M)) with N members in the rectangle around the shape, and M members in total. Since Redis 6.2.0.
/// Errors: those of the server.
pub fn geosearchstore_from_member_by_box(
    destination: impl ToArg,
    source: impl ToArg,
    member: impl ToArg,
    width: impl ToArg,
    height: impl ToArg,
    unit: types::Unit,
) -> Command<(), i64, options::Geosearchstore> {
    let mut request = Request::new("GEOSEARCHSTORE", PLAIN);
    request.key(destination);
    request.key(source);
    request.arg("FROMMEMBER");
    request.arg(member);
    request.arg("BYBOX");
    request.arg(width);
    request.arg(height);
    request.arg(unit);
    Command::typed(request)
}

/// Stores the members within a circle or a box under another key.
///
/// `GEOSEARCHSTORE destination source <FROMMEMBER member | FROMLONLAT longitude latitude> <BYRADIUS radius <M |
/// KM | FT | MI> | BYBOX width height <M | KM | FT | MI>> [ASC | DESC] [COUNT count [ANY]] [STOREDIST]`
///
/// O(N+log(M)) with N members in the rectangle around the shape, and M members in total. Since Redis 6.2.0.
/// Errors: those of the server.
pub fn geosearchstore_from_lon_lat_by_radius(
    destination: impl ToArg,
    source: impl ToArg,
    position: impl ToArgs,
    radius: impl ToArg,
    unit: types::Unit,
) -> Command<(), i64, options::Geosearchstore> {
    let mut request = Request::new("GEOSEARCHSTORE", PLAIN);
    request.key(destination);
    request.key(source);
    request.arg("FROMLONLAT");
    request.args(position);
    request.arg("BYRADIUS");
    request.arg(radius);
    request.arg(unit);
    Command::typed(request)
}

/// Stores the members within a circle or a box under another key.
///
/// `GEOSEARCHSTORE destination source <FROMMEMBER member | FROMLONLAT longitude latitude> <BYRADIUS radius <M |
/// KM | FT | MI> | BYBOX width height <M | KM | FT | MI>> [ASC | DESC] [COUNT count [ANY]] [STOREDIST]`
///
/// O(N+log(M)) with N members in the rectangle around the shape, and M members in total. Since Redis 6.2.0.
/// Errors: those of the server.
pub fn geosearchstore_from_lon_lat_by_box(
    destination: impl ToArg,
    source: impl ToArg,
    position: impl ToArgs,
    width: impl ToArg,
    height: impl ToArg,
    unit: types::Unit,
) -> Command<(), i64, options::Geosearchstore> {
    let mut request = Request::new("GEOSEARCHSTORE", PLAIN);
    request.key(destination);
    request.key(source);
    request.arg("FROMLONLAT");
    request.args(position);
    request.arg("BYBOX");
    request.arg(width);
    request.arg(height);
    request.arg(unit);
    Command::typed(request)
}
