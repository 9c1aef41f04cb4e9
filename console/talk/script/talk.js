// The page Talk: the browser as a speaker.
import { exchange } from "./page.js";
import { Loudspeaker, Microphone, Recording, whyNoMicrophone } from "./talk-sound.js";
import { decoder, encoder, opusLength } from "./opus.js";
import { Tools } from "./talk-tools.js";

const root = document.getElementById("talk");
const $ = (name) => root.querySelector(`[data-talk="${name}"]`);
const all = (selector) => root.querySelectorAll(selector);
const words = (id, ...values) => {
  const found = root.querySelector(`[data-word="talk/${id}"]`);
  return values.reduce((text, value) => text.replace("%s", value), found?.textContent ?? id);
};
const forced = new URLSearchParams(location.search).get("codec");
const MESSAGES = 200;

let socket = null, state = "off", codec = null, session = "", device = root.dataset.device || "", opening = null;
let push = false, free = false, cut = false, sentence = null, frames = { up: 0, down: 0 };

const recording = new Recording();
const speaker = new Loudspeaker((r) => {
  meter($("out"), r.peak);
  $("buffer").textContent = words("buffer", Math.round(r.held * 1000), r.overflow);
  root.dataset.overflow = r.overflow;
  if (r.peak > 0.002) { root.dataset.heard = performance.now(); }
});
const microphone = new Microphone((block) => {
  let most = 0;
  for (const v of block) { most = Math.max(most, Math.abs(v)); }
  meter($("in"), most / 32768);
  if (socket?.readyState !== WebSocket.OPEN || !codec) { return; }
  recording.add(0, block, 16000);
  codec.write(block);
});
const page = {
  volume: () => Number($("volume").value),
  setVolume(volume) { $("volume").value = volume; speaker.volume(volume / 100); },
};
const tools = new Tools(page, (payload) => { if (socket?.readyState === WebSocket.OPEN) { send({ type: "mcp", payload }); } });

function meter(element, level) { element.value = Math.min(1, Math.sqrt(level)); }

// enter shows a state. The states are off, connecting, idle, listening, thinking, speaking.
function enter(next, why) {
  if (state !== next || why) {
    state = next;
    root.dataset.state = next;
    $("state").textContent = why || words("state-" + next);
  }
  const on = push || free;
  $("push").setAttribute("aria-pressed", String(push));
  $("push-text").textContent = words(push ? "push-on" : "push");
  $("free").setAttribute("aria-pressed", String(free));
  $("light").hidden = !on;
  $("stop").disabled = state !== "speaking" && state !== "thinking";
}

function say(what) { $("trouble").textContent = what; $("trouble-box").hidden = !what; }

// Connection.

// ask sends JSON and returns that of the answer, or throws what it says.
async function ask(method, path, order) {
  const answer = await fetch(path, { method, credentials: "same-origin", headers: { "Content-Type": "application/json" }, body: JSON.stringify(order) });
  const body = await answer.json();
  if (!answer.ok) { throw new Error(body.message); }
  return body;
}

// connect returns when the server has said hello. It must be called where somebody has pressed something.
function connect() {
  if (socket?.readyState === WebSocket.OPEN && codec) { return Promise.resolve(); }
  opening ||= open().finally(() => { opening = null; });
  return opening;
}

async function open() {
  say("");
  enter("connecting");
  try {
    await speaker.start();
    const ms = forced === "pcm" ? 0 : await opusLength();
    if (forced === "opus" && !ms) { throw new Error(words("no-opus")); }
    const given = await ask("POST", root.dataset.ticket, { browser: root.dataset.browser, keep: $("keep").checked });
    device = given.device;
    const agent = $("agent").value;
    if (agent && agent !== root.dataset.agent) { await choose(agent); }
    const url = new URL("../xiaozhi/v1/?ticket=" + encodeURIComponent(given.ticket), location.href);
    url.protocol = url.protocol.replace("http", "ws");
    await greet(url, ms);
    enter("idle");
  } catch (err) {
    socket?.close();
    enter("off");
    say(err instanceof TypeError ? words("lost") : err.message);
    throw err;
  }
}

function greet(url, ms) {
  return new Promise((done, failed) => {
    const ws = socket = new WebSocket(url);
    ws.binaryType = "arraybuffer";
    ws.onopen = () => send({
      type: "hello", version: 1, transport: "websocket", features: { mcp: true },
      audio_params: { format: ms ? "opus" : "pcm", sample_rate: 16000, channels: 1, frame_duration: ms || 60 },
    });
    ws.onmessage = ({ data }) => {
      if (typeof data !== "string") { hear(new Uint8Array(data)); return; }
      const message = JSON.parse(data);
      if (message.type !== "hello") { take(message); return; }
      log("←", message);
      session = message.session_id;
      try { agree(message.audio_params || {}, ms); done(); } catch (err) { failed(err); }
    };
    ws.onclose = ({ code }) => { if (ws === socket) { closed(code); } failed(new Error(ended(code))); };
  });
}

// agree makes the codec of the server's answer.
function agree({ format, sample_rate: rate }, ms) {
  const broken = (err) => say(words("codec-failed", err.message));
  const packet = (bytes) => { if (socket?.readyState === WebSocket.OPEN) { frames.up++; socket.send(bytes); } };
  codec?.close();
  if (format === "opus" && ms) {
    const up = encoder(ms, packet, broken), down = decoder(play, broken);
    const blocks = (block) => { for (let i = 0; i < block.length; i += ms * 16) { up.write(block.slice(i, i + ms * 16)); } };
    codec = { name: "Opus", write: blocks, hear: down.write, flush: up.flush, close() { up.close(); down.close(); } };
  } else if (format === "pcm") {
    const hear = (bytes) => play(Float32Array.from(new Int16Array(bytes.slice().buffer), (v) => v / 32768), rate);
    codec = { name: "PCM", write: packet, hear, flush: async () => {}, close() {} };
  } else {
    throw new Error(words("no-pcm"));
  }
  $("codec").textContent = words("codec", codec.name, ms || 60);
}

function closed(code) {
  if (push || free) { release(); }
  codec?.close();
  codec = null;
  speaker.drop();
  tools.stop();
  enter("off");
  if (code !== 1000) { say(ended(code)); }
}

// ended says by its code why a connection has ended; the server's reason is English.
const ended = (code) => words("closed", words("end-" + code));

function send(message) {
  message.session_id = session;
  socket.send(JSON.stringify(message));
  log("→", message);
}

// Messages of the server.

function take(message) {
  log("←", message);
  switch (message.type) {
    case "stt": bubble("user", message.text); if (!free) { enter("thinking"); } break;
    case "llm": if (message.text) { face(message.text, message.emotion); } break;
    case "mcp": tools.handle(message.payload || {}); break;
    case "tts": speech(message); break;
  }
}

function speech({ state: what, text }) {
  switch (what) {
    case "start": cut = false; sentence = null; enter("speaking"); break;
    case "sentence_start":
      if (cut || !text) { break; }
      if (sentence) { sentence.textContent += " " + text; } else { sentence = bubble("server", text); }
      $("subtitle").textContent = text;
      break;
    case "stop":
      cut = false; sentence = null;
      if (state === "speaking" || state === "thinking") { enter(free || push ? "listening" : "idle"); }
      turn();
  }
}

function hear(packet) {
  frames.down++;
  if (!cut && codec) { codec.hear(packet); }
}

function play(sound, rate) {
  if (cut) { return; }
  recording.add(1, sound, rate);
  speaker.play(sound, rate);
}

function face(text, emotion) {
  $("face").textContent = text;
  $("emotion").textContent = words("face-" + emotion);
}

// bubble adds to the transcript and returns where the words are.
function bubble(who, text) {
  const item = document.createElement("li"), name = document.createElement("b"), said = document.createElement("span");
  item.className = who;
  name.textContent = who === "server" ? $("face").textContent + " " + words("said-server") : words("said-user");
  if (who === "server" && $("emotion").textContent) { name.title = $("emotion").textContent; }
  said.textContent = text;
  item.append(name, " ", said);
  $("said").append(item);
  $("empty").hidden = true;
  $("save").disabled = false;
  item.scrollIntoView({ block: "nearest" });
  return said;
}

// log shows a message as it passed, the newest first.
function log(way, message) {
  const list = $("messages"), item = document.createElement("li"), code = document.createElement("code");
  code.textContent = JSON.stringify(message).replace(/"token":"[^"]+/g, '"token":"•••').slice(0, 2000);
  item.append(`${way} ${new Date().toLocaleTimeString(document.documentElement.lang)} `, code);
  list.prepend(item);
  while (list.children.length > MESSAGES) { list.lastChild.remove(); }
  $("frames").textContent = words("frames", frames.up, frames.down);
}

// turn shows what the last turn did when, once it is kept.
async function turn(tries = 6) {
  if (!$("keep").checked) { return; }
  await new Promise((done) => setTimeout(done, 700));
  try {
    const answer = await fetch(`${root.dataset.last}?device=${encodeURIComponent(device)}&lang=${document.documentElement.lang}`, { credentials: "same-origin", headers: { Accept: "text/html" } });
    const text = await answer.text();
    const shown = () => document.getElementById("last-turn").innerHTML, before = shown();
    if (answer.ok) { exchange("last-turn", text); }
    if (tries > 1 && shown() === before) { turn(tries - 1); }
  } catch { /* the picture stays as it was */ }
}

// What the person does.

async function listen(mode) {
  try { await microphone.start(); } catch (why) { noMicrophone(why); return false; }
  noMicrophone("");
  try { await connect(); } catch { return false; }
  outputs();
  if (mode === "manual" && (state === "speaking" || state === "thinking")) { interrupt(); }
  send({ type: "listen", state: "start", mode });
  microphone.begin();
  enter("listening");
  return true;
}

// wanted counts what was begun, so that a button that is let go while the microphone is asked for begins nothing.
let wanted = 0;

async function begin(mode) {
  release();
  push = mode === "manual";
  free = !push;
  const mine = ++wanted;
  enter(state);
  const on = await listen(mode);
  if (mine !== wanted) { if (on) { stopListening(); } return; }
  if (!on) { push = free = false; enter(state); }
}

function press() { if (!push) { begin("manual"); } }

function handsFree() { if (free) { release(); } else { begin("realtime"); } }

function release() {
  if (!push && !free) { return; }
  push = free = false;
  wanted++;
  if (microphone.open) { stopListening(); } else { enter(state === "listening" ? "idle" : state); }
}

async function stopListening() {
  await microphone.end();
  meter($("in"), 0);
  await codec?.flush();
  if (socket?.readyState === WebSocket.OPEN && codec) { send({ type: "listen", state: "stop" }); }
  enter(state === "listening" ? "thinking" : state);
  setTimeout(() => { if (state === "thinking" && !push && !free) { enter("idle"); } }, 15000);
}

function interrupt() {
  if (state !== "speaking" && state !== "thinking") { return; }
  cut = state === "speaking";
  speaker.drop();
  root.dataset.cut = performance.now();
  if (socket?.readyState === WebSocket.OPEN) { send({ type: "abort" }); }
  enter(free ? "listening" : "idle");
}

async function typed(event) {
  event.preventDefault();
  const field = $("text"), text = field.value.trim();
  if (!text) { return; }
  try { await connect(); } catch { return; }
  if (state === "speaking") { speaker.drop(); cut = true; }
  send({ type: "listen", state: "detect", text });
  field.value = "";
  enter("thinking");
}

// choose gives this browser another agent, from its next turn on.
async function choose(agent) {
  await ask("PUT", `/api/v1/devices/${encodeURIComponent(device)}/agent`, { agent });
  root.dataset.agent = agent;
}

// noMicrophone says why there is none, and what helps in this browser.
function noMicrophone(why) {
  for (const part of all("[data-why]")) { part.hidden = part.dataset.why !== why; }
  for (const part of all("[data-browser]")) { part.hidden = !navigator.userAgent.includes(part.dataset.browser); }
  $("no-microphone").hidden = !why;
  $("push").disabled = $("free").disabled = why === "insecure" || why === "browser";
}

function invented() {
  $("tools").replaceChildren(...[...tools.invented.values()].map((tool) => {
    const item = document.createElement("li"), button = document.createElement("button"), text = document.createElement("span");
    text.textContent = `${tool.name}: ${words("how-" + tool.how)}`;
    button.type = "button"; button.className = "quiet"; button.textContent = words("tool-remove");
    button.setAttribute("aria-label", `${words("tool-remove")} ${tool.name}`);
    button.onclick = () => { tools.remove(tool.name); invented(); };
    item.append(text, button);
    return item;
  }));
}

const button = $("push");
button.addEventListener("pointerdown", (event) => {
  if (event.button !== 0) { return; }
  button.setPointerCapture(event.pointerId);
  press();
});
for (const end of ["pointerup", "pointercancel"]) { button.addEventListener(end, () => { if (push) { release(); } }); }
button.addEventListener("click", (event) => { if (event.detail === 0) { push ? release() : press(); } });
const keys = () => $("keys").checked;
button.addEventListener("keydown", (event) => {
  if (!keys() || event.key !== " " && event.key !== "Enter") { return; }
  event.preventDefault();
  if (event.repeat) { return; }
  if (event.key === " ") { press(); } else if (push) { release(); } else { press(); }
});
button.addEventListener("keyup", (event) => {
  if (!keys() || event.key !== " ") { return; }
  event.preventDefault();
  release();
});
button.addEventListener("contextmenu", (event) => event.preventDefault());
root.addEventListener("keydown", (event) => { if (event.key === "Escape" && keys()) { interrupt(); } });
$("free").addEventListener("click", handsFree);
$("stop").addEventListener("click", interrupt);
$("form").addEventListener("submit", typed);
$("volume").addEventListener("input", () => speaker.volume(page.volume() / 100));
$("keep").addEventListener("change", () => { $("not-kept").hidden = $("keep").checked; socket?.close(1000); });
$("agent").addEventListener("change", () => { if (device && socket) { choose($("agent").value).catch((err) => say(err.message)); } });
$("save").addEventListener("click", () => {
  if (recording.parts.length === 0) { return; }
  const link = document.createElement("a");
  link.href = URL.createObjectURL(recording.wav());
  link.download = "talk.wav";
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60000);
});
$("tool-form").addEventListener("submit", (event) => {
  event.preventDefault();
  const tool = Object.fromEntries(new FormData(event.target));
  tools.set({ ...tool, seconds: Math.max(0, Math.min(120, Number(tool.seconds) || 0)) });
  invented();
});
window.addEventListener("pagehide", () => { socket?.close(1000); microphone.stop(); });
// Forms of the frame load the page anew: parts of another page would go without this script's sounds.
document.addEventListener("submit", (event) => { if (!root.contains(event.target)) { event.target.setAttribute("data-whole", ""); } }, true);
for (const part of all("[data-script]")) { part.hidden = false; }
// Where the sound goes can be chosen in some browsers, once the microphone is allowed.
async function outputs() {
  if (!AudioContext.prototype.setSinkId) { return; }
  const found = (await navigator.mediaDevices.enumerateDevices()).filter((d) => d.kind === "audiooutput" && d.label);
  $("sink").replaceChildren(...found.map((d) => new Option(d.label, d.deviceId)));
  $("sink-field").hidden = found.length < 2;
}
$("sink").addEventListener("change", () => speaker.context?.setSinkId($("sink").value).catch((err) => say(err.message)));
noMicrophone(whyNoMicrophone());
enter("off");
