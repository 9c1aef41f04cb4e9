// Package capi is the part of the C interface of sherpa-onnx that is used here. Its shared library is
// opened at run time: no C compiler and no headers are needed.
//
// The interface passes configurations as structs of many fields, which change between versions, so only
// versions whose layout is known are taken. Layouts are those of sherpa-onnx 1.13.8: the header
// sherpa-onnx/c-api/c-api.h, compared with the offsets in sherpa-onnx-asr.js, sherpa-onnx-tts.js and
// sherpa-onnx-speaker-diarization.js of the npm package sherpa-onnx 1.13.8 and, through its log of a configuration, with the library of the npm
// package sherpa-onnx-linux-x64 1.13.8. The offsets of the packages 1.13.2, 1.13.4, 1.13.6 and 1.13.7
// are the same.
//
// An object of the library belongs to one goroutine at a time, but for [Online] and [Offline], whose
// streams may be used by one goroutine each. The library ends the process on many a model that it does
// not like: files are to be checked before they are given to it.
package capi

import (
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"unsafe"

	"github.com/ebitengine/purego"
)

// DefaultFile is the name under which the system's loader finds the library.
const DefaultFile = "libsherpa-onnx-c-api.so"

// The oldest and the newest version whose layout is known.
const (
	Oldest = "1.13.2"
	Newest = "1.13.8"
)

// Failures of opening the library.
var (
	ErrMissing = errors.New("the library cannot be opened")
	ErrForeign = errors.New("the file is not a library of sherpa-onnx")
	ErrVersion = errors.New("this version of the library is not known")
)

// handle is the address of an object of the library; 0 stands for no object.
type handle uintptr

// Library is an open library. It stays open until the process ends.
type Library struct {
	version string

	online  onlineCalls
	offline offlineCalls
	voice   voiceCalls

	extractor extractorCalls
	manager   managerCalls
}

// onlineCalls are the functions of streaming recognition.
type onlineCalls struct {
	create  func(cfg *onlineConfig) handle                        `c:"SherpaOnnxCreateOnlineRecognizer"`
	destroy func(r handle)                                        `c:"SherpaOnnxDestroyOnlineRecognizer"`
	stream  func(r handle) handle                                 `c:"SherpaOnnxCreateOnlineStream"`
	release func(s handle)                                        `c:"SherpaOnnxDestroyOnlineStream"`
	accept  func(s handle, rate int32, samples *float32, n int32) `c:"SherpaOnnxOnlineStreamAcceptWaveform"`
	finish  func(s handle)                                        `c:"SherpaOnnxOnlineStreamInputFinished"`
	ready   func(r, s handle) int32                               `c:"SherpaOnnxIsOnlineStreamReady"`
	decode  func(r, s handle)                                     `c:"SherpaOnnxDecodeOnlineStream"`
	result  func(r, s handle) *onlineResult                       `c:"SherpaOnnxGetOnlineStreamResult"`
	forget  func(result *onlineResult)                            `c:"SherpaOnnxDestroyOnlineRecognizerResult"`
}

// offlineCalls are the functions of recognition of whole utterances.
type offlineCalls struct {
	create  func(cfg *offlineConfig) handle                       `c:"SherpaOnnxCreateOfflineRecognizer"`
	destroy func(r handle)                                        `c:"SherpaOnnxDestroyOfflineRecognizer"`
	stream  func(r handle) handle                                 `c:"SherpaOnnxCreateOfflineStream"`
	release func(s handle)                                        `c:"SherpaOnnxDestroyOfflineStream"`
	accept  func(s handle, rate int32, samples *float32, n int32) `c:"SherpaOnnxAcceptWaveformOffline"`
	decode  func(r, s handle)                                     `c:"SherpaOnnxDecodeOfflineStream"`
	result  func(s handle) *offlineResult                         `c:"SherpaOnnxGetOfflineStreamResult"`
	forget  func(result *offlineResult)                           `c:"SherpaOnnxDestroyOfflineRecognizerResult"`
}

// voiceCalls are the functions of speech synthesis.
type voiceCalls struct {
	create   func(cfg *voiceConfig) handle                                                          `c:"SherpaOnnxCreateOfflineTts"`
	destroy  func(v handle)                                                                         `c:"SherpaOnnxDestroyOfflineTts"`
	rate     func(v handle) int32                                                                   `c:"SherpaOnnxOfflineTtsSampleRate"`
	speakers func(v handle) int32                                                                   `c:"SherpaOnnxOfflineTtsNumSpeakers"`
	generate func(v handle, text string, cfg *generationConfig, callback, arg uintptr) *voiceResult `c:"SherpaOnnxOfflineTtsGenerateWithConfig"`
	forget   func(result *voiceResult)                                                              `c:"SherpaOnnxDestroyOfflineTtsGeneratedAudio"`
}

// extractorCalls are the functions that make embeddings of voices.
type extractorCalls struct {
	create  func(cfg *extractorConfig) handle                     `c:"SherpaOnnxCreateSpeakerEmbeddingExtractor"`
	destroy func(e handle)                                        `c:"SherpaOnnxDestroySpeakerEmbeddingExtractor"`
	dim     func(e handle) int32                                  `c:"SherpaOnnxSpeakerEmbeddingExtractorDim"`
	stream  func(e handle) handle                                 `c:"SherpaOnnxSpeakerEmbeddingExtractorCreateStream"`
	release func(s handle)                                        `c:"SherpaOnnxDestroyOnlineStream"`
	accept  func(s handle, rate int32, samples *float32, n int32) `c:"SherpaOnnxOnlineStreamAcceptWaveform"`
	finish  func(s handle)                                        `c:"SherpaOnnxOnlineStreamInputFinished"`
	ready   func(e, s handle) int32                               `c:"SherpaOnnxSpeakerEmbeddingExtractorIsReady"`
	compute func(e, s handle) *float32                            `c:"SherpaOnnxSpeakerEmbeddingExtractorComputeEmbedding"`
	forget  func(v *float32)                                      `c:"SherpaOnnxSpeakerEmbeddingExtractorDestroyEmbedding"`
}

// managerCalls are the functions that compare embeddings.
type managerCalls struct {
	create  func(dim int32) handle                                                 `c:"SherpaOnnxCreateSpeakerEmbeddingManager"`
	destroy func(m handle)                                                         `c:"SherpaOnnxDestroySpeakerEmbeddingManager"`
	add     func(m handle, name string, v *float32, n int32) int32                 `c:"SherpaOnnxSpeakerEmbeddingManagerAddListFlattened"`
	best    func(m handle, v *float32, threshold float32, n int32) *speakerMatches `c:"SherpaOnnxSpeakerEmbeddingManagerGetBestMatches"`
	forget  func(result *speakerMatches)                                           `c:"SherpaOnnxSpeakerEmbeddingManagerFreeBestMatches"`
}

// Open opens the shared object, asks its version, and finds every function by its C name. Its errors wrap
// [ErrMissing], [ErrForeign] or [ErrVersion].
func Open(file string) (*Library, error) {
	if runtime.GOARCH != "amd64" && runtime.GOARCH != "arm64" {
		return nil, fmt.Errorf("%w: the layout of its structs on %s is not known", ErrVersion, runtime.GOARCH)
	}
	so, err := purego.Dlopen(file, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMissing, err)
	}
	lib := &Library{}
	var version func() string
	if err := bind(so, "SherpaOnnxGetVersionStr", &version); err != nil {
		return nil, err
	}
	lib.version = version()
	if !known(lib.version) {
		return nil, fmt.Errorf("%w: it is %q, from %s to %s are", ErrVersion, lib.version, Oldest, Newest)
	}
	for _, calls := range []any{&lib.online, &lib.offline, &lib.voice, &lib.extractor, &lib.manager} {
		v := reflect.ValueOf(calls).Elem()
		for i := range v.NumField() {
			field := reflect.NewAt(v.Field(i).Type(), unsafe.Pointer(v.Field(i).UnsafeAddr())).Interface()
			if err := bind(so, v.Type().Field(i).Tag.Get("c"), field); err != nil {
				return nil, err
			}
		}
	}
	return lib, nil
}

// bind finds a function by its C name.
func bind(so uintptr, name string, function any) error {
	address, err := purego.Dlsym(so, name)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrForeign, err)
	}
	purego.RegisterFunc(function, address)
	return nil
}

// Version returns the library's own version, such as 1.13.8.
func (l *Library) Version() string { return l.version }

// known reports whether the layout of a version is known.
func known(version string) bool {
	v, ok := number(version)
	oldest, _ := number(Oldest)
	newest, _ := number(Newest)
	return ok && oldest <= v && v <= newest
}

// number makes a number of a version, by which versions can be compared.
func number(version string) (int, bool) {
	var major, minor, patch int
	var rest string
	n, _ := fmt.Sscanf(version+" end", "%d.%d.%d %s", &major, &minor, &patch, &rest)
	ok := n == 4 && rest == "end" && max(major, minor, patch) < 1000 && min(major, minor, patch) >= 0
	return (major*1000+minor)*1000 + patch, ok
}

// text makes a C string; "" is none.
func text(s string) *byte {
	if s == "" {
		return nil
	}
	return unsafe.SliceData(append([]byte(s), 0))
}

// longest is the longest string that is taken from the library, in bytes.
const longest = 1 << 20

// read copies a C string, [longest] bytes of it at most.
func read(s *byte) string {
	if s == nil {
		return ""
	}
	n := 0
	for n < longest && *(*byte)(unsafe.Add(unsafe.Pointer(s), n)) != 0 {
		n++
	}
	return string(unsafe.Slice(s, n))
}
