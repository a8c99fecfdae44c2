//! The body of the fuzz target for the libraries: arbitrary bytes as texts, messages, data and
//! formats.

use crate::libraries::install_all;
use mlua::{Function, Lua};
use std::cell::OnceCell;

/// Reads the input with every function of the libraries, and writes the results again. Errors are
/// expected; panics are not, nor values that can be read but not written.
const BODY: &str = r#"
local input = ...
local half = bit.rshift(#input, 1)
local first, second = string.sub(input, 1, half), string.sub(input, half + 1)

local read, value = pcall(cjson.decode, input)
if read then
    cjson.encode_invalid_numbers(true)
    cjson.encode_sparse_array(true)
    local text = cjson.encode(value)
    local again = cjson.encode(cjson.decode(text))
    assert(#again == #text, text)
end
local unpacked = { pcall(cmsgpack.unpack, input) }
if unpacked[1] then
    pcall(cmsgpack.pack, unpack(unpacked))
    pcall(cjson.encode, unpacked)
end
pcall(cmsgpack.unpack_limit, second, #first, 1)
pcall(struct.unpack, first, second)
pcall(struct.unpack, input, string.rep(second, 40))
pcall(struct.size, input)
pcall(struct.pack, first, half, second, 1.5, second, -1, 2, 3, 4, 5, 6, 7, 8)
pcall(bit.tohex, first, second)
"#;

/// Runs the libraries on `data`.
pub fn fuzz_libraries(data: &[u8]) {
    thread_local! {
        static SCRIPT: OnceCell<(Lua, Function)> = const { OnceCell::new() };
    }
    SCRIPT.with(|script| {
        let (lua, body) = script.get_or_init(|| {
            let lua = Lua::new();
            install_all(&lua).expect("the libraries install in a fresh interpreter");
            let body = lua.load(BODY).into_function().expect("the body is valid Luau");
            (lua, body)
        });
        let input = lua.create_string(data).expect("memory for the input");
        body.call::<()>(input).expect("what was read can be written");
    });
}
