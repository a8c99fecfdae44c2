// Groups keys by pattern: variable parts of a name become placeholders, as in the report of `brisk-cli analyze`.

import { escape, preview } from '/console/bytes.js';

// If more different words follow one prefix, they become `*`.
const WORDS_MAX = 64;
const GROUPS_MAX = 2000;
const OTHER = '(other patterns)';

// The pattern of a key: `user:<n>:cart` for `user:1001:cart`.
export function patternOf(key) {
  return escape(key.subarray(0, 200))
    .replace(/(?:\\x[0-9a-f]{2})+/g, '<bin>')
    .replace(/[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/gi, '<uuid>')
    .replace(/[A-Za-z0-9]{8,}/g, wordMark)
    .replace(/(^|[^A-Za-z<])\d+|\d+(?![A-Za-z0-9])/g, (digits, before) => (before ?? '') + '<n>');
}

function wordMark(word) {
  if (!/\d/.test(word) || !/[A-Za-z]/.test(word) || /^[A-Za-z]+\d+$/.test(word)) return word;
  if (/^[0-9a-f]+$/i.test(word)) return '<hex>';
  return word.length >= 16 ? '<id>' : word;
}

export class Patterns {
  constructor() {
    this.groups = new Map();
    this.words = new Map(); // prefix: the words after it, or null if there are too many
  }

  add(db, { name, type, bytes, pttl }) {
    const group = this.group(db, type, this.merged(db, patternOf(name)));
    if (group.keys === 0) group.name = preview(name, 200);
    addTo(group, { keys: 1, bytes, withoutTtl: pttl === -1 ? bytes : 0 });
  }

  // Replaces the last word of a pattern with `*` if too many words follow its prefix.
  merged(db, pattern) {
    const [, prefix, word] = /^(.*[^A-Za-z0-9])?([A-Za-z0-9]+)$/s.exec(pattern) ?? [];
    if (!word || !prefix) return pattern;
    const id = `${db} ${prefix}`;
    let words = this.words.get(id);
    if (words === undefined && this.words.size < GROUPS_MAX) this.words.set(id, words = new Set());
    if (words === null) return `${prefix}*`;
    words?.add(word);
    if (!words || words.size <= WORDS_MAX) return pattern;
    for (const group of [...this.groups.values()]) {
      if (group.db === db && words.has(group.pattern.slice(prefix.length)) && group.pattern.startsWith(prefix)) {
        this.groups.delete(group.id);
        addTo(this.group(db, group.type, `${prefix}*`), group);
      }
    }
    this.words.set(id, null);
    return `${prefix}*`;
  }

  group(db, type, pattern) {
    const isFull = this.groups.size >= GROUPS_MAX;
    const make = (name) => ({ id: `${db} ${type} ${name}`, db, type, pattern: name, name, keys: 0, bytes: 0, withoutTtl: 0 });
    let group = make(pattern);
    if (isFull && !this.groups.has(group.id)) group = make(OTHER);
    if (!this.groups.has(group.id)) this.groups.set(group.id, group);
    return this.groups.get(group.id);
  }
}

function addTo(group, { keys, bytes, withoutTtl }) {
  group.keys += keys;
  group.bytes += bytes;
  group.withoutTtl += withoutTtl;
}
