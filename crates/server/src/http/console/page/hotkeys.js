// The most requested keys, from short samples of the requests. MONITOR costs the server time for each request, so it runs
// in bursts: the connection is closed after BURST_MS, or earlier if the burst has many requests.

import { el, button, setText, Message } from '/console/dom.js';
import { Table, numberColumn } from '/console/table.js';
import { CommandKeys } from '/console/keyspec.js';
import { describeKeys, keyColumns } from '/console/keys.js';
import { ConnectionLost, Session, isError } from '/console/session.js';
import { Status } from '/console/resp.js';
import { identity, unescape } from '/console/bytes.js';
import { pause } from '/console/pause.js';
import * as format from '/console/format.js';

const BURST_MS = 100;
const BURST_REQUESTS_MAX = 20_000;
const BURST_BYTES_MAX = 8 * 1024 * 1024;
const BURSTS_MAX = 60;
const PAUSE_MS = 900;
// The longest time until MONITOR replies, which includes the login.
const CONNECT_MS_MAX = 15_000;
// The longest time until a burst ends, if the worker of pause.js is late.
const LATE_MS_MAX = 1000;
// If a sample ends with more different keys, those with few requests are forgotten.
const KEYS_MAX = 100_000;
// Longer lines are counted, but their keys are not examined.
const LINE_CHARACTERS_MAX = 64 * 1024;
const SHOWN_KEYS = 50;

// The database and the arguments of a line: 1700000000.123456 [0 127.0.0.1:5000] "get" "key". Null for other lines.
function parse(line) {
  const match = /^[\d.]+ \[(\d+) .*?\] (?=")/.exec(line);
  if (!match) return null;
  const quoted = line.slice(match[0].length).matchAll(/"((?:[^"\\]|\\.)*)"/g);
  return { db: Number(match[1]), words: Array.from(quoted, ([, word]) => unescape(word)) };
}

class Sample {
  constructor() {
    Object.assign(this, { commands: null, counts: new Map(), requests: 0, bursts: 0, ms: 0, isRunning: true });
  }

  // Runs MONITOR over a connection of its own, and closes it.
  burst() {
    return new Promise((resolve, reject) => {
      let began = null;
      let ms = 0;
      let requests = 0;
      let bytes = 0;
      const end = () => {
        ms ||= began === null ? 0 : performance.now() - began;
        session.close();
      };
      const limit = setTimeout(end, CONNECT_MS_MAX);
      const onPush = (reply) => {
        if (isError(reply)) reject(reply);
        const line = reply instanceof Status ? reply.text : '';
        if (isError(reply) || requests >= BURST_REQUESTS_MAX || bytes >= BURST_BYTES_MAX) return end();
        if (began === null) {
          began = performance.now(); // the reply to MONITOR itself
          clearTimeout(limit);
          pause(BURST_MS).then(end);
          setTimeout(end, LATE_MS_MAX);
        }
        bytes += line.length;
        if (ms === 0) requests += this.count(line);
        return undefined;
      };
      const onState = ({ state, problem }) => {
        if (state === 'ready') session.send(['MONITOR']);
        else if (state === 'login') end();
        if (state !== 'closed') return;
        clearTimeout(limit);
        if (ms === 0 || problem) return reject(new ConnectionLost(problem || 'The server did not reply to MONITOR.'));
        this.requests += requests;
        this.bursts += 1;
        this.ms += ms;
        this.forgetRare();
        return resolve();
      };
      const session = new Session({ name: 'console-monitor', onState, onPush });
      session.connect();
    });
  }

  // Returns the number of requests in the line.
  count(line) {
    if (line.length > LINE_CHARACTERS_MAX) return 1;
    const request = parse(line);
    if (!request || request.words.length === 0) return 0;
    for (const name of this.commands.keys(request.words)) {
      const id = `${request.db} ${identity(name)}`;
      const known = this.counts.get(id);
      if (known) known.count += 1;
      else if (this.counts.size < 2 * KEYS_MAX) this.counts.set(id, { db: request.db, name, count: 1 });
    }
    return 1;
  }

  forgetRare() {
    for (let rare = 1; this.counts.size > KEYS_MAX; rare *= 2) {
      for (const [id, { count }] of this.counts) if (count <= rare) this.counts.delete(id);
    }
  }

  // The most requested keys with their requests per second.
  hottest() {
    const all = [...this.counts.values()].sort((a, b) => b.count - a.count).slice(0, SHOWN_KEYS);
    return all.map(({ db, name, count }) => ({ db, name, requests: (1000 * count) / Math.max(this.ms, 1) }));
  }
}

// Adds type, TTL and size to the keys of each database.
async function described(session, keys) {
  const rows = [];
  for (const db of new Set(keys.map((key) => key.db))) {
    const own = keys.filter((key) => key.db === db);
    const facts = await describeKeys(session, db, own.map((key) => key.name));
    facts.forEach((row, at) => rows.push({ ...row, ...own[at], id: `${db} ${row.id}` }));
  }
  return rows;
}

export function createHotKeys(app) {
  const message = new Message();
  const status = el('span', { class: 'note', role: 'status' });
  const table = new Table({
    columns: [...keyColumns(app), numberColumn('requests', 'Requests per second', format.short, { title: 'estimated from the samples' })],
    key: (row) => row.id, caption: 'Most requested keys', sort: 'requests', limit: SHOWN_KEYS,
    empty: 'Sample the requests to fill this table. Each second, MONITOR runs for a tenth of a second.',
  });
  const start = button('Sample requests', run, { class: 'primary' });
  const stop = button('Stop sampling', () => { sample.isRunning = false; }, { hidden: true });
  let sample = null;

  async function step() {
    await sample.burst();
    const { requests, bursts, ms } = sample;
    setText(status, `${format.plural(bursts, 'sample')}: ${format.count(requests)} requests in ${format.seconds(ms / 1000)}`);
    // The keys are read between the samples, so that these requests are not sampled.
    table.update(await described(app.session, sample.hottest()));
  }

  async function run() {
    start.disabled = true;
    stop.hidden = false;
    setText(status, '');
    table.update([]);
    await message.attempt(async () => {
      sample = new Sample();
      sample.commands = new CommandKeys(await app.session.call('COMMAND'));
      while (sample.isRunning && sample.bursts < BURSTS_MAX) {
        await step();
        if (sample.isRunning) await pause(PAUSE_MS);
      }
    });
    start.disabled = false;
    stop.hidden = true;
  }

  return {
    element: el('section', {}, el('div', { class: 'toolbar' }, start, stop, status), message.element, table.element),
    // The samples cost the server time, so they end when the view is left.
    stop() {
      if (sample) sample.isRunning = false;
    },
  };
}
