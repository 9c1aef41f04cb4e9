// The microphone: blocks of 60 ms at 16 kHz, whatever the rate of the device is.
const BLOCK = 960;

registerProcessor("mic", class extends AudioWorkletProcessor {
  constructor() {
    super();
    this.resampler = new Resampler(sampleRate, 16000);
    this.begin();
    this.port.onmessage = ({ data }) => {
      if (data === "begin") { this.begin(); return; }
      if (this.filled > 0) { this.block.fill(0, this.filled); this.send(); }
      this.port.postMessage("flushed");
    };
  }

  begin() { this.block = new Int16Array(BLOCK); this.filled = 0; }

  send() {
    this.port.postMessage(this.block, [this.block.buffer]);
    this.begin();
  }

  process([channels]) {
    if (channels.length === 0) { return true; }
    let mono = channels[0];
    if (channels.length > 1) { mono = mono.map((v, i) => channels.reduce((sum, c) => sum + c[i], 0) / channels.length); }
    for (const v of this.resampler.write(mono)) {
      this.block[this.filled++] = Math.max(-32768, Math.min(32767, Math.round(v * 32767)));
      if (this.filled === BLOCK) { this.send(); }
    }
    return true;
  }
});
