// Percentiles of the duration of commands in an interval, from two replies of LATENCY HISTOGRAM.

import { field, plain } from '/console/resp.js';

// Parses a reply of LATENCY HISTOGRAM: a Map from the command to a Map from the upper bound of a bucket (in
// microseconds) to the number of calls in the bucket.
export function parseHistograms(reply) {
  const commands = new Map();
  for (const [name, entry] of reply.entries ?? []) {
    const buckets = new Map();
    let below = 0;
    for (const [upper, cumulative] of field(entry, 'histogram_usec')?.entries ?? []) {
      buckets.set(Number(upper), Number(cumulative) - below);
      below = Number(cumulative);
    }
    commands.set(plain(name), buckets);
  }
  return commands;
}

function addDelta(total, before, after) {
  for (const [upper, calls] of after) {
    const grown = calls - (before?.get(upper) ?? 0);
    if (grown > 0) total.set(upper, (total.get(upper) ?? 0) + grown);
  }
}

// The buckets of all calls between two replies, or those of one command.
export function latencyDelta(before, after, command = null) {
  const total = new Map();
  for (const [name, buckets] of after) {
    if (command === null ? name !== 'latency|histogram' : name === command) addDelta(total, before.get(name), buckets);
  }
  return total;
}

// A percentile in microseconds. Within its bucket, whose bounds differ by a factor of two, it is interpolated.
function percentile(buckets, share) {
  const sorted = [...buckets].sort((a, b) => a[0] - b[0]);
  const calls = sorted.reduce((sum, [, number]) => sum + number, 0);
  let rank = share * calls;
  for (const [upper, number] of sorted) {
    if (rank <= number) return (upper / 2) * 2 ** (rank / number);
    rank -= number;
  }
  return NaN;
}

export function percentiles(buckets) {
  return buckets.size > 0 ? { p50: percentile(buckets, 0.5), p99: percentile(buckets, 0.99) } : {};
}
