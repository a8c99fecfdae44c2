// Commands: rates, durations and shares per command, the slow log, and latency events.

import { el } from '/console/dom.js';
import { Table, numberColumn, textColumn } from '/console/table.js';
import { recentCommands } from '/console/commandstats.js';
import { createSlowLog } from '/console/slowlog.js';
import { createLatency } from '/console/latencyview.js';
import { tabs } from '/console/tabs.js';
import { INFO_DENIED } from '/console/store.js';
import * as format from '/console/format.js';

const COLUMNS = [
  textColumn('name', 'Command'),
  numberColumn('share', 'Share of command time', format.percent, { share: (row) => row.share / 100 }),
  numberColumn('calls', 'Calls/s', format.perSecond),
  numberColumn('perCall', 'Per call', format.micros),
  numberColumn('p50', 'p50', format.micros), numberColumn('p99', 'p99', format.micros),
  numberColumn('rejected', 'Rejected/s', format.perSecond, { title: 'Not executed: wrong arguments, no permission, out of memory', style: alarm('rejected') }),
  numberColumn('failed', 'Failed/s', format.perSecond, { title: 'Executed, with an error as the reply', style: alarm('failed') })];

function alarm(id) {
  return (row) => (row[id] > 0 ? 'warn-text' : '');
}

function createRates({ store }) {
  const table = new Table({ columns: COLUMNS, key: (row) => row.name, caption: 'Commands in the last 10 seconds', sort: 'share', limit: 500, empty: 'No command ran in the last 10 seconds.' });
  const denied = el('p', { class: 'message' }, INFO_DENIED);
  const update = () => {
    denied.hidden = !store.isDenied;
    table.update(recentCommands(store));
  };
  return {
    element: el('div', { class: 'view' }, denied, table.element,
      el('p', { class: 'note' }, 'The last 10 seconds. Times are execution times in the server. p50 and p99 come from LATENCY HISTOGRAM, whose buckets differ by a factor of two.')),
    update,
    show: update,
    hide() {},
  };
}

export function createCommands(app) {
  return tabs('Commands', 'commands', [
    { id: '', title: 'Rates', view: createRates(app) },
    { id: 'slowlog', title: 'Slow log', view: createSlowLog(app) },
    { id: 'latency', title: 'Latency events', view: createLatency(app) },
  ]);
}

