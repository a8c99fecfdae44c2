// The value of a string, in pages of 64 KiB, and its editor.

import { el, button, setText, Message } from '/console/dom.js';
import { ValueView, VIEW_BYTES_MAX, editable } from '/console/value.js';
import { writeIfUnchanged } from '/console/guarded.js';
import { form, NOTE_ESCAPES } from '/console/dialog.js';
import { describe } from '/console/session.js';
import { toBytes, unescape } from '/console/bytes.js';
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
    const edit = button('Edit…', () => this.edit());
    edit.hidden = !context.canWrite || length > EDIT_BYTES_MAX;
    const pages = length > VIEW_BYTES_MAX ? [this.previous, this.next] : null;
    this.element = el('div', { class: 'panel view' }, el('div', { class: 'toolbar' }, pages, edit, this.range), this.message.element, this.view.element);
  }

  move(by) {
    this.at += by;
    this.load();
  }

  async load() {
    const { session, db, key, properties } = this.context;
    try {
      const end = Math.min(properties.length, this.at + VIEW_BYTES_MAX);
      const bytes = await session.callIn(db, 'GETRANGE', key, this.at, this.at + VIEW_BYTES_MAX - 1);
      this.view.update(bytes, this.at, properties.length <= VIEW_BYTES_MAX);
      setText(this.range, properties.length > VIEW_BYTES_MAX ? `Bytes ${format.count(this.at)} to ${format.count(end)} of ${format.count(properties.length)}` : '');
      this.previous.disabled = this.at === 0;
      this.next.disabled = end >= properties.length;
    } catch (error) {
      this.message.error(describe(error));
    }
  }

  async edit() {
    const { session, db, key, reload } = this.context;
    try {
      const before = await session.callIn(db, 'GET', key) ?? new Uint8Array(0);
      const { text, isEscaped } = editable(before);
      const done = await form({
        title: 'Edit the value', action: 'Save', note: isEscaped ? NOTE_ESCAPES : 'The TTL of the key stays.',
        fields: [{ name: 'value', label: 'Value', value: text, rows: 14 }],
        submit: ({ value }) => writeIfUnchanged({ session, db, key }, ['GET', key], before,
          [['SET', key, isEscaped ? unescape(value) : toBytes(value), 'KEEPTTL']]),
      });
      if (done) await reload();
    } catch (error) {
      this.message.error(describe(error));
    }
  }
}
