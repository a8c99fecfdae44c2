// The page: the session, the header, the views, and the keyboard shortcuts.

import { el, button, replace, setText } from '/console/dom.js';
import { Session, describe } from '/console/session.js';
import { Store } from '/console/store.js';
import { parseHistograms } from '/console/latency.js';
import { parseEntry } from '/console/slowlog.js';
import { plain } from '/console/resp.js';
import { show as showDialog } from '/console/dialog.js';
import { SILENT_MS_MAX } from '/console/health.js';
import { createLogin } from '/console/login.js';
import { createOverview } from '/console/overview.js';
import { createCommands } from '/console/commands.js';
import { createClients } from '/console/clients.js';
import { createKeys } from '/console/keys.js';
import { createMemory } from '/console/memory.js';
import { createNodes, clusterInfo } from '/console/nodes.js';
import { createPersistence } from '/console/persistence.js';
import { createPrompt } from '/console/prompt.js';
import * as format from '/console/format.js';

const VIEWS = [
  ['overview', 'Overview', createOverview], ['commands', 'Commands', createCommands],
  ['clients', 'Clients', createClients], ['keys', 'Keys', createKeys],
  ['memory', 'Memory', createMemory], ['nodes', 'Replication', createNodes],
  ['persistence', 'Persistence', createPersistence], ['prompt', 'Prompt', createPrompt],
];
// How often the slow log and the state of the cluster are read for the health line.
const WATCH_MS = 5000;

const byId = (id) => document.getElementById(id);
const store = new Store();
const session = new Session({ retry: true, onState: showState, onEvent: applyEvent });
// What all views share. `watch` is what the health line shows in addition to INFO; `db` is the selected database.
const app = { store, session, db: 0, watch: { waitingMs: 0, silentMs: 0, error: '', slow: { count: 0, longest: null }, cluster: null } };
const login = createLogin(session, closeLogin);
const views = new Map();
const links = new Map();
let open = null;
let isLoggingIn = false;
let lastEvent = 0;
let isReadingHistograms = false;
let watched = 0;

function route() {
  const [name, ...rest] = location.hash.replace(/^#\/?/, '').split('/');
  const known = VIEWS.some(([id]) => id === name);
  return { name: known ? name : 'overview', rest: known ? rest.join('/') : '' };
}

function showView() {
  if (isLoggingIn) return;
  const { name, rest } = route();
  if (!views.has(name)) views.set(name, VIEWS.find(([id]) => id === name)[2](app));
  const view = views.get(name);
  if (open !== view) {
    open?.hide?.();
    replace(byId('view'), view.element);
    scrollTo(0, 0);
  }
  open = view;
  for (const [id, link] of links) link.setAttribute('aria-selected', String(id === name));
  byId('view').setAttribute('aria-labelledby', `tab-${name}`);
  document.title = `${VIEWS.find(([id]) => id === name)[1]} – Brisk ${location.host}`;
  if (session.state === 'ready') view.show?.(rest);
  view.update?.();
}

function showLogin(canCancel) {
  isLoggingIn = true;
  open?.hide?.();
  open = null;
  replace(byId('view'), login.element);
  login.show(session.problem, canCancel);
}

function closeLogin() {
  isLoggingIn = false;
  showView();
}

function showState() {
  showConnection();
  if (session.state === 'login') showLogin(false);
  else if (session.state === 'ready') {
    app.watch.error = '';
    watched = 0;
    isReadingHistograms = false;
    closeLogin();
    showAccount();
  } else {
    store.interrupt();
    open?.hide?.();
  }
}

async function showAccount() {
  const user = await session.call('ACL', 'WHOAMI').then(plain, () => '');
  replace(byId('account'), el('span', { class: 'muted' }, user),
    button('Log in…', () => showLogin(true), { title: 'Log in as another user' }),
    button('?', showShortcuts, { 'aria-label': 'Keyboard shortcuts' }));
}

function showConnection() {
  const state = byId('state');
  const isStale = app.watch.silentMs > SILENT_MS_MAX;
  const text = {
    ready: isStale ? `no data for ${format.seconds(app.watch.silentMs / 1000)}` : store.isDenied ? 'connected' : 'live',
    connecting: 'connecting…',
    login: 'not logged in',
    closed: `disconnected, trying again… ${session.problem}`,
  }[session.state];
  setText(state, text);
  state.className = session.state === 'ready' && !isStale ? 'good' : session.state === 'closed' || isStale ? 'bad' : '';
  const role = store.text('role') === 'slave' ? 'replica' : store.text('role') ? 'primary' : '';
  const mode = store.text('cluster_enabled') === '1' ? 'cluster' : '';
  setText(byId('server'), [location.host, mode, role, store.version && `version ${store.version}`].filter(Boolean).join(' · '));
}

function applyEvent(event) {
  lastEvent = Date.now();
  const couldWrite = store.canWrite;
  store.apply(event);
  if (store.canWrite !== couldWrite) showView(); // the views offer other buttons
  readHistograms();
  watch();
  open?.update?.();
}

// Reads the histograms once after each event, but never while an earlier request waits.
async function readHistograms() {
  if (isReadingHistograms || store.isDenied) return;
  isReadingHistograms = true;
  try {
    store.applyHistograms(parseHistograms(await session.call('LATENCY', 'HISTOGRAM')));
    app.watch.error = '';
  } catch (error) {
    const isTemporary = error.code === 'BUSY' || error.code === 'LOADING' || error.code === 'MASTERDOWN';
    app.watch.error = isTemporary ? describe(error) : '';
  }
  isReadingHistograms = false;
}

// Reads what the health line needs in addition to INFO.
async function watch() {
  if (Date.now() - watched < WATCH_MS || store.isDenied) return;
  watched = Date.now();
  const entries = await session.call('SLOWLOG', 'GET', 128).catch(() => []);
  const recent = entries.map(parseEntry).filter(({ time }) => time > Date.now() / 1000 - 60);
  app.watch.slow = { count: recent.length, longest: recent.sort((a, b) => b.usec - a.usec)[0] ?? null };
  if (store.text('cluster_enabled') !== '1') return;
  app.watch.cluster = await clusterInfo(session).catch(() => null);
}

const SHORTCUTS = [
  ['1 – 8', 'open a view'], ['/', 'search keys'], ['?', 'show this list'], ['Esc', 'close a dialog or a key'],
  ['← →', 'next tab; in a plot: select a moment'], ['↑ ↓, Tab', 'at the prompt: history, completion'],
];

function showShortcuts() {
  showDialog('Keyboard shortcuts', el('dl', { class: 'facts' },
    SHORTCUTS.map(([keys, text]) => el('div', {}, el('dt', {}, el('kbd', {}, keys)), el('dd', {}, text)))));
}

function isTyping(target) {
  return target.closest('input, textarea, select, dialog') !== null;
}

function onKey(event) {
  if (event.ctrlKey || event.altKey || event.metaKey || event.defaultPrevented) return;
  if (event.key === 'Escape' && !document.querySelector('dialog[open]')) return open?.escape?.();
  if (isTyping(event.target)) return;
  const number = Number(event.key);
  if (number >= 1 && number <= VIEWS.length) location.hash = `#/${VIEWS[number - 1][0]}`;
  else if (event.key === '/') searchKeys();
  else if (event.key === '?') showShortcuts();
  else return;
  event.preventDefault();
}

function searchKeys() {
  if (route().name !== 'keys' || route().rest) location.hash = '#/keys';
  // The view is shown after the event hashchange.
  setTimeout(() => document.querySelector('#key-search')?.focus(), 30);
}

function moveInTabs(event) {
  const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  const tab = event.target.closest('[role=tab]');
  if (!step || !tab) return;
  const all = [...tab.parentElement.children];
  const next = all[(all.indexOf(tab) + step + all.length) % all.length];
  next.focus();
  next.click();
}

function start() {
  VIEWS.forEach(([name, title], at) => {
    const link = el('a', { role: 'tab', id: `tab-${name}`, href: `#/${name}`, 'aria-controls': 'view', title: `${title} (key ${at + 1})` }, title);
    links.set(name, link);
    byId('views').append(link);
  });
  addEventListener('hashchange', showView);
  document.addEventListener('keydown', onKey);
  document.addEventListener('keydown', moveInTabs);
  setInterval(() => {
    app.watch.waitingMs = session.waitingMs();
    app.watch.silentMs = session.state === 'ready' && !store.isDenied && lastEvent > 0 ? Date.now() - lastEvent : 0;
    showConnection();
    if (app.watch.silentMs > SILENT_MS_MAX) open?.update?.();
  }, 1000);
  showView();
  session.connect();
}

start();
