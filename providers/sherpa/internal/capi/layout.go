package capi

// Structs of the C interface, in its order, with Go's alignment, which is C's for these types on amd64 and
// arm64. Of configurations that the library reads to their end a rest of zeros follows what is set here:
// it takes a zero for "as usual", so that what stands behind the last field in use may change its layout.

// featureConfig is SherpaOnnxFeatureConfig.
type featureConfig struct{ sampleRate, featureDim int32 }

// onlineConfig is SherpaOnnxOnlineRecognizerConfig.
type onlineConfig struct {
	feature featureConfig
	model   onlineModelConfig
	method  *byte // decoding_method
	rest    [256]byte
}

// onlineModelConfig is SherpaOnnxOnlineModelConfig.
type onlineModelConfig struct {
	transducer    [3]*byte // encoder, decoder, joiner
	paraformer    [2]*byte // encoder, decoder
	zipformer2CTC *byte
	tokens        *byte
	threads       int32
	provider      *byte
	debug         int32
	kind          *byte // model_type
	unit          *byte // modeling_unit
	bpeVocab      *byte
	tokensBuf     *byte
	tokensBufSize int32
	nemoCTC       *byte
	toneCTC       *byte
}

// onlineResult is SherpaOnnxOnlineRecognizerResult.
type onlineResult struct {
	text       *byte
	tokens     *byte
	tokensArr  **byte
	timestamps *float32
	count      int32
	json       *byte
}

// offlineConfig is SherpaOnnxOfflineRecognizerConfig up to sense_voice.
type offlineConfig struct {
	feature featureConfig
	model   offlineModelConfig
	rest    [1024]byte
}

// offlineModelConfig is SherpaOnnxOfflineModelConfig up to sense_voice.
type offlineModelConfig struct {
	transducer     [3]*byte // encoder, decoder, joiner
	paraformer     *byte
	nemoCTC        *byte
	whisper        whisperConfig
	tdnn           *byte
	tokens         *byte
	threads        int32
	debug          int32
	provider       *byte
	kind           *byte // model_type
	unit           *byte // modeling_unit
	bpeVocab       *byte
	telespeechCTC  *byte
	senseVoice     *byte
	senseLanguage  *byte
	senseUseNumber int32 // use_itn
}

// whisperConfig is SherpaOnnxOfflineWhisperModelConfig.
type whisperConfig struct {
	encoder, decoder, language, task *byte
	tailPaddings                     int32
	tokenTimes, segmentTimes         int32
}

// offlineResult is SherpaOnnxOfflineRecognizerResult up to lang.
type offlineResult struct {
	text       *byte
	timestamps *float32
	count      int32
	tokens     *byte
	tokensArr  **byte
	json       *byte
	lang       *byte
}

// voiceConfig is SherpaOnnxOfflineTtsConfig.
type voiceConfig struct {
	model        voiceModelConfig
	ruleFsts     *byte
	maxSentences int32
	ruleFars     *byte
	silenceScale float32
	rest         [256]byte
}

// voiceModelConfig is SherpaOnnxOfflineTtsModelConfig.
type voiceModelConfig struct {
	vits       vitsConfig
	threads    int32
	debug      int32
	provider   *byte
	matcha     matchaConfig
	kokoro     kokoroConfig
	kitten     kittenConfig
	zipvoice   zipvoiceConfig
	pocket     pocketConfig
	supertonic [7]*byte
}

// vitsConfig is SherpaOnnxOfflineTtsVitsModelConfig.
type vitsConfig struct {
	model, lexicon, tokens, dataDir      *byte
	noiseScale, noiseScaleW, lengthScale float32
	dictDir                              *byte
}

// matchaConfig is SherpaOnnxOfflineTtsMatchaModelConfig.
type matchaConfig struct {
	acoustic, vocoder, lexicon, tokens, dataDir *byte
	noiseScale, lengthScale                     float32
	dictDir                                     *byte
}

// kokoroConfig is SherpaOnnxOfflineTtsKokoroModelConfig.
type kokoroConfig struct {
	model, voices, tokens, dataDir *byte
	lengthScale                    float32
	dictDir, lexicon, lang         *byte
}

// kittenConfig is SherpaOnnxOfflineTtsKittenModelConfig.
type kittenConfig struct {
	model, voices, tokens, dataDir *byte
	lengthScale                    float32
}

// zipvoiceConfig is SherpaOnnxOfflineTtsZipvoiceModelConfig.
type zipvoiceConfig struct {
	files  [6]*byte
	scales [4]float32
}

// pocketConfig is SherpaOnnxOfflineTtsPocketModelConfig.
type pocketConfig struct {
	files [7]*byte
	cache int32
}

// generationConfig is SherpaOnnxGenerationConfig.
type generationConfig struct {
	silenceScale  float32
	speed         float32
	speaker       int32
	reference     *float32
	referenceSize int32
	referenceRate int32
	referenceText *byte
	steps         int32
	extra         *byte
	rest          [64]byte
}

// voiceResult is SherpaOnnxGeneratedAudio.
type voiceResult struct {
	samples *float32
	n       int32
	rate    int32
}

// extractorConfig is SherpaOnnxSpeakerEmbeddingExtractorConfig.
type extractorConfig struct {
	model    *byte
	threads  int32
	debug    int32
	provider *byte
	rest     [64]byte
}

// speakerMatch is SherpaOnnxSpeakerEmbeddingManagerSpeakerMatch.
type speakerMatch struct {
	score float32
	name  *byte
}

// speakerMatches is SherpaOnnxSpeakerEmbeddingManagerBestMatchesResult.
type speakerMatches struct {
	matches *speakerMatch
	count   int32
}
