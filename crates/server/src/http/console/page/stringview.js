// The value of a string, in pages of 64 KiB, and its editor.

import { el, button, setText, Message } from '/console/dom.js';
import { ValueView, VIEW_BYTES_MAX } from '/console/value.js';
import { editValue } from '/console/guarded.js';
import * as format from '/console/format.js';

// A longer value cannot be edited here.
const EDIT_BYTES_MAX = 256 * 1024;

export class StringView {
  constructor(context) {
    this.context = context;
    this.at = 0;
    this.view = new ValueView();
    this.message = new Message();
    this.range = el('span', { class: 'note' });
    this.previous = button('Previous', () => this.move(-VIEW_BYTES_MAX));
    this.next = button('Next', () => this.move(VIEW_BYTES_MAX));
    const { length } = context.properties;
    const edit = button('Edit…', () => this.message.attempt(() => this.edit()));
    edit.hidden = !context.canWrite || length > EDIT_BYTES_MAX;
    const pages = length > VIEW_BYTES_MAX ? [this.previous, this.next] : null;
    this.element = el('div', { class: 'panel view' }, el('div', { class: 'toolbar' }, pages, edit, this.range), this.message.element, this.view.element);
  }

  move(by) {
    this.at += by;
    this.load();
  }

  load() {
    return this.message.attempt(() => this.read());
  }

  async read() {
    const { session, db, key, properties } = this.context;
    const end = Math.min(properties.length, this.at + VIEW_BYTES_MAX);
    const bytes = await session.callIn(db, 'GETRANGE', key, this.at, this.at + VIEW_BYTES_MAX - 1);
    this.view.update(bytes, this.at, properties.length <= VIEW_BYTES_MAX);
    setText(this.range, properties.length > VIEW_BYTES_MAX ? `Bytes ${format.count(this.at)} to ${format.count(end)} of ${format.count(properties.length)}` : '');
    this.previous.disabled = this.at === 0;
    this.next.disabled = end >= properties.length;
  }

  async edit() {
    const { session, db, key, reload } = this.context;
    const before = await session.callIn(db, 'GET', key) ?? new Uint8Array(0);
    const done = await editValue(this.context, 'Edit the value', before, ['GET', key], (value) => ['SET', key, value, 'KEEPTTL'], 'The TTL of the key stays.');
    if (done) await reload();
  }
}
