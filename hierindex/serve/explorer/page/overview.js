/** The overview: what is in the index, as blocks by share of the text, and in its own words. */

import { linkTo, spanOf } from "./address.js";
import { button, byId, element, setAttribute } from "./elements.js";
import { counted, percent, placeOf, shown } from "./text.js";

const COLOURS = 7; // folders with a colour of their own
const STOPS = 40; // blocks of a column that Tab stops at; the others are in the outline
const LOW = 0.03; // share of a block that has no room for a line

export class Overview {
  /** `actions` are `ask(question)`. */
  constructor(data, actions) {
    const names = ["facts", "questions", "blocks", "folders", "quotes"];
    for (const name of names) this[name] = byId(name);
    Object.assign(this, { data, actions, path: [], marks: new Map() });
  }

  async load({ time, stale, left_out: leftOut }) {
    const found = await this.data.overview();
    const { columns, documents, folders, questions, quotes, parts, tokens } = found;
    const facts = [counted(documents, "document"), counted(tokens, "token"), dateOf(time)];
    if (stale) facts.push(`${counted(stale, "node")} stale: run hierindex update`);
    facts.push(leftOut);
    this.facts.textContent = facts.filter(Boolean).join(" · ");
    const asking = (q) => button(shown(q), () => this.actions.ask({ q }), { dir: "auto" });
    this.questions.replaceChildren(...questions.map(asking));
    this.folders.replaceChildren(
      ...folders
        .slice(0, COLOURS)
        .map((name, i) => hued(element("li", { dir: "auto" }, shown(name || "other files")), i)),
    );
    this.blocks.replaceChildren(
      ...columns.map((blocks) =>
        element("div", { class: "column" }, ...blocks.map((block) => blockOf(block, blocks.length))),
      ),
    );
    const rest = 1 - quotes.reduce((sum, { share }) => sum + share, 0);
    const more = parts - quotes.length;
    const note = more > 0 ? [`and ${counted(more, "more part")} (${percent(rest)})`] : [];
    this.quotes.replaceChildren(
      element("h2", {}, "In its own words"),
      element("p", { class: "quiet" }, "A sentence from each of the largest parts, quoted"),
      element("ol", {}, ...quotes.map(quoteOf)),
      element("p", { class: "quiet" }, ...note),
    );
    this.dress();
  }

  /** Show which node is selected: `path` are the ids from the root down to it. */
  select(path) {
    this.path = path;
    this.dress();
  }

  /** Colour what a question has found; see `Outline.light`. */
  light(marks) {
    this.marks = marks;
    this.dress();
  }

  dress() {
    for (const block of this.blocks.querySelectorAll("a")) {
      block.toggleAttribute("data-lit", this.marks.has(block.node));
      setAttribute(block, "aria-current", this.path.includes(block.node) && "true");
    }
  }

  focus() {
    const current = [...this.blocks.querySelectorAll("[aria-current]")].at(-1);
    (current ?? this.blocks.querySelector("a"))?.focus();
  }
}

function blockOf({ id, title, documents, share, folder }, n) {
  const size = [documents > 1 ? counted(documents, "document") : "", percent(share)];
  const facts = size.filter(Boolean).join(" · ");
  const name = element("b", {}, shown(title));
  const hint = `${name.textContent} (${facts})`; // the words have no room in a low block
  const href = linkTo({ node: id });
  const words = element("span", { dir: "auto" }, ...(share < LOW ? [] : [name, facts]));
  const made = element("a", { href, title: hint, tabindex: n > STOPS ? -1 : null }, words);
  made.node = id;
  made.style.flexGrow = share;
  return hued(made, folder);
}

/** Give an element the colour of a folder. */
function hued(made, folder) {
  const hue = `var(--map-${folder + 1})`;
  if (folder !== null && folder < COLOURS) made.style.setProperty("--hue", hue);
  return made;
}

function quoteOf({ node, share, text, title, ...place }) {
  const link = linkTo({ node, ...spanOf(place) });
  const of = [title || place.document, placeOf(place, title)].filter(Boolean).join(" · ");
  return element(
    "li",
    {},
    element("b", {}, percent(share)),
    element("a", { href: link, class: "sentence", dir: "auto" }, shown(text)),
    element("small", { dir: "auto" }, shown(of)),
  );
}

function dateOf(time) {
  if (!time) return "";
  return new Date(time).toLocaleDateString("en-GB", { dateStyle: "long" });
}
