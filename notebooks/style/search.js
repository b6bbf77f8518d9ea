// Finds sections by their words (BM25), in the place of Sphinx's search, which finds whole pages
// and has to fetch them to show their text.
"use strict";

const [SHOWN, EXCERPT] = [20, 220]; // sections, and characters of each
const [K, B] = [1.2, 0.75]; // of BM25
const TITLE = 4; // words of a title count as often as this
const WEIGHTS = { guides: 1.5, about: 0.5 }; // by folder; about/ has words of everything
const NAMED = 3; // if the question is the title

const stemmer = new Stemmer();
const splitWords = (text) => text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [];
const AMERICAN = /is(?=(e|ed|er|ers|es|ing|ation|ations)$)/; // summariser, summarizer
const stem = (word) => stemmer.stemWord(word.replace(AMERICAN, "iz"));
const tellingWords = (text) => splitWords(text).filter((word) => !stopwords.has(word));
const stemmed = (text) => splitWords(text).map(stem);

function counted() {
  return SECTIONS.map(([page, address, title, text]) => {
    const counts = new Map();
    const count = (words, weight) =>
      words.forEach((word) => counts.set(word, (counts.get(word) ?? 0) + weight));
    count(stemmed(text), 1);
    count(stemmed(title), TITLE);
    count(stemmed(page), 1);
    let length = 0;
    for (const n of counts.values()) length += n;
    return { page, address, title, text, counts, length };
  });
}

function found(query) {
  const all = counted();
  const telling = tellingWords(query);
  const words = [...new Set((telling.length ? telling : splitWords(query)).map(stem))];
  const mean = all.reduce((sum, section) => sum + section.length, 0) / all.length;
  const rarity = words.map((word) => {
    const n = all.filter((section) => section.counts.has(word)).length;
    return Math.log(1 + (all.length - n + 0.5) / (n + 0.5));
  });
  for (const section of all) {
    section.score = 0;
    words.forEach((word, i) => {
      const n = section.counts.get(word) ?? 0;
      const room = K * (1 - B + (B * section.length) / mean);
      section.score += (rarity[i] * n * (K + 1)) / (n + room);
    });
    section.score *= WEIGHTS[section.address.split("/")[0]] ?? 1;
    if (tellingWords(section.title).map(stem).join() === words.join()) section.score *= NAMED;
  }
  const best = all.filter((section) => section.score > 0).sort((a, b) => b.score - a.score);
  return [words, best];
}

// The part of a text with most of the words, each of which is marked.
function excerpt(text, words) {
  const places = [...text.matchAll(/[\p{L}\p{N}]+/gu)].filter((word) =>
    words.includes(stem(word[0].toLowerCase())),
  );
  const within = (from) =>
    places.filter((word) => word.index >= from && word.index < from + EXCERPT).length;
  const first = places.reduce(
    (best, word) => (within(word.index) > within(best) ? word.index : best),
    places[0]?.index ?? 0,
  );
  const start = first < 40 ? 0 : text.indexOf(" ", first - 40) + 1;
  const shown = document.createElement("p");
  let at = start;
  for (const { 0: word, index } of places) {
    if (index < at || index >= start + EXCERPT) continue;
    shown.append(text.slice(at, index));
    shown.appendChild(document.createElement("mark")).textContent = word;
    at = index + word.length;
  }
  shown.append(text.slice(at, Math.max(at, start + EXCERPT)));
  if (start > 0) shown.prepend("… ");
  if (start + EXCERPT < text.length) shown.append(" …");
  return shown;
}

Search.query = (query) => {
  const [words, best] = found(query);
  for (const { page, address, title, text } of best.slice(0, SHOWN)) {
    const entry = document.createElement("li");
    const link = entry.appendChild(document.createElement("a"));
    link.href = address;
    link.textContent = title;
    if (page !== title) entry.append(` ${page}`);
    entry.append(excerpt(text, words));
    Search.output.append(entry);
  }
  Search.stopPulse();
  Search.title.textContent = "Results";
  const n = Math.min(best.length, SHOWN);
  Search.status.textContent = best.length
    ? `The best ${n} of ${best.length} sections`
    : "No page has these words.";
};
