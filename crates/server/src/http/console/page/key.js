// One key: its properties, its value by type, and with write access the commands that change it.

import { el, button, replace, setText, Facts, Message } from '/console/dom.js';
import { confirm, form, NOTE_ESCAPES } from '/console/dialog.js';
import { isError } from '/console/session.js';
import { plain } from '/console/resp.js';
import { escape, preview, unescape, toFragment } from '/console/bytes.js';
import { StringView } from '/console/stringview.js';
import { CollectionView } from '/console/collection.js';
import * as format from '/console/format.js';

const LENGTHS = { string: ['STRLEN', 'bytes'], hash: ['HLEN', 'fields'], list: ['LLEN', 'elements'], set: ['SCARD', 'members'], zset: ['ZCARD', 'members'], stream: ['XLEN', 'entries'] };

const known = (reply) => (isError(reply) || reply === null ? undefined : plain(reply));

// The properties of a key. The access time is read first, before anything else uses the key.
async function readProperties(session, db, key) {
  const replies = await session.pipelineIn(db, [['OBJECT', 'IDLETIME', key], ['OBJECT', 'FREQ', key], ['TYPE', key],
    ['PTTL', key], ['MEMORY', 'USAGE', key], ['OBJECT', 'ENCODING', key]]);
  if (isError(replies[2])) throw replies[2];
  const [idle, frequency, type, pttl, bytes, encoding] = replies.map(known);
  const properties = { idle, frequency, type, pttl, bytes, encoding };
  const length = LENGTHS[type];
  if (length) {
    const [reply] = await session.pipelineIn(db, [[length[0], key]]);
    properties.length = known(reply);
    properties.unit = length[1];
  }
  return properties;
}

function facts({ type, pttl, bytes, encoding, length, unit, idle, frequency }) {
  return [['Type', type], [unit ? unit[0].toUpperCase() + unit.slice(1) : 'Length', format.count(length)],
    ['Size in memory', format.bytes(bytes)], ['TTL', pttl > 0 ? `${format.ttl(pttl)} (until ${format.dateTime(Date.now() + pttl)})` : format.ttl(pttl)],
    ['Encoding', encoding ?? '–'],
    frequency !== undefined ? ['Access frequency (0–255)', String(frequency)] : ['Idle for', format.seconds(idle)]];
}

export function createKeyView(app) {
  const { session, store } = app;
  const title = el('h2', { class: 'mono' });
  const list = new Facts();
  const message = new Message();
  const body = el('div');
  const actions = el('div', { class: 'toolbar' });
  let state = { db: 0, key: new Uint8Array(0), properties: {} };

  async function load() {
    const { db, key } = state;
    let properties = {};
    const isRead = await message.attempt(async () => { properties = await readProperties(session, db, key); });
    if (key !== state.key) return;
    state.properties = properties;
    if (isRead) showKey();
    else replace(body);
  }

  function showKey() {
    const { properties } = state;
    const exists = properties.type !== 'none';
    list.element.hidden = !exists;
    showActions(exists && store.canWrite);
    if (!exists) {
      replace(body);
      return message.show(`Database ${state.db} has no key of this name. It may have been deleted or have expired.`);
    }
    list.update(facts(properties));
    const context = { session, db: state.db, key: state.key, properties, canWrite: store.canWrite, reload: load };
    const view = properties.type === 'string' ? new StringView(context) : CollectionView.of(context);
    if (!view) return message.show(`The console cannot show values of the type ${properties.type}.`);
    replace(body, view.element);
    return view.load();
  }

  function showActions(canWrite) {
    replace(actions, el('a', { class: 'button', href: '#/keys' }, '← Keys'), button('Reload', load),
      canWrite ? [button('Set TTL…', setTtl), button('Rename…', rename), button('Delete…', remove, { class: 'danger' })] : null);
  }

  const run = (...command) => session.callIn(state.db, ...command);

  async function setTtl() {
    const { key, properties } = state;
    const value = properties.pttl > 0 ? String(Math.round(properties.pttl / 1000)) : '';
    await form({
      title: 'Set the TTL', action: 'Set', note: 'Leave the field empty to remove the TTL (PERSIST).',
      fields: [{ name: 'seconds', label: 'Seconds from now', value, type: 'number' }],
      submit: ({ seconds }) => (seconds === '' ? run('PERSIST', key) : run('EXPIRE', key, seconds)),
    });
    await load();
  }

  async function rename() {
    const { db, key } = state;
    let name = key;
    const done = await form({
      title: 'Rename the key', action: 'Rename', note: `${NOTE_ESCAPES} An existing key of the new name is not replaced.`,
      fields: [{ name: 'name', label: 'New name', value: escape(key) }],
      async submit(values) {
        name = unescape(values.name);
        if (await run('RENAMENX', key, name) === 0) throw new Error('A key of this name exists.');
      },
    });
    if (done) location.hash = `#/keys/${db}/${toFragment(name)}`;
  }

  async function remove() {
    const { key, properties } = state;
    const text = `UNLINK deletes ${preview(key, 300)} (${properties.type}, ${format.bytes(properties.bytes)}) from database ${state.db}.`;
    if (!await confirm({ title: 'Delete this key?', text, action: 'Delete' })) return;
    if (await message.attempt(() => run('UNLINK', key))) await load();
  }

  return {
    element: el('div', { class: 'view' }, actions, el('div', { class: 'panel' }, title, list.element), message.element, body),
    show(db, key) {
      state = { db, key, properties: {} };
      setText(title, escape(key) || '(empty name)');
      list.element.hidden = true;
      showActions(false);
      replace(body);
      load();
    },
    hide() {},
  };
}
