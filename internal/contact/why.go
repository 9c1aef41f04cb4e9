package contact

import (
	"encoding/json"
	"strings"

	"xiaozhi/internal/text"
	"xiaozhi/internal/text/message"
)

// Why is a sentence of the catalogues. The empty one says nothing.
type Why struct {
	ID   string
	Args []any // plain text, numbers, and sentences

	en, zh string // of one that was read from JSON
}

// Say makes a sentence.
func Say(id string, args ...any) Why { return Why{ID: id, Args: args} }

// Line makes a sentence of a line that says the same in English and, after " / ", in Chinese; of any other line too.
func Line(line string) Why {
	w := Why{ID: "contact/said", Args: []any{line}}
	if en, zh, two := strings.Cut(line, " / "); two && !strings.Contains(zh, " / ") {
		w.en, w.zh = en, zh
	}
	return w
}

// Quoted makes a sentence of a text that is the same in all languages.
func Quoted(text string) Why { return why("contact/said", short(text)) }

func why(id string, args ...any) Why { return Why{ID: id, Args: args} }

// In returns the sentence in a language; "" of the empty one.
func (w Why) In(lang text.Lang) string {
	if w.ID == "" {
		return ""
	}
	if w.en != "" {
		return lang.Pick(w.zh, w.en)
	}
	args := make([]any, len(w.Args))
	for i, a := range w.Args {
		if inner, ok := a.(Why); ok {
			a = inner.In(lang)
		}
		args[i] = a
	}
	return message.In(lang, w.ID, args...)
}

// MarshalJSON writes the sentence in both languages, for programs.
func (w Why) MarshalJSON() ([]byte, error) {
	if w.ID == "" {
		return []byte("null"), nil
	}
	return json.Marshal(sentence{w.ID, w.In(text.English), w.In(text.Chinese)})
}

type sentence struct {
	ID string `json:"id"`
	EN string `json:"en"`
	ZH string `json:"zh"`
}

// UnmarshalJSON reads what [Why.MarshalJSON] writes.
func (w *Why) UnmarshalJSON(data []byte) error {
	var s sentence
	err := json.Unmarshal(data, &s)
	*w = Why{ID: s.ID, en: s.EN, zh: s.ZH}
	return err
}

// refused is the sentence of a refusal.
func refused(r Refusal, detail ...any) Why {
	id := map[Refusal]string{
		Nameless: "contact/refused-nameless", Often: "contact/refused-often", Denied: "contact/refused-denied", Closed: "contact/refused-closed",
		Unpaired: "contact/refused-unpaired", Stranger: "contact/refused-stranger", BadToken: "contact/refused-token", NoShared: "contact/refused-shared",
		Guessing: "contact/refused-guessing", Taken: "contact/refused-taken", Page: "contact/refused-page", Full: "contact/refused-full",
		Stopping: "contact/refused-stopping", Busy: "contact/refused-busy", NoUpgrade: "contact/refused-upgrade", Broken: "contact/refused-handshake",
	}[r]
	if id == "contact/refused-handshake" || id == "contact/refused-page" {
		return Why{ID: id, Args: detail}
	}
	return Why{ID: id}
}
