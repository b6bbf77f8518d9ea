/** The source pane: a passage, highlighted in its document's text. */

import { isSameSpan } from "./address.js";
import { button, element } from "./elements.js";
import { placeOf, shown } from "./text.js";

const CONTEXT = 2000; // characters on both sides
const WIDER = 4; // times more with each step
const MOST = 100000; // characters of a passage to show

/** `actions` are `follow(passage)` and `fail(error)`. */
export class Source {
  constructor({ bar, block }, data, actions) {
    Object.assign(this, { bar, block, data, actions, span: null, passages: [] });
  }

  /**
   * Show a passage, or a hint without one.
   *
   * @param {object|null} span
   * @param {object[]} passages those to go through, of the text that is read
   */
  async show(span, passages, context = CONTEXT) {
    const isNew = !this.span || !span || !isSameSpan(this.span, span);
    Object.assign(this, { span, passages });
    if (!span) return this.say("No sentence of this text leads to a source.");
    try {
      const found = await this.data.source(span, context);
      if (this.span === span) this.fill(found, context, isNew);
    } catch (error) {
      if (this.span !== span) return undefined;
      this.say(error.message);
      this.actions.fail(error);
    }
    return undefined;
  }

  say(sentence) {
    this.bar.replaceChildren(element("h2", {}, "Source"));
    this.block.replaceChildren(element("p", { class: "hint" }, sentence));
  }

  fill(found, context, isNew) {
    const { block } = this;
    this.title(found);
    const text = found.text.slice(0, MOST);
    const cited = element("mark", { id: "cited" }, shown(text));
    const cut =
      found.text.length > MOST
        ? element(
            "p",
            { class: "hint" },
            `The first ${MOST.toLocaleString("en")} of ${found.text.length.toLocaleString("en")} characters of the passage.`,
          )
        : "";
    const wider = (label) =>
      button(label, () => this.show(this.span, this.passages, context * WIDER), {
        class: "plain wider",
      });
    const hasBefore = found.before_start > 0 && found.before.length >= context / 2;
    const hasAfter = found.after.length >= context / 2;
    const from = block.scrollHeight - block.scrollTop;
    block.replaceChildren(
      hasBefore ? wider("More before") : "",
      element(
        "div",
        { class: "document", dir: "auto" },
        shown(found.before),
        cited,
        cut,
        shown(found.after),
      ),
      hasAfter ? wider("More after") : "",
    );
    if (isNew) this.seek();
    else block.scrollTop = block.scrollHeight - from;
  }

  /** Scroll to the passage. */
  seek() {
    const { block } = this;
    const cited = block.querySelector("#cited");
    if (cited) block.scrollTop = cited.offsetTop - block.offsetTop - block.clientHeight / 4;
  }

  title(found) {
    const at = this.passages.findIndex((passage) => isSameSpan(passage, this.span));
    const step = (by, label, sign) => {
      const next = this.passages[at + by];
      return button(sign, () => this.actions.follow(next), {
        class: "plain",
        "aria-label": label,
        disabled: !next,
      });
    };
    const steps =
      at < 0
        ? []
        : [
            step(-1, "Previous passage", "‹"),
            element("span", { class: "quiet" }, `${at + 1} of ${this.passages.length}`),
            step(1, "Next passage", "›"),
          ];
    this.bar.replaceChildren(
      element(
        "h2",
        {},
        element("span", { class: "of" }, "Source: "),
        element("bdi", {}, shown(found.title || found.document)),
      ),
      element("span", { class: "place quiet", dir: "auto" }, shown(placeOf(found))),
      element("span", { class: "steps" }, ...steps),
    );
  }
}
