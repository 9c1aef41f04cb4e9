package pocketsphinx

import (
	"fmt"
	"reflect"
	"unsafe"

	"github.com/ebitengine/purego"
)

// handle is the address of an object of the C library; 0 stands for no object.
type handle uintptr

// library is the part of the C interface of PocketSphinx 0.8+5prealpha that is
// used here (facts from its headers pocketsphinx.h, ps_search.h, cmd_ln.h,
// fe.h and err.h), by the C object that it is about, each with its C name. None of it is variadic: how
// variadic C functions take their arguments differs between machines. The
// functions may be called from any goroutine, but for one object only one at a
// time.
type library struct {
	file     string // the shared object
	settings settingsCalls
	search   searchCalls
	word     wordCalls
	front    frontEndCalls
}

// settingsCalls are the functions of a configuration (cmd_ln_t) and of the log.
type settingsCalls struct {
	setLogFile func(file uintptr)                                                   `c:"err_set_logfp"`
	defaults   func() handle                                                        `c:"ps_args"`
	parse      func(cfg, defs handle, argc int32, argv **byte, strict int32) handle `c:"cmd_ln_parse_r"`
	free       func(cfg handle) int32                                               `c:"cmd_ln_free_r"`
}

// searchCalls are the functions of a decoder (ps_decoder_t). Those that compute for long are called by a [thread.Thread] at
// their addresses.
type searchCalls struct {
	open    uintptr `c:"ps_init"`        // ps_decoder_t *(cmd_ln_t *)
	process uintptr `c:"ps_process_cep"` // int (ps_decoder_t *, mfcc_t **cepstra, int frames, int no_search, int whole)
	end     uintptr `c:"ps_end_utt"`     // int (ps_decoder_t *)

	free     func(ps handle) int32               `c:"ps_free"`
	lookup   func(ps handle, word string) handle `c:"ps_lookup_word"`
	freeText func(text handle)                   `c:"ckd_free"`

	setGrammar  func(ps handle, name, jsgf string) int32 `c:"ps_set_jsgf_string"`
	setSearch   func(ps handle, name string) int32       `c:"ps_set_search"`
	unsetSearch func(ps handle, name string) int32       `c:"ps_unset_search"`

	begin func(ps handle) int32                `c:"ps_start_utt"`
	best  func(ps handle, score *int32) string `c:"ps_get_hyp"`
}

// wordCalls are the functions of the words of a result (ps_seg_t). A result that
// was walked to its end is freed.
type wordCalls struct {
	first  func(ps handle) handle                                     `c:"ps_seg_iter"`
	next   func(seg handle) handle                                    `c:"ps_seg_next"`
	text   func(seg handle) string                                    `c:"ps_seg_word"`
	frames func(seg handle, first, last *int32)                       `c:"ps_seg_frames"`
	score  func(seg handle, acoustic, language, backoff *int32) int32 `c:"ps_seg_prob"`
}

// frontEndCalls are the functions of a front end (fe_t).
type frontEndCalls struct {
	open    func(cfg handle) handle                                                                       `c:"fe_init_auto_r"`
	free    func(fe handle) int32                                                                         `c:"fe_free"`
	reset   func(fe handle)                                                                               `c:"fe_start_stream"`
	begin   func(fe handle) int32                                                                         `c:"fe_start_utt"`
	process func(fe handle, pcm **int16, samples *uintptr, cepstra **float32, frames, first *int32) int32 `c:"fe_process_frames"`
	end     func(fe handle, cepstra *float32, frames *int32) int32                                        `c:"fe_end_utt"`
	size    func(fe handle) int32                                                                         `c:"fe_get_output_size"`
}

// libraryFile is the shared object of Debian's libpocketsphinx3. It brings
// libsphinxbase.so.3 along, whose functions are found through the same handle.
const libraryFile = "libpocketsphinx.so.3"

// openLibrary opens the shared object and finds every function by its C name.
// It silences the library's own log, which would go to stderr.
func openLibrary(file string) (*library, error) {
	so, err := purego.Dlopen(file, purego.RTLD_NOW|purego.RTLD_GLOBAL)
	if err != nil {
		return nil, fmt.Errorf("open %s (install the Debian package libpocketsphinx3): %w", file, err)
	}
	lib := &library{file: file}
	for _, calls := range []any{&lib.settings, &lib.search, &lib.word, &lib.front} {
		v := reflect.ValueOf(calls).Elem()
		for i := range v.NumField() {
			address, err := purego.Dlsym(so, v.Type().Field(i).Tag.Get("c"))
			if err != nil {
				return nil, fmt.Errorf("%s is not the library of Debian's libpocketsphinx3 0.8+5prealpha: %w", file, err)
			}
			field := v.Field(i)
			if field.Kind() == reflect.Uintptr {
				*(*uintptr)(unsafe.Pointer(field.UnsafeAddr())) = address
				continue
			}
			purego.RegisterFunc(reflect.NewAt(field.Type(), unsafe.Pointer(field.UnsafeAddr())).Interface(), address)
		}
	}
	lib.settings.setLogFile(0)
	return lib, nil
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
