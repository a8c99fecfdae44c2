// A table with sortable columns. Rows are reused by key, so that the focus and a selection survive an update.

import { el, setText } from '/console/dom.js';

// A column: {id, label, title, number, sort(row), text(row), link(row), press(row), node(row), share(row), style(row)}.
// `sort` returns the value to sort by (without it, the column is not sortable), `text` the text of the cell, `link` the
// address that the text links to, `press` makes the text a button. `share` is the length of a bar in the cell (0 to 1).
// `node` builds an element once per row.
export const textColumn = (id, label, more = {}) => ({ id, label, sort: (row) => row[id], text: (row) => row[id], ...more });
export const numberColumn = (id, label, format, more = {}) => ({ id, label, number: true, sort: (row) => row[id], text: (row) => format(row[id]), ...more });

export class Table {
  constructor({ columns, key, caption, sort = null, descending = true, limit = 200, empty = 'Nothing to show.' }) {
    Object.assign(this, { columns, key, limit, sortBy: sort, descending, rows: [], shown: new Map() });
    this.heads = columns.map((column) => this.head(column));
    this.body = el('tbody');
    this.empty = el('p', { class: 'empty' }, empty);
    this.more = el('p', { class: 'note' });
    const table = el('table', {}, el('caption', { class: 'hidden' }, caption), el('thead', {}, el('tr', {}, this.heads)), this.body);
    this.scroller = el('div', { class: 'scroller', tabindex: 0, role: 'region', 'aria-label': caption }, table);
    this.element = el('div', { class: 'table' }, this.scroller, this.empty, this.more);
    this.markSorted();
  }

  // Changes the text that a table without rows shows.
  setEmpty(text) {
    setText(this.empty, text);
  }

  head(column) {
    const properties = { scope: 'col', class: column.number ? 'number' : false, title: column.title || false };
    if (!column.sort) return el('th', properties, column.label);
    return el('th', properties, el('button', { type: 'button', onclick: () => this.sortOn(column) }, column.label));
  }

  sortOn(column) {
    this.descending = this.sortBy === column.id ? !this.descending : Boolean(column.number);
    this.sortBy = column.id;
    this.markSorted();
    this.update(this.rows);
  }

  markSorted() {
    this.columns.forEach((column, at) => {
      if (!column.sort) return;
      const direction = this.descending ? 'descending' : 'ascending';
      this.heads[at].setAttribute('aria-sort', column.id === this.sortBy ? direction : 'none');
    });
  }

  sorted(rows) {
    const column = this.columns.find(({ id }) => id === this.sortBy);
    if (!column) return rows;
    const sign = this.descending ? -1 : 1;
    return [...rows].sort((a, b) => sign * compare(column.sort(a), column.sort(b)));
  }

  update(rows) {
    this.rows = rows;
    // SCAN may return an element twice.
    const visible = [...new Map(this.sorted(rows).slice(0, this.limit).map((row) => [this.key(row), row]))];
    const before = this.shown;
    this.shown = new Map();
    visible.forEach(([key, row], at) => {
      const shown = before.get(key) ?? this.build(row);
      before.delete(key);
      this.shown.set(key, shown);
      this.fill(shown, row);
      if (this.body.children[at] !== shown.element) this.body.insertBefore(shown.element, this.body.children[at] ?? null);
    });
    for (const { element } of before.values()) element.remove();
    this.empty.hidden = visible.length > 0;
    this.scroller.hidden = visible.length === 0;
    setText(this.more, rows.length > this.limit ? `${this.limit} of ${rows.length} rows are shown.` : '');
  }

  build(row) {
    const shown = { row, cells: [] };
    shown.element = el('tr', {}, this.columns.map((column) => {
      const target = cellContent(column, row, () => shown.row);
      const bar = column.share ? el('i', { class: 'share' }) : null;
      shown.cells.push({ target, bar });
      return el('td', { class: column.number ? 'number' : column.node ? 'action' : false }, bar, target);
    }));
    return shown;
  }

  fill(shown, row) {
    shown.row = row;
    this.columns.forEach((column, at) => {
      const { target, bar } = shown.cells[at];
      if (column.link) target.setAttribute('href', column.link(row));
      if (column.text) setText(target, column.text(row));
      if (column.style) target.className = column.style(row);
      if (bar) bar.style.width = `${Math.round(100 * Math.min(1, column.share(row) || 0))}%`;
    });
  }
}

function cellContent(column, row, current) {
  if (column.link) return el('a');
  if (column.press) return el('button', { type: 'button', class: 'plain', onclick: () => column.press(current()) });
  return column.node ? column.node(row, current) : el('span');
}

// Missing values come last in a descending order.
function compare(a, b) {
  if (typeof a === 'string' || typeof b === 'string') return String(a ?? '').localeCompare(String(b ?? ''), 'en', { numeric: true });
  const isMissing = (value) => value === undefined || value === null || Number.isNaN(value);
  if (isMissing(a) || isMissing(b)) return Number(isMissing(b)) - Number(isMissing(a));
  return a < b ? -1 : a > b ? 1 : 0;
}
