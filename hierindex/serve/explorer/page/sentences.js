/** Texts whose sentences are links to the passages that they stand on. */

import { isSameSpan, linkTo, spanOf } from "./address.js";
import { button, element, setAttribute } from "./elements.js";
import { shown } from "./text.js";

const MOST = 20000; // characters to show at a time

/**
 * Fill an element with pieces of text, those with a passage as links.
 *
 * @param {HTMLElement} block
 * @param {{text: string, passage: object|null}[]} pieces
 * @param {object} address what the links show beside the passage
 */
export function showPieces(block, pieces, address, most = MOST) {
  const total = pieces.reduce((sum, piece) => sum + piece.text.length, 0);
  const made = new DocumentFragment();
  let left = most;
  for (const piece of pieces) {
    if (left <= 0) break;
    const text = piece.text.slice(0, left);
    const end = text.trimEnd().length;
    made.append(partOf({ ...piece, text: text.slice(0, end) }, address), text.slice(end));
    left -= piece.text.length;
  }
  block.replaceChildren(made);
  if (total <= most) return;
  const note = `The first ${most.toLocaleString("en")} of ${total.toLocaleString("en")} characters. `;
  const more = button("Show more", () => {
    const before = linksIn(block);
    const current = before.find((link) => link.ariaCurrent)?.passage;
    showPieces(block, pieces, address, most * 4);
    markCurrent(block, current);
    const after = linksIn(block);
    (after[before.length] ?? after.at(-1) ?? block.parentElement).focus();
  });
  block.append(element("p", { class: "hint" }, note, more));
}

function partOf({ text, passage, isUnsupported }, address) {
  if (isUnsupported)
    return element("bdi", { class: "unsupported", title: "No source supports it" }, shown(text));
  if (!passage) return element("bdi", {}, shown(text));
  const link = linkTo({ node: passage.node, ...address, ...spanOf(passage) });
  const isRewritten = passage.verbatim === false;
  const made = element(
    "a",
    {
      class: isRewritten ? "sentence rewritten" : "sentence",
      href: link,
      title: isRewritten ? "Rewritten; follow it to what is most similar" : null,
    },
    shown(text),
  );
  made.passage = passage;
  return made;
}

function linksIn(block) {
  return [...block.querySelectorAll("a.sentence")];
}

/** Mark the links to a passage as the current ones. */
export function markCurrent(block, span) {
  for (const link of linksIn(block)) {
    setAttribute(link, "aria-current", span && isSameSpan(link.passage, span) && "true");
  }
}
