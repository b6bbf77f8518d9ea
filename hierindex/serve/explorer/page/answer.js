/** The answer to a question, and the nodes that it is from. */

import { linkTo } from "./address.js";
import { element } from "./elements.js";
import { markCurrent, showPieces } from "./sentences.js";
import { cited, counted, placeOf, shown } from "./text.js";

export class Answer {
  constructor(article) {
    Object.assign(this, { article, passages: [] });
  }

  /**
   * @param {string} question
   * @param {object} answer as `hierindex query --json` prints it
   */
  show(question, answer) {
    const pieces = cited(answer);
    const passages = pieces.filter((piece) => piece.mark).map((piece) => piece.passage);
    this.passages = passages.filter(Boolean);
    const block = element("div", { class: "text answer", dir: "auto" });
    showPieces(block, pieces, { read: "answer" });
    this.article.replaceChildren(
      element("h2", { dir: "auto" }, shown(question)),
      ...(answer.refused ? refusal(answer) : [block]),
      ...notes(answer),
      ...sourcesOf(answer),
      element("p", { class: "quiet" }, shown(costOf(answer))),
    );
    this.article.scrollTop = 0;
  }

  /** Mark the sentences that stand on a passage. */
  mark(span) {
    markCurrent(this.article, span);
  }

  focus() {
    (this.article.querySelector("a.sentence, a.citation") ?? this.article).focus();
  }
}

function refusal({ answer, unknown = {} }) {
  const parts = [element("p", { class: "refused", dir: "auto" }, shown(answer))];
  for (const [name, similar] of Object.entries(unknown)) {
    const near = similar.length ? ` Similar names: ${similar.join(", ")}.` : "";
    parts.push(element("p", {}, shown(`No document is named ${name}.${near}`)));
  }
  return parts;
}

function notes({ missing = [], refused }) {
  if (!missing.length || refused) return [];
  const note = `The answer does not mention: ${missing.join(", ")}.`;
  return [element("p", { class: "quiet" }, shown(note))];
}

function sourcesOf({ sources, refused }) {
  if (!sources.length) return [];
  const items = sources.map((source) => {
    const [first] = source.citations;
    const place = first ? [first.document, placeOf(first)].filter(Boolean).join(", ") : "";
    const share = element("span", { class: "score", "aria-hidden": "true" }, element("i"));
    share.firstChild.style.width = `${Math.round(source.score * 100)}%`;
    const link = linkTo({ node: source.id });
    return element(
      "li",
      {},
      share,
      element(
        "a",
        {
          href: link,
          dir: "auto",
          "aria-label": `${source.title}, score ${source.score.toFixed(2)}`,
        },
        shown(source.title),
      ),
      element("span", { class: "quiet", dir: "auto" }, shown(`level ${source.level} · ${place}`)),
    );
  });
  const title = refused ? "Nearest, but no answer" : `From ${counted(sources.length, "node")}`;
  return [element("h3", {}, title), element("ol", { class: "sources" }, ...items)];
}

function costOf({ why, seconds }) {
  const spent = Object.values(seconds).reduce((sum, each) => sum + each, 0);
  return `${spent.toFixed(2)} s${why ? `. ${why}` : ""}`;
}

/**
 * Return what an answer lights up: by id, `score` of a source, or `under`, how many are below.
 *
 * @param {object[]} sources each with its `path`, the ids above it
 */
export function marksOf(sources) {
  const marks = new Map();
  for (const { path } of sources) {
    for (const id of path) marks.set(id, { under: (marks.get(id)?.under ?? 0) + 1 });
  }
  for (const { id, score } of sources) marks.set(id, { ...marks.get(id), score });
  return marks;
}
