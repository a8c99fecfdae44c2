// Modal dialogs: confirmation, forms, and texts. The dialog element keeps the focus inside and closes with Esc.

import { el, button, labeled, Message } from '/console/dom.js';
import { describe } from '/console/session.js';

function open(title, content, actions) {
  const heading = el('h2', { id: 'dialog-title' }, title);
  const dialog = el('dialog', { 'aria-labelledby': 'dialog-title' }, heading, content, el('div', { class: 'actions' }, actions));
  dialog.addEventListener('close', () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
  return dialog;
}

// Shows content with a button that closes the dialog.
export function show(title, ...content) {
  const dialog = open(title, content, button('Close', () => dialog.close()));
  return dialog;
}

// Asks for confirmation. The promise is true if the operator confirms.
export function confirm({ title, text, action }) {
  return new Promise((resolve) => {
    const answer = (value) => () => {
      resolve(value);
      dialog.close();
    };
    const cancel = button('Cancel', answer(false), { autofocus: true });
    const dialog = open(title, el('p', { class: 'wrap' }, text), [cancel, button(action, answer(true), { class: 'danger' })]);
    dialog.addEventListener('close', () => resolve(false));
  });
}

function control({ name, value = '', rows = 0, type = 'text', options = null }) {
  const properties = { name, autocomplete: 'off', autocapitalize: 'off', spellcheck: 'false' };
  if (options) {
    return el('select', { name }, options.map(([key, label]) => el('option', { value: key }, label)));
  }
  const element = rows > 0 ? el('textarea', { ...properties, rows }) : el('input', { ...properties, type });
  element.value = value;
  return element;
}

// Shows a form. `submit` receives the values by name and may throw: the dialog then shows the error and stays open. The
// promise is true if the form was submitted.
export function form({ title, fields, action, note = '', submit }) {
  return new Promise((resolve) => {
    const message = new Message();
    const controls = fields.map(control);
    const content = el('form', { id: 'dialog-form', method: 'dialog', onsubmit: send },
      fields.map((field, at) => labeled(field.label, controls[at], { class: field.rows ? 'field wide' : 'field' })),
      note ? el('p', { class: 'note' }, note) : null, message.element);
    const cancel = button('Cancel', () => dialog.close());
    const dialog = open(title, content, [cancel, el('button', { type: 'submit', form: 'dialog-form', class: 'primary' }, action)]);
    dialog.addEventListener('close', () => resolve(false));
    controls[0]?.focus();

    async function send(event) {
      event.preventDefault();
      const values = {};
      controls.forEach((each) => { values[each.name] = each.value; });
      try {
        await submit(values);
        resolve(true);
        dialog.close();
      } catch (error) {
        message.error(describe(error));
      }
    }
  });
}

export const NOTE_ESCAPES = 'Write \\xHH for a byte, \\n for a line feed, and \\\\ for a backslash.';
