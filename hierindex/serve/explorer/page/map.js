/** The map: chunks in two dimensions, near ones alike, coloured by their parents at a level. */

import { button, byIds, element, settled } from "./elements.js";
import { Picture } from "./picture.js";
import { counted, shown } from "./text.js";

const MOST = 2000; // points
const NAMED = 8; // parents with a colour and a shape
const REACH = 14; // pixels from the pointer to a point
const WAIT = 60; // milliseconds until the name of a point is asked for
const MARGIN = 16; // pixels
const CLOSEST = 1e-3; // share of the map
const SHAPES = [
  ["●", "M1 0A1 1 0 1 1-1 0 1 1 0 0 1 1 0z"],
  ["■", "M-.9-.9H.9V.9H-.9z"],
  ["▲", "M0-1.2 1.1.8H-1.1z"],
  ["◆", "M0-1.3 1.3 0 0 1.3-1.3 0z"],
].map(([sign, path]) => ({ sign, path: new Path2D(path) })); // of about the same area

/** `actions` are `select(id)` and `fail(error)`. */
export class CorpusMap {
  constructor(data, actions) {
    const ids = { canvas: "points", caption: "map-caption", legend: "legend", levels: "map-level" };
    Object.assign(this, { ...byIds(ids), data, actions });
    const { canvas, levels } = this;
    Object.assign(this, { points: [], parents: [], chunks: 0, path: [], marks: new Map() });
    Object.assign(this, { hovered: null, only: null, isStarted: false });
    this.picture = new Picture(canvas, (...given) => this.draw(...given));
    this.nameSoon = settled((point) => this.name(point).catch(actions.fail), WAIT);
    levels.addEventListener("change", () => this.load());
    canvas.addEventListener("pointermove", (event) =>
      this.hover(this.nearest(event.offsetX, event.offsetY)),
    );
    canvas.addEventListener("pointerleave", () => this.hover(null));
    canvas.addEventListener("click", (event) => {
      const point = this.nearest(event.offsetX, event.offsetY);
      if (point) this.actions.select(point.id);
    });
    canvas.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    canvas.addEventListener("keydown", (event) => this.press(event));
  }

  /** Offer the levels that colours may stand for. */
  start(levels) {
    const above = levels.filter(({ level, nodes }) => level > 0 && nodes > 1);
    for (const { level, nodes } of [...above].reverse()) {
      this.levels.append(
        element("option", { value: level }, `level ${level} (${counted(nodes, "node")})`),
      );
    }
    const fit = [...above].reverse().find(({ nodes }) => nodes >= 4) ?? above.at(-1);
    this.levels.value = String(fit?.level ?? "");
    this.levels.disabled = !above.length;
  }

  /** Load the points when the map is seen for the first time. */
  async open() {
    if (!this.isStarted) await this.load();
    this.picture.soon();
  }

  async load() {
    const level = this.levels.value;
    this.caption.textContent = "Placing the chunks by their meaning …";
    try {
      const { points, parents, chunks } = await this.data.map(level || 0, MOST);
      if (level !== this.levels.value) return undefined; // another is being loaded
      Object.assign(this, { points, parents, chunks, only: null, hovered: null });
    } catch (error) {
      if (level === this.levels.value) this.caption.textContent = "The map cannot be shown.";
      return this.actions.fail(error);
    }
    this.isStarted = true;
    this.rank();
    this.list();
    this.describe();
    return this.picture.soon();
  }

  /** Give the biggest parents their colours, from the biggest on. */
  rank() {
    const sizes = this.parents.map(() => 0);
    for (const { parent } of this.points) if (parent !== null) sizes[parent] += 1;
    const order = sizes.map((_, i) => i).sort((a, b) => sizes[b] - sizes[a]);
    this.big = order.slice(0, NAMED);
    this.sizes = sizes;
    this.rankOf = new Map(this.big.map((parent, i) => [parent, i]));
    const xs = this.points.map(({ x }) => x);
    const ys = this.points.map(({ y }) => y);
    this.bounds = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
    this.seen = this.bounds;
  }

  list() {
    const entries = this.big.map((parent, rank) => {
      const { sign: text } = SHAPES[rank % SHAPES.length];
      const sign = element("span", { "aria-hidden": "true" }, text);
      sign.style.color = `var(--map-${rank + 1})`;
      const name = element("bdi", {}, shown(this.parents[parent].title));
      const entry = button(sign, () => this.show(parent), {
        class: "plain",
        "aria-pressed": "false",
      });
      entry.append(name, element("span", { class: "quiet" }, String(this.sizes[parent])));
      return element("li", { "data-rank": rank }, entry);
    });
    const rest = this.parents.length - this.big.length;
    if (rest > 0)
      entries.push(
        element("li", { class: "quiet" }, `and ${counted(rest, "smaller one")}, in grey`),
      );
    this.legend.replaceChildren(...entries);
  }

  /** Show the points of one parent alone, or of all again. */
  show(parent) {
    this.only = this.only === parent ? null : parent;
    this.big.forEach((each, i) => {
      this.legend.children[i].firstChild.setAttribute("aria-pressed", String(each === this.only));
    });
    this.picture.soon();
  }

  select(path) {
    this.path = path;
    this.picture.soon();
  }

  light(marks) {
    this.marks = marks;
    this.picture.soon();
  }

  place({ x, y }) {
    const [left, right, low, high] = this.seen;
    const { width, height } = this.picture;
    const across = (value, from, to, room) =>
      MARGIN + ((value - from) / (to - from || 1)) * (room - 2 * MARGIN);
    return [across(x, left, right, width), height - across(y, low, high, height)];
  }

  draw(context) {
    const { picture } = this;
    const size = this.points.length > 2000 ? 2.2 : this.points.length > 500 ? 3 : 4;
    const selected = this.path.at(-1);
    const order = [...this.points].sort((a, b) => this.rankAt(b) - this.rankAt(a));
    for (const point of order) {
      const rank = this.rankAt(point);
      const isDim = this.only !== null && point.parent !== this.only;
      context.globalAlpha = isDim ? 0.15 : 0.85;
      context.fillStyle = picture.colour(rank < NAMED ? `map-${rank + 1}` : "map-rest");
      const [isNamed, [x, y]] = [rank < NAMED, this.place(point)];
      const scale = devicePixelRatio * (isNamed ? size : size * 0.8);
      context.setTransform(scale, 0, 0, scale, x * devicePixelRatio, y * devicePixelRatio);
      context.fill(SHAPES[isNamed ? rank % SHAPES.length : 0].path);
    }
    context.setTransform(devicePixelRatio, 0, 0, devicePixelRatio, 0, 0);
    context.globalAlpha = 1;
    context.lineWidth = 2;
    for (const point of this.points) {
      const isLit = this.marks.get(point.id)?.score !== undefined;
      if (!isLit && point.id !== selected && point !== this.hovered) continue;
      context.strokeStyle = picture.colour(
        point.id === selected || point === this.hovered ? "ink" : "accent",
      );
      context.beginPath();
      context.arc(...this.place(point), size + 3, 0, 2 * Math.PI);
      context.stroke();
    }
  }

  rankAt({ parent }) {
    return this.rankOf.get(parent) ?? NAMED;
  }

  nearest(x, y) {
    let [best, least] = [null, REACH ** 2];
    for (const point of this.points) {
      const [px, py] = this.place(point);
      const far = (px - x) ** 2 + (py - y) ** 2;
      if (far < least) [best, least] = [point, far];
    }
    return best;
  }

  hover(point) {
    if (point === this.hovered) return;
    this.hovered = point;
    this.describe();
    this.picture.soon();
    if (point) this.nameSoon(point);
  }

  describe(title = "") {
    const parent = this.hovered && this.parents[this.hovered.parent];
    const n = this.points.length;
    const sample =
      n < this.chunks
        ? `${n.toLocaleString("en")} of ${counted(this.chunks, "chunk")}`
        : counted(n, "chunk");
    const said = this.hovered
      ? [title || "…", parent && `in ${parent.title}`].filter(Boolean).join(" · ")
      : `${sample}; near ones are similar`;
    this.caption.replaceChildren(shown(said));
  }

  async name(point) {
    const { title } = await this.data.node(point.id);
    if (this.hovered === point) this.describe(title);
  }

  /** Show less or more, and leave what is at a place, as shares from the left and top, there. */
  zoom(factor, [x, y]) {
    const along = (i, place) => {
      const [whole, [from, to]] = [this.bounds, this.seen].map((ends) => ends.slice(i, i + 2));
      const most = whole[1] - whole[0];
      const length = Math.min(most, Math.max(most * CLOSEST, (to - from) * factor));
      const start = from + place * (to - from) - place * length;
      return [0, length].map((end) => Math.min(Math.max(start, whole[0]), whole[1] - length) + end);
    };
    this.seen = [...along(0, x), ...along(2, 1 - y)];
    this.picture.soon();
  }

  /** Return a place in pixels as shares from the left and top. */
  shareOf([x, y]) {
    const { width, height } = this.picture;
    return [(x - MARGIN) / (width - 2 * MARGIN), (y - MARGIN) / (height - 2 * MARGIN)];
  }

  wheel(event) {
    const factor = Math.exp(event.deltaY / 300);
    event.preventDefault();
    if (this.points.length) this.zoom(factor, this.shareOf([event.offsetX, event.offsetY]));
  }

  /** Move to the nearest point in a direction, select it, or show what is around it. */
  press(event) {
    const steps = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
    const from =
      this.hovered ?? this.points.find(({ id }) => id === this.path.at(-1)) ?? this.points[0];
    const acts = {
      Enter: () => this.actions.select(from.id),
      "+": () => this.zoom(0.5, this.shareOf(this.place(from))),
      "-": () => this.zoom(2, this.shareOf(this.place(from))),
    };
    const act = steps[event.key] ? () => this.move(from, steps[event.key]) : acts[event.key];
    if (!from || !act) return;
    event.preventDefault();
    act();
  }

  move(from, [dx, dy]) {
    const [x, y] = this.place(from);
    let [best, least] = [from, Infinity];
    for (const point of this.points) {
      const [px, py] = this.place(point);
      const ahead = (px - x) * dx + (py - y) * dy;
      const aside = Math.abs((px - x) * dy) + Math.abs((py - y) * dx);
      if (ahead > 0.5 && aside <= ahead * 1.5 && ahead + 2 * aside < least)
        [best, least] = [point, ahead + 2 * aside];
    }
    this.hover(best);
    const isSeen = this.shareOf(this.place(best)).every((share) => share >= 0 && share <= 1);
    if (!isSeen) this.zoom(1 / CLOSEST, [0, 0]); // all
  }
}
