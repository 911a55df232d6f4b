// Keeps the key of this Studio where only pages of its own address can read it, and opens the page.
localStorage.setItem("shoal-key", document.currentScript.dataset.key);
location.replace("/");
