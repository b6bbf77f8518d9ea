/** The outline: titles that expand and collapse, worked by keyboard as an ARIA tree. */

import { byId, element } from "./elements.js";
import { counted, shown, sizeOf } from "./text.js";

const MORE = 100; // children to load at a time
const LETTERS = 3; // that are left of a name without what those beside it begin with

/**
 * A row of the outline is an entry: a node with the `group` of the rows below it, which follows its
 * row when it is expanded, and their `total`; or a gap, which has no `id` and stands for rows of
 * its parent from the place `start` to `end` that are not loaded.
 *
 * `actions` are `select(id, isRun)`, `read(id)` and `trying(promise)`.
 */
export class Outline {
  constructor(data, actions) {
    const tree = byId("tree");
    Object.assign(this, { tree, data, actions });
    this.entries = new Map(); // by node id
    this.rows = tree.getElementsByClassName("row");
    this.root = { id: null, depth: 0, group: tree, isOpen: true };
    this.current = null;
    this.chosen = null; // id of the node that was selected last, though its row may be loading
    tree.addEventListener("keydown", (event) => this.press(event));
    tree.addEventListener("click", (event) => this.click(event));
    byId("collapse").addEventListener("click", () => this.collapse());
  }

  get first() {
    return this.rows[0].entry;
  }

  /** Load rows below an entry, from a place `start` or those `around` one, in place of a gap. */
  async load(entry, part) {
    const { nodes, start, total } = await this.data.read("nodes", {
      ...part,
      of: entry.id,
      n: MORE,
    });
    const { group } = entry;
    entry.total = total;
    entry.prefix ??= prefixOf(nodes.map(({ title }) => title));
    if (!group.firstChild) group.append(...this.gapOf(entry, 0, total));
    const gaps = [...group.children].map((row) => row.entry);
    const gap = gaps.find((each) => each && each.start <= start && start < each.end);
    if (!gap) return;
    const rows = nodes.map((brief, i) => this.entryOf(brief, entry, start + i).row);
    const before = this.gapOf(entry, gap.start, start);
    const hadFocus = gap.row === document.activeElement;
    gap.row.replaceWith(...before, ...rows, ...this.gapOf(entry, start + rows.length, gap.end));
    if (hadFocus) this.focus();
  }

  entryOf(brief, parent, place) {
    const { id, title, children: total } = brief;
    const name = title.startsWith(parent.prefix) ? title.slice(parent.prefix.length) : title;
    const group = element("div", { role: "group" });
    const entry = { id, name, parent, group, total, isOpen: false };
    this.entries.set(id, entry);
    const given = {
      "aria-posinset": place + 1,
      "aria-setsize": parent.total,
      "aria-expanded": total ? "false" : null,
      "data-kind": brief.document ? "document" : total ? "summary" : "chunk",
    };
    this.add(
      entry,
      given,
      element("span", { class: "twist", "aria-hidden": "true" }),
      element("span", { class: "title", dir: "auto", title }, ...parted(name)),
      element("span", { class: "excerpt", dir: "auto", "aria-hidden": "true" }, shown(brief.text)),
      element("span", { class: "size" }, sizeOf(brief)),
    );
    return entry;
  }

  /** Return the row of a gap in a list, which is empty if nothing is missing. */
  gapOf(parent, start, end) {
    if (start >= end) return [];
    const label = `Show ${Math.min(MORE, end - start)} more of ${counted(parent.total, "row")}`;
    return [this.add({ id: null, parent, start, end }, { class: "row more" }, label)];
  }

  /** Make the row of an entry. */
  add(entry, attributes, ...children) {
    entry.depth = entry.parent.depth + 1;
    const given = { role: "treeitem", class: "row", tabindex: -1, "aria-selected": "false" };
    const level = { "aria-level": entry.depth };
    entry.row = element("div", { ...given, ...level, ...attributes }, ...children);
    entry.row.style.setProperty("--depth", entry.depth - 1);
    return Object.assign(entry.row, { entry });
  }

  /** Expand or collapse an entry. */
  async toggle(entry, isOpen = !entry.isOpen) {
    const { group, row, total } = entry;
    if (!total || entry.isOpen === isOpen) return;
    if (isOpen && !group.firstChild) await this.load(entry, { start: 0 });
    entry.isOpen = isOpen;
    row.setAttribute("aria-expanded", isOpen);
    if (!isOpen && group.contains(this.current?.row)) this.move(entry);
    if (isOpen) row.after(group);
    else group.remove();
  }

  /** Show the highest rows alone. */
  collapse() {
    const top = this.root.total === 1 ? this.first : this.root;
    for (const entry of this.entries.values()) if (entry !== top) this.toggle(entry, false);
  }

  /** Load the first rows of a gap, and go on from there. */
  async fill(gap) {
    const before = [...this.rows].indexOf(gap.row);
    await this.load(gap.parent, { start: gap.start });
    if (this.current !== gap) return;
    this.go(this.rows[before]);
    this.focus();
  }

  /**
   * Expand the way down to a node and make it the current row.
   *
   * @param {string[]} path ids from the root down to the node
   */
  async reveal(path) {
    const chosen = path.at(-1);
    this.chosen = chosen;
    let entry = this.root;
    for (const id of path) {
      await this.toggle(entry, true);
      const isBelow = () => this.entries.get(id)?.parent === entry;
      if (!isBelow()) await this.load(entry, { around: id });
      if (!isBelow()) break;
      entry = this.entries.get(id);
    }
    if (entry !== this.root && chosen === this.chosen) this.move(entry);
  }

  /** Make an entry the current row, without any other effect. */
  move(entry) {
    const hadFocus = this.tree.contains(document.activeElement);
    this.current?.row.setAttribute("tabindex", -1);
    this.current?.row.setAttribute("aria-selected", "false");
    this.current = entry;
    entry.row.setAttribute("tabindex", 0);
    entry.row.setAttribute("aria-selected", "true");
    if (hadFocus) entry.row.focus({ preventScroll: true });
    this.seek();
  }

  /** Bring the current row into sight. */
  seek() {
    this.current?.row.scrollIntoView({ block: "nearest" });
  }

  focus() {
    this.current?.row.focus();
  }

  click({ target }) {
    const entry = target.closest(".row")?.entry;
    if (!entry) return;
    if (!entry.id) this.actions.trying(this.fill(entry));
    else if (target.closest(".twist")) this.actions.trying(this.toggle(entry));
    else {
      this.move(entry);
      entry.row.focus({ preventScroll: true });
      this.select(entry, false);
    }
  }

  go(row) {
    if (!row) return;
    this.move(row.entry);
    if (row.entry.id) this.select(row.entry, true);
  }

  select({ id }, isRun) {
    this.chosen = id;
    this.actions.select(id, isRun);
  }

  press(event) {
    const entry = this.current;
    if (!entry || event.ctrlKey || event.metaKey || event.altKey) return;
    const { rows } = this;
    const at = [...rows].indexOf(entry.row);
    const acts = {
      ArrowDown: () => this.go(rows[at + 1]),
      ArrowUp: () => this.go(rows[at - 1]),
      Home: () => this.go(rows[0]),
      End: () => this.go(rows[rows.length - 1]),
      ArrowRight: () => (entry.isOpen ? this.go(rows[at + 1]) : this.toggle(entry, true)),
      ArrowLeft: () => (entry.isOpen ? this.toggle(entry, false) : this.go(entry.parent.row)),
      " ": () => (entry.id ? this.toggle(entry) : this.fill(entry)),
      Enter: () => (entry.id ? this.actions.read(entry.id) : this.fill(entry)),
    };
    if (!(event.key in acts)) return;
    event.preventDefault();
    this.actions.trying(acts[event.key]());
  }
}

/** Return what all names begin with, up to a sign between words, as in file names; or nothing. */
function prefixOf(names) {
  const [first = "", ...others] = names;
  let n = others.length ? first.length : 0;
  for (const name of others) while (!name.startsWith(first.slice(0, n))) n -= 1;
  const prefix = /^(?=\S*\p{L})\S*[-_./:]/u.exec(first.slice(0, n))?.[0] ?? "";
  return names.every((name) => name.length >= prefix.length + LETTERS) ? prefix : "";
}

/** Return a name in two parts: without room, the first is cut; the last ones tell names apart. */
function parted(name) {
  const [, head, tail] = /^(.{12,}?)([^\p{L}\p{M}\p{N}].{5,13})$/u.exec(name) ?? [];
  return tail ? [element("span", {}, shown(head)), shown(tail)] : [shown(name)];
}
