/** The page as a whole: what is selected, read and shown, and in which pane. */

import { linkTo, questionOf, readAddress, spanOf } from "./address.js";
import { Answer, idsOf } from "./answer.js";
import { Embedded, Failure, Served } from "./data.js";
import { DocumentPane } from "./document.js";
import { byId, say, setAttribute, settled } from "./elements.js";
import { Find } from "./find.js";
import { CorpusMap } from "./map.js";
import { Outline } from "./outline.js";
import { Overview } from "./overview.js";
import { Question } from "./question.js";
import { Summary, markCurrent } from "./summary.js";

const WAIT = 50; // milliseconds that a run of keys is apart
const NARROW = matchMedia("(max-width: 55rem)");

class Explorer {
  constructor(data) {
    this.data = data;
    data.onChange = () => (byId("changed").hidden = false);
    this.state = { asked: linkTo({}), selected: null, first: null }; // asked: link to a question
    this.outline = new Outline(data, this);
    this.overview = new Overview(data, this);
    this.map = new CorpusMap(data, this);
    this.summary = new Summary(byId("summary"));
    this.answer = new Answer(byId("answer"));
    this.source = new DocumentPane(data, this);
    this.question = new Question(data, this);
    this.find = new Find(data, this);
    this.showSoon = settled(() => this.show(), WAIT);
  }

  /** Load what is seen first. */
  async start() {
    this.listen();
    if (this.data.isReport) this.fold(location.hash.length < 2);
    const [info] = await Promise.all([
      this.data.read("index", {}),
      this.outline.load(this.outline.root, { start: 0 }),
    ]);
    byId("name").textContent = info.name;
    document.title = `${info.name} · hierindex`;
    this.question.start(info.levels);
    this.map.start(info.levels);
    if (!info.documents) {
      byId("empty").textContent =
        "This index holds no documents yet; add some with hierindex update.";
      return;
    }
    this.state.first = this.outline.first;
    this.outline.move(this.state.first);
    if (this.outline.root.total === 1) await this.outline.toggle(this.state.first, true);
    await Promise.all([this.overview.load(info), this.show()]);
    byId("empty").hidden = true;
  }

  listen() {
    addEventListener("popstate", () => {
      const { document: passage } = readAddress();
      this.pane(history.state?.pane ?? (passage ? "source" : document.body.dataset.pane));
      this.show();
    });
    document.addEventListener("click", (event) => this.click(event));
    document.addEventListener("keydown", (event) => this.press(event));
    byId("reload").addEventListener("click", () => location.reload());
    NARROW.addEventListener("change", () => this.pane(document.body.dataset.pane));
    this.pane(history.state?.pane ?? "overview");
  }

  /** Links within the page, and the buttons of panes. */
  click(event) {
    const link = event.target.closest("a[href^='#']");
    if (link && !event.ctrlKey && !event.metaKey && !event.shiftKey) {
      event.preventDefault();
      const address = Object.fromEntries(new URLSearchParams(link.getAttribute("href").slice(1)));
      if (link.passage) this.follow(link.passage);
      else if (address.node) this.goTo({ ...address, read: undefined }, "reading");
      else if (address.document) this.goTo(address, "source");
      else this.open("overview");
    }
    const button = event.target.closest("#panes button, #explore");
    if (button?.dataset.pane) this.open(button.dataset.pane);
    if (this.data.isReport && (link || button)) this.fold(button?.id === "report");
  }

  /** Show the part of a report that is read, or the tree. */
  fold(isRead) {
    document.body.classList.toggle("read", isRead);
    setAttribute(byId("paper"), "role", isRead && "main"); // there are two, of which one is seen
    byId("report").hidden = false;
  }

  /** Open a pane, and what it is beside: the overview has no node, the others keep theirs. */
  open(name) {
    const { node, read, view } = readAddress();
    if (name === "overview") this.goTo({}, name);
    else if (name === "answer") this.goTo({ node, read: name }, name);
    else if ((read || view) && /outline|map/.test(name)) this.goTo({ node }, name);
    this.pane(name);
  }

  /** Show the panes of what the address names: the index, a node, the answer or a document. */
  arrange() {
    const { node, document: passage, read, view } = readAddress();
    const isAnswer = read === "answer" && this.answer.isShown;
    this.reader = isAnswer ? this.answer : this.summary;
    const beside = isAnswer ? "answer" : node || passage ? "node" : "index";
    const right = passage && view === "document" ? view : beside;
    document.body.dataset.right = right;
    const { left, pane } = document.body.dataset;
    const panes = {
      index: [left, "intro", "quotes"],
      node: [left, "reading", "source"],
      answer: ["overview", "answer", "source"],
      document: ["source"],
    };
    const isIndex = right === "index" && !/outline|map/.test(pane);
    const narrow = isIndex ? ["overview", "intro", "quotes"] : [pane];
    const shown = NARROW.matches ? narrow : panes[right];
    for (const each of document.querySelectorAll("#intro, .pane"))
      each.hidden = !shown.includes(each.id);
    const isPart = !NARROW.matches || right === "index";
    const hidden = { answer: !this.answer.isShown, reading: isPart, source: isPart };
    const current = NARROW.matches ? pane : isAnswer ? "answer" : left;
    for (const each of document.querySelectorAll("button[data-pane]")) {
      each.setAttribute("aria-pressed", String(each.dataset.pane === current));
      each.hidden = hidden[each.dataset.pane];
    }
    if (isAnswer) this.answer.arrive();
    byId("blocks-title").textContent = isAnswer ? "Where it is" : "What is in it";
    return right;
  }

  press(event) {
    const isTyping = /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName);
    if (event.ctrlKey || event.metaKey ? event.key === "k" : event.key === "/" && !isTyping) {
      event.preventDefault();
      this.find.focus();
    } else if (event.key === "?" && !isTyping) {
      byId("keys").showPopover();
    } else if (event.key === "Escape" && !document.querySelector(":popover-open")) {
      if (readAddress().view) this.widen();
    }
  }

  /** Show a pane, which wide screens show beside the others. */
  pane(name) {
    const { dataset } = document.body;
    dataset.pane = name;
    if (/overview|outline|map/.test(name)) dataset.left = name;
    this.arrange();
    if (name === "map") this.map.open();
    if (name === "source") this.source.seek();
    if (name === "outline") this.outline.seek();
  }

  /** Go to an address, with the question if it has none; on narrow screens, to a pane. */
  goTo(address, pane = document.body.dataset.pane, isRun = false) {
    const now = document.body.dataset.pane;
    if (history.state?.pane !== now) history.replaceState({ ...history.state, pane: now }, "");
    if (NARROW.matches && pane !== now) this.pane(pane);
    const link = linkTo({ ...questionOf(readAddress()), ...address });
    const state = { pane, isRun }; // of a run of moves, only the last is kept in the history
    if (link === location.hash || (isRun && history.state?.isRun))
      history.replaceState(state, "", link);
    else history.pushState(state, "", link);
    this.showSoon();
  }

  select(id, isRun) {
    this.goTo({ node: id }, NARROW.matches && !isRun ? "reading" : undefined, isRun);
  }

  /** Read the text of a node, and a passage that it stands on, by keyboard. */
  async read(id, source) {
    this.goTo({ node: id, ...(source && spanOf(source)) }, "reading");
    await this.show();
    this.summary.focus();
  }

  follow(passage) {
    const { node, read, view } = readAddress();
    const of = (!view && passage.node) || (node ?? this.state.selected);
    this.goTo({ node: of, read, view, ...spanOf(passage) }, "source");
    if (NARROW.matches) byId("passage").focus();
  }

  /** Read the document alone, or beside what it was read for. */
  widen() {
    const { node, read, view } = readAddress();
    this.goTo({ node, read, view: view ? null : "document", ...this.source.span }, "source");
  }

  /** Show what the address names. */
  async show() {
    const address = readAddress();
    this.trying(this.recall(questionOf(address)));
    const right = this.arrange();
    if (right === "index") return this.showNode(null);
    const id = address.node ?? this.state.first?.id;
    try {
      if (id && id !== this.state.selected) await this.showNode(id);
    } catch (error) {
      if (readAddress().node === address.node) {
        this.state.selected = null;
        this.summary.fail(error.message);
      }
      this.fail(error);
    }
    if (readAddress().node !== address.node) return;
    const { reader } = this;
    const passage = address.document ? address : reader.passages[0];
    const span = passage ? spanOf(passage) : null;
    markCurrent(reader.article, span);
    return this.source.show(span, reader, right === "document");
  }

  async showNode(id) {
    const node = id && (await this.data.read("node", { id }));
    if (id && id !== (readAddress().node ?? this.state.first?.id)) return;
    this.state.selected = id;
    const path = id ? [...node.path.map((above) => above.id), id] : [];
    for (const view of [this.overview, this.map]) view.select(path);
    if (!id) return;
    this.summary.show(node);
    this.notice("");
    if (this.outline.chosen !== id) this.trying(this.outline.reveal(path));
  }

  /** Ask a question that was written, and go to its answer. */
  async ask(question) {
    this.question.write(question);
    const answer = await this.trying(this.question.ask(question));
    if (!answer) return this.answer.breakOff();
    const isWritten = this.state.asked === linkTo(question);
    this.notice("");
    await this.showAnswer(question, answer);
    const node = this.answer.passages[0]?.node ?? this.state.selected;
    this.goTo({ ...question, node, read: "answer" }, "answer", isWritten);
    return say(this.answer.said);
  }

  /** Show a piece of an answer as it is written. */
  write(question, piece, isFirst) {
    this.answer.write(question.q, piece, isFirst);
    if (!isFirst) return;
    this.notice("");
    this.state.asked = linkTo(question);
    this.goTo({ ...question, read: "answer" }, "answer", true);
  }

  /** Show the last answer to the question of the address, or ask it again; or none without one. */
  async recall(question) {
    const link = linkTo(question);
    if (link === this.state.asked) return;
    this.state.asked = link;
    this.question.write(question);
    const answer = question.q ? await this.question.recall(question) : null;
    if (link !== this.state.asked) return;
    await this.showAnswer(question, answer);
    await this.show();
  }

  /** Show an answer, or none, and light up what it is from. */
  async showAnswer(question, answer) {
    this.state.asked = linkTo(question);
    this.answer.show(question.q, answer);
    const { sources, others, passages } = this.answer;
    this.map.cite(passages);
    await this.overview.light(idsOf(sources), idsOf(others), (n) => this.answer.reached(n));
  }

  /** Wait for work, and say what goes wrong. */
  trying(work) {
    return work?.catch((error) => this.fail(error));
  }

  /** Say what went wrong in one sentence. */
  fail(error) {
    if (error.name === "AbortError") return; // another question was asked
    if (!(error instanceof Failure)) throw error;
    if (byId("changed").hidden) this.notice(error.message);
  }

  notice(sentence) {
    byId("notice").textContent = sentence;
    byId("notice").hidden = !sentence;
  }
}

const held = document.getElementById("data");
const explorer = new Explorer(held ? new Embedded(JSON.parse(held.textContent)) : new Served());
explorer.start().catch((error) => {
  byId("empty").textContent = error.message;
  if (!(error instanceof Failure)) throw error;
});
