// Writes that happen only if the value is still the one that the operator has seen.

import { check, isError } from '/console/session.js';
import { equal, unescape, toBytes } from '/console/bytes.js';
import { form, NOTE_ESCAPES } from '/console/dialog.js';
import { editable } from '/console/value.js';

const CHANGED = 'The value has changed since it was read, so nothing was written. Reload the key and try again.';

// Runs `writes` in a transaction if `read` still returns `expected`.
export async function writeIfUnchanged({ session, db, key }, read, expected, writes) {
  const seen = await session.pipelineIn(db, [['WATCH', key], read]);
  const [, current] = seen;
  if (seen.some(isError) || current === null || !equal(current, expected)) {
    await session.call('UNWATCH');
    check(seen);
    throw new Error(CHANGED);
  }
  const replies = await session.pipelineIn(db, [['MULTI'], ...writes, ['EXEC']]);
  check(replies);
  const results = replies[replies.length - 1];
  if (results === null) throw new Error(CHANGED);
  const error = results.find(isError);
  if (error) throw error;
}

// Edits one value if it is unchanged. `read` returns the value, `write` makes the command that stores it.
export function editValue(context, title, before, read, write, note = '') {
  const { text, isEscaped } = editable(before);
  return form({
    title, action: 'Save', note: [isEscaped ? NOTE_ESCAPES : '', note].filter(Boolean).join(' '),
    fields: [{ name: 'value', label: 'Value', value: text, rows: 14 }],
    submit: ({ value }) => writeIfUnchanged(context, read, before, [write(isEscaped ? unescape(value) : toBytes(value))]),
  });
}
