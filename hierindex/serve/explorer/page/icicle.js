/** The icicle: the whole tree level by level to the right, in reading order downwards. */

import { settled } from "./elements.js";
import { Picture, isStill } from "./picture.js";
import { shown } from "./text.js";

const MOST = 2000; // cells to load at a time
const HELD = 20000; // cells
const GLIDE = 160; // milliseconds of a zoom
const NARROWEST = 64; // pixels of a column that has room for names

/** `actions` are `select(id)` and `fail(error)`. */
export class Icicle {
  constructor({ canvas, caption, out }, data, actions) {
    Object.assign(this, { canvas, caption, out, data, actions });
    this.cells = new Map(); // by id
    Object.assign(this, { depth: 0, range: [0, 1], marks: new Map(), path: [], hovered: null });
    this.isWhole = true;
    this.picture = new Picture(canvas, (...given) => this.draw(...given));
    this.loadSoon = settled(() => this.load().catch(actions.fail), GLIDE);
    canvas.addEventListener("pointermove", (event) => this.hover(this.cellAt(event)));
    canvas.addEventListener("pointerleave", () => this.hover(null));
    canvas.addEventListener("click", (event) => this.choose(this.cellAt(event)));
    canvas.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    canvas.addEventListener("keydown", (event) => this.press(event));
    out.addEventListener("click", () => this.zoomOut());
  }

  /** Load the broadest cells of what is seen. */
  async load() {
    const [from, to] = this.range;
    const { depth, cells } = await this.data.icicle(from, to, MOST);
    if (this.cells.size > HELD) this.cells.clear();
    for (const cell of cells) this.cells.set(cell.id, cell);
    this.depth = Math.max(this.depth, depth, ...cells.map((cell) => cell.depth));
    this.picture.soon();
  }

  /** Show which node is selected: `path` are the ids from the root down to it. */
  select(path) {
    this.path = path;
    this.describe();
    const { selected, range } = this;
    if (selected && (selected.x1 <= range[0] || selected.x0 >= range[1])) this.zoom([0, 1]);
    this.picture.soon();
  }

  /** Colour what a question has found; see `Outline.light`. */
  light(marks) {
    this.marks = marks;
    this.zoom([0, 1]);
  }

  get selected() {
    return (
      [...this.path]
        .reverse()
        .map((id) => this.cells.get(id))
        .find(Boolean) ?? null
    );
  }

  draw(context, width, height) {
    const {
      picture,
      range: [from, to],
      selected,
    } = this;
    const column = width / (this.depth + 1);
    const gap = column > 6 ? 1 : 0;
    const scale = height / (to - from);
    const onPath = new Set(this.path);
    context.font = picture.font;
    context.textBaseline = "middle";
    const seen = [...this.cells.values()].filter((cell) => cell.x1 > from && cell.x0 < to);
    const lit = seen.filter((cell) => this.marks.has(cell.id));
    const ends = ({ x0, x1 }) => [
      Math.max(-1, (x0 - from) * scale),
      Math.min(height + 1, (x1 - from) * scale),
    ];
    const starts = new Set(seen.map(({ depth, x0 }) => `${depth} ${x0}`));
    context.fillStyle = picture.colour("cell-below");
    for (const cell of seen) {
      if (!cell.level || starts.has(`${cell.depth + 1} ${cell.x0}`)) continue;
      const [y, bottom] = ends(cell); // its children are not loaded; their depth is at most this
      const n = Math.min(cell.level, this.depth - cell.depth);
      context.fillRect((cell.depth + 1) * column, y, n * column - gap, bottom - y);
    }
    for (const cell of [...seen, ...lit]) {
      const [x, [y, bottom]] = [cell.depth * column, ends(cell)];
      const inset = bottom - y > 3 ? 1 : bottom - y > 1.5 ? 0.5 : 0;
      const mark = this.marks.get(cell.id);
      const box = [x, y, column - gap, Math.max(mark ? 2 : 0.5, bottom - y - inset)];
      const kind = mark
        ? mark.score === undefined
          ? "warm"
          : "accent"
        : onPath.has(cell.id)
          ? "cell-path"
          : "cell";
      context.fillStyle = picture.colour(cell === this.hovered ? "cell-hover" : kind);
      context.globalAlpha = kind === "accent" ? glow(mark.score) : 1;
      context.fillRect(...box);
      context.globalAlpha = 1;
      if (column >= NARROWEST && bottom - y >= 14) this.name(context, cell, box, kind);
    }
    if (!selected) return;
    const tall = Math.max(5, (selected.x1 - selected.x0) * scale - 2.5);
    const y = ((selected.x0 + selected.x1) / 2 - from) * scale - tall / 2 - 0.5;
    context.strokeStyle = picture.colour("ink");
    context.lineWidth = 1.5;
    context.strokeRect(selected.depth * column + 0.75, y, column - gap - 1.5, tall);
  }

  name(context, cell, [x, y, width, height], kind) {
    const { picture } = this;
    context.save();
    context.beginPath();
    context.rect(x, y, width - 2, height);
    context.clip();
    const isBright = kind === "accent" && glow(this.marks.get(cell.id).score) > 0.7;
    context.fillStyle = picture.colour(isBright && cell !== this.hovered ? "paper" : "ink");
    const middle = Math.max(y, 0) + Math.min(height, picture.height - Math.max(y, 0)) / 2;
    context.fillText(shown(cell.title).textContent, x + 4, middle);
    context.restore();
  }

  cellAt({ offsetX, offsetY }) {
    const { width, height } = this.picture;
    const [from, to] = this.range;
    const depth = Math.floor((offsetX / width) * (this.depth + 1));
    const place = from + (offsetY / height) * (to - from);
    return this.find((cell) => cell.depth <= depth && cell.x0 <= place && place < cell.x1);
  }

  /** Return the deepest cell that passes. */
  find(passes) {
    let best = null;
    for (const cell of this.cells.values()) {
      if (passes(cell) && (!best || cell.depth > best.depth)) best = cell;
    }
    return best;
  }

  hover(cell) {
    if (cell === this.hovered) return;
    this.hovered = cell;
    this.describe();
    this.picture.soon();
  }

  describe() {
    const cell = this.hovered ?? this.selected;
    this.caption.replaceChildren(...(cell ? [shown(cell.title), ` (level ${cell.level})`] : []));
  }

  choose(cell) {
    if (!cell) return;
    this.hovered = null;
    this.actions.select(cell.id);
    this.zoom([cell.x0, cell.x1]);
  }

  /** Show the part that is around the one that is seen now. */
  zoomOut() {
    const [from, to] = this.range;
    const wider = (cell) =>
      cell.x0 <= from && cell.x1 >= to && cell.x1 - cell.x0 > (to - from) * 1.001;
    const around = this.find(wider);
    this.zoom(around ? [around.x0, around.x1] : [0, 1]);
  }

  zoom(range) {
    const before = this.range;
    const start = performance.now();
    const step = (now) => {
      const part = isStill.matches ? 1 : Math.min(1, Math.max(0, (now - start) / GLIDE));
      const eased = 1 - (1 - part) ** 3;
      this.range = range.map((end, i) =>
        part === 1 ? end : before[i] + (end - before[i]) * eased,
      );
      this.picture.now();
      if (part < 1) this.gliding = requestAnimationFrame(step);
    };
    cancelAnimationFrame(this.gliding);
    this.gliding = requestAnimationFrame(step);
    this.atWhole(range[0] <= 0 && range[1] >= 1);
    this.loadSoon();
  }

  /** Note whether all is seen; the button stays, and with it the keyboard's focus. */
  atWhole(isWhole) {
    this.isWhole = isWhole;
    this.out.setAttribute("aria-disabled", String(isWhole));
  }

  wheel(event) {
    const factor = Math.exp(event.deltaY / 300);
    const [from, to] = this.range;
    if (factor >= 1 && from <= 0 && to >= 1) return;
    event.preventDefault();
    const at = from + (event.offsetY / this.picture.height) * (to - from);
    const length = Math.min(1, Math.max(1e-6, (to - from) * factor));
    const start = Math.min(1 - length, Math.max(0, at - ((at - from) * length) / (to - from)));
    this.range = [start, start + length];
    this.atWhole(length >= 1);
    this.picture.soon();
    this.loadSoon();
  }

  press(event) {
    const cell = this.hovered ?? this.selected ?? this.find((each) => each.depth === 0);
    if (!cell) return;
    const beside = (step) => {
      const row = [...this.cells.values()].filter((each) => each.depth === cell.depth);
      row.sort((a, b) => a.x0 - b.x0);
      return row[row.indexOf(cell) + step] ?? cell;
    };
    const within = (each) =>
      each.depth === cell.depth + 1 && each.x0 >= cell.x0 - 1e-9 && each.x1 <= cell.x1 + 1e-9;
    const first = () => [...this.cells.values()].filter(within).sort((a, b) => a.x0 - b.x0)[0];
    const above = (each) =>
      each.depth === cell.depth - 1 && each.x0 <= cell.x0 + 1e-9 && each.x1 >= cell.x1 - 1e-9;
    const acts = {
      ArrowDown: () => this.hover(beside(1)),
      ArrowUp: () => this.hover(beside(-1)),
      ArrowRight: () => this.hover(first() ?? cell),
      ArrowLeft: () => this.hover(this.find(above) ?? cell),
      Enter: () => this.choose(cell),
      "+": () => this.choose(cell),
      Backspace: () => this.zoomOut(),
      "-": () => this.zoomOut(),
      Escape: () => this.zoom([0, 1]),
    };
    if (!(event.key in acts) || (event.key === "Escape" && this.isWhole)) return;
    event.preventDefault();
    event.stopPropagation();
    acts[event.key]();
  }
}

/** Return how strongly a source of this score is coloured. */
function glow(score) {
  return 0.35 + 0.65 * Math.max(0, Math.min(1, score));
}
