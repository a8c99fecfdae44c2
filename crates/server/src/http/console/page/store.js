// The fields of INFO, and the last five minutes of the values that are computed from them.

import { latencyDelta, percentiles } from '/console/latency.js';

export const INFO_DENIED = 'This needs the permission to run INFO (ACL rule +info).';
export const WINDOW_MS = 5 * 60 * 1000;
const SAMPLES_MAX = 330;
// The events of the last seconds, from which rates per command are computed.
const SNAPSHOTS_MAX = 11;
// If no event arrives for longer, the plots have a gap.
export const GAP_MS = 3000;

// Parses "a=1,b=2" into a Map.
export function pairs(text = '') {
  return new Map(text.split(',').map((pair) => {
    const at = pair.indexOf('=');
    return [pair.slice(0, at), pair.slice(at + 1)];
  }));
}

// Counters of INFO whose rate per second is a sample.
const RATES = {
  ops: 'total_commands_processed', input: 'total_net_input_bytes', output: 'total_net_output_bytes',
  hits: 'keyspace_hits', misses: 'keyspace_misses', expired: 'expired_keys', evicted: 'evicted_keys',
  errors: 'total_error_replies', rejected: 'rejected_connections',
  offset: 'master_repl_offset', delayedSyncs: 'aof_delayed_fsync',
};
// Fields whose value is a sample.
const VALUES = {
  used: 'used_memory', rss: 'used_memory_rss', maxmemory: 'maxmemory', clients: 'connected_clients',
  blocked: 'blocked_clients',
};

export class Store {
  constructor() {
    this.fields = new Map();
    this.samples = [];
    this.snapshots = []; // the command statistics and histograms of the last seconds
    this.histograms = null; // the latest reply of LATENCY HISTOGRAM
    this.canWrite = false;
    this.version = '';
    this.isDenied = false;
    this.listeners = new Set();
  }

  text(name) {
    return this.fields.get(name);
  }

  number(name) {
    const value = this.fields.get(name);
    return value === undefined ? NaN : Number(value);
  }

  // The fields whose names consist of a prefix and a number: worker0, slave1.
  numbered(prefix) {
    const found = [];
    for (let at = 0; this.fields.has(prefix + at); at += 1) found.push(pairs(this.fields.get(prefix + at)));
    return found;
  }

  // The databases with keys: [number, keys] pairs.
  databases() {
    const found = [];
    for (const [name, value] of this.fields) {
      const match = /^db(\d+)$/.exec(name);
      if (match) found.push([Number(match[1]), Number(pairs(value).get('keys'))]);
    }
    return found.sort((a, b) => a[0] - b[0]);
  }

  keys() {
    return this.databases().reduce((sum, [, keys]) => sum + keys, 0);
  }

  last() {
    return this.samples[this.samples.length - 1];
  }

  // Applies an event of the server.
  apply(event) {
    if (event.console) {
      this.canWrite = event.console.write === true;
      this.version = event.console.version;
      this.fields.clear();
      this.isDenied = false;
    }
    if (event.denied) this.isDenied = true;
    if (event.info) this.applyInfo(event.time, event.info);
    for (const listener of this.listeners) listener(this);
  }

  applyInfo(time, info) {
    for (const [name, value] of Object.entries(info)) {
      if (value === null) this.fields.delete(name);
      else this.fields.set(name, value);
    }
    const before = this.isSameRun(time) ? this.previous : null;
    this.sample(time, before);
    this.previous = this.counters(time);
    this.keepSnapshot(time);
  }

  // Reports whether the counters continue those of the previous event: the server was not restarted since, and the
  // connection was not interrupted.
  isSameRun(time) {
    const before = this.previous;
    return before && before.run === this.text('run_id') && time > before.time && time - before.time < GAP_MS;
  }

  counters(time) {
    const counters = { time, run: this.text('run_id'), workers: this.numbered('worker').map(workerTimes) };
    for (const [name, field] of Object.entries(RATES)) counters[name] = this.number(field);
    counters.cpu = this.number('used_cpu_sys') + this.number('used_cpu_user');
    return counters;
  }

  sample(time, before) {
    const sample = { time, keys: this.keys(), lag: this.replicationLag() };
    for (const [name, field] of Object.entries(VALUES)) sample[name] = this.number(field);
    if (sample.maxmemory === 0) sample.maxmemory = NaN;
    if (before) Object.assign(sample, this.rates(time, before));
    else this.snapshots = [];
    this.samples.push(sample);
    if (this.samples.length > SAMPLES_MAX) this.samples.shift();
  }

  rates(time, before) {
    const seconds = (time - before.time) / 1000;
    const now = this.counters(time);
    const rates = { seconds };
    for (const name of [...Object.keys(RATES), 'cpu']) {
      const grown = now[name] - before[name];
      rates[name] = grown >= 0 ? grown / seconds : NaN; // CONFIG RESETSTAT sets counters to 0
    }
    rates.cpu *= 100;
    const lookups = rates.hits + rates.misses;
    rates.hitRate = lookups > 0 ? (100 * rates.hits) / lookups : NaN;
    rates.workers = now.workers.map((worker, at) => busyShare(worker, before.workers[at]));
    return rates;
  }

  // The largest number of bytes of the stream that a replica has not acknowledged.
  replicationLag() {
    const offset = this.number('master_repl_offset');
    const lags = this.numbered('slave').map((replica) => offset - Number(replica.get('offset')));
    return lags.length > 0 ? Math.max(0, ...lags) : NaN;
  }

  keepSnapshot(time) {
    const commands = new Map();
    for (const [name, value] of this.fields) {
      if (name.startsWith('cmdstat_')) commands.set(name.slice(8), value);
    }
    this.snapshots.push({ time, commands, histograms: this.histograms });
    if (this.snapshots.length > SNAPSHOTS_MAX) this.snapshots.shift();
  }

  // Takes a reply of LATENCY HISTOGRAM as a Map from commands to buckets. The percentiles of the interval since the
  // previous reply belong to the latest sample.
  applyHistograms(histograms) {
    const before = this.histograms;
    this.histograms = histograms;
    const sample = this.last();
    if (before && sample) Object.assign(sample, percentiles(latencyDelta(before, histograms)));
    const snapshot = this.snapshots[this.snapshots.length - 1];
    if (snapshot) snapshot.histograms = histograms;
  }

  // After the connection was lost, the plots have a gap.
  interrupt() {
    this.previous = null;
    this.histograms = null;
  }

  // How much a counter grew during the last minute.
  grewInMinute(name) {
    const from = Date.now() - 60_000;
    return this.samples.reduce((sum, sample) => (sample.time > from && sample[name] > 0 ? sum + sample[name] * sample.seconds : sum), 0);
  }

  // The mean of a value in the last samples, NaN without samples.
  recent(read, count = 5) {
    const values = this.samples.slice(-count).map(read).filter((value) => value >= 0);
    return values.reduce((sum, value) => sum + value, 0) / values.length;
  }
}

// The microseconds that a worker has waited for events, and those of everything that it does.
function workerTimes(fields) {
  const times = [...fields].filter(([name]) => name.startsWith('us_')).map(([, value]) => Number(value));
  return { waited: Number(fields.get('us_wait')), all: times.reduce((sum, time) => sum + time, 0) };
}

function busyShare(now, before) {
  const all = now.all - before?.all;
  return all > 0 ? 100 - (100 * (now.waited - before.waited)) / all : NaN;
}
