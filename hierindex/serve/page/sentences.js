/** Texts whose sentences are links to the passages that they stand on. */

import { isSameSpan, linkTo, spanOf } from "./address.js";
import { button, element } from "./elements.js";
import { shown } from "./text.js";

const MOST = 20000; // characters to show at a time

/**
 * Fill an element with pieces of text, those with a passage as links.
 *
 * @param {HTMLElement} block
 * @param {{text: string, passage: object|null, mark?: boolean}[]} pieces
 * @param {object} address what the links show beside the passage
 */
export function showPieces(block, pieces, address, most = MOST) {
  const total = pieces.reduce((sum, piece) => sum + piece.text.length, 0);
  const parts = [];
  let left = most;
  for (const piece of pieces) {
    if (left <= 0) break;
    const text = piece.text.slice(0, left);
    const end = text.trimEnd().length;
    parts.push(partOf({ ...piece, text: text.slice(0, end) }, address), text.slice(end));
    left -= piece.text.length;
  }
  block.replaceChildren(...parts);
  if (total <= most) return;
  const note = `The first ${most.toLocaleString("en")} of ${total.toLocaleString("en")} characters. `;
  const more = button("Show more", () => showPieces(block, pieces, address, most * 4));
  block.append(element("p", { class: "hint" }, note, more));
}

function partOf({ text, passage, mark }, address) {
  if (!passage) return element("bdi", {}, shown(text));
  const link = linkTo({ ...address, ...spanOf(passage) });
  const isFree = passage.verbatim === false || mark === false;
  const title = isFree ? "Rewritten; follow it to what supports it best" : null;
  const label = mark ? `Citation ${text}` : null;
  const kind = mark ? "citation" : "sentence";
  const made = element(
    "a",
    { class: kind, href: link, title: mark === undefined ? title : null, "aria-label": label },
    shown(text),
  );
  made.passage = passage;
  return made;
}

/** Mark the links to a passage as the current ones. */
export function markCurrent(block, span) {
  for (const link of block.querySelectorAll("a.sentence, a.citation")) {
    if (span && isSameSpan(link.passage, span)) link.setAttribute("aria-current", "true");
    else link.removeAttribute("aria-current");
  }
}
