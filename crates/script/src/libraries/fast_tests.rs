//! The fast paths return what the Rust functions return, on random inputs from a fixed seed.
#![allow(clippy::unwrap_used, reason = "a test stops at the first error")]

use super::call::FAST_KEY;
use super::install_all;
use mlua::{Function, Lua, Table};

/// Compares functions, and generates inputs. The generators of each library are in a separate text,
/// which returns how many of its calls took a fast path.
const COMPARE: &str = include_str!("fast_tests.luau");

/// Number of calls for each library.
const CALLS: u32 = 3_000;

/// Two sets of the libraries in one interpreter, so that a script can compare their results: with
/// fast paths, and without.
fn both() -> (Lua, Table) {
    let lua = Lua::new();
    let names = ["bit", "cjson", "cmsgpack", "struct"];
    let sets = lua.create_table().unwrap();
    let keep = |set: &str| {
        let libraries = lua.create_table().unwrap();
        for name in names {
            libraries.raw_set(name, lua.globals().raw_get::<Table>(name).unwrap()).unwrap();
        }
        sets.raw_set(set, libraries).unwrap();
    };
    install_all(&lua).unwrap();
    keep("fast");
    let made: Table = lua.named_registry_value(FAST_KEY).unwrap();
    let none: Function = lua.load("return function() return {} end").eval().unwrap();
    let guard: Function = made.raw_get(1).unwrap();
    let plain = lua.create_sequence_from([guard, none]).unwrap();
    lua.set_named_registry_value(FAST_KEY, plain).unwrap();
    install_all(&lua).unwrap();
    keep("plain");
    sets.raw_set("makers", made.raw_get::<Function>(2).unwrap()).unwrap();
    (lua, sets)
}

/// Returns how many of a library's calls took a fast path, if all results are equal.
fn fast_calls(library: &str) -> u32 {
    let (lua, sets) = both();
    let chunk = lua.load(COMPARE).set_name("@user_script");
    let run: Function = chunk.call(sets).unwrap();
    run.call((library, CALLS)).unwrap()
}

#[test]
fn cmsgpack_has_the_same_results_with_and_without_fast_paths() {
    let fast = fast_calls("cmsgpack");
    assert!(fast > CALLS / 10 && fast < CALLS, "{fast}");
}

#[test]
fn cjson_has_the_same_results_with_and_without_fast_paths() {
    let fast = fast_calls("cjson");
    assert!(fast > CALLS / 10 && fast < CALLS, "{fast}");
}

#[test]
fn struct_has_the_same_results_with_and_without_fast_paths() {
    let fast = fast_calls("struct");
    assert!(fast > CALLS / 10 && fast < CALLS, "{fast}");
}

#[test]
fn bit_has_the_same_results_with_and_without_fast_paths() {
    let fast = fast_calls("bit");
    assert!(fast > CALLS / 10 && fast < CALLS, "{fast}");
}

#[test]
fn usual_calls_take_the_fast_paths() {
    let (lua, sets) = both();
    let script = r#"
        local makers_of = (...).makers
        local function fast(library, name)
            return makers_of(library, "null")[name](function() return "the Rust function was called" end)
        end
        local unpack = fast("cmsgpack", "unpack")
        assert(#unpack("\x93\x01\xa1a\xc0") == 2)
        assert(unpack("\x81\xa1a\xcd\x01\x02").a == 258)
        local pack = fast("cmsgpack", "pack")
        assert(pack({ 1, "a", { x = true } }) == "\x93\x01\xa1a\x81\xa1x\xc3")
        assert(pack(-1.5) == "\xca\xbf\xc0\0\0" and pack(2 ^ 40) == "\xcf\0\0\1\0\0\0\0\0")
        local decode = fast("cjson", "decode")
        assert(decode(' {"a": [1, -2.5, "x", null, true]} ').a[2] == -2.5)
        assert(fast("struct", "pack")(">I4b", 258, -1) == "\0\0\1\2\255")
        assert(select(2, fast("struct", "unpack")("<Hd", string.rep("\0", 10))) == 0)
        assert(fast("struct", "pack")(">I2c0", 5, "hello") == "\0\5hello")
        local text, next = fast("struct", "unpack")(">I2c0", "\0\5hello!")
        assert(text == "hello" and next == 8)
        assert(fast("bit", "band")(-1, 0xffffffff) == -1)
        assert(fast("bit", "tohex")(255) == "000000ff")
        -- Texts that are too long go to the Rust function.
        assert(#unpack("\xda\xff\xf0" .. string.rep("x", 0xfff0)) == 0xfff0)
        assert(not pcall(unpack, "\xdb\0\1\0\0" .. string.rep("x", 0x10000)))
        assert(not pcall(decode, string.rep(" ", 65536) .. "1"))
        -- So do tables that are nested too deeply.
        assert(decode(string.rep("[", 16) .. string.rep("]", 16)))
        assert(not pcall(decode, string.rep("[", 17) .. string.rep("]", 17)))
        assert(unpack(string.rep("\x91", 16) .. "\1"))
        assert(not pcall(unpack, string.rep("\x91", 17) .. "\1"))
    "#;
    lua.load(script).call::<()>(sets).unwrap();
}

#[test]
fn globals_that_a_script_replaces_do_not_change_the_fast_paths() {
    let (lua, sets) = both();
    let script = r#"
        local fast = (...).fast
        local equal = rawequal
        for _, library in { string, math, table, bit32, buffer } do
            for name in library do library[name] = function() return 0 end end
        end
        for _, name in { "type", "select", "tonumber", "error", "math", "string", "bit32", "buffer", "getmetatable" } do
            getfenv()[name] = nil
        end
        assert(equal(fast.struct.pack("<fH", 1.5, 3), "\0\0\192\63\3\0"))
        assert(equal(fast.cjson.decode("[1.25]")[1], 1.25))
        assert(equal(fast.cmsgpack.unpack("\xcb\63\248\0\0\0\0\0\0"), 1.5))
        assert(equal(fast.cmsgpack.pack({ 1, "a", 1.5 }), "\x93\x01\xa1a\xca\63\192\0\0"))
        assert(equal(fast.bit.bxor(5, 3), 6))
    "#;
    lua.load(script).call::<()>(sets).unwrap();
}

#[test]
fn a_configured_depth_applies_to_the_fast_path() {
    let (lua, sets) = both();
    let script = r#"
        local cjson = (...).fast.cjson
        local other = cjson.new()
        assert(cjson.decode_max_depth(2) == 2)
        assert(not pcall(cjson.decode, "[[[1]]]") and cjson.decode("[[1]]"))
        -- A setting that is not accepted changes nothing, nor does reading it.
        assert(not pcall(cjson.decode_max_depth, 0) and cjson.decode_max_depth() == 2)
        assert(not pcall(cjson.decode, "[[[1]]]") and cjson.decode("[[1]]"))
        assert(other.decode("[[[1]]]"))
        assert(cjson.decode_max_depth(20) == 20)
        assert(cjson.decode(string.rep("[", 20) .. string.rep("]", 20)))
        assert(not pcall(cjson.decode, string.rep("[", 21) .. string.rep("]", 21)))
    "#;
    lua.load(script).call::<()>(sets).unwrap();
}
