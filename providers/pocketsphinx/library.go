package pocketsphinx

import (
	"fmt"
	"unsafe"

	"github.com/ebitengine/purego"
)

// handle is the address of an object of the C library; 0 stands for no object.
type handle uintptr

// library is the part of the C interface of PocketSphinx 0.8+5prealpha that is
// used here (facts from its headers pocketsphinx.h, ps_search.h, cmd_ln.h,
// fe.h and err.h), by the C object that it is about. None of it is variadic: how
// variadic C functions take their arguments differs between machines. The
// functions may be called from any goroutine, but for one object only one at a
// time.
type library struct {
	settings settingsCalls
	search   searchCalls
	word     wordCalls
	front    frontEndCalls
}

// settingsCalls are the functions of a configuration (cmd_ln_t) and of the log.
type settingsCalls struct {
	setLogFile func(file uintptr)
	defaults   func() handle
	parse      func(cfg, defs handle, argc int32, argv **byte, strict int32) handle
	free       func(cfg handle) int32
}

// searchCalls are the functions of a decoder (ps_decoder_t).
type searchCalls struct {
	open     func(cfg handle) handle
	free     func(ps handle) int32
	lookup   func(ps handle, word string) handle
	freeText func(text handle)

	setGrammar  func(ps handle, name, jsgf string) int32
	setSearch   func(ps handle, name string) int32
	unsetSearch func(ps handle, name string) int32

	begin   func(ps handle) int32
	process func(ps handle, cepstra **float32, frames, noSearch, whole int32) int32
	end     func(ps handle) int32
	best    func(ps handle, score *int32) string
}

// wordCalls are the functions of the words of a result (ps_seg_t). A result that
// was walked to its end is freed.
type wordCalls struct {
	first  func(ps handle) handle
	next   func(seg handle) handle
	text   func(seg handle) string
	frames func(seg handle, first, last *int32)
	score  func(seg handle, acoustic, language, backoff *int32) int32
}

// frontEndCalls are the functions of a front end (fe_t).
type frontEndCalls struct {
	open    func(cfg handle) handle
	free    func(fe handle) int32
	reset   func(fe handle)
	begin   func(fe handle) int32
	process func(fe handle, pcm **int16, samples *uintptr, cepstra **float32, frames, first *int32) int32
	end     func(fe handle, cepstra *float32, frames *int32) int32
	size    func(fe handle) int32
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
	lib.settings.setLogFile(0)
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
		{"err_set_logfp", &l.settings.setLogFile},
		{"ps_args", &l.settings.defaults},
		{"cmd_ln_parse_r", &l.settings.parse},
		{"cmd_ln_free_r", &l.settings.free},
		{"ps_init", &l.search.open},
		{"ps_free", &l.search.free},
		{"ps_lookup_word", &l.search.lookup},
		{"ckd_free", &l.search.freeText},
		{"ps_set_jsgf_string", &l.search.setGrammar},
		{"ps_set_search", &l.search.setSearch},
		{"ps_unset_search", &l.search.unsetSearch},
		{"ps_start_utt", &l.search.begin},
		{"ps_process_cep", &l.search.process},
		{"ps_end_utt", &l.search.end},
		{"ps_get_hyp", &l.search.best},
		{"ps_seg_iter", &l.word.first},
		{"ps_seg_next", &l.word.next},
		{"ps_seg_word", &l.word.text},
		{"ps_seg_frames", &l.word.frames},
		{"ps_seg_prob", &l.word.score},
		{"fe_init_auto_r", &l.front.open},
		{"fe_free", &l.front.free},
		{"fe_start_stream", &l.front.reset},
		{"fe_start_utt", &l.front.begin},
		{"fe_process_frames", &l.front.process},
		{"fe_end_utt", &l.front.end},
		{"fe_get_output_size", &l.front.size},
	}
}

// config makes a C configuration of names and values as on a command line.
func (l *library) config(args []string) (handle, error) {
	argv := make([]*byte, 0, len(args)+1)
	for _, a := range args {
		argv = append(argv, unsafe.SliceData(append([]byte(a), 0)))
	}
	argv = append(argv, nil) // C wants its argument lists ended by a null
	cfg := l.settings.parse(0, l.settings.defaults(), int32(len(args)), unsafe.SliceData(argv), 1)
	if cfg == 0 {
		return 0, fmt.Errorf("pocketsphinx refused its settings %q", args)
	}
	return cfg, nil
}
