package pocketsphinx

import (
	"fmt"
	"unsafe"

	"github.com/ebitengine/purego"
)

// handle is the address of an object that lives in the C library; 0 is none.
type handle uintptr

// library is the part of the C interface of PocketSphinx 0.8+5prealpha that is
// used here (facts from its headers pocketsphinx.h, ps_search.h, cmd_ln.h,
// fe.h and err.h). None of it is variadic: how variadic C functions take their
// arguments differs between machines. The functions may be called from any
// goroutine, but for one object only one at a time.
type library struct {
	setLogFile func(file uintptr)

	defaults   func() handle
	parse      func(cfg, defs handle, argc int32, argv **byte, strict int32) handle
	freeConfig func(cfg handle) int32

	newDecoder  func(cfg handle) handle
	freeDecoder func(ps handle) int32
	lookup      func(ps handle, word string) handle
	freeText    func(text handle)

	setGrammar  func(ps handle, name, jsgf string) int32
	setSearch   func(ps handle, name string) int32
	unsetSearch func(ps handle, name string) int32

	begin   func(ps handle) int32
	process func(ps handle, cepstra **float32, frames, noSearch, whole int32) int32
	end     func(ps handle) int32
	best    func(ps handle, score *int32) string

	firstWord  func(ps handle) handle
	nextWord   func(seg handle) handle
	freeWord   func(seg handle)
	wordText   func(seg handle) string
	wordFrames func(seg handle, first, last *int32)
	wordScore  func(seg handle, acoustic, language, backoff *int32) int32

	newFrontEnd   func(cfg handle) handle
	freeFrontEnd  func(fe handle) int32
	resetFrontEnd func(fe handle)
	beginFrames   func(fe handle) int32
	frames        func(fe handle, pcm **int16, samples *uintptr, cepstra **float32, frames, first *int32) int32
	endFrames     func(fe handle, cepstra *float32, frames *int32) int32
	frameSize     func(fe handle) int32
}

// libraryFile is the shared object of Debian's libpocketsphinx3. It brings
// libsphinxbase.so.3 along, whose functions are found through the same handle.
const libraryFile = "libpocketsphinx.so.3"

// openLibrary opens the shared object and finds every function of the table.
// It silences the library's own log, which would go to stderr.
func openLibrary(file string) (*library, error) {
	so, err := purego.Dlopen(file, purego.RTLD_NOW|purego.RTLD_GLOBAL)
	if err != nil {
		return nil, fmt.Errorf("open %s (install the Debian package libpocketsphinx3): %w", file, err)
	}
	lib := &library{}
	for _, f := range lib.table() {
		address, err := purego.Dlsym(so, f.symbol)
		if err != nil {
			return nil, fmt.Errorf("%s is not the library of Debian's libpocketsphinx3 0.8+5prealpha: %w", file, err)
		}
		purego.RegisterFunc(f.fn, address)
	}
	lib.setLogFile(0)
	return lib, nil
}

// symbol pairs a C name with the Go function variable that calls it.
type symbol struct {
	symbol string
	fn     any
}

// table lists every function with its C name.
func (l *library) table() []symbol {
	return []symbol{
		{"err_set_logfp", &l.setLogFile},
		{"ps_args", &l.defaults},
		{"cmd_ln_parse_r", &l.parse},
		{"cmd_ln_free_r", &l.freeConfig},
		{"ps_init", &l.newDecoder},
		{"ps_free", &l.freeDecoder},
		{"ps_lookup_word", &l.lookup},
		{"ckd_free", &l.freeText},
		{"ps_set_jsgf_string", &l.setGrammar},
		{"ps_set_search", &l.setSearch},
		{"ps_unset_search", &l.unsetSearch},
		{"ps_start_utt", &l.begin},
		{"ps_process_cep", &l.process},
		{"ps_end_utt", &l.end},
		{"ps_get_hyp", &l.best},
		{"ps_seg_iter", &l.firstWord},
		{"ps_seg_next", &l.nextWord},
		{"ps_seg_free", &l.freeWord},
		{"ps_seg_word", &l.wordText},
		{"ps_seg_frames", &l.wordFrames},
		{"ps_seg_prob", &l.wordScore},
		{"fe_init_auto_r", &l.newFrontEnd},
		{"fe_free", &l.freeFrontEnd},
		{"fe_start_stream", &l.resetFrontEnd},
		{"fe_start_utt", &l.beginFrames},
		{"fe_process_frames", &l.frames},
		{"fe_end_utt", &l.endFrames},
		{"fe_get_output_size", &l.frameSize},
	}
}

// config makes a C configuration of names and values as on a command line.
func (l *library) config(args []string) (handle, error) {
	argv := make([]*byte, 0, len(args)+1)
	for _, a := range args {
		argv = append(argv, unsafe.SliceData(append([]byte(a), 0)))
	}
	argv = append(argv, nil) // C wants its argument lists ended by a null
	cfg := l.parse(0, l.defaults(), int32(len(args)), unsafe.SliceData(argv), 1)
	if cfg == 0 {
		return 0, fmt.Errorf("pocketsphinx refused its settings %q", args)
	}
	return cfg, nil
}
