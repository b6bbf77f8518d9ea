/** What the index holds and has cost. */

import { element } from "./elements.js";
import { counted, shown } from "./text.js";

/** Fill the card with what `HierarchicalIndex.info` says. */
export function showHealth(card, info) {
  const { usage = {}, fan_out: fanOut, stale = 0 } = info;
  const tokens = (usage.prompt_tokens ?? 0) + (usage.completion_tokens ?? 0);
  const spent = usage.llm_calls
    ? `${counted(tokens, "token")} in ${counted(usage.llm_calls, "prompt")}`
    : "none";
  const facts = {
    Documents: info.documents.toLocaleString("en"),
    Children: fanOut?.max ? `${fanOut.mean.toFixed(1)} per node, at most ${fanOut.max}` : "",
    Generation: info.generation,
    Method: info.method,
    "Embedding model": info.embed_model,
    Summaries: info.summarizer,
    "Tokens spent": spent,
    Fallbacks: usage.fallbacks ? counted(usage.fallbacks, "summary", "summaries") : "",
    "Left out": info.left_out?.replace(/^Left out, t/, "T"),
    Stale: stale ? `${counted(stale, "node")}; run hierindex update` : "nothing",
  };
  const pairs = Object.entries(facts).filter(
    ([, value]) => value !== "" && value !== undefined && value !== null,
  );
  card.replaceChildren(
    element("h2", {}, "Index"),
    levelsOf(info.levels ?? []),
    element(
      "dl",
      { class: "pairs" },
      ...pairs.map(([name, value]) =>
        element(
          "div",
          {},
          element("dt", {}, name),
          element("dd", { dir: "auto" }, shown(String(value))),
        ),
      ),
    ),
  );
}

function levelsOf(levels) {
  const head = ["Level", "Nodes", "Tokens"].map((name) => element("th", { scope: "col" }, name));
  const rows = [...levels]
    .reverse()
    .map(({ level, nodes, tokens }) =>
      element(
        "tr",
        {},
        element("th", { scope: "row" }, String(level)),
        element("td", {}, nodes.toLocaleString("en")),
        element("td", {}, tokens?.toLocaleString("en") ?? ""),
      ),
    );
  return element(
    "table",
    {},
    element("thead", {}, element("tr", {}, ...head)),
    element("tbody", {}, ...rows),
  );
}
