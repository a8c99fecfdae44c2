import { el } from '/console/dom.js';
export function createMemory() { return { element: el('p', {}, 'to do') }; }
