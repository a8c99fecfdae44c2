// Latency events: spikes that the server recorded, and its explanation of them.

import { el, button, replace, setText, Message, Poll } from '/console/dom.js';
import { columns } from '/console/plot.js';
import { confirm } from '/console/dialog.js';
import { describe, check } from '/console/session.js';
import { plain } from '/console/resp.js';
import * as format from '/console/format.js';

const THRESHOLD_MS = 100;
const EVENTS_MAX = 30;
const ms = (value) => format.micros(value * 1000);

export function createLatency(app) {
  const { session } = app;
  const message = new Message();
  const events = el('div', { class: 'cards' });
  const doctor = el('pre', { class: 'report' });
  const threshold = el('p', { class: 'note' });
  const enable = button(`Record events of ${THRESHOLD_MS} ms or longer`, setThreshold);
  const poll = new Poll(5000, load);

  async function load() {
    try {
      const latest = plain(await session.call('LATENCY', 'LATEST')).slice(0, EVENTS_MAX);
      const replies = check(await session.pipeline([['LATENCY', 'DOCTOR'], ...latest.map(([name]) => ['LATENCY', 'HISTORY', name])]));
      setText(doctor, plain(replies[0]));
      replace(events, latest.map((event, at) => card(event, plain(replies[at + 1]))));
      message.show('');
    } catch (error) {
      message.error(describe(error));
    }
  }

  function card([name, time, last, worst], history) {
    return el('section', { class: 'panel' }, el('h3', {}, name), columns(history, ms),
      el('p', { class: 'note' }, `Latest ${ms(last)} at ${format.dateTime(time * 1000)}, longest ${ms(worst)}`));
  }

  async function loadThreshold() {
    enable.hidden = true;
    try {
      const limit = Number(plain(await session.call('CONFIG', 'GET', 'latency-monitor-threshold')).flat()[1]);
      setText(threshold, limit === 0 ? 'latency-monitor-threshold is 0: the server records no events.' : `Events of ${limit} ms or longer (latency-monitor-threshold).`);
      enable.hidden = limit !== 0 || !app.store.canWrite;
    } catch {
      setText(threshold, '');
    }
  }

  async function setThreshold() {
    const text = `CONFIG SET latency-monitor-threshold ${THRESHOLD_MS}`;
    if (!await confirm({ title: 'Record latency events?', text, action: 'Change the setting' })) return;
    try {
      await session.call('CONFIG', 'SET', 'latency-monitor-threshold', THRESHOLD_MS);
      await loadThreshold();
    } catch (error) {
      message.error(describe(error));
    }
  }

  return {
    element: el('div', { class: 'view' }, el('div', { class: 'toolbar' }, threshold, enable), message.element, events, el('h3', {}, 'LATENCY DOCTOR'), doctor),
    show() {
      loadThreshold();
      poll.start();
    },
    hide() {
      poll.stop();
    },
  };
}
