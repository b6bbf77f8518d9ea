/** The answer to a question, and the nodes that it is from. */

import { linkTo } from "./address.js";
import { element } from "./elements.js";
import { markCurrent, showPieces } from "./sentences.js";
import { cited, counted, placeOf, shown } from "./text.js";

export class Answer {
  constructor(article) {
    Object.assign(this, { article, passages: [], sources: [], isShown: false });
  }

  /**
   * Show an answer, or none. Then `sources` are the nodes that it cites, and `passages` what it
   * cites of them, each with the id of its `node`.
   *
   * @param {string} question
   * @param {object|null} answer as `hierindex query --json` prints it
   */
  show(question, answer) {
    Object.assign(this, { passages: [], sources: [], generation: null, isShown: answer !== null });
    if (!answer) return this.article.replaceChildren();
    const ofNodes = answer.citations.map((passage) =>
      passage.document ? ofNode(passage, answer.sources) : null,
    );
    this.passages = ofNodes.filter(Boolean);
    this.sources = answer.sources.filter(({ id }) => this.passages.some(({ node }) => node === id));
    this.generation = answer.generation;
    const block = element("div", { class: "text answer", dir: "auto" });
    showPieces(block, cited({ ...answer, citations: ofNodes }), { read: "answer" });
    const others = answer.sources.filter((source) => !this.sources.includes(source));
    this.article.replaceChildren(
      element("h2", { dir: "auto" }, shown(question)),
      ...(answer.refused ? refusal(answer) : [block]),
      ...notes(answer),
      ...listOf(this.sources, `From ${counted(this.sources.length, "node")}`),
      ...listOf(others, answer.refused ? "Nearest, but no answer" : "Also found, but not cited"),
      element("p", { class: "quiet" }, shown(costOf(answer))),
    );
    this.article.scrollTop = 0;
    return undefined;
  }

  /** Return what was shown, in a sentence for those who listen to the page. */
  get said() {
    return this.sources.length
      ? `An answer from ${counted(this.sources.length, "node")}.`
      : "The index does not answer this.";
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

/** Return a passage of an answer with the `node` that it is of, the best of those that have it. */
function ofNode(passage, sources) {
  const meets = ({ document, start, end }) =>
    document === passage.document && start < passage.end && passage.start < end;
  const having = sources.filter(({ citations }) => citations.some(meets));
  const [best] = having.sort((a, b) => b.score - a.score);
  return { ...passage, node: best?.id };
}

function listOf(sources, title) {
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
