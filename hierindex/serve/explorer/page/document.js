/**
 * The document pane: the text that sentences stand on, with their marks; alone, it is read with the
 * summaries of its text beside it.
 *
 * A part of the text is loaded when it is nearly seen.
 */

import { isSameSpan, nodeLink, passageLink } from "./address.js";
import { byId, element } from "./elements.js";
import { counted, cut, displayed, fileOf, placeOf, pointsIn, shown } from "./text.js";

/** `actions` are `widen()` and `fail(error)`. */
export class DocumentPane {
  constructor(data, actions) {
    const names = "heading place levels summaries said file wide stored passage edge";
    for (const name of names.split(" ")) this[name] = byId(name);
    Object.assign(this, { data, actions, span: null, reader: null, notes: [] });
    this.forget();
    this.summaries.addEventListener("input", () => this.dress());
    this.stored.addEventListener("click", () => {
      const isStored = document.body.classList.toggle("as-stored");
      this.stored.setAttribute("aria-pressed", String(isStored));
    });
    this.wide.addEventListener("click", () => actions.widen());
    this.near = new IntersectionObserver(
      (seen) => {
        for (const { isIntersecting, target } of seen)
          if (isIntersecting) this.fill(this.parts.indexOf(target));
      },
      { root: this.passage, rootMargin: "100%" },
    );
  }

  /**
   * Show a passage in its document, or a hint without one.
   *
   * @param {object|null} span
   * @param {{passages: object[]}} reader what is read, with the passages to mark
   * @param {boolean} isAlone whether the document is read with summaries beside it
   */
  async show(span, reader, isAlone) {
    const isNew = this.isAlone !== isAlone || !this.span || !span || !isSameSpan(this.span, span);
    Object.assign(this, { span, reader, isAlone });
    if (!span) return this.say("No sentence of this text leads to a source.");
    const { document, start } = span;
    try {
      const [found, { notes }] = await Promise.all([
        this.data.read("document", { document, at: start }),
        isAlone ? this.data.read("notes", { document }) : { notes: [] },
      ]);
      if (this.span !== span) return undefined;
      const isOther = this.document !== document;
      if (isOther) this.lay(found);
      this.notes = notes;
      const { part } = found;
      await Promise.all([this.fill(part, found), this.fill(part - 1), this.fill(part + 1)]);
      if (this.span !== span) return undefined;
      this.title(found);
      this.dress();
      if (isNew || isOther) this.seek();
    } catch (error) {
      if (this.span !== span) return undefined;
      this.say(error.message);
      this.actions.fail(error);
    }
    return undefined;
  }

  forget() {
    Object.assign(this, { document: null, parts: [], paragraphs: [] });
  }

  say(sentence) {
    this.forget();
    this.title(null);
    this.edge.replaceChildren();
    this.passage.replaceChildren(element("p", { class: "hint" }, sentence));
  }

  /** Make room for all parts of a document. */
  lay({ document, length, parts }) {
    this.near.disconnect();
    this.parts = Array.from({ length: parts }, () => element("div", { class: "part" }));
    Object.assign(this, { document, length, paragraphs: [] });
    this.passage.replaceChildren(element("div", { class: "document" }, ...this.parts));
    for (const part of this.parts) this.near.observe(part);
  }

  /** Load a part of the document, and show its text. */
  async fill(n, given = null) {
    const part = this.parts[n];
    if (!part || part.isFilled) return;
    part.isFilled = true;
    this.near.unobserve(part);
    try {
      const { document } = this;
      const found = given ?? (await this.data.read("document", { document, part: n }));
      const made = found.paragraphs.map(({ start, text }) => {
        const end = start + pointsIn(text);
        const marks = found.marks.filter((mark) => mark[0] < end && start < mark[1]);
        return { start, text, end, marks, block: element("div") };
      });
      const isAfterGap = ({ start }, i) => i && start > made[i - 1].end;
      const gap = (each, i) => (isAfterGap(each, i) ? element("p", {}, "[…]") : "");
      part.replaceChildren(...made.flatMap((each, i) => [gap(each, i), each.block]));
      if (part.isConnected) this.paragraphs.push(...made);
      this.dress(made);
    } catch (error) {
      part.isFilled = false;
      this.actions.fail(error);
    }
  }

  /** Mark what is quoted in paragraphs, and put beside them the notes of the chosen level. */
  dress(paragraphs = this.paragraphs) {
    const level = this.isAlone ? Number(this.summaries.value) : -1;
    const notes = this.notes.filter((note) => note.level === level);
    const links = this.isAlone
      ? this.notes.flatMap(({ id: node, level: of, quotes }) =>
          quotes.map((quote) => ({ ...quote, node, isMarked: of === level })),
        )
      : this.reader.passages
          .filter((passage) => passage.document === this.document)
          .map((passage) => ({ ...passage, isMarked: true }));
    const isFocused = this.passage.contains(document.activeElement);
    for (const paragraph of paragraphs) {
      const inside = links.filter((link) => meets(link, paragraph));
      const isCited = meets(this.span, paragraph);
      const beside = [
        ...notes.flatMap((note) => noteOf(note, paragraph)),
        this.isAlone && isCited && this.span.start >= paragraph.start && this.uses(),
      ].filter(Boolean);
      const isPlain = !inside.length && !isCited && !beside.length;
      if (isPlain && paragraph.isPlain) continue;
      paragraph.isPlain = isPlain;
      const text = element("p", { dir: "auto" }, ...piecesOf(paragraph, inside, this.span));
      const margin = beside.length ? element("div", { class: "notes" }, beside) : "";
      paragraph.block.replaceChildren(margin, text);
    }
    if (isFocused && !this.passage.contains(document.activeElement))
      (this.passage.querySelector(".cited a") ?? this.passage).focus({ preventScroll: true });
    const n = notes.length ? counted(notes.length, "note") : "none";
    this.said.textContent = level ? `level ${level}, ${n}` : "the text only";
    if (paragraphs === this.paragraphs) this.mark(links.filter((link) => link.isMarked));
  }

  /** Show at the edge where in the document marks are. */
  mark(marked) {
    const all = [...new Map(marked.map((each) => [`${each.start} ${each.end}`, each])).values()];
    const marks = all.map((passage, i) => {
      const current = isSameSpan(passage, this.span) && "true";
      const label = `Mark ${i + 1} of ${all.length}`;
      const given = { class: null, "aria-label": label, "aria-current": current, tabindex: -1 };
      const made = passageLink(passage, "", given);
      made.style.top = `${(100 * passage.start) / this.length}%`;
      return made;
    });
    this.edge.replaceChildren(...marks);
  }

  /** Return the summaries that quote what is marked as current, from the lowest up. */
  uses() {
    const using = this.notes.filter(({ quotes }) => quotes.some((each) => meets(each, this.span)));
    if (!using.length) return null;
    const items = using
      .sort((a, b) => a.level - b.level)
      .map((note) => element("li", {}, `Level ${note.level}: `, nodeLink(note)));
    return element("div", { class: "uses" }, "Quoted by", element("ul", {}, items));
  }

  /** Scroll to the passage. */
  seek() {
    this.passage.querySelector(".cited")?.scrollIntoView();
  }

  /** Fill the bar; its buttons stay, and with them the focus. */
  title(found) {
    const name = found?.title || found?.document;
    this.heading.replaceChildren(name ? element("bdi", {}, shown(name)) : "Source");
    this.place.replaceChildren(found ? shown(placeOf(found.place, found.title)) : "");
    this.file.replaceChildren(found?.is_file ? fileOf({ ...found.place, ...found }) : "");
    this.stored.hidden = !found;
    this.wide.hidden = !found || this.data.isReport;
    this.wide.textContent = this.isAlone ? "Close" : "Read";
    this.levels.hidden = !found || !this.isAlone;
    this.summaries.max = Math.max(1, ...this.notes.map(({ level }) => level));
  }
}

function meets(a, b) {
  return a.start < b.end && b.start < a.end;
}

/** Divide a paragraph where links and the current passage begin and end. */
function piecesOf(paragraph, links, span) {
  const places = [...links, span].flatMap((each) => [each.start, each.end]);
  return cut(paragraph.start, paragraph.end, places).map(([start, end]) => {
    const piece = { start, end };
    const said = displayed(paragraph, start, end);
    const of = links.filter((link) => meets(link, piece));
    const made = of.length ? passageLink(of.find((link) => link.isMarked) ?? of[0], said) : said;
    if (meets(span, piece)) return element("mark", { class: "cited" }, made);
    return of.some((link) => link.isMarked) ? element("mark", {}, made) : made;
  });
}

/** Return what stands beside a paragraph of a note: its title, if it begins there, and quotes. */
function noteOf(note, paragraph) {
  const isIn = (place) => paragraph.start <= place && place < paragraph.end;
  const first = Math.min(...note.quotes.map((quote) => quote.start));
  const quotes = note.quotes.filter((quote) => isIn(quote.start));
  return [
    ...(isIn(note.quotes.length ? first : note.start) ? [nodeLink(note)] : []),
    ...quotes.map((quote) =>
      element("p", { dir: "auto" }, passageLink({ ...quote, node: note.id }, shown(quote.text))),
    ),
  ];
}
