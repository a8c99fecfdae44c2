// Plots of the last five minutes, drawn with SVG. The heading of a plot shows the current values in the colors of the
// lines; while the pointer or the arrow keys select a moment, all plots show the values of that moment.

import { el, svg, setText, replace } from '/console/dom.js';
import { clock } from '/console/format.js';
import { WINDOW_MS, GAP_MS } from '/console/store.js';

const LEFT = 58;
const RIGHT = 8;
const TOP = 8;
const BOTTOM = 20;
const HEIGHT = 130;

const plots = new Set();
let moment = null; // the selected time, which all plots share

function select(time) {
  moment = time;
  for (const plot of plots) plot.showMoment();
}

// The smallest round number that is at least `value`, for an axis with two equal steps.
function roundUp(value, base) {
  let unit = 1;
  while (unit * base <= value) unit *= base;
  return unit * [1, 2, 4, 6, 8, 10, 20, 40, 60, 80, 100, 200, 400, 600, 800, base].find((step) => unit * step >= value);
}

// `series` has {label, read(sample)} objects; `format` writes a value with its unit.
export class Plot {
  constructor({ title, note = '', series, format, max = 0, base = 1000 }) {
    Object.assign(this, { title, series, format, max, base, samples: [], width: 0 });
    this.heading = el('div', { class: 'plot-values' });
    this.time = el('span', { class: 'moment' });
    this.graphic = svg('svg', { class: 'plot', tabindex: 0, role: 'img', 'aria-label': title, height: HEIGHT });
    this.element = el('section', { class: 'panel plot-panel' },
      el('h3', {}, title, ' ', el('span', { class: 'note' }, note), ' ', this.time), this.heading, this.graphic);
    this.listen();
    new ResizeObserver(() => this.resize()).observe(this.graphic);
    plots.add(this);
  }

  listen() {
    const at = (event) => {
      const x = event.clientX - this.graphic.getBoundingClientRect().left;
      select(this.timeAt(x));
    };
    this.graphic.addEventListener('pointermove', at);
    this.graphic.addEventListener('pointerdown', at);
    this.graphic.addEventListener('pointerleave', () => select(null));
    this.graphic.addEventListener('blur', () => select(null));
    this.graphic.addEventListener('keydown', (event) => {
      const step = { ArrowLeft: -5000, ArrowRight: 5000, Home: -WINDOW_MS, End: WINDOW_MS }[event.key];
      if (!step) return;
      event.preventDefault();
      const to = (moment ?? this.now()) + step;
      select(Math.min(this.now(), Math.max(this.now() - WINDOW_MS, to)));
    });
  }

  now() {
    return this.samples.length > 0 ? this.samples[this.samples.length - 1].time : Date.now();
  }

  resize() {
    const width = this.graphic.clientWidth;
    if (width === this.width || width === 0) return;
    this.width = width;
    this.draw();
  }

  x(time) {
    return LEFT + ((time - this.now() + WINDOW_MS) / WINDOW_MS) * (this.width - LEFT - RIGHT);
  }

  timeAt(x) {
    const share = (x - LEFT) / (this.width - LEFT - RIGHT);
    return this.now() - WINDOW_MS * (1 - Math.min(1, Math.max(0, share)));
  }

  y(value, top) {
    return TOP + (1 - Math.min(value, top) / top) * (HEIGHT - TOP - BOTTOM);
  }

  update(samples) {
    this.samples = samples;
    if (this.width > 0) this.draw();
    this.showMoment();
  }

  draw() {
    const visible = this.samples.filter((sample) => sample.time >= this.now() - WINDOW_MS);
    const largest = Math.max(0, ...visible.flatMap((sample) => this.series.map(({ read }) => read(sample) || 0)));
    const top = this.max || roundUp(Math.max(largest, this.base === 1024 ? 1024 : 2), this.base);
    this.graphic.setAttribute('viewBox', `0 0 ${this.width} ${HEIGHT}`);
    this.cursor = svg('line', { class: 'cursor', y1: TOP, y2: HEIGHT - BOTTOM });
    replace(this.graphic, this.grid(top),
      this.series.map(({ read }, at) => svg('path', { class: `line c${at}`, d: this.path(visible, read, top) })), this.cursor);
    this.showMoment();
  }

  grid(top) {
    const values = [0, top / 2, top].map((value) => {
      const y = this.y(value, top);
      return [svg('line', { class: 'grid', x1: LEFT, x2: this.width - RIGHT, y1: y, y2: y }),
        svg('text', { x: LEFT - 6, y: y + 4, 'text-anchor': 'end' }, this.format(value).replace(/\.0+(?=\D)/, ''))];
    });
    const minutes = (this.width < 320 ? [5, 3, 1, 0] : [5, 4, 3, 2, 1, 0]).map((minute) => {
      const anchor = minute === 0 ? 'end' : minute === 5 ? 'start' : 'middle';
      const label = minute === 0 ? 'now' : minute === 5 ? '−5 min' : `−${minute}`;
      return svg('text', { x: this.x(this.now() - minute * 60_000), y: HEIGHT - 5, 'text-anchor': anchor }, label);
    });
    return [...values.flat(), ...minutes];
  }

  path(samples, read, top) {
    let d = '';
    let earlier = null;
    for (const sample of samples) {
      const value = read(sample);
      if (!(value >= 0)) {
        earlier = null;
        continue;
      }
      const isNext = earlier && sample.time - earlier.time < GAP_MS;
      d += `${isNext ? 'L' : 'M'}${this.x(sample.time).toFixed(1)} ${this.y(value, top).toFixed(1)}`;
      if (!isNext) d += 'h0.01';
      earlier = sample;
    }
    return d;
  }

  // The latest value. Some values arrive a moment after their sample, so the sample before may be the latest one.
  latest(read) {
    const [before, last] = this.samples.slice(-2).map(read);
    return last === undefined || Number.isNaN(last) ? before : last;
  }

  // Shows the values of the selected moment, or the current ones.
  showMoment() {
    const at = moment ?? this.now();
    const sample = nearest(this.samples, at);
    setText(this.time, moment === null ? '' : clock(at));
    if (this.cursor) {
      this.cursor.setAttribute('visibility', moment === null ? 'hidden' : 'visible');
      this.cursor.setAttribute('x1', this.x(at));
      this.cursor.setAttribute('x2', this.x(at));
    }
    if (this.heading.childElementCount !== this.series.length) {
      replace(this.heading, this.series.map((_, line) => el('div', {}, el('strong', { class: `c${line}` }), el('span'))));
    }
    this.series.forEach(({ label, read }, line) => {
      const [value, name] = this.heading.children[line].children;
      setText(value, sample ? this.format(moment === null ? this.latest(read) : read(sample)) : '–');
      setText(name, label);
    });
    this.graphic.setAttribute('aria-label', `${this.title}: ${this.heading.textContent}`);
  }
}

function nearest(samples, time) {
  let best = null;
  for (const sample of samples) {
    if (!best || Math.abs(sample.time - time) < Math.abs(best.time - time)) best = sample;
  }
  return best && Math.abs(best.time - time) < GAP_MS ? best : null;
}

// A small plot of [seconds, value] points, as columns.
export function columns(points, format) {
  const width = 300;
  const height = 60;
  const largest = Math.max(1, ...points.map(([, value]) => value));
  const first = points.length > 0 ? points[0][0] : 0;
  const span = Math.max(60, points.length > 0 ? points[points.length - 1][0] - first : 0);
  const bars = points.map(([time, value]) => {
    const size = Math.max(1, (value / largest) * (height - 4));
    return svg('rect', { class: 'bar c0', x: ((time - first) / span) * (width - 4), y: height - size, width: 3, height: size },
      svg('title', {}, `${clock(time * 1000)}: ${format(value)}`));
  });
  const label = `${points.length} events, the largest ${format(largest)}`;
  return svg('svg', { class: 'columns', viewBox: `0 0 ${width} ${height}`, role: 'img', 'aria-label': label }, bars);
}
