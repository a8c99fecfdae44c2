// The elements of a hash, list, set, sorted set or stream in pages, and with write access their editors.

import { el, button, labeled, setText, Message } from '/console/dom.js';
import { Table } from '/console/table.js';
import { confirm } from '/console/dialog.js';
import { preview } from '/console/bytes.js';
import { TYPES } from '/console/types.js';
import * as format from '/console/format.js';

const PAGE_ELEMENTS = 100;
// The approximate size of a page of large elements.
const PAGE_BYTES = 8 * 1024 * 1024;
// A packed hash or set returns all of its elements in one reply of HSCAN.
const ROWS_MAX = 2000;
const POSITIONS_MAX = 10_000;

export class CollectionView {
  static of(context) {
    const type = TYPES[context.properties.type];
    return type ? new CollectionView(context, type) : null;
  }

  constructor(context, type) {
    Object.assign(this, { context, type, filter: '', isReversed: false, isStopped: false, scanned: 0, turn: 0, loading: Promise.resolve() });
    this.positions = [type.first];
    this.message = new Message();
    this.status = el('span', { class: 'note', role: 'status' });
    this.previous = button('Previous', () => this.back());
    this.next = button('Next', () => this.forward());
    this.stop = button('Stop', () => { this.isStopped = true; }, { hidden: true });
    this.table = new Table({ columns: this.columns(), key: type.id, caption: `Elements of the ${context.properties.type}`, limit: ROWS_MAX, empty: 'No element.' });
    this.element = el('div', { class: 'view' }, this.toolbar(), this.message.element, this.table.element);
  }

  // The number of elements per page, which is smaller if the elements are large.
  count() {
    const { bytes, length } = this.context.properties;
    const mean = bytes > 0 && length > 0 ? bytes / length : 1;
    return Math.max(1, Math.min(PAGE_ELEMENTS, Math.floor(PAGE_BYTES / mean)));
  }

  columns() {
    const { type } = this;
    const columns = type.columns(this);
    const { canWrite } = this.context;
    if (!canWrite) return columns;
    const edit = (current) => button('Edit…', () => this.run(() => type.edit(this.context, current())), { class: 'small' });
    const remove = (current) => button('Delete', () => this.remove(current()), { class: 'small danger' });
    columns.push({ id: 'actions', label: '', node: (row, current) => el('span', {}, type.edit ? edit(current) : null, ' ', remove(current)) });
    return columns;
  }

  toolbar() {
    const { type, context } = this;
    const filter = el('input', { type: 'search', placeholder: 'glob pattern', autocomplete: 'off', spellcheck: 'false' });
    const form = el('form', { class: 'toolbar', method: 'dialog', onsubmit: (event) => { event.preventDefault(); this.filter = filter.value; this.restart(); } },
      labeled('Filter', filter), el('button', { type: 'submit' }, 'Filter'));
    const order = button('Highest first', () => {
      this.isReversed = !this.isReversed;
      setText(order, this.isReversed ? 'Lowest first' : 'Highest first');
      this.restart();
    });
    return el('div', { class: 'toolbar' }, this.previous, this.next,
      type.canFilter ? form : null, this.stop, type.canReverse ? order : null,
      context.canWrite ? (type.add ?? []).map(({ label, run }) => button(label, () => this.run(() => run(context)))) : null, this.status);
  }

  restart() {
    this.positions = [this.type.first];
    this.load();
  }

  back() {
    this.positions.pop();
    this.load();
  }

  forward() {
    this.positions.push(this.following);
    if (this.positions.length > POSITIONS_MAX) this.positions.shift();
    this.load();
  }

  // Reads the page at the current position, after stopping the scan for an earlier one.
  load() {
    this.isStopped = true;
    this.previous.disabled = true;
    this.next.disabled = true;
    this.turn += 1;
    const { turn } = this;
    this.loading = this.loading.then(async () => {
      if (turn !== this.turn) return;
      await this.message.attempt(() => this.read());
      this.stop.hidden = true;
    });
    return this.loading;
  }

  // Called after each step of a scan. A view that was left stops its scan.
  noteScanned(elements) {
    this.scanned += elements;
    this.isStopped ||= this.scanned > elements && !this.element.isConnected;
    this.stop.hidden = this.isStopped;
    const { length } = this.context.properties;
    setText(this.status, `scanned ${format.count(Math.min(this.scanned, length))} of ${format.count(length)}`);
  }

  async read() {
    const position = this.positions[this.positions.length - 1];
    Object.assign(this, { isStopped: false, scanned: 0 });
    const { rows, next } = await this.type.load(this.context, position, this);
    this.following = next;
    this.table.update(rows);
    this.previous.disabled = this.positions.length < 2;
    this.next.disabled = next === null;
    setText(this.status, `Page ${this.positions.length}, ${format.plural(rows.length, 'row')}`);
  }

  // Runs an editor, which resolves to true if it has changed something.
  run(edit) {
    return this.message.attempt(async () => {
      if (await edit()) await this.context.reload();
    });
  }

  async remove(row) {
    const { type, context } = this;
    const name = preview(type.name(row), 200);
    const sure = await confirm({ title: 'Delete this element?', text: `${type.removeCommand} deletes ${name}.`, action: 'Delete' });
    if (sure) await this.run(() => type.remove(context, row).then(() => true));
  }
}
