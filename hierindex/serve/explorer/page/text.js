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

/** Return a number with its noun, in the plural unless it is one. */
export function counted(n, noun) {
  return `${n.toLocaleString("en")} ${noun}${n === 1 ? "" : "s"}`;
}

/** Return how much is under a node, such as "3 documents" or "20 chunks". */
export function sizeOf({ documents, chunks, children }) {
  if (!children) return "";
  return documents > 1 ? counted(documents, "document") : counted(chunks, "chunk");
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
  const isShown = (each, i) => i || each.replace(/\s+/g, " ") !== title;
  const titles = [section].flat().filter(isShown).join(" › ");
  const number = page === undefined || page === null ? label : label ? `${label} (${page})` : page;
  return [titles, number ? `page ${number}` : ""].filter(Boolean).join(", ");
}

/** Return a link that opens the file of a document, at the page of a passage. */
export function fileOf({ document, page }) {
  const href = `api/file?${new URLSearchParams({ document })}${page ? `#page=${page}` : ""}`;
  return element("a", { href, target: "_blank", rel: "noopener" }, "open the file");
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

/** Cut a stretch at the places inside of it: return where each part begins and ends. */
export function cut(from, to, places) {
  const inside = places.filter((at) => from < at && at < to);
  const cuts = [...new Set([from, ...inside, to])].sort((a, b) => a - b);
  return cuts.slice(1).map((end, i) => [cuts[i], end]);
}

/**
 * Divide a part of a text where its display changes.
 *
 * @param {{text: string, start?: number, marks?: [number, number, string|null, string][]}} of
 *     a text, the offset of its first character, and its marks: from and to which offset what is
 *     shown in its place, null for the text itself, and in which style.
 * @param {number} from offset, in code points as all others
 * @param {number} to
 * @returns {{stored: string, said: string|null, styles: string[]}[]}
 */
function piecesOf({ text, start = 0, marks = [] }, from, to) {
  const unit = units(text);
  const inside = marks.filter((mark) => mark[0] < to && from < mark[1]);
  const places = inside.flatMap((mark) => mark.slice(0, 2));
  return cut(from, to, places).map(([at, end]) => {
    const over = inside.filter((mark) => mark[0] < end && at < mark[1]);
    const hidden = over.find(([, , said]) => said !== null);
    return {
      stored: text.slice(unit(at - start), unit(end - start)),
      said: hidden ? (hidden[0] === at ? hidden[2] : "") : null,
      styles: over.map((mark) => mark[3]).filter(Boolean),
    };
  });
}

const TAGS = { heading: "b", code: "code", block: "code", strong: "strong", emphasis: "em" };

/**
 * Return a part of a text as it is displayed, with what is stored beside it, which `.as-stored`
 * on the body shows.
 *
 * @returns {DocumentFragment}
 */
export function displayed(of, from, to) {
  const fragment = document.createDocumentFragment();
  for (const { stored, said, styles } of piecesOf(of, from, to)) {
    const whole = shown(stored);
    const signs = (name, text) => element("span", { class: name }, text);
    const parts = said === null ? [whole] : [signs("stored", whole), signs("said", said)];
    const dressed = styles.reduceRight(
      (inner, style) => [element(TAGS[style], { class: style }, ...inner)],
      parts,
    );
    fragment.append(...dressed);
  }
  return fragment;
}

/** Return a part of a text as it is displayed, as a string. */
export function plain(of, from = 0, to = pointsIn(of.text)) {
  return piecesOf(of, from, to)
    .map(({ stored, said }) => said ?? stored)
    .join("")
    .trim();
}

/**
 * Divide the text of a node by the passages that its parts stand on.
 *
 * @returns {{at: number, to: number, passage: object|null}[]} which cover the text; a passage has
 *     `document`, `start` and `end`, and `verbatim`.
 */
export function quoted({ text, quotes = [] }) {
  const pieces = [];
  let from = 0;
  for (const quote of [...quotes].sort((a, b) => a.at - b.at)) {
    const [at, to] = [Math.max(from, quote.at), quote.to];
    if (to <= at) continue;
    if (at > from) pieces.push({ at: from, to: at, passage: null });
    const passage = quote.document ? quote : null;
    pieces.push({ at, to, passage, isUnsupported: !passage });
    from = to;
  }
  const end = pointsIn(text);
  if (from < end) pieces.push({ at: from, to: end, passage: null });
  return pieces;
}

/** Return the passage that a chunk is, or null of summaries and chunks without a known place. */
export function wholeOf({ level, quotes = [] }) {
  const isKnown = quotes.length && quotes.every((quote) => quote.document && quote.verbatim);
  return level || !isKnown ? null : { ...quotes[0], end: quotes.at(-1).end };
}
