/** The answer to a question: a card for each quote, and what was read but not quoted. */

import { linkTo, nodeLink, passageLink, spanOf } from "./address.js";
import { button, element, say } from "./elements.js";
import { counted, fileOf, placeOf, shown } from "./text.js";

const SIGNS = {
  "": "Supported by its passage",
  "*": "Found by hierindex: the model cited nothing",
  "?": "No passage supports this sentence",
};

export class Answer {
  constructor(article) {
    Object.assign(this, { article, passages: [], sources: [], others: [], isShown: false });
  }

  /**
   * Show an answer, or none. Then `sources` are the nodes that it cites, `passages` what it cites
   * of them, each with the id of its `node`, and `others` the nodes that were only read.
   *
   * @param {string} question
   * @param {object|null} answer as `hierindex query --json` prints it
   */
  show(question, answer) {
    Object.assign(this, { passages: [], sources: [], others: [] });
    this.isShown = answer !== null;
    this.isNew = true;
    if (!answer) return this.article.replaceChildren();
    const cards = answer.passages.map((each, i) => cardOf(each, i + 1, answer.sources));
    this.passages = cards.map(({ passage }) => passage).filter(Boolean);
    this.sources = answer.sources.filter(({ id }) => this.passages.some(({ node }) => node === id));
    this.refused = answer.refused;
    this.others = answer.sources.filter((source) => !this.sources.includes(source));
    const documents = documentsOf(this.passages).size;
    const from = documents ? `Quoted from ${counted(documents, "document")}` : "";
    this.article.replaceChildren(
      element("h2", { dir: "auto" }, shown(question)),
      element("p", { class: "quiet" }, from),
      cards.length && answer.answer_kind !== "llm" ? "" : writtenOf(answer),
      ...notesOf(answer),
      element("ol", { class: "cards" }, cards),
      foldedOf(this.others),
      element("p", { class: "quiet" }, shown(costOf(answer))),
    );
    return undefined;
  }

  /** Add a piece to the answer that is being written, or begin one with its first piece. */
  write(question, piece, isFirst) {
    if (isFirst) {
      Object.assign(this, { passages: [], sources: [], others: [], isShown: true, isNew: true });
      this.writing = element("p", { class: "text written", dir: "auto" });
      this.article.replaceChildren(element("h2", { dir: "auto" }, shown(question)), this.writing);
    }
    this.writing.append(shown(piece));
  }

  /** Say of an answer that was being written that no more of it comes. */
  breakOff() {
    this.writing?.append(element("span", { class: "quiet" }, " … The answer ended early."));
  }

  /** Begin at the top, once a new answer is seen: what is hidden cannot be scrolled. */
  arrive() {
    if (this.isNew) this.article.scrollTop = 0;
    this.isNew = false;
  }

  /** Return what was shown, in a sentence for those who listen to the page. */
  get said() {
    if (this.refused) return "The index does not answer this.";
    return `An answer of ${counted(this.passages.length, "quote")}.`;
  }

  /** Return how many of an index's documents it quotes and has read, as a sentence. */
  reached(total) {
    const quoted = documentsOf(this.passages);
    const read = documentsOf(this.others.flatMap(({ citations }) => citations));
    const [n, more] = [quoted.size, read.difference(quoted).size];
    const rest = total - n - more;
    return `${n} of ${counted(total, "document")} quoted, ${more} more read, ${rest} not`;
  }
}

/** Return a text that quotes nothing, each of its citations as a link with a mark of support. */
function writtenOf({ answer, citations, refused }) {
  const parts = answer.split(/(\[\d+[?*]?\]|\[\?\])/).map((part, i) => {
    const [, n, sign] = (i % 2 && part.match(/^\[(\d*)([?*]?)\]$/)) || [];
    if (n === undefined) return shown(part);
    const given = { class: sign === "?" ? "unsupported" : null, title: SIGNS[sign] };
    const citation = citations[n - 1];
    if (!citation?.document) return element("sup", given, part);
    return element("sup", {}, passageLink(citation, part, given));
  });
  return element("p", { class: refused ? "refused text" : "text written", dir: "auto" }, parts);
}

function documentsOf(passages) {
  return new Set(passages.map(({ document }) => document).filter(Boolean));
}

/** Return the card of a quote, with its `passage`, whose `node` is the best that it is of. */
function cardOf({ text, lead, best, title, citation, is_file: isFile }, number, sources) {
  const meets = ({ document, start, end }) =>
    document === citation.document && start < citation.end && citation.start < end;
  const having = citation ? sources.filter(({ citations }) => citations.some(meets)) : [];
  const [node] = having.sort((a, b) => b.score - a.score);
  const place = [title, citation ? placeOf(citation, title) : ""].filter(Boolean).join(" · ");
  const passage = citation?.document ? { ...citation, node: node?.id } : null;
  const copied = `“${text}”\n${[place, citation?.document].filter(Boolean).join(", ")}`;
  const copy = () => navigator.clipboard.writeText(copied).then(() => say("Copied."));
  const said = bold(text, best);
  const quote = passage ? passageLink(passage, said) : said;
  const leading = lead && element("p", { class: "lead" }, shown(lead));
  const card = element(
    "li",
    {},
    element("b", { "aria-hidden": "true" }, String(number)),
    element("div", { class: "text", dir: "auto" }, leading, quote),
    element(
      "small",
      { class: "wraps" },
      element("bdi", {}, shown(place)),
      button("copy", copy, { class: "link", hidden: !navigator.clipboard }),
      isFile && fileOf(citation),
      node && element("a", { href: linkTo({ node: node.id, ...spanOf(passage) }) }, "link"),
    ),
  );
  return Object.assign(card, { passage });
}

/** Return a text with its words that match best in bold type. */
function bold(text, words) {
  const at = words ? text.indexOf(words) : -1;
  if (at < 0 || words.length === text.length) return shown(text);
  const made = shown(text.slice(0, at));
  made.append(element("b", {}, shown(words)), shown(text.slice(at + words.length)));
  return made;
}

/** Return paragraphs of what is beside the quotes: a list, and documents that are not there. */
function notesOf({ passages, answer_kind: kind, listing, unknown = {} }) {
  const near = (similar) => (similar.length ? ` Similar names: ${similar.join(", ")}.` : "");
  const names = Object.entries(unknown).map(([name, all]) => `No document is named ${name}.${near(all)}`);
  const texts = passages.length && kind !== "llm" && listing ? [listing.text, ...names] : names;
  return texts.map((text) => element("p", { class: "text", dir: "auto" }, shown(text)));
}

/** Return the nodes that were read but not quoted, folded. */
function foldedOf(sources) {
  const n = sources.length;
  if (!n) return "";
  const items = sources.map(({ citations: [first], ...node }) => {
    const place = first ? [first.document, placeOf(first)].filter(Boolean).join(", ") : "";
    const of = element("small", {}, shown(` level ${node.level} · ${place}`));
    return element("li", {}, nodeLink(node), of);
  });
  const label = `${counted(n, "passage")} read but not quoted`;
  return element(
    "details",
    {},
    element("summary", { class: "link" }, label),
    element("ol", {}, items),
  );
}

function costOf({ missing, refused, why, seconds }) {
  const spent = Object.values(seconds).reduce((sum, each) => sum + each, 0);
  const not =
    missing?.length ? `Not in the passages found: ${missing.join(", ")}. ` : "";
  return `${not}${why ? `Searched ${why}. ` : ""}${spent.toFixed(1)} s`;
}

/** Return the ids of sources and of all above them; each source has its `path`. */
export function idsOf(sources) {
  return new Set(sources.flatMap(({ id, path }) => [id, ...path]));
}
