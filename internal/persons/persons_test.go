package persons

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"xiaozhi/providers"
	"xiaozhi/store"
	"xiaozhi/voices"
)

// What a book of voices keeps comes back as it was, and its errors are those of the book.
func TestStored(t *testing.T) {
	ctx := t.Context()
	tables, err := store.Open(ctx, store.Options{Path: filepath.Join(t.TempDir(), "x.db")})
	if err != nil {
		t.Fatal(err)
	}
	defer tables.Close()
	s := New(tables.People)
	at := time.UnixMilli(1_800_000_000_000)
	anna := voices.Person{ID: "a", Name: "Anna", By: "owner", At: at}
	here := voices.Voice{
		Print: providers.Print{ID: "v1", Person: "a", Model: "m", Data: []byte{1, 2}}, Service: "sherpa", Source: voices.Talk, Device: "d", Length: 3 * time.Second, At: at,
	}
	far := voices.Voice{Print: providers.Print{ID: "v2", Person: "a", Model: "m"}, Service: "svc", Source: voices.Browser, Length: 4 * time.Second, At: at}
	for _, err := range []error{s.Add(ctx, anna), s.Begin(ctx, voices.Removal{ID: "v2", Service: "svc", Next: at}), s.AddVoice(ctx, here, 9), s.AddVoice(ctx, far, 9)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	before, err := s.Load(ctx)
	if err != nil || len(before.People) != 1 || len(before.Voices) != 2 || len(before.Removals) != 0 {
		t.Fatalf("%+v, %v", before, err)
	}
	if got := before.People[0]; got.ID != anna.ID || got.Name != anna.Name || got.By != anna.By || !got.At.Equal(at) {
		t.Errorf("%+v", got)
	}
	if got := before.Voices[0]; string(got.Print.Data) != "\x01\x02" || got.Print.Person != "a" || got.Source != voices.Talk || got.Device != "d" || got.Length != 3*time.Second {
		t.Errorf("%+v", got)
	}
	if before.Voices[1].Print.Data != nil {
		t.Errorf("%+v", before.Voices[1])
	}
	for what, c := range map[string]struct{ got, want error }{
		"the name":         {s.Add(ctx, voices.Person{ID: "b", Name: "ANNA"}), voices.ErrTaken},
		"nobody's voice":   {s.AddVoice(ctx, voices.Voice{Print: providers.Print{ID: "v3", Person: "x"}}, 9), voices.ErrNobody},
		"nobody's name":    {s.Edit(ctx, voices.Person{ID: "x", Name: "X"}), voices.ErrNobody},
		"no such voice":    {s.DeleteVoice(ctx, "a", "x"), voices.ErrNobody},
		"deleting nobody":  {s.Delete(ctx, "x", false), voices.ErrNobody},
		"deleting a voice": {s.DeleteVoice(ctx, "a", "v2"), nil},
		"not yet":          {s.NotRemoved(ctx, "v2", "away", at), nil},
	} {
		if !errors.Is(c.got, c.want) {
			t.Errorf("%s: %v", what, c.got)
		}
	}
	after, err := s.Load(ctx)
	if err != nil || len(after.Voices) != 1 || len(after.Removals) != 1 || after.Changes <= before.Changes {
		t.Errorf("%+v, %v", after, err)
	}
	if n, err := s.Changes(ctx); n != after.Changes || err != nil {
		t.Errorf("%d, %v", n, err)
	}
}
