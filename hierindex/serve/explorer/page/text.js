/** Texts of documents, which may hold anything, as what the page shows. */

import { element } from "./elements.js";

// Marks that turn the direction of what follows, and control characters.
const CONTROLS = /[\u202a-\u202e\u2066-\u2069\u0000-\u0008\u000b\u000e-\u001f\u007f]/g;

/**
 * Return a text with its control characters written out, so that they have no effect.
 *
 * @param {string} text
 * @returns {DocumentFragment}
 */
export function shown(text) {
  const fragment = document.createDocumentFragment();
  let from = 0;
  for (const match of text.matchAll(CONTROLS)) {
    fragment.append(text.slice(from, match.index));
    const code = match[0].codePointAt(0).toString(16).toUpperCase().padStart(4, "0");
    fragment.append(element("span", { class: "control" }, `U+${code}`));
    from = match.index + 1;
  }
  fragment.append(text.slice(from).replaceAll("\f", "\n"));
  return fragment;
}

/** Return the beginning of a text without the commonest signs of Markdown, which mean nothing there. */
export function plain(text) {
  return text
    .replace(/^[ \t]*(?:#{1,6}|>|[-*+])[ \t]+/gm, "") // of headings, quotes and lists
    .replace(/^[ \t|:=~-]{3,}$/gm, "") // rules, and lines below headings
    .replace(/^\|.*\|$/gm, (row) => row.replaceAll("|", " "))
    .replace(/!?\[([^\]\n]*)\]\([^)\s]*\)/g, "$1") // links and pictures
    .replace(/(?<![\w*`])(\*{1,3}|`{1,2})(?=\S)([^\n]*?\S)\1(?![\w*`])/g, "$2");
}

/** Return a number with its noun, in the plural unless it is one. */
export function counted(n, noun, plural = `${noun}s`) {
  return `${n.toLocaleString("en")} ${n === 1 ? noun : plural}`;
}

/** Return what is under a node, such as "3 documents, 20 chunks", in an element. */
export function sizeOf({ documents, chunks, children }) {
  const several = children && documents > 1 ? `${counted(documents, "document")}, ` : "";
  const some = children ? counted(chunks, "chunk") : "";
  return element("span", { class: "size" }, element("span", { class: "wide" }, several), some);
}

/** Return a share in percent, such as "12%". */
export function percent(share) {
  return share > 0 && share < 0.005 ? "<1%" : `${Math.round(share * 100)}%`;
}

/**
 * Return the section and page of a passage, as in "Results › Timing, page 12"; without the section
 * that is the `title` of the whole document.
 */
export function placeOf({ section = [], page, page_label: label }, title = null) {
  const sections = [section].flat();
  const titles = sections.slice(sections[0] === title ? 1 : 0).join(" › ");
  const number = page === undefined || page === null ? label : label ? `${label} (${page})` : page;
  return [titles, number ? `page ${number}` : ""].filter(Boolean).join(", ");
}

/**
 * Return a function from offsets in code points, as the index counts, to those of JavaScript.
 *
 * @param {string} text
 * @returns {(offset: number) => number}
 */
export function units(text) {
  if (!/[\u{10000}-\u{10ffff}]/u.test(text)) return (offset) => offset;
  const at = [0];
  for (const character of text) at.push(at.at(-1) + character.length);
  return (offset) => at[Math.min(offset, at.length - 1)];
}

/** Return the number of code points of a text. */
export function pointsIn(text) {
  let n = 0;
  for (const _ of text) n += 1;
  return n;
}

/** Return a text whose lines end where paragraphs do. */
export function unwrapped(text) {
  return text.replace(/([^\n])\n(?!\n)/g, "$1 ");
}

/**
 * Divide the text of a node by the passages that its parts stand on.
 *
 * @returns {{text: string, passage: object|null}[]} whose texts joined are the node's; a passage
 *     has `document`, `start` and `end`, and `verbatim`.
 */
export function quoted({ text, quotes = [] }) {
  const unit = units(text);
  const pieces = [];
  let from = 0;
  for (const quote of [...quotes].sort((a, b) => a.at - b.at)) {
    const [at, to] = [Math.max(from, unit(quote.at)), unit(quote.to)];
    if (to <= at) continue;
    if (at > from) pieces.push({ text: text.slice(from, at), passage: null });
    const passage = quote.document ? quote : null;
    pieces.push({ text: text.slice(at, to), passage, isUnsupported: !passage });
    from = to;
  }
  if (from < text.length) pieces.push({ text: text.slice(from), passage: null });
  return pieces;
}

/** Return the passage that a chunk is, or null of summaries and chunks without a known place. */
export function wholeOf({ level, quotes = [] }) {
  const isKnown = quotes.length && quotes.every((quote) => quote.document && quote.verbatim);
  return level || !isKnown ? null : { ...quotes[0], end: quotes.at(-1).end };
}
