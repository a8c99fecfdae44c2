import { el } from '/console/dom.js';
export function createPrompt() { return { element: el('p', {}, 'to do') }; }
