//! The libraries that scripts are offered besides Lua's own.

/// The globals that they are.
pub(crate) const NAMES: &str = "bit cjson cmsgpack struct ";

/// Puts all of them into the globals.
pub fn install_all(_: &mlua::Lua) -> mlua::Result<()> {
    Ok(())
}
