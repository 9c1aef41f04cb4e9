# Makes tiny models with the interfaces of those that sherpa-onnx loads: they prove loading and streaming, and
# recognise loudness only. Needs the Python package onnx. Usage: tiny.py FOLDER
import os, sys
import numpy as np
import onnx
from onnx import TensorProto as T, helper as h, numpy_helper as nh

WORDS = "今天 天气 怎么样 明天 呢 好 的 吗".split()
F, I64, I32 = T.FLOAT, T.INT64, T.INT32
OUT = sys.argv[1]


def save(name, nodes, inputs, outputs, inits, meta):
    graph = h.make_graph(nodes, "tiny", [h.make_tensor_value_info(*i) for i in inputs],
                         [h.make_tensor_value_info(*o) for o in outputs], [nh.from_array(v, k) for k, v in inits.items()])
    model = h.make_model(graph, opset_imports=[h.make_opsetid("", 13)], ir_version=8)
    h.set_model_props(model, {k: str(v) for k, v in meta.items()})
    onnx.checker.check_model(model)
    os.makedirs(os.path.dirname(os.path.join(OUT, name)), exist_ok=True)
    onnx.save(model, os.path.join(OUT, name))


def tokens(folder, first, name="tokens.txt", words=WORDS):
    with open(os.path.join(OUT, folder, name), "w") as f:
        for i, w in enumerate(first + words):
            f.write(f"{w} {i}\n")


def f32(*a, **k): return np.array(*a, dtype=np.float32, **k)
def i64(*a): return np.array(a, dtype=np.int64)


def zipformer():  # one word for each chunk of 320 ms that is loud
    V = 1 + len(WORDS)
    states = [("k", F, [4, "N", 4]), ("n", F, [1, "N", 4, 6]), ("v1", F, [4, "N", 4]), ("v2", F, [4, "N", 4]),
              ("c1", F, ["N", 8, 1]), ("c2", F, ["N", 8, 1]), ("embed", F, ["N", 128, 3, 19]), ("lens", I64, ["N"])]
    mask = np.zeros((1, 16, V), np.float32); mask[:, 0, :] = 1
    save("zipformer/encoder.int8.onnx",
         [h.make_node("ReduceMean", ["x"], ["e"], axes=[1, 2], keepdims=1), h.make_node("Add", ["e", "eight"], ["p"]),
          h.make_node("Mul", ["p", "mask"], ["encoder_out"])] + [h.make_node("Identity", [s[0]], ["new_" + s[0]]) for s in states],
         [("x", F, ["N", 45, 80])] + states, [("encoder_out", F, ["N", 16, V])] + [("new_" + s[0], s[1], s[2]) for s in states],
         {"eight": f32([8]), "mask": mask},
         dict(model_type="zipformer2", encoder_dims=8, query_head_dims=4, value_head_dims=4, num_heads=1, num_encoder_layers=1,
              cnn_module_kernels=3, left_context_len=4, T=45, decode_chunk_len=32))
    table = np.zeros((V, V), np.float32)
    for k in range(V): table[k, k % (V - 1) + 1] = 1
    save("zipformer/decoder.onnx",
         [h.make_node("Gather", ["y", "one"], ["last"], axis=1), h.make_node("Gather", ["table", "last"], ["decoder_out"], axis=0)],
         [("y", I64, ["N", 2])], [("decoder_out", F, ["N", V])], {"one": np.array(1, np.int64), "table": table}, dict(vocab_size=V, context_size=2))
    blank = np.zeros((1, V), np.float32); blank[0, 0] = .5
    save("zipformer/joiner.int8.onnx", [h.make_node("Mul", ["encoder_out", "decoder_out"], ["m"]), h.make_node("Add", ["m", "blank"], ["logit"])],
         [("encoder_out", F, ["N", V]), ("decoder_out", F, ["N", V])], [("logit", F, ["N", V])], {"blank": blank}, dict(joiner_dim=V))
    tokens("zipformer", ["<blk>"])


def rows(V, first, n):  # a word for each three frames, with a blank behind it
    p = np.zeros((n, V), np.float32)
    for t in range(n):
        p[t, t + 1 if t < first else 0 if t % 3 == 2 else first + 1 + (t // 3) % len(WORDS)] = 1
    return p


FRAMES = [h.make_node("Shape", ["x"], ["shape"]), h.make_node("Gather", ["shape", "axis"], ["T"], axis=0)]


def sensevoice():
    V = 5 + len(WORDS)
    save("sensevoice/model.int8.onnx",
         FRAMES + [h.make_node("Add", ["T", "four"], ["n"]), h.make_node("Slice", ["p", "zero", "n", "zero"], ["s"]),
                   h.make_node("Unsqueeze", ["s", "zero"], ["logits"])],
         [("x", F, ["N", "T", 560]), ("x_length", I32, ["N"]), ("language", I32, ["N"]), ("text_norm", I32, ["N"])], [("logits", F, ["N", "L", V])],
         {"axis": i64(1), "four": i64(4), "zero": i64(0), "p": rows(V, 4, 400)},
         dict(model_type="sense_voice_ctc", vocab_size=V, lfr_window_size=7, lfr_window_shift=6, normalize_samples=0, with_itn=14, without_itn=15,
              lang_auto=0, lang_zh=3, lang_en=4, lang_ja=11, lang_ko=12, lang_yue=7, neg_mean=",".join(["0"] * 560), inv_stddev=",".join(["1"] * 560)))
    tokens("sensevoice", ["<blank>", "<|zh|>", "<|NEUTRAL|>", "<|Speech|>", "<|withitn|>"])


def paraformer():
    V = 3 + len(WORDS)
    ids = np.zeros((400, V), np.float32)
    for t in range(400): ids[t, 3 + t % len(WORDS)] = 1
    save("paraformer/model.int8.onnx",
         FRAMES + [h.make_node("Div", ["T", "four"], ["n"]), h.make_node("Slice", ["p", "zero", "n", "zero"], ["s"]),
                   h.make_node("Unsqueeze", ["s", "zero"], ["logits"]), h.make_node("Cast", ["n"], ["token_num"], to=I64)],
         [("x", F, ["N", "T", 560]), ("lengths", I32, ["N"])], [("logits", F, ["N", "L", V]), ("token_num", I64, ["N"])],
         {"axis": i64(1), "four": i64(4), "zero": i64(0), "p": ids},
         dict(model_type="paraformer", vocab_size=V, lfr_window_size=7, lfr_window_shift=6, neg_mean=",".join(["0"] * 560), inv_stddev=",".join(["1"] * 560)))
    tokens("paraformer", ["<blank>", "<s>", "</s>"])


def streaming_paraformer():  # a word for each two frames of 60 ms
    V, D = 3 + len(WORDS), 8
    meta = dict(model_type="paraformer", vocab_size=V, lfr_window_size=7, lfr_window_shift=6, encoder_output_size=D, decoder_num_blocks=1,
                decoder_kernel_size=3, neg_mean=",".join(["0"] * 560), inv_stddev=",".join(["1"] * 560))
    save("paraformer-streaming/encoder.int8.onnx",
         [h.make_node("Slice", ["x", "zero", "D", "two"], ["enc"]), h.make_node("Identity", ["len"], ["enc_len"]),
          h.make_node("ReduceMean", ["x"], ["e"], axes=[2], keepdims=0), h.make_node("Mul", ["e", "nil"], ["z"]), h.make_node("Add", ["z", "half"], ["alphas"])],
         [("x", F, ["N", "T", 560]), ("len", I32, ["N"])], [("enc", F, ["N", "T", D]), ("enc_len", I32, ["N"]), ("alphas", F, ["N", "T"])],
         {"zero": i64(0), "D": i64(D), "two": i64(2), "nil": f32([0]), "half": f32([.5])}, meta)
    ids = np.zeros((64, V), np.float32)
    for t in range(64): ids[t, 3 + t % len(WORDS)] = 1
    save("paraformer-streaming/decoder.int8.onnx",
         [h.make_node("Shape", ["emb"], ["shape"]), h.make_node("Gather", ["shape", "one"], ["n"], axis=0), h.make_node("Slice", ["p", "zero", "n", "zero"], ["s"]),
          h.make_node("Unsqueeze", ["s", "zero"], ["logits"]), h.make_node("ArgMax", ["logits"], ["sample_ids"], axis=2, keepdims=0),
          h.make_node("Identity", ["cache"], ["new_cache"])],
         [("enc", F, ["N", "T", D]), ("enc_len", I32, ["N"]), ("emb", F, ["N", "L", D]), ("emb_len", I32, ["N"]), ("cache", F, ["N", D, "K"])],
         [("logits", F, ["N", "L", V]), ("sample_ids", I64, ["N", "L"]), ("new_cache", F, ["N", D, "K"])],
         {"one": i64(1), "zero": i64(0), "p": ids}, {})
    tokens("paraformer-streaming", ["<blank>", "<s>", "</s>"])


def whisper():  # the words in order, then the end
    V, n = 16, len(WORDS)
    meta = dict(model_type="whisper-tiny", n_mels=80, n_text_layer=1, n_text_ctx=32, n_text_state=4, n_vocab=V, sot=9, sot_index=0, eot=8, blank_id=15,
                translate=13, transcribe=12, is_multilingual=1, no_timestamps=14, no_speech=15, sot_sequence="9,10,12",
                all_language_tokens="10,11", all_language_codes="zh,en")
    save("whisper/tiny-encoder.int8.onnx",
         [h.make_node("ReduceMean", ["mel"], ["m"], axes=[1, 2], keepdims=1), h.make_node("Unsqueeze", ["m", "zero"], ["u"]), h.make_node("Expand", ["u", "shape"], ["k"]),
          h.make_node("Identity", ["k"], ["v"])],
         [("mel", F, ["N", 80, "T"])], [("k", F, [1, "N", 5, 4]), ("v", F, [1, "N", 5, 4])], {"zero": i64(0), "shape": i64(1, 1, 5, 4)}, meta)
    table = np.full((64, V), -10, np.float32)
    for t in range(64): table[t, min(max(t - 3, 0), n)] = 5  # three tokens come first; and zh is the language
    table[:, 10] = 4
    save("whisper/tiny-decoder.int8.onnx",
         [h.make_node("Shape", ["tokens"], ["ts"]), h.make_node("Gather", ["ts", "one"], ["n"], axis=0), h.make_node("Add", ["offset", "n"], ["end"]),
          h.make_node("Slice", ["table", "offset", "end", "zero"], ["s"]), h.make_node("Unsqueeze", ["s", "zero"], ["logits"]),
          h.make_node("Identity", ["sk"], ["ok"]), h.make_node("Identity", ["sv"], ["ov"])],
         [("tokens", I64, ["N", "n"]), ("sk", F, [1, "N", 32, 4]), ("sv", F, [1, "N", 32, 4]), ("ck", F, [1, "N", "T", 4]), ("cv", F, [1, "N", "T", 4]), ("offset", I64, [1])],
         [("logits", F, ["N", "n", V]), ("ok", F, [1, "N", 32, 4]), ("ov", F, [1, "N", 32, 4])], {"one": i64(1), "zero": i64(0), "table": table}, {})
    import base64
    tokens("whisper", [], "tiny-tokens.txt", [base64.b64encode(w.encode()).decode() for w in WORDS])


def lexicon(folder):
    with open(os.path.join(OUT, folder, "lexicon.txt"), "w") as f:
        for i, c in enumerate("今天气怎么样明呢好的吗"): f.write(f"{c} a{i} b{i}\n")
    signs = ["_", "，", "。", "！", "？", ",", "."] + [x + str(i) for i in range(11) for x in "ab"]
    with open(os.path.join(OUT, folder, "tokens.txt"), "w") as f:
        for i, s in enumerate(signs): f.write(f"{s} {i}\n")
    return len(signs)


def tone(V, n):
    return np.stack([.3 * np.sin(np.arange(n) * .02 * (v + 1)) for v in range(V)]).astype(np.float32)


def vits():  # 50 ms of tone for each sign
    os.makedirs(os.path.join(OUT, "vits"), exist_ok=True)
    V = lexicon("vits")
    save("vits/model.onnx", [h.make_node("Gather", ["tone", "x"], ["g"], axis=0), h.make_node("Reshape", ["g", "flat"], ["y"])],
         [("x", I64, ["N", "L"]), ("x_length", I64, ["N"]), ("noise_scale", F, [1]), ("length_scale", F, [1]), ("noise_scale_w", F, [1])],
         [("y", F, ["N", 1, "S"])], {"tone": tone(V, 400), "flat": i64(1, 1, -1)},
         dict(model_type="vits", comment="tiny", language="Chinese", sample_rate=8000, n_speakers=1, add_blank=0, punctuation="， 。 ！ ？ , ."))


def matcha():
    os.makedirs(os.path.join(OUT, "matcha"), exist_ok=True)
    V = lexicon("matcha")
    save("matcha/model-steps-3.onnx",
         [h.make_node("Gather", ["table", "x"], ["g"], axis=0), h.make_node("Transpose", ["g"], ["mel"], perm=[0, 2, 1])],
         [("x", I64, ["N", "L"]), ("x_length", I64, ["N"]), ("noise_scale", F, [1]), ("length_scale", F, [1])], [("mel", F, ["N", 80, "L"])],
         {"table": tone(V, 80)}, dict(model_type="matcha-tts", sample_rate=8000, n_speakers=1, version=1, num_ode_steps=3, jieba=1, use_eos_bos=0, pad_id=0, has_espeak=0, language="Chinese", voice="zh"))
    save("matcha/hifigan_v2.onnx",
         [h.make_node("ReduceMean", ["mel"], ["m"], axes=[1], keepdims=1), h.make_node("Tile", ["m", "times"], ["audio"])],
         [("mel", F, ["N", 80, "L"])], [("audio", F, ["N", 1, "S"])], {"times": i64(1, 1, 400)}, dict(model_type="hifigan", sample_rate=8000))


def speaker():  # the mean of the logarithms of 80 bands over time, without what they have in common: the colour of a voice
    save("speaker/tiny.onnx",
         [h.make_node("ReduceMean", ["x"], ["bands"], axes=[1], keepdims=0), h.make_node("ReduceMean", ["bands"], ["mean"], axes=[1], keepdims=1),
          h.make_node("Sub", ["bands", "mean"], ["embs"])],
         [("x", F, ["N", "T", 80])], [("embs", F, ["N", 80])], {},
         dict(framework="3d-speaker", output_dim=80, sample_rate=16000, normalize_samples=1, language="Chinese"))


for make in (zipformer, sensevoice, paraformer, streaming_paraformer, whisper, vits, matcha, speaker):
    make()
