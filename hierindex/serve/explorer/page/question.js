/** The question box, with the options that `hierindex query` has. */

import { button, element } from "./elements.js";

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

/** `actions` are `asked(question, answer)` and `fail(error)`. */
export class Question {
  constructor({ form, input, submit, fields, count }, data, actions) {
    Object.assign(this, { form, input, submit, fields, count, data, actions, asking: null });
    this.inputs = {};
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.ask();
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

  /** Ask what is written; a question that is still being answered is given up. */
  async ask() {
    const q = this.input.value.trim();
    if (!q) return this.input.focus();
    const options = Object.entries(this.inputs).map(([name, input]) => [name, input.value.trim()]);
    const given = { q, ...Object.fromEntries(options) };
    given.where = given.where.split("\n").map((line) => line.trim());
    this.asking?.abort();
    const asking = new AbortController();
    this.asking = asking;
    this.busy(true);
    try {
      await this.actions.asked(q, await this.data.ask(given, asking.signal));
    } catch (error) {
      if (error.name !== "AbortError") this.actions.fail(error);
    } finally {
      if (this.asking === asking) this.busy(false);
    }
    return undefined;
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
