// Opus by WebCodecs, where the browser has it: on secure origins, and not in all.
const up = { codec: "opus", sampleRate: 16000, numberOfChannels: 1, bitrate: 24000 };
const down = { codec: "opus", sampleRate: 48000, numberOfChannels: 1 };
const lengths = [60, 20]; // ms; some encoders refuse the longer one

const encoding = (ms) => ({ ...up, opus: { frameDuration: ms * 1000, application: "voip", usedtx: false } });

// opusLength returns how long the packets are that this browser can make and take, in ms; 0: none.
export async function opusLength() {
  if (!globalThis.AudioEncoder || !globalThis.AudioDecoder) { return 0; }
  try {
    if (!(await AudioDecoder.isConfigSupported(down)).supported) { return 0; }
    for (const ms of lengths) {
      if ((await AudioEncoder.isConfigSupported(encoding(ms))).supported) { return ms; }
    }
  } catch { /* a browser that knows the codec by another form */ }
  return 0;
}

// encoder makes packets of blocks of 16 kHz and gives them to send. Packets are numbered, since some browsers round their times.
export function encoder(ms, send, failed) {
  let n = 0;
  const codec = new AudioEncoder({
    output: (chunk) => { const packet = new Uint8Array(chunk.byteLength); chunk.copyTo(packet); send(packet); },
    error: failed,
  });
  codec.configure(encoding(ms));
  return {
    write(block) {
      const data = new AudioData({ format: "s16", sampleRate: 16000, numberOfFrames: block.length, numberOfChannels: 1, timestamp: n++ * block.length * 62.5, data: block });
      codec.encode(data);
      data.close();
    },
    flush: () => codec.flush().catch(() => {}),
    close() { if (codec.state !== "closed") { codec.close(); } },
  };
}

// decoder gives the sound of packets to play, with its rate, which is not always the one that was asked for.
export function decoder(play, failed) {
  let n = 0;
  const codec = new AudioDecoder({
    output: (data) => {
      const sound = new Float32Array(data.numberOfFrames);
      data.copyTo(sound, { planeIndex: 0, format: "f32-planar" });
      play(sound, data.sampleRate);
      data.close();
    },
    error: failed,
  });
  codec.configure(down);
  return {
    write(packet) { codec.decode(new EncodedAudioChunk({ type: "key", timestamp: n++ * 60000, data: packet })); },
    close() { if (codec.state !== "closed") { codec.close(); } },
  };
}
