// Keys: searches the names of one database with SCAN, and shows them in pages. The page never keeps all names.

import { el, button, select, labeled, setText, replace, Message } from '/console/dom.js';
import { Table, numberColumn, textColumn } from '/console/table.js';
import { createKeyView } from '/console/key.js';
import { describe, isError } from '/console/session.js';
import { plain } from '/console/resp.js';
import { escape, preview, unescape, toFragment, fromFragment, identity } from '/console/bytes.js';
import * as format from '/console/format.js';

const PAGE_KEYS = 100;
const SCAN_COUNT = 500;
// Earlier pages that can be shown again.
const PAGES_MAX = 20;
// While a search has not filled a page, new names are shown this often.
const SHOW_FOUND_MS = 1000;
const DATABASES_MIN = 16;
const TYPES = ['string', 'hash', 'list', 'set', 'zset', 'stream'];

const orError = (reply, f) => (isError(reply) ? NaN : f(reply));

// The facts about keys that tables show: type, TTL, size and encoding. Errors become the text of the type.
export async function describeKeys(session, db, names) {
  const commands = names.flatMap((name) => [['TYPE', name], ['PTTL', name], ['MEMORY', 'USAGE', name], ['OBJECT', 'ENCODING', name]]);
  const replies = commands.length > 0 ? await session.pipelineIn(db, commands) : [];
  return names.map((name, at) => {
    const [type, pttl, bytes, encoding] = replies.slice(4 * at, 4 * at + 4);
    return {
      name, id: identity(name),
      type: isError(type) ? describe(type) : plain(type), pttl: orError(pttl, Number),
      bytes: orError(bytes, (value) => value ?? NaN), encoding: isError(encoding) || encoding === null ? '' : plain(encoding),
    };
  });
}

export function keyColumns(app) {
  return [
    { id: 'name', label: 'Key', sort: (row) => escape(row.name), link: (row) => `#/keys/${row.db ?? app.db}/${toFragment(row.name)}`, text: (row) => preview(row.name, 200) || '(empty)' },
    textColumn('type', 'Type'),
    numberColumn('bytes', 'Size', format.bytes, { title: 'MEMORY USAGE' }),
    numberColumn('pttl', 'TTL', format.ttl, { sort: (row) => (row.pttl === -1 ? Infinity : row.pttl) }),
    textColumn('encoding', 'Encoding'),
  ];
}

// A pattern for MATCH: text without glob characters is searched anywhere in the name. Null for no condition.
function matchPattern(text) {
  const name = text.trim();
  if (name === '' || name === '*') return null;
  return /[*?[\]]/.test(name) ? unescape(name) : unescape(`*${name}*`);
}

// A search: the position of SCAN, and the pages of names that were found.
class Search {
  constructor(session, { db, text, type }) {
    Object.assign(this, { session, db, text, pattern: matchPattern(text), type });
    this.cursor = '0';
    this.isComplete = false;
    this.isStopped = false;
    this.steps = 0;
    this.total = 0;
    this.found = []; // names that are on no page yet
    this.pages = [];
    this.at = -1;
    this.skipped = 0; // pages that were forgotten
  }

  async begin() {
    this.total = Number(await this.session.callIn(this.db, 'DBSIZE'));
    await this.findExact();
  }

  // A name without glob characters may be the name of a key, which needs no search.
  async findExact() {
    const name = unescape(this.text.trim());
    this.exact = null;
    if (name.length === 0 || /[*?[\]]/.test(this.text)) return;
    const type = plain(await this.session.callIn(this.db, 'TYPE', name));
    if (type !== 'none' && (!this.type || this.type === type)) {
      this.exact = identity(name);
      this.found.push(name);
    }
  }

  hasNext() {
    return this.found.length > 0 || !this.isComplete;
  }

  async step() {
    const options = [...(this.pattern ? ['MATCH', this.pattern] : []), ...(this.type ? ['TYPE', this.type] : [])];
    const [cursor, names] = await this.session.callIn(this.db, 'SCAN', this.cursor, 'COUNT', SCAN_COUNT, ...options);
    this.cursor = cursor;
    this.steps += 1;
    this.isComplete = plain(cursor) === '0';
    for (const name of names) if (this.exact === null || identity(name) !== this.exact) this.found.push(name);
  }

  // Collects the names of the next page. `onProgress` is called after each step.
  async next(onProgress) {
    this.isStopped = false;
    while (this.found.length < PAGE_KEYS && !this.isComplete && !this.isStopped) {
      await this.step();
      onProgress();
    }
    if (this.found.length === 0) return;
    this.pages.push(this.found.splice(0, PAGE_KEYS));
    this.at = this.pages.length - 1;
    if (this.pages.length <= PAGES_MAX) return;
    this.pages.shift();
    this.skipped += 1;
    this.at -= 1;
  }

  scanned() {
    return Math.min(this.total, this.steps * SCAN_COUNT);
  }

  describe() {
    return this.isComplete ? `all ${format.plural(this.total, 'key')} scanned`
      : `scanned about ${format.count(this.scanned())} of ${format.plural(this.total, 'key')} (${format.percent((100 * this.scanned()) / this.total)})`;
  }
}

function createList(app) {
  const { session, store } = app;
  const input = el('input', { id: 'key-search', type: 'search', placeholder: 'part of a name, or a glob pattern: user:*', autocomplete: 'off', autocapitalize: 'off', spellcheck: 'false' });
  const databases = el('select', { onchange: () => { app.db = Number(databases.value); begin(); } });
  const types = select([['', 'all types'], ...TYPES.map((type) => [type, type])], '', () => begin());
  const stop = button('Stop', () => { if (current) current.isStopped = true; });
  const progress = el('progress', { max: 1, 'aria-label': 'Progress of the search' });
  const status = el('span', { class: 'note', role: 'status' });
  const message = new Message();
  const table = new Table({ columns: keyColumns(app), key: (row) => row.id, caption: 'Keys', sort: null, limit: PAGE_KEYS, empty: 'No key found.' });
  const previous = button('Previous', () => show(current.at - 1));
  const next = button('Next', forward);
  let current = null;
  let shown = 0;
  let foundShown = 0;
  let isShowingFound = false;

  const bar = el('form', { class: 'toolbar', role: 'search', method: 'dialog', onsubmit: (event) => { event.preventDefault(); begin(); } },
    labeled('Database', databases), labeled('Name', input, { class: 'field grow' }), labeled('Type', types),
    el('button', { type: 'submit', class: 'primary' }, 'Search'), stop);

  function listDatabases() {
    const known = new Map(store.databases());
    const count = store.text('cluster_enabled') === '1' ? 1 : Math.max(DATABASES_MIN, app.db + 1, ...[...known.keys()].map((db) => db + 1));
    replace(databases, Array.from({ length: count }, (_, db) => el('option', { value: db, selected: db === app.db },
      known.has(db) ? `${db} (${format.plural(known.get(db), 'key')})` : String(db))));
  }

  async function begin() {
    if (current) current.isStopped = true;
    const search = new Search(session, { db: app.db, text: input.value, type: types.value });
    current = search;
    table.setEmpty('No key found yet.');
    table.update([]);
    if (!await message.attempt(() => search.begin()) || search !== current) return;
    // A key with exactly this name is shown before the search for others.
    if (search.found.length > 0) await message.attempt(async () => table.update(await describeKeys(session, search.db, search.found)));
    if (search === current) await forward();
  }

  async function forward() {
    const search = current;
    if (search.at < search.pages.length - 1) {
      await show(search.at + 1);
      return;
    }
    setRunning(true);
    foundShown = performance.now();
    const isFound = await message.attempt(() => search.next(() => showProgress(search)));
    if (search !== current) return;
    setRunning(false);
    if (isFound) await show(search.at);
  }

  function setRunning(isRunning) {
    stop.hidden = !isRunning;
    progress.hidden = !isRunning;
    next.disabled = isRunning;
    previous.disabled = isRunning;
    table.element.setAttribute('aria-busy', String(isRunning));
  }

  // The text changes at most ten times per second.
  function showProgress(search) {
    const now = performance.now();
    if (search !== current || now - shown < 100) return;
    shown = now;
    progress.value = search.total > 0 ? search.scanned() / search.total : 1;
    setText(status, `${search.found.length} found, ${search.describe()}`);
    if (now - foundShown > SHOW_FOUND_MS) showFound(search);
  }

  // Shows the names of an incomplete page, so that a search in many keys shows the first ones early.
  async function showFound(search) {
    if (isShowingFound || search.found.length === 0) return;
    isShowingFound = true;
    await message.attempt(async () => {
      const rows = await describeKeys(session, search.db, search.found.slice(0, PAGE_KEYS));
      if (search === current && search.found.length > 0) table.update(rows);
    });
    isShowingFound = false;
    foundShown = performance.now();
  }

  async function show(at) {
    const search = current;
    search.at = at;
    const names = search.pages[at] ?? [];
    table.setEmpty(search.isComplete ? 'No key found.' : 'No key found yet.');
    await message.attempt(async () => {
      const rows = await describeKeys(session, search.db, names);
      if (search === current) table.update(rows);
    });
    if (search !== current) return;
    const first = (search.skipped + at) * PAGE_KEYS;
    const range = names.length > 0 ? `Keys ${format.count(first + 1)} to ${format.count(first + names.length)}, ` : '';
    setText(status, range + search.describe());
    previous.disabled = at <= 0;
    next.disabled = at >= search.pages.length - 1 && !search.hasNext();
  }

  setRunning(false);
  return {
    element: el('div', { class: 'view' }, bar, el('div', { class: 'toolbar' }, previous, next, progress, status), message.element, table.element),
    show() {
      listDatabases();
      if (!current || current.db !== app.db) begin();
      else show(current.at);
    },
    hide() {
      if (current) current.isStopped = true;
    },
  };
}

export function createKeys(app) {
  const list = createList(app);
  const key = createKeyView(app);
  const element = el('div');
  let open = null;

  function openPage(page, ...args) {
    if (open !== page) {
      open?.hide();
      replace(element, page.element);
    }
    open = page;
    page.show(...args);
  }

  return {
    element,
    show(rest) {
      const match = /^(\d{1,5})\/(.*)$/s.exec(rest);
      if (!match) return openPage(list);
      app.db = Number(match[1]);
      return openPage(key, app.db, fromFragment(match[2]));
    },
    hide() {
      open?.hide();
      open = null;
    },
    escape() {
      if (open === key) location.hash = '#/keys';
    },
  };
}
