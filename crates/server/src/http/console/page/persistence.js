import { el } from '/console/dom.js';
export function createPersistence() { return { element: el('p', {}, 'to do') }; }
