//! `cmsgpack`: MessagePack from Lua values (`pack.rs`) and back (`unpack.rs`).
//!
//! Supports the formats of MessagePack before binary strings, extensions and timestamps, as the C
//! library does.

mod pack;
mod unpack;

use super::call::Library;
use mlua::Lua;

/// Sets the global `cmsgpack`.
pub fn install(lua: &Lua) -> mlua::Result<()> {
    let library = Library::new(lua, "cmsgpack")?;
    library.function("pack", |lua, args| pack::pack(lua, &args))?;
    library.function("unpack", |lua, args| unpack::unpack(lua, &args.text(1)?, 0, 0))?;
    library.function("unpack_one", |lua, args| {
        let offset = args.integer_or(2, 0)?;
        unpack::unpack(lua, &args.text(1)?, 1, offset)
    })?;
    library.function("unpack_limit", |lua, args| {
        let limit = args.integer(2)?;
        let offset = args.integer_or(3, 0)?;
        unpack::unpack(lua, &args.text(1)?, limit, offset)
    })?;
    library.table.raw_set("_NAME", "cmsgpack")?;
    library.table.raw_set("_VERSION", "lua-cmsgpack 0.4.0")?;
    library.table.raw_set("_COPYRIGHT", "Copyright (C) 2012, Salvatore Sanfilippo")?;
    library.table.raw_set("_DESCRIPTION", "MessagePack C implementation for Lua")?;
    library.install()
}

/// First bytes that do not themselves contain the value or its length.
mod tag {
    pub(super) const NIL: u8 = 0xc0;
    pub(super) const FALSE: u8 = 0xc2;
    pub(super) const TRUE: u8 = 0xc3;
    pub(super) const FLOAT32: u8 = 0xca;
    pub(super) const FLOAT64: u8 = 0xcb;
    pub(super) const UINT8: u8 = 0xcc;
    pub(super) const UINT16: u8 = 0xcd;
    pub(super) const UINT32: u8 = 0xce;
    pub(super) const UINT64: u8 = 0xcf;
    pub(super) const INT8: u8 = 0xd0;
    pub(super) const INT16: u8 = 0xd1;
    pub(super) const INT32: u8 = 0xd2;
    pub(super) const INT64: u8 = 0xd3;
    pub(super) const STRING8: u8 = 0xd9;
    pub(super) const STRING16: u8 = 0xda;
    pub(super) const STRING32: u8 = 0xdb;
    pub(super) const ARRAY16: u8 = 0xdc;
    pub(super) const ARRAY32: u8 = 0xdd;
    pub(super) const MAP16: u8 = 0xde;
    pub(super) const MAP32: u8 = 0xdf;
}
