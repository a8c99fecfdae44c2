// The slow log: commands that took longer than slowlog-log-slower-than.

import { el, button, setText, Message, Poll } from '/console/dom.js';
import { Table } from '/console/table.js';
import { confirm } from '/console/dialog.js';
import { describe, isError } from '/console/session.js';
import { plain } from '/console/resp.js';
import { escape, preview, toFragment, toText } from '/console/bytes.js';
import * as format from '/console/format.js';

const ENTRIES_MAX = 128;
const IS_CUT = /\.\.\. \(\d+ more (bytes|arguments)\)$/;

export function parseEntry([id, time, usec, args, address, name]) {
  return { id, time, usec, args, address: toText(address), name: toText(name), key: null };
}

const COLUMNS = [
  { id: 'time', label: 'Ended', sort: (row) => row.id, text: (row) => format.dateTime(row.time * 1000) },
  { id: 'usec', label: 'Duration', number: true, sort: (row) => row.usec, text: (row) => format.micros(row.usec) },
  { id: 'command', label: 'Command', sort: (row) => toText(row.args[0]).toUpperCase(), text: (row) => row.args.map((arg) => preview(arg, 60)).join(' '), style: () => 'mono' },
  { id: 'key', label: 'Key', link: (row) => row.link ?? '#/commands/slowlog', text: (row) => (row.key ? preview(row.key, 40) : '') },
  { id: 'client', label: 'Client', sort: (row) => row.address, link: (row) => `#/clients/${encodeURIComponent(row.address)}`, text: (row) => row.address },
  { id: 'name', label: 'Name', sort: (row) => row.name, text: (row) => row.name },
];

export function createSlowLog(app) {
  const { session } = app;
  const message = new Message();
  const note = el('p', { class: 'note' });
  const table = new Table({ columns: COLUMNS, key: (row) => row.id, caption: 'Slow log', sort: 'time', limit: ENTRIES_MAX, empty: 'The slow log is empty.' });
  const reset = button('Clear the slow log', clear);
  const keys = new Map(); // the first key of each entry, by id
  const poll = new Poll(5000, load);

  async function load() {
    try {
      const entries = (await session.call('SLOWLOG', 'GET', ENTRIES_MAX)).map(parseEntry);
      await findKeys(entries);
      table.update(entries);
      message.show('');
    } catch (error) {
      message.error(describe(error));
    }
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
    try {
      const [, value] = plain(await session.call('CONFIG', 'GET', 'slowlog-log-slower-than')).flat();
      const limit = Number(value);
      setText(note, limit < 0 ? 'slowlog-log-slower-than is negative: no command is recorded.' : `Commands that took ${format.micros(limit)} or longer (slowlog-log-slower-than), of the last ${ENTRIES_MAX}.`);
    } catch {
      setText(note, '');
    }
  }

  async function clear() {
    if (!await confirm({ title: 'Clear the slow log?', text: 'SLOWLOG RESET removes all entries.', action: 'Clear' })) return;
    try {
      await session.call('SLOWLOG', 'RESET');
      await load();
    } catch (error) {
      message.error(describe(error));
    }
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
