package speak

import (
	"strings"
	"sync"

	"xiaozhi/audio"
	"xiaozhi/internal/lru"
	"xiaozhi/internal/text"
	"xiaozhi/internal/text/sentence"
	"xiaozhi/prompts"
)

// Bounds of a [Cache].
const (
	cacheEntries = 256
	cacheBytes   = 2 << 20 // of packets: some eleven minutes of speech
)

// Cache keeps the sound of fixed phrases (greeting, fillers, confirmations,
// failures) as encoded packets, so that they need neither synthesis nor encoding.
// It is shared by all conversations; its methods may be called at the same time.
// It holds at most 256 sounds and 2 MiB; what was not used for longest goes
// first. A nil cache keeps nothing.
type Cache struct {
	phrases map[string]bool // by their words as they are spoken; never changes
	sounds  *lru.Cache[cacheKey, [][]byte]
}

// cacheKey is all that decides how a phrase sounds on the wire.
type cacheKey struct {
	provider, text, language, voice string
	format                          audio.Format
	levelled                        bool
}

// NewCache makes an empty cache for the phrases of set that have no placeholder.
func NewCache(set *prompts.Set) *Cache {
	return &Cache{phrases: phrasesOf(set), sounds: lru.New[cacheKey, [][]byte](cacheEntries, cacheBytes)}
}

// phrasesOf returns the phrases of a set and their parts, as they are spoken. Those of the embedded set are found once.
func phrasesOf(set *prompts.Set) map[string]bool {
	if usual, err := prompts.Load(""); err == nil && set == usual {
		return usualPhrases()
	}
	return findPhrases(set)
}

var usualPhrases = sync.OnceValue(func() map[string]bool {
	set, err := prompts.Load("")
	if err != nil {
		return nil
	}
	return findPhrases(set)
})

func findPhrases(set *prompts.Set) map[string]bool {
	phrases := map[string]bool{}
	for _, tag := range set.Languages() {
		l := text.Lang(tag)
		for _, id := range prompts.IDs() {
			words := set.Phrase(id, tag)
			if strings.Contains(words, "{") {
				continue
			}
			split := sentence.Splitter{Lang: l, Words: set.Words(l)}
			for _, piece := range append(append([]string{words}, split.Feed(words)...), split.Flush()...) {
				if s := sentence.New(piece, l); s.Speech != "" {
					phrases[s.Speech] = true
				}
			}
		}
	}
	return phrases
}

// fixed says whether these words are a phrase that is worth keeping.
func (c *Cache) fixed(speech string) bool { return c != nil && c.phrases[speech] }

// key returns where the sound of words is kept.
func (o *Options) key(provider, words, language, voice string) cacheKey {
	return cacheKey{provider: provider, text: words, language: language, voice: voice, format: o.Reply, levelled: o.Levels != nil}
}

// get is a phrase's sound, nil if it is not there. Nobody changes the packets.
func (c *Cache) get(key cacheKey) [][]byte {
	if c == nil {
		return nil
	}
	packets, _ := c.sounds.Get(key)
	return packets
}

// put keeps a phrase's sound, which must be whole.
func (c *Cache) put(key cacheKey, packets [][]byte) {
	if c == nil || len(packets) == 0 {
		return
	}
	bytes := 0
	for _, p := range packets {
		bytes += len(p)
	}
	if bytes <= cacheBytes/4 {
		c.sounds.Put(key, packets, bytes)
	}
}
