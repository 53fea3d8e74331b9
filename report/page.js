"use strict";
const root = document.documentElement;
const dark = matchMedia("(prefers-color-scheme: dark)");
const scheme = () => root.dataset.scheme || (dark.matches ? "dark" : "light");
const toggle = document.getElementById("toggle");

function say() {
  const other = scheme() === "dark" ? "light" : "dark";
  toggle.textContent = other === "dark" ? "Dark" : "Light";
  toggle.setAttribute("aria-label", `Show the page in ${other} colours`);
}
try {  // a page opened from a file may have no storage
  const kept = localStorage.getItem("gossamer-scheme");
  if (kept === "light" || kept === "dark") root.dataset.scheme = kept;
} catch {}
toggle.addEventListener("click", () => {
  root.dataset.scheme = scheme() === "dark" ? "light" : "dark";
  try { localStorage.setItem("gossamer-scheme", root.dataset.scheme); } catch {}
  say();
});
dark.addEventListener("change", say);
toggle.hidden = false;
say();

// A figure, enlarged: it fills the window, or is wider than it and scrolls.
const large = document.getElementById("large");
for (const plate of document.querySelectorAll("button.plate")) {
  plate.addEventListener("click", () => {
    large.replaceChildren(...[...plate.children].map((image) => image.cloneNode()));
    large.showModal();
  });
}
large.addEventListener("click", () => large.close());
