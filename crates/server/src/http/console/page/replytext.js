// Replies as text in the format of redis-cli, line by line, so that a large reply is formatted only as far as it is shown.

import { ReplyError, ReplyMap, ReplySet, Push, Status, Double, Verbatim } from '/console/resp.js';
import { escape, toText } from '/console/bytes.js';

// The part of a long string that is shown.
const STRING_BYTES_MAX = 64 * 1024;

export function quote(bytes) {
  const text = escape(bytes.subarray(0, STRING_BYTES_MAX)).replace(/"/g, '\\"');
  return bytes.length > STRING_BYTES_MAX ? `"${text}"… (${bytes.length} bytes)` : `"${text}"`;
}

// A value that needs one line, or null.
function atom(reply) {
  if (reply === null) return '(nil)';
  if (reply instanceof Uint8Array) return quote(reply);
  if (reply instanceof Double) return `(double) ${reply.text}`;
  if (reply instanceof Status) return reply.text;
  if (reply instanceof ReplyError) return `(error) ${reply.message}`;
  if (typeof reply === 'boolean') return `(${reply})`;
  return typeof reply === 'object' ? null : `(integer) ${reply}`;
}

function shape(reply) {
  if (reply instanceof ReplyMap) return { items: reply.entries, mark: '#', empty: '(empty hash)' };
  if (reply instanceof ReplySet) return { items: reply, mark: '~', empty: '(empty set)' };
  return { items: reply, mark: reply instanceof Push ? '>' : ')', empty: '(empty array)' };
}

// Prefixes the first line with `head` and indents the others.
function* prefixed(lines, head) {
  let isFirst = true;
  for (const line of lines) {
    yield (isFirst ? head : ' '.repeat(head.length)) + line;
    isFirst = false;
  }
}

function* pairLines([key, value]) {
  const name = atom(key) ?? '(aggregate)';
  const text = atom(value);
  if (text !== null) {
    yield `${name} => ${text}`;
    return;
  }
  yield `${name} =>`;
  for (const line of lines(value)) yield `   ${line}`;
}

export function* lines(reply) {
  if (reply instanceof Verbatim) {
    yield* toText(reply.bytes).replace(/\r?\n$/, '').split(/\r?\n/);
    return;
  }
  const text = atom(reply);
  if (text !== null) {
    yield text;
    return;
  }
  const { items, mark, empty } = shape(reply);
  if (items.length === 0) yield empty;
  const width = String(items.length).length;
  for (let at = 0; at < items.length; at += 1) {
    const head = `${String(at + 1).padStart(width)}${mark} `;
    yield* prefixed(mark === '#' ? pairLines(items[at]) : lines(items[at]), head);
  }
}
