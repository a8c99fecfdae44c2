//! `struct`: converts values to and from the fields of a C struct, according to a format.
//!
//! | letter | field |
//! |---|---|
//! | `b B`, `h H`, `l L T` | integers of 1, 2 and 8 bytes, signed if in lower case |
//! | `i I`, `i<n> I<n>` | integers of 4 or n bytes, n up to 32 |
//! | `f d` | floats of 4 and 8 bytes |
//! | `s` | a string and a NUL |
//! | `c<n>` | n bytes; 0 packs the whole string, and unpacks the length given by the previous number |
//! | `x` | a byte of padding |
//! | `< >`, `!<n>` | the byte order, and the largest alignment, of the fields that follow |

use super::STACK_SLOTS_MAX;
use super::call::{Args, Failure, Library, Outcome, one, string, to_number};
use super::number::{c_string, truncated, truncated_unsigned};
use mlua::{Lua, MultiValue, Value};

/// The largest integer field.
const INTEGER_BYTES_MAX: usize = 32;

/// The alignment of `!` without a number.
const ALIGN_DEFAULT: usize = 8;

/// Sets the global `struct`.
pub fn install(lua: &Lua) -> mlua::Result<()> {
    let library = Library::new(lua, "struct")?;
    library.function("pack", |lua, args| pack(lua, &args))?;
    library.function("unpack", |lua, args| unpack(lua, &args))?;
    library.function("size", |_, args| size(&args))?;
    library.install()
}

/// A format being read, with the options that it has set so far.
struct Format<'a> {
    rest: &'a [u8],
    big_endian: bool,
    align: usize,
}

/// A letter of the format, and the size of its field in bytes.
struct Field {
    letter: u8,
    size: usize,
}

impl<'a> Format<'a> {
    fn new(text: &'a [u8]) -> Format<'a> {
        Format { rest: c_string(text), big_endian: cfg!(target_endian = "big"), align: 1 }
    }

    fn next(&mut self) -> Result<Option<Field>, Failure> {
        let Some((&letter, rest)) = self.rest.split_first() else { return Ok(None) };
        self.rest = rest;
        let size = match letter {
            b'b' | b'B' | b'x' => 1,
            b'h' | b'H' => 2,
            b'f' => 4,
            b'l' | b'L' | b'T' | b'd' => 8,
            b'c' => self.count(1)?,
            b'i' | b'I' => match self.count(4)? {
                size if size > INTEGER_BYTES_MAX => {
                    return Err(Failure::raised(format!(
                        "integral size {size} is larger than limit of {INTEGER_BYTES_MAX}"
                    )));
                }
                size => size,
            },
            _ => 0,
        };
        Ok(Some(Field { letter, size }))
    }

    /// Parses the number that follows, which must fit into an `int` of C.
    fn count(&mut self, default: usize) -> Result<usize, Failure> {
        let len = self.rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        if len == 0 {
            return Ok(default);
        }
        let (digits, rest) = self.rest.split_at(len);
        self.rest = rest;
        let value = digits.iter().try_fold(0i32, |value, digit| {
            value.checked_mul(10)?.checked_add(i32::from(digit - b'0'))
        });
        let value = value.and_then(|value| usize::try_from(value).ok());
        value.ok_or_else(|| Failure::raised("integral size overflow"))
    }

    /// Returns the number of padding bytes before a field at `position`. For sizes that are not
    /// powers of two, the result is that of the C library's bit operations.
    fn padding(&self, position: usize, field: &Field) -> usize {
        if field.size == 0 || field.letter == b'c' {
            return 0;
        }
        let mask = field.size.min(self.align) - 1;
        (mask + 1).wrapping_sub(position & mask) & mask
    }

    /// Applies a letter that is not a field.
    fn control(&mut self, letter: u8) -> Result<(), Failure> {
        match letter {
            b' ' => {}
            b'>' => self.big_endian = true,
            b'<' => self.big_endian = false,
            b'!' => {
                let align = self.count(ALIGN_DEFAULT)?;
                if !align.is_power_of_two() {
                    let text = format!("alignment {align} is not a power of 2");
                    return Err(Failure::raised(text));
                }
                self.align = align;
            }
            other => {
                let text = [b"invalid format option '".as_slice(), &[other], b"'"].concat();
                return Err(Failure::argument(1, text));
            }
        }
        Ok(())
    }

    /// Converts between the machine's byte order and the format's.
    fn ordered<const N: usize>(&self, mut little_endian: [u8; N]) -> [u8; N] {
        if self.big_endian {
            little_endian.reverse();
        }
        little_endian
    }
}

fn pack(lua: &Lua, args: &Args) -> Outcome {
    let text = args.text(1)?;
    let mut format = Format::new(&text);
    let mut out = Vec::new();
    let mut position = 2;
    while let Some(field) = format.next()? {
        out.resize(out.len() + format.padding(out.len(), &field), 0);
        match field.letter {
            b'b' | b'B' | b'h' | b'H' | b'l' | b'L' | b'T' | b'i' | b'I' => {
                let number = packed_number(args, position)?;
                position += 1;
                write_integer(&mut out, number, field.size, format.big_endian);
            }
            b'x' => out.push(0),
            b'f' => {
                let number = packed_number(args, position)? as f32;
                position += 1;
                out.extend_from_slice(&format.ordered(number.to_le_bytes()));
            }
            b'd' => {
                let number = packed_number(args, position)?;
                position += 1;
                out.extend_from_slice(&format.ordered(number.to_le_bytes()));
            }
            b'c' | b's' => {
                let string = args.text(position).map_err(|error| missing(args, position, error))?;
                position += 1;
                let size = if field.size == 0 { string.len() } else { field.size };
                let Some(bytes) = string.get(..size) else {
                    return Err(Failure::argument(position, "string too short"));
                };
                out.extend_from_slice(bytes);
                if field.letter == b's' {
                    out.push(0);
                }
            }
            other => format.control(other)?,
        }
        if out.len() > super::RESULT_BYTES_MAX {
            return Err(Failure::too_long());
        }
    }
    string(lua, &out)
}

fn packed_number(args: &Args, position: usize) -> Result<f64, Failure> {
    args.number(position).map_err(|error| missing(args, position, error))
}

/// A missing argument counts as nil here, because the C library finds a nil after the last
/// argument.
fn missing(args: &Args, position: usize, error: Failure) -> Failure {
    match error {
        Failure::Argument(at, text) if args.get(position).is_none() => {
            let wanted = text.strip_suffix(b"no value").unwrap_or(&text);
            Failure::argument(at, [wanted, b"nil"].concat())
        }
        other => other,
    }
}

/// Bytes after the eighth are zero, even for negative numbers.
fn write_integer(out: &mut Vec<u8>, number: f64, size: usize, big_endian: bool) {
    let value = if number < 0.0 { truncated(number) as u64 } else { truncated_unsigned(number) };
    let mut bytes = [0; INTEGER_BYTES_MAX];
    bytes[..8].copy_from_slice(&value.to_le_bytes());
    let bytes = &mut bytes[..size];
    if big_endian {
        bytes.reverse();
    }
    out.extend_from_slice(bytes);
}

fn read_integer(bytes: &[u8], big_endian: bool, signed: bool) -> f64 {
    let join = |value: u64, &byte: &u8| value << 8 | u64::from(byte);
    let value =
        if big_endian { bytes.iter().fold(0, join) } else { bytes.iter().rev().fold(0, join) };
    if !signed {
        return value as f64;
    }
    // The shift wraps at 64, so fields of more than eight bytes take their sign from another bit.
    let mask = u64::MAX.wrapping_shl((bytes.len() as u32 * 8).wrapping_sub(1));
    let value = if value & mask != 0 { value | mask } else { value };
    value as i64 as f64
}

fn unpack(lua: &Lua, args: &Args) -> Outcome {
    let text = args.text(1)?;
    let data = args.text(2)?;
    // A negative offset becomes a huge one, which is beyond every end.
    let offset = args.integer_or(3, 1)? as usize;
    let Some(mut at) = offset.checked_sub(1) else {
        return Err(Failure::argument(3, "offset must be 1 or greater"));
    };
    let mut format = Format::new(&text);
    let mut results = MultiValue::new();
    while let Some(field) = format.next()? {
        let Field { letter, mut size } = field;
        at = at.wrapping_add(format.padding(at, &field));
        let bytes = slice(&data, at, size)?;
        if args.len() + results.len() + 2 > STACK_SLOTS_MAX {
            return Err(Failure::raised("stack overflow (too many results)"));
        }
        match letter {
            b'b' | b'B' | b'h' | b'H' | b'l' | b'L' | b'T' | b'i' | b'I' => {
                let signed = letter.is_ascii_lowercase();
                let number = read_integer(bytes, format.big_endian, signed);
                results.push_back(Value::Number(number));
            }
            b'x' => {}
            b'f' => {
                let field = bytes.first_chunk().copied().unwrap_or_default();
                let number = f32::from_le_bytes(format.ordered(field));
                results.push_back(Value::Number(f64::from(number)));
            }
            b'd' => {
                let field = bytes.first_chunk().copied().unwrap_or_default();
                results.push_back(Value::Number(f64::from_le_bytes(format.ordered(field))));
            }
            b'c' => {
                let mut bytes = bytes;
                if size == 0 {
                    let Some(number) = results.back().and_then(to_number) else {
                        return Err(Failure::raised("format 'c0' needs a previous size"));
                    };
                    results.pop_back();
                    size = truncated_unsigned(number) as usize;
                    bytes = slice(&data, at, size)?;
                }
                results.push_back(Value::String(lua.create_string(bytes)?));
            }
            b's' => {
                let rest = data.get(at..).unwrap_or_default();
                let Some(len) = rest.iter().position(|&byte| byte == 0) else {
                    return Err(Failure::raised("unfinished string in data"));
                };
                results.push_back(Value::String(lua.create_string(&rest[..len])?));
                size = len + 1;
            }
            other => format.control(other)?,
        }
        at = at.wrapping_add(size);
    }
    results.push_back(Value::Number(at.wrapping_add(1) as i64 as f64));
    Ok(results)
}

fn slice(data: &[u8], at: usize, size: usize) -> Result<&[u8], Failure> {
    let end = at.checked_add(size);
    let bytes = end.and_then(|end| data.get(at..end));
    bytes.ok_or_else(|| Failure::argument(2, "data string too short"))
}

fn size(args: &Args) -> Outcome {
    let text = args.text(1)?;
    let mut format = Format::new(&text);
    let mut total = 0usize;
    while let Some(field) = format.next()? {
        total = total.wrapping_add(format.padding(total, &field));
        match field.letter {
            b's' => return Err(Failure::argument(1, "option 's' has no fixed size")),
            b'c' if field.size == 0 => {
                return Err(Failure::argument(1, "option 'c0' has no fixed size"));
            }
            // Unknown letters and digits are accepted, with size zero.
            letter if letter.is_ascii_alphanumeric() => {}
            other => format.control(other)?,
        }
        total = total.wrapping_add(field.size);
    }
    Ok(one(Value::Number(total as i64 as f64)))
}
