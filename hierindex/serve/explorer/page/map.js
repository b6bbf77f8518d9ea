/** The map: chunks in two dimensions, near ones alike, named and coloured by parents at a level. */

import { nodeLink } from "./address.js";
import { byId, byIds, element, settled } from "./elements.js";
import { counted, plain, shown } from "./text.js";

const SVG = "http://www.w3.org/2000/svg";
const MOST = 2000; // points
const COLOURS = 8; // of the largest parents
const APART = 8; // pixels between names
const REACH = 14; // pixels from the pointer to a point
const DRAGGED = 4; // pixels that the pointer moves more in a drag than in a click
const WAIT = 60; // milliseconds until the text of a point is asked for
const MARGIN = 0.05; // share of the map on each side of the points
const CLOSEST = 24; // times the whole map

/**
 * A plane that is as large as the map or larger, and is moved by scrolling. A place on it has `x`
 * and `y`, as shares from the left and top. `actions` are `select(id)` and `fail(error)`.
 */
export class CorpusMap {
  constructor(data, actions) {
    const ids = { map: "points", plane: "plane", dots: "dots", marks: "map-marks", tip: "map-tip" };
    Object.assign(this, byIds({ ...ids, caption: "map-caption", levels: "map-level" }));
    Object.assign(this, { data, actions, points: [], names: [], chosen: null, cited: [] });
    Object.assign(this, { hovered: null, pressed: null, isDragged: false, scale: 1 });
    this.ring = markOf("ring", { x: -1, y: -1 });
    this.describeSoon = settled((point) => actions.trying(this.describe(point)), WAIT);
    const { map } = this;
    this.levels.addEventListener("change", () => this.load());
    byId("map-zoom").addEventListener("click", ({ target }) => this.zoom(Number(target.value)));
    const wheel = (event) => {
      event.preventDefault();
      this.zoom(Math.exp(-event.deltaY / 300), event);
    };
    map.addEventListener("wheel", wheel, { passive: false });
    map.addEventListener("pointerdown", ({ clientX, clientY }) =>
      Object.assign(this, { pressed: [clientX, clientY], isDragged: false }),
    );
    map.addEventListener("pointermove", (event) => this.point(event));
    map.addEventListener("pointerleave", () => this.hover(null));
    map.addEventListener("click", (event) => this.click(event), true);
    map.addEventListener("dblclick", () => this.zoom(0));
    new ResizeObserver(() => this.arrange()).observe(map);
  }

  /** Offer the levels that colours may stand for. */
  start(levels) {
    const above = levels.filter(({ level, nodes }) => level > 0 && nodes > 1).reverse();
    for (const { level, nodes } of above) {
      const label = `level ${level} (${counted(nodes, "node")})`;
      this.levels.append(element("option", { value: level }, label));
    }
    const first = above.find(({ nodes }) => nodes >= COLOURS) ?? above.at(-1);
    this.levels.value = String(first?.level ?? "");
    this.levels.disabled = !above.length;
  }

  /** Load the points when the map is seen for the first time. */
  open() {
    if (!this.points.length) this.load();
  }

  async load() {
    const level = this.levels.value;
    this.caption.textContent = "Placing the chunks by their meaning …";
    try {
      const found = await this.data.read("map", { level: level || 0, n: MOST });
      if (level === this.levels.value) this.show(found); // or else another is being loaded
    } catch (error) {
      if (level === this.levels.value) this.caption.textContent = "The map cannot be shown.";
      this.actions.fail(error);
    }
  }

  show({ points, parents, chunks }) {
    const place = placing(points);
    this.points = points.map(place);
    const [n, all] = [points.length.toLocaleString("en"), counted(chunks, "chunk")];
    const sample = points.length < chunks ? `${n} of ${all}` : all;
    this.caption.textContent = `${sample}; near ones are similar`;
    const colours = [...Array(COLOURS).keys(), null].reverse(); // the largest on top
    this.dots.replaceChildren(...colours.map((colour) => this.dotsOf(colour)));
    this.names = parents.map((each, i) => nameOf(place(each), i));
    this.mark();
  }

  /** Return the points of a colour as one path. */
  dotsOf(colour) {
    const path = document.createElementNS(SVG, "path");
    const has = ({ parent }) => (parent < COLOURS ? parent : null) === colour;
    const moves = this.points.filter(has).map(({ x, y }) => `M${x} ${y}h0`);
    path.setAttribute("d", moves.join(""));
    path.setAttribute("vector-effect", "non-scaling-stroke");
    if (colour !== null) path.style.stroke = `var(--map-${colour + 1})`;
    return path;
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
    const numbers = ({ id }) =>
      this.cited.flatMap(({ node }, i) => (node === id ? [i + 1] : [])).join(", ");
    this.marks.replaceChildren(
      this.ring,
      ...this.points.filter(({ id }) => id === this.chosen).map((point) => markOf("ring", point)),
      ...this.points.filter(numbers).map((point) => markOf("number", point, numbers(point))),
      ...this.names,
    );
    this.arrange();
  }

  /** Move numbers and names beside those before them, and hide names that have no room. */
  arrange() {
    const { clientWidth: width, clientHeight: height } = this.plane;
    const marks = width ? [...this.marks.querySelectorAll(".number, .name")] : [];
    for (const mark of marks) mark.half ??= [mark.offsetWidth / 2, mark.offsetHeight / 2];
    const taken = [];
    for (const mark of marks) {
      const [w, h] = mark.half;
      const [x, y] = [within(mark.place.x * width, w, width - w), mark.place.y * height];
      const boxes = [0, -1, 1].map((i) => ({ x, y: y + i * (2 * h + APART), w, h }));
      const box = boxes.find((each) => !taken.some((other) => meet(each, other)));
      mark.hidden = !box && mark.matches(".name");
      if (mark.hidden) continue;
      taken.push(box ?? boxes[0]);
      put(mark, { x: x / width, y: (box ?? boxes[0]).y / height });
    }
  }

  /** Return how far a place is from the left and top of the plane, in pixels. */
  pixels({ x, y }) {
    return [x * this.plane.clientWidth, y * this.plane.clientHeight];
  }

  /** Return the point that is nearest to the pointer, if one is within reach. */
  nearest({ clientX, clientY }) {
    const { left, top } = this.plane.getBoundingClientRect();
    const away = (point) => {
      const [x, y] = this.pixels(point);
      return Math.hypot(left + x - clientX, top + y - clientY);
    };
    const distances = this.points.map(away);
    const least = Math.min(...distances);
    return least < REACH ? this.points[distances.indexOf(least)] : null;
  }

  /** Show more or less of the map, with what is at a place of the window, by default the middle. */
  zoom(factor, at = null) {
    const { map, plane } = this;
    const pane = map.getBoundingClientRect();
    const { clientX: x, clientY: y } = at ?? {
      clientX: pane.left + pane.width / 2,
      clientY: pane.top + pane.height / 2,
    };
    const before = plane.getBoundingClientRect();
    const [right, down] = [(x - before.left) / before.width, (y - before.top) / before.height];
    this.scale = within(this.scale * factor, 1, CLOSEST);
    plane.style.width = plane.style.height = `${100 * this.scale}%`;
    const after = plane.getBoundingClientRect();
    map.scrollBy(after.left + right * after.width - x, after.top + down * after.height - y);
    this.hover(null);
    this.arrange();
  }

  /** Move the map with the pointer, or show which point it is at. */
  point(event) {
    if (!event.buttons || !this.pressed) return this.hover(this.nearest(event));
    const [dx, dy] = [this.pressed[0] - event.clientX, this.pressed[1] - event.clientY];
    this.isDragged ||= Math.hypot(dx, dy) >= DRAGGED;
    if (!this.isDragged || event.pointerType === "touch") return undefined; // which scrolls
    this.pressed = [event.clientX, event.clientY];
    return this.map.scrollBy(dx, dy);
  }

  click(event) {
    const point = this.nearest(event);
    if (this.isDragged) {
      event.preventDefault();
      event.stopPropagation();
    } else if (point && !event.target.closest("a")) this.actions.select(point.id);
  }

  hover(point) {
    if (point === this.hovered) return;
    this.hovered = point;
    this.tip.hidden = true;
    this.ring.hidden = !point;
    if (!point) return;
    put(this.ring, point);
    this.describeSoon(point);
  }

  /** Show the title and the beginning of a chunk beside its point. */
  async describe(point) {
    const node = await this.data.read("node", { id: point.id });
    if (this.hovered !== point) return;
    const { map, tip } = this;
    tip.replaceChildren(element("b", {}, shown(node.title)), element("p", {}, shown(plain(node))));
    tip.hidden = false;
    const [x, y] = this.pixels(point);
    const isLow = y - map.scrollTop > map.clientHeight / 2;
    const left = within(x, map.scrollLeft, map.scrollLeft + map.clientWidth - tip.offsetWidth);
    tip.style.left = `${left}px`;
    tip.style.top = `${isLow ? y - tip.offsetHeight - REACH : y + REACH}px`;
  }
}

function within(value, least, most) {
  return Math.max(least, Math.min(value, most));
}

/** Return a function that gives what is on the map of some points its place. */
function placing(points) {
  const [xs, ys] = ["x", "y"].map((side) => points.map((point) => point[side]));
  const [share, downward] = [xs, ys].map((all) => {
    const [from, to] = [Math.min(...all), Math.max(...all)];
    return (value) => MARGIN + ((value - from) / (to - from || 1)) * (1 - 2 * MARGIN);
  });
  return (each) => ({ ...each, x: share(each.x), y: 1 - downward(each.y) });
}

function markOf(name, place, text = "") {
  return put(element("span", { class: name }, text), place);
}

function nameOf(place, i) {
  const name = nodeLink(place, { class: "name", title: place.title, draggable: "false" });
  if (i < COLOURS) name.style.borderColor = `var(--map-${i + 1})`;
  return Object.assign(name, { place });
}

function put(mark, { x, y }) {
  Object.assign(mark.style, { left: `${100 * x}%`, top: `${100 * y}%` });
  return Object.assign(mark, { place: mark.place ?? { x, y } });
}

function meet(a, b) {
  return Math.abs(a.x - b.x) < a.w + b.w + APART && Math.abs(a.y - b.y) < a.h + b.h + APART;
}
