// How each type of collection is read in pages, and which commands change its elements.

import { form, NOTE_ESCAPES } from '/console/dialog.js';
import { isError } from '/console/session.js';
import { plain } from '/console/resp.js';
import { preview, escape, unescape, toBytes, toText, identity } from '/console/bytes.js';
import { numberColumn, textColumn } from '/console/table.js';
import { showValue } from '/console/value.js';
import { writeIfUnchanged, editValue } from '/console/guarded.js';
import * as format from '/console/format.js';

const PREVIEW_BYTES = 200;

// A column of bytes that opens the whole value.
const bytesColumn = (id, label) => ({
  id, label, sort: (row) => escape(row[id].subarray(0, PREVIEW_BYTES)), text: (row) => preview(row[id], PREVIEW_BYTES) || '(empty)',
  press: (row) => showValue(label, row[id]),
});

// Runs a command whose first argument is the key.
const runOn = ({ session, db, key }, name, ...args) => session.callIn(db, name, key, ...args);

// With a filter, a step of a scan examines this many pages of elements.
const FILTERED_PAGES = 5;

// The next page of HSCAN, SSCAN or ZSCAN: the elements, and the next cursor, or null at the end. With a filter, the scan
// continues until the page is full. An element has `width` items in the reply.
async function scanPage(context, command, cursor, view, width) {
  const match = view.filter ? ['MATCH', unescape(view.filter)] : [];
  const count = view.count() * (view.filter ? FILTERED_PAGES : 1);
  const items = [];
  let at = cursor;
  do {
    const [next, found] = await runOn(context, command, at, 'COUNT', count, ...match);
    at = plain(next);
    for (const item of found) items.push(item);
    view.noteScanned(count);
  } while (view.filter && at !== '0' && items.length < width * view.count() && !view.isStopped);
  return { items, next: at === '0' ? null : at };
}

// A filter without glob characters is the name of one element, which needs no scan.
const exactName = ({ filter }) => (filter === '' || /[*?[\]]/.test(filter) ? null : unescape(filter));

const inPairs = (items, make) => Array.from({ length: items.length / 2 }, (_, at) => make(items[2 * at], items[2 * at + 1]));

// The values of a form are text in which escapes stand for bytes.
function askAndRun(context, title, fields, command) {
  return form({ title, action: 'Save', fields, note: NOTE_ESCAPES, submit: (values) => runOn(context, ...command(values)) });
}

async function hashPage(context, position, view) {
  const name = exactName(view);
  if (name === null) return scanPage(context, 'HSCAN', position, view, 2);
  const value = await runOn(context, 'HGET', name);
  return { items: value === null ? [] : [name, value], next: null };
}

const hash = {
  first: '0',
  canFilter: true,
  id: (row) => identity(row.field),
  name: (row) => row.field,
  columns: () => [bytesColumn('field', 'Field'), bytesColumn('value', 'Value'), numberColumn('bytes', 'Bytes', format.count),
    numberColumn('pttl', 'TTL', format.ttl)],
  async load(context, position, view) {
    const { session, db, key } = context;
    const { items, next } = await hashPage(context, position, view);
    const rows = inPairs(items, (field, value) => ({ field, value, bytes: value.length }));
    if (rows.length === 0) return { rows, next };
    const [ttls] = await session.pipelineIn(db, [['HPTTL', key, 'FIELDS', rows.length, ...rows.map((row) => row.field)]]);
    if (!isError(ttls)) rows.forEach((row, at) => { row.pttl = ttls[at]; });
    return { rows, next };
  },
  add: [{
    label: 'Set a field…',
    run: (context) => askAndRun(context, 'Set a field', [{ name: 'field', label: 'Field' }, { name: 'value', label: 'Value', rows: 4 }],
      ({ field, value }) => ['HSET', unescape(field), unescape(value)]),
  }],
  edit: (context, row) => editValue(context, `Edit the field ${preview(row.field, 60)}`, row.value, ['HGET', context.key, row.field],
    (value) => ['HSET', context.key, row.field, value], row.pttl > 0 ? 'Saving removes the TTL of the field.' : ''),
  removeCommand: 'HDEL',
  remove: (context, row) => runOn(context, 'HDEL', row.field),
};

const set = {
  first: '0',
  canFilter: true,
  id: (row) => identity(row.member),
  name: (row) => row.member,
  columns: () => [bytesColumn('member', 'Member')],
  async load(context, position, view) {
    const name = exactName(view);
    if (name !== null) return { rows: await runOn(context, 'SISMEMBER', name) ? [{ member: name }] : [], next: null };
    const { items, next } = await scanPage(context, 'SSCAN', position, view, 1);
    return { rows: items.map((member) => ({ member })), next };
  },
  add: [{
    label: 'Add a member…',
    run: (context) => askAndRun(context, 'Add a member', [{ name: 'member', label: 'Member' }], ({ member }) => ['SADD', unescape(member)]),
  }],
  removeCommand: 'SREM',
  remove: (context, row) => runOn(context, 'SREM', row.member),
};

const zset = {
  first: 0,
  canFilter: true,
  canReverse: true,
  id: (row) => identity(row.member),
  name: (row) => row.member,
  columns: () => [numberColumn('rank', 'Rank', (rank) => (rank < 0 ? '–' : String(rank))), numberColumn('score', 'Score', String, { sort: (row) => Number(row.score) }), bytesColumn('member', 'Member')],
  async load(context, position, view) {
    const name = exactName(view);
    if (name !== null) {
      const score = await runOn(context, 'ZSCORE', name);
      return { rows: score === null ? [] : [{ rank: -1, member: name, score: scoreText(score) }], next: null };
    }
    if (view.filter) {
      const { items, next } = await scanPage(context, 'ZSCAN', position, view, 2);
      return { rows: inPairs(items, (member, score) => ({ rank: -1, member, score: scoreText(score) })), next };
    }
    const count = view.count();
    const order = view.isReversed ? ['REV'] : [];
    const items = await runOn(context, 'ZRANGE', position, position + count - 1, ...order, 'WITHSCORES');
    const rows = items.map(([member, score], at) => ({ rank: position + at, member, score: scoreText(score) }));
    return { rows, next: rows.length === count && position + count < context.properties.length ? position + count : null };
  },
  add: [{
    label: 'Add a member…',
    run: (context) => askAndRun(context, 'Add a member', [{ name: 'member', label: 'Member' }, { name: 'score', label: 'Score' }],
      ({ member, score }) => ['ZADD', score, unescape(member)]),
  }],
  edit: (context, row) => form({
    title: `Score of ${preview(row.member, 60)}`, action: 'Save', fields: [{ name: 'score', label: 'Score', value: row.score }],
    submit: ({ score }) => runOn(context, 'ZADD', 'XX', score, row.member),
  }),
  removeCommand: 'ZREM',
  remove: (context, row) => runOn(context, 'ZREM', row.member),
};

// A score is a double in RESP3 and a string in RESP2 and in ZSCAN.
const scoreText = (score) => score.text ?? toText(score);

const list = {
  first: 0,
  id: (row) => row.index,
  columns: () => [numberColumn('index', 'Index', String), bytesColumn('value', 'Value'), numberColumn('bytes', 'Bytes', format.count)],
  async load(context, position, view) {
    const count = view.count();
    const items = await runOn(context, 'LRANGE', position, position + count - 1);
    const rows = items.map((value, at) => ({ index: position + at, value, bytes: value.length }));
    return { rows, next: rows.length === count && position + count < context.properties.length ? position + count : null };
  },
  add: ['LPUSH', 'RPUSH'].map((command) => ({
    label: command === 'LPUSH' ? 'Add at the head…' : 'Add at the tail…',
    run: (context) => askAndRun(context, command, [{ name: 'value', label: 'Value', rows: 4 }], ({ value }) => [command, unescape(value)]),
  })),
  edit: (context, row) => editValue(context, `Edit the element ${row.index}`, row.value, ['LINDEX', context.key, row.index],
    (value) => ['LSET', context.key, row.index, value]),
  // LREM removes by value, so the element at this index is replaced by a unique value first, in one transaction.
  name: (row) => row.value,
  removeCommand: 'LREM',
  async remove(context, row) {
    const unique = `console-removes-${crypto.getRandomValues(new Uint32Array(4)).join('-')}`;
    await writeIfUnchanged(context, ['LINDEX', context.key, row.index], row.value,
      [['LSET', context.key, row.index, unique], ['LREM', context.key, 1, unique]]);
  },
};

const stream = {
  first: '+',
  id: (row) => row.id,
  name: (row) => toBytes(row.id),
  columns: () => [textColumn('id', 'ID', { sort: null }), textColumn('time', 'Time', { sort: null }),
    textColumn('text', 'Fields', { sort: null, press: (row) => showValue(`Entry ${row.id}`, toBytes(row.whole)) })],
  async load(context, position, view) {
    const count = view.count();
    const entries = await runOn(context, 'XREVRANGE', position, '-', 'COUNT', count);
    const rows = entries.map(([id, items]) => entryRow(toText(id), items));
    return { rows, next: rows.length === count ? `(${rows[rows.length - 1].id}` : null };
  },
  add: [{
    label: 'Add an entry…',
    run: (context) => askAndRun(context, 'Add an entry (XADD)', [{ name: 'field', label: 'Field' }, { name: 'value', label: 'Value', rows: 4 }],
      ({ field, value }) => ['XADD', '*', unescape(field), unescape(value)]),
  }],
  removeCommand: 'XDEL',
  remove: (context, row) => runOn(context, 'XDEL', row.id),
};

function entryRow(id, items) {
  const parts = inPairs(items, (field, value) => [field, value]);
  return {
    id,
    time: format.dateTime(parseInt(id, 10)),
    text: parts.slice(0, 20).map(([field, value]) => `${preview(field, 40)}=${preview(value, 80)}`).join('  '),
    whole: parts.map(([field, value]) => `${escape(field)} = ${escape(value)}`).join('\n'),
  };
}

export const TYPES = { hash, set, zset, list, stream };
