// One person's conversation.
import { bubble, dayLine, shut } from "./bubble.js";
import { clear, compose, reply } from "./compose.js";

const $ = (id) => document.getElementById(id);
const view = $("view"), log = $("log"), owed = $("owed"), newer = $("newer");
const OWED_MS = 90_000;
const PEOPLE = new Map([...$("known").content.querySelectorAll("option")].map((each) => [each.value, each.text]));
const IDENTITY = new RegExp(`^(?:${$("other").pattern})$`);

let who = "";
let messages = new Map(); // by sid
let listening = new AbortController();
let typed; // the timer that ends "typing…"
let atNewest = true, lastTop = 0;
const asked = new Map(); // by sid: what this page has sent and the simulator may not have

// ── who writes ──────────────────────────────────────────────────────────────────────────────────────────────────────

function become(person) {
  who = person;
  try { localStorage.setItem("who", person); } catch { /* private mode: the address remembers */ }
  history.replaceState(null, "", `#${person}`);
  $("who").textContent = PEOPLE.has(person) ? `You: ${PEOPLE.get(person)}` : `You: ${person}`;
  messages = new Map();
  asked.clear();
  log.replaceChildren();
  clear();
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
      for (const each of told.messages) {
        messages.set(each.sid, each);
        asked.delete(each.sid); // the simulator has it now, and posts it again by its sid alone
      }
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

const deeds = {
  again: (message) => send(asked.get(message.sid) ?? { text: message.text, message_sid: message.sid }),
  reply,
  react(message, emoji) {
    const taken = reactionTo(message.sid)?.text === emoji; // the same again takes it back
    say("SM", { text: taken ? "" : emoji, quoting: message.sid, fields: { MessageType: "reaction" } });
  },
  press(message, { title, id }) {
    const fields = { MessageType: "button", ButtonText: title, ButtonPayload: id };
    say("SM", { text: title, quoting: message.sid, fields });
  },
};

compose(async (said, files, quoting) => {
  if (!files.length) return say("SM", { text: said, quoting });
  const person = who;
  const read = files.map(async (file) => ({ name: file.name, media_type: file.type || typeOf(file.name), raw: await base64(file) }));
  for (const [at, file] of (await Promise.all(read)).entries()) {
    if (person !== who) return;
    await say("MM", at ? { text: "", file } : { text: said, quoting, file });
  }
});

function say(prefix, what) {
  const sid = prefix + [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  asked.set(sid, { ...what, message_sid: sid });
  return send(asked.get(sid));
}

async function send(what) {
  const person = who, sid = what.message_sid, known = messages.get(sid);
  if (!known || known.state === "failed") {
    const last = Math.max(0, ...[...messages.values()].map((each) => each.seq));
    messages.set(sid, { seq: last + 0.5, at: new Date().toISOString(), ...drawn(what), ...known, sid, mine: true, state: "sending", local: true });
    show(true);
  }
  try {
    const answer = await fetch("/simulate/inbound", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ from: person, ...what }),
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

// Until the simulator tells it.
function drawn({ text, quoting = "", fields = {}, file }) {
  const media = file ? [{ name: file.name, media_type: file.media_type, size: Math.floor(file.raw.length * 0.75) }] : [];
  return { text, quoted: quoting, kind: fields.MessageType ?? "text", media };
}

async function base64(file) {
  const reader = new FileReader();
  const read = new Promise((resolve, reject) => Object.assign(reader, { onload: resolve, onerror: reject }));
  reader.readAsDataURL(file);
  await read;
  return reader.result.slice(reader.result.indexOf(",") + 1);
}

// What a phone knows, and a browser may not.
function typeOf(name) {
  const types = { md: "text/markdown", csv: "text/csv", vcf: "text/vcard", ogg: "audio/ogg", opus: "audio/ogg", amr: "audio/amr" };
  return types[name.split(".").at(-1).toLowerCase()] ?? "application/octet-stream";
}

// ── what is shown ───────────────────────────────────────────────────────────────────────────────────────────────────

function show(mineIsNew = false) {
  const near = view.scrollHeight - view.scrollTop - view.clientHeight < 120;
  const sorted = inOrder();
  const shown = new Map([...log.children].map((each) => [each.dataset.sid ?? `day ${each.dataset.day}`, each]));
  const wanted = [];
  let day = "", arrived = false;
  for (const each of sorted) {
    if (isReaction(each)) continue;
    const date = new Date(each.at);
    if (date.toDateString() !== day) {
      day = date.toDateString();
      wanted.push(shown.get(`day ${day}`) ?? dayLine(day, date));
    }
    const have = shown.get(each.sid), quoted = messages.get(each.quoted), reaction = reactionTo(each.sid)?.text;
    const looks = JSON.stringify([each.state, reaction, !!quoted, each.media?.map((file) => file.url)]);
    arrived ||= !have;
    const line = have?.dataset.looks === looks ? have : bubble(each, { quoted, reaction }, deeds);
    line.dataset.looks = looks;
    wanted.push(line);
  }
  wanted.forEach((each, at) => log.children[at] === each || log.insertBefore(each, log.children[at] ?? null));
  while (log.children.length > wanted.length) log.lastChild.remove();
  owed.hidden = !isOwed(sorted);
  if (near || mineIsNew) toNewest();
  else if (arrived) newer.hidden = false;
}

const inOrder = () => [...messages.values()].sort((a, b) => a.seq - b.seq);

// It stands on the message that it is about; one that went nowhere stands by itself, so that it can be sent again.
function isReaction(message) {
  return message.kind === "reaction" && message.state !== "failed" && messages.has(message.quoted);
}

function reactionTo(sid) {
  return inOrder().filter((each) => isReaction(each) && each.quoted === sid).at(-1);
}

function isOwed(sorted) {
  const recent = sorted.filter((each) => each.kind !== "reaction" && Date.now() - new Date(each.at) < OWED_MS);
  const from = recent.findIndex((each) => each.state === "taken");
  if (from < 0) return false;
  const rest = recent.slice(from);
  return rest.filter((each) => each.state === "taken").length > rest.filter((each) => !each.mine).length;
}

function toNewest() {
  view.scrollTop = view.scrollHeight;
  newer.hidden = true;
  atNewest = true;
}

newer.onclick = toNewest;
view.onscroll = () => {
  if (view.scrollHeight - view.scrollTop - view.clientHeight < 40) {
    atNewest = true;
    newer.hidden = true;
  } else if (view.scrollTop < lastTop) atNewest = false; // what grows below is not a move of the person's
  lastTop = view.scrollTop;
};
const stay = () => atNewest && toNewest();
for (const grown of ["load", "loadedmetadata"]) log.addEventListener(grown, stay, true); // a picture or film has got its size
new ResizeObserver(stay).observe(view); // the keyboard came or went, or the composer grew
addEventListener("click", (event) => { if (!event.target.closest?.(".bubble")) shut(); });
setInterval(() => { owed.hidden ||= !isOwed(inOrder()); }, 5000);
become(remembered());
