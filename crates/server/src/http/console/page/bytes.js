// Keys and values are bytes. This module converts them to text for display, and converts edited text back without loss.

const encoder = new TextEncoder();
const strict = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
const lossy = new TextDecoder('utf-8', { ignoreBOM: true });

// Escapes with one letter, as redis-cli writes them.
const LETTERS = new Map([[7, 'a'], [8, 'b'], [9, 't'], [10, 'n'], [13, 'r'], [92, '\\']]);
const LETTER_BYTES = new Map([['a', 7], ['b', 8], ['t', 9], ['n', 10], ['r', 13], ['\\', 92], ['"', 34]]);
// Characters that are invisible or change the direction of the text. They are shown as escapes.
const INVISIBLE = /[\p{C}\p{Zl}\p{Zp}]/u;

export function toBytes(value) {
  return value instanceof Uint8Array ? value : encoder.encode(String(value));
}

// Decodes texts of the server itself. Invalid bytes become U+FFFD, so this is not for keys and values.
export function toText(value) {
  return value instanceof Uint8Array ? lossy.decode(value) : String(value ?? '');
}

// The text of valid UTF-8, or null.
export function validText(bytes) {
  try {
    return strict.decode(bytes);
  } catch {
    return null;
  }
}

// Text that a text field can show and return unchanged: the only control characters are tab and line feed.
export function plainText(bytes) {
  const text = validText(bytes);
  return text === null || /[^\P{C}\n\t]/u.test(text) ? null : text;
}

const hex = (byte) => byte.toString(16).padStart(2, '0');

function escapeByte(byte) {
  const letter = LETTERS.get(byte);
  if (letter) return '\\' + letter;
  return byte >= 32 && byte < 127 ? String.fromCharCode(byte) : '\\x' + hex(byte);
}

// Bytes as text in which every invisible or invalid byte is an escape. `unescape` reverses it.
export function escape(bytes) {
  const text = validText(bytes);
  if (text === null) return Array.from(bytes, escapeByte).join('');
  let out = '';
  for (const character of text) {
    const visible = character !== '\\' && !INVISIBLE.test(character);
    out += visible ? character : Array.from(encoder.encode(character), escapeByte).join('');
  }
  return out;
}

// The beginning of a value for a cell of a table.
export function preview(bytes, max = 160) {
  if (bytes.length <= max) return escape(bytes);
  let end = max;
  while (end > max - 4 && (bytes[end] & 0xc0) === 0x80) end -= 1;
  return escape(bytes.subarray(0, end)) + '…';
}

export function unescape(text) {
  const parts = [];
  const pattern = /\\(?:x([0-9a-fA-F]{2})|([abtnr\\"]))|[^\\]+|\\/g;
  for (const match of text.matchAll(pattern)) {
    if (match[1]) parts.push(Uint8Array.of(parseInt(match[1], 16)));
    else if (match[2]) parts.push(Uint8Array.of(LETTER_BYTES.get(match[2])));
    else parts.push(encoder.encode(match[0]));
  }
  return concat(parts);
}

export function concat(parts) {
  const out = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    out.set(part, at);
    at += part.length;
  }
  return out;
}

export function equal(a, b) {
  return a.length === b.length && a.every((byte, at) => byte === b[at]);
}

// Bytes as a string with one character per byte: a key for Map and Set.
export function identity(bytes) {
  let out = '';
  for (let at = 0; at < bytes.length; at += 8192) {
    out += String.fromCharCode(...bytes.subarray(at, at + 8192));
  }
  return out;
}

// Lines of offset, 16 bytes in hexadecimal, and their ASCII characters.
export function hexView(bytes, first = 0) {
  const lines = [];
  for (let at = 0; at < bytes.length; at += 16) {
    const row = bytes.subarray(at, at + 16);
    const digits = Array.from(row, hex).join(' ').padEnd(47);
    const ascii = Array.from(row, (b) => (b >= 32 && b < 127 ? String.fromCharCode(b) : '.')).join('');
    lines.push(`${(first + at).toString(16).padStart(8, '0')}  ${digits}  ${ascii}`);
  }
  return lines.join('\n');
}

// Percent-encodes bytes for the fragment of the address.
export function toFragment(bytes) {
  const isSafe = (b) => (b >= 48 && b < 58) || (b >= 65 && b < 91) || (b >= 97 && b < 123) || b === 45 || b === 58 || b === 95;
  return Array.from(bytes, (b) => (isSafe(b) ? String.fromCharCode(b) : '%' + hex(b))).join('');
}

export function fromFragment(text) {
  const parts = text.match(/%[0-9a-fA-F]{2}|[^%]/g) || [];
  return concat(parts.map((part) => (part.length === 3 && part[0] === '%' ? Uint8Array.of(parseInt(part.slice(1), 16)) : encoder.encode(part))));
}
