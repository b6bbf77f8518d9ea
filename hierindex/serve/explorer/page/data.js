/**
 * What the page asks of an index: from the explorer's server, or from a report's own file.
 *
 * `Served` and `Embedded` have the same methods, which return what the server's JSON holds. All
 * raise `Failure` with a sentence for the user.
 */

import { plain, pointsIn, quoted, units, wholeOf } from "./text.js";

const KEPT = 2000; // replies
const BETWEEN = 2; // characters between chunks, as line ends are; more are a text left out
const PART = 20000; // characters of a document
const PARAGRAPH = /.{1,4000}?(?:\n(?:[^\S\n]*\n)+|$)|.{1,4000}\n|.{1,4000}/gsu;
const SENTENCES = new Intl.Segmenter("en", { granularity: "sentence" });

/** An error that is said in one sentence; `isGone` if the server does not answer at all. */
export class Failure extends Error {
  constructor(sentence, isGone = false) {
    super(sentence);
    this.isGone = isGone;
  }
}

/** What is asked for is of another generation than the page. */
export class Changed extends Failure {
  constructor() {
    super("The index has changed; reload the page to see it.");
  }
}

/**
 * The server's JSON, of one generation: that of the first reply.
 *
 * When a reply is of another, `onChange` is called; answers to questions are returned all the
 * same, with their `generation`, as are the sources of that, and for all else `Changed` is raised.
 * Replies are kept, apart from answers.
 */
export class Served {
  constructor() {
    this.replies = new Map();
    this.onChange = () => {};
  }

  index() {
    return this.reply("index", {}, { cache: "no-cache" });
  }

  nodes(of, { start, around }, n) {
    return this.kept("nodes", { of, start, around, n });
  }

  node(id) {
    return this.kept("node", { id });
  }

  document(document, { at, part }, generation) {
    return this.kept("document", { document, at, part }, generation);
  }

  notes(document, generation) {
    return this.kept("notes", { document }, generation);
  }

  overview() {
    return this.kept("overview", {});
  }

  search(q, n) {
    return this.kept("search", { q, n });
  }

  map(level, n) {
    return this.kept("map", { level, n });
  }

  /** Ask; the pieces of an answer that a language model writes are passed to `write`. */
  async ask(question, signal, write) {
    const options = { signal, headers: { Accept: "text/event-stream" } };
    const { reply, generation } = await this.get("ask", question, options, undefined, write);
    return { ...reply, generation };
  }

  kept(path, parameters, generation = null) {
    const key = JSON.stringify([path, parameters, generation]);
    if (!this.replies.has(key)) {
      if (this.replies.size >= KEPT) this.replies.clear();
      const reply = this.reply(path, parameters, {}, generation);
      this.replies.set(key, reply);
      reply.catch(() => this.replies.delete(key));
    }
    return this.replies.get(key);
  }

  /** Return a reply of a generation, by default the page's. */
  async reply(path, parameters, options = {}, expected = null) {
    const isOf = (generation) => generation === (expected ?? this.generation);
    const { reply } = await this.get(path, parameters, options, isOf);
    return reply;
  }

  /** Return a reply of a generation that passes, and which one it is of. */
  async get(path, parameters, options, passes = () => true, write = null) {
    const query = new URLSearchParams();
    for (const [name, value] of Object.entries(parameters)) {
      for (const each of [value].flat()) {
        if (each !== null && each !== undefined && each !== "") query.append(name, each);
      }
    }
    let response, reply;
    try {
      response = await fetch(`api/${path}?${query}`, options);
      const isWritten = write && response.headers.get("Content-Type").startsWith("text/event-stream");
      reply = isWritten ? await written(response.body, write) : await response.json();
    } catch (error) {
      if (error.name === "AbortError") throw error;
      throw new Failure(
        "The explorer does not answer; start it again with hierindex explore.",
        true,
      );
    }
    const generation = response.headers.get("Hierindex-Generation");
    this.generation ??= generation;
    if (generation && generation !== this.generation) this.onChange();
    if (generation && !passes(generation)) throw new Changed();
    if (!response.ok || reply.error) throw new Failure(reply.error ?? `The explorer failed (${response.status}).`);
    return { reply, generation };
  }
}

/** Read events: pass the pieces of a text to `write`, and return the answer, or its `error`. */
async function written(body, write) {
  let read = "";
  for await (const piece of body.pipeThrough(new TextDecoderStream())) {
    const events = (read + piece).split("\n\n");
    read = events.pop();
    for (const event of events) {
      const [, name, data] = event.match(/^event: (\w+)\ndata: (.*)$/s);
      if (name !== "text") return JSON.parse(data);
      write(JSON.parse(data).text);
    }
  }
  throw new Error("The answer ended early.");
}

/**
 * The data of a report.
 *
 * @param {object} data `index`, as the server returns it, and its `time`; `of`, the id of the node
 *     that it is a part below, or null; `nodes`, a list of them depth-first in reading order, each with `id`, `parent` (null for the first ones), `title`, `level`,
 *     `document`, `documents`, `chunks`, `text`, `quotes` and `marks`, these empty if there was no room;
 *     `titles` of documents by their ids; `overview`, as the server returns it; and `left_out`, a sentence on what had no room, or null.
 */
export class Embedded {
  constructor(data) {
    Object.assign(this, { data, isReport: true });
    this.byId = new Map(data.nodes.map((node) => [node.id, node]));
    this.below = new Map();
    for (const node of data.nodes) {
      const parent = this.byId.has(node.parent) ? node.parent : null;
      if (!this.below.has(parent)) this.below.set(parent, []);
      this.below.get(parent).push(node);
    }
    this.chunks = new Map(); // by document, in the order of its text
    for (const node of data.nodes) {
      const [first] = node.level ? [] : node.quotes;
      if (!first?.verbatim || !node.text) continue;
      if (!this.chunks.has(first.document)) this.chunks.set(first.document, []);
      const { text, marks, quotes: places } = node;
      this.chunks.get(first.document).push({ start: first.start - first.at, places, text, marks });
    }
    for (const chunks of this.chunks.values()) chunks.sort((a, b) => a.start - b.start);
  }

  async index() {
    return { ...this.data.index, left_out: this.data.left_out };
  }

  async overview() {
    return this.data.overview;
  }

  async nodes(of, { start = 0, around = null }, n) {
    const all = this.children(of);
    const place = all.indexOf(this.byId.get(around));
    const first = around === null ? start : place - (place % n);
    const nodes = all.slice(first, first + n).map((node) => this.brief(node));
    return { of, nodes, start: first, total: all.length };
  }

  async node(id) {
    const node = this.byId.get(id);
    if (!node) throw new Failure("This report does not hold the node of this link.");
    const path = this.path(node);
    const beside = this.children(path.at(-1)?.id ?? null);
    const at = beside.indexOf(node);
    const near = (other) => (other ? this.brief(other) : null);
    return { ...node, path, before: near(beside[at - 1]), after: near(beside[at + 1]) };
  }

  async document(document, { at, part = 0 }) {
    const runs = this.runs(document);
    const isHeld = ({ start, end }) => at === undefined || (start <= at && at < end);
    if (!runs.some(isHeld))
      throw new Failure("This report does not hold the text of this passage.");
    const paragraphs = runs.flatMap(paragraphsOf);
    const partOf = ({ start }) => Math.floor(start / PART);
    const number = at === undefined ? part : partOf(paragraphs.findLast(({ start }) => start <= at));
    const places = this.chunks.get(document).flatMap((chunk) => chunk.places);
    return {
      ...{ document, title: this.data.titles?.[document] ?? document, part: number },
      ...{ length: runs.at(-1).end, parts: 1 + partOf(paragraphs.at(-1)) },
      place: places.findLast(({ start }) => start <= at) ?? {},
      paragraphs: paragraphs.filter((each) => partOf(each) === number),
      marks: runs.flatMap(({ marks }) => marks),
    };
  }

  /** Return what is held of a document's text, as runs between which some is missing. */
  runs(document) {
    const runs = [];
    for (const { start, text, marks } of this.chunks.get(document) ?? []) {
      if (!runs.length || start > runs.at(-1).end + BETWEEN)
        runs.push({ start, end: start, text: "", marks: [] });
      const run = runs.at(-1);
      const placed = marks.map(([from, to, ...how]) => [start + from, start + to, ...how]);
      run.marks.push(...placed.filter((mark) => mark[0] >= run.end));
      run.text += "\n".repeat(Math.max(0, start - run.end));
      run.text += text.slice(units(text)(Math.max(0, run.end - start)));
      run.end = Math.max(run.end, start + pointsIn(text));
    }
    return runs;
  }

  async notes(document) {
    const notes = new Map();
    for (const node of this.data.nodes) {
      const here = node.quotes.filter((quote) => quote.document === document);
      for (let above = here.length ? node : null; above; above = this.byId.get(above.parent)) {
        if (!above.level) continue;
        const { id, title, level } = above;
        const note = notes.get(id) ?? { id, title, level, start: Infinity, end: 0, quotes: [] };
        note.start = Math.min(note.start, ...here.map(({ start }) => start));
        note.end = Math.max(note.end, ...here.map(({ end }) => end));
        const said = ({ at, to }) => plain(node, at, to);
        if (above === node) note.quotes = here.map((quote) => ({ ...quote, text: said(quote) }));
        notes.set(id, note);
      }
    }
    return { notes: [...notes.values()].sort((a, b) => a.start - b.start || b.level - a.level) };
  }

  async search(q, n) {
    const words = q.toLowerCase().split(/\s+/).filter(Boolean);
    const has = (text) => words.every((word) => text.toLowerCase().includes(word));
    const titled = this.data.nodes.filter(({ title }) => has(title));
    titled.sort((a, b) => b.level - a.level);
    const isTitled = new Set(titled);
    const chunks = this.data.nodes.filter((node) => !node.level && !isTitled.has(node));
    const found = [...titled, ...chunks.filter(({ title, text }) => has(`${title} ${text}`))];
    const nodes = found.slice(0, n).map((node) => this.foundOf(node, words));
    return { nodes, total: found.length, words };
  }

  foundOf(node, words) {
    const { id, title, level, documents } = node;
    const document = documents === 1 ? node.quotes[0]?.document : null;
    const of = this.data.titles?.[document] ?? document ?? null;
    const said = piecesOf(node).map(({ at, to, passage }) => ({ text: plain(node, at, to), passage }));
    const rank = ({ text }) => words.filter((word) => text.toLowerCase().includes(word)).length;
    const [best] = said.sort((a, b) => rank(b) - rank(a));
    return { id, title, level, of, text: best?.text ?? "", source: best?.passage ?? null };
  }

  async ask() {
    throw new Failure("A report answers no questions; hierindex explore does.");
  }

  children(id) {
    return this.below.get(id) ?? [];
  }

  brief(node) {
    const { quotes, parent, text, marks, ...rest } = node;
    return { ...rest, text: plain(node, 0, Math.min(300, pointsIn(text))), children: this.children(node.id).length };
  }

  path(node) {
    const above = this.byId.get(node.parent);
    return above
      ? [...this.path(above), { id: above.id, title: above.title, level: above.level }]
      : [];
  }
}

/** Divide a text into paragraphs, as the server does. */
function paragraphsOf({ start, text }) {
  let reached = start;
  return [...text.matchAll(PARAGRAPH)].map(([paragraph]) => {
    const made = { start: reached, text: paragraph };
    reached += pointsIn(paragraph);
    return made;
  });
}

/** Divide the text of a node into its quotes, that of a chunk into sentences. */
function piecesOf(node) {
  const whole = wholeOf(node);
  if (!whole) return quoted(node);
  let to = 0;
  return Array.from(SENTENCES.segment(node.text), ({ segment }) => {
    const at = to;
    to += pointsIn(segment);
    const [start, end] = [whole.start + at, whole.start + at + pointsIn(segment.trimEnd())];
    return { at, to, passage: { ...whole, start, end } };
  });
}
