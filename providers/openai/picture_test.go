package openai

import (
	"bytes"
	"encoding/json"
	"testing"

	"xiaozhi/internal/openaitest"
	"xiaozhi/providers"
)

// TestPicturesOnTheWire: a message with pictures is a list of parts, and one
// without stays a text, which is all that many servers take.
func TestPicturesOnTheWire(t *testing.T) {
	s := newServer(t)
	l := newLLM(t, options(t, s))
	jpg := append([]byte{0xff, 0xd8, 0xff, 0xe0}, bytes.Repeat([]byte{7}, 100<<10)...)
	png := []byte("\x89PNG\x0D\x0A\x1A\x0A")
	_, err := generate(t.Context(), l, providers.LLMRequest{Messages: []providers.Message{
		{Role: providers.RoleSystem, Content: "look"},
		{Role: providers.RoleUser, Content: "what is \"this\"?", Images: []providers.Image{{MIMEType: "image/jpeg", Data: jpg}, {MIMEType: "image/png", Data: png}}},
		{Role: providers.RoleUser, Images: []providers.Image{{MIMEType: "image/png", Data: png}}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	request := s.Requests(openaitest.Chat)[0]
	pictures, err := request.Pictures()
	if err != nil || len(pictures) != 3 {
		t.Fatalf("%d pictures, %v", len(pictures), err)
	}
	if p := pictures[0]; p.Text != `what is "this"?` || p.MIME != "image/jpeg" || !bytes.Equal(p.Data, jpg) {
		t.Errorf("first picture: %q, %s, %d bytes", p.Text, p.MIME, len(p.Data))
	}
	if p := pictures[2]; p.Text != "" || p.MIME != "image/png" || !bytes.Equal(p.Data, png) {
		t.Errorf("last picture: %q, %s, %d bytes", p.Text, p.MIME, len(p.Data))
	}
	var body struct {
		Messages []struct{ Content json.RawMessage }
	}
	if err := json.Unmarshal(request.Body, &body); err != nil || string(body.Messages[0].Content) != `"look"` {
		t.Errorf("a message without pictures: %s, %v", body.Messages[0].Content, err)
	}
}
