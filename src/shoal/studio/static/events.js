// Listens to what the studio says about runs, and shows it.

import { apply, at, desk } from "./swap.js";

/** @type {EventSource | null} */
let source = null;
let last = "";

function listen() {
  source?.close();
  if (!desk()) return;
  source = new EventSource(at("events"));
  source.onmessage = (event) => {
    if (event.data === last) return;
    last = event.data;
    apply(JSON.parse(event.data));
  };
}

document.addEventListener("shoal:ready", listen);
addEventListener("pagehide", () => source?.close());
