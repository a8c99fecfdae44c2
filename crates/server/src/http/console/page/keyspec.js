// The positions of keys in the arguments of a command, by the key specifications of COMMAND.

import { field, plain } from '/console/resp.js';
import { toText } from '/console/bytes.js';

const lower = (argument) => toText(argument).toLowerCase();

// The names of the subcommands have the form "object|encoding".
function commandsOf(replies, depth) {
  return new Map(replies.map((fields) => [lower(fields[0]).split('|').pop(), {
    specs: (fields[8] ?? []).filter((spec) => !(plain(field(spec, 'flags')) ?? []).includes('not_key')),
    subcommands: depth > 0 ? commandsOf(fields[9] ?? [], depth - 1) : new Map(),
  }]));
}

function kindAndSpec(spec, name) {
  const search = field(spec, name);
  const inner = field(search, 'spec');
  return [plain(field(search, 'type')), (what) => plain(field(inner, what))];
}

// The position of the first key, or of the number of keys. Null if the request has none.
function beginOf(spec, words) {
  const [kind, get] = kindAndSpec(spec, 'begin_search');
  if (kind === 'index') return get('index');
  if (kind !== 'keyword') return null;
  const from = get('startfrom');
  const keyword = get('keyword').toLowerCase();
  const step = from < 0 ? -1 : 1;
  for (let at = from < 0 ? words.length + from : from; at > 0 && at < words.length; at += step) {
    if (lower(words[at]) === keyword) return at + 1;
  }
  return null;
}

// The first and the last position, and the distance between two keys.
function rangeOf(spec, words, begin) {
  const [kind, get] = kindAndSpec(spec, 'find_keys');
  if (kind === 'range') {
    const [last, limit] = [get('lastkey'), get('limit')];
    const end = limit > 1 ? begin + Math.floor((words.length - begin) / limit) : words.length;
    return [begin, last >= 0 ? begin + last : end + last, get('keystep')];
  }
  if (kind !== 'keynum') return [0, -1, 1];
  const count = Number(toText(words[begin + get('keynumidx')] ?? 0)) || 0;
  const first = begin + get('firstkey');
  return [first, first + (count - 1) * get('keystep'), get('keystep')];
}

export class CommandKeys {
  // `reply` is the reply of COMMAND.
  constructor(reply) {
    this.commands = commandsOf(reply, 1);
  }

  // The keys of a request, each once.
  keys(words) {
    const command = this.commands.get(lower(words[0]));
    if (!command) return [];
    const { specs } = (words[1] && command.subcommands.get(lower(words[1]))) || command;
    const positions = new Set();
    for (const spec of specs) {
      const begin = beginOf(spec, words);
      if (begin === null) continue;
      const [first, last, step] = rangeOf(spec, words, begin);
      for (let at = Math.max(first, 1); at <= Math.min(last, words.length - 1); at += Math.max(step, 1)) positions.add(at);
    }
    return [...positions].map((at) => words[at]);
  }
}
