// Waits. The timers of a page slow down to one per second or minute while its tab is hidden; those of a worker do not.

const waiting = new Map();
let worker = null;
let number = 0;

function finish(id) {
  waiting.get(id)?.();
  waiting.delete(id);
}

export function pause(ms) {
  if (!worker) {
    worker = new Worker('/console/timer.js');
    // Without the worker, the timers of the page are used.
    worker.onerror = () => {
      worker = { postMessage: (request) => setTimeout(() => finish(request.id), request.ms) };
      for (const id of [...waiting.keys()]) finish(id);
    };
    worker.onmessage = ({ data }) => finish(data);
  }
  number += 1;
  const id = number;
  return new Promise((resolve) => {
    waiting.set(id, resolve);
    worker.postMessage({ id, ms });
  });
}
