/** The outline: titles that expand and collapse, worked by keyboard as an ARIA tree. */

import { element } from "./elements.js";
import { counted, shown, sizeOf } from "./text.js";

const MORE = 100; // children to load at a time
const MANY = 1000; // the same, to reach one of them
const PAGE_ROWS = 10; // rows that PageUp and PageDown move by
const TYPED = 700; // milliseconds that letters of one word are apart

/**
 * A row of the outline is an entry: a node with its depth, its loaded `children` and their
 * `total`, or the last row of a list that is not wholly loaded, which has no `id`.
 *
 * `actions` are `select(id, isRun)`, `read(id)` and `fail(error)`.
 */
export class Outline {
  constructor(tree, data, actions) {
    Object.assign(this, { tree, data, actions, typed: "", typedAt: 0, marks: new Map() });
    this.entries = new Map(); // by node id
    this.ofRow = new WeakMap();
    this.root = { id: null, depth: 0, children: [], total: 1, isOpen: true, row: null };
    this.current = null;
    this.chosen = null; // id of the node that was selected last, though its row may be loading
    tree.addEventListener("keydown", (event) => this.press(event));
    tree.addEventListener("click", (event) => this.click(event));
    tree.addEventListener("dblclick", (event) =>
      this.onEntry(event, (entry) => this.toggle(entry)),
    );
  }

  /** Load the first rows. */
  async start() {
    await this.load(this.root);
    this.refresh(this.root);
  }

  /** Load the next n children of an entry. */
  load(entry, n = MORE) {
    entry.loading ??= this.data
      .nodes(entry.id, entry.children.length, n)
      .then(({ nodes, total }) => {
        entry.total = nodes.length ? total : entry.children.length;
        for (const brief of nodes) entry.children.push(this.entryOf(brief, entry));
      })
      .finally(() => (entry.loading = null));
    return entry.loading;
  }

  entryOf(brief, parent) {
    const known = { brief, id: brief.id, parent, depth: parent.depth + 1, isOpen: false };
    const entry = { ...known, place: parent.children.length, children: [], total: brief.children };
    this.entries.set(brief.id, entry);
    return entry;
  }

  /** Expand or collapse an entry. */
  async toggle(entry, isOpen = !entry.isOpen) {
    if (!entry.id || !entry.total || entry.isOpen === isOpen) return;
    if (isOpen && !entry.children.length) await this.load(entry);
    entry.isOpen = isOpen;
    entry.row?.setAttribute("aria-expanded", isOpen);
    if (!isOpen && this.isUnder(this.current, entry)) this.move(entry);
    this.refresh(entry);
  }

  isUnder(entry, above) {
    return Boolean(entry) && (entry.parent === above || this.isUnder(entry.parent, above));
  }

  /** Load the rest of a list, some at a time, and go on from its first new row. */
  async extend(more) {
    const { parent } = more;
    const n = parent.children.length;
    await this.load(parent);
    const hadFocus = more.row === document.activeElement;
    this.refresh(parent);
    if (this.current === more) this.go((parent.children[n] ?? parent.children[n - 1]).row);
    if (hadFocus) this.focus();
  }

  /** Add the rows under an entry that are missing, and remove those that are to be hidden. */
  refresh(entry) {
    let next = entry.row ? entry.row.nextElementSibling : this.tree.firstElementChild;
    const put = (row) => {
      if (row === next) next = next.nextElementSibling;
      else this.tree.insertBefore(row, next);
    };
    const add = (above) => {
      for (const child of above.isOpen ? above.children : []) {
        put(this.rowOf(child));
        add(child);
      }
      if (above.isOpen && above.children.length < above.total) put(this.moreOf(above));
    };
    add(entry);
    while (next && this.ofRow.get(next).depth > entry.depth) {
      const after = next.nextElementSibling;
      next.remove();
      next = after;
    }
  }

  rowOf(entry) {
    if (entry.row) return entry.row;
    const { brief, depth, place } = entry;
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
      element("span", { class: "title", dir: "auto" }, shown(brief.title)),
      element("span", { class: "excerpt", dir: "auto", "aria-hidden": "true" }, shown(brief.text)),
      element("span", { class: "lit" }),
      sizeOf(brief),
    );
    indent(entry);
    this.ofRow.set(entry.row, entry);
    this.dress(entry);
    return entry.row;
  }

  moreOf(parent) {
    const { depth, total, children } = parent;
    const entry = { id: null, parent, depth: depth + 1, children: [], total: 0 };
    const label = `Show ${Math.min(MORE, total - children.length)} more of ${counted(total, "row")}`;
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
    lit.style.opacity = mark?.score === undefined ? 1 : 0.35 + 0.65 * mark.score;
    const said =
      mark && mark.score === undefined ? `${counted(mark.under, "source")} below` : "a source of the answer";
    if (mark) lit.setAttribute("aria-label", said);
    else lit.removeAttribute("aria-label");
    if (mark) lit.setAttribute("role", "img");
    else lit.removeAttribute("role");
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
    const n = entry.children.length;
    const isThere = () => this.entries.get(id)?.parent === entry;
    while (!isThere() && entry.children.length < entry.total) await this.load(entry, MANY);
    if (entry.children.length > n) this.refresh(entry);
    return isThere() ? this.entries.get(id) : null;
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
    entry.row.scrollIntoView({ block: "nearest" });
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
      if (!entry.id) return this.extend(entry);
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
      " ": () => (entry.id ? this.toggle(entry) : this.extend(entry)),
      Enter: () => (entry.id ? this.actions.read(entry.id) : this.extend(entry)),
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
    const begins = (row) => this.ofRow.get(row).brief?.title.toLowerCase().startsWith(this.typed);
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
