// The long table: a window of its rows is asked for where the bar stands; the rest is empty height.

import { at } from "./swap.js";

const ROW = 30;
// browsers cannot scroll over more pixels than this
const MOST = 12_000_000;

function settle() {
  const grid = document.getElementById("grid");
  if (!grid || grid.dataset.settled) return;
  grid.dataset.settled = "yes";
  const rows = Number(grid.dataset.rows);
  const body = grid.querySelector("tbody");
  const head = grid.querySelector("thead");
  const tall = /** @type {HTMLElement} */ (grid.querySelector(".tall"));
  const shown = () => Math.max(Math.floor((grid.clientHeight - head.offsetHeight) / ROW), 1);
  tall.style.height = `${Math.min(rows * ROW + head.offsetHeight, MOST)}px`;
  // columns keep their width while rows change
  for (const cell of grid.querySelectorAll("thead th")) /** @type {HTMLElement} */ (cell).style.minWidth = `${cell.getBoundingClientRect().width}px`;
  let first = 0;
  let busy = false;

  async function show() {
    const room = grid.scrollHeight - grid.clientHeight;
    const most = Math.max(rows - shown(), 0);
    const wanted = room > 0 ? Math.round((grid.scrollTop / room) * most) : 0;
    if (wanted === first || busy) return;
    busy = true;
    const answer = await fetch(`${at("rows")}?start=${wanted}&count=${shown() + 1}`);
    if (answer.ok) body.innerHTML = await answer.text();
    first = wanted;
    busy = false;
    show();
  }

  grid.addEventListener("scroll", () => requestAnimationFrame(show), { passive: true });
  grid.addEventListener("keydown", (event) => {
    if (event.key === "End") grid.scrollTop = grid.scrollHeight;
    if (event.key === "Home") grid.scrollTop = 0;
  });
}

document.addEventListener("shoal:swapped", settle);
