package local

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"sync"
	"unsafe"

	"github.com/ebitengine/purego"

	"xiaozhi/providers/thread"
)

const defaultVoice = "rms"

// voiceTraits describes a voice.
type voiceTraits struct {
	rate int     // Hz
	gain float32 // brings it to the loudness of rms and of espeak-ng: -20.6 dBFS RMS, measured on one sentence
}

// fliteVoices are the voices that can say anything. A map that is only read.
var fliteVoices = map[string]voiceTraits{
	"rms":   {16000, 1},
	"slt":   {16000, 0.58},
	"awb":   {16000, 1.07},
	"kal16": {16000, 2.1},
	"kal":   {8000, 0.84},
}

// flite speaks by the library, or without it by the program, which writes its
// sound when all of it is made.
type flite struct {
	voice string        // in place of one that flite does not have
	lib   *fliteLibrary // nil: the program
	path  string        // of the program
	slots chan struct{} // for processes
}

// findFlite takes the library if it can, else the program.
func findFlite(o Options, slots chan struct{}) (*flite, error) {
	var missing error
	if o.FlitePath == "" {
		lib, err := openFlite()
		if err == nil {
			lib.turn <- struct{}{}
			_, err = lib.load(o.EnglishVoice)
			<-lib.turn
			if err == nil {
				return &flite{voice: o.EnglishVoice, lib: lib}, nil
			}
		}
		missing = err
		o.FlitePath = "flite"
	}
	path, err := exec.LookPath(o.FlitePath)
	if err != nil {
		return nil, errors.Join(missing, err)
	}
	return &flite{voice: o.EnglishVoice, path: path, slots: slots}, nil
}

// known returns the voice, or the one in its place.
func (f *flite) known(voice string) string {
	if _, ok := fliteVoices[voice]; ok {
		return voice
	}
	return f.voice
}

func (f *flite) traits(voice string) voiceTraits { return fliteVoices[f.known(voice)] }

// describe names what was found.
func (f *flite) describe() string {
	from := "program"
	if f.lib != nil {
		from = f.lib.file
	}
	return fmt.Sprintf("flite (%s, voice %s)", from, f.voice)
}

func (f *flite) speak(ctx context.Context, text, voice string, put func([]int16)) error {
	voice = f.known(voice)
	if f.lib != nil {
		return f.lib.speak(ctx, text, voice, put)
	}
	// The program cannot read its text from a pipe.
	args := []string{"-voice", voice, "-t", text, "-o", "/dev/stdout"}
	if err := (program{f.path, args, "", fliteVoices[voice].rate, f.slots}).run(ctx, put); err != nil {
		return fmt.Errorf("flite: %w", err)
	}
	return nil
}

// fliteLibrary is libflite inside our process. It counts references to shared
// values without atomics and keeps one copy of every voice for the whole
// process, so only one call may be in it at a time: the turn is the lock, and
// waiting for it is first come, first served.
type fliteLibrary struct {
	file   string
	turn   chan struct{}
	voices map[string]uintptr // guarded by turn
	now    *fliteJob          // guarded by turn: what the callback serves

	thread     *thread.Thread // calls textToWave
	textToWave uintptr        // cst_wave *flite_text_to_wave(const char *, cst_voice *)
	deleteWave func(wave uintptr)
	newInfo    func() *streamInfo
	infoValue  func(*streamInfo) uintptr
	featSet    func(features uintptr, name string, value uintptr)
}

type fliteJob struct {
	over func() error // the Err of the context of the speak call
	put  func([]int16)
}

// fliteWave, fliteVoice and streamInfo mirror the beginnings of flite 2's structs
// cst_wave, cst_voice and cst_audio_streaming_info.
type fliteWave struct {
	_       uintptr // the kind of sound
	_       int32   // its rate
	samples int32
	_       int32 // channels
	data    *int16
}

type fliteVoice struct {
	name     uintptr
	features uintptr
}

type streamInfo struct {
	minSamples int32
	callback   uintptr
}

const (
	streamGoOn = 0
	streamStop = ^uintptr(0) // -1
	// streamSamples is the number of samples that flite gathers before it calls back: 100 ms.
	streamSamples = 1600
)

// openFlite opens the library once for the process: its voices and reference
// counts are the process's, so there must be one lock for all.
var openFlite = sync.OnceValues(func() (*fliteLibrary, error) {
	l := &fliteLibrary{file: "libflite.so.1", turn: make(chan struct{}, 1), voices: map[string]uintptr{}}
	h, err := purego.Dlopen(l.file, purego.RTLD_NOW|purego.RTLD_GLOBAL)
	if err != nil {
		return nil, fmt.Errorf("open flite: %w", err)
	}
	var start func() int32
	for name, fn := range map[string]any{
		"flite_init": &start, "delete_wave": &l.deleteWave,
		"new_audio_streaming_info": &l.newInfo, "audio_streaming_info_val": &l.infoValue, "feat_set": &l.featSet,
	} {
		sym, err := purego.Dlsym(h, name)
		if err != nil {
			return nil, fmt.Errorf("open flite: %w", err)
		}
		purego.RegisterFunc(fn, sym)
	}
	if l.textToWave, err = purego.Dlsym(h, "flite_text_to_wave"); err != nil {
		return nil, fmt.Errorf("open flite: %w", err)
	}
	if l.thread, err = thread.New(); err != nil {
		return nil, fmt.Errorf("open flite: %w", err)
	}
	start()
	return l, nil
})

// piece answers flite's callback for each piece of sound, on the goroutine that speaks, and says whether to go on:
// int (const cst_wave *, int start, int size, int last, cst_audio_streaming_info *).
func (l *fliteLibrary) piece(asked [thread.Asked]uintptr) uintptr {
	w, start, size := *(**fliteWave)(unsafe.Pointer(&asked[0])), int32(asked[1]), int32(asked[2])
	if l.now.over() != nil {
		return streamStop
	}
	if w != nil && w.data != nil && start >= 0 && size > 0 && start <= w.samples-size {
		l.now.put(unsafe.Slice(w.data, w.samples)[start : start+size])
	}
	return streamGoOn
}

// load opens a voice's library the first time it is asked for. The caller has
// the turn.
func (l *fliteLibrary) load(voice string) (uintptr, error) {
	if v := l.voices[voice]; v != 0 {
		return v, nil
	}
	h, err := purego.Dlopen("libflite_cmu_us_"+voice+".so.1", purego.RTLD_NOW|purego.RTLD_GLOBAL)
	if err != nil {
		return 0, fmt.Errorf("open flite voice: %w", err)
	}
	sym, err := purego.Dlsym(h, "register_cmu_us_"+voice)
	if err != nil {
		return 0, fmt.Errorf("open flite voice: %w", err)
	}
	var register func(dir uintptr) *fliteVoice
	purego.RegisterFunc(&register, sym)
	v := register(0)
	if v == nil {
		return 0, fmt.Errorf("flite voice %s did not register", voice)
	}
	info := l.newInfo()
	info.minSamples, info.callback = streamSamples, thread.Callback()
	l.featSet(v.features, "streaming_info", l.infoValue(info))
	l.voices[voice] = uintptr(unsafe.Pointer(v))
	return l.voices[voice], nil
}

// speak waits for its turn, then makes the sound of one unit. What is in text
// must be ASCII. The time in the library before the first piece, which cannot
// be cut short, is bounded by the length of a unit: about 40 ms.
func (l *fliteLibrary) speak(ctx context.Context, text, voice string, put func([]int16)) error {
	select {
	case l.turn <- struct{}{}:
		defer func() { <-l.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	v, err := l.load(voice)
	if err != nil {
		return err
	}
	heard := false
	l.now = &fliteJob{ctx.Err, func(pcm []int16) { heard = true; put(pcm) }}
	said := append([]byte(text), 0)
	var pinned runtime.Pinner
	pinned.Pin(unsafe.SliceData(said))
	wave := l.thread.Call(l.textToWave, l.piece, uintptr(unsafe.Pointer(unsafe.SliceData(said))), v)
	pinned.Unpin()
	l.now = nil
	if wave == 0 {
		return errors.New("flite made no sound")
	}
	defer l.deleteWave(wave)
	if err := ctx.Err(); err != nil {
		return err
	}
	if w := *(**fliteWave)(unsafe.Pointer(&wave)); !heard && w.data != nil && w.samples > 0 {
		put(unsafe.Slice(w.data, w.samples)) // a voice that does not stream
	}
	return nil
}
