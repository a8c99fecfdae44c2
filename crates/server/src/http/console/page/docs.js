// COMMAND DOCS: the syntax and the summary of commands, and the words that can complete a line.

import { field, plain } from '/console/resp.js';

const has = (argument, flag) => (plain(field(argument, 'flags')) ?? []).includes(flag);
const inner = (argument) => field(argument, 'arguments') ?? [];

function syntaxOf(argument) {
  const type = plain(field(argument, 'type'));
  const token = plain(field(argument, 'token'));
  const name = plain(field(argument, 'display_text')) ?? plain(field(argument, 'name'));
  let text = name;
  if (type === 'pure-token') text = token;
  else if (type === 'oneof') text = inner(argument).map(syntaxOf).join(' | ');
  else if (type === 'block') text = inner(argument).map(syntaxOf).join(' ');
  if (token && type !== 'pure-token') text = `${token} ${type === 'oneof' ? `<${text}>` : text}`;
  else if (type === 'oneof' && !has(argument, 'optional')) text = `<${text}>`;
  if (has(argument, 'multiple')) text = `${text} [${text} …]`;
  return has(argument, 'optional') ? `[${text}]` : text;
}

function tokensOf(args) {
  return args.flatMap((argument) => {
    const token = plain(field(argument, 'token'));
    return [...(token ? [token] : []), ...tokensOf(inner(argument))];
  });
}

export class Docs {
  // `reply` is the reply of COMMAND DOCS.
  constructor(reply) {
    this.commands = new Map();
    for (const [name, doc] of reply.entries) this.commands.set(plain(name).toUpperCase(), doc);
    this.names = [...this.commands.keys()].sort();
  }

  subcommands(name) {
    const doc = this.commands.get(name);
    const found = (doc && field(doc, 'subcommands')?.entries) ?? [];
    return new Map(found.map(([full, each]) => [plain(full).split('|')[1].toUpperCase(), each]));
  }

  // The documentation of the command that begins a line: {name, syntax, summary, details}, or null.
  find(words) {
    const name = (words[0] ?? '').toUpperCase();
    const sub = (words[1] ?? '').toUpperCase();
    const nested = this.subcommands(name).get(sub);
    const doc = nested ?? this.commands.get(name);
    if (!doc) return null;
    const full = nested ? `${name} ${sub}` : name;
    const get = (what) => plain(field(doc, what)) ?? '';
    const subs = [...this.subcommands(name).keys()];
    const rest = nested || subs.length === 0 ? inner(doc).map(syntaxOf).join(' ') : `<${subs.join(' | ').toLowerCase()}>`;
    return { syntax: `${full} ${rest}`.trim(), summary: get('summary'), details: `${get('complexity')}\nSince ${get('since')}, group ${get('group')}`, tokens: tokensOf(inner(doc)) };
  }

  // The words that can replace the last one.
  complete(words) {
    const last = words[words.length - 1].toUpperCase();
    const begins = (word) => word.startsWith(last);
    if (words.length === 1) return this.names.filter(begins);
    if (words[0].toUpperCase() === 'HELP') return this.complete(words.slice(1));
    const subs = [...this.subcommands(words[0].toUpperCase()).keys()];
    if (words.length === 2 && subs.length > 0) return subs.filter(begins);
    const used = new Set(words.slice(1, -1).map((word) => word.toUpperCase()));
    return last === '' ? [] : [...new Set(this.find(words)?.tokens ?? [])].filter((token) => begins(token) && !used.has(token));
  }
}
