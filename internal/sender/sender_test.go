package sender

import (
	"context"
	"errors"
	"testing"
	"time"

	"xiaozhi/agent/feature/mail"
	"xiaozhi/internal/fleet"
)

// town has two devices in different zones.
type town struct{ sent []mail.Letter }

func (*town) List(context.Context) ([]fleet.Device, error) {
	return []fleet.Device{{ID: "a", Name: "Here", Known: true, Owner: "ann"}, {ID: "b", Name: "There", Known: true, Owner: "ann"}, {ID: "c", Known: true, Owner: "ben"}}, nil
}

func (w *town) SendAll(_ context.Context, all []mail.Letter) (kept []mail.Letter, failed []error, err error) {
	w.sent = all
	failed = make([]error, len(all))
	for i := range all {
		if all[i].Text == "too many" {
			failed[i] = mail.ErrFull
		}
	}
	return all, failed, nil
}
func (*town) Await(context.Context, string) (l mail.Letter, err error) { return l, nil }

// TestSend: each device that is meant, and that one may speak to, is sent a letter, at the time that its clocks tell.
func TestSend(t *testing.T) {
	w := &town{}
	s := New(Options{
		Letters: w, Fleet: w, Groups: func(string) []string { return nil }, HasSong: func(string) error { return mail.ErrNoSong },
		Zone: func(id string) *time.Location {
			if id == "b" {
				return time.FixedZone("", 8*3600)
			}
			return nil
		},
	})
	ann := func(d fleet.Device) bool { return d.Owner == "ann" }
	send := func(o Order) error {
		_, err := s.Send(t.Context(), o, ann)
		return err
	}
	if err := send(Order{To: "all", Text: "x", At: "tomorrow at 7", Expires: time.Hour, Lang: "en", Priority: mail.Low}); err != nil || len(w.sent) != 2 {
		t.Fatal(err, w.sent)
	}
	for i, l := range w.sent {
		zone := []*time.Location{time.UTC, time.FixedZone("", 8*3600)}[i]
		if got := l.At.In(zone).Format(time.TimeOnly); got != "07:00:00" || l.Ends.Sub(l.At) != time.Hour || l.Lang != "en" || l.Priority != mail.Low {
			t.Errorf("%+v", l)
		}
	}
	for at, want := range map[string]bool{
		"": true, "in 10 minutes": true, "明天早上七点": true, "07:30": true, time.Now().Add(time.Hour).Format(time.RFC3339): true, time.Now().Add(-30 * time.Second).Format(time.RFC3339): true,
		"every day at 7": false, "soon": false, "2001-01-01T00:00:00Z": false, "yesterday": false, string(make([]byte, 200)): false,
	} {
		if err := send(Order{To: "a", Text: "x", At: at}); (err == nil) != want || err != nil && !errors.Is(err, ErrAt) {
			t.Errorf("%q: %v", at, err)
		}
	}
	for _, test := range []struct {
		o    Order
		want error
	}{
		{Order{To: "c", Text: "x"}, fleet.ErrNobody}, {Order{To: "a", Text: "too many"}, mail.ErrFull}, {Order{To: "a", Kind: mail.Play, Song: "x"}, mail.ErrNoSong},
		{Order{To: "a", Text: "x", Lang: "klingon!"}, ErrLang},
	} {
		if err := send(test.o); !errors.Is(err, test.want) {
			t.Errorf("%+v: %v, want %v", test.o, err, test.want)
		}
	}
	sent, err := s.Send(t.Context(), Order{To: "all", Text: "too many"}, ann)
	if err != nil || len(sent) != 2 || !errors.Is(sent[1].Err, mail.ErrFull) {
		t.Errorf("%+v %v", sent, err)
	}
}
