// Makes reference.json: the speech probabilities that onnxruntime gives for the
// WAV files beside this script, window by window, from one fresh state per file.
//
// How to run it (Node 20, in an empty folder; nothing is installed by scripts):
//   npm pack onnxruntime-node@1.24.3 onnxruntime-common@1.24.3 @ricky0123/vad-web@0.0.31
//   unpack the first two into node_modules/onnxruntime-node and
//   node_modules/onnxruntime-common, the third anywhere
//   copy this script and the WAV files there, then
//   node reference.mjs package/dist/silero_vad_v6.onnx *.wav > reference.json
import { createRequire } from 'node:module';
import { readFileSync } from 'node:fs';
import { basename } from 'node:path';

const ort = createRequire(process.cwd() + '/')('onnxruntime-node');
const [model, ...files] = process.argv.slice(2);
const session = await ort.InferenceSession.create(model, { executionProviders: ['cpu'] });
const WINDOW = 512, CONTEXT = 64;

// samples returns the data chunk of a 16 bit mono WAV file, scaled to -1..1.
function samples(path) {
  const b = readFileSync(path);
  for (let at = 12; at + 8 <= b.length;) {
    const size = b.readUInt32LE(at + 4);
    if (b.toString('latin1', at, at + 4) === 'data') {
      return Float32Array.from({ length: size >> 1 }, (_, i) => b.readInt16LE(at + 8 + 2 * i) / 32768);
    }
    at += 8 + size + (size & 1);
  }
  throw new Error(path + ': no data chunk');
}

const out = {};
for (const file of files) {
  const pcm = samples(file);
  let state = new ort.Tensor('float32', new Float32Array(2 * 128), [2, 1, 128]);
  const sr = new ort.Tensor('int64', BigInt64Array.from([16000n]), []);
  const input = new Float32Array(CONTEXT + WINDOW);
  const list = out[basename(file)] = [];
  for (let at = 0; at + WINDOW <= pcm.length; at += WINDOW) {
    input.copyWithin(0, WINDOW);
    input.set(pcm.subarray(at, at + WINDOW), CONTEXT);
    const r = await session.run({ input: new ort.Tensor('float32', input.slice(), [1, CONTEXT + WINDOW]), state, sr });
    state = r.stateN;
    list.push(Number(r.output.data[0].toFixed(7)));
  }
}
console.log(JSON.stringify(out));
