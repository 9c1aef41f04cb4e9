// The loudspeaker: plays packets one after the other. It begins when 120 ms are there, or when no more came for as long.
const START = 0.12 * sampleRate, MOST = 40, REPORT = 0.1 * sampleRate, FADE = 128;

registerProcessor("play", class extends AudioWorkletProcessor {
  constructor() {
    super();
    this.queue = []; this.head = 0; this.held = 0;
    this.playing = false; this.waited = 0; this.fading = 0;
    this.since = 0; this.report = { overflow: 0, held: 0, peak: 0 };
    this.port.onmessage = ({ data }) => (data === "drop" ? this.drop() : this.take(data));
  }

  take(packet) {
    if (this.queue.length >= MOST) { this.report.overflow++; return; }
    this.queue.push(packet);
    this.held += packet.length;
    this.waited = 0;
  }

  // drop lets what plays fade within 3 ms, and forgets the rest.
  drop() {
    if (this.playing && this.queue.length > 0) {
      const rest = this.queue[0].subarray(this.head, this.head + FADE);
      this.queue = [rest.map((v, i) => v * (1 - i / FADE))];
      this.held = rest.length;
    } else { this.queue = []; this.held = 0; }
    this.head = 0;
  }

  process(_, [[out]]) {
    if (!this.playing && this.held > 0) {
      this.waited += out.length;
      this.playing = this.held >= START || this.waited >= START;
    }
    for (let i = 0; this.playing && i < out.length;) {
      const packet = this.queue[0];
      if (!packet) { this.playing = false; this.waited = 0; break; }
      const n = Math.min(out.length - i, packet.length - this.head);
      for (let k = 0; k < n; k++) {
        const v = packet[this.head + k];
        out[i + k] = v;
        if (v > this.report.peak || -v > this.report.peak) { this.report.peak = Math.abs(v); }
      }
      i += n; this.head += n; this.held -= n;
      if (this.head === packet.length) { this.queue.shift(); this.head = 0; }
    }
    if ((this.since += out.length) >= REPORT) {
      this.since = 0;
      this.report.held = this.held / sampleRate;
      this.port.postMessage(this.report);
      this.report.peak = 0;
    }
    return true;
  }
});
