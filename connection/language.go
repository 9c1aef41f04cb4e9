package connection

import (
	"container/list"
	"strings"
	"sync"
)

// rememberedLanguages is how many devices' languages are kept, the least
// recently used forgotten first. One entry is about 100 bytes.
const rememberedLanguages = 4096

// languages remembers which language a device's OTA request named. A device
// asks only once per boot. All methods may be called at the same time.
type languages struct {
	mu    sync.Mutex
	limit int
	byID  map[string]*list.Element
	order *list.List // of spoken, newest first
}

// spoken is one device's language.
type spoken struct{ deviceID, language string }

func newLanguages(limit int) *languages {
	return &languages{limit: limit, byID: make(map[string]*list.Element), order: list.New()}
}

// set remembers a device's language; "" changes nothing.
func (l *languages) set(deviceID, language string) {
	if deviceID == "" || language == "" {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if e, ok := l.byID[deviceID]; ok {
		e.Value = spoken{deviceID, language}
		l.order.MoveToFront(e)
		return
	}
	l.byID[deviceID] = l.order.PushFront(spoken{deviceID, language})
	if l.order.Len() > l.limit {
		oldest := l.order.Back()
		delete(l.byID, oldest.Value.(spoken).deviceID)
		l.order.Remove(oldest)
	}
}

// get gives a device's language, "" if it is not known.
func (l *languages) get(deviceID string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	e, ok := l.byID[deviceID]
	if !ok {
		return ""
	}
	l.order.MoveToFront(e)
	return e.Value.(spoken).language
}

// languageOf makes "zh" or "en" of a language tag or an Accept-Language value,
// of which the first entry counts. Other languages than Chinese are served in
// English. Nothing (or "*") gives "".
func languageOf(tag string) string {
	tag, _, _ = strings.Cut(tag, ",")
	tag, _, _ = strings.Cut(tag, ";")
	tag = strings.ToLower(strings.TrimSpace(tag))
	if tag == "" || tag == "*" {
		return ""
	}
	primary, _, _ := strings.Cut(strings.ReplaceAll(tag, "_", "-"), "-")
	switch primary {
	case "zh", "cmn", "yue":
		return "zh"
	default:
		return "en"
	}
}

// languageFor settles a device's language: its own setting, else the server's,
// else what its OTA request said, else Chinese.
func (s *Server) languageFor(deviceID string, own string) string {
	if own == "zh" || own == "en" {
		return own
	}
	if s.opts.Language == "zh" || s.opts.Language == "en" {
		return s.opts.Language
	}
	if l := s.languages.get(deviceID); l != "" {
		return l
	}
	return "zh"
}
