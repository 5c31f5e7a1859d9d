// Fetches what changed every two seconds and puts it in place, node by node: what is open, selected or scrolled stays.
"use strict";

const EVERY_MS = 2000;
const board = document.getElementById("board");
const notice = document.getElementById("notice");
const pulse = document.getElementById("pulse");

async function look() {
  try {
    const answer = await fetch("/board", { cache: "no-store", signal: AbortSignal.timeout(8000) });
    const text = await answer.text();
    if (answer.ok) morph(board, new DOMParser().parseFromString(text, "text/html").body);
    tell(answer.ok ? "" : text);
  } catch {
    tell("The dashboard does not answer: is the mesh still running? This page looks again every two seconds.");
  }
}

function tell(trouble) {
  if (notice.textContent !== trouble) notice.textContent = trouble;
  document.body.classList.toggle("stale", trouble !== "");
  pulse.textContent = trouble ? "waiting" : "live";
}

function morph(old, wanted) {
  for (const { name, value } of wanted.attributes) {
    if (old !== board && old.getAttribute(name) !== value) old.setAttribute(name, value);
  }
  for (const { name } of [...old.attributes]) {
    if (old !== board && name !== "open" && !wanted.hasAttribute(name)) old.removeAttribute(name);
  }
  const keyed = new Map([...old.children].filter((each) => each.dataset.key).map((each) => [each.dataset.key, each]));
  let at = old.firstChild;
  for (const want of [...wanted.childNodes]) {
    const key = want.dataset?.key;
    const have = key ? keyed.get(key) : unkeyed(at, want.nodeName);
    if (!have) {
      if (key) want.classList.add("new");
      old.insertBefore(want, at);
      continue;
    }
    if (have === at) at = at.nextSibling;
    else old.insertBefore(have, at);
    if (have.nodeType === Node.ELEMENT_NODE) {
      if (!have.isEqualNode(want)) morph(have, want);
    } else if (have.data !== want.data) have.data = want.data;
  }
  while (at) {
    const gone = at;
    at = at.nextSibling;
    gone.remove();
  }
}

function unkeyed(from, nodeName) {
  while (from && (from.dataset?.key || from.nodeName !== nodeName)) from = from.nextSibling;
  return from;
}

async function watch() {
  for (;;) {
    await new Promise((next) => setTimeout(next, EVERY_MS));
    if (!document.hidden) await look();
  }
}

document.addEventListener("visibilitychange", () => document.hidden || look());
watch();
