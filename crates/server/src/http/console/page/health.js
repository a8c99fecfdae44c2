// The health line: what is wrong now, most severe first, each with the view that shows more.

import * as format from '/console/format.js';
import { preview } from '/console/bytes.js';
import { pairs } from '/console/store.js';
import { recentCommands } from '/console/commandstats.js';

const BAD = 0;
const WARN = 1;
const NOTE = 2;
export const LEVELS = ['bad', 'warn', 'note'];

const MEMORY_SHARE_MAX = 0.9;
const CLIENTS_SHARE_MAX = 0.9;
const BUSY_PERCENT_MAX = 90;
const FRAGMENTATION_MAX = 1.5;
const FRAGMENTATION_BYTES_MIN = 100 * 1024 * 1024;
const LAG_SECONDS_MAX = 5;
const REPLY_MS_MAX = 2000;
// If no event arrives for longer, the page says so.
export const SILENT_MS_MAX = 4000;

// `watch` has what the overview polls: {waitingMs, silentMs, error, slow, cluster}.
export function findings(store, watch) {
  const found = [];
  const add = (level, text, view) => found.push({ level, text, view });
  session(watch, add);
  persistence(store, add);
  memory(store, add);
  clients(store, add);
  replication(store, add);
  cluster(watch, add);
  load(store, watch, add);
  return found.sort((a, b) => a.level - b.level);
}

function session(watch, add) {
  if (watch.error) add(BAD, watch.error, 'prompt');
  if (watch.silentMs > SILENT_MS_MAX) add(BAD, `The server has sent no data for ${format.seconds(watch.silentMs / 1000)}.`, 'overview');
  if (watch.waitingMs > REPLY_MS_MAX) {
    add(BAD, `The server has not replied to this console for ${format.seconds(watch.waitingMs / 1000)}. A long command may be running.`, 'commands/slowlog');
  }
}

function persistence(store, add) {
  const is = (name, value) => store.text(name) === value;
  if (is('loading', '1')) add(BAD, `The server is loading its dataset: ${store.text('loading_loaded_perc') ?? '0'} %.`, 'persistence');
  if (is('rdb_last_bgsave_status', 'err')) add(BAD, 'The last snapshot (BGSAVE) failed. The server may reject writes (MISCONF).', 'persistence');
  if (is('aof_last_write_status', 'err')) add(BAD, 'Writing the append-only file failed. The disk may be full or faulty.', 'persistence');
  if (is('aof_last_bgrewrite_status', 'err')) add(WARN, 'The last rewrite of the append-only file failed.', 'persistence');
  const delayed = store.grewInMinute('delayedSyncs');
  if (delayed >= 1) add(WARN, `The disk is slow: ${format.plural(Math.round(delayed), 'fsync')} of the append-only file delayed in the last minute.`, 'persistence');
}

function memory(store, add) {
  const [used, max, host, rss] = ['used_memory', 'maxmemory', 'total_system_memory', 'used_memory_rss'].map((name) => store.number(name));
  const policy = store.text('maxmemory_policy');
  const evicted = store.grewInMinute('evicted');
  if (max > 0 && used / max > MEMORY_SHARE_MAX && policy === 'noeviction') {
    add(used >= max ? BAD : WARN, `Memory: ${format.percent((100 * used) / max)} of maxmemory is used${used >= max ? ', and writes are rejected' : ''} (noeviction).`, 'memory');
  } else if (evicted >= 1) {
    add(WARN, `${format.plural(Math.round(evicted), 'key')} evicted in the last minute (${policy}).`, 'memory');
  }
  if (host > 0 && rss / host > MEMORY_SHARE_MAX) add(BAD, `The process uses ${format.percent((100 * rss) / host)} of the memory of the machine.`, 'memory');
  const ratio = store.number('mem_fragmentation_ratio');
  if (ratio > FRAGMENTATION_MAX && store.number('mem_fragmentation_bytes') > FRAGMENTATION_BYTES_MIN) {
    add(WARN, `Fragmentation: the process uses ${ratio} times as much memory as the data. MEMORY PURGE returns unused memory.`, 'memory');
  }
}

function clients(store, add) {
  const connected = store.number('connected_clients');
  const max = store.number('maxclients');
  if (max > 0 && connected / max > CLIENTS_SHARE_MAX) add(WARN, `${format.count(connected)} of at most ${format.plural(max, 'client')} connected.`, 'clients');
  const rejected = store.grewInMinute('rejected');
  if (rejected >= 1) add(BAD, `${format.plural(Math.round(rejected), 'connection')} rejected in the last minute (maxclients or protected mode).`, 'clients');
}

function replication(store, add) {
  if (store.text('role') === 'slave') {
    const primary = `${store.text('master_host')}:${store.text('master_port')}`;
    if (store.text('master_sync_in_progress') === '1') add(WARN, `This replica is loading the dataset of ${primary}: ${store.text('master_sync_perc') ?? '?'} %.`, 'nodes');
    else if (store.text('master_link_status') === 'down') add(BAD, `The link to the primary ${primary} is down${since(store)}.`, 'nodes');
    const behind = store.number('behind_primary_seconds');
    if (behind > LAG_SECONDS_MAX) add(WARN, `This replica is ${format.seconds(behind)} behind its primary.`, 'nodes');
  }
  for (const replica of store.numbered('slave')) {
    if (replica.get('state') !== 'online') add(WARN, `Replica ${replica.get('ip')}:${replica.get('port')} is not online (${replica.get('state')}).`, 'nodes');
  }
  for (const replica of store.numbered('replica')) {
    const behind = Number(replica.get('behind_seconds'));
    if (behind > LAG_SECONDS_MAX) add(WARN, `Replica ${replica.get('ip')}:${replica.get('port')} is ${format.seconds(behind)} behind.`, 'nodes');
  }
}

function since(store) {
  const down = store.number('master_link_down_since_seconds');
  return down >= 0 ? ` for ${format.seconds(down)}` : '';
}

function cluster({ cluster: info }, add) {
  if (!info) return;
  if (info.get('cluster_state') !== 'ok') add(BAD, `The cluster is down: ${format.count(Number(info.get('cluster_slots_assigned')))} of 16,384 slots are assigned.`, 'nodes');
  const missing = Number(info.get('cluster_known_nodes')) - Number(info.get('cluster_registered_nodes'));
  if (missing > 0) add(WARN, `${format.plural(missing, 'node')} of the cluster not running.`, 'nodes');
  if (info.get('cluster_fenced') === '1') add(BAD, 'This node is fenced: it serves no keys, because its lease may have ended or another primary may serve.', 'nodes');
}

function load(store, watch, add) {
  slowCommands(watch.slow, add);
  const workers = store.last()?.workers ?? [];
  workers.forEach((_, at) => {
    const busy = store.recent((sample) => sample.workers?.[at], 10);
    if (busy > BUSY_PERCENT_MAX) add(WARN, `Worker ${at} was busy for ${format.percent(busy)} of the last 10 seconds.`, 'commands');
  });
  const errors = store.recent((sample) => sample.errors);
  if (errors >= 1) add(WARN, `${format.perSecond(errors)} error replies${mostFrequentError(store)}.`, 'commands');
  const top = recentCommands(store).sort((a, b) => b.share - a.share)[0];
  if (top && top.share > 50 && top.usec > 200_000) {
    add(NOTE, `${top.name} takes ${format.percent(top.share)} of the time of all commands: ${format.perSecond(top.calls)}, ${format.micros(top.perCall)} per call.`, 'commands');
  }
}

function slowCommands({ count, longest }, add) {
  if (count === 0) return;
  const command = longest.args.slice(0, 2).map((arg) => preview(arg, 40)).join(' ');
  add(WARN, `${count >= 128 ? 'At least ' : ''}${format.plural(count, 'command')} in the slow log from the last minute. The longest: ${command}, ${format.micros(longest.usec)}, client ${longest.name || longest.address}.`, 'commands/slowlog');
}

function mostFrequentError(store) {
  let [most, name] = [0, ''];
  for (const [field, value] of store.fields) {
    if (!field.startsWith('errorstat_')) continue;
    const number = Number(pairs(value).get('count'));
    if (number > most) [most, name] = [number, field.slice(10)];
  }
  return name ? ` (since the start mostly ${name})` : '';
}
