// Sends what was done to the studio and puts the fragments that come back into their places. Nothing is decided here.

/** @returns {Record<string, string>} what shows that a request comes from this page */
export const header = () => ({ "x-shoal": localStorage.getItem("shoal-key") ?? "" });
const DEBOUNCE = 60;
const REST = 1200;
// longer than between the two presses of a double click
const AWAKE = 600;

/** @returns {string} the session of this tab */
export const session = () => sessionStorage.getItem("shoal-session") ?? "";

/** @param {string} path @returns {string} */
export const at = (path) => `/session/${session()}/${path}`;

/** Where controls were moved to, by their id, as long as the studio has not answered. @type {Map<string, string>} */
const ahead = new Map();

/**
 * Put fragments into their places; what has the focus keeps it, and what was just moved stays where it is.
 * @param {string} html
 */
export function apply(html) {
  const focused = document.activeElement?.id;
  const range = /** @type {any} */ (document.activeElement);
  const caret = range && typeof range.selectionStart === "number" && range.type !== "range" ? range.selectionStart : null;
  const open = new Set([...document.querySelectorAll("details[open] > summary")].map((one) => one.textContent));
  const shut = new Set([...document.querySelectorAll("details:not([open]) > summary")].map((one) => one.textContent));
  const parsed = new DOMParser().parseFromString(html, "text/html");
  for (const part of parsed.querySelectorAll("template[data-into]")) {
    const place = document.querySelector(part.dataset.into);
    if (!place) continue;
    place.replaceChildren(document.adoptNode(part.content));
    for (const details of place.querySelectorAll("details")) {
      const title = details.querySelector("summary").textContent;
      if (open.has(title)) details.open = true;
      else if (shut.has(title) && !part.dataset.into.endsWith("main")) details.open = false;
    }
  }
  for (const [id, value] of ahead) {
    const control = /** @type {HTMLInputElement | null} */ (document.getElementById(id));
    if (control && control.value !== value) fill(control, value);
  }
  if (focused && document.activeElement?.id !== focused) {
    const again = /** @type {any} */ (document.getElementById(focused));
    again?.focus({ preventScroll: true });
    if (caret !== null && again?.setSelectionRange) again.setSelectionRange(caret, caret);
  }
  ask();
  document.dispatchEvent(new Event("shoal:swapped"));
}

/** A question that was put on the page is shown over it; what answers yes to it cannot be pressed by accident. */
function ask() {
  const question = /** @type {HTMLDialogElement | null} */ (document.querySelector("dialog[data-modal]:not([data-asked])"));
  if (!question) return;
  question.dataset.asked = "yes";
  question.showModal();
  const yes = /** @type {HTMLButtonElement | null} */ (question.querySelector("[data-wakes]"));
  setTimeout(() => yes && (yes.disabled = false), AWAKE);
}

/** @param {HTMLInputElement} control @param {string} value */
function fill(control, value) {
  control.value = value;
  if (control.type === "range") control.style.setProperty("--at", `${Number(value) / 10}%`);
}

/**
 * @param {string} path @param {unknown} [body] @param {AbortSignal} [signal]
 * @returns {Promise<Response | null>} null where the answer is not wanted any more
 */
async function post(path, body = {}, signal) {
  try {
    return await fetch(path, {
      method: "POST",
      headers: { ...header(), "content-type": "application/json" },
      body: JSON.stringify(body),
      signal,
    });
  } catch (error) {
    if (/** @type {Error} */ (error).name === "AbortError") return null;
    apply('<template data-into="#toast"><div class="toast"><p>Studio does not respond: check that it is still running in its terminal.</p></div></template>');
    return null;
  }
}

/** @type {Promise<unknown>} */
let before = Promise.resolve();

/**
 * Send something to the session and show what comes back, one after the other: a late answer never undoes a later one.
 * @param {string} path @param {unknown} [body] @param {AbortSignal} [signal]
 * @returns {Promise<Response | null>}
 */
export function send(path, body, signal) {
  moved();
  const turn = before.then(() => deliver(path, body, signal));
  before = turn.catch(() => null);
  return turn;
}

/** @param {string} path @param {unknown} [body] @param {AbortSignal} [signal] */
async function deliver(path, body, signal) {
  const answer = await post(at(path), body, signal);
  if (!answer) return null;
  if (answer.headers.get("x-shoal-gone")) {
    sessionStorage.removeItem("shoal-session");
    await begin();
    return answer;
  }
  apply(await answer.text());
  const step = answer.headers.get("x-shoal-step");
  if (step) {
    history.pushState({}, "", `#${step}`);
    arrive();
  }
  return answer;
}

/** @param {string} step @param {boolean} [push] */
export async function go(step, push = true) {
  if (push && location.hash !== `#${step}`) history.pushState({}, "", `#${step}`);
  await send(`step/${step}`);
  document.querySelector("#toast").replaceChildren();
  arrive();
}

/** A place on the page is read from its beginning on; what is folded there is opened. @param {HTMLElement} place */
function lead(place) {
  const folded = place.querySelector(":scope > details");
  if (folded) folded.setAttribute("open", "");
  place.tabIndex = -1;
  place.focus();
  place.scrollIntoView();
}

/** A new step is read from its heading on. */
function arrive() {
  scrollTo(0, 0);
  /** @type {HTMLElement | null} */ (document.querySelector("main h1"))?.focus({ preventScroll: true });
}

async function begin() {
  if (!session()) {
    const answer = await post("/session");
    if (!answer) return;
    sessionStorage.setItem("shoal-session", (await answer.json()).session);
  }
  await deliver(`step/${location.hash.slice(1) || "data"}`);
  document.dispatchEvent(new Event("shoal:ready"));
}

/** @param {Element} element @returns {Record<string, unknown>} */
function bodyOf(element) {
  const told = /** @type {HTMLElement} */ (element).dataset;
  const form = element.closest("form");
  return { ...(form && form.dataset.send ? Object.fromEntries(new FormData(form)) : {}), ...JSON.parse(told.body ?? "{}") };
}

/** @param {any} field */
function valueOf(field) {
  const { what, name, column } = field.dataset;
  const body = { what, name, column, value: field.value, run: undefined };
  return field.type === "checkbox" ? { ...body, value: field.checked } : body;
}

/** @type {AbortController | null} */
let latest = null;
let timer = 0;
/** @type {any} */
let waiting = null;

/** A control that moves: only the last of its answers counts. @param {any} field */
function live(field) {
  clearTimeout(timer);
  fill(field, field.value);
  ahead.set(field.id, field.value);
  waiting = { path: field.dataset.live, body: valueOf(field), id: field.id, value: field.value };
  timer = setTimeout(moved, DEBOUNCE);
}

/** Send where a control was moved to, at the latest before anything else is sent: a run takes what the page shows. */
function moved() {
  if (!waiting) return;
  const { path, body, id, value } = waiting;
  waiting = null;
  clearTimeout(timer);
  latest?.abort();
  latest = new AbortController();
  send(path, body, latest.signal).then(() => ahead.get(id) === value && ahead.delete(id));
}

document.addEventListener("click", async (event) => {
  const target = /** @type {HTMLElement} */ (event.target);
  const button = /** @type {HTMLElement | null} */ (target.closest("button, a"));
  if (!button) return;
  const told = button.dataset;
  const place = button.getAttribute("href") ?? "";
  if (place.startsWith("#")) {
    // the address names the step, and stays
    event.preventDefault();
    lead(document.querySelector(place));
  } else if (told.step) await go(told.step);
  else if (told.close !== undefined) document.querySelector("#toast").replaceChildren();
  else if (told.dialog) /** @type {HTMLDialogElement} */ (document.getElementById(told.dialog)).showModal();
  else if (told.dialogClose !== undefined) button.closest("dialog").close();
  else if (told.copy) await copy(button, told.copy);
  else if (told.move) move(button.closest("li"), Number(told.move));
  else if (told.send) {
    if (told.wait) document.querySelector("#upload").textContent = told.wait;
    const body = bodyOf(button);
    /** @type {HTMLDialogElement | null} */ (button.closest("dialog[data-modal]"))?.close();
    if (told.random) body.value = String(1 + Math.floor(Math.random() * Number(told.random)));
    if (told.press !== undefined)
      for (const other of button.parentElement.children) other.setAttribute("aria-pressed", String(other === button));
    await send(told.send, body);
    if (told.stepAfter) await go(told.stepAfter);
    if (told.goes === "inspector") {
      for (const row of document.querySelectorAll("tr.column")) row.classList.toggle("open", row.contains(button));
      seat();
      if (narrow.matches) document.getElementById("inspector-title")?.focus();
    }
  } else if (button.id === "theme") theme();
});

// what a dot stands for is taken by a double click; one click only shows it
document.addEventListener("dblclick", async (event) => {
  const button = /** @type {HTMLElement | null} */ (/** @type {HTMLElement} */ (event.target).closest("[data-double]"));
  if (button) await send(button.dataset.send, JSON.parse(button.dataset.double));
});

// what takes a while to find out is asked for once the page rests
let resting = 0;
document.addEventListener("shoal:swapped", () => {
  const place = /** @type {HTMLElement | null} */ (document.querySelector("[data-ask]"));
  clearTimeout(resting);
  if (place) resting = setTimeout(() => place.isConnected && send(place.dataset.ask), REST);
});

// on a narrow screen everything about a column stands below its row
const narrow = matchMedia("(max-width: 60rem)");
function seat() {
  const about = document.getElementById("inspector");
  const row = document.querySelector("tr.column.open");
  if (!about || !row) return;
  const place = document.getElementById("seat") ?? document.createElement("tr");
  if (!narrow.matches) {
    // what is moved loses the focus
    if (place.contains(about)) document.querySelector(".two").append(about);
    place.remove();
  } else if (row.nextElementSibling !== place) {
    place.id = "seat";
    if (!place.firstChild) place.append(document.createElement("td"));
    /** @type {HTMLTableCellElement} */ (place.firstChild).colSpan = 8;
    place.firstChild.appendChild(about);
    row.after(place);
  }
}
document.addEventListener("shoal:swapped", seat);
narrow.addEventListener("change", seat);

document.addEventListener("submit", async (event) => {
  const form = /** @type {HTMLFormElement} */ (event.target);
  if (!form.dataset.send) return;
  event.preventDefault();
  await send(form.dataset.send, bodyOf(form));
});

document.addEventListener("change", async (event) => {
  const field = /** @type {any} */ (event.target);
  const form = field.closest("form[data-live]");
  if (form) await send(form.dataset.send, bodyOf(form));
  else if (field.dataset.taxonomy) {
    const file = field.files[0];
    if (file) await send(`column/${field.dataset.taxonomy}`, { what: "taxonomy", name: file.name, value: await file.text() });
  } else if (field.dataset.pair) {
    const number = field.dataset.pair.split("/")[1];
    const end = (name) => /** @type {any} */ (document.getElementById(`${name}-${number}`)).value;
    // the other end is on its way: wait for it, unless it is filled
    if (event.isTrusted && (!end("lo") !== !end("hi")) && field.value) return;
    await send(field.dataset.pair, { what: "range", value: [end("lo"), end("hi")] });
  } else if (field.dataset.change && field.value !== undefined) await send(field.dataset.change, valueOf(field));
});

document.addEventListener("input", (event) => {
  const field = /** @type {any} */ (event.target);
  if (field.dataset.live) live(field);
});

document.addEventListener("focusin", (event) => {
  const row = /** @type {HTMLElement} */ (event.target).closest?.("tr.column");
  if (row) for (const other of document.querySelectorAll("tr.column")) other.classList.toggle("open", other === row);
});

// the order of names: Alt and arrows, buttons, or dragging

/** @param {HTMLElement} item @param {number} by */
function move(item, by) {
  const list = item.parentElement;
  const items = [...list.children];
  const place = items.indexOf(item) + by;
  if (place < 0 || place >= items.length) return;
  if (by < 0) list.insertBefore(item, items[place]);
  else items[place].after(item);
  reorder(item);
}

/** @param {HTMLElement} item */
function reorder(item) {
  const value = [...item.parentElement.children].map((one) => one.querySelector("span").textContent);
  const text = item.querySelector("span").textContent;
  send(`column/${item.dataset.order}`, { what: "ordered", value }).then(() => {
    const again = [...document.querySelectorAll("li[data-order]")].find((one) => one.querySelector("span").textContent === text);
    /** @type {HTMLElement | undefined} */ (again)?.focus();
  });
}

/** @type {HTMLElement | null} */
let dragged = null;
document.addEventListener("dragstart", (event) => (dragged = /** @type {any} */ (event.target).closest?.("li[data-order]")));
document.addEventListener("dragover", (event) => {
  const over = /** @type {any} */ (event.target).closest?.("li[data-order]");
  if (!dragged || !over || over === dragged) return;
  event.preventDefault();
  const items = [...over.parentElement.children];
  if (items.indexOf(over) < items.indexOf(dragged)) over.before(dragged);
  else over.after(dragged);
});
document.addEventListener("dragend", () => {
  if (dragged) reorder(dragged);
  dragged = null;
});

document.addEventListener("keydown", async (event) => {
  const target = /** @type {HTMLElement} */ (event.target);
  const typing = target.matches("input:not([type=range], [type=checkbox], [type=radio]), textarea, select");
  const item = /** @type {HTMLElement | null} */ (target.closest?.("li[data-order]"));
  if (event.altKey && item && (event.key === "ArrowUp" || event.key === "ArrowDown")) {
    event.preventDefault();
    move(item, event.key === "ArrowUp" ? -1 : 1);
  } else if (event.altKey && /^[1-5]$/.test(event.key)) {
    event.preventDefault();
    const step = /** @type {HTMLButtonElement} */ (document.querySelectorAll("#steps button")[Number(event.key) - 1]);
    if (!step.disabled) await go(step.dataset.step);
  } else if (event.ctrlKey && event.key === "Enter") {
    /** @type {HTMLButtonElement | null} */ (document.querySelector("[data-run]"))?.click();
  } else if (event.ctrlKey && event.key.toLowerCase() === "z" && !typing) {
    event.preventDefault();
    await send("guarantee", { what: "undo" });
    await go(location.hash.slice(1) || "data", false);
  } else if (!typing && (event.key === "j" || event.key === "k")) {
    const names = /** @type {HTMLElement[]} */ ([...document.querySelectorAll("tr.column .name")]);
    const row = target.closest?.("tr.column");
    const now = names.findIndex((name) => row?.contains(name));
    names[Math.min(Math.max(now + (event.key === "j" ? 1 : -1), 0), names.length - 1)]?.focus();
  } else if (!typing && event.key === "?") /** @type {HTMLDialogElement} */ (document.getElementById("keys")).showModal();
});

/** @param {HTMLElement} button @param {string} from */
async function copy(button, from) {
  const text = [...document.getElementById(from).childNodes].map((node) => node.textContent).join("\n").trim();
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    getSelection()?.selectAllChildren(document.getElementById(from));
    return;
  }
  const before = button.innerHTML;
  button.textContent = "Copied";
  setTimeout(() => (button.innerHTML = before), 1500);
}

function theme() {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
  localStorage.setItem("shoal-theme", root.dataset.theme);
}

addEventListener("popstate", () => go(location.hash.slice(1) || "data", false));
begin();
