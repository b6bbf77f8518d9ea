/** Find while typing: the sentences that match are listed below the box, by document. */

import { byIds, element, setAttribute, settled } from "./elements.js";
import { shown } from "./text.js";

const MOST = 50; // found nodes
const WAIT = 150; // milliseconds after a key
const BEFORE = 60; // characters of a sentence before the first word that is found

export class Find {
  /**
   * `actions` are `read(id, source)` and `trying(promise)`.
   */
  constructor(data, actions) {
    const ids = { form: "question", input: "asked", panel: "finding", found: "found" };
    Object.assign(this, byIds({ ...ids, count: "find-count" }));
    Object.assign(this, { data, actions, rows: [], at: -1, written: null });
    const { form, input, panel, found } = this; // `written` is null unless the list is wanted
    const searchSoon = settled(() => this.written !== null && this.search(), WAIT);
    input.addEventListener("input", () => {
      this.written = input.value.trim();
      searchSoon();
    });
    input.addEventListener("keydown", (event) => this.press(event));
    panel.addEventListener("mousedown", (event) => event.preventDefault()); // the box keeps focus
    found.addEventListener("click", (event) => this.open(event.target.closest(".row")));
    form.addEventListener("submit", () => this.close());
    input.addEventListener("blur", () => this.close());
    if (data.isReport) input.placeholder = "Find a word … (Ctrl K)"; // it answers no questions
  }

  /** Go to the box, to write other words. */
  focus() {
    this.input.focus();
    this.input.select();
  }

  /** List what has the words that are written. */
  async search() {
    const written = this.input.value.trim();
    this.written = written;
    if (!written) return this.close();
    const found = await this.actions.trying(this.data.read("search", { q: written, n: MOST }));
    if (found && written === this.written) this.show(found, written);
    return undefined;
  }

  show({ nodes, total, words }, written) {
    const sought = wordsLike(words);
    const groups = Map.groupBy(nodes, ({ of }) => of ?? "Several documents");
    const row = (name, { id, title, level, text, source }) => {
      const isTitled = level ? !name.startsWith(title) : text.search(sought) < 0;
      const act = () => this.actions.read(id, source);
      return rowOf(act, isTitled && marked(title, sought), marked(around(text, sought), sought));
    };
    const n = nodes.length;
    const some = total === n ? `${n} found` : total ? `${n} of ${total} found` : `The first ${n}`;
    const said = n ? some : `No title or text has “${written}”.`;
    this.count.replaceChildren(shown(said));
    const lists = [...groups].map(([name, all], i) => {
      const given = { class: "of", id: `found-in-${i}`, dir: "auto" };
      const label = element("div", given, marked(name, sought));
      const rows = all.map((each) => row(name, each));
      return element("div", { role: "group", "aria-labelledby": label.id }, label, ...rows);
    });
    this.found.replaceChildren(...lists);
    this.rows = [...this.found.querySelectorAll(".row")];
    this.rows.forEach((row, i) => (row.id = `found-${i}`));
    this.found.scrollTop = 0;
    this.panel.hidden = false;
    this.input.setAttribute("aria-expanded", "true");
    this.move(this.data.isReport ? 0 : -1);
  }

  /** Make a row the current one, or none for -1. */
  move(at) {
    this.rows[this.at]?.setAttribute("aria-selected", "false");
    this.at = Math.max(-1, Math.min(this.rows.length - 1, at));
    const row = this.rows[this.at];
    row?.setAttribute("aria-selected", "true");
    row?.scrollIntoView({ block: "nearest" });
    setAttribute(this.input, "aria-activedescendant", row?.id);
  }

  open(row) {
    if (!row) return;
    this.close();
    row.act();
  }

  press(event) {
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10 };
    const isOpen = !this.panel.hidden;
    if (event.key in steps) isOpen ? this.move(this.at + steps[event.key]) : this.search();
    else if (event.key === "Enter" && isOpen && this.at >= 0) this.open(this.rows[this.at]);
    else if (event.key === "Escape" && isOpen) this.close();
    else {
      if (event.key === "Escape") this.input.blur();
      return;
    }
    event.preventDefault();
    event.stopPropagation();
  }

  close() {
    this.written = null;
    this.panel.hidden = true;
    this.input.setAttribute("aria-expanded", "false");
    this.input.removeAttribute("aria-activedescendant");
  }
}

function rowOf(act, title, text) {
  const part = (name, said) => said && element("span", { class: name, dir: "auto" }, said);
  const given = { role: "option", class: "row", "aria-selected": "false" };
  const row = element("div", given, part("title", title), part("excerpt", text));
  return Object.assign(row, { act });
}

/** Return a pattern of the words that begin so. */
function wordsLike(beginnings) {
  const any = beginnings.map((word) => word.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&")).join("|");
  return new RegExp(`(?<![\\p{Lu}\\p{Ll}\\p{N}])(?:${any || "$^"})[\\p{Lu}\\p{Ll}\\p{N}]*`, "giu");
}

/** Return the part of a text that has the first of the words. */
function around(text, words) {
  const at = text.search(words) - BEFORE;
  return at > 0 ? `… ${text.slice(text.indexOf(" ", at) + 1)}` : text;
}

/** Return a text with the words marked. */
function marked(text, words) {
  const fragment = document.createDocumentFragment();
  let from = 0;
  for (const { 0: word, index } of text.matchAll(words)) {
    fragment.append(shown(text.slice(from, index)), element("mark", {}, shown(word)));
    from = index + word.length;
  }
  fragment.append(shown(text.slice(from)));
  return fragment;
}
