import { el } from '/console/dom.js';
export function createNodes() { return { element: el('p', {}, 'to do') }; }
