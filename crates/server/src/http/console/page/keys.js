import { el } from '/console/dom.js';
export function createKeys() { return { element: el('p', {}, 'to do') }; }
