/** The question box, with the options that `hierindex query` has. */

import { OPTIONS, linkTo } from "./address.js";
import { button, byIds, element } from "./elements.js";

const CHOICES = {
  mode: {
    label: "Mode",
    values: {
      "": "chosen by the question",
      auto: "auto",
      collapsed: "all levels",
      level: "one level",
      traversal: "from the roots down",
      document: "documents, then their chunks",
    },
  },
  by: {
    label: "Search by",
    values: {
      "": "as the mode does",
      dense: "meaning (dense)",
      text: "words (text)",
      hybrid: "both (hybrid)",
      context: "both, and neighbours (context)",
    },
  },
};
const NUMBERS = { token_budget: ["Tokens at most", "2000"], top_k: ["Nodes at most", "10"] };

/** A question is an object of `q` and those of its `OPTIONS` that are set; see `address.js`. */
export class Question {
  /** `actions` are `ask(question)`. */
  constructor(data, actions) {
    const ids = { form: "question", input: "asked", submit: "ask", fields: "option-fields" };
    Object.assign(this, { ...byIds({ ...ids, count: "options-set" }), data, asking: null });
    const { form, fields } = this;
    this.inputs = {};
    this.answers = new Map(); // by the link to the question
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      if (this.input.value.trim()) actions.ask(this.written());
      else this.input.focus();
    });
    fields.addEventListener("input", () => this.tally());
  }

  /** Make the fields of the options for an index of these levels. */
  start(levels) {
    const { mode, by } = CHOICES;
    const numbers = levels.map(({ level }) => [
      level,
      level ? `level ${level}` : "level 0 (chunks)",
    ]);
    const level = {
      "": "as the mode chooses",
      top: "top",
      documents: "documents",
      sections: "sections",
      ...Object.fromEntries(numbers),
    };
    const where = element("textarea", {
      rows: 2,
      placeholder: "file_name=report.pdf\nsection~Results",
      spellcheck: "false",
    });
    const clear = button("Clear options", () => {
      for (const input of Object.values(this.inputs)) input.value = "";
      this.tally();
    });
    this.fields.replaceChildren(
      element("h2", {}, "Options"),
      this.field("mode", mode.label, choice(mode.values)),
      this.field("level", "Level", choice(level)),
      this.field("by", by.label, choice(by.values)),
      ...Object.entries(NUMBERS).map(([name, [label, usual]]) =>
        this.field(name, label, element("input", { type: "number", min: 1, placeholder: usual })),
      ),
      this.field("where", "Only where (one filter a line)", where),
      clear,
    );
  }

  field(name, label, input) {
    this.inputs[name] = input;
    input.id = `option-${name}`;
    return element("div", { class: "field" }, element("label", { for: input.id }, label), input);
  }

  tally() {
    const n = Object.values(this.inputs).filter((input) => input.value.trim()).length;
    this.count.textContent = n ? ` (${n})` : "";
  }

  /** Return what is written. */
  written() {
    const options = OPTIONS.map((name) => [name, this.inputs[name].value.trim()]);
    const question = Object.entries({ q: this.input.value.trim(), ...Object.fromEntries(options) });
    return Object.fromEntries(question.filter(([, value]) => value));
  }

  /** Write a question. */
  write(question) {
    this.input.value = question.q ?? "";
    for (const name of OPTIONS) this.inputs[name].value = question[name] ?? "";
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
      const answer = await this.data.ask({ ...question, where }, asking.signal);
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

function choice(values) {
  const made = element("select");
  for (const [value, label] of Object.entries(values))
    made.append(element("option", { value }, label));
  made.value = "";
  return made;
}
