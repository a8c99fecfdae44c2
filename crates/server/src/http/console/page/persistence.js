// Persistence: the state of snapshots and of the append-only file, and with write access the commands that start them.

import { el, button, replace, Facts, Message } from '/console/dom.js';
import { confirm } from '/console/dialog.js';
import { plain } from '/console/resp.js';
import { INFO_DENIED } from '/console/store.js';
import * as format from '/console/format.js';

const DIRECTIVES = ['dir', 'dbfilename', 'save', 'appendonly', 'appendfsync'];

export function createPersistence(app) {
  const { session, store } = app;
  const message = new Message();
  const snapshots = new Facts();
  const log = new Facts();
  const settings = new Facts();
  const progress = el('progress', { max: 1, 'aria-label': 'Progress of the snapshot' });
  const actions = el('div', { class: 'toolbar' });

  const get = (name) => store.text(name) ?? '–';
  const status = (name) => [get(name), get(name) === 'ok' ? 'good' : 'bad'];

  function snapshotFacts() {
    const last = store.number('rdb_last_save_time');
    const [done, all] = [store.number('current_save_keys_processed'), store.number('current_save_keys_total')];
    const running = get('rdb_bgsave_in_progress') === '1';
    progress.hidden = !running;
    progress.value = all > 0 ? done / all : 0;
    return [['Last snapshot, or start', `${format.dateTime(last * 1000)}, ${format.seconds(Date.now() / 1000 - last)} ago`],
      ['Last BGSAVE', ...status('rdb_last_bgsave_status')],
      ['Changes since the last snapshot', format.count(store.number('rdb_changes_since_last_save'))],
      ['In progress', running ? `${format.count(done)} of ${format.count(all)} keys, ${format.seconds(store.number('rdb_current_bgsave_time_sec'))}` : 'no'],
      ['Duration of the last BGSAVE', format.seconds(store.number('rdb_last_bgsave_time_sec'))],
      ...(get('loading') === '1' ? [['Loading', `${get('loading_loaded_perc')} %, ${format.seconds(store.number('loading_eta_seconds'))} left`, 'bad']] : [])];
  }

  function logFacts() {
    if (get('aof_enabled') !== '1') return [['Append-only file', 'off']];
    const base = store.number('aof_base_size');
    const size = store.number('aof_current_size');
    return [['Append-only file', 'on'], ['Last write', ...status('aof_last_write_status')],
      ['Size', format.bytes(size)], ['Size after the last rewrite', `${format.bytes(base)}${base > 0 ? ` (grown by ${format.percent((100 * (size - base)) / base)})` : ''}`],
      ['Rewrite in progress', get('aof_rewrite_in_progress') === '1' ? 'yes' : 'no'], ['Last rewrite', ...status('aof_last_bgrewrite_status')],
      ['Not written yet', format.bytes(store.number('aof_buffer_length'))], ['Delayed fsyncs', get('aof_delayed_fsync')]];
  }

  async function loadSettings() {
    try {
      settings.update(plain(await session.call('CONFIG', 'GET', ...DIRECTIVES)).map(([name, value]) => [name, value || '(empty)']));
    } catch {
      settings.update([]);
    }
  }

  async function run(command, file) {
    if (!await confirm({ title: `Run ${command}?`, text: `The server writes ${file} in the background.`, action: command })) return;
    let reply = '';
    await message.attempt(async () => { reply = plain(await session.call(command)); });
    if (reply) message.show(reply);
  }

  return {
    element: el('div', { class: 'view' }, actions, message.element, el('div', { class: 'cards wide' },
      el('section', { class: 'panel' }, el('h3', {}, 'Snapshots (RDB)'), progress, snapshots.element),
      el('section', { class: 'panel' }, el('h3', {}, 'Append-only file (AOF)'), log.element),
      el('section', { class: 'panel' }, el('h3', {}, 'Settings'), settings.element))),
    update() {
      if (store.isDenied) return message.show(INFO_DENIED);
      snapshots.update(snapshotFacts());
      return log.update(logFacts());
    },
    show() {
      replace(actions, store.canWrite ? [
        button('BGSAVE', () => run('BGSAVE', 'a snapshot')), button('BGREWRITEAOF', () => run('BGREWRITEAOF', 'a compact append-only file'))] : null);
      loadSettings();
    },
    hide() {},
  };
}
