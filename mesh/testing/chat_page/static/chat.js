// One person's conversation. Texts go in as text nodes, never as HTML.
"use strict";

const $ = (id) => document.getElementById(id);
const view = $("view"), log = $("log"), owed = $("owed"), text = $("text"), newer = $("newer");
const OWED_MS = 90_000;
const SENDING = { sending: "✓", taken: "✓✓", failed: "Not delivered. Tap to send again." };
const PEOPLE = new Map([...$("known").content.querySelectorAll("option")].map((each) => [each.value, each.text]));
const IDENTITY = new RegExp(`^(?:${$("other").pattern})$`);

let who = "";
let messages = new Map(); // by sid
let listening = new AbortController();
let typed; // the timer that ends "typing…"

// ── who writes ──────────────────────────────────────────────────────────────────────────────────────────────────────

function become(person) {
  who = person;
  try { localStorage.setItem("who", person); } catch { /* private mode: the address remembers */ }
  history.replaceState(null, "", `#${person}`);
  $("who").textContent = PEOPLE.has(person) ? `You: ${PEOPLE.get(person)}` : `You: ${person}`;
  messages = new Map();
  log.replaceChildren();
  listening.abort();
  listening = new AbortController();
  listen(person, listening.signal);
}

function remembered() {
  let kept = "";
  try { kept = localStorage.getItem("who") ?? ""; } catch { /* as above */ }
  return [decodeURIComponent(location.hash.slice(1)), kept].find((each) => IDENTITY.test(each)) ?? [...PEOPLE.keys()][0];
}

for (const [person, name] of PEOPLE) {
  const button = document.createElement("button");
  button.type = "button";
  button.append(name, Object.assign(document.createElement("small"), { textContent: person }));
  button.onclick = () => { $("choose").close(); become(person); };
  $("people").append(button);
}
$("who").onclick = () => { $("wrong").textContent = ""; $("choose").showModal(); };
$("close").onclick = () => $("choose").close();
$("identity").onsubmit = (event) => {
  event.preventDefault();
  const person = $("other").value.trim();
  if (!IDENTITY.test(person)) {
    $("wrong").textContent = "Write a number with its country code, such as +15551230003.";
    return;
  }
  $("choose").close();
  become(person);
};
$("identity").noValidate = true; // its own words are better than the browser's
addEventListener("hashchange", () => remembered() !== who && become(remembered()));

// ── what comes ──────────────────────────────────────────────────────────────────────────────────────────────────────

async function listen(person, signal) {
  let since = "";
  while (!signal.aborted) {
    try {
      const query = new URLSearchParams({ who: person, since });
      const answer = await fetch(`/page/talk?${query}`, { signal: AbortSignal.any([signal, AbortSignal.timeout(40_000)]) });
      if (!answer.ok) throw new Error(`status ${answer.status}`);
      const told = await answer.json();
      if (signal.aborted) return;
      if (told.whole) messages = new Map([...messages].filter(([, each]) => each.local));
      since = told.since;
      for (const each of told.messages) messages.set(each.sid, each);
      type(told.typing);
      document.body.classList.remove("offline");
      show();
    } catch {
      if (signal.aborted) return;
      clearTimeout(typed);
      $("state").textContent = "no connection: is the mesh still running?";
      document.body.classList.add("offline");
      await new Promise((next) => setTimeout(next, 1000));
    }
  }
}

function type(seconds) {
  clearTimeout(typed);
  $("state").textContent = seconds > 0 ? "typing…" : "simulated WhatsApp";
  if (seconds > 0) typed = setTimeout(type, seconds * 1000, 0);
}

// ── what is sent ────────────────────────────────────────────────────────────────────────────────────────────────────

async function send(sid, said) {
  const person = who, known = messages.get(sid);
  if (!known || known.state === "failed") {
    const last = Math.max(0, ...[...messages.values()].map((each) => each.seq));
    messages.set(sid, { seq: last + 0.5, at: new Date().toISOString(), ...known, sid, mine: true, text: said, state: "sending", local: true });
    show(true);
  }
  try {
    const answer = await fetch("/simulate/inbound", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ from: person, text: said, message_sid: sid }),
    });
    if (!answer.ok) throw new Error(`status ${answer.status}`);
  } catch { // this page did not reach the simulator; whether the mesh took it, the simulator tells
    const each = messages.get(sid);
    if (person === who && each?.local) {
      each.state = "failed";
      show();
    }
  }
}

function newSid() {
  return "SM" + [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

$("composer").onsubmit = (event) => {
  event.preventDefault();
  const said = text.value.trim();
  if (!said) return;
  text.value = "";
  fit();
  text.focus();
  send(newSid(), said);
};
text.onkeydown = (event) => {
  if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  $("composer").requestSubmit();
};
text.oninput = fit;

function fit() {
  text.style.height = "auto";
  text.style.height = `${Math.min(text.scrollHeight, 140)}px`;
}

// ── what is shown ───────────────────────────────────────────────────────────────────────────────────────────────────

function show(mineIsNew = false) {
  const near = view.scrollHeight - view.scrollTop - view.clientHeight < 120;
  const sorted = [...messages.values()].sort((a, b) => a.seq - b.seq);
  const shown = new Map([...log.children].map((each) => [each.dataset.sid ?? `day ${each.dataset.day}`, each]));
  const wanted = [];
  let day = "", arrived = false;
  for (const each of sorted) {
    const date = new Date(each.at);
    if (date.toDateString() !== day) {
      day = date.toDateString();
      wanted.push(shown.get(`day ${day}`) ?? dayLine(day, date));
    }
    const have = shown.get(each.sid);
    arrived ||= !have;
    wanted.push(have?.dataset.state === each.state ? have : bubble(each, date));
  }
  wanted.forEach((each, at) => log.children[at] === each || log.insertBefore(each, log.children[at] ?? null));
  while (log.children.length > wanted.length) log.lastChild.remove();
  owed.hidden = !isOwed(sorted);
  if (near || mineIsNew) toNewest();
  else if (arrived) newer.hidden = false;
}

function isOwed(sorted) {
  const recent = sorted.filter((each) => Date.now() - new Date(each.at) < OWED_MS);
  const from = recent.findIndex((each) => each.state === "taken");
  if (from < 0) return false;
  const rest = recent.slice(from);
  return rest.filter((each) => each.state === "taken").length > rest.filter((each) => !each.mine).length;
}

function dayLine(day, date) {
  const line = document.createElement("li");
  line.className = "day";
  line.dataset.day = day;
  line.textContent = day === new Date().toDateString() ? "Today" : date.toLocaleDateString(undefined, { dateStyle: "medium" });
  return line;
}

function bubble(message, date) {
  const line = document.createElement("li");
  line.className = `bubble ${message.mine ? "mine" : "theirs"} ${message.state}`;
  line.dataset.sid = message.sid;
  line.dataset.state = message.state;
  const said = document.createElement("div");
  said.className = "text";
  said.dir = "auto";
  said.append(...formatted(message.text));
  const foot = document.createElement("footer");
  const time = document.createElement("time");
  time.dateTime = message.at;
  time.textContent = date.toLocaleTimeString(undefined, { hour: "2-digit", minute: "2-digit" });
  foot.append(time);
  if (message.state) foot.append(stateOf(message));
  line.append(said, foot);
  return line;
}

function stateOf(message) {
  const failed = message.state === "failed";
  const mark = document.createElement(failed ? "button" : "span");
  mark.textContent = SENDING[message.state];
  if (failed) mark.onclick = () => send(message.sid, message.text);
  else mark.ariaLabel = message.state === "taken" ? "delivered to the mesh" : "sent";
  if (!failed) mark.role = "img";
  return mark;
}

// *bold*, _italic_, ~struck~, ```code``` and links, as WhatsApp shows them.
const MARKS = /```([\s\S]+?)```|(?<![\p{L}\p{N}_])([*_~])(?=\S)(.+?)(?<=\S)\2(?![\p{L}\p{N}_])|(https?:\/\/[^\s<>"]+[^\s<>".,;:!?)\]'*_~])/gu;
const TAGS = { "*": "strong", _: "em", "~": "s" };

function formatted(plain) {
  const nodes = [];
  let end = 0;
  for (const found of plain.matchAll(MARKS)) {
    const [all, code, mark, inner, link] = found;
    nodes.push(plain.slice(end, found.index));
    end = found.index + all.length;
    const node = document.createElement(code ? "code" : link ? "a" : TAGS[mark]);
    if (link) Object.assign(node, { href: link, target: "_blank", rel: "noopener noreferrer nofollow" });
    node.append(...(code || link ? [code ?? link] : formatted(inner)));
    nodes.push(node);
  }
  return [...nodes, plain.slice(end)];
}

function toNewest() {
  view.scrollTop = view.scrollHeight;
  newer.hidden = true;
}

newer.onclick = toNewest;
view.onscroll = () => {
  if (view.scrollHeight - view.scrollTop - view.clientHeight < 40) newer.hidden = true;
};
addEventListener("resize", toNewest); // the keyboard came or went
setInterval(() => { owed.hidden ||= !isOwed([...messages.values()].sort((a, b) => a.seq - b.seq)); }, 5000);
become(remembered());
