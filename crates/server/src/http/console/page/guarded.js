// Writes that happen only if the value is still the one that the operator has seen.

import { check, isError } from '/console/session.js';
import { equal } from '/console/bytes.js';

const CHANGED = 'The value has changed since it was read, so nothing was written. Reload the key and try again.';

// Runs `writes` in a transaction if `read` still returns `expected`.
export async function writeIfUnchanged({ session, db, key }, read, expected, writes) {
  const [, current] = check(await session.pipelineIn(db, [['WATCH', key], read]));
  if (current === null || !equal(current, expected)) {
    await session.call('UNWATCH');
    throw new Error(CHANGED);
  }
  const replies = await session.pipelineIn(db, [['MULTI'], ...writes, ['EXEC']]);
  check(replies);
  const results = replies[replies.length - 1];
  if (results === null) throw new Error(CHANGED);
  const error = results.find(isError);
  if (error) throw error;
}
