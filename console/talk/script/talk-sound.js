// Microphone and loudspeaker of the page.
import "./resample.js";

const here = (name) => new URL(name, import.meta.url);

// whyNoMicrophone names why there cannot be one; "": there may be.
export function whyNoMicrophone() {
  if (!globalThis.isSecureContext) { return "insecure"; }
  return navigator.mediaDevices?.getUserMedia && globalThis.AudioWorkletNode ? "" : "browser";
}

const reasons = { NotAllowedError: "refused", SecurityError: "refused", NotFoundError: "none", OverconstrainedError: "none", NotReadableError: "busy", AbortError: "busy" };

// Microphone gives blocks of 60 ms at 16 kHz while it is open.
export class Microphone {
  constructor(hear) { this.hear = hear; this.open = false; }

  // start asks for the microphone. It throws the name of the reason.
  async start() {
    if (this.node) { await this.context.resume(); return; }
    const why = whyNoMicrophone();
    if (why) { throw why; }
    try {
      this.stream = await navigator.mediaDevices.getUserMedia({ audio: { echoCancellation: true, noiseSuppression: true, autoGainControl: true, channelCount: 1 } });
    } catch (err) { throw reasons[err.name] || "browser"; }
    this.context = new AudioContext(); // at the rate of the microphone: another one is refused or ignored
    await this.context.audioWorklet.addModule(here("resample.js"));
    await this.context.audioWorklet.addModule(here("mic.worklet.js"));
    this.node = new AudioWorkletNode(this.context, "mic", { numberOfOutputs: 0 });
    this.node.port.onmessage = ({ data }) => {
      if (data === "flushed") { this.flushed?.(); } else if (this.open) { this.hear(data); }
    };
    this.context.createMediaStreamSource(this.stream).connect(this.node);
    this.stream.getAudioTracks()[0].addEventListener("ended", () => this.stop());
    await this.context.resume();
  }

  begin() { this.node.port.postMessage("begin"); this.open = true; }

  // end gives what is there of the last block, and then no more.
  async end() {
    if (!this.open) { return; }
    await Promise.race([new Promise((done) => { this.flushed = done; this.node.port.postMessage("flush"); }), new Promise((done) => setTimeout(done, 100))]);
    this.open = false;
  }

  stop() {
    this.open = false;
    this.stream?.getTracks().forEach((track) => track.stop());
    this.context?.close();
    this.node = this.stream = this.context = null;
  }
}

const START = 0.04, MOST = 40, PACKET = 0.06; // s; the server sends 240 ms at once

// Loudspeaker plays packets; where there are no worklets, as on plain http, each on its time.
export class Loudspeaker {
  constructor(report) { this.report = report; this.level = 1; this.overflow = 0; this.sources = new Set(); this.next = 0; }

  // start must be called where somebody has pressed something, or browsers stay silent.
  async start() {
    if (!this.context) {
      this.context = new AudioContext();
      this.gain = this.context.createGain();
      this.gain.gain.value = this.level;
      this.gain.connect(this.context.destination);
      if (this.context.audioWorklet) {
        await this.context.audioWorklet.addModule(here("play.worklet.js"));
        this.node = new AudioWorkletNode(this.context, "play", { numberOfInputs: 0, outputChannelCount: [1] });
        this.node.port.onmessage = ({ data }) => this.report(data);
        this.node.connect(this.gain);
      } else {
        setInterval(() => {
          const held = Math.max(0, this.next - this.context.currentTime);
          this.report({ overflow: this.overflow, held, peak: held > 0 ? this.peak : 0 });
        }, 100);
      }
    }
    if (this.context.state !== "running") { await Promise.race([this.context.resume(), new Promise((done) => setTimeout(done, 500))]); }
  }

  volume(level) {
    this.level = level;
    if (this.gain) { this.gain.gain.value = level; }
  }

  play(sound, rate) {
    if (!this.context) { return; }
    if (this.from !== rate) { this.from = rate; this.resampler = new Resampler(rate, this.context.sampleRate); }
    const out = this.resampler.write(sound).slice();
    if (out.length === 0) { return; }
    if (this.node) { this.node.port.postMessage(out, [out.buffer]); return; }
    const now = this.context.currentTime;
    if (this.next < now) { this.next = now + START; }
    if (this.next - now > MOST * PACKET) { this.overflow++; return; }
    const buffer = this.context.createBuffer(1, out.length, this.context.sampleRate), source = this.context.createBufferSource();
    buffer.copyToChannel(out, 0);
    source.buffer = buffer;
    source.connect(this.gain);
    source.onended = () => this.sources.delete(source);
    source.start(this.next);
    this.sources.add(source);
    this.next += buffer.duration;
    this.peak = sound.reduce((most, v) => Math.max(most, Math.abs(v)), 0);
  }

  drop() {
    this.resampler?.reset();
    this.node?.port.postMessage("drop");
    for (const source of this.sources) { source.stop(); }
    this.sources.clear();
    this.next = 0;
  }
}

// Recording holds both sides on one clock, the last ten minutes of them.
export class Recording {
  constructor() { this.parts = []; this.seconds = 0; }

  add(side, sound, rate) {
    const seconds = sound.length / rate, end = this.ends?.[side] || 0;
    const at = Math.max(performance.now() / 1000 - (side === 0 ? seconds : 0), end);
    (this.ends ||= [0, 0])[side] = at + seconds;
    this.parts.push({ side, at, sound, rate });
    this.seconds += seconds;
    while (this.seconds > 1200) { const first = this.parts.shift(); this.seconds -= first.sound.length / first.rate; }
  }

  // wav is both as one file: the user left, the server right.
  wav() {
    const RATE = 24000, from = this.parts[0].at, frames = Math.ceil((Math.max(...this.ends) - from) * RATE) + RATE / 10;
    const view = new DataView(new ArrayBuffer(44 + frames * 4));
    // RIFF size WAVE fmt_ 16, PCM in 2 channels, rate, bytes a second, 4 bytes a frame of 16 bits, data size
    [0x46464952, 36 + frames * 4, 0x45564157, 0x20746d66, 16, 0x20001, RATE, RATE * 4, 0x100004, 0x61746164, frames * 4]
      .forEach((word, i) => view.setUint32(i * 4, word, true));
    const change = {};
    for (const { side, at, sound, rate } of this.parts) {
      const resampler = change[side + ":" + rate] ||= new Resampler(rate, RATE);
      const floats = sound instanceof Int16Array ? Float32Array.from(sound, (v) => v / 32768) : sound;
      resampler.write(floats).forEach((v, i) => {
        const frame = Math.round((at - from) * RATE) + i;
        if (frame < frames) { view.setInt16(44 + frame * 4 + side * 2, Math.max(-1, Math.min(1, v)) * 32767, true); }
      });
    }
    return new Blob([view], { type: "audio/wav" });
  }
}
