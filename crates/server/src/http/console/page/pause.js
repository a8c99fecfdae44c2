// Waits. The timers of a page slow down to one per second or minute while its tab is hidden; those of a worker do not.

const waiting = new Map();
let worker = null;
let number = 0;

export function pause(ms) {
  if (!worker) {
    worker = new Worker('/console/timer.js');
    worker.onmessage = ({ data }) => {
      waiting.get(data)?.();
      waiting.delete(data);
    };
  }
  number += 1;
  const id = number;
  return new Promise((resolve) => {
    waiting.set(id, resolve);
    worker.postMessage({ id, ms });
  });
}
