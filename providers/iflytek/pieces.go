package iflytek

import (
	"maps"
	"slices"
	"strings"

	"xiaozhi/providers/transport"
)

// maxPieces is how many pieces of a text are kept; a minute of speech has about a hundred.
const maxPieces = 4096

// result is a piece of a text: its place, and whether it replaces others.
type result struct {
	SN  transport.Int   `json:"sn"`
	PGS string          `json:"pgs"` // "apd", "rpl", or "" where nothing is corrected
	RG  []transport.Int `json:"rg"`  // the first and the last piece that are replaced
	WS  []struct {
		CW []struct {
			W string `json:"w"`
		} `json:"cw"`
	} `json:"ws"`
}

// words returns the best words of a piece.
func (r result) words() string {
	var b strings.Builder
	for _, w := range r.WS {
		if len(w.CW) > 0 {
			b.WriteString(w.CW[0].W)
		}
	}
	return b.String()
}

// pieces is a text that comes in pieces which correct one another.
type pieces map[transport.Int]string

// add puts a piece in its place, and takes those away that it replaces.
func (p pieces) add(r result) {
	if r.PGS == "rpl" && len(r.RG) == 2 {
		for sn := range p {
			if sn >= r.RG[0] && sn <= r.RG[1] {
				delete(p, sn)
			}
		}
	}
	if _, known := p[r.SN]; known || len(p) < maxPieces {
		p[r.SN] = r.words()
	}
}

// text returns the pieces in their order.
func (p pieces) text() string {
	var b strings.Builder
	for _, sn := range slices.Sorted(maps.Keys(p)) {
		b.WriteString(p[sn])
	}
	return b.String()
}
