package platform

import "strings"

// again is the length from which on a text that is all there was is taken for the whole
// answer so far, not for a piece that says the same again.
const again = 12

// form says what the texts of an answer are.
type form int

const (
	unknown form = iota // there are less than two
	pieces              // each adds to those before
	wholes              // each is the whole answer so far
)

// Growing tells pieces of an answer from the whole answer so far, which some versions of
// services send each time. Its zero value is ready.
type Growing struct {
	said strings.Builder
	form form
}

// New returns what is new in a text. The second text of an answer tells what all are.
func (g *Growing) New(text string) string {
	so := g.said.String()
	if text == "" {
		return ""
	}
	after, grown := strings.CutPrefix(text, so)
	switch {
	case so == "":
	case g.form == unknown && grown && (after != "" || len(so) >= again), g.form == wholes && grown:
		g.form = wholes
		text = after
	case g.form == wholes && 2*len(text) >= len(so): // it was changed, such as by marks of sources: what was said stands
		return ""
	default:
		g.form = pieces
	}
	g.said.WriteString(text)
	return text
}
