/** The box to ask and to find in, with the options of a question. */

import { OPTIONS, linkTo } from "./address.js";
import { byIds, element } from "./elements.js";

/** A question is an object of `q` and those of its `OPTIONS` that are set; see `address.js`. */
export class Question {
  /** `actions` are `ask(question)`, and `write(question, piece, isFirst)` of an answer. */
  constructor(data, actions) {
    const ids = { form: "question", input: "asked", submit: "ask", count: "options-set" };
    Object.assign(this, { ...byIds(ids), data, actions, asking: null });
    this.answers = new Map(); // by the link to the question
    this.form.addEventListener("submit", (event) => {
      event.preventDefault();
      const question = this.written();
      if (question.q) actions.ask(question);
      else this.input.focus();
    });
    this.form.addEventListener("input", () => this.tally());
  }

  /** Offer the levels of an index. */
  start(levels) {
    for (const { level } of levels) {
      const label = level ? `level ${level}` : "level 0 (chunks)";
      this.form.elements.level.append(element("option", { value: level }, label));
    }
  }

  tally() {
    const { q, ...options } = this.written();
    const n = Object.keys(options).length;
    this.count.textContent = n ? ` (${n})` : "";
  }

  /** Return what is written. */
  written() {
    const all = [...new FormData(this.form)].map(([name, value]) => [name, value.trim()]);
    return Object.fromEntries(all.filter(([, value]) => value));
  }

  /** Write a question. */
  write(question) {
    for (const name of ["q", ...OPTIONS]) this.form.elements[name].value = question[name] ?? "";
    this.tally();
  }

  /** Return the answer that was given last, or ask. */
  recall(question) {
    return this.answers.get(linkTo(question)) ?? this.ask(question);
  }

  /** Ask, and return the answer; a question that is still being answered is given up. */
  async ask(question) {
    this.asking?.abort();
    const asking = new AbortController();
    this.asking = asking;
    this.busy(true);
    try {
      const where = (question.where ?? "").split("\n").map((line) => line.trim());
      let n = 0;
      const write = (piece) => this.asking === asking && this.actions.write(question, piece, !n++);
      const answer = await this.data.ask({ ...question, where }, asking.signal, write);
      this.answers.set(linkTo(question), answer);
      return answer;
    } finally {
      if (this.asking === asking) this.busy(false);
    }
  }

  busy(isBusy) {
    this.form.setAttribute("aria-busy", String(isBusy));
    this.submit.textContent = isBusy ? "Asking …" : "Ask";
  }
}
