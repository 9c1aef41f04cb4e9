package duplex

import (
	"encoding/json"
	"strings"
)

// mostTokens is more than any answer has: what is above it is not believed.
const mostTokens = 1 << 30

// Count returns the sum of those members of a JSON object that are numbers of tokens. A name with dots goes into objects.
// What is something else, or not there, counts nothing.
func Count(raw json.RawMessage, names ...string) (sum int) {
	for _, name := range names {
		at := raw
		for part := range strings.SplitSeq(name, ".") {
			var m map[string]json.RawMessage
			if json.Unmarshal(at, &m) != nil {
				at = nil
				break
			}
			at = m[part]
		}
		var n float64
		if json.Unmarshal(at, &n) == nil && n > 0 && n < mostTokens {
			sum += int(n)
		}
	}
	return sum
}
