/**
 * What the page shows, as the part of its address after "#", and links to it.
 *
 * An address has the id of the selected `node`, the passage to show as `document`, `start` and
 * `end`, `read`, "answer" if the answer is read instead of the node, and `view`, "document" if the
 * document is alone; and the question `q` with those of its `OPTIONS` that are set. So links, back,
 * forward and reload work.
 */

import { element } from "./elements.js";
import { shown } from "./text.js";

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

/** Return a link that shows a node, by its title. */
export function nodeLink({ id, title }, attributes = {}) {
  const given = { href: linkTo({ node: id }), dir: "auto", ...attributes };
  return element("a", given, shown(title));
}

/** Return a link that shows a passage in its document, beside what is read or its `node`. */
export function passageLink(passage, said, attributes = {}) {
  const href = linkTo({ node: passage.node, ...spanOf(passage) });
  const made = element("a", { class: "sentence", href, ...attributes }, said);
  return Object.assign(made, { passage });
}
