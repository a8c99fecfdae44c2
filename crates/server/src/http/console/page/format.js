// Numbers, sizes, durations and times as short text.

const grouped = new Intl.NumberFormat('en-US', { maximumFractionDigits: 0 });
const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];
const PREFIXES = ['', ' k', ' M', ' G', ' T'];

const isMissing = (value) => value === undefined || value === null || Number.isNaN(value);

// Three significant digits.
function digits(value) {
  const size = Math.abs(value);
  return value.toFixed(size >= 99.95 || value === 0 ? 0 : size >= 9.995 ? 1 : 2);
}

export function count(value) {
  return isMissing(value) ? '–' : grouped.format(value);
}

// A number of at most four digits with a decimal prefix: 12.3 k.
export function short(value) {
  if (isMissing(value)) return '–';
  let scaled = value;
  let at = 0;
  while (Math.abs(scaled) >= 999.5 && at < PREFIXES.length - 1) {
    scaled /= 1000;
    at += 1;
  }
  return (at === 0 && Number.isInteger(scaled) ? String(scaled) : digits(scaled)) + PREFIXES[at];
}

export function bytes(value) {
  if (isMissing(value)) return '–';
  let scaled = value;
  let at = 0;
  while (Math.abs(scaled) >= 999.5 && at < UNITS.length - 1) {
    scaled /= 1024;
    at += 1;
  }
  return `${at === 0 ? Math.round(scaled) : digits(scaled)} ${UNITS[at]}`;
}

export function perSecond(value) {
  if (isMissing(value)) return '–';
  return value < 10 ? `${Math.round(value * 10) / 10}/s` : `${short(Math.round(value))}/s`;
}

export const bytesPerSecond = (value) => (isMissing(value) ? '–' : `${bytes(value)}/s`);
export const percent = (value) => (isMissing(value) ? '–' : `${value >= 10 || value === 0 ? value.toFixed(0) : value.toFixed(1)} %`);

// A duration that was measured in microseconds.
export function micros(value) {
  if (isMissing(value)) return '–';
  if (value < 999.5) return `${digits(value)} µs`;
  if (value < 999_500) return `${digits(value / 1000)} ms`;
  return value < 120e6 ? `${digits(value / 1e6)} s` : seconds(value / 1e6);
}

// A duration in seconds, as its two largest units.
export function seconds(value) {
  if (isMissing(value) || value < 0) return '–';
  if (value < 60) return `${Math.floor(value)} s`;
  if (value < 3600) return `${Math.floor(value / 60)} min ${Math.floor(value % 60)} s`;
  if (value < 86400) return `${Math.floor(value / 3600)} h ${Math.floor((value % 3600) / 60)} min`;
  return `${Math.floor(value / 86400)} d ${Math.floor((value % 86400) / 3600)} h`;
}

// The reply of PTTL.
export function ttl(ms) {
  if (typeof ms !== 'number') return '–';
  if (ms === -1) return 'none';
  if (ms === -2) return 'gone';
  return ms < 1000 ? `${ms} ms` : seconds(ms / 1000);
}

const two = (value) => String(value).padStart(2, '0');

export function clock(ms) {
  const date = new Date(ms);
  return `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
}

export function dateTime(ms) {
  const date = new Date(ms);
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())} ${clock(ms)}`;
}

// "1 key", "2 keys".
export const plural = (number, noun) => `${count(number)} ${noun}${number === 1 ? '' : 's'}`;
