//! Commands of the group `geo` as methods of a session.
//!
//! Written by the test `client_commands` from the server's command table: do not edit.

use crate::arg::{ToArg, ToArgs};
use crate::command::Command;
use crate::commands;
use crate::commands::{options, types};
use crate::session::Session;

/// Commands of the group `geo`.
impl Session {
    /// Adds members with a longitude and latitude, or updates their position.
    ///
    /// `GEOADD key [NX | XX] [CH] longitude latitude member …`
    pub fn geoadd(
        &self,
        key: impl ToArg,
        places: impl ToArgs,
    ) -> Command<&Session, i64, options::Geoadd> {
        commands::geoadd(key, places).on(self)
    }

    /// Returns the distance between two members.
    ///
    /// `GEODIST key member1 member2 [M | KM | FT | MI]`
    pub fn geodist(
        &self,
        key: impl ToArg,
        member1: impl ToArg,
        member2: impl ToArg,
    ) -> Command<&Session, Option<f64>, options::Geodist> {
        commands::geodist(key, member1, member2).on(self)
    }

    /// Returns the geohash strings of members.
    ///
    /// `GEOHASH key member …`
    pub fn geohash<T>(
        &self,
        key: impl ToArg,
        members: impl ToArgs,
    ) -> Command<&Session, Vec<Option<T>>> {
        commands::geohash(key, members).on(self)
    }

    /// Returns the longitude and latitude of members.
    ///
    /// `GEOPOS key member …`
    pub fn geopos(
        &self,
        key: impl ToArg,
        members: impl ToArgs,
    ) -> Command<&Session, Vec<Option<(f64, f64)>>> {
        commands::geopos(key, members).on(self)
    }

    /// Returns the members within a circle or a box.
    ///
    /// `GEOSEARCH key <FROMMEMBER member | FROMLONLAT longitude latitude> <BYRADIUS radius <M | KM | FT | MI> |
    /// BYBOX width height <M | KM | FT | MI>> [ASC | DESC] [COUNT count [ANY]] [WITHCOORD] [WITHDIST] [WITHHASH]`
    pub fn geosearch_from_member_by_radius<T>(
        &self,
        key: impl ToArg,
        member: impl ToArg,
        radius: impl ToArg,
        unit: types::Unit,
    ) -> Command<&Session, Vec<T>, options::Geosearch> {
        commands::geosearch_from_member_by_radius(key, member, radius, unit).on(self)
    }

    /// Returns the members within a circle or a box.
    ///
    /// `GEOSEARCH key <FROMMEMBER member | FROMLONLAT longitude latitude> <BYRADIUS radius <M | KM | FT | MI> |
    /// BYBOX width height <M | KM | FT | MI>> [ASC | DESC] [COUNT count [ANY]] [WITHCOORD] [WITHDIST] [WITHHASH]`
    pub fn geosearch_from_member_by_box<T>(
        &self,
        key: impl ToArg,
        member: impl ToArg,
        width: impl ToArg,
        height: impl ToArg,
        unit: types::Unit,
    ) -> Command<&Session, Vec<T>, options::Geosearch> {
        commands::geosearch_from_member_by_box(key, member, width, height, unit).on(self)
    }

    /// Returns the members within a circle or a box.
    ///
    /// `GEOSEARCH key <FROMMEMBER member | FROMLONLAT longitude latitude> <BYRADIUS radius <M | KM | FT | MI> |
    /// BYBOX width height <M | KM | FT | MI>> [ASC | DESC] [COUNT count [ANY]] [WITHCOORD] [WITHDIST] [WITHHASH]`
    pub fn geosearch_from_lon_lat_by_radius<T>(
        &self,
        key: impl ToArg,
        position: impl ToArgs,
        radius: impl ToArg,
        unit: types::Unit,
    ) -> Command<&Session, Vec<T>, options::Geosearch> {
        commands::geosearch_from_lon_lat_by_radius(key, position, radius, unit).on(self)
    }

    /// Returns the members within a circle or a box.
    ///
    /// `GEOSEARCH key <FROMMEMBER member | FROMLONLAT longitude latitude> <BYRADIUS radius <M | KM | FT | MI> |
    /// BYBOX width height <M | KM | FT | MI>> [ASC | DESC] [COUNT count [ANY]] [WITHCOORD] [WITHDIST] [WITHHASH]`
    pub fn geosearch_from_lon_lat_by_box<T>(
        &self,
        key: impl ToArg,
        position: impl ToArgs,
        width: impl ToArg,
        height: impl ToArg,
        unit: types::Unit,
    ) -> Command<&Session, Vec<T>, options::Geosearch> {
        commands::geosearch_from_lon_lat_by_box(key, position, width, height, unit).on(self)
    }

    /// Stores the members within a circle or a box under another key.
    ///
    /// `GEOSEARCHSTORE destination source <FROMMEMBER member | FROMLONLAT longitude latitude> <BYRADIUS radius <M |
    /// KM | FT | MI> | BYBOX width height <M | KM | FT | MI>> [ASC | DESC] [COUNT count [ANY]] [STOREDIST]`
    pub fn geosearchstore_from_member_by_radius(
        &self,
        destination: impl ToArg,
        source: impl ToArg,
        member: impl ToArg,
        radius: impl ToArg,
        unit: types::Unit,
    ) -> Command<&Session, i64, options::Geosearchstore> {
        commands::geosearchstore_from_member_by_radius(destination, source, member, radius, unit)
            .on(self)
    }

    /// Stores the members within a circle or a box under another key.
    ///
    /// `GEOSEARCHSTORE destination source <FROMMEMBER member | FROMLONLAT longitude latitude> <BYRADIUS radius <M |
    /// KM | FT | MI> | BYBOX width height <M | KM | FT | MI>> [ASC | DESC] [COUNT count [ANY]] [STOREDIST]`
    pub fn geosearchstore_from_member_by_box(
        &self,
        destination: impl ToArg,
        source: impl ToArg,
        member: impl ToArg,
        width: impl ToArg,
        height: impl ToArg,
        unit: types::Unit,
    ) -> Command<&Session, i64, options::Geosearchstore> {
        commands::geosearchstore_from_member_by_box(
            destination,
            source,
            member,
            width,
            height,
            unit,
        )
        .on(self)
    }

    /// Stores the members within a circle or a box under another key.
    ///
    /// `GEOSEARCHSTORE destination source <FROMMEMBER member | FROMLONLAT longitude latitude> <BYRADIUS radius <M |
    /// KM | FT | MI> | BYBOX width height <M | KM | FT | MI>> [ASC | DESC] [COUNT count [ANY]] [STOREDIST]`
    pub fn geosearchstore_from_lon_lat_by_radius(
        &self,
        destination: impl ToArg,
        source: impl ToArg,
        position: impl ToArgs,
        radius: impl ToArg,
        unit: types::Unit,
    ) -> Command<&Session, i64, options::Geosearchstore> {
        commands::geosearchstore_from_lon_lat_by_radius(destination, source, position, radius, unit)
            .on(self)
    }

    /// Stores the members within a circle or a box under another key.
    ///
    /// `GEOSEARCHSTORE destination source <FROMMEMBER member | FROMLONLAT longitude latitude> <BYRADIUS radius <M |
    /// KM | FT | MI> | BYBOX width height <M | KM | FT | MI>> [ASC | DESC] [COUNT count [ANY]] [STOREDIST]`
    pub fn geosearchstore_from_lon_lat_by_box(
        &self,
        destination: impl ToArg,
        source: impl ToArg,
        position: impl ToArgs,
        width: impl ToArg,
        height: impl ToArg,
        unit: types::Unit,
    ) -> Command<&Session, i64, options::Geosearchstore> {
        commands::geosearchstore_from_lon_lat_by_box(
            destination,
            source,
            position,
            width,
            height,
            unit,
        )
        .on(self)
    }
}
