package ui

import (
	"strings"
	"testing"

	"rsc.io/qr"
)

// TestQR: the picture has every black square of the code, and none else.
func TestQR(t *testing.T) {
	const address = "http://192.168.1.20:8000/xiaozhi/ota/"
	code, err := qr.Encode(address, qr.M)
	if err != nil {
		t.Fatal(err)
	}
	black := 0
	for y := range code.Size {
		for x := range code.Size {
			if code.Black(x, y) {
				black++
			}
		}
	}
	got := QROf(address)
	if n := strings.Count(string(got.Path), "h1v1h-1z"); n != black || got.Size != code.Size+8 {
		t.Errorf("%d squares of %d, size %d", n, black, got.Size)
	}
	if QROf(strings.Repeat("x", 5000)) != (QR{}) {
		t.Error("a text that is too long has a picture")
	}
}
