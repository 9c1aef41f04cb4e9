package agent

import (
	"strings"
	"sync"

	"xiaozhi/audio"
	segments "xiaozhi/internal/text/sentence"
	"xiaozhi/prompts"
)

// Bounds of a SoundCache.
const (
	cacheEntries = 256
	cacheBytes   = 2 << 20 // of packets: some eleven minutes of speech
)

// SoundCache keeps the sound of fixed phrases (greeting, fillers, confirmations,
// failures) as encoded packets, so that they need neither synthesis nor
// encoding. Whoever makes it shares it among all conversations; its methods may
// be called at the same time. It holds at most 256 sounds and 2 MiB; what was
// not used for longest goes first. A nil cache keeps nothing.
type SoundCache struct {
	phrases map[string]bool // by their words as they are spoken; never changes

	mu      sync.Mutex
	entries map[soundKey]*cachedSound
	bytes   int
	uses    uint64
}

// soundKey is all that decides how a phrase sounds on the wire.
type soundKey struct {
	provider, text, language, voice string
	format                          audio.Format
	levelled                        bool
}

// cachedSound is one whole phrase. Its packets never change.
type cachedSound struct {
	packets [][]byte
	bytes   int
	used    uint64 // when it was last used, counted in uses
}

// NewSoundCache makes an empty cache for the phrases of set that have no
// placeholder.
func NewSoundCache(set *prompts.Set) *SoundCache {
	c := &SoundCache{phrases: map[string]bool{}, entries: map[soundKey]*cachedSound{}}
	for _, language := range []string{"zh", "en"} {
		for _, id := range prompts.IDs() {
			text := set.Phrase(id, language)
			if strings.Contains(text, "{") {
				continue
			}
			split := segments.Splitter{}
			for _, segment := range append(append([]string{text}, split.Feed(text)...), split.Flush()...) {
				if s := newSentence(segment, language); s.speech != "" {
					c.phrases[s.speech] = true
				}
			}
		}
	}
	return c
}

// fixed says whether these words are a phrase that is worth keeping.
func (c *SoundCache) fixed(speech string) bool { return c != nil && c.phrases[speech] }

// key is where the sound of text is kept for what s speaks to.
func (c *SoundCache) key(s *speaker, provider, text, language, voice string) soundKey {
	return soundKey{
		provider: provider, text: text, language: language, voice: voice,
		format: s.o.Reply, levelled: s.o.Levels != nil,
	}
}

// get is a phrase's sound, nil if it is not there. Nobody changes the packets.
func (c *SoundCache) get(key soundKey) [][]byte {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.entries[key]
	if !ok {
		return nil
	}
	c.uses++
	e.used = c.uses
	return e.packets
}

// put keeps a phrase's sound, which must be whole.
func (c *SoundCache) put(key soundKey, packets [][]byte) {
	if c == nil || len(packets) == 0 {
		return
	}
	e := &cachedSound{packets: packets}
	for _, p := range packets {
		e.bytes += len(p)
	}
	if e.bytes > cacheBytes/4 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drop(key)
	for len(c.entries) >= cacheEntries || c.bytes+e.bytes > cacheBytes {
		c.drop(c.oldest())
	}
	c.uses++
	e.used = c.uses
	c.entries[key] = e
	c.bytes += e.bytes
}

// drop forgets a phrase. The caller holds mu.
func (c *SoundCache) drop(key soundKey) {
	if e, ok := c.entries[key]; ok {
		c.bytes -= e.bytes
		delete(c.entries, key)
	}
}

// oldest is the phrase that was not used for longest. The caller holds mu.
func (c *SoundCache) oldest() (key soundKey) {
	least := c.uses + 1
	for k, e := range c.entries {
		if e.used < least {
			key, least = k, e.used
		}
	}
	return key
}
