// A view that consists of several pages with tabs. `pages` has {id, title, view} objects.

import { el, replace } from '/console/dom.js';

export function tabs(label, base, pages) {
  const links = pages.map(({ id, title }) => el('a', { role: 'tab', href: `#/${base}${id ? '/' + id : ''}` }, title));
  const list = el('div', { class: 'tabs', role: 'tablist', 'aria-label': label }, links);
  const panel = el('div', { role: 'tabpanel' });
  let open = null;
  return {
    element: el('div', {}, list, panel),
    show(rest) {
      const at = Math.max(0, pages.findIndex(({ id }) => id === rest));
      // The open page is shown again when permissions change. This must not end what it does.
      if (open !== pages[at].view) {
        open?.hide();
        open = pages[at].view;
        replace(panel, open.element);
      }
      links.forEach((link, index) => link.setAttribute('aria-selected', String(index === at)));
      open.show(rest);
    },
    hide() {
      open?.hide();
    },
    update() {
      open?.update?.();
    },
  };
}
