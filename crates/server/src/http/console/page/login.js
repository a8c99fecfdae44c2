// The login form. The password stays in a variable of the page, to log in again after a reconnect.

import { el, labeled, button, Message } from '/console/dom.js';
import { setCredentials } from '/console/session.js';

// `onCancel` is called if the operator wants to keep the current session.
export function createLogin(session, onCancel) {
  const user = el('input', { name: 'user', autocomplete: 'off', autocapitalize: 'off', spellcheck: 'false', placeholder: 'default' });
  const password = el('input', { name: 'password', type: 'password', autocomplete: 'off' });
  const message = new Message();
  const cancel = button('Cancel', onCancel);
  const form = el('form', { class: 'panel login', method: 'dialog', 'aria-label': 'Log in', onsubmit: submit },
    el('h2', {}, 'Log in'),
    labeled('User', user), labeled('Password', password), message.element,
    el('div', { class: 'actions' }, cancel, el('button', { type: 'submit', class: 'primary' }, 'Log in')));

  function submit(event) {
    event.preventDefault();
    setCredentials(user.value, password.value);
    password.value = '';
    session.restart();
  }

  return {
    element: form,
    show(problem, canCancel) {
      message.error(problem);
      cancel.hidden = !canCancel;
      (problem || user.value ? password : user).focus();
    },
  };
}
