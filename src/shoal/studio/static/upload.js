// A file that is dropped or chosen goes to the studio, with a bar that shows how far it is.

import { apply, at, header, send } from "./swap.js";

const size = (count) => (count >= 1e8 ? Math.round(count / 1e6) : Math.round(count / 1e5) / 10);

/** @param {File} file @param {string} to what it is for: the table itself, or people to rehearse on */
async function upload(file, to) {
  const answer = await send("announce", { name: file.name, size: file.size, to });
  if (!answer?.headers.get("x-shoal-send")) return;
  const place = document.getElementById("upload");
  place.innerHTML = '<progress max="100" value="0" aria-label="Copying"></progress><p></p>';
  const [bar, words] = /** @type {any} */ (place.children);
  const request = new XMLHttpRequest();
  request.open("PUT", at(to));
  for (const [name, value] of Object.entries(header())) request.setRequestHeader(name, value);
  request.setRequestHeader("x-name", encodeURIComponent(file.name));
  request.upload.onprogress = (event) => {
    bar.value = (100 * event.loaded) / event.total;
    words.textContent =
      event.loaded < event.total ? `Copying ${size(event.loaded)} of ${size(event.total)} MB` : "Reading the table …";
  };
  request.upload.onload = () => {
    bar.removeAttribute("value");
    words.textContent = "Reading the table …";
  };
  request.onload = () => {
    apply(request.responseText);
    if (to !== "file") {
      send(to);
      return;
    }
    /** @type {HTMLElement | null} */ (document.querySelector("main h1"))?.focus({ preventScroll: true });
  };
  request.send(file);
}

document.addEventListener("change", (event) => {
  const field = /** @type {HTMLInputElement} */ (event.target);
  if (field.dataset.upload && field.files?.length) upload(field.files[0], field.dataset.upload);
});

document.addEventListener("dragover", (event) => {
  if (!event.dataTransfer?.types.includes("Files")) return;
  event.preventDefault();
  document.getElementById("drop")?.classList.add("over");
});
document.addEventListener("dragleave", () => document.getElementById("drop")?.classList.remove("over"));
document.addEventListener("drop", (event) => {
  const file = event.dataTransfer?.files[0];
  if (!file) return;
  event.preventDefault();
  document.getElementById("drop")?.classList.remove("over");
  const about = /** @type {HTMLElement} */ (event.target).closest("#inspector");
  const taxonomy = /** @type {HTMLElement | null} */ (about?.querySelector("[data-taxonomy]"));
  if (document.getElementById("drop")) upload(file, "file");
  else if (document.getElementById("people")) upload(file, "people");
  else if (taxonomy)
    file.text().then((value) => send(`column/${taxonomy.dataset.taxonomy}`, { what: "taxonomy", name: file.name, value }));
});
