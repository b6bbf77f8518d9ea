/** The overview: what is in the index, as blocks by share of the text, and in its own words. */

import { linkTo, nodeLink, passageLink } from "./address.js";
import { button, byId, element, setAttribute } from "./elements.js";
import { counted, percent, placeOf, shown } from "./text.js";

const LOW = 0.03; // share of a block that has no room for a line

export class Overview {
  /** `actions` are `ask(question)`. */
  constructor(data, actions) {
    const names = ["facts", "questions", "blocks", "reached", "key", "values", "quotes"];
    for (const name of names) this[name] = byId(name);
    Object.assign(this, { data, actions, path: [], quoted: new Set(), read: new Set() });
    this.key.addEventListener("change", () => this.colour());
  }

  async load({ time, stale, left_out: leftOut }) {
    const found = await this.data.read("overview", {});
    const { columns, documents, keys, questions, quotes, parts, tokens } = found;
    const day = time && new Date(time).toLocaleDateString("en-GB", { dateStyle: "long" });
    const facts = [counted(documents, "document"), counted(tokens, "token"), day];
    if (stale) facts.push(`${counted(stale, "node")} stale: run hierindex update`);
    facts.push(leftOut);
    this.facts.textContent = facts.filter(Boolean).join(" · ");
    const asking = (q) => button(shown(q), () => this.actions.ask({ q }), { dir: "auto" });
    this.questions.replaceChildren(...questions.map(asking));
    this.keys = keys;
    const option = ({ key }, i) => element("option", { value: i }, shown(key));
    this.key.replaceChildren(...keys.map(option));
    this.key.parentElement.hidden = !keys.length;
    const columnOf = (of) => element("div", { class: "column" }, of.map(blockOf));
    this.blocks.replaceChildren(...columns.map(columnOf));
    this.colour();
    const rest = 1 - quotes.reduce((sum, { share }) => sum + share, 0);
    const more = parts - quotes.length;
    const note = more > 0 && `and ${counted(more, "more part")} (${percent(rest)})`;
    this.quotes.replaceChildren(
      element("h2", {}, "In its own words"),
      element("p", { class: "quiet" }, "A sentence from each of the largest parts, quoted"),
      element("ol", {}, ...quotes.map(quoteOf)),
      element("p", { class: "quiet" }, note),
    );
    this.dress();
  }

  /** Colour the blocks by what most of their documents have of the chosen key. */
  colour() {
    const at = Number(this.key.value);
    const names = this.keys[at]?.values ?? [];
    this.values.replaceChildren(
      ...names.map((name, i) => hued(element("li", { dir: "auto" }, shown(name || "others")), i)),
    );
    for (const block of this.blocks.querySelectorAll("a")) hued(block, block.values[at]);
  }

  /** Show which node is selected: `path` are the ids from the root down to it. */
  select(path) {
    this.path = path;
    this.dress();
  }

  /** Colour the nodes that an answer quotes and those that it read, by ids; say how much. */
  async light(quoted, read, reached) {
    Object.assign(this, { quoted, read });
    this.dress();
    const { documents } = await this.data.read("overview", {});
    this.reached.textContent = quoted.size || read.size ? reached(documents) : "";
  }

  dress() {
    for (const block of this.blocks.querySelectorAll("a")) {
      const isRead = this.read.has(block.node) && "read";
      setAttribute(block, "data-lit", this.quoted.has(block.node) ? "quoted" : isRead);
      setAttribute(block, "aria-current", this.path.includes(block.node) && "true");
    }
  }
}

function blockOf({ id, title, documents, share, values }) {
  const size = [documents > 1 ? counted(documents, "document") : "", percent(share)];
  const facts = size.filter(Boolean).join(" · ");
  const name = element("b", {}, shown(title));
  const hint = `${name.textContent} (${facts})`; // the words have no room in a low block
  const href = linkTo({ node: id });
  const words = element("span", { dir: "auto" }, share >= LOW && [name, facts]);
  const made = element("a", { href, title: hint }, words);
  made.style.flexGrow = share;
  return Object.assign(made, { node: id, values });
}

/** Give an element the colour of a value by its number, or none. */
function hued(made, number) {
  made.style.setProperty("--hue", Number.isInteger(number) ? `var(--map-${number + 1})` : "");
  return made;
}

function quoteOf({ node, name, share, text, title, ...place }) {
  const of = [title || place.document, placeOf(place, title)].filter(Boolean).join(" · ");
  return element(
    "li",
    {},
    element("b", {}, percent(share)),
    nodeLink({ id: node, title: name }, { class: "quiet" }),
    passageLink({ ...place, node }, shown(text), { dir: "auto" }),
    element("small", { dir: "auto" }, shown(of)),
  );
}
