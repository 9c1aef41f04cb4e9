package ui

import (
	"html/template"
	"strconv"
	"strings"

	"rsc.io/qr"
)

// QR is a picture of an address that phones read: the squares of an SVG. Its zero value is none.
type QR struct {
	Size int // squares at a side, with the empty ones around them
	Path template.HTMLAttr
}

const quiet = 4 // empty squares at each side, which readers need

// QROf returns the picture of a text; none where it is too long.
func QROf(text string) QR {
	code, err := qr.Encode(text, qr.M)
	if err != nil {
		return QR{}
	}
	var b strings.Builder
	for y := range code.Size {
		for x := range code.Size {
			if code.Black(x, y) {
				b.WriteString("M" + strconv.Itoa(x+quiet) + " " + strconv.Itoa(y+quiet) + "h1v1h-1z")
			}
		}
	}
	return QR{Size: code.Size + 2*quiet, Path: template.HTMLAttr(`d="` + b.String() + `"`)} //nolint:gosec // digits and letters of this function
}
