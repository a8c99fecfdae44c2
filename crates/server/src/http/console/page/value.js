// Shows one value: as text, as formatted JSON, or in hexadecimal.

import { el, select, labeled, setText } from '/console/dom.js';
import { escape, plainText, hexView } from '/console/bytes.js';
import { show as showDialog } from '/console/dialog.js';
import * as format from '/console/format.js';

const JSON_BYTES_MAX = 1024 * 1024;
// The part of a long value that a dialog shows.
export const VIEW_BYTES_MAX = 64 * 1024;

// Indents JSON without parsing its numbers and strings, so that they stay as they are. Null if it is not an object or
// array.
export function formatJson(text) {
  if (!/^\s*[[{]/.test(text)) return null;
  try {
    JSON.parse(text);
  } catch {
    return null;
  }
  let depth = 0;
  const line = () => '\n' + '  '.repeat(depth);
  const tokens = text.match(/"(?:[^"\\]|\\.)*"|[[\]{}:,]|[^\s[\]{}:,"]+/g);
  return tokens.map((token, at) => {
    if (token === ':') return ': ';
    if (token === ',') return ',' + line();
    const isEmpty = /^[[{]$/.test(token) && /^[\]}]$/.test(tokens[at + 1] ?? '');
    if (token === '{' || token === '[') {
      depth += 1;
      return isEmpty ? token : token + line();
    }
    if (token !== '}' && token !== ']') return token;
    depth -= 1;
    return /^[[{]$/.test(tokens[at - 1]) ? token : line() + token;
  }).join('');
}

const MODES = [['text', 'text'], ['json', 'JSON'], ['hex', 'hexadecimal']];

// A viewer whose value can change. `first` is the offset of the bytes in the value.
export class ValueView {
  constructor() {
    this.mode = null; // chosen by the operator
    this.output = el('pre', { class: 'value', tabindex: 0 });
    this.choice = select(MODES, 'text', (mode) => {
      this.mode = mode;
      this.draw();
    });
    this.note = el('span', { class: 'note' });
    this.element = el('div', { class: 'view' }, el('div', { class: 'toolbar' }, labeled('Show as', this.choice), this.note), this.output);
  }

  update(bytes, first = 0, isWhole = true) {
    Object.assign(this, { bytes, first });
    this.text = plainText(bytes);
    this.json = isWhole && this.text !== null && bytes.length <= JSON_BYTES_MAX ? formatJson(this.text) : null;
    this.choice.children[1].disabled = this.json === null;
    this.draw();
  }

  draw() {
    let mode = this.mode ?? (this.json === null ? 'text' : 'json');
    if (mode === 'json' && this.json === null) mode = 'text';
    this.choice.value = mode;
    const isEscaped = mode === 'text' && this.text === null;
    setText(this.note, isEscaped ? 'Bytes that are not plain text are shown as escapes.' : '');
    setText(this.output, mode === 'hex' ? hexView(this.bytes, this.first) : mode === 'json' ? this.json : this.text ?? escape(this.bytes));
  }
}

export function showValue(title, bytes) {
  const view = new ValueView();
  const isWhole = bytes.length <= VIEW_BYTES_MAX;
  view.update(bytes.subarray(0, VIEW_BYTES_MAX), 0, isWhole);
  const note = isWhole ? format.plural(bytes.length, 'byte') : `The first ${format.bytes(VIEW_BYTES_MAX)} of ${format.bytes(bytes.length)}.`;
  showDialog(title, view.element, el('p', { class: 'note' }, note)).classList.add('large');
}

// The text with which a form edits bytes, and the bytes of the edited text. Plain text is edited as it is, other bytes
// as escapes.
export function editable(bytes) {
  const text = plainText(bytes);
  return text === null ? { text: escape(bytes), isEscaped: true } : { text, isEscaped: false };
}
