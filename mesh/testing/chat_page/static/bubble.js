// How a message looks. Texts go in as text nodes, never as HTML.

const SENDING = { sending: "✓", taken: "✓✓", failed: "Not delivered. Tap to send again." };
const EMOJI = ["👍", "❤️", "😂", "😮", "😢", "🙏"];
const PICTURES = /^image\/(jpeg|png|webp|gif)\b/;

export function element(tag, className, ...children) {
  const made = document.createElement(tag);
  if (className) made.className = className;
  made.append(...children);
  return made;
}

export function dayLine(day, date) {
  const today = day === new Date().toDateString();
  const line = element("li", "day", today ? "Today" : date.toLocaleDateString(undefined, { dateStyle: "medium" }));
  line.dataset.day = day;
  return line;
}

// `about` knows the message that is quoted, and the reaction; `deeds` are what can be done: again, reply, react, press.
export function bubble(message, about, deeds) {
  const line = element("li", `bubble ${message.mine ? "mine" : "theirs"} ${message.state} is-${message.kind}`);
  line.dataset.sid = message.sid;
  line.tabIndex = 0;
  line.ariaHasPopup = "true";
  if (message.quoted) line.append(quotation(about.quoted));
  for (const file of message.media ?? []) line.append(shown(file));
  if (message.place?.Latitude) line.append(placeOf(message.place));
  if (message.text) {
    const said = element("div", "text", ...formatted(message.text));
    said.dir = "auto";
    line.append(said);
  }
  line.append(footOf(message, deeds));
  if (about.reaction) {
    line.classList.add("reacted");
    line.append(labelled(element("span", "reaction", about.reaction), `You reacted: ${about.reaction}`));
  }
  if (message.buttons?.length) line.append(buttonsOf(message, deeds));
  line.onclick = (event) => {
    if (!event.target.closest("a, button, audio, video") && !String(getSelection())) open(line, message, deeds);
  };
  line.onkeydown = (event) => {
    if (event.target === line && event.key === "Enter") open(line, message, deeds);
    if (event.key === "Escape") shut();
  };
  return line;
}

function labelled(node, label) {
  node.role = "img";
  node.ariaLabel = label;
  return node;
}

function footOf(message, deeds) {
  const time = element("time", "", new Date(message.at).toLocaleTimeString(undefined, { hour: "2-digit", minute: "2-digit" }));
  time.dateTime = message.at;
  const foot = element("footer", "", time);
  if (message.state === "failed") foot.append(button(SENDING.failed, () => deeds.again(message)));
  else if (message.state) {
    const mark = element("span", "", SENDING[message.state]);
    foot.append(labelled(mark, message.state === "taken" ? "delivered to the mesh" : "sent"));
  }
  return foot;
}

function button(text, deed, className = "") {
  const made = element("button", className, text);
  made.type = "button";
  made.onclick = deed;
  return made;
}

// ── what one can do with it ─────────────────────────────────────────────────────────────────────────────────────────

function open(line, message, deeds) {
  const wasOpen = line.querySelector(".actions");
  shut();
  if (wasOpen) return;
  const done = (deed) => () => { shut(); deed(); };
  const actions = element("div", "actions");
  actions.role = "group";
  actions.ariaLabel = "React or reply";
  for (const emoji of EMOJI) {
    const one = button(emoji, done(() => deeds.react(message, emoji)));
    one.ariaLabel = `React with ${emoji}`;
    actions.append(one);
  }
  actions.append(button("Reply", done(() => deeds.reply(message)), "wide"));
  line.append(actions);
  line.scrollIntoView({ block: "nearest" });
}

export function shut() {
  document.querySelectorAll(".actions").forEach((each) => each.remove());
}

function buttonsOf(message, deeds) {
  const all = element("div", "buttons");
  for (const one of message.buttons) all.append(button(one.title, () => deeds.press(message, one)));
  return all;
}

// ── what it holds ───────────────────────────────────────────────────────────────────────────────────────────────────

function quotation(quoted) {
  const said = quoted ? summary(quoted) : "A message that is not here";
  const made = element("blockquote", "", element("strong", "", quoted ? nameOf(quoted) : ""), element("span", "", said));
  made.dir = "auto";
  return made;
}

export const nameOf = (message) => (message.mine ? "You" : "Adiyan");

export function summary(message) {
  const file = message.media?.[0];
  const said = element("span", "", ...formatted(message.text ?? "")).textContent; // without its marks
  return said || (file ? `📎 ${file.name}` : message.place?.Latitude ? "📍" : "");
}

function shown(file) {
  const type = file.media_type;
  if (file.url && PICTURES.test(type)) {
    const image = Object.assign(document.createElement("img"), { src: file.url, alt: file.name, className: "picture" });
    return link(image, file.url);
  }
  if (file.url && /^(audio|video)\//.test(type)) {
    const player = document.createElement(type.slice(0, 5));
    Object.assign(player, { controls: true, preload: "metadata", src: file.url });
    player.ariaLabel = file.name;
    return player;
  }
  const extension = /\.([a-z0-9]{1,5})$/i.exec(file.name)?.[1] ?? type.split("/")[1] ?? "file";
  const name = element("span", "name", file.name);
  name.dir = "auto";
  const about = element("span", "", name, element("small", "", `${extension.toUpperCase()} · ${sizeOf(file.size)}`));
  const chip = element(file.url ? "a" : "span", "chip", element("b", "", extension.slice(0, 4)), about);
  if (file.url) Object.assign(chip, { href: `${file.url}?download`, download: file.name, title: type });
  return chip;
}

export function sizeOf(bytes) {
  if (bytes < 1000) return bytes === 1 ? "1 byte" : `${bytes} bytes`;
  return bytes < 1_000_000 ? `${Math.round(bytes / 1000)} kB` : `${(bytes / 1_000_000).toFixed(1)} MB`;
}

function placeOf(place) {
  const where = `${place.Latitude}, ${place.Longitude}`;
  const lines = [place.Label || "Location", place.Address].filter(Boolean);
  const made = Object.assign(element("a", "", where), { href: `geo:${place.Latitude},${place.Longitude}` });
  return element("div", "place", ...lines.map((each, at) => element("span", "", at ? each : `📍 ${each}`)), made);
}

function link(inner, href) {
  const made = element("a", "", inner);
  return Object.assign(made, { href, target: "_blank", rel: "noopener noreferrer nofollow" });
}

// *bold*, _italic_, ~struck~, ```code```, `code` and links, as WhatsApp shows them.
const MARKS = /```([\s\S]+?)```|`([^`\n]+)`|(?<![\p{L}\p{N}_])([*_~])(?=\S)(.+?)(?<=\S)\3(?![\p{L}\p{N}_])|(https?:\/\/[^\s<>"]+[^\s<>".,;:!?)\]'*_~])/gu;
const TAGS = { "*": "strong", _: "em", "~": "s" };

function formatted(plain) {
  const nodes = [];
  let end = 0;
  for (const found of plain.matchAll(MARKS)) {
    const [all, block, inline, mark, inner, url] = found, code = block ?? inline;
    nodes.push(plain.slice(end, found.index));
    end = found.index + all.length;
    if (url) nodes.push(link(url, url));
    else nodes.push(element(code ? "code" : TAGS[mark], "", ...(code ? [code] : formatted(inner))));
  }
  return [...nodes, plain.slice(end)];
}
