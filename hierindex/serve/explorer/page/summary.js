/** The selected node: where it stands, and its text, of which each sentence leads to its source. */

import { isSameSpan, nodeLink, passageLink } from "./address.js";
import { element, setAttribute } from "./elements.js";
import { counted, displayed, quoted, shown, wholeOf } from "./text.js";

const KINDS = {
  chunk: "as in the document",
  extractive: "quoted from its documents",
  abstractive: "written by a model",
  extractive_fallback: "quoted, as the model failed",
};

export class Summary {
  constructor(article) {
    Object.assign(this, { article, passages: [] });
  }

  /** @param {object} node as the server describes it */
  show(node) {
    const whole = wholeOf(node);
    const pieces = whole ? [{ passage: whole }] : quoted(node);
    const kind = node.level ? "summary" : "chunk";
    const parts = pieces.map((piece) => partOf(piece, node));
    const missing =
      !node.text && element("p", { class: "hint" }, "This report leaves out the text.");
    const given = { class: "text", dir: "auto", "data-kind": kind };
    const block = element("div", given, parts, missing);
    this.passages = pieces.map((piece) => piece.passage).filter(Boolean);
    this.article.replaceChildren(
      pathOf(node),
      element("h2", { dir: "auto" }, shown(node.title)),
      element("p", { class: "quiet" }, factsOf(node)),
      block,
    );
    this.article.scrollTop = 0;
  }

  /** Say why a node cannot be shown. */
  fail(sentence) {
    this.passages = [];
    this.article.replaceChildren(element("p", { class: "hint" }, sentence));
  }

  /** Move the keyboard to the first sentence. */
  focus() {
    (this.article.querySelector("a.sentence") ?? this.article).focus();
  }
}

/** Mark the links to a passage as the current ones. */
export function markCurrent(block, span) {
  for (const link of block.querySelectorAll("a.sentence")) {
    setAttribute(link, "aria-current", span && isSameSpan(link.passage, span) && "true");
  }
}

/** Return a piece of a text, as a link if it stands on a passage; see `quoted`. */
function partOf({ at, to, passage, isUnsupported }, node) {
  const text = at === undefined ? "Show it in its document" : displayed(node, at, to);
  if (isUnsupported)
    return element("bdi", { class: "unsupported", title: "No source supports it" }, text);
  if (!passage) return element("bdi", {}, text);
  const isRewritten = passage.verbatim === false;
  const how = {
    class: "sentence rewritten",
    title: "Rewritten; follow it to what is most similar",
  };
  return passageLink({ ...passage, node: node.id }, text, isRewritten ? how : {});
}

function pathOf({ path }) {
  const steps = path.map((above) => element("li", {}, nodeLink(above)));
  return element(
    "nav",
    { "aria-label": "Path", class: "path" },
    element("ol", { class: "wraps" }, ...steps),
  );
}

function factsOf(node) {
  return [
    `Level ${node.level}`,
    node.n_tokens === undefined ? "" : counted(node.n_tokens, "token"),
    KINDS[node.kind],
    groundingOf(node.grounding),
  ]
    .filter(Boolean)
    .join(" · ");
}

/** What became of the sentences that a model wrote, as "9 supported, 1 dropped". */
function groundingOf(grounding) {
  const { faults, ...counts } = grounding ?? {};
  const each = Object.entries(counts).filter(([, n]) => n);
  return each.map(([outcome, n]) => `${n} ${outcome}`).join(", ");
}
