package history

import (
	"fmt"
	"sync"

	"github.com/pkoukk/tiktoken-go"
)

// TokenCounter counts tokens with tiktoken's cl100k_base table, which is near
// enough for every model we speak to (a budget, not a bill). The table, some
// 15 MiB in memory, is read by Load, else at the first count. Both may be called
// at the same time. The offline loader has to be set before (main does).
type TokenCounter struct {
	once sync.Once
	enc  *tiktoken.Tiktoken
	err  error
}

// Count returns the number of tokens of text. Without a counter, or if the table
// cannot be read, it counts bytes, which is never too few.
func (c *TokenCounter) Count(text string) int {
	if c == nil || c.Load() != nil {
		return len(text)
	}
	return len(c.enc.EncodeOrdinary(text))
}

// Load reads the table now rather than at the first count, where a turn would
// wait for it, and the process would grow long after its start.
func (c *TokenCounter) Load() error {
	c.once.Do(func() {
		c.enc, c.err = tiktoken.GetEncoding("cl100k_base")
		if c.err != nil {
			c.err = fmt.Errorf("read the token table: %w", c.err)
		}
	})
	return c.err
}
