// Latency events: spikes that the server recorded, and its explanation of them.

import { el, replace, setText, Message, Poll } from '/console/dom.js';
import { columns } from '/console/plot.js';
import { check } from '/console/session.js';
import { directive } from '/console/slowlog.js';
import { plain } from '/console/resp.js';
import * as format from '/console/format.js';

const EVENTS_MAX = 30;
const ms = (value) => format.micros(value * 1000);

export function createLatency({ session }) {
  const message = new Message();
  const events = el('div', { class: 'cards' });
  const doctor = el('pre', { class: 'report' });
  const threshold = el('p', { class: 'note' });
  const poll = new Poll(5000, () => message.attempt(load));

  async function load() {
    const latest = plain(await session.call('LATENCY', 'LATEST')).slice(0, EVENTS_MAX);
    const [report, ...histories] = check(await session.pipeline([['LATENCY', 'DOCTOR'], ...latest.map(([name]) => ['LATENCY', 'HISTORY', name])]));
    setText(doctor, plain(report));
    replace(events, latest.map((event, at) => card(event, plain(histories[at]))));
  }

  function card([name, time, last, worst], history) {
    return el('section', { class: 'panel' }, el('h3', {}, name), columns(history, ms),
      el('p', { class: 'note' }, `Latest ${ms(last)} at ${format.dateTime(time * 1000)}, longest ${ms(worst)}`));
  }

  async function loadThreshold() {
    const limit = await directive(session, 'latency-monitor-threshold');
    setText(threshold, limit === '0' ? 'The server records no events, because latency-monitor-threshold is 0. To record events of 100 ms or longer, run CONFIG SET latency-monitor-threshold 100 at the prompt.'
      : `Events of ${limit ?? '–'} ms or longer (latency-monitor-threshold).`);
  }

  return {
    element: el('div', { class: 'view' }, threshold, message.element, events, el('h3', {}, 'LATENCY DOCTOR'), doctor),
    show() {
      loadThreshold();
      poll.start();
    },
    hide: () => poll.stop(),
  };
}
