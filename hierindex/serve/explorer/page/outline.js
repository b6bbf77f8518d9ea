/** The outline: titles that expand and collapse, worked by keyboard as an ARIA tree. */

import { byId, element, setAttribute } from "./elements.js";
import { counted, shown, sizeOf } from "./text.js";

const MORE = 100; // children to load at a time
const PAGE_ROWS = 10; // rows that PageUp and PageDown move by
const LETTERS = 3; // that are left of a name without what those beside it begin with
const TYPED = 700; // milliseconds that letters of one word are apart

/**
 * A row of the outline is an entry: a node with its depth, its `children`, of which those that are
 * not loaded are holes, and their `total`; or a gap, which has no `id` and stands for a hole from
 * the place `start`.
 *
 * `actions` are `select(id, isRun)`, `read(id)` and `fail(error)`.
 */
export class Outline {
  constructor(data, actions) {
    const tree = byId("tree");
    Object.assign(this, { tree, data, actions, typed: "", typedAt: 0, marks: new Map() });
    this.entries = new Map(); // by node id
    this.ofRow = new WeakMap();
    this.root = { id: null, depth: 0, children: [], total: 1, isOpen: true, row: null };
    this.current = null;
    this.chosen = null; // id of the node that was selected last, though its row may be loading
    tree.addEventListener("keydown", (event) => this.press(event));
    tree.addEventListener("click", (event) => this.click(event));
    byId("collapse").addEventListener("click", () => this.collapse());
    tree.addEventListener("dblclick", (event) =>
      this.onEntry(event, (entry) => this.toggle(entry)),
    );
  }

  /** Load the first rows. */
  async start() {
    await this.load(this.root, { start: 0 });
    this.refresh(this.root);
  }

  /** Load children of an entry: those from a place `start`, or those `around` one. */
  async load(entry, part) {
    const { nodes, start, total } = await this.data.nodes(entry.id, part, MORE);
    entry.total = total;
    entry.prefix ??= prefixOf(nodes.map(({ title }) => title));
    nodes.forEach((brief, i) => (entry.children[start + i] ??= this.entryOf(brief, entry)));
  }

  entryOf(brief, parent) {
    const { id, title } = brief;
    const name = title.startsWith(parent.prefix) ? title.slice(parent.prefix.length) : title;
    const known = { brief, id, name, parent, depth: parent.depth + 1, isOpen: false };
    const entry = { ...known, children: [], total: brief.children };
    this.entries.set(brief.id, entry);
    return entry;
  }

  /** Expand or collapse an entry. */
  async toggle(entry, isOpen = !entry.isOpen) {
    if (!entry.id || !entry.total || entry.isOpen === isOpen) return;
    if (isOpen && !entry.children.length) await this.load(entry, { start: 0 });
    entry.isOpen = isOpen;
    entry.row?.setAttribute("aria-expanded", isOpen);
    if (!isOpen && this.isUnder(this.current, entry)) this.move(entry);
    this.refresh(entry);
  }

  /** Show the highest rows alone. */
  collapse() {
    const top = this.root.total === 1 ? this.root.children[0] : this.root;
    for (const entry of this.entries.values()) if (entry !== top) this.toggle(entry, false);
  }

  isUnder(entry, above) {
    return Boolean(entry) && (entry.parent === above || this.isUnder(entry.parent, above));
  }

  /** Load the first rows of a gap, and go on from there. */
  async fill(gap) {
    const { parent, start } = gap;
    await this.load(parent, { start });
    const hadFocus = gap.row === document.activeElement;
    this.refresh(parent);
    if (this.current === gap) this.go(parent.children[start].row);
    if (hadFocus) this.focus();
  }

  /** Add the rows under an entry that are missing, and remove those that are to be hidden. */
  refresh(entry) {
    let next = entry.row ? entry.row.nextElementSibling : this.tree.firstElementChild;
    const removeWhile = (passes) => {
      while (next && this.ofRow.get(next).depth > entry.depth && passes(this.ofRow.get(next))) {
        const after = next.nextElementSibling;
        next.remove();
        next = after;
      }
    };
    const put = (row) => {
      removeWhile(({ id }) => !id); // gaps are made anew
      if (row === next) next = next.nextElementSibling;
      else this.tree.insertBefore(row, next);
    };
    const add = (above) => {
      if (!above.isOpen) return;
      let place = 0;
      above.children.forEach((child, at) => {
        if (at > place) put(this.gapOf(above, place, at));
        put(this.rowOf(child, at));
        add(child);
        place = at + 1;
      });
      if (place < above.total) put(this.gapOf(above, place, above.total));
    };
    add(entry);
    removeWhile(() => true);
  }

  rowOf(entry, place) {
    if (entry.row) return entry.row;
    const { brief, depth, name } = entry;
    entry.row = element(
      "div",
      {
        ...{ role: "treeitem", class: "row", tabindex: -1, "aria-level": depth },
        ...{ "aria-posinset": place + 1, "aria-setsize": entry.parent.total },
        "aria-expanded": entry.total ? String(entry.isOpen) : null,
        "aria-selected": "false",
        "data-kind": brief.document ? "document" : brief.children ? "summary" : "chunk",
      },
      element("span", { class: "twist", "aria-hidden": "true" }),
      element("span", { class: "title", dir: "auto", title: brief.title }, ...parted(name)),
      element("span", { class: "excerpt", dir: "auto", "aria-hidden": "true" }, shown(brief.text)),
      element("span", { class: "lit" }),
      sizeOf(brief),
    );
    indent(entry);
    this.ofRow.set(entry.row, entry);
    this.dress(entry);
    return entry.row;
  }

  gapOf(parent, start, end) {
    const { depth, total } = parent;
    const entry = { id: null, parent, start, depth: depth + 1, children: [], total: 0 };
    const label = `Show ${Math.min(MORE, end - start)} more of ${counted(total, "row")}`;
    entry.row = element(
      "div",
      {
        role: "treeitem",
        class: "row more",
        tabindex: -1,
        "aria-level": depth + 1,
        "aria-selected": "false",
      },
      label,
    );
    indent(entry);
    this.ofRow.set(entry.row, entry);
    return entry.row;
  }

  /** Light up nodes: `marks` has, by id, `score` of a source, or `under`, how many are below. */
  light(marks) {
    this.marks = marks;
    for (const entry of this.entries.values()) this.dress(entry);
  }

  dress({ id, row }) {
    if (!row) return;
    const mark = this.marks.get(id);
    const lit = row.querySelector(".lit");
    row.dataset.lit = mark ? (mark.score === undefined ? "under" : "source") : "";
    lit.textContent = mark?.under ?? "";
    const isUnder = mark && mark.score === undefined;
    const said = isUnder ? `${counted(mark.under, "source")} below` : "a source of the answer";
    setAttribute(lit, "aria-label", mark && said);
    setAttribute(lit, "role", mark && "img");
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
      const child = await this.child(entry, id);
      if (!child) break;
      entry = child;
    }
    if (entry !== this.root && chosen === this.chosen) this.move(entry);
  }

  async child(entry, id) {
    const found = () => (this.entries.get(id)?.parent === entry ? this.entries.get(id) : null);
    if (found()) return found();
    await this.load(entry, { around: id });
    this.refresh(entry);
    return found();
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

  onEntry(event, act) {
    const row = event.target.closest(".row");
    if (row) this.doing(act(this.ofRow.get(row)));
  }

  doing(work) {
    Promise.resolve(work).catch((error) => this.actions.fail(error));
  }

  click(event) {
    this.onEntry(event, (entry) => {
      if (!entry.id) return this.fill(entry);
      if (event.target.closest(".twist")) return this.toggle(entry);
      this.move(entry);
      entry.row.focus({ preventScroll: true });
      return this.select(entry, false);
    });
  }

  go(row) {
    const entry = row && this.ofRow.get(row);
    if (!entry) return;
    this.move(entry);
    if (entry.id) this.select(entry, true);
  }

  select({ id }, isRun) {
    this.chosen = id;
    this.actions.select(id, isRun);
  }

  press(event) {
    const entry = this.current;
    if (!entry || event.ctrlKey || event.metaKey || event.altKey) return;
    const rows = this.tree.children;
    const at = () => Array.prototype.indexOf.call(rows, entry.row);
    const acts = {
      ArrowDown: () => this.go(entry.row.nextElementSibling),
      ArrowUp: () => this.go(entry.row.previousElementSibling),
      PageDown: () => this.go(rows[Math.min(rows.length - 1, at() + PAGE_ROWS)]),
      PageUp: () => this.go(rows[Math.max(0, at() - PAGE_ROWS)]),
      Home: () => this.go(rows[0]),
      End: () => this.go(rows[rows.length - 1]),
      ArrowRight: () => (entry.isOpen ? this.go(entry.children[0]?.row) : this.toggle(entry, true)),
      ArrowLeft: () => (entry.isOpen ? this.toggle(entry, false) : this.go(entry.parent.row)),
      " ": () => (entry.id ? this.toggle(entry) : this.fill(entry)),
      Enter: () => (entry.id ? this.actions.read(entry.id) : this.fill(entry)),
    };
    const act =
      acts[event.key] ?? (/^[^/?\s]$/u.test(event.key) ? () => this.type(event.key) : null);
    if (!act) return;
    event.preventDefault();
    this.doing(act());
  }

  /** Go to the next row whose title begins with what was typed. */
  type(letter) {
    const isNew = performance.now() - this.typedAt > TYPED;
    this.typed = (isNew ? "" : this.typed) + letter.toLowerCase();
    this.typedAt = performance.now();
    const rows = [...this.tree.children];
    const from = rows.indexOf(this.current.row) + (this.typed.length === 1 ? 1 : 0);
    const begins = (row) => this.ofRow.get(row).name?.toLowerCase().startsWith(this.typed);
    this.go([...rows.slice(from), ...rows.slice(0, from)].find(begins));
  }
}

/** Indent a row, from the ninth generation on by less, so that there is room for its title. */
function indent({ row, depth }) {
  const n = depth - 1;
  row.style.setProperty(
    "--indent",
    `${Math.min(n, 8) * 1.05 + Math.max(0, Math.min(n, 40) - 8) * 0.25}rem`,
  );
}

/** Return what all names begin with, up to a sign between words, as in file names; or nothing. */
function prefixOf(names) {
  const [first = "", ...others] = names;
  let n = others.length ? first.length : 0;
  for (const name of others) while (!name.startsWith(first.slice(0, n))) n -= 1;
  const prefix = /^(?=\S*\p{L})\S*[-_./:]/u.exec(first.slice(0, n))?.[0] ?? "";
  return names.every((name) => name.length >= prefix.length + LETTERS) ? prefix : "";
}

/** Return a name in two parts: without room, the first one is cut; the last ones tell names apart. */
function parted(name) {
  const [, head, tail] = /^(.{12,}?)([^\p{L}\p{M}\p{N}].{5,13})$/u.exec(name) ?? [];
  return tail ? [element("span", {}, shown(head)), shown(tail)] : [shown(name)];
}
