// A session with the server: a WebSocket that carries RESP in both directions. A session logs in, keeps the order of
// requests and replies, and connects again after it was closed.

import { Decoder, Push, ReplyError, encode } from '/console/resp.js';

const MESSAGE_BYTES_MAX = 1024 * 1024;
const RETRY_MS = [300, 1000, 2000, 5000];
// The time after which an unfinished connection attempt is abandoned.
const CONNECT_MS_MAX = 10_000;
// The time after which a session counts as stable: if it is lost later, the first new attempt is made at once.
const STABLE_MS = 10_000;

export class ConnectionLost extends Error {}

// The user and password of this page, which all of its sessions use. They exist only in this variable.
let credentials = null;
// The sessions that do not connect again by themselves: those of the prompt.
const temporary = new Set();

// Sets the user of later logins. Temporary sessions of the earlier user are closed.
export function setCredentials(user, password) {
  credentials = { user: user || 'default', password };
  for (const session of temporary) session.close();
}

function address() {
  return `${location.protocol === 'https:' ? 'wss' : 'ws'}://${location.host}/console/session`;
}

// States: connecting, login (credentials are needed), ready, closed.
export class Session {
  // `onState(session)` reports changes of `state`, `onEvent(event)` the events of the server, `onPush(push)` pushed
  // replies. With `retry`, the session connects again after it was closed.
  constructor({ name = 'console', retry = false, onState = () => {}, onEvent = null, onPush = () => {} }) {
    Object.assign(this, { name, retry, onState, onEvent, onPush });
    this.state = 'closed';
    this.problem = ''; // why the session is not ready
    this.attempts = 0;
    this.waiting = [];
    this.db = 0;
    this.turn = Promise.resolve(); // resolved once the commands of all calls of pipelineIn are sent
    if (!retry) temporary.add(this);
  }

  connect() {
    const socket = new WebSocket(address(), 'brisk-console');
    socket.binaryType = 'arraybuffer';
    this.socket = socket;
    this.db = 0;
    this.decoder = new Decoder((reply) => this.receiveReply(reply));
    this.setState('connecting');
    const limit = setTimeout(() => socket.close(), CONNECT_MS_MAX);
    socket.onopen = () => {
      clearTimeout(limit);
      this.login();
    };
    socket.onmessage = (message) => this.receive(message.data);
    socket.onclose = () => {
      clearTimeout(limit);
      if (this.socket === socket) this.lost();
    };
  }

  setState(state) {
    this.state = state;
    this.onState(this);
  }

  async login() {
    const { socket } = this;
    const auth = credentials ? ['AUTH', credentials.user, credentials.password] : [];
    try {
      const hello = await this.call('HELLO', 3, ...auth, 'SETNAME', this.name);
      if (this.socket !== socket) return;
      this.hello = hello;
    } catch (error) {
      if (this.socket === socket && !(error instanceof ConnectionLost)) this.rejected(error);
      return;
    }
    this.stableTimer = setTimeout(() => {
      this.attempts = 0;
      this.problem = '';
    }, STABLE_MS);
    if (this.onEvent) this.prepare(socket);
    this.setState('ready');
  }

  // Requests the events. Reading keys in the console does not change their access times.
  prepare(socket) {
    socket.send('events on');
    this.pipeline([['CLIENT', 'NO-TOUCH', 'ON']]).catch(() => {});
  }

  rejected(error) {
    const needsLogin = error.code === 'NOAUTH' || error.code === 'WRONGPASS' || error.code === 'NOPERM';
    this.problem = error.code === 'NOAUTH' ? '' : error.message;
    if (!needsLogin) return this.socket.close();
    credentials = null;
    this.setState('login');
  }

  lost() {
    clearTimeout(this.stableTimer);
    temporary.delete(this);
    this.socket = null;
    this.rejectAll();
    this.setState('closed');
    if (!this.retry) return;
    const pause = RETRY_MS[Math.min(this.attempts, RETRY_MS.length - 1)];
    this.attempts += 1;
    this.retryTimer = setTimeout(() => this.connect(), pause);
  }

  rejectAll() {
    for (const { reject } of this.waiting.splice(0)) reject(new ConnectionLost(this.problem || 'The connection was closed.'));
  }

  close() {
    this.retry = false;
    clearTimeout(this.retryTimer);
    this.socket?.close();
  }

  // Closes the connection and, with `retry`, connects again with the current credentials.
  restart() {
    clearTimeout(this.retryTimer);
    clearTimeout(this.stableTimer);
    this.attempts = 0;
    this.problem = '';
    const socket = this.socket;
    this.socket = null;
    socket?.close();
    this.rejectAll();
    this.connect();
  }

  receive(data) {
    let event = null;
    try {
      if (typeof data === 'string') event = JSON.parse(data);
      else this.decoder.push(new Uint8Array(data));
    } catch (error) {
      this.problem = error.message;
      this.socket?.close();
      console.error(error);
    }
    if (event) this.onEvent?.(event);
  }

  receiveReply(reply) {
    const next = reply instanceof Push ? null : this.waiting.shift();
    if (next) next.resolve(reply);
    else this.onPush(reply);
  }

  // The time for which the oldest request has been waiting for its reply.
  waitingMs() {
    return this.waiting.length > 0 ? performance.now() - this.waiting[0].since : 0;
  }

  // Sends commands together. The replies contain errors as values.
  pipeline(commands) {
    if (!this.socket || this.socket.readyState !== WebSocket.OPEN) {
      return Promise.reject(new ConnectionLost(this.problem || 'Not connected.'));
    }
    const since = performance.now();
    const replies = commands.map(() => new Promise((resolve, reject) => {
      this.waiting.push({ resolve, reject, since });
    }));
    const bytes = encode(commands);
    for (let at = 0; at < bytes.length; at += MESSAGE_BYTES_MAX) {
      this.socket.send(bytes.subarray(at, at + MESSAGE_BYTES_MAX));
    }
    return Promise.all(replies);
  }

  // Sends a command whose replies are pushed: SUBSCRIBE, MONITOR.
  send(args) {
    this.socket.send(encode([args]));
  }

  // Sends one command, and throws a ReplyError if the reply is an error.
  async call(...args) {
    const [reply] = await this.pipeline([args]);
    if (reply instanceof ReplyError) throw reply;
    return reply;
  }

  // Sends commands for one database, once SELECT has succeeded. Only this function changes the database of the session.
  pipelineIn(db, commands) {
    // No other call changes the database between SELECT and the commands.
    const sent = this.turn.then(async () => {
      const { socket } = this;
      if (db !== this.db) {
        this.db = NaN;
        await this.call('SELECT', db);
        if (this.socket !== socket) throw new ConnectionLost('The connection was closed.');
        this.db = db;
      }
      return { replies: this.pipeline(commands) };
    });
    this.turn = sent.catch(() => {});
    return sent.then(({ replies }) => replies);
  }

  async callIn(db, ...args) {
    const [reply] = await this.pipelineIn(db, [args]);
    if (reply instanceof ReplyError) throw reply;
    return reply;
  }
}

// The text of an error for the operator: the server's words, and for MOVED and ASK the node that has the key.
export function describe(error) {
  if (!(error instanceof ReplyError)) return error.message || String(error);
  const moved = /^(MOVED|ASK) (\d+) (\S+)/.exec(error.message);
  return moved ? `${error.message} (the key is in slot ${moved[2]}, which ${moved[3]} serves)` : error.message;
}

export const isError = (reply) => reply instanceof ReplyError;

// Throws the first error among replies.
export function check(replies) {
  const error = replies.find(isError);
  if (error) throw error;
  return replies;
}
