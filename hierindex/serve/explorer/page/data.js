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
const BEGINNING = 300; // characters of a node
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
 */
export class Served {
  constructor() {
    this.replies = new Map();
    this.onChange = () => {};
  }

  index() {
    return this.get("index", {}, { cache: "no-cache" });
  }

  /** Ask; the pieces of an answer that a language model writes are passed to `write`. */
  ask(question, signal, write) {
    const options = { signal, headers: { Accept: "text/event-stream" } };
    return this.get("ask", question, options, null, write);
  }

  /** Return a reply of a generation, by default the page's; replies are kept. */
  read(path, parameters, generation = null) {
    const key = JSON.stringify([path, parameters, generation]);
    if (!this.replies.has(key)) {
      if (this.replies.size >= KEPT) this.replies.clear();
      const reply = this.get(path, parameters, {}, generation);
      this.replies.set(key, reply);
      reply.catch(() => this.replies.delete(key));
    }
    return this.replies.get(key);
  }

  async get(path, parameters, options, expected = null, write = null) {
    const given = Object.entries(parameters).flatMap(([name, value]) =>
      [value].flat().map((each) => [name, each ?? ""]),
    );
    const query = new URLSearchParams(given.filter(([, value]) => value !== ""));
    let response, reply;
    try {
      response = await fetch(`api/${path}?${query}`, options);
      const isWritten = response.headers.get("Content-Type").startsWith("text/event-stream");
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
    const isOther = generation !== (expected ?? this.generation);
    if (generation && isOther && !write) throw new Changed();
    if (!response.ok || reply.error)
      throw new Failure(reply.error ?? `The explorer failed (${response.status}).`);
    return write ? { ...reply, generation } : reply;
  }
}

/** Read events: pass the pieces of a text to `write`, and return the answer, or its `error`. */
async function written(body, write) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let read = "";
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    const events = (read + part.value).split("\n\n");
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
 *     that it is a part below, or null; `nodes`, a list of them depth-first in reading order, each
 *     with `id`, `parent` (null for the first ones), `title`, `level`, `document`, `documents`,
 *     `chunks`, `text`, `quotes` and `marks`, these empty if there was no room; `titles` of
 *     documents by their ids; `overview`, as the server returns it; and `left_out`, a sentence on
 *     what had no room, or null.
 */
export class Embedded {
  constructor(data) {
    Object.assign(this, { data, isReport: true });
    this.byId = new Map(data.nodes.map((node) => [node.id, node]));
    this.below = Map.groupBy(data.nodes, ({ parent }) => parent);
    const chunks = data.nodes.filter(
      (node) => !node.level && node.text && node.quotes[0]?.verbatim,
    );
    chunks.sort((a, b) => startOf(a) - startOf(b));
    this.chunks = Map.groupBy(chunks, ({ quotes: [first] }) => first.document);
  }

  async index() {
    return { ...this.data.index, left_out: this.data.left_out };
  }

  async ask() {
    throw new Failure("A report answers no questions; hierindex explore does.");
  }

  async read(path, parameters) {
    return this[path](parameters);
  }

  overview() {
    return this.data.overview;
  }

  nodes({ of, start = 0, around, n }) {
    const all = this.children(of);
    const place = all.indexOf(this.byId.get(around));
    const first = around ? place - (place % n) : start;
    const nodes = all.slice(first, first + n).map((node) => ({
      ...node,
      text: plain(node, 0, Math.min(BEGINNING, pointsIn(node.text))),
      children: this.children(node.id).length,
    }));
    return { nodes, start: first, total: all.length };
  }

  node({ id }) {
    const node = this.byId.get(id);
    if (!node) throw new Failure("This report does not hold the node of this link.");
    const path = [];
    for (let above = this.byId.get(node.parent); above; above = this.byId.get(above.parent))
      path.unshift(above);
    const beside = this.children(node.parent);
    const at = beside.indexOf(node);
    return { ...node, path, before: beside[at - 1], after: beside[at + 1] };
  }

  children(id) {
    return this.below.get(id) ?? [];
  }

  document({ document, at, part = 0 }) {
    const runs = this.runs(document);
    const isHeld = ({ start, end }) => at === undefined || (start <= at && at < end);
    if (!runs.some(isHeld))
      throw new Failure("This report does not hold the text of this passage.");
    const paragraphs = runs.flatMap(paragraphsOf);
    const partOf = ({ start }) => Math.floor(start / PART);
    const number =
      at === undefined ? part : partOf(paragraphs.findLast(({ start }) => start <= at));
    const places = this.chunks.get(document).flatMap(({ quotes }) => quotes);
    return {
      document,
      title: this.titleOf(document),
      part: number,
      length: runs.at(-1).end,
      parts: 1 + partOf(paragraphs.at(-1)),
      place: places.findLast(({ start }) => start <= at) ?? {},
      paragraphs: paragraphs.filter((each) => partOf(each) === number),
      marks: runs.flatMap(({ marks }) => marks),
    };
  }

  titleOf(document) {
    return this.data.titles[document] ?? document;
  }

  /** Return what is held of a document's text, as runs between which some is missing. */
  runs(document) {
    const runs = [];
    for (const chunk of this.chunks.get(document) ?? []) {
      const { text, marks } = chunk;
      const start = startOf(chunk);
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

  notes({ document }) {
    const notes = new Map();
    for (const node of this.data.nodes) {
      const here = node.quotes.filter((quote) => quote.document === document);
      for (let above = here.length ? node : null; above; above = this.byId.get(above.parent)) {
        if (!above.level) continue;
        const { id } = above;
        const note = notes.get(id) ?? { ...above, start: Infinity, end: 0, quotes: [] };
        note.start = Math.min(note.start, ...here.map(({ start }) => start));
        note.end = Math.max(note.end, ...here.map(({ end }) => end));
        const said = ({ at, to }) => plain(node, at, to);
        if (above === node) note.quotes = here.map((quote) => ({ ...quote, text: said(quote) }));
        notes.set(id, note);
      }
    }
    return { notes: [...notes.values()].sort((a, b) => a.start - b.start || b.level - a.level) };
  }

  search({ q, n }) {
    const words = q.toLowerCase().split(/\s+/).filter(Boolean);
    const has = (text) => words.every((word) => text.toLowerCase().includes(word));
    const titled = this.data.nodes.filter(({ title }) => has(title));
    titled.sort((a, b) => b.level - a.level);
    const isText = ({ level, title, text }) => !level && has(`${title} ${text}`);
    const found = [...new Set([...titled, ...this.data.nodes.filter(isText)])];
    const nodes = found.slice(0, n).map((node) => this.foundOf(node, words));
    return { nodes, total: found.length, words };
  }

  /** Return a node with the sentence of its text that has most of the words. */
  foundOf(node, words) {
    const { document } = (node.documents === 1 && node.quotes[0]) || {};
    const rank = ({ text }) => words.filter((word) => text.toLowerCase().includes(word)).length;
    const said = sentencesOf(node).map((each) => ({
      ...each,
      text: plain(node, each.at, each.to),
    }));
    const [{ text, passage }] = [...said.sort((a, b) => rank(b) - rank(a)), { text: "" }];
    return { ...node, of: document && this.titleOf(document), text, source: passage };
  }
}

/** Return the place in its document at which a chunk begins. */
function startOf({ quotes: [first] }) {
  return first.start - first.at;
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
function sentencesOf(node) {
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
