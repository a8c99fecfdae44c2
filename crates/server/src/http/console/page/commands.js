// Commands: rates, durations and shares per command, the slow log, and latency events.

import { el, select, labeled } from '/console/dom.js';
import { Table } from '/console/table.js';
import { recentCommands, totalCommands } from '/console/commandstats.js';
import { createSlowLog } from '/console/slowlog.js';
import { createLatency } from '/console/latencyview.js';
import { tabs } from '/console/tabs.js';
import * as format from '/console/format.js';

const column = (id, label, text, more = {}) => ({ id, label, number: true, sort: (row) => row[id], text: (row) => text(row[id]), ...more });

const COLUMNS = [
  { id: 'name', label: 'Command', sort: (row) => row.name, text: (row) => row.name },
  column('share', 'Share of time', format.percent, { share: (row) => row.share / 100 }),
];
const RATE_COLUMNS = [...COLUMNS,
  column('calls', 'Calls/s', format.perSecond),
  column('perCall', 'Per call', format.micros),
  column('p50', 'p50', format.micros), column('p99', 'p99', format.micros),
  column('rejected', 'Rejected/s', format.perSecond, { title: 'Not executed: wrong arguments, no permission, out of memory', style: alarm('rejected') }),
  column('failed', 'Failed/s', format.perSecond, { title: 'Executed, with an error as the reply', style: alarm('failed') })];
const TOTAL_COLUMNS = [...COLUMNS,
  column('calls', 'Calls', format.short),
  column('perCall', 'Per call', format.micros),
  column('p50', 'p50', format.micros), column('p99', 'p99', format.micros),
  column('usec', 'Total time', format.micros),
  column('rejected', 'Rejected', format.short, { style: alarm('rejected') }),
  column('failed', 'Failed', format.short, { style: alarm('failed') })];

function alarm(id) {
  return (row) => (row[id] > 0 ? 'warn-text' : '');
}

function createRates(app) {
  const key = (row) => row.name;
  const recent = new Table({ columns: RATE_COLUMNS, key, caption: 'Commands in the last 10 seconds', sort: 'share', limit: 500, empty: 'No command ran in the last 10 seconds.' });
  const total = new Table({ columns: TOTAL_COLUMNS, key, caption: 'Commands since the start', sort: 'share', limit: 500, empty: 'No command has run.' });
  let period = 'recent';
  const choice = select([['recent', 'last 10 seconds'], ['total', 'since the start (or CONFIG RESETSTAT)']], period, (value) => {
    period = value;
    update();
  });

  function update() {
    recent.element.hidden = period !== 'recent';
    total.element.hidden = period !== 'total';
    if (period === 'recent') recent.update(recentCommands(app.store));
    else total.update(totalCommands(app.store));
  }

  return {
    element: el('div', { class: 'view' }, el('div', { class: 'toolbar' }, labeled('Period', choice)), recent.element, total.element,
      el('p', { class: 'note' }, 'Times are execution times in the server. p50 and p99 of the last 10 seconds come from LATENCY HISTOGRAM, whose buckets differ by a factor of two.')),
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

