package voiceprintapi

import (
	"strings"
	"testing"
	"time"

	"xiaozhi/internal/servicetest"
	fake "xiaozhi/internal/servicetest/voiceprintapi"
	"xiaozhi/providers"
	"xiaozhi/providers/providertest"
	"xiaozhi/providers/service"
)

func TestContract(t *testing.T) {
	providertest.TestVoiceprintContract(t, providertest.Case{Kind: Kind(), Fake: fake.New, Reuses: true})
}

// TestAddresses takes what people have set up other servers with.
func TestAddresses(t *testing.T) {
	s := fake.Start(t)
	for _, path := range []string{"", "/", "/voiceprint", "/voiceprint/", "/voiceprint/health"} {
		v, err := New(service.Section{Name: "home", BaseURL: s.URL() + path, Key: servicetest.Key, Proxy: "none"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := v.Enrol(t.Context(), "x", providertest.VoiceOf(200, time.Second)); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
	v, err := New(service.Section{Name: "home", BaseURL: s.URL() + "/voiceprint/health?key=" + servicetest.Key, Proxy: "none"})
	if err != nil {
		t.Fatal(err)
	}
	if err := v.Warm(t.Context()); err != nil {
		t.Error(err)
	}
	if err := v.Delete(t.Context(), "x"); err != nil || len(s.Kept()) != 0 {
		t.Errorf("%v, %v", err, s.Kept())
	}
	for what, section := range map[string]service.Section{
		"it begins with": {Name: "home", BaseURL: "ws://x"}, "threshold": {Name: "home", Settings: map[string]any{"threshold": 1.5}},
	} {
		if _, err := New(section); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestDeletingElsewhere: that a server has no such path is not taken for a voice that is gone.
func TestDeletingElsewhere(t *testing.T) {
	s := fake.Start(t)
	v, err := New(service.Section{Name: "home", BaseURL: s.URL() + "/elsewhere", Key: servicetest.Key, Proxy: "none"})
	if err != nil {
		t.Fatal(err)
	}
	if err := v.Delete(t.Context(), "x"); err == nil {
		t.Error("it was deleted where no service is")
	}
	s.Refuse(true)
	v, _ = New(service.Section{Name: "home", BaseURL: s.URL(), Key: servicetest.Key, Proxy: "none"})
	if _, err := v.Enrol(t.Context(), "x", providertest.VoiceOf(200, time.Second)); err != nil {
		t.Fatal(err)
	}
	if err := v.Delete(t.Context(), "x"); err == nil || !strings.Contains(err.Error(), "database is locked") {
		t.Errorf("a service that deletes nothing: %v", err)
	}
}

// TestForm: the service takes files only whose name ends in .wav, and the id in a field.
func TestForm(t *testing.T) {
	s := fake.Start(t)
	v, err := New(service.Section{Name: "home", BaseURL: s.URL(), Key: servicetest.Key, Proxy: "none", Headers: map[string]providers.Secret{"X-Home": "yes"}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := v.Enrol(t.Context(), "id-7", providertest.VoiceOf(200, time.Second)); err != nil {
		t.Fatal(err)
	}
	among := []providers.Print{{ID: "id-7", Person: "p", Model: v.Scale().Model}, {ID: "id-8", Person: "q", Model: v.Scale().Model}}
	if _, err := v.Identify(t.Context(), providertest.VoiceOf(200, time.Second), among); err != nil {
		t.Fatal(err)
	}
	asked := s.Requests()
	if len(asked) != 2 || string(asked[0].Body) != "speaker_id=id-7" || string(asked[1].Body) != "speaker_ids=id-7%2Cid-8" || asked[1].Header.Get("X-Home") != "yes" {
		t.Errorf("asked %+v", asked)
	}
}
