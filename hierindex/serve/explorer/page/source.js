/** The source pane: a passage, highlighted in its document's text. */

import { isSameSpan } from "./address.js";
import { button, byIds, element } from "./elements.js";
import { placeOf, shown } from "./text.js";

const CONTEXT = 2000; // characters on both sides
const WIDER = 4; // times more with each step
const WIDEST = 100000; // characters on both sides that the server gives
const MOST = 100000; // characters of a passage to show

/** `actions` are `follow(passage)` and `fail(error)`. */
export class Source {
  constructor(data, actions) {
    const { bar, block } = byIds({ bar: "source-bar", block: "passage" });
    Object.assign(this, { block, data, actions, span: null, reader: null, filled: null });
    this.name = element("h2", {}, "Source");
    this.place = element("span", { class: "place quiet", dir: "auto" });
    this.previous = this.step("‹", "Previous passage", -1);
    this.count = element("span", { class: "quiet" });
    this.next = this.step("›", "Next passage", 1);
    const steps = [this.previous, this.count, this.next];
    this.steps = element("span", { class: "steps", hidden: true }, ...steps);
    bar.replaceChildren(this.name, this.place, this.steps);
    this.before = this.wider("More before");
    this.text = element("div", { class: "document", dir: "auto" });
    this.after = this.wider("More after");
  }

  step(sign, label, by) {
    const follow = () => {
      const passage = this.reader.passages[this.at() + by];
      if (passage) this.actions.follow(passage);
    };
    return button(sign, follow, { class: "plain", "aria-label": label });
  }

  wider(label) {
    const widen = () => {
      const context = Math.min(WIDEST, this.context * WIDER);
      return this.show(this.span, this.reader, context);
    };
    return button(label, widen, { class: "plain wider" });
  }

  /** Return which of the passages is shown, or -1. */
  at() {
    const { span, reader } = this;
    return span ? reader.passages.findIndex((passage) => isSameSpan(passage, span)) : -1;
  }

  /**
   * Show a passage, or a hint without one.
   *
   * @param {object|null} span
   * @param {{passages: object[], generation?: string}} reader what is read: the passages to go
   *     through, and their generation if it is not the page's
   */
  async show(span, reader, context = CONTEXT) {
    Object.assign(this, { span, reader, context });
    if (!span) return this.say("No sentence of this text leads to a source.");
    try {
      const found = await this.data.source(span, context, reader.generation);
      if (this.span === span && this.context === context) this.fill(found);
    } catch (error) {
      if (this.span !== span) return undefined;
      this.say(error.message);
      this.actions.fail(error);
    }
    return undefined;
  }

  say(sentence) {
    this.filled = null;
    this.title(["Source"]);
    this.block.replaceChildren(element("p", { class: "hint" }, sentence));
  }

  fill(found) {
    const { block, before, text, after } = this;
    const isNew = !this.filled || !isSameSpan(this.filled, this.span);
    const top = block.scrollTop - (block.querySelector("#cited")?.offsetTop ?? 0);
    this.filled = this.span;
    this.title(
      [
        element("span", { class: "of" }, "Source: "),
        element("bdi", {}, shown(found.title || found.document)),
      ],
      [shown(placeOf(found, found.title))],
    );
    const cited = element("mark", { id: "cited" }, shown(found.text.slice(0, MOST)));
    text.replaceChildren(shown(found.before), cited, cutOf(found), shown(found.after));
    const focused = document.activeElement;
    const isMore = (given) => this.context < WIDEST && given.length >= this.context / 2;
    before.hidden = found.before_start === 0 || !isMore(found.before);
    after.hidden = !isMore(found.after);
    if (focused.hidden) block.focus({ preventScroll: true });
    if (!text.isConnected) block.replaceChildren(before, text, after);
    if (isNew) this.seek();
    else block.scrollTop = top + cited.offsetTop;
  }

  /** Scroll to the passage. */
  seek() {
    const { block } = this;
    const cited = block.querySelector("#cited");
    if (cited) block.scrollTop = cited.offsetTop - block.offsetTop - block.clientHeight / 4;
  }

  /** Fill the bar; its buttons stay, and with them the focus. */
  title(name, place = []) {
    const [at, n] = [this.at(), this.reader.passages.length];
    this.name.replaceChildren(...name);
    this.place.replaceChildren(...place);
    this.steps.hidden = at < 0;
    this.count.textContent = `${at + 1} of ${n}`;
    this.previous.setAttribute("aria-disabled", String(at <= 0));
    this.next.setAttribute("aria-disabled", String(at + 1 >= n));
  }
}

/** Return a sentence on what is not shown of a passage, or "". */
function cutOf({ text }) {
  if (text.length <= MOST) return "";
  const [most, n] = [MOST, text.length].map((length) => length.toLocaleString("en"));
  return element("p", { class: "hint" }, `The first ${most} of ${n} characters of the passage.`);
}
