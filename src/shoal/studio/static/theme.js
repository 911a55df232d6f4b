// The theme that was chosen last, before anything is drawn; without a choice the system's.
const kept = localStorage.getItem("shoal-theme");
if (kept) document.documentElement.dataset.theme = kept;
