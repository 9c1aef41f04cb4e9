package geminilive

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"xiaozhi/internal/servicetest"
	fake "xiaozhi/internal/servicetest/geminilive"
	"xiaozhi/providers"
	"xiaozhi/providers/providertest"
	"xiaozhi/providers/service"
	"xiaozhi/providers/transport"
)

func TestContract(t *testing.T) {
	providertest.TestDuplexContract(t, providertest.Case{Kind: Kind(), Fake: fake.New})
}

// A session is gone on with by the handle that came after its last answer, and by no other.
func TestHandles(t *testing.T) {
	t.Parallel()
	s := fake.New(t)
	dialer, err := transport.NewDialer(transport.DialerOptions{Account: transport.Account{Name: "x"}, Proxy: "none"})
	if err != nil {
		t.Fatal(err)
	}
	c := &client{
		dialer: dialer, section: service.Section{Name: "x", Key: servicetest.Key}, address: s.WS() + fmt.Sprintf(path, "v1beta"), setup: time.Second,
	}
	req, ended := providers.DuplexRequest{History: []providers.Message{{Role: providers.RoleUser, Content: "before"}}}, &wire{}
	for _, step := range []struct{ message, want string }{
		{`{"sessionResumptionUpdate":{"newHandle":"early","resumable":true}}`, ""},
		{"", ""}, // asked
		{`{"sessionResumptionUpdate":{"newHandle":"amid","resumable":true}}`, ""},
		{`{"serverContent":{"turnComplete":true}}`, ""},
		{`{"sessionResumptionUpdate":{"newHandle":"handle-0123456789","resumable":true}}`, "handle-0123456789"},
	} {
		if step.message == "" {
			ended.asked, ended.open = true, true
			continue
		}
		if _, err := ended.take([]byte(step.message)); err != nil || ended.left() != step.want {
			t.Errorf("%s: %q, %v", step.message, ended.left(), err)
		}
	}
	w, err := c.resume(t.Context(), req, ended)
	if err != nil || w == nil {
		t.Fatalf("%v, %v", w, err)
	}
	w.Close()
	if w, err := c.resume(t.Context(), req, &wire{}); w != nil || err != nil {
		t.Errorf("without a handle: %v, %v", w, err)
	}
	ended.handle = "gone"
	if w, err := c.resume(t.Context(), req, ended); err == nil { // this is told by closing, perhaps after the setup
		w.Close()
	}
	said := ""
	for _, r := range s.Requests() {
		said += string(r.Body)
	}
	if strings.Count(said, `"handle":"handle-0123456789"`) != 1 || strings.Contains(said, "before") {
		t.Errorf("said %s", said)
	}
}

func FuzzMessage(f *testing.F) {
	for _, seed := range []string{
		`{"serverContent":{"modelTurn":{"parts":[{"inlineData":{"mimeType":"audio/pcm;rate=24000","data":"AAA="}}]},"turnComplete":true}}`,
		`{"toolCall":{"functionCalls":[{"id":"a","name":"b","args":{}}]}}`, `{"error":5}`, `{}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(_ *testing.T, b []byte) { _, _ = (&wire{open: true}).take(b) })
}
