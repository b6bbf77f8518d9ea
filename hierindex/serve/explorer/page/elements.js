/** Elements of the page, made without any markup in strings. */

/**
 * @param {string} id
 * @returns {HTMLElement} the page's element, which index.html has.
 */
export function byId(id) {
  return document.getElementById(id);
}

/** Return elements of the page by names, from their ids by those names. */
export function byIds(ids) {
  return Object.fromEntries(Object.entries(ids).map(([name, id]) => [name, byId(id)]));
}

/** Set an attribute, or remove it if the value is null or false. */
export function setAttribute(of, name, value) {
  if (value === null || value === undefined || value === false) of.removeAttribute(name);
  else of.setAttribute(name, value === true ? "" : value);
}

/**
 * Make an element. Attributes and children that are null or false are left out; strings become
 * text, and children may be in lists.
 *
 * @param {string} tag
 * @param {Object<string, string|number|boolean|null>} attributes
 * @param {...(Node|string|null|false|Array)} children
 */
export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) setAttribute(made, name, value);
  made.append(...children.flat().filter(Boolean));
  return made;
}

/**
 * Make a button that calls `act` when it is pressed.
 *
 * @param {string|Node} label
 * @param {() => unknown} act
 */
export function button(label, act, attributes = {}) {
  const made = element("button", { type: "button", ...attributes }, label);
  made.addEventListener("click", act);
  return made;
}

/** Return a function that calls `act` once no call has come for `wait` milliseconds. */
export function settled(act, wait) {
  let timer = 0;
  return (...given) => {
    clearTimeout(timer);
    timer = setTimeout(() => act(...given), wait);
  };
}

/** Say a sentence to those who listen to the page. */
export function say(sentence) {
  byId("status").textContent = sentence;
}
