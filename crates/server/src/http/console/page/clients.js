// Clients: the connections of CLIENT LIST with their rates, single or grouped, so that a client that floods the server
// is on top.

import { el, button, select, labeled, setText, Message, Poll } from '/console/dom.js';
import { Table, numberColumn, textColumn } from '/console/table.js';
import { confirm } from '/console/dialog.js';
import { plain } from '/console/resp.js';
import * as format from '/console/format.js';

const ROWS_MAX = 200;
const GROUPS = [['', 'none'], ['host', 'address'], ['name', 'name'], ['user', 'user'], ['library', 'library'], ['cmd', 'last command']];

function parse(line) {
  const fields = new Map(line.split(' ').map((pair) => {
    const at = pair.indexOf('=');
    return [pair.slice(0, at), pair.slice(at + 1)];
  }));
  const text = (name) => fields.get(name) ?? '';
  const number = (name) => Number(fields.get(name) ?? NaN);
  const addr = text('addr');
  return {
    id: text('id'), addr, host: addr.replace(/:\d+$/, ''), name: text('name'), user: text('user'), db: number('db'),
    cmd: text('cmd').replace('|', ' '), age: number('age'), idle: number('idle'), memory: number('tot-mem'), output: number('omem'),
    flags: text('flags'), library: [text('lib-name'), text('lib-ver')].filter(Boolean).join(' '),
    totals: [number('tot-cmds'), number('tot-net-in'), number('tot-net-out')], clients: 1,
  };
}

const RATES = ['commands', 'received', 'sent'];
const share = (id, total) => ({ share: (row) => row[id] / total[id] });

const loadColumns = (total) => [
  numberColumn('commands', 'Commands/s', format.perSecond, share('commands', total)),
  numberColumn('received', 'Received', format.bytesPerSecond, share('received', total)),
  numberColumn('sent', 'Sent', format.bytesPerSecond, share('sent', total)),
  numberColumn('memory', 'Memory', format.bytes),
  numberColumn('output', 'Output', format.bytes, { title: 'Replies that the client has not read yet' })];

function columns(app, total, kill) {
  const list = [textColumn('addr', 'Client'), ...loadColumns(total), textColumn('cmd', 'Last command'),
    textColumn('name', 'Name'), textColumn('user', 'User'),
    numberColumn('idle', 'Idle', format.seconds), numberColumn('age', 'Age', format.seconds),
    numberColumn('db', 'DB', String), textColumn('library', 'Library'), textColumn('flags', 'Flags')];
  if (kill) list.push({ id: 'kill', label: '', node: (row, current) => button('Kill', () => kill(current()), { class: 'small danger', 'aria-label': `Kill ${row.addr}` }) });
  return list;
}

function groupColumns(label, total) {
  return [textColumn('group', label, { text: (row) => row.group || '(none)' }), numberColumn('clients', 'Clients', format.count), ...loadColumns(total)];
}

function group(clients, by) {
  const groups = new Map();
  for (const client of clients) {
    const row = groups.get(client[by]) ?? { group: client[by], clients: 0, commands: NaN, received: NaN, sent: NaN, memory: 0, output: 0 };
    row.clients += 1;
    row.memory += client.memory;
    row.output += client.output;
    for (const rate of RATES) if (client[rate] >= 0) row[rate] = (row[rate] || 0) + client[rate];
    groups.set(client[by], row);
  }
  return [...groups.values()];
}

// The text of a part of the address; malformed text is unchanged.
function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

export function createClients(app) {
  const { session } = app;
  const message = new Message();
  const summary = el('p', { class: 'note' });
  const filter = el('input', { type: 'search', placeholder: 'address, name, user, command', autocomplete: 'off', spellcheck: 'false', oninput: show });
  const place = el('div');
  const total = {};
  let by = '';
  let linked = ''; // the filter of the last link
  let table = null;
  let clients = [];
  let before = { time: 0, totals: new Map() };
  const poll = new Poll(2000, () => message.attempt(load));

  function build() {
    const caption = 'Clients';
    const kill = app.store.canWrite ? killClient : null;
    table = by === ''
      ? new Table({ columns: columns(app, total, kill), key: (row) => row.id, caption, sort: 'commands', limit: ROWS_MAX })
      : new Table({ columns: groupColumns(GROUPS.find(([id]) => id === by)[1], total), key: (row) => row.group, caption, sort: 'commands', limit: ROWS_MAX });
    place.replaceChildren(table.element);
    show();
  }

  async function load() {
    clients = plain(await session.call('CLIENT', 'LIST')).split('\n').filter(Boolean).map(parse);
    addRates();
    show();
  }

  function addRates() {
    const time = performance.now();
    const seconds = (time - before.time) / 1000;
    for (const client of clients) {
      const earlier = before.totals.get(client.id);
      RATES.forEach((rate, at) => {
        client[rate] = earlier ? (client.totals[at] - earlier[at]) / seconds : NaN;
      });
    }
    before = { time, totals: new Map(clients.map((client) => [client.id, client.totals])) };
  }

  function show() {
    const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    const matches = (client) => {
      const line = `${client.addr} ${client.name} ${client.user} ${client.cmd} ${client.library} id=${client.id}`.toLowerCase();
      return words.every((word) => line.includes(word));
    };
    const chosen = clients.filter(matches);
    for (const rate of RATES) total[rate] = clients.reduce((sum, client) => sum + (client[rate] || 0), 0) || 1;
    table.update(by === '' ? chosen : group(chosen, by));
    setText(summary, `${format.plural(chosen.length, 'client')} of ${format.count(clients.length)}, ${format.bytes(chosen.reduce((sum, client) => sum + client.memory, 0))}`);
  }

  async function killClient(client) {
    const name = client.name ? ` (${client.name})` : '';
    const sure = await confirm({ title: 'Close this connection?', text: `CLIENT KILL ID ${client.id}: ${client.addr}${name}, user ${client.user}, last command ${client.cmd}.`, action: 'Close the connection' });
    if (sure) await message.attempt(() => session.call('CLIENT', 'KILL', 'ID', client.id).then(load));
  }

  const grouping = select(GROUPS, by, (value) => {
    by = value;
    build();
  });
  return {
    element: el('div', { class: 'view' }, el('div', { class: 'toolbar' }, labeled('Filter', filter), labeled('Group by', grouping), summary), message.element, place),
    show(rest) {
      // The filter of a link to one client ends with the next visit; one that was typed stays.
      if (rest) filter.value = decoded(rest);
      else if (filter.value === linked) filter.value = '';
      linked = decoded(rest);
      before = { time: 0, totals: new Map() };
      build();
      poll.start();
    },
    hide() {
      poll.stop();
    },
  };
}
