/* The theme button, the list of pages on a phone, and a search that needs no server: the index is a script. */
(() => {
  "use strict";
  const root = document.documentElement;
  const base = document.body.dataset.base;

  document.getElementById("theme").addEventListener("click", () => {
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
    try { localStorage.setItem("theme", root.dataset.theme); } catch (error) { /* kept for this page only */ }
  });
  if (matchMedia("(max-width: 60rem)").matches) { document.querySelector(".pages .all").open = false; }

  const field = document.getElementById("query"), hits = document.getElementById("hits");
  let entries = null;

  function load() {
    if (entries) { return; }
    entries = [];
    const script = document.createElement("script");
    script.src = `${base}/search-index.js`;
    script.onload = () => { entries = window.SEARCH_INDEX; show(); };
    document.head.append(script);
  }

  /* words in titles count most, then whole words, then parts of words; every word must be there */
  function score(entry, words) {
    const title = entry.title.toLowerCase(), text = entry.text.toLowerCase();
    let sum = 0;
    for (const word of words) {
      const named = title.includes(word) ? 20 : 0, found = text.split(word).length - 1;
      if (!named && !found) { return 0; }
      sum += named + Math.min(found, 5) + (entry.top ? 3 : 0);
    }
    return sum;
  }

  function excerpt(entry, words) {
    const at = Math.max(entry.text.toLowerCase().indexOf(words[0]) - 40, 0);
    return (at ? "…" : "") + entry.text.slice(at, at + 140) + "…";
  }

  function show() {
    const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    hits.hidden = !words.length;
    const found = entries.map(entry => [score(entry, words), entry]).filter(([value]) => value && words.length)
      .sort((one, other) => other[0] - one[0]).slice(0, 12);
    hits.replaceChildren(...found.map(([, entry]) => {
      const link = document.createElement("a"), name = document.createElement("strong"), line = document.createElement("span");
      link.href = `${base}/${entry.url}`;
      name.textContent = entry.title;
      line.textContent = excerpt(entry, words);
      link.append(name, line);
      return link;
    }));
    if (!found.length) { hits.textContent = "Nothing found."; }
  }

  field.addEventListener("focus", load);
  field.addEventListener("input", () => { load(); show(); });
  field.addEventListener("keydown", event => {
    if (event.key === "Escape") { field.value = ""; show(); }
    if (event.key === "Enter" && hits.querySelector("a")) { hits.querySelector("a").click(); }
  });
  document.addEventListener("keydown", event => {
    if (event.key === "/" && document.activeElement.tagName !== "INPUT") { event.preventDefault(); field.focus(); }
  });
})();
