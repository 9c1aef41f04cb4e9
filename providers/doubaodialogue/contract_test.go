package doubaodialogue

import (
	"errors"
	"testing"
	"time"

	"xiaozhi/internal/servicetest"
	fake "xiaozhi/internal/servicetest/doubaodialogue"
	"xiaozhi/providers"
	"xiaozhi/providers/providertest"
	"xiaozhi/providers/service"
	"xiaozhi/providers/volcframe"
)

func TestContract(t *testing.T) {
	providertest.TestDuplexContract(t, providertest.Case{Kind: Kind(), Fake: fake.New})
}

// TestNothingUnderstood: noise has no answer, and the service is not to blame.
func TestNothingUnderstood(t *testing.T) {
	t.Parallel()
	s := fake.New(t)
	d, err := Kind().Realtime(service.Section{Name: "x", ID: servicetest.ID, Key: servicetest.Key, BaseURL: s.WS(), Proxy: "none"})
	if err != nil {
		t.Fatal(err)
	}
	talk, err := d.Open(t.Context(), providers.DuplexRequest{})
	if err != nil {
		t.Fatal(err)
	}
	defer talk.Close()
	_ = talk.Write(make([]int16, 4000))
	begun := time.Now()
	for got, err := range talk.Respond(t.Context(), nil) {
		if failed, ok := errors.AsType[*providers.Error](err); !ok || failed.Kind != providers.BadRequest || time.Since(begun) > 3*time.Second {
			t.Errorf("got %+v, %v after %v", got, err, time.Since(begun))
		}
	}
}

func FuzzEvent(f *testing.F) {
	f.Add(int32(eventASR), []byte(`{"results":[{"text":"x","is_interim":true}]}`))
	f.Add(int32(eventChat), []byte(`{"content":"x"}`))
	f.Add(int32(volcframe.EventTTSResponse), []byte{1})
	f.Fuzz(func(_ *testing.T, event int32, b []byte) {
		_, _ = (&wire{asked: true}).take(volcframe.Frame{Event: event, Payload: b})
	})
}
