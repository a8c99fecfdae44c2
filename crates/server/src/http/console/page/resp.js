// RESP: encodes requests, and decodes replies of RESP2 and RESP3 incrementally.
//
// A bulk string becomes a Uint8Array, an integer a number or a BigInt, null and booleans themselves, an array an Array.
// The other types have classes, because the prompt shows them differently. Attributes are read and discarded.

import { toBytes } from '/console/bytes.js';

// A larger reply closes the session.
export const REPLY_BYTES_MAX = 64 * 1024 * 1024;
const ELEMENTS_MAX = 4_000_000;
const DEPTH_MAX = 128;

export class ReplyError extends Error {
  get code() {
    return this.message.split(' ', 1)[0];
  }
}

export class Status {
  constructor(text) {
    this.text = text;
  }
}

export class Double extends Status {
  get value() {
    return Number(this.text.replace('inf', 'Infinity'));
  }
}

export class Verbatim {
  constructor(bytes) {
    this.bytes = bytes.subarray(4); // after the format, "txt:"
  }
}

export class ReplyMap {
  constructor(items) {
    this.entries = [];
    for (let at = 0; at + 1 < items.length; at += 2) this.entries.push([items[at], items[at + 1]]);
  }
}

export class ReplySet extends Array {}
export class Push extends Array {}

// A buffer that grows. Scans send thousands of requests, so their parts are not allocated one by one.
class Writer {
  constructor() {
    this.buffer = new Uint8Array(4096);
    this.end = 0;
  }

  reserve(count) {
    if (this.end + count <= this.buffer.length) return;
    const larger = new Uint8Array(Math.max(2 * this.buffer.length, this.end + count));
    larger.set(this.buffer.subarray(0, this.end));
    this.buffer = larger;
  }

  ascii(line) {
    this.reserve(line.length);
    for (let at = 0; at < line.length; at += 1) this.buffer[this.end + at] = line.charCodeAt(at);
    this.end += line.length;
  }

  bytes(part) {
    this.reserve(part.length);
    this.buffer.set(part, this.end);
    this.end += part.length;
  }
}

// The requests as the bytes of RESP arrays. Arguments are strings, numbers or Uint8Arrays.
export function encode(commands) {
  const writer = new Writer();
  for (const args of commands) {
    writer.ascii(`*${args.length}\r\n`);
    for (const arg of args) {
      const bytes = toBytes(arg);
      writer.ascii(`$${bytes.length}\r\n`);
      writer.bytes(bytes);
      writer.ascii('\r\n');
    }
  }
  return writer.buffer.subarray(0, writer.end);
}

const text = new TextDecoder('utf-8', { ignoreBOM: true });

function scalar(type, line) {
  switch (type) {
    case '+': return new Status(line);
    case '-': return new ReplyError(line);
    case ':': return Number.isSafeInteger(Number(line)) ? Number(line) : BigInt(line);
    case ',': return new Double(line);
    case '#': return line === 't';
    case '(': return BigInt(line);
    case '_': return null;
    default: throw new Error(`Protocol error: unknown type ${JSON.stringify(type)}`);
  }
}

const BULKS = { $: (bytes) => bytes, '=': (bytes) => new Verbatim(bytes), '!': (bytes) => new ReplyError(text.decode(bytes)) };
const AGGREGATES = { '*': (items) => items, '~': (items) => ReplySet.from(items), '>': (items) => Push.from(items), '%': (items) => new ReplyMap(items), '|': () => null };

// Decodes a stream of bytes that arrives in pieces of any size, and passes each complete reply to `onReply`.
export class Decoder {
  constructor(onReply) {
    this.onReply = onReply;
    this.buffer = new Uint8Array(0);
    this.at = 0;
    this.end = 0;
    this.searched = 0; // no line feed before this offset
    this.size = 0; // bytes of the current reply that were decoded
    this.stack = [];
    this.pending = null; // a bulk string whose bytes are missing
  }

  push(chunk) {
    this.append(chunk);
    while (this.step());
    if (this.size + this.end - this.at > REPLY_BYTES_MAX) this.tooLarge();
  }

  append(chunk) {
    const rest = this.end - this.at;
    if (rest === 0) {
      this.buffer = chunk;
      this.end = chunk.length;
    } else if (this.end + chunk.length <= this.buffer.length) {
      this.buffer.set(chunk, this.end);
      this.end += chunk.length;
      return;
    } else {
      const larger = new Uint8Array(Math.max(2 * (rest + chunk.length), 4096));
      larger.set(this.buffer.subarray(this.at, this.end));
      larger.set(chunk, rest);
      this.buffer = larger;
      this.end = rest + chunk.length;
    }
    this.searched -= this.at;
    this.at = 0;
    if (this.searched < 0) this.searched = 0;
  }

  tooLarge() {
    throw new Error('The reply is larger than 64 MiB, so the console closed the session.');
  }

  line() {
    const found = this.buffer.indexOf(10, Math.max(this.searched, this.at));
    if (found < 0 || found >= this.end) {
      this.searched = this.end;
      return null;
    }
    const line = text.decode(this.buffer.subarray(this.at, found - 1));
    this.take(found + 1 - this.at);
    return line;
  }

  take(count) {
    this.at += count;
    this.searched = this.at;
    this.size += count;
  }

  // Decodes the next item. Returns false if bytes are missing.
  step() {
    if (this.pending) return this.finishBulk();
    const line = this.line();
    if (line === null) return false;
    const type = line[0];
    const rest = line.slice(1);
    if (type in BULKS) return this.beginBulk(type, Number(rest));
    if (type in AGGREGATES) return this.beginAggregate(type, Number(rest));
    return this.add(scalar(type, rest));
  }

  beginBulk(type, length) {
    if (length < 0) return this.add(null);
    if (!Number.isSafeInteger(length)) throw new Error('Protocol error: invalid bulk length');
    if (this.size + length > REPLY_BYTES_MAX) this.tooLarge();
    this.pending = { type, length };
    return true;
  }

  finishBulk() {
    const { type, length } = this.pending;
    if (this.end - this.at < length + 2) return false;
    const bytes = this.buffer.slice(this.at, this.at + length);
    this.take(length + 2);
    this.pending = null;
    return this.add(BULKS[type](bytes));
  }

  beginAggregate(type, length) {
    if (length < 0) return this.add(null);
    if (!Number.isSafeInteger(length)) throw new Error('Protocol error: invalid length');
    if (length > ELEMENTS_MAX) this.tooLarge();
    if (this.stack.length >= DEPTH_MAX) throw new Error('Protocol error: the reply is nested too deeply');
    const count = '%|'.includes(type) ? 2 * length : length;
    if (count > 0) this.stack.push({ type, count, items: [] });
    else if (type !== '|') return this.add(AGGREGATES[type]([]));
    return true;
  }

  // Adds a complete value to the innermost aggregate, and closes the aggregates that are complete.
  add(complete) {
    let value = complete;
    while (this.stack.length > 0) {
      const top = this.stack[this.stack.length - 1];
      top.items.push(value);
      if (top.items.length < top.count) return true;
      this.stack.pop();
      if (top.type === '|') return true;
      value = AGGREGATES[top.type](top.items);
    }
    this.size = 0;
    this.onReply(value);
    return true;
  }
}

// The value of a field in a map, or in the flat array that RESP2 has instead of a map. Undefined if there is none.
export function field(reply, name) {
  const entries = reply instanceof ReplyMap ? reply.entries : new ReplyMap(Array.isArray(reply) ? reply : []).entries;
  return entries.find(([key]) => plain(key) === name)?.[1];
}

// A reply without its types: bulk strings and statuses become text, maps become arrays of pairs. For replies of the
// server about itself, not for keys or values.
export function plain(reply) {
  if (reply instanceof Uint8Array) return text.decode(reply);
  if (reply instanceof Double) return reply.value;
  if (reply instanceof Status) return reply.text;
  if (reply instanceof Verbatim) return text.decode(reply.bytes);
  if (reply instanceof ReplyMap) return reply.entries.map(([key, value]) => [plain(key), plain(value)]);
  return Array.isArray(reply) ? Array.from(reply, plain) : reply;
}
