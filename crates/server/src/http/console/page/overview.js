// The overview: the health of the server, and plots of the last five minutes.

import { el, replace, setText } from '/console/dom.js';
import { Plot } from '/console/plot.js';
import { findings, LEVELS } from '/console/health.js';
import { INFO_DENIED } from '/console/store.js';
import * as format from '/console/format.js';

// With more workers, the plot shows the busiest, the mean and the idlest one.
const WORKER_LINES_MAX = 6;

const value = (label, name) => ({ label, read: (sample) => sample[name] });

function workerLines(count) {
  if (count <= WORKER_LINES_MAX) {
    return Array.from({ length: count }, (_, at) => ({ label: `worker ${at}`, read: (sample) => sample.workers?.[at] }));
  }
  const over = (label, f) => ({ label, read: (sample) => (sample.workers ? f(sample.workers) : NaN) });
  return [
    over('busiest of ' + count, (all) => Math.max(...all)),
    over('mean', (all) => all.reduce((sum, each) => sum + each, 0) / all.length),
    over('idlest', (all) => Math.min(...all)),
  ];
}

const MEMORY_LINES = [value('used', 'used'), value('resident', 'rss'), value('maxmemory', 'maxmemory')];

function makePlots() {
  return {
    ops: new Plot({ title: 'Operations', series: [value('commands', 'ops'), value('error replies', 'errors')], format: format.perSecond }),
    latency: new Plot({ title: 'Command time', note: 'execution in the server',
      series: [value('p50', 'p50'), value('p99', 'p99')], format: format.micros }),
    cpu: new Plot({ title: 'Workers', note: 'share of time not waiting for input',
      series: [], format: format.percent, max: 100 }),
    memory: new Plot({ title: 'Memory', series: MEMORY_LINES, format: format.bytes, base: 1024 }),
    clients: new Plot({ title: 'Clients', series: [value('connected', 'clients'), value('blocked', 'blocked')], format: format.short }),
    hits: new Plot({ title: 'Hit rate', note: 'lookups that found their key', series: [value('hits', 'hitRate')], format: format.percent, max: 100 }),
    network: new Plot({ title: 'Network', series: [value('received', 'input'), value('sent', 'output')], format: format.bytesPerSecond, base: 1024 }),
    keys: new Plot({ title: 'Keys', series: [value('in all databases', 'keys')], format: format.short }),
    removed: new Plot({ title: 'Expired and evicted keys', series: [value('expired', 'expired'), value('evicted', 'evicted')], format: format.perSecond }),
  };
}

export function createOverview(app) {
  const { store } = app;
  const health = el('ul', { class: 'health', 'aria-label': 'Health', 'aria-live': 'polite' });
  const facts = el('p', { class: 'muted' });
  const plots = makePlots();
  const grid = el('div', { class: 'plots' }, Object.values(plots).map((plot) => plot.element));
  const element = el('div', { class: 'view' }, health, facts, grid);
  let shownHealth = '';

  function showHealth() {
    const found = findings(store, app.watch);
    const key = JSON.stringify([found, store.isDenied, store.samples.length > 0]);
    if (key === shownHealth) return;
    shownHealth = key;
    if (store.isDenied) return showDenied();
    if (found.length === 0 && store.samples.length === 0) return replace(health);
    if (found.length === 0) return replace(health, el('li', { class: 'good' }, el('b', {}, 'OK'), 'No problem detected.'));
    replace(health, found.map(({ level, text, view }) => el('li', { class: LEVELS[level] },
      el('b', {}, ['Problem', 'Warning', 'Note'][level]), el('a', { href: `#/${view}` }, text))));
  }

  function showDenied() {
    replace(health, el('li', { class: 'warn' }, el('b', {}, 'Warning'),
      `${INFO_DENIED} The other views show what the user may see.`));
  }

  function showFacts() {
    const cpu = store.last()?.cpu;
    setText(facts, `Up ${format.seconds(store.number('uptime_in_seconds'))} · CPU of the process ${format.percent(cpu)} · ${format.count(store.number('total_commands_processed'))} commands`);
  }

  return {
    element,
    update() {
      showHealth();
      grid.hidden = store.isDenied;
      if (store.isDenied) return;
      showFacts();
      plots.cpu.series = workerLines(store.numbered('worker').length);
      plots.memory.series = MEMORY_LINES.slice(0, store.number('maxmemory') > 0 ? 3 : 2);
      for (const plot of Object.values(plots)) plot.update(store.samples);
    },
  };
}
