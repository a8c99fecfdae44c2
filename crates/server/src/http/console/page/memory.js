// Memory: a scan that finds the biggest and the hottest keys and the patterns that use most memory, and the server's own
// report.

import { el, button, select, labeled, replace, setText, Facts, Message } from '/console/dom.js';
import { Table, numberColumn, textColumn } from '/console/table.js';
import { Patterns } from '/console/patterns.js';
import { keyColumns } from '/console/keys.js';
import { createHotKeys } from '/console/hotkeys.js';
import { tabs } from '/console/tabs.js';
import { check, isError } from '/console/session.js';
import { plain } from '/console/resp.js';
import { identity } from '/console/bytes.js';
import { pause } from '/console/pause.js';
import * as format from '/console/format.js';

// The number of keys in a batch adapts to the time that a batch takes.
const BATCH_KEYS_MIN = 100;
const BATCH_KEYS_MAX = 2000;
const BATCH_MS = 50;
const TOP_KEYS = 100;
const DRAW_MS = 500;
// The time left is estimated from this number of the latest drawings.
const MARKS_MAX = 20;
// The pause after each batch, in relation to the time that the batch took.
const LOADS = [['9', 'low'], ['2', 'medium'], ['0', 'high']];

// The rows with the largest values.
class Top {
  constructor(value) {
    this.value = value;
    this.rows = [];
  }

  add(row) {
    const value = this.value(row);
    if (!(value >= 0) || (this.rows.length >= TOP_KEYS && value <= this.value(this.rows[TOP_KEYS - 1]))) return;
    const at = this.rows.findIndex((other) => this.value(other) < value);
    this.rows.splice(at < 0 ? this.rows.length : at, 0, row);
    this.rows.length = Math.min(this.rows.length, TOP_KEYS);
  }
}

// Reads the sizes of all keys with at most one batch in flight, and pauses between the batches. A stopped scan can be
// continued.
class MemoryScan {
  constructor(session, databases, load, withFrequency) {
    Object.assign(this, { session, databases, load, withFrequency });
    this.biggest = new Top((row) => row.bytes);
    this.hottest = new Top((row) => row.frequency);
    this.patterns = new Patterns();
    this.total = databases.reduce((sum, [, keys]) => sum + keys, 0);
    Object.assign(this, { keys: 0, bytes: 0, isRunning: false, isStopping: false, isComplete: false, batch: BATCH_KEYS_MIN, marks: [] });
    // The position: the database, the cursor of SCAN (null at the end of the database), and names that SCAN returned.
    Object.assign(this, { at: 0, cursor: '0', names: [] });
    this.endPause = () => {};
  }

  // Scans until the end, until `stop`, or until a request fails. `isRunning` is true until the loop has ended: a second
  // loop, started by "Continue", would read the same keys again.
  async run() {
    Object.assign(this, { isRunning: true, isStopping: false, marks: [] });
    try {
      if (Number.isNaN(this.total)) this.total = await this.session.callIn(this.databases[0][0], 'DBSIZE');
      await this.steps();
    } finally {
      this.isRunning = false;
    }
    this.isComplete = this.at === this.databases.length;
  }

  stop() {
    this.isStopping = true;
    this.endPause();
  }

  async steps() {
    while (!this.isStopping && this.at < this.databases.length) {
      const began = performance.now();
      await this.step();
      const took = performance.now() - began;
      const next = took < BATCH_MS ? this.batch * 2 : this.batch / 2;
      this.batch = Math.round(Math.min(BATCH_KEYS_MAX, Math.max(BATCH_KEYS_MIN, next)));
      if (this.isStopping) return;
      const stopped = new Promise((resolve) => { this.endPause = resolve; });
      await Promise.race([stopped, pause(Math.max(1, Math.min(2000, this.load * took)))]);
    }
  }

  // One round trip reads the properties of a batch of keys, and the names of the next batch. If it fails, the position
  // does not change.
  async step() {
    const [db] = this.databases[this.at];
    const [batch, rest] = [this.names.slice(0, this.batch), this.names.slice(this.batch)];
    const isScanning = rest.length === 0 && this.cursor !== null;
    const replies = await this.session.pipelineIn(db, [...batch.flatMap((name) => this.commands(name)), ...(isScanning ? [['SCAN', this.cursor, 'COUNT', this.batch]] : [])]);
    this.names = rest;
    if (isScanning) {
      const [scanned] = check(replies.splice(-1));
      this.cursor = plain(scanned[0]) === '0' ? null : scanned[0];
      this.names = scanned[1];
    }
    this.count(db, batch, replies);
    if (this.cursor === null && this.names.length === 0) Object.assign(this, { at: this.at + 1, cursor: '0' });
  }

  commands(name) {
    const commands = [['TYPE', name], ['PTTL', name], ['MEMORY', 'USAGE', name]];
    return this.withFrequency ? [...commands, ['OBJECT', 'FREQ', name]] : commands;
  }

  count(db, names, replies) {
    const each = this.withFrequency ? 4 : 3;
    names.forEach((name, at) => {
      const [type, pttl, bytes, frequency] = replies.slice(at * each, (at + 1) * each);
      this.keys += 1;
      if (!(bytes >= 0) || isError(type) || bytes === null) return; // deleted meanwhile, or not permitted
      const row = { db, name, id: `${db} ${identity(name)}`, type: plain(type), pttl, bytes, frequency };
      this.bytes += bytes;
      this.biggest.add(row);
      this.hottest.add(row);
      this.patterns.add(db, row);
    });
  }

  // The time until the end of the scan, if it continues as in the last seconds. Called for each drawing.
  secondsLeft() {
    const now = { time: performance.now(), keys: this.keys };
    this.marks.push(now);
    if (this.marks.length > MARKS_MAX) this.marks.shift();
    const [first] = this.marks;
    const perSecond = (1000 * (now.keys - first.keys)) / (now.time - first.time);
    return perSecond > 0 ? Math.max(0, this.total - this.keys) / perSecond : NaN;
  }
}

const shareOf = (total) => ({ share: (row) => row.bytes / total() });

function patternColumns(total) {
  const computed = (id, label, f, text) => ({ id, label, number: true, sort: f, text: (row) => text(f(row)) });
  return [
    textColumn('pattern', 'Pattern', { text: (row) => (row.keys === 1 ? row.name : row.pattern) }), textColumn('type', 'Type'),
    numberColumn('bytes', 'Bytes', format.bytes, shareOf(total)),
    computed('share', 'Share', (row) => (100 * row.bytes) / total(), format.percent),
    numberColumn('keys', 'Keys', format.count),
    computed('mean', 'Bytes per key', (row) => row.bytes / row.keys, format.bytes),
    computed('lasting', 'Bytes without TTL', (row) => (100 * row.withoutTtl) / row.bytes, format.percent),
    numberColumn('db', 'DB', String),
  ];
}

function createServerReport(app) {
  const message = new Message();
  const doctor = el('pre', { class: 'report' });
  const facts = new Facts();

  async function load() {
    const [report, stats] = check(await app.session.pipeline([['MEMORY', 'DOCTOR'], ['MEMORY', 'STATS']]));
    setText(doctor, plain(report));
    const rows = plain(stats).filter(([, value]) => !Array.isArray(value));
    facts.update(rows.map(([name, value]) => [name, /ratio|percentage|count|^fragmentation$/.test(name) ? format.short(value) : format.bytes(value)]));
  }

  return {
    element: el('div', { class: 'view' }, message.element, el('h3', {}, 'MEMORY DOCTOR'), doctor, el('h3', {}, 'MEMORY STATS'), el('div', { class: 'panel' }, facts.element)),
    show: () => message.attempt(load),
    hide() {},
  };
}

export function createMemory(app) {
  const { session, store } = app;
  const message = new Message();
  const status = el('span', { class: 'note', role: 'status' });
  const progress = el('progress', { max: 1, hidden: true, 'aria-label': 'Progress of the scan' });
  const databases = el('select');
  const load = select(LOADS, '2', (value) => { if (scan) scan.load = Number(value); });
  const start = button('Scan', begin, { class: 'primary' });
  const stop = button('Stop scan', () => { scan.stop(); draw(); }, { hidden: true });
  const resume = button('Continue', run, { hidden: true });
  const biggestNote = el('p', { class: 'note' });
  const total = () => scan?.bytes || 1;
  const columns = keyColumns(app).slice(0, -1).map((column) => (column.id === 'bytes' ? { ...column, ...shareOf(total) } : column));
  const empty = 'Scan the keys to fill this table. The scan reads TYPE, PTTL and MEMORY USAGE of each key.';
  const biggest = new Table({ columns, key: (row) => row.id, caption: 'Biggest keys', sort: 'bytes', empty });
  const patterns = new Table({ columns: patternColumns(total), key: (row) => row.id, caption: 'Memory by pattern and type', sort: 'bytes', limit: 100, empty });
  const hottest = new Table({
    columns: [...columns, numberColumn('frequency', 'Frequency', String, { share: (row) => row.frequency / 255 })],
    key: (row) => row.id, caption: 'Most frequently used keys', sort: 'frequency', empty,
  });
  const hotKeys = createHotKeys(app);
  const frequencies = el('section', {}, el('h3', {}, 'By access frequency'),
    el('p', { class: 'note' }, 'The access frequency is logarithmic, from 0 to 255 (OBJECT FREQ). The scan reads it.'), hottest.element);
  let scan = null;

  const isLfu = () => (store.text('maxmemory_policy') ?? '').includes('lfu');

  function draw() {
    biggest.update(scan.biggest.rows);
    hottest.update(scan.hottest.rows);
    patterns.update([...scan.patterns.groups.values()]);
    const share = Math.min(1, scan.keys / (scan.total || 1));
    progress.value = share;
    progress.hidden = !scan.isRunning;
    stop.hidden = !scan.isRunning;
    stop.disabled = scan.isStopping;
    resume.hidden = scan.isRunning || scan.isComplete;
    start.disabled = scan.isRunning;
    setText(start, scan.isRunning ? 'Scan' : 'Scan again');
    setText(biggestNote, scan.isComplete ? '' : `The biggest of the ${format.count(scan.keys)} keys that were read so far.`);
    const state = scan.isRunning ? 'scanning' : scan.isComplete ? 'complete' : 'stopped';
    const part = scan.isComplete ? '' : ` of ${format.count(scan.total)} (${format.percent(100 * share)})`;
    const seconds = scan.isRunning ? scan.secondsLeft() : NaN;
    const left = seconds >= 0 ? `, about ${format.seconds(seconds)} left` : '';
    setText(status, `${state}: ${format.count(scan.keys)}${part} keys, ${format.bytes(scan.bytes)}${left}`);
  }

  async function begin() {
    const all = store.databases();
    const chosen = databases.value === 'all' ? all : [all.find(([db]) => String(db) === databases.value) ?? [Number(databases.value), NaN]];
    scan = new MemoryScan(session, chosen, Number(load.value), isLfu());
    await run();
  }

  async function run() {
    scan.load = Number(load.value);
    const timer = setInterval(draw, DRAW_MS);
    await message.attempt(async () => {
      const running = scan.run();
      draw();
      await running;
    });
    clearInterval(timer);
    draw();
  }

  function listDatabases() {
    const known = store.databases();
    replace(databases, known.length > 0 ? el('option', { value: 'all' }, `all (${format.plural(store.keys(), 'key')})`) : null,
      (known.length > 0 ? known : [[0, NaN]]).map(([db, keys]) => el('option', { value: db }, keys >= 0 ? `${db} (${format.plural(keys, 'key')})` : String(db))));
  }

  const page = (...content) => ({ element: el('div', { class: 'view' }, content), show() {}, hide() {} });
  const pages = tabs('Memory', 'memory', [
    { id: '', title: 'Biggest keys', view: page(biggestNote, biggest.element) },
    { id: 'patterns', title: 'By pattern', view: page(patterns.element) },
    { id: 'hot', title: 'Hot keys', view: { ...page(hotKeys.element, frequencies), hide: hotKeys.stop } },
    { id: 'report', title: 'Server report', view: createServerReport(app) },
  ]);

  return {
    element: el('div', { class: 'view' }, el('div', { class: 'toolbar' }, labeled('Database', databases), labeled('Load on the server', load), start, stop, resume, progress, status), message.element, pages.element),
    show(rest) {
      if (!scan?.isRunning) listDatabases();
      // The server counts accesses only with an LFU policy.
      frequencies.hidden = !isLfu();
      pages.show(rest);
    },
    hide() {
      pages.hide();
    },
  };
}
