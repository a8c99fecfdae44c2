// The prompt: runs commands in a session of its own, so that a blocking command does not disturb the rest of the page.
// SUBSCRIBE and MONITOR run in a third session until they are stopped.

import { el, button, replace, setText } from '/console/dom.js';
import { Session, describe } from '/console/session.js';
import { confirm } from '/console/dialog.js';
import { Docs } from '/console/docs.js';
import { lines } from '/console/replytext.js';
import { concat, toBytes, toText, unescape } from '/console/bytes.js';

const ENTRIES_MAX = 100;
const HISTORY_MAX = 200;
const LINES_STEP = 200;
const LINES_MAX = 5000;
const STREAM_LINES_MAX = 1000;
const STREAM_LINE_CHARS_MAX = 4096;
// Only the replies of the last entries are kept for "Show more".
const REPLIES_MAX = 4;
const CANDIDATES_MAX = 12;
const STOP_MS = 400;
const KEYS_MAX = 100_000;

const STREAMS = /^(P|S)?(UN)?SUBSCRIBE$|^MONITOR$/;
const UNSUPPORTED = /^(P?SYNC|REPLCONF)$/;
const DANGEROUS = /^(FLUSHALL|FLUSHDB|SHUTDOWN|DEBUG|SWAPDB|REPLICAOF|SLAVEOF|FAILOVER|CONFIG SET|FUNCTION FLUSH|CLUSTER (RESET|FAILOVER|FORGET|DELSLOTS\w*))\b/;

// Splits a line as redis-cli does: words, "text with escapes", 'text'. Null if a quote is not closed.
export function splitLine(line) {
  const words = [];
  const pattern = /\s*(?:"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)'|([^\s"']+))/y;
  let isNew = true;
  while (pattern.lastIndex < line.trimEnd().length) {
    const start = pattern.lastIndex;
    const match = pattern.exec(line);
    if (!match) return null;
    isNew = start === 0 || /^\s/.test(match[0]);
    const bytes = match[1] !== undefined ? unescape(match[1]) : toBytes(match[2] !== undefined ? match[2].replace(/\\'/g, "'") : match[3]);
    if (isNew) words.push(bytes);
    else words.push(concat([words.pop(), bytes]));
  }
  return words;
}

function openSession(name, onPush, onClose) {
  return new Promise((resolve, reject) => {
    const session = new Session({
      name, onPush,
      onState({ state, problem }) {
        if (state === 'ready') resolve(session);
        if (state === 'login') session.close();
        if (state === 'closed') {
          reject(new Error(problem || 'The connection was closed.'));
          onClose(problem);
        }
      },
    });
    session.connect();
  });
}

export function createPrompt() {
  const input = el('input', { class: 'mono', 'aria-label': 'Command', placeholder: 'a command, or help and the name of a command', autocomplete: 'off', autocapitalize: 'off', autocorrect: 'off', spellcheck: 'false' });
  const label = el('span', { class: 'mono' }, 'db0>');
  const output = el('div', { class: 'log', role: 'log', 'aria-live': 'polite', 'aria-label': 'Output' });
  const hint = el('div', { class: 'hint' });
  const stop = button('Stop', () => stopRunning(), { hidden: true });
  const history = [];
  const replies = []; // entries whose rest can be shown
  let position = 0;
  let session = null;
  let docs = null;
  let stopRunning = () => {};
  let cycle = null; // the candidates that Tab goes through

  async function connect() {
    if (session?.state === 'ready') return session;
    setText(label, 'db0>');
    session = await openSession('console-prompt', (push) => print(push), () => { session = null; });
    return session;
  }

  async function loadDocs() {
    if (docs) return;
    try {
      docs = new Docs(await (await connect()).call('COMMAND', 'DOCS'));
      showHint();
    } catch (error) {
      setText(hint, `No completion: ${describe(error)}`);
    }
  }

  function addEntry(...content) {
    const entry = el('div', { class: 'entry' }, content);
    output.append(entry);
    while (output.childElementCount > ENTRIES_MAX) output.firstChild.remove();
    entry.scrollIntoView({ block: 'nearest' });
    return entry;
  }

  const note = (text, style = '') => addEntry(el('pre', { class: style }, text));

  // Prints a reply; a long one is cut, and a button shows more.
  function print(reply) {
    const source = lines(reply);
    const pre = el('pre');
    const more = button('Show more', show, { class: 'small' });
    const entry = addEntry(pre, more);
    let shown = 0;
    function show() {
      const part = [];
      let next = source.next();
      while (!next.done) {
        part.push(next.value);
        if (part.length >= LINES_STEP) break;
        next = source.next();
      }
      shown += part.length;
      pre.append(document.createTextNode((shown > part.length ? '\n' : '') + part.join('\n')));
      const isOver = next.done || shown >= LINES_MAX;
      if (isOver) more.remove();
      if (isOver && !next.done) entry.append(el('p', { class: 'note' }, `The rest is not shown (more than ${LINES_MAX} lines).`));
    }
    show();
    replies.push(more);
    if (replies.length > REPLIES_MAX) replies.shift().remove();
  }

  async function isConfirmed(line, command, name) {
    if (name === 'KEYS') {
      const keys = await (await connect()).call('DBSIZE');
      if (keys <= KEYS_MAX) return true;
      return confirm({ title: 'Run KEYS?', text: `KEYS reads all ${keys} keys at once and slows down other clients. The view Keys searches with SCAN.`, action: 'Run KEYS' });
    }
    if (!DANGEROUS.test(command)) return true;
    return confirm({ title: `Run ${name}?`, text: line, action: `Run ${name}` });
  }

  async function run(line) {
    const args = splitLine(line);
    addEntry(el('pre', { class: 'echo' }, `${label.textContent} ${line}`));
    if (args === null) return note('Invalid argument(s): a quote is not closed.', 'bad');
    // A name may be quoted, so it is taken from the arguments.
    const words = args.slice(0, 3).map(toText);
    const name = words[0].toUpperCase();
    try {
      if (name === 'HELP') return await showHelp(words.slice(1));
      if (name === 'CLEAR') return replace(output);
      if (UNSUPPORTED.test(name)) return note(`${name} cannot be run in the console.`, 'bad');
      if (!await isConfirmed(line, words.join(' ').toUpperCase(), name)) return note('Not run.', 'muted');
      return STREAMS.test(name) ? await runStream(args) : await runCommand(args, name);
    } catch (error) {
      return note(`(error) ${describe(error)}`, 'bad');
    }
  }

  async function runCommand(args, name) {
    const own = await connect();
    const timer = setTimeout(() => {
      stopRunning = () => own.close();
      stop.hidden = false;
    }, STOP_MS);
    input.readOnly = true;
    try {
      const [reply] = await own.pipeline([args]);
      if (reply instanceof Error) note(`(error) ${describe(reply)}`, 'bad');
      else print(reply);
      if (name === 'SELECT' && !(reply instanceof Error)) setText(label, `db${Number(String.fromCharCode(...args[1]))}>`);
    } finally {
      clearTimeout(timer);
      stop.hidden = true;
      input.readOnly = false;
      input.focus();
    }
  }

  // Shows pushed replies until the operator stops them. Only the last lines are kept.
  async function runStream(args) {
    const received = [];
    let count = 0;
    let isDue = false;
    const status = el('p', { class: 'note' });
    const pre = el('pre', { class: 'stream' });
    const halt = button('Stop', () => own?.close(), { class: 'small' });
    let own = null;
    function draw() {
      isDue = false;
      const atEnd = pre.scrollTop + pre.clientHeight >= pre.scrollHeight - 20;
      setText(pre, received.join('\n'));
      setText(status, `${count} messages, at most ${STREAM_LINES_MAX} are shown`);
      if (atEnd) pre.scrollTop = pre.scrollHeight;
    }
    function receive(push) {
      count += 1;
      const text = Array.isArray(push) ? [...push].map((part) => [...lines(part)].join(' ')).join('  ') : [...lines(push)].join(' ');
      received.push(text.slice(0, STREAM_LINE_CHARS_MAX));
      if (received.length > STREAM_LINES_MAX) received.shift();
      if (!isDue) setTimeout(draw, 100);
      isDue = true;
    }
    own = await openSession('console-stream', receive, (problem) => {
      halt.remove();
      if (own) setText(status, `${count} messages, stopped. ${problem}`);
    });
    addEntry(el('div', { class: 'toolbar' }, halt, status), pre);
    own.send(args);
  }

  async function showHelp(words) {
    await loadDocs();
    const found = docs?.find(words);
    if (!found) return note(words.length > 0 ? `There is no command ${words.join(' ')}.` : 'help COMMAND shows the syntax of a command. clear empties the output. Tab completes words.');
    return note([found.syntax, found.summary, found.details].join('\n'));
  }

  // Shows the syntax of the command, and the words that Tab would complete.
  function showHint() {
    const line = input.value;
    if (!docs || line.trim() === '') return replace(hint);
    const words = line.trimStart().split(/\s+/);
    const found = docs.find(words[0].toUpperCase() === 'HELP' ? words.slice(1) : words);
    const candidates = docs.complete(words).filter((word) => word !== words[words.length - 1].toUpperCase());
    return replace(hint, found ? [el('p', { class: 'mono' }, found.syntax), el('p', { class: 'muted' }, found.summary)] : null,
      el('p', {}, candidates.slice(0, CANDIDATES_MAX).map((word) => button(word, () => accept(word), { class: 'small', tabindex: -1 })),
        candidates.length > CANDIDATES_MAX ? ` and ${candidates.length - CANDIDATES_MAX} more` : ''));
  }

  function accept(word) {
    input.value = input.value.replace(/\S*$/, word) + ' ';
    cycle = null;
    input.focus();
    showHint();
  }

  // Tab goes through the candidates. Without candidates it moves the focus as usual.
  function complete(event) {
    if (!cycle) {
      const words = input.value.trimStart().split(/\s+/);
      const candidates = docs?.complete(words) ?? [];
      if (input.value.trim() === '' || candidates.length === 0) return;
      cycle = { candidates, at: -1 };
    }
    event.preventDefault();
    cycle.at = (cycle.at + 1) % cycle.candidates.length;
    input.value = input.value.replace(/\S*$/, cycle.candidates[cycle.at]);
    if (cycle.candidates.length === 1) accept(cycle.candidates[0]);
  }

  function recall(step) {
    position = Math.max(0, Math.min(history.length, position + step));
    input.value = history[position] ?? '';
  }

  input.addEventListener('keydown', (event) => {
    if (event.key === 'Tab' && !event.shiftKey) return complete(event);
    cycle = null;
    if (event.key !== 'ArrowUp' && event.key !== 'ArrowDown') return undefined;
    event.preventDefault();
    return recall(event.key === 'ArrowUp' ? -1 : 1);
  });
  input.addEventListener('input', showHint);

  function submit(event) {
    event.preventDefault();
    const line = input.value;
    if (line.trim() === '' || input.readOnly) return;
    if (history[history.length - 1] !== line) history.push(line);
    if (history.length > HISTORY_MAX) history.shift();
    position = history.length;
    input.value = '';
    showHint();
    run(line);
  }

  return {
    element: el('div', { class: 'terminal view' }, output, el('form', { class: 'prompt', method: 'dialog', onsubmit: submit }, label, input, stop), hint),
    show() {
      loadDocs();
      input.focus();
    },
    hide() {},
  };
}
