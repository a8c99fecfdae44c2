// The slow log: commands that took longer than slowlog-log-slower-than.

import { el, button, setText, Message, Poll } from '/console/dom.js';
import { Table, numberColumn, textColumn } from '/console/table.js';
import { confirm } from '/console/dialog.js';
import { isError } from '/console/session.js';
import { plain } from '/console/resp.js';
import { escape, preview, toFragment, toText } from '/console/bytes.js';
import * as format from '/console/format.js';

const ENTRIES_MAX = 128;
const IS_CUT = /\.\.\. \(\d+ more (bytes|arguments)\)$/;

// The value of a directive. Undefined if the user may not read it.
export async function directive(session, name) {
  const [reply] = await session.pipeline([['CONFIG', 'GET', name]]);
  return isError(reply) ? undefined : plain(reply)[0]?.[1];
}

export function parseEntry([id, time, usec, args, address, name]) {
  return { id, time, usec, args, address: toText(address), name: toText(name), key: null };
}

const COLUMNS = [
  { id: 'time', label: 'Ended', sort: (row) => row.id, text: (row) => format.dateTime(row.time * 1000) },
  numberColumn('usec', 'Duration', format.micros),
  { id: 'command', label: 'Command', sort: (row) => toText(row.args[0]).toUpperCase(), text: (row) => row.args.map((arg) => preview(arg, 60)).join(' '), style: () => 'mono' },
  { id: 'key', label: 'Key', link: (row) => row.link ?? '#/commands/slowlog', text: (row) => (row.key ? preview(row.key, 40) : '') },
  textColumn('address', 'Client', { link: (row) => `#/clients/${encodeURIComponent(row.address)}` }),
  textColumn('name', 'Name'),
];

export function createSlowLog(app) {
  const { session } = app;
  const message = new Message();
  const note = el('p', { class: 'note' });
  const table = new Table({ columns: COLUMNS, key: (row) => row.id, caption: 'Slow log', sort: 'time', limit: ENTRIES_MAX, empty: 'The slow log is empty.' });
  const reset = button('Clear the slow log', clear);
  const keys = new Map(); // the first key of each entry, by id
  const poll = new Poll(5000, () => message.attempt(load));

  async function load() {
    const entries = (await session.call('SLOWLOG', 'GET', ENTRIES_MAX)).map(parseEntry);
    await findKeys(entries);
    table.update(entries);
  }

  // Finds the first key of new entries. Commands without keys, and entries that were cut, have none.
  async function findKeys(entries) {
    const ids = new Set(entries.map(({ id }) => id));
    for (const id of keys.keys()) if (!ids.has(id)) keys.delete(id);
    const fresh = entries.filter(({ id }) => !keys.has(id));
    const replies = fresh.length > 0 ? await session.pipeline(fresh.map(({ args }) => ['COMMAND', 'GETKEYS', ...args])) : [];
    fresh.forEach(({ id }, at) => keys.set(id, isError(replies[at]) ? null : replies[at][0]));
    for (const entry of entries) {
      const key = keys.get(entry.id);
      if (!key || IS_CUT.test(escape(key))) continue;
      entry.key = key;
      entry.link = `#/keys/${app.db}/${toFragment(key)}`;
    }
  }

  async function loadThreshold() {
    const limit = Number(await directive(session, 'slowlog-log-slower-than'));
    setText(note, limit < 0 ? 'slowlog-log-slower-than is negative: the server records no command.'
      : `The last ${ENTRIES_MAX} commands that took longer than ${format.micros(limit)} (slowlog-log-slower-than).`);
  }

  async function clear() {
    if (!await confirm({ title: 'Clear the slow log?', text: 'SLOWLOG RESET removes all entries.', action: 'Clear' })) return;
    await message.attempt(() => session.call('SLOWLOG', 'RESET').then(load));
  }

  return {
    element: el('div', { class: 'view' }, el('div', { class: 'toolbar' }, note, reset), message.element, table.element),
    show() {
      reset.hidden = !app.store.canWrite;
      loadThreshold();
      poll.start();
    },
    hide() {
      poll.stop();
    },
  };
}
