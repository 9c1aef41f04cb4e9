package modelfile

import (
	"errors"
	"io/fs"
	"path/filepath"

	"xiaozhi/internal/text"
	"xiaozhi/internal/text/message"
)

// Fault is the sort of what is wrong with a model or with the library.
type Fault string

// The faults: each is the name of its sentence in the catalogue of messages.
const (
	NoFolder  Fault = "sherpa/no-folder" // the folder of the model is not there
	NoModel   Fault = "sherpa/no-model"  // nothing in the folder is a model that is known
	NoFile    Fault = "sherpa/no-file"   // the model lacks a file
	Unread    Fault = "sherpa/unread"    // a file cannot be read
	Truncated Fault = "sherpa/truncated" // a file ends too early
	Foreign   Fault = "sherpa/foreign"   // a file is something else
	Metadata  Fault = "sherpa/metadata"  // a network says too little about itself
	Mixed     Fault = "sherpa/mixed"     // two files are not of the same model
	NoTokens  Fault = "sherpa/no-tokens" // the list of tokens cannot be read
	NoLibrary Fault = "sherpa/no-library"
	NotSherpa Fault = "sherpa/not-sherpa"  // the library is another one
	Version   Fault = "sherpa/old-library" // the library's version is not known
	Refused   Fault = "sherpa/refused"     // the library did not take the files
	WrongRole Fault = "sherpa/wrong-role"  // a voice where a recogniser is wanted, or the other way round
)

// Problem names a file and its fault. Its text is English; [Problem.Both] is for people.
type Problem struct { //nolint:errname // what is wrong with a folder
	Fault  Fault
	File   string
	Detail string // more about it, or the name of a message that says more; may be empty
}

// Error is the sentence of the fault in English.
func (p *Problem) Error() string {
	return p.in(text.English)
}

// Both is the sentence of the fault in English and in Chinese.
func (p *Problem) Both() string { return p.in(text.English) + " / " + p.in(text.Chinese) }

// in writes the sentence in a language.
func (p *Problem) in(lang text.Lang) string {
	return message.In(lang, string(p.Fault), p.File, message.In(lang, p.Detail))
}

// wrong makes a problem of an error that reading a file gave.
func wrong(file string, err error) *Problem {
	p := &Problem{Fault: Unread, File: file, Detail: err.Error()}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		p.Fault, p.Detail = NoFile, filepath.Base(file)
	case errors.Is(err, errTruncated):
		p.Fault = Truncated
	case errors.Is(err, errForeign), errors.Is(err, errHuge):
		p.Fault, p.Detail = Foreign, "sherpa/is-other"
		if m, ok := errors.AsType[*mask](err); ok {
			p.Detail = m.is
		}
	case errors.Is(err, errTokens):
		p.Fault = NoTokens
	}
	return p
}
