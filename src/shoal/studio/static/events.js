// Listens to what the studio says about runs, and shows it.

import { apply, at, session } from "./swap.js";

/** @type {EventSource | null} */
let source = null;
let last = "";

function listen() {
  source?.close();
  if (!session()) return;
  source = new EventSource(at("events"));
  source.onmessage = (event) => {
    if (event.data === last) return;
    last = event.data;
    apply(JSON.parse(event.data));
    say();
  };
}

// who listens to the page hears a stage once, and not every second
function say() {
  const words = document.querySelector("#strip .stage")?.textContent.trim().replace(/\s+/g, " ") ?? "";
  const place = document.getElementById("say");
  if (place.textContent !== words) place.textContent = words;
}

// browsers keep few connections to one host, and tabs that nobody sees need none
document.addEventListener("visibilitychange", () => {
  if (document.hidden) source?.close();
  else listen();
});

document.addEventListener("shoal:ready", listen);
addEventListener("pagehide", () => source?.close());
