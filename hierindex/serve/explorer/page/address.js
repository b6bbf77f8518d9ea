/**
 * What the page shows, as the part of its address after "#".
 *
 * An address has the id of the selected `node`, the passage to show as `document`, `start` and
 * `end`, `read`, "answer" if the answer is read instead of the node, and `view`, "document" if the
 * document is alone; and the question `q` with
 * those of its `OPTIONS` that are set. So links, back, forward and reload work.
 */

export const OPTIONS = ["level", "where"];

/** @returns {{node?: string, document?: string, start?: number, end?: number, read?: string}} */
export function readAddress() {
  const { start, end, ...rest } = Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
  if (!/^\d+$/.test(start) || !/^\d+$/.test(end)) delete rest.document;
  return rest.document === undefined ? rest : { ...rest, start: Number(start), end: Number(end) };
}

/** Return the link to an address. */
export function linkTo(address) {
  const given = Object.entries(address).filter(
    ([, value]) => value !== undefined && value !== null,
  );
  return `#${new URLSearchParams(given)}`;
}

/** Return the part of an address that is its question; empty if it has none. */
export function questionOf(address) {
  const names = ["q", ...OPTIONS].filter((name) => address.q && address[name]);
  return Object.fromEntries(names.map((name) => [name, address[name]]));
}

/** Return the part of a passage that is in addresses. */
export function spanOf({ document, start, end }) {
  return { document, start, end };
}

/** @returns {boolean} whether two passages are the same characters. */
export function isSameSpan(a, b) {
  return a.document === b.document && a.start === b.start && a.end === b.end;
}
