/** The map: chunks in two dimensions, near ones alike, named and coloured by parents at a level. */

import { button, byId, byIds, element, settled } from "./elements.js";
import { counted, plain, shown } from "./text.js";

const SVG = "http://www.w3.org/2000/svg";
const MOST = 2000; // points
const COLOURS = 8; // of the largest parents
const NAMES = 60; // of the largest parents; shown if they have room
const APART = 8; // pixels between names
const REACH = 14; // pixels from the pointer to a point
const DRAGGED = 4; // pixels that the pointer moves more in a drag than in a click
const WAIT = 60; // milliseconds until the text of a point is asked for
const MARGIN = 0.04; // share of the map on each side of the points
const CLOSEST = 0.01; // share of the map
const TEXT = 160; // characters of a chunk

/** A place has `x` and `y`, down from the top. `actions` are `select(id)` and `fail(error)`. */
export class CorpusMap {
  constructor(data, actions) {
    const ids = { map: "points", dots: "dots", marks: "map-marks", tip: "map-tip" };
    Object.assign(this, byIds({ ...ids, caption: "map-caption", levels: "map-level" }));
    Object.assign(this, { data, actions, points: [], chosen: null, cited: [], only: null });
    Object.assign(this, { names: [], parts: [], hovered: null, pressed: null, isDragged: false });
    Object.assign(this, { isStarted: false, seen: [0, 0, 1, 1], ring: markOf("ring", null) });
    this.describeSoon = settled((point) => this.describe(point).catch(actions.fail), WAIT);
    const { map } = this;
    this.levels.addEventListener("change", () => this.load());
    byId("map-zoom").addEventListener("click", ({ target }) => this.act(target.value));
    map.addEventListener("keydown", (event) => this.press(event));
    map.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    map.addEventListener("pointerdown", (event) =>
      Object.assign(this, { pressed: pixelsOf(event, map), isDragged: false }),
    );
    map.addEventListener("pointermove", (event) => this.point(event));
    map.addEventListener("pointerleave", () => this.hover(null));
    map.addEventListener("click", (event) => this.click(event));
    map.addEventListener("dblclick", () => this.act("0"));
    new ResizeObserver(() => this.arrange()).observe(map);
  }

  /** Offer the levels that colours may stand for. */
  start(levels) {
    const above = levels.filter(({ level, nodes }) => level > 0 && nodes > 1).reverse();
    for (const { level, nodes } of above) {
      const label = `level ${level} (${counted(nodes, "node")})`;
      this.levels.append(element("option", { value: level }, label));
    }
    this.levels.value = String((above.find(({ nodes }) => nodes >= 4) ?? above[0])?.level ?? "");
    this.levels.disabled = !above.length;
  }

  /** Load the points when the map is seen for the first time. */
  open() {
    return this.isStarted ? undefined : this.load();
  }

  async load() {
    const level = this.levels.value;
    this.caption.textContent = "Placing the chunks by their meaning …";
    try {
      const levels = [level || 0, Math.max(0, level - 1)];
      const found = await Promise.all(levels.map((each) => this.data.map(each, MOST)));
      if (level === this.levels.value) this.show(...found); // or else another is being loaded
    } catch (error) {
      if (level === this.levels.value) this.caption.textContent = "The map cannot be shown.";
      this.actions.fail(error);
    }
  }

  /** Show a map, and the names of one of smaller groups when it is looked at closely. */
  show({ points, parents, chunks }, { parents: parts }) {
    const place = (each) => ({ ...each, y: -each.y });
    Object.assign(this, { points: points.map(place), isStarted: true, only: null });
    const [n, all] = [points.length.toLocaleString("en"), counted(chunks, "chunk")];
    const sample = points.length < chunks ? `${n} of ${all}` : all;
    this.caption.textContent = `${sample}; near ones are similar`;
    const groups = [...parents.keys(), null].reverse(); // the largest on top
    this.dots.replaceChildren(...groups.map((parent) => this.dotsOf(parent)));
    this.names = parents.slice(0, NAMES).map((parent, i) => this.nameOf(place(parent), i));
    const others = parts.filter(({ id }) => parents.every((parent) => parent.id !== id));
    this.parts = others.map((part) => markOf("part", place(part), shown(part.title)));
    this.whole = around(this.points);
    this.seen = this.whole;
    this.mark();
  }

  /** Return the points under a parent as one path. */
  dotsOf(parent) {
    const path = document.createElementNS(SVG, "path");
    const under = this.points.filter((point) => point.parent === parent);
    path.setAttribute("d", under.map(({ x, y }) => `M${x} ${y}h0`).join(""));
    path.dataset.parent = parent;
    if (parent !== null && parent < COLOURS) path.style.stroke = `var(--map-${parent + 1})`;
    return path;
  }

  nameOf(parent, i) {
    const hint = { class: "name", "aria-pressed": "false", title: parent.title, dir: "auto" };
    const name = button(shown(parent.title), () => this.filter(i), hint);
    if (i < COLOURS) name.style.borderColor = `var(--map-${i + 1})`;
    return Object.assign(name, { place: parent });
  }

  /** Show the points of one parent alone, or of all again. */
  filter(parent) {
    this.only = this.only === parent ? null : parent;
    this.names.forEach((name, i) => name.setAttribute("aria-pressed", String(i === this.only)));
    for (const path of this.dots.children) {
      const isOther = this.only !== null && path.dataset.parent !== String(this.only);
      path.toggleAttribute("data-dim", isOther);
    }
  }

  select(path) {
    this.chosen = path.at(-1);
    this.mark();
  }

  /** Put the numbers of passages on the points that they are of. */
  cite(passages) {
    this.cited = passages;
    this.mark();
  }

  /** Put up the names, the numbers, and rings around the selected point and that of the pointer. */
  mark() {
    const numbers = new Map(this.cited.map(({ node }) => [node, []]));
    this.cited.forEach(({ node }, i) => numbers.get(node).push(i + 1));
    const cited = this.points.filter(({ id }) => numbers.has(id));
    this.marks.replaceChildren(
      this.ring,
      ...this.points.filter(({ id }) => id === this.chosen).map((point) => markOf("ring", point)),
      ...cited.map((point) => markOf("number", point, numbers.get(point.id).join(", "))),
      ...this.names,
      ...this.parts,
    );
    this.arrange();
  }

  /** Put all marks in their places, or beside the marks before them; names need room. */
  arrange() {
    const { clientWidth: width, clientHeight: height } = this.map;
    const taken = [];
    this.dots.setAttribute("viewBox", this.seen.join(" "));
    for (const mark of width ? this.marks.children : []) {
      const kind = mark.className;
      const isClose = kind !== "part" || this.seen[2] < this.whole[2] / 2;
      mark.hidden = !isClose || !mark.place || !isIn(mark.place, this.seen);
      if (mark.hidden) continue;
      mark.half ??= [mark.offsetWidth / 2, mark.offsetHeight / 2];
      const [w, h] = mark.half;
      const [x, y] = this.pixels(mark.place);
      const boxes = [0, -1, 1].map((beside) => ({
        x: Math.min(Math.max(x, w), width - w),
        y: Math.min(Math.max(y + beside * (2 * h + APART), h), height - h),
        ...{ w, h },
      }));
      const free = boxes.find((box) => !taken.some((other) => meet(box, other)));
      const [box] = kind === "ring" ? boxes : [free ?? (kind === "number" ? boxes[0] : null)];
      mark.hidden = !box;
      if (!box) continue;
      if (kind !== "ring") taken.push(box);
      Object.assign(mark.style, { left: `${box.x}px`, top: `${box.y}px` });
    }
  }

  /** Return how far a place is from the left and top, in pixels. */
  pixels({ x, y }) {
    const [left, top, width, height] = this.seen;
    const { clientWidth, clientHeight } = this.map;
    return [((x - left) / width) * clientWidth, ((y - top) / height) * clientHeight];
  }

  /** Return the point that is nearest in pixels, if one is within reach. */
  nearest([x, y], reach = Infinity) {
    let [best, least] = [null, reach];
    for (const point of this.points) {
      const [px, py] = this.pixels(point);
      const far = Math.hypot(px - x, py - y);
      if (far < least) [best, least] = [point, far];
    }
    return best;
  }

  /** Show a part of the map: within its bounds, and with a point in it. */
  look([x, y, width, height]) {
    const [left, top, most, highest] = this.whole;
    const within = (start, from, room) => Math.min(Math.max(start, from), from + room);
    const seen = [within(x, left, most - width), within(y, top, highest - height), width, height];
    if (!this.points.some((point) => isIn(point, seen))) return;
    this.seen = seen;
    this.hover(null);
    this.arrange();
  }

  /** Show more or less of the map, with a place where it is. */
  zoom(factor, { x, y }) {
    const [left, top, width, height] = this.seen;
    const [, , most] = this.whole;
    const by = Math.min(Math.max(factor, (CLOSEST * most) / width), most / width);
    this.look([x - (x - left) * by, y - (y - top) * by, width * by, height * by]);
  }

  wheel(event) {
    event.preventDefault();
    const point = this.nearest(pixelsOf(event, this.map)); // so that it stays in sight
    if (point) this.zoom(Math.exp(event.deltaY / 300), point);
  }

  /** Move the map with the pointer, or show which point it is at. */
  point(event) {
    const [x, y] = pixelsOf(event, this.map);
    if (!event.buttons || !this.pressed) return this.hover(this.nearest([x, y], REACH));
    const [dx, dy] = [x - this.pressed[0], y - this.pressed[1]];
    if (!this.isDragged && Math.hypot(dx, dy) < DRAGGED) return undefined;
    this.isDragged = true;
    this.pressed = [x, y];
    this.map.setPointerCapture(event.pointerId);
    const [left, top, width, height] = this.seen;
    const { clientWidth, clientHeight } = this.map;
    const seen = [left - (dx / clientWidth) * width, top - (dy / clientHeight) * height];
    return this.look([...seen, width, height]);
  }

  click(event) {
    const point = this.nearest(pixelsOf(event, this.map), REACH);
    if (!this.isDragged && point && !event.target.closest("button")) this.actions.select(point.id);
  }

  hover(point) {
    if (point === this.hovered) return;
    this.hovered = point;
    this.ring.place = point;
    this.tip.hidden = true;
    this.arrange();
    if (point) this.describeSoon(point);
  }

  /** Show the title and the beginning of a chunk beside its point. */
  async describe(point) {
    const { title, text } = await this.data.node(point.id);
    if (this.hovered !== point) return;
    const beginning = plain(text.slice(0, TEXT)) + (text.length > TEXT ? " …" : "");
    this.tip.replaceChildren(element("b", {}, shown(title)), element("p", {}, shown(beginning)));
    this.tip.hidden = false;
    const [x, y] = this.pixels(point);
    const { clientWidth, clientHeight } = this.map;
    this.tip.style.left = `${Math.min(x, clientWidth - this.tip.offsetWidth)}px`;
    const isLow = y > clientHeight / 2;
    this.tip.style.top = `${isLow ? y - this.tip.offsetHeight - REACH : y + REACH}px`;
  }

  /** Move to the nearest point in a direction, select it, or show what is around it. */
  press(event) {
    const steps = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
    if (event.target !== this.map || event.ctrlKey || event.metaKey) return;
    if (event.key in steps) this.move(steps[event.key]);
    else if (!this.act(event.key)) return;
    event.preventDefault();
  }

  /** Do what a key is for, and return whether it is for anything. */
  act(key) {
    const from = this.focal;
    const acts = {
      Enter: () => this.actions.select(from.id),
      "+": () => this.zoom(0.5, from),
      "-": () => this.zoom(2, from),
      0: () => this.look(this.whole),
    };
    if (from) acts[key]?.();
    return key in acts;
  }

  /** The point of the pointer or the keys, else the selected one, else the one in the middle. */
  get focal() {
    const { clientWidth, clientHeight } = this.map;
    const chosen = this.points.find((each) => each.id === this.chosen && isIn(each, this.seen));
    return this.hovered ?? chosen ?? this.nearest([clientWidth / 2, clientHeight / 2]);
  }

  move([dx, dy]) {
    const from = this.focal;
    if (!from) return;
    const [x, y] = this.pixels(from);
    let [best, least] = [from, Infinity];
    for (const point of this.points) {
      const [px, py] = this.pixels(point);
      const ahead = (px - x) * dx + (py - y) * dy;
      const aside = Math.abs((px - x) * dy) + Math.abs((py - y) * dx);
      if (ahead > 0.5 && aside <= ahead * 1.5 && ahead + 2 * aside < least)
        [best, least] = [point, ahead + 2 * aside];
    }
    if (!isIn(best, this.seen)) this.look(this.whole);
    this.hover(best);
  }
}

function markOf(name, place, text = "") {
  return Object.assign(element("span", { class: name }, text), { place });
}

function meet(a, b) {
  return Math.abs(a.x - b.x) < a.w + b.w + APART && Math.abs(a.y - b.y) < a.h + b.h + APART;
}

function pixelsOf({ clientX, clientY }, map) {
  const { left, top } = map.getBoundingClientRect();
  return [clientX - left, clientY - top];
}

function isIn({ x, y }, [left, top, width, height]) {
  return x >= left && x <= left + width && y >= top && y <= top + height;
}

/** Return the part of a map that has all points, with a margin. */
function around(points) {
  const [xs, ys] = ["x", "y"].map((side) => points.map((point) => point[side]));
  const ends = [xs, ys].map((all) => [Math.min(...all), Math.max(...all)]);
  const lengths = ends.map(([from, to]) => to - from || 1);
  const starts = ends.map(([from], i) => from - lengths[i] * MARGIN);
  return [...starts, ...lengths.map((length) => length * (1 + 2 * MARGIN))];
}
