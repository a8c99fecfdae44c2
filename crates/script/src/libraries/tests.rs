//! Tests that need no Redis for comparison: positions in errors, limits, and arbitrary bytes as
//! input.
#![allow(clippy::unwrap_used, reason = "a test stops at the first error")]

use super::install_all;
use crate::fuzzing::fuzz_libraries;
use mlua::Lua;
use proptest::prelude::*;
use std::thread;

fn lua() -> Lua {
    let lua = Lua::new();
    install_all(&lua).unwrap();
    lua
}

/// Returns the string that a chunk named `user_script` returns.
fn run(lua: &Lua, script: &str) -> String {
    lua.load(script).set_name("@user_script").eval().unwrap()
}

#[test]
fn errors_are_strings_that_begin_with_the_callers_position() {
    let lua = lua();
    let raised = |call: &str| {
        run(&lua, &format!("local _, e = pcall(function()\n\n{call} end) return type(e)..' '..e"))
    };
    assert_eq!(
        raised("cjson.decode('x')"),
        "string user_script:3: Expected value but found invalid token at character 1"
    );
    assert_eq!(
        raised("bit.band({})"),
        "string user_script:3: bad argument #1 to 'band' (number expected, got table)"
    );
    assert_eq!(raised("cmsgpack.unpack('\\129\\192\\1')"), "string table index is nil");
    // If C code is the caller, an error has no position, and the function has no name.
    assert_eq!(
        run(&lua, "return (select(2, pcall(struct.size)))"),
        "bad argument #1 to '?' (string expected, got no value)"
    );
}

#[test]
fn errors_in_coroutines_and_nested_functions_name_their_caller() {
    let lua = lua();
    let script = "local function inner()\nreturn cjson.decode('') end\n\
                  local _, e = coroutine.resume(coroutine.create(function()\ninner() end))\nreturn e";
    assert_eq!(run(&lua, script), "user_script:2: Expected value but found T_END at character 1");
}

#[test]
fn a_script_that_replaces_error_does_not_change_how_libraries_raise() {
    let lua = lua();
    let script = "error = function() end\nlocal other = cjson.new()\n\
                  return (select(2, pcall(function() other.decode('') end)))";
    assert!(run(&lua, script).ends_with("Expected value but found T_END at character 1"));
}

#[test]
fn a_small_table_with_a_huge_result_is_an_error() {
    let lua = lua();
    for script in [
        "local t = {1} for _ = 1, 40 do t = {t, t} end return select(2, pcall(cjson.encode, t))",
        "local t = {a=1} for _ = 1, 40 do t = {a=t, b=t} end return select(2, pcall(cjson.encode, t))",
        "local t = {} for i = 1, 50 do t[i] = 1 end \
         for _ = 1, 12 do local o = {} for i = 1, 50 do o[i] = t end t = o end \
         return select(2, pcall(cmsgpack.pack, t))",
        "cjson.encode_sparse_array(false, 0) return select(2, pcall(cjson.encode, {[2^31 - 1]=1}))",
        "return select(2, pcall(cjson.encode, string.rep('\\1', 200000)))",
        "return select(2, pcall(struct.pack, 'ss', string.rep('a', 600000), string.rep('a', 600000)))",
    ] {
        assert_eq!(run(&lua, script), "the result is longer than 1048576 bytes", "{script}");
    }
}

#[test]
fn depth_takes_no_stack() {
    let deep = || {
        let lua = lua();
        let script = "cjson.decode_max_depth(2^31 - 1) cjson.encode_max_depth(2^31 - 1)\n\
                      local text = string.rep('[', 7900) .. string.rep(']', 7900)\n\
                      assert(#cjson.encode(cjson.decode(text)) == #text)\n\
                      assert(not pcall(cjson.decode, string.rep('[', 1000000)))\n\
                      assert(not pcall(cmsgpack.unpack, string.rep('\\145', 1000000)))\n\
                      return tostring(#cmsgpack.unpack(string.rep('\\145', 3900) .. '\\1'))";
        run(&lua, script)
    };
    // This is far less than threads usually have: it is what the interpreter and a debug build need
    // for any call.
    let thread = thread::Builder::new().stack_size(512 << 10).spawn(deep).unwrap();
    assert_eq!(thread.join().unwrap(), "1");
}

#[test]
fn lengths_are_not_believed() {
    let lua = lua();
    lua.gc_collect().unwrap();
    lua.set_memory_limit(lua.used_memory() + (64 << 10)).unwrap();
    for message in
        ["\\221\\255\\255\\255\\255", "\\223\\255\\255\\255\\255\\1", "\\219\\255\\255\\255\\255"]
    {
        let script = format!("return (select(2, pcall(cmsgpack.unpack, '{message}')))");
        assert_eq!(run(&lua, &script), "Missing bytes in input.", "{message}");
    }
}

#[test]
fn a_failed_allocation_is_an_error() {
    let lua = lua();
    let text = lua.create_string(format!("[{}1]", "[\"some text\"],".repeat(50_000))).unwrap();
    let message = lua.create_string([0x90; 100_000]).unwrap();
    lua.globals().set("text", text).unwrap();
    lua.globals().set("message", message).unwrap();
    lua.gc_collect().unwrap();
    lua.set_memory_limit(lua.used_memory() + (1 << 20)).unwrap();
    for script in [
        "return cjson.decode(text)",
        "return { cmsgpack.unpack_limit(message, 7000), 1 }, \
                    string.rep('x', 2^21)",
        "local t = {} for i = 1, 1000 do t[i] = text end return cjson.encode(t)",
    ] {
        let error = lua.load(script).exec().unwrap_err().to_string();
        // The last text is `mlua`'s if the stack cannot grow to hold the results.
        let texts = ["memory", "longer than", "out of Lua stack"];
        assert!(texts.iter().any(|text| error.contains(text)), "{script}: {error}");
    }
    lua.gc_collect().unwrap();
    assert_eq!(run(&lua, "return cjson.encode({1})"), "[1]");
}

#[test]
fn many_tables_in_one_object_are_written() {
    let lua = lua();
    // More pairs than are collected at once, at two levels.
    let script = "local t = {} for i = 1, 60000 do t['k' .. i] = {} end\n\
                  local inner = {} for i = 1, 20000 do inner['k' .. i] = {} end t.k30000 = inner\n\
                  local text = cjson.encode(t) local count = 0\n\
                  for _ in pairs(cjson.decode(text)) do count = count + 1 end\n\
                  return tostring(count)";
    let count = run(&lua, script);
    assert_eq!(count, "60000");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_input_makes_a_library_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        fuzz_libraries(&bytes);
    }

    #[test]
    fn numbers_read_back_as_written(bits in any::<u64>()) {
        let number = f64::from_bits(bits);
        prop_assume!(number.is_finite());
        let text = super::format_number(number);
        let read: f64 = text.parse().unwrap();
        // Fourteen digits are exact to half a unit of the last digit.
        prop_assert!((read - number).abs() <= number.abs() * 5.1e-14, "{number:e} {text}");
        prop_assert_eq!(super::number::parse_number(text.as_bytes()), Some(read));
    }
}
