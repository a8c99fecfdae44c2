// Builds elements. Text becomes text nodes only, so nothing from the server is ever parsed as markup.

import { describe } from '/console/session.js';

const SVG = 'http://www.w3.org/2000/svg';

function append(element, children) {
  for (const child of children.flat()) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
}

function setAll(element, properties) {
  for (const [name, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? '' : value);
  }
}

// el('button', { class: 'small', onclick: f }, 'Text')
export function el(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  setAll(element, properties);
  append(element, children);
  return element;
}

export function svg(tag, properties = {}, ...children) {
  const element = document.createElementNS(SVG, tag);
  setAll(element, properties);
  append(element, children);
  return element;
}

export function replace(element, ...children) {
  element.replaceChildren();
  append(element, children);
}

// Changes the text only if it differs, so that selections and screen readers are not disturbed.
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

export const button = (label, onclick, properties = {}) => el('button', { type: 'button', onclick, ...properties }, label);

// A label with a control below or next to it.
export const labeled = (label, control, properties = {}) => el('label', { class: 'field', ...properties }, el('span', {}, label), control);

export function select(options, value, onchange, properties = {}) {
  const element = el('select', { onchange: () => onchange(element.value), ...properties },
    options.map(([name, label]) => el('option', { value: name, selected: String(name) === String(value) }, label)));
  return element;
}

// A line for the progress and the errors of a view. Errors are announced at once.
export class Message {
  constructor() {
    this.element = el('p', { class: 'message', role: 'status', hidden: true });
  }

  show(text, isError = false) {
    setText(this.element, text);
    this.element.hidden = text === '';
    this.element.classList.toggle('bad', isError);
  }

  error(text) {
    this.show(text, true);
  }

  // Runs a function, and shows its error. The result is true on success.
  async attempt(run) {
    try {
      await run();
      this.show('');
      return true;
    } catch (error) {
      this.error(describe(error));
      return false;
    }
  }
}

// A list of names and values.
export class Facts {
  constructor() {
    this.element = el('dl', { class: 'facts' });
    this.rows = new Map();
  }

  // `facts` has [name, text, class] triples. Rows are reused by name.
  update(facts) {
    const names = new Set(facts.map(([name]) => name));
    for (const [name, row] of this.rows) {
      if (names.has(name)) continue;
      row.element.remove();
      this.rows.delete(name);
    }
    for (const [name, text, style = ''] of facts) {
      let row = this.rows.get(name);
      if (!row) {
        const value = el('dd');
        row = { value, element: el('div', {}, el('dt', {}, name), value) };
        this.rows.set(name, row);
        this.element.append(row.element);
      }
      setText(row.value, text);
      row.value.className = style;
    }
  }
}

// Runs `run` again and again while the view is open. The next run starts `ms` after the previous one has ended.
export class Poll {
  constructor(ms, run) {
    Object.assign(this, { ms, run, turn: 0 });
  }

  start() {
    this.stop();
    this.loop(this.turn);
  }

  stop() {
    this.turn += 1;
    clearTimeout(this.timer);
  }

  async loop(turn) {
    const began = performance.now();
    await this.run();
    if (turn !== this.turn) return;
    // A run that takes long is repeated less often.
    const pause = Math.max(this.ms, 4 * (performance.now() - began));
    this.timer = setTimeout(() => this.loop(turn), pause);
  }
}
