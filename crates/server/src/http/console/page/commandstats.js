// Statistics per command, from two events of INFO: calls and time per second, and percentiles of the duration.

import { latencyDelta, percentiles } from '/console/latency.js';
import { pairs } from '/console/store.js';

const FIELDS = ['calls', 'usec', 'rejected_calls', 'failed_calls'];

function numbers(text) {
  const values = pairs(text);
  return FIELDS.map((name) => Number(values.get(name) ?? 0));
}

function row(name, [calls, usec, rejected, failed], seconds) {
  return {
    name: name.toUpperCase().replace('|', ' '), command: name,
    calls: calls / seconds, usec: usec / seconds, perCall: calls > 0 ? usec / calls : NaN,
    rejected: rejected / seconds, failed: failed / seconds, p50: NaN, p99: NaN,
  };
}

function withShares(rows) {
  const total = rows.reduce((sum, { usec }) => sum + usec, 0);
  for (const each of rows) each.share = total > 0 ? (100 * each.usec) / total : 0;
  return rows;
}

// Rates of the last ten seconds. Commands without calls in this time are omitted.
export function recentCommands(store) {
  const first = store.snapshots[0];
  const last = store.snapshots[store.snapshots.length - 1];
  if (!first || first === last) return [];
  const seconds = (last.time - first.time) / 1000;
  const rows = [];
  for (const [name, text] of last.commands) {
    const earlier = first.commands.get(name);
    if (earlier === text) continue;
    const before = earlier ? numbers(earlier) : [0, 0, 0, 0];
    const grown = numbers(text).map((value, at) => value - before[at]);
    if (grown.some((value) => value < 0)) continue; // after CONFIG RESETSTAT
    const each = row(name, grown, seconds);
    addPercentiles(each, first, last);
    rows.push(each);
  }
  return withShares(rows);
}

function addPercentiles(each, first, last) {
  if (!first.histograms || !last.histograms) return;
  const buckets = latencyDelta(first.histograms, last.histograms, each.command);
  Object.assign(each, percentiles(buckets));
}
