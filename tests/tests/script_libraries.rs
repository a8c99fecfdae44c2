//! `cjson`, `cmsgpack`, `struct` and `bit` compared with those of a real Redis. The tests run the same expressions in
//! our interpreter and with EVAL in Redis, and compare the results and error texts.
//!
//! Objects and maps with several keys are compared after decoding them again, because the order of their keys differs.
#![allow(clippy::unwrap_used, reason = "a test ends at the first thing that goes wrong")]

use brisk_script::libraries::install_all;
use brisk_testkit::random::Random;
use brisk_testkit::server::workspace_root;
use brisk_testkit::{Conn, Launch, Server};
use mlua::Lua;
use std::fmt::Write;
use std::fs;

/// Number of random expressions of each kind.
const RANDOM_EACH: usize = 500;

/// The number of differences that are printed before the test ends.
const SHOWN_MAX: usize = 20;

/// Formats the results or the error of a call as text. Tables are sorted by key, and non-ASCII bytes are hexadecimal.
const PRELUDE: &str = r#"
local show
local function escape(byte) return string.format('\\x%02x', string.byte(byte)) end
function show(value)
    local kind = type(value)
    if kind == 'number' then
        if value ~= value then return 'nan' end
        return string.format('%.17g', value)
    elseif kind == 'string' then
        return '"' .. string.gsub(value, '[^%w%p ]', escape) .. '"'
    elseif kind == 'table' then
        local parts = {}
        for key, inner in pairs(value) do
            parts[#parts + 1] = '[' .. show(key) .. ']=' .. show(inner)
        end
        table.sort(parts)
        return '{' .. table.concat(parts, ',') .. '}'
    elseif kind == 'userdata' then
        return value == cjson.null and 'null' or kind
    end
    return kind == 'function' and kind or tostring(value)
end
local function results(...)
    local parts = {}
    for i = 1, math.min(select('#', ...), 50) do parts[i] = show((select(i, ...))) end
    return select('#', ...) .. ': ' .. table.concat(parts, ' ')
end
local function nested(open, close, depth, inner)
    return string.rep(open, depth) .. (inner or '') .. string.rep(close, depth)
end
local function array(depth)
    local outer = {}
    for _ = 2, depth do outer = { outer } end
    return outer
end
local function object(depth)
    local outer = {}
    for _ = 2, depth do outer = { k = outer } end
    return outer
end
"#;

fn script(expression: &str) -> String {
    format!("{PRELUDE}return results(pcall(function() return {expression} end))")
}

struct Pair {
    ours: Lua,
    theirs: Conn,
    _server: Server,
    differences: Vec<String>,
    compared: usize,
}

impl Pair {
    fn new() -> Pair {
        let server = Launch::redis().start();
        let ours = Lua::new();
        install_all(&ours).unwrap();
        Pair {
            ours,
            theirs: server.connect(),
            _server: server,
            differences: Vec::new(),
            compared: 0,
        }
    }

    fn ours(&self, script: &str) -> String {
        match self.ours.load(script).set_name("@user_script").eval::<mlua::LuaString>() {
            Ok(text) => text.to_string_lossy(),
            Err(error) => format!("FAILED {error}"),
        }
    }

    fn compare(&mut self, expression: &str) {
        let script = script(expression);
        let ours = self.ours(&script);
        let theirs = self.theirs.call(&["EVAL", &script, "0"]).text();
        assert!(theirs.contains(": "), "{expression}: {theirs}");
        self.compared += 1;
        if ours != theirs && self.differences.len() < SHOWN_MAX {
            let same = ours.bytes().zip(theirs.bytes()).take_while(|(a, b)| a == b).count();
            let cut = |text: &str| {
                text.chars().skip(same.saturating_sub(80)).take(240).collect::<String>()
            };
            let expression: String = expression.chars().take(400).collect();
            let (ours, theirs) = (cut(&ours), cut(&theirs));
            self.differences.push(format!("{expression}\n  ours   {ours}\n  theirs {theirs}"));
        }
    }

    fn finish(self, at_least: usize) {
        let differences = self.differences.join("\n");
        assert!(
            self.differences.is_empty(),
            "{} differences or more:\n{differences}",
            self.differences.len()
        );
        assert!(self.compared >= at_least, "only {} expressions", self.compared);
    }
}

#[test]
fn listed_expressions_give_what_redis_gives() {
    let file = workspace_root().join("tests/data/script-libraries.txt");
    let text = fs::read_to_string(&file).unwrap();
    let mut pair = Pair::new();
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        pair.compare(line);
    }
    pair.finish(300);
}

/// Any bytes as a Lua literal.
fn literal(bytes: &[u8]) -> String {
    let mut text = String::from("\"");
    for byte in bytes {
        write!(text, "\\{byte:03}").unwrap();
    }
    text + "\""
}

fn bytes(random: &mut Random, len_max: usize) -> Vec<u8> {
    let ascii = random.percent(60);
    let len = random.below(len_max + 1);
    (0..len).map(|_| random.below(if ascii { 128 } else { 256 }) as u8).collect()
}

fn number(random: &mut Random) -> String {
    let double = match random.below(10) {
        0 => random.below(300) as f64,
        1 => -(random.below(300) as f64),
        2 => random.below(1 << 20) as f64 / 64.0,
        3 => f64::from(f32::from_bits(random.bits() as u32)),
        4 => f64::from_bits(random.bits()),
        5 => 2f64.powi(random.below(80) as i32) - random.below(3) as f64,
        6 => -(2f64.powi(random.below(80) as i32)) + random.below(3) as f64,
        7 => random.bits() as i64 as f64 / 1e3,
        8 => random.below(1 << 30) as f64 / 10f64.powi(random.below(20) as i32),
        _ => random.bits() as i32 as f64,
    };
    // Lua 5.1 cannot tell a constant -0 from a constant 0.
    if double.is_finite() && double != 0.0 { format!("({double:e})") } else { "(1.5)".to_owned() }
}

/// A random value as an expression. Without `wide`, maps have only one key.
fn value(random: &mut Random, depth: usize, wide: bool) -> String {
    match random.below(if depth == 0 { 5 } else { 9 }) {
        0 => (*random.pick(&["true", "false", "cjson.null"])).to_owned(),
        1 | 2 => number(random),
        3 | 4 => {
            let len_max = *random.pick(&[3, 20, 40, 300]);
            literal(&bytes(random, len_max))
        }
        5 | 6 => {
            let len_max = *random.pick(&[1, 3, 20]);
            let items: Vec<_> =
                (0..random.below(len_max + 1)).map(|_| value(random, depth - 1, wide)).collect();
            format!("{{{}}}", items.join(","))
        }
        _ => {
            let len = if wide { random.below(20) } else { 1 };
            let pairs: Vec<_> = (0..len)
                .map(|_| {
                    let key = match random.below(3) {
                        // For keys outside the range of `int`, the key order determines what Redis considers an array.
                        0 if wide => format!("{}.5", random.below(1 << 20)),
                        0 => number(random),
                        1 => random.below(14).to_string(),
                        // In JSON, a string of digits would be the same key as the number.
                        _ => literal(&[bytes(random, 8).as_slice(), b"_"].concat()),
                    };
                    format!("[{key}]={}", value(random, depth - 1, wide))
                })
                .collect();
            format!("{{{}}}", pairs.join(","))
        }
    }
}

#[test]
fn random_values_are_encoded_alike() {
    let mut pair = Pair::new();
    let mut random = Random::new(0x15);
    for _ in 0..RANDOM_EACH {
        let flat = value(&mut random, 3, false);
        let wide = value(&mut random, 3, true);
        let precision = 1 + random.below(14);
        pair.compare(&format!("cjson.encode({flat})"));
        pair.compare(&format!("cjson.decode(cjson.encode({wide}))"));
        pair.compare(&format!(
            "cjson.encode_number_precision({precision}), cjson.encode({}), \
             cjson.encode_number_precision(14)",
            number(&mut random)
        ));
        pair.compare(&format!("cmsgpack.pack({flat})"));
        pair.compare(&format!("cmsgpack.unpack(cmsgpack.pack({wide}, {flat}))"));
        pair.compare(&format!("struct.pack('s', {})", number(&mut random)));
    }
    pair.finish(RANDOM_EACH * 6);
}

#[test]
fn random_texts_are_decoded_alike() {
    const PIECES: &[&str] = &[
        "[",
        "]",
        "{",
        "}",
        ",",
        ":",
        "\"a\"",
        "\"",
        "1",
        "-",
        "0x1F",
        "1e5",
        ".5",
        "nan",
        "-inf",
        "Infinity",
        "null",
        "true",
        "false",
        "fals",
        " ",
        "\n",
        "\\",
        "\\u0041",
        "\"\\ud83d\\ude00\"",
        "\"\\udc00\"",
        "\"\\n\\/\\q\"",
        "\"k\":",
        "[1,2,[3]]",
        "{\"a\":{\"b\":[]}}",
        "+1",
        "01",
        "\0",
        "1.5E-3",
        "\u{e9}",
        "\"\u{e9}\u{7f}\"",
        "/",
        "1e400",
        "0x1.8p3",
        "123456789012345678901234567890",
    ];
    let mut pair = Pair::new();
    let mut random = Random::new(0x16);
    for _ in 0..RANDOM_EACH {
        let mut text = String::new();
        for _ in 0..=random.below(6) {
            text += *random.pick(PIECES);
        }
        let strict = random.percent(20);
        pair.compare(&format!(
            "cjson.decode_invalid_numbers({}), cjson.decode({})",
            !strict,
            literal(text.as_bytes())
        ));
        let open = random.pick(&["[", "[1,", "{\"k\":", "[[],{\"a\":"]);
        let rest: String = (0..random.below(4)).map(|_| *random.pick(PIECES)).collect();
        pair.compare(&format!("cjson.decode({})", literal(format!("{open}{rest}").as_bytes())));
    }
    pair.compare("cjson.decode_invalid_numbers(true)");
    pair.finish(RANDOM_EACH * 2);
}

#[test]
fn random_messages_are_unpacked_alike() {
    const STARTS: &[u8] =
        b"\x00\x7f\x80\x81\x82\x90\x91\x93\xa0\xa2\xc0\xc1\xc2\xc3\xc4\xca\xcb\xcc\
        \xcd\xce\xcf\xd0\xd1\xd2\xd3\xd4\xd9\xda\xdb\xdc\xdd\xde\xdf\xe0\xff\x01\x02\x01\x00\x00";
    let mut pair = Pair::new();
    let mut random = Random::new(0x17);
    for _ in 0..RANDOM_EACH {
        let len = random.below(24);
        let message: Vec<u8> = (0..len)
            .map(|_| if random.percent(70) { *random.pick(STARTS) } else { random.bits() as u8 })
            .collect();
        let message = literal(&message);
        let (limit, offset) = (random.below(5), random.below(8));
        pair.compare(&format!("cmsgpack.unpack({message})"));
        pair.compare(&format!("cmsgpack.unpack_one({message}, {offset})"));
        pair.compare(&format!("cmsgpack.unpack_limit({message}, {limit}, {offset})"));
    }
    pair.finish(RANDOM_EACH * 3);
}

fn format(random: &mut Random) -> String {
    const LETTERS: &[&str] = &[
        "b", "B", "h", "H", "l", "L", "T", "i", "I", "f", "d", "s", "c", "x", "c0", "c3", "i3",
        "I5", "i8", "I8", "i16", "I9", "i1", "I2", "i0", "I32", "<", ">", "!", "!1", "!2", "!4",
        "!16", " ",
    ];
    const ODD: &[&str] =
        &["i33", "!3", "!0", "z", "A", "9", "=", "c99999999999", "\u{e9}", "\0b", "-"];
    let letters = (0..random.below(8))
        .map(|_| if random.percent(2) { *random.pick(ODD) } else { *random.pick(LETTERS) });
    letters.collect()
}

#[test]
fn random_structs_are_packed_and_unpacked_alike() {
    let mut pair = Pair::new();
    let mut random = Random::new(0x18);
    for _ in 0..RANDOM_EACH {
        let format_text = format(&mut random);
        let format = literal(format_text.as_bytes());
        let arguments: Vec<_> = (0..random.below(10))
            .map(|_| match random.below(8) {
                0 => literal(&bytes(&mut random, 6)),
                1 => format!("'{}'", random.below(9)),
                _ => number(&mut random),
            })
            .collect();
        let arguments = arguments.iter().fold(String::new(), |all, one| all + "," + one);
        let data = literal(&bytes(&mut random, 90));
        pair.compare(&format!("struct.pack({format}{arguments})"));
        pair.compare(&format!("struct.size({format})"));
        pair.compare(&format!("struct.unpack({format}, {data})"));
        pair.compare(&format!("struct.unpack({format}, {data}, {})", random.below(20)));
    }
    pair.finish(RANDOM_EACH * 4);
}

#[test]
fn random_bits_are_combined_alike() {
    const FUNCTIONS: &[&str] = &[
        "tobit", "tohex", "bnot", "band", "bor", "bxor", "lshift", "rshift", "arshift", "rol",
        "ror", "bswap",
    ];
    let mut pair = Pair::new();
    let mut random = Random::new(0x19);
    for _ in 0..RANDOM_EACH {
        for function in FUNCTIONS {
            let arguments: Vec<_> = (0..random.below(4))
                .map(|_| match random.below(20) {
                    0 => "'0x10'".to_owned(),
                    1 => "'x'".to_owned(),
                    2 => "nil".to_owned(),
                    3 => "1/0".to_owned(),
                    // The smallest integer as a width would cause a buffer overflow in Redis 7.0.
                    _ if *function == "tohex" => format!("{}", random.below(24) as i32 - 12),
                    _ => number(&mut random),
                })
                .collect();
            pair.compare(&format!("bit.{function}({})", arguments.join(",")));
        }
    }
    pair.finish(RANDOM_EACH * FUNCTIONS.len());
}
