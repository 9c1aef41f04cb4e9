// A small library with the functions of sherpa-onnx 1.13.8 that are used here. It recognises one token of the
// model's list for each 100 ms of loud sound, and speaks 100 ms of tone for each character.
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define STEP 1600

// What tests set and look at.
static int delay_ms, load_ms, refuse, live, steps, stopped, cut_short;
static char version[32] = "1.13.8";

static int *setting(const char *name) {
  struct { const char *name; int *at; } all[] = {
      {"delay", &delay_ms}, {"load", &load_ms}, {"refuse", &refuse}, {"live", &live}, {"steps", &steps}, {"stopped", &stopped}, {"mute", &cut_short}};
  for (int i = 0; i < 7; i++)
    if (strcmp(all[i].name, name) == 0) return all[i].at;
  abort();
}
void fake_set(const char *name, int32_t value) { __atomic_store_n(setting(name), value, __ATOMIC_SEQ_CST); }
int32_t fake_get(const char *name) { return __atomic_load_n(setting(name), __ATOMIC_SEQ_CST); }
void fake_version(const char *v) { snprintf(version, sizeof version, "%s", v); }

static void add(int *counter, int n) { __atomic_add_fetch(counter, n, __ATOMIC_SEQ_CST); }
static void rest(int ms) {
  struct timespec t = {ms / 1000, (ms % 1000) * 1000000L};
  if (ms > 0) nanosleep(&t, NULL);
}

// The structs, as the header has them.
typedef struct { const char *encoder, *decoder, *joiner; } OnlineTransducer;
typedef struct { const char *encoder, *decoder; } OnlineParaformer;
typedef struct { const char *model; } OneModel;
typedef struct {
  OnlineTransducer transducer; OnlineParaformer paraformer; OneModel zipformer2_ctc;
  const char *tokens; int32_t num_threads; const char *provider; int32_t debug;
  const char *model_type, *modeling_unit, *bpe_vocab, *tokens_buf; int32_t tokens_buf_size;
  OneModel nemo_ctc, t_one_ctc;
} OnlineModelConfig;
typedef struct { int32_t sample_rate, feature_dim; } FeatureConfig;
typedef struct { const char *graph; int32_t max_active; } FstDecoder;
typedef struct { const char *dict_dir, *lexicon, *rule_fsts; } Homophones;
typedef struct {
  FeatureConfig feat_config; OnlineModelConfig model_config; const char *decoding_method; int32_t max_active_paths;
  int32_t enable_endpoint; float rule1, rule2, rule3; const char *hotwords_file; float hotwords_score;
  FstDecoder ctc; const char *rule_fsts, *rule_fars; float blank_penalty; const char *hotwords_buf; int32_t hotwords_buf_size;
  Homophones hr;
} OnlineConfig;
typedef struct { const char *text, *tokens, *const *tokens_arr; float *timestamps; int32_t count; const char *json; } OnlineResult;

typedef struct { const char *encoder, *decoder, *language, *task; int32_t tail_paddings, token_times, segment_times; } Whisper;
typedef struct { const char *encoder, *decoder, *src, *tgt; int32_t use_pnc; } Canary;
typedef struct { const char *model, *language; int32_t use_itn; } SenseVoice;
typedef struct { const char *preprocessor, *encoder, *uncached, *cached, *merged; } Moonshine;
typedef struct {
  const char *adaptor, *llm, *embedding, *tokenizer, *system, *user; int32_t max_new; float temperature, top_p; int32_t seed;
  const char *language; int32_t itn; const char *hotwords;
} Nano;
typedef struct {
  const char *conv, *encoder, *decoder, *tokenizer; int32_t max_total, max_new; float temperature, top_p; int32_t seed; const char *hotwords;
} Qwen3;
typedef struct { const char *encoder, *decoder, *language; int32_t use_punct, use_itn; } Cohere;
typedef struct {
  OnlineTransducer transducer; OneModel paraformer, nemo_ctc; Whisper whisper; OneModel tdnn;
  const char *tokens; int32_t num_threads, debug; const char *provider, *model_type, *modeling_unit, *bpe_vocab, *telespeech_ctc;
  SenseVoice sense_voice; Moonshine moonshine; OnlineParaformer fire_red_asr; OneModel dolphin, zipformer_ctc; Canary canary;
  OneModel wenet_ctc, omnilingual, medasr; Nano funasr_nano; OneModel fire_red_asr_ctc; Qwen3 qwen3_asr; Cohere cohere_transcribe;
} OfflineModelConfig;
typedef struct {
  FeatureConfig feat_config; OfflineModelConfig model_config; struct { const char *model; float scale; } lm_config;
  const char *decoding_method; int32_t max_active_paths; const char *hotwords_file; float hotwords_score;
  const char *rule_fsts, *rule_fars; float blank_penalty; Homophones hr; FstDecoder ctc;
} OfflineConfig;
typedef struct {
  const char *text; float *timestamps; int32_t count; const char *tokens, *const *tokens_arr, *json, *lang, *emotion, *event;
  float *durations, *log_probs;
} OfflineResult;

typedef struct { const char *model, *lexicon, *tokens, *data_dir; float noise_scale, noise_scale_w, length_scale; const char *dict_dir; } Vits;
typedef struct { const char *acoustic_model, *vocoder, *lexicon, *tokens, *data_dir; float noise_scale, length_scale; const char *dict_dir; } Matcha;
typedef struct { const char *model, *voices, *tokens, *data_dir; float length_scale; const char *dict_dir, *lexicon, *lang; } Kokoro;
typedef struct { const char *model, *voices, *tokens, *data_dir; float length_scale; } Kitten;
typedef struct { const char *tokens, *encoder, *decoder, *vocoder, *data_dir, *lexicon; float feat_scale, t_shift, target_rms, guidance_scale; } Zipvoice;
typedef struct { const char *files[7]; int32_t cache; } Pocket;
typedef struct { const char *files[7]; } Supertonic;
typedef struct {
  struct {
    Vits vits; int32_t num_threads, debug; const char *provider; Matcha matcha; Kokoro kokoro; Kitten kitten; Zipvoice zipvoice;
    Pocket pocket; Supertonic supertonic;
  } model;
  const char *rule_fsts; int32_t max_num_sentences; const char *rule_fars; float silence_scale;
} TtsConfig;
typedef struct {
  float silence_scale, speed; int32_t sid; const float *reference; int32_t reference_len, reference_rate; const char *reference_text;
  int32_t num_steps; const char *extra;
} GenerationConfig;
typedef struct { const float *samples; int32_t n, sample_rate; } Audio;

// Objects.
typedef struct { char *token[64]; int tokens; char rules[256]; } Model;
typedef struct { Model *of; float *samples; int n, taken, said, finished; char text[4096]; } Stream;

static int readable(const char *file) {
  char first[1024];
  if (!file) return 0;
  snprintf(first, sizeof first, "%s", file);
  first[strcspn(first, ",")] = 0; // of a list
  FILE *f = fopen(first, "rb");
  if (f) fclose(f);
  return f != NULL;
}

static Model *load(const char *tokens, int32_t threads, const char *provider) {
  rest(fake_get("load"));
  if (fake_get("refuse") || threads < 1 || !provider || strcmp(provider, "cpu") || !readable(tokens)) return NULL;
  Model *m = calloc(1, sizeof *m);
  char line[512];
  FILE *f = fopen(tokens, "r");
  while (m->tokens < 64 && fgets(line, sizeof line, f)) {
    char *cut = strrchr(line, ' ');
    if (!cut) continue;
    *cut = 0;
    m->token[m->tokens++] = strdup(line);
  }
  fclose(f);
  add(&live, 1);
  return m;
}

static void unload(Model *m) {
  for (int i = 0; i < m->tokens; i++) free(m->token[i]);
  free(m);
  add(&live, -1);
}

static Stream *begin(Model *m) {
  Stream *s = calloc(1, sizeof *s);
  s->of = m;
  add(&live, 1);
  return s;
}

static void end(Stream *s) {
  free(s->samples);
  free(s);
  add(&live, -1);
}

static void accept(Stream *s, int32_t rate, const float *samples, int32_t n) {
  if (rate != 16000 || s->finished) abort();
  s->samples = realloc(s->samples, (s->n + n) * sizeof(float));
  memcpy(s->samples + s->n, samples, n * sizeof(float));
  s->n += n;
}

static void hear(Stream *s, int n) {
  double sum = 0;
  for (int i = 0; i < n; i++) sum += fabs(s->samples[s->taken + i]);
  s->taken += n;
  if (sum / n > 0.01 && s->of->tokens) strncat(s->text, s->of->token[s->said++ % s->of->tokens], sizeof s->text - strlen(s->text) - 1);
}

const char *SherpaOnnxGetVersionStr(void) { return version; }

void *SherpaOnnxCreateOnlineRecognizer(const OnlineConfig *c) {
  const OnlineModelConfig *m = &c->model_config;
  int transducer = readable(m->transducer.encoder) && readable(m->transducer.decoder) && readable(m->transducer.joiner);
  int paraformer = readable(m->paraformer.encoder) && readable(m->paraformer.decoder);
  if (transducer == paraformer || c->feat_config.sample_rate != 16000 || c->feat_config.feature_dim != 80 || c->enable_endpoint ||
      !c->decoding_method || strcmp(c->decoding_method, "greedy_search") || c->hotwords_file || c->hr.rule_fsts || m->t_one_ctc.model)
    return NULL;
  return load(m->tokens, m->num_threads, m->provider);
}
void SherpaOnnxDestroyOnlineRecognizer(Model *m) { unload(m); }
void *SherpaOnnxCreateOnlineStream(Model *m) { return begin(m); }
void SherpaOnnxDestroyOnlineStream(Stream *s) { end(s); }
void SherpaOnnxOnlineStreamAcceptWaveform(Stream *s, int32_t rate, const float *samples, int32_t n) { accept(s, rate, samples, n); }
void SherpaOnnxOnlineStreamInputFinished(Stream *s) { s->finished = 1; }
int32_t SherpaOnnxIsOnlineStreamReady(Model *m, Stream *s) {
  if (s->of != m) abort();
  return s->n - s->taken >= STEP;
}
void SherpaOnnxDecodeOnlineStream(Model *m, Stream *s) {
  if (s->of != m) abort();
  rest(fake_get("delay"));
  hear(s, STEP);
  add(&steps, 1);
}
OnlineResult *SherpaOnnxGetOnlineStreamResult(Model *m, Stream *s) {
  if (s->of != m) abort();
  OnlineResult *r = calloc(1, sizeof *r);
  r->text = strdup(s->text);
  add(&live, 1);
  return r;
}
void SherpaOnnxDestroyOnlineRecognizerResult(OnlineResult *r) {
  free((void *)r->text);
  free(r);
  add(&live, -1);
}

void *SherpaOnnxCreateOfflineRecognizer(const OfflineConfig *c) {
  const OfflineModelConfig *m = &c->model_config;
  int sense = readable(m->sense_voice.model) && m->sense_voice.use_itn == 1;
  int paraformer = readable(m->paraformer.model);
  int whisper = readable(m->whisper.encoder) && readable(m->whisper.decoder) && m->whisper.tail_paddings == -1 && !strcmp(m->whisper.task, "transcribe");
  if (sense + paraformer + whisper != 1 || c->feat_config.sample_rate != 16000 || c->decoding_method || c->ctc.graph || m->cohere_transcribe.encoder)
    return NULL;
  return load(m->tokens, m->num_threads, m->provider);
}
void SherpaOnnxDestroyOfflineRecognizer(Model *m) { unload(m); }
void *SherpaOnnxCreateOfflineStream(Model *m) { return begin(m); }
void SherpaOnnxDestroyOfflineStream(Stream *s) { end(s); }
void SherpaOnnxAcceptWaveformOffline(Stream *s, int32_t rate, const float *samples, int32_t n) { accept(s, rate, samples, n); }
void SherpaOnnxDecodeOfflineStream(Model *m, Stream *s) {
  if (s->of != m) abort();
  rest(fake_get("delay"));
  while (s->n - s->taken >= STEP) hear(s, STEP);
  add(&steps, 1);
}
OfflineResult *SherpaOnnxGetOfflineStreamResult(Stream *s) {
  OfflineResult *r = calloc(1, sizeof *r);
  r->text = strdup(s->text);
  r->lang = strdup("<|zh|>");
  add(&live, 1);
  return r;
}
void SherpaOnnxDestroyOfflineRecognizerResult(OfflineResult *r) {
  free((void *)r->text);
  free((void *)r->lang);
  free(r);
  add(&live, -1);
}

void *SherpaOnnxCreateOfflineTts(const TtsConfig *c) {
  int vits = readable(c->model.vits.model), matcha = readable(c->model.matcha.acoustic_model) && readable(c->model.matcha.vocoder);
  int kokoro = readable(c->model.kokoro.model) && readable(c->model.kokoro.voices) && readable(c->model.kokoro.lexicon);
  if (vits + matcha + kokoro != 1 || c->max_num_sentences != 1 || c->model.supertonic.files[6]) return NULL;
  const char *tokens = vits ? c->model.vits.tokens : matcha ? c->model.matcha.tokens : c->model.kokoro.tokens;
  Model *m = load(tokens, c->model.num_threads, c->model.provider);
  if (m && c->rule_fsts) snprintf(m->rules, sizeof m->rules, "%s", c->rule_fsts);
  return m;
}
void SherpaOnnxDestroyOfflineTts(Model *m) { unload(m); }
int32_t SherpaOnnxOfflineTtsSampleRate(Model *m) { return 22050; }
int32_t SherpaOnnxOfflineTtsNumSpeakers(Model *m) { return 4; }
// The loudness of what it speaks is that of the speaker, one tenth each.
Audio *SherpaOnnxOfflineTtsGenerateWithConfig(Model *m, const char *text, const GenerationConfig *c,
                                              int32_t (*put)(const float *, int32_t, float, void *), void *arg) {
  if (c->reference || c->reference_text || c->extra || c->silence_scale < 0.1) abort();
  rest(fake_get("delay"));
  add(&steps, 1);
  if (fake_get("mute")) return NULL;
  Audio *a = calloc(1, sizeof *a);
  int n = 0;
  for (const char *p = text; *p; p++) n += (*p & 0xc0) != 0x80;
  a->n = n * 2205 / c->speed;
  a->sample_rate = 22050;
  float *samples = calloc(a->n + 1, sizeof(float));
  for (int i = 0; i < a->n; i++) samples[i] = 0.1 * (c->sid + 1);
  a->samples = samples;
  add(&live, 1);
  if (put && !put(samples, a->n, 1, arg)) add(&stopped, 1);
  return a;
}
void SherpaOnnxDestroyOfflineTtsGeneratedAudio(Audio *a) {
  free((void *)a->samples);
  free(a);
  add(&live, -1);
}

// An embedding tells the pitch of a voice: each of its numbers is how near that is to one of 64 pitches.
#define DIM 64
typedef struct { const char *model; int32_t num_threads, debug; const char *provider; } ExtractorConfig;
typedef struct { float score; const char *name; } SpeakerMatch;
typedef struct { SpeakerMatch *matches; int32_t count; } SpeakerMatches;
typedef struct { int count; char name[64][128]; float mean[64][DIM]; } Manager;

void *SherpaOnnxCreateSpeakerEmbeddingExtractor(const ExtractorConfig *c) {
  rest(fake_get("load"));
  if (fake_get("refuse") || c->num_threads < 1 || !c->provider || strcmp(c->provider, "cpu") || !readable(c->model)) return NULL;
  add(&live, 1);
  return calloc(1, sizeof(Model));
}
void SherpaOnnxDestroySpeakerEmbeddingExtractor(Model *m) { unload(m); }
int32_t SherpaOnnxSpeakerEmbeddingExtractorDim(Model *m) { return DIM; }
void *SherpaOnnxSpeakerEmbeddingExtractorCreateStream(Model *m) { return begin(m); }
int32_t SherpaOnnxSpeakerEmbeddingExtractorIsReady(Model *m, Stream *s) {
  if (s->of != m || !s->finished) abort();
  return s->n >= 400;
}
float *SherpaOnnxSpeakerEmbeddingExtractorComputeEmbedding(Model *m, Stream *s) {
  rest(fake_get("delay"));
  int rises = 0;
  for (int i = 1; i < s->n; i++) rises += s->samples[i - 1] < 0 && s->samples[i] >= 0;
  double octave = rises ? log2(rises * 16000.0 / s->n / 50) : -99;
  float *v = calloc(DIM, sizeof *v);
  for (int k = 0; k < DIM; k++) v[k] = exp(-pow((octave - k * 0.1) / 0.15, 2) / 2);
  add(&steps, 1);
  add(&live, 1);
  return v;
}
void SherpaOnnxSpeakerEmbeddingExtractorDestroyEmbedding(float *v) {
  free(v);
  add(&live, -1);
}

void *SherpaOnnxCreateSpeakerEmbeddingManager(int32_t dim) {
  if (dim != DIM) return NULL;
  add(&live, 1);
  return calloc(1, sizeof(Manager));
}
void SherpaOnnxDestroySpeakerEmbeddingManager(Manager *m) {
  free(m);
  add(&live, -1);
}
static void normalize(float *v) {
  double sum = 0;
  for (int k = 0; k < DIM; k++) sum += v[k] * v[k];
  for (int k = 0; sum > 0 && k < DIM; k++) v[k] /= sqrt(sum);
}
int32_t SherpaOnnxSpeakerEmbeddingManagerAddListFlattened(Manager *m, const char *name, const float *v, int32_t n) {
  for (int i = 0; i < m->count; i++)
    if (strcmp(m->name[i], name) == 0) return 0;
  if (m->count == 64) abort();
  snprintf(m->name[m->count], sizeof m->name[0], "%s", name);
  for (int i = 0; i < n; i++)
    for (int k = 0; k < DIM; k++) m->mean[m->count][k] += v[i * DIM + k] / n;
  normalize(m->mean[m->count++]);
  return 1;
}
SpeakerMatches *SherpaOnnxSpeakerEmbeddingManagerGetBestMatches(Manager *m, const float *v, float threshold, int32_t n) {
  SpeakerMatch all[64];
  float own[DIM];
  int count = 0;
  memcpy(own, v, sizeof own);
  normalize(own);
  for (int i = 0; i < m->count; i++) {
    SpeakerMatch match = {0, m->name[i]};
    for (int k = 0; k < DIM; k++) match.score += own[k] * m->mean[i][k];
    if (match.score < threshold) continue;
    int at = count++;
    for (; at > 0 && all[at - 1].score < match.score; at--) all[at] = all[at - 1];
    all[at] = match;
  }
  if (count > n) count = n;
  if (count <= 0) return NULL;
  SpeakerMatches *r = calloc(1, sizeof *r);
  r->matches = calloc(count, sizeof *r->matches);
  r->count = count;
  for (int i = 0; i < count; i++) r->matches[i] = (SpeakerMatch){all[i].score, strdup(all[i].name)};
  add(&live, 1);
  return r;
}
void SherpaOnnxSpeakerEmbeddingManagerFreeBestMatches(SpeakerMatches *r) {
  for (int i = 0; i < r->count; i++) free((void *)r->matches[i].name);
  free(r->matches);
  free(r);
  add(&live, -1);
}
