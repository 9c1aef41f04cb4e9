// Resampler changes the rate of sound by a windowed sinc, which lets nothing pass above half of the lower rate. It is a
// global, because worklets cannot import everywhere.
globalThis.Resampler = class {
  constructor(from, to) {
    this.step = from / to;
    const scale = 0.92 * Math.min(1, to / from);
    this.half = Math.ceil(16 / scale);
    this.phases = 256;
    const taps = 2 * this.half;
    this.table = new Float32Array((this.phases + 1) * taps);
    for (let phase = 0; phase <= this.phases; phase++) {
      for (let k = 0; k < taps; k++) {
        const t = phase / this.phases + this.half - 1 - k, x = Math.PI * scale * t;
        const window = 0.42 + 0.5 * Math.cos(Math.PI * t / this.half) + 0.08 * Math.cos(2 * Math.PI * t / this.half);
        this.table[phase * taps + k] = Math.abs(t) >= this.half ? 0 : scale * window * (x === 0 ? 1 : Math.sin(x) / x);
      }
    }
    this.reset();
  }

  reset() {
    this.kept = new Float32Array(this.half);
    this.at = this.half;
  }

  // write takes sound at the one rate and returns it at the other, as far as it is known.
  write(sound) {
    if (this.step === 1) { return sound; }
    const all = new Float32Array(this.kept.length + sound.length), taps = 2 * this.half;
    all.set(this.kept);
    all.set(sound, this.kept.length);
    const out = new Float32Array(Math.max(0, Math.ceil((all.length - this.half - this.at) / this.step)));
    let n = 0;
    for (; this.at + this.half < all.length && n < out.length; this.at += this.step) {
      const whole = Math.floor(this.at), from = whole - this.half + 1;
      const row = Math.round((this.at - whole) * this.phases) * taps;
      let sum = 0;
      for (let k = 0; k < taps; k++) { sum += all[from + k] * this.table[row + k]; }
      out[n++] = sum;
    }
    const used = Math.max(0, Math.floor(this.at) - this.half);
    this.kept = all.slice(used);
    this.at -= used;
    return n === out.length ? out : out.subarray(0, n);
  }
};
