// Replication and cluster: the role of this server, its replicas and their lag, and the map of the cluster.

import { el, svg, replace, Facts, Message, Poll } from '/console/dom.js';
import { Plot } from '/console/plot.js';
import { Table, numberColumn, textColumn } from '/console/table.js';
import { field, plain } from '/console/resp.js';
import { INFO_DENIED } from '/console/store.js';
import * as format from '/console/format.js';

const SLOTS = 16384;
const RANGES_MAX = 2000;
const COLORS = 6;

function replicationFacts(store) {
  const get = (name) => store.text(name) ?? '–';
  const own = store.text('role') === 'slave' ? [
    ['Role', 'replica'], ['Primary', `${get('master_host')}:${get('master_port')}`],
    ['Link to the primary', get('master_link_status'), get('master_link_status') === 'up' ? 'good' : 'bad'],
    ['Last data from the primary', `${format.seconds(store.number('master_last_io_seconds_ago'))} ago`],
    ['Behind the primary', format.seconds(store.number('behind_primary_seconds'))],
    ['Offset applied', format.count(store.number('slave_repl_offset'))],
  ] : [['Role', 'primary']];
  const sync = get('master_sync_in_progress') === '1' ? [['Full copy from the primary', `${get('master_sync_perc')} %`, 'bad']] : [];
  const backlog = get('repl_backlog_active') === '1' ? `${format.bytes(store.number('repl_backlog_histlen'))} of ${format.bytes(store.number('repl_backlog_size'))}` : 'not active';
  return [...own, ...sync, ['Replicas', get('connected_slaves')], ['Replication offset', format.count(store.number('master_repl_offset'))],
    ['Backlog', backlog]];
}

function replicas(store) {
  const offset = store.number('master_repl_offset');
  const behind = new Map(store.numbered('replica').map((replica) => [`${replica.get('ip')}:${replica.get('port')}`, Number(replica.get('behind_seconds'))]));
  return store.numbered('slave').map((replica) => {
    const address = `${replica.get('ip')}:${replica.get('port')}`;
    const acknowledged = Number(replica.get('offset'));
    return { address, state: replica.get('state'), offset: acknowledged, bytes: Math.max(0, offset - acknowledged), seconds: behind.get(address), heard: Number(replica.get('lag')) };
  });
}

// The fields of CLUSTER INFO.
export async function clusterInfo(session) {
  const text = plain(await session.call('CLUSTER', 'INFO'));
  return new Map(text.split('\r\n').filter(Boolean).map((line) => line.split(/:(.*)/s).slice(0, 2)));
}

// The reply of CLUSTER SHARDS: shards with their slot ranges and nodes.
function parseShards(reply) {
  return reply.map((shard, at) => {
    const flat = plain(field(shard, 'slots'));
    const ranges = Array.from({ length: flat.length / 2 }, (_, each) => [Number(flat[2 * each]), Number(flat[2 * each + 1])]);
    const slots = ranges.reduce((sum, [first, last]) => sum + last - first + 1, 0);
    const nodes = field(shard, 'nodes').map((node) => {
      const get = (name) => plain(field(node, name)) ?? '';
      return { shard: at, ranges, slots, id: get('id'), address: `${get('ip') || get('endpoint')}:${get('port') || get('tls-port')}`, role: get('role') === 'master' ? 'primary' : 'replica', health: get('health'), offset: Number(get('replication-offset')) };
    });
    return { ranges, nodes };
  });
}

// The 16,384 slots as a strip; each shard has a color, and slots that no shard serves are red.
function slotMap(shards) {
  const picture = svg('svg', { class: 'slots', viewBox: `0 0 ${SLOTS} 30`, preserveAspectRatio: 'none', role: 'img', 'aria-label': `Slots of ${shards.length} shards` });
  picture.append(svg('rect', { class: 'unserved', width: SLOTS, height: 30 }));
  let drawn = 0;
  shards.forEach(({ ranges, nodes }, at) => {
    for (const [first, last] of ranges) {
      drawn += 1;
      if (drawn > RANGES_MAX) return;
      picture.append(svg('rect', { class: `bar c${at % COLORS}`, x: first, width: last - first + 1, height: 30 },
        svg('title', {}, `Shard ${at}: slots ${first} to ${last}, ${nodes.map((node) => node.address).join(', ')}`)));
    }
  });
  return [picture, el('p', { class: 'scale note' }, [0, 4096, 8192, 12288, SLOTS - 1].map((slot) => el('span', {}, String(slot))))];
}

const rangeText = (ranges) => ranges.slice(0, 4).map(([first, last]) => (first === last ? first : `${first}–${last}`)).join(', ') + (ranges.length > 4 ? `, … (${ranges.length} ranges)` : '');

export function createNodes(app) {
  const { session, store } = app;
  const facts = new Facts();
  const lag = new Plot({ title: 'Replication lag', note: 'of the slowest replica', series: [{ label: 'lag', read: (sample) => sample.lag }], format: format.bytes, base: 1024 });
  const stream = new Plot({ title: 'Replication stream', series: [{ label: 'written', read: (sample) => sample.offset }], format: format.bytesPerSecond, base: 1024 });
  const table = new Table({
    caption: 'Replicas', key: (row) => row.address, sort: 'bytes', empty: 'No replica is connected.',
    columns: [textColumn('address', 'Replica'), textColumn('state', 'State', { style: (row) => (row.state === 'online' ? 'good' : 'bad') }), numberColumn('bytes', 'Lag', format.bytes),
      numberColumn('seconds', 'Behind', format.seconds), numberColumn('heard', 'Last acknowledgment', (value) => `${format.seconds(value)} ago`), numberColumn('offset', 'Offset', format.count)],
  });
  const message = new Message();
  const map = el('div', { class: 'panel' });
  const clusterFacts = new Facts();
  const nodes = new Table({
    caption: 'Nodes of the cluster', key: (row) => row.id || row.address, sort: 'shard', descending: false, limit: 500,
    columns: [numberColumn('shard', 'Shard', String, { style: (row) => `c${row.shard % COLORS}` }), textColumn('address', 'Node'), textColumn('role', 'Role'),
      textColumn('health', 'Health', { style: (row) => (row.health === 'online' ? 'good' : 'bad') }), numberColumn('slots', 'Slots', format.count),
      { id: 'ranges', label: 'Slot ranges', text: (row) => rangeText(row.ranges) }, numberColumn('offset', 'Offset', format.count), textColumn('id', 'ID')],
  });
  const cluster = el('section', { class: 'view', hidden: true }, el('h2', {}, 'Cluster'), message.element, map, nodes.element);
  const clusterPanel = el('div', { class: 'panel' }, clusterFacts.element);
  const poll = new Poll(5000, () => message.attempt(load));

  async function load() {
    cluster.hidden = store.text('cluster_enabled') !== '1';
    clusterPanel.hidden = cluster.hidden;
    if (cluster.hidden) return;
    const shards = parseShards(await session.call('CLUSTER', 'SHARDS'));
    replace(map, slotMap(shards));
    nodes.update(shards.flatMap((shard) => shard.nodes));
    clusterFacts.update([...await clusterInfo(session)]);
  }

  const denied = el('p', { class: 'message' }, INFO_DENIED);
  const replication = el('section', { class: 'view' }, el('div', { class: 'panel' }, facts.element), el('div', { class: 'plots' }, lag.element, stream.element), table.element);
  return {
    element: el('div', { class: 'view' }, denied, cluster, replication, clusterPanel),
    update() {
      denied.hidden = !store.isDenied;
      replication.hidden = store.isDenied;
      if (store.isDenied) return;
      facts.update(replicationFacts(store));
      table.update(replicas(store));
      lag.update(store.samples);
      stream.update(store.samples);
    },
    show: () => poll.start(),
    hide: () => poll.stop(),
  };
}
