/** Search in place: what is found takes the place of the outline until Escape. */

import { byIds, element, settled } from "./elements.js";
import { counted, plain, shown, sizeOf } from "./text.js";

const MOST = 50; // found nodes
const WAIT = 120; // milliseconds after a key
const BEFORE = 40; // characters of a text before the first word that is found

/** `actions` are `select(id, isRun)`, `close()` and `fail(error)`. */
export class Find {
  constructor(data, actions) {
    const ids = { input: "find", list: "found", count: "find-count", tree: "tree" };
    const { input, list, count, tree } = byIds(ids);
    Object.assign(this, { input, list, count, tree, data, actions, found: [], words: "", at: -1 });
    const searchSoon = settled(() => this.search(), WAIT);
    input.addEventListener("input", searchSoon);
    input.addEventListener("keydown", (event) => this.press(event));
    list.addEventListener("click", (event) => {
      const row = event.target.closest(".row");
      if (row) this.go([...list.children].indexOf(row), false);
    });
  }

  async search() {
    const words = this.input.value.trim();
    if (!words) return this.show([]);
    try {
      const { nodes } = await this.data.search(words, MOST);
      if (words === this.input.value.trim()) this.show(nodes, words);
    } catch (error) {
      this.actions.fail(error);
    }
    return undefined;
  }

  show(nodes, words = "") {
    const isOpen = nodes.length > 0;
    Object.assign(this, { found: nodes, words });
    this.at = -1;
    this.list.hidden = !isOpen;
    this.tree.hidden = isOpen;
    this.input.setAttribute("aria-expanded", String(isOpen));
    this.input.removeAttribute("aria-activedescendant");
    const n = nodes.length;
    const some = n < MOST ? `${n || "nothing"} found` : `first ${counted(n, "node")}`;
    this.count.textContent = words ? some : "";
    const each = words.toLowerCase().split(/\s+/).filter(Boolean);
    this.list.replaceChildren(...nodes.map((node, i) => this.rowOf(node, i, each)));
    this.list.scrollTop = 0;
  }

  rowOf(node, i, words) {
    return element(
      "div",
      { role: "option", class: "row", id: `found-${i}`, "aria-selected": "false" },
      element("span", { class: "title", dir: "auto" }, marked(node.title, words)),
      element(
        "span",
        { class: "excerpt", dir: "auto" },
        marked(around(plain(node.text), words), words),
      ),
      element("bdi", { class: "of" }, shown(node.of === node.title ? "" : (node.of ?? ""))),
      node.children ? sizeOf(node) : element("span", { class: "size" }, "chunk"),
    );
  }

  go(at, isRun) {
    if (!this.found.length) return;
    const rows = this.list.children;
    rows[this.at]?.setAttribute("aria-selected", "false");
    this.at = Math.max(0, Math.min(rows.length - 1, at));
    rows[this.at].setAttribute("aria-selected", "true");
    rows[this.at].scrollIntoView({ block: "nearest" });
    this.input.setAttribute("aria-activedescendant", rows[this.at].id);
    this.actions.select(this.found[this.at].id, isRun);
  }

  press(event) {
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10 };
    if (event.key in steps) this.go(this.at + steps[event.key], true);
    else if (event.key === "Enter") this.enter();
    else if (event.key === "Escape") this.close();
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  /** Select the first that is found, if none is, and go back to the outline. */
  async enter() {
    const isShown = () => this.words === this.input.value.trim();
    if (!isShown()) await this.search();
    if (!isShown()) return;
    if (this.at < 0) this.go(0, false);
    if (this.at >= 0) this.close();
  }

  /** Go back to the outline, with what was selected. */
  close() {
    this.input.value = "";
    this.show([]);
    this.actions.close();
  }
}

/** Return the part of a text that has the first of the words. */
function around(text, words) {
  const places = words.map((word) => text.toLowerCase().indexOf(word)).filter((at) => at > BEFORE);
  const at = places.length === words.length ? Math.min(...places) - BEFORE : 0;
  return at ? `… ${text.slice(text.indexOf(" ", at) + 1)}` : text;
}

/** Return a text with the words marked. */
function marked(text, words) {
  const fragment = document.createDocumentFragment();
  const lower = text.toLowerCase();
  let from = 0;
  while (lower.length === text.length) {
    const next = words.map((word) => [lower.indexOf(word, from), word.length]);
    const [at, n] = next.filter(([place]) => place >= 0).sort((a, b) => a[0] - b[0])[0] ?? [-1];
    if (at < 0) break;
    fragment.append(
      shown(text.slice(from, at)),
      element("mark", {}, shown(text.slice(at, at + n))),
    );
    from = at + n;
  }
  fragment.append(shown(text.slice(from)));
  return fragment;
}
