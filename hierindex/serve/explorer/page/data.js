/**
 * What the page asks of an index: from the explorer's server, or from a report's own file.
 *
 * `Served` and `Embedded` have the same methods, which return what the server's JSON holds. All
 * raise `Failure` with a sentence for the user.
 */

import { plain, pointsIn, units, wholeOf } from "./text.js";

const KEPT = 2000; // replies
const BETWEEN = 2; // characters between chunks, as line ends are; more are a text left out
const BEGINNING = 300; // characters of a node

/** An error that is said in one sentence. */
export class Failure extends Error {}

/**
 * The server's JSON, of one generation: that of the first reply. When a reply is of another,
 * `onChange` is called and `Failure` raised.
 */
export class Served {
  constructor() {
    this.replies = new Map();
    this.onChange = () => {};
  }

  /** Ask; the pieces of an answer that a language model writes are passed to `write`. */
  ask(question, signal, write) {
    const options = { signal, headers: { Accept: "text/event-stream" } };
    return this.get("ask", question, options, write);
  }

  /** Return a reply; replies are kept. */
  read(path, parameters) {
    const key = JSON.stringify([path, parameters]);
    if (!this.replies.has(key)) {
      if (this.replies.size >= KEPT) this.replies.clear();
      const reply = this.get(path, parameters);
      this.replies.set(key, reply);
      reply.catch(() => this.replies.delete(key));
    }
    return this.replies.get(key);
  }

  async get(path, parameters = {}, options = {}, write = null) {
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
      throw new Failure("The explorer does not answer; start it again with hierindex explore.");
    }
    const generation = response.headers.get("Hierindex-Generation");
    this.generation ??= generation;
    if (generation && generation !== this.generation) {
      this.onChange();
      throw new Failure("The index has changed; reload the page to see it.");
    }
    if (!response.ok || reply.error)
      throw new Failure(reply.error ?? `The explorer failed (${response.status}).`);
    return reply;
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
 * @param {object} data `index`, as the server returns it, and its `time`; `nodes`, a list of them
 *     depth-first in reading order, each with `id`, `parent` (null for the first ones), `title`,
 *     `level`, `document`, `documents`, `chunks`, `text`, `quotes` and `marks`, these empty if there
 *     was no room; `titles` of documents by their ids; `overview`, as the server returns it; and
 *     `left_out`, a sentence on what had no room, or null.
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
    return { ...node, path };
  }

  children(id) {
    return this.below.get(id) ?? [];
  }

  /** Return what is held of a document's text, a paragraph for each chunk. */
  document({ document, at }) {
    const paragraphs = [];
    const marks = [];
    let end = 0;
    for (const chunk of this.chunks.get(document) ?? []) {
      const start = startOf(chunk);
      const from = Math.max(start, end); // chunks may share text
      const between = start > end && start - end <= BETWEEN ? "\n".repeat(start - end) : "";
      if (paragraphs.length) paragraphs.at(-1).text += between;
      paragraphs.push({ start: from, text: chunk.text.slice(units(chunk.text)(from - start)) });
      const placed = chunk.marks.map(([a, b, ...how]) => [start + a, start + b, ...how]);
      marks.push(...placed.filter((mark) => mark[0] >= from));
      end = Math.max(end, start + pointsIn(chunk.text));
    }
    const isHeld = ({ start, text }) => start <= at && at < start + pointsIn(text);
    if (at !== undefined && !paragraphs.some(isHeld))
      throw new Failure("This report does not hold the text of this passage.");
    const places = this.chunks.get(document).flatMap(({ quotes }) => quotes);
    const place = places.findLast(({ start }) => start <= at) ?? {};
    const title = this.titleOf(document);
    return { document, title, length: end, parts: 1, part: 0, place, paragraphs, marks };
  }

  titleOf(document) {
    return this.data.titles[document] ?? document;
  }

  search({ q, n }) {
    const words = q.toLowerCase().split(/\s+/).filter(Boolean);
    const has = (text) => words.every((word) => text.toLowerCase().includes(word));
    const titled = this.data.nodes.filter(({ title }) => has(title));
    titled.sort((a, b) => b.level - a.level);
    const isText = ({ level, title, text }) => !level && has(`${title} ${text}`);
    const found = [...new Set([...titled, ...this.data.nodes.filter(isText)])];
    const nodes = found.slice(0, n).map((node) => {
      const { document } = (node.documents === 1 && node.quotes[0]) || {};
      const of = document && this.titleOf(document);
      return { ...node, of, text: plain(node), source: wholeOf(node) };
    });
    return { nodes, total: found.length, words };
  }
}

/** Return the place in its document at which a chunk begins. */
function startOf({ quotes: [first] }) {
  return first.start - first.at;
}
