// What is about to be sent: a text, files, a voice note, and what it replies to.
import { element, nameOf, sizeOf, summary } from "./bubble.js";

const $ = (id) => document.getElementById(id);
const text = $("text"), composer = $("composer"), quote = $("quote"), trouble = $("trouble");
const MOST_BYTES = 16 * 1024 * 1024;
const RECORDED = ["audio/ogg;codecs=opus", "audio/webm;codecs=opus", "audio/mp4"];

let files = []; // that wait to be sent
let quoting = ""; // a message's sid
let recorder, ticking;

// `send(text, files, quoting)` is what becomes of it.
export function compose(send) {
  composer.onsubmit = (event) => {
    event.preventDefault();
    const said = text.value.trim();
    if (!said && !files.length) return;
    send(said, files, quoting);
    text.value = "";
    clear();
    text.focus();
  };
  text.onkeydown = (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    composer.requestSubmit();
  };
  text.oninput = fit;
  text.onpaste = (event) => add(event.clipboardData.files);
  $("attach").onclick = () => $("files").click();
  $("files").onchange = (event) => { add(event.target.files); event.target.value = ""; };
  $("audio").onchange = (event) => {
    const given = event.target.files[0];
    if (given && fits(given)) speak(send, given);
    event.target.value = "";
  };
  $("voice").onclick = () => record(send);
  $("discard").onclick = () => { recorder.thrown = true; recorder.stop(); };
  $("recorded").onclick = () => recorder.stop();
  quote.querySelector("button").onclick = () => { reply(null); text.focus(); };
  dropped();
}

// Nothing of one person's goes out as another's.
export function clear() {
  files = [];
  reply(null);
  if (recorder?.state === "recording") $("discard").click();
  trouble.hidden = true;
  fit();
}

export function reply(message) {
  quoting = message?.sid ?? "";
  quote.hidden = !message;
  if (!message) return;
  quote.querySelector("strong").textContent = nameOf(message);
  quote.querySelector("span").textContent = summary(message);
  text.focus();
}

// ── files ───────────────────────────────────────────────────────────────────────────────────────────────────────────

function add(given) {
  trouble.hidden = true;
  files.push(...[...given].filter(fits));
  fit();
  text.focus();
}

function fits(file) {
  if (file.size <= MOST_BYTES) return true;
  trouble.textContent = `${file.name} is larger than 16 MB. WhatsApp would not take it.`;
  trouble.hidden = false;
  return false;
}

function fit() {
  text.style.height = "auto";
  text.style.height = `${Math.min(text.scrollHeight, 140)}px`;
  composer.classList.toggle("empty", !text.value.trim() && !files.length);
  $("tray").replaceChildren(...files.map((file, at) => {
    const out = element("button", "", "✕");
    Object.assign(out, { type: "button", ariaLabel: `Don't send ${file.name}`, onclick: () => { files.splice(at, 1); fit(); } });
    return element("li", "aside", element("p", "", file.name, " ", element("small", "", sizeOf(file.size))), out);
  }));
}

function dropped() {
  const over = (on) => { $("drop").hidden = !on; };
  const hasFiles = (event) => event.dataTransfer?.types.includes("Files");
  addEventListener("dragover", (event) => { if (hasFiles(event)) { event.preventDefault(); over(true); } });
  addEventListener("dragleave", (event) => { if (!event.relatedTarget) over(false); });
  addEventListener("drop", (event) => {
    over(false);
    if (!hasFiles(event)) return;
    event.preventDefault();
    add(event.dataTransfer.files);
  });
}

// ── a voice note ────────────────────────────────────────────────────────────────────────────────────────────────────

function speak(send, file) {
  send("", [file], quoting);
  reply(null);
}

async function record(send) {
  const type = globalThis.MediaRecorder && RECORDED.find((each) => MediaRecorder.isTypeSupported(each));
  const stream = type && (await navigator.mediaDevices?.getUserMedia({ audio: true }).catch(() => null));
  if (!stream) return $("audio").click(); // no microphone, or none for us: a file will do
  const parts = [], bare = type.split(";")[0];
  recorder = new MediaRecorder(stream, { mimeType: type });
  recorder.ondataavailable = (event) => parts.push(event.data);
  recorder.onstop = (event) => {
    stream.getTracks().forEach((each) => each.stop());
    clearInterval(ticking);
    recording(false);
    const note = new File(parts, `voice-note.${bare.split("/")[1]}`, { type: bare });
    if (!event.target.thrown && note.size && fits(note)) speak(send, note);
  };
  recorder.start();
  const began = Date.now();
  const tick = () => {
    const seconds = Math.floor((Date.now() - began) / 1000);
    $("seconds").textContent = `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
  };
  tick();
  ticking = setInterval(tick, 500);
  recording(true);
}

function recording(on) {
  $("recording").hidden = !on;
  $("line").hidden = on;
  (on ? $("recorded") : text).focus();
}
