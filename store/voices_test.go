package store

import (
	"slices"
	"testing"
	"time"
)

// household adds people, each with a voice that the service keeps and one that is kept here.
func household(t *testing.T, s *Store, names ...string) {
	t.Helper()
	for _, name := range names {
		want(t, s.People.Add(t.Context(), Person{ID: name, Name: name, ByName: "owner", At: at(0)}), nil)
		want(t, s.People.Begin(t.Context(), VoiceRemoval{ID: name + "-far", Service: "svc", At: at(0), NextAt: at(300)}), nil)
		want(t, s.People.AddVoice(t.Context(), Voice{ID: name + "-far", PersonID: name, Service: "svc", Model: "m", Source: "browser", Length: 2 * time.Second, At: at(1)}, 9), nil)
		want(t, s.People.AddVoice(t.Context(), Voice{ID: name + "-here", PersonID: name, Service: "sherpa", Model: "n", Print: []byte{1, 2}, Source: "device", DeviceID: "m", Length: time.Second, At: at(2)}, 9), nil)
	}
}

// voiceIDs lists the ids of voices and of what is to be forgotten.
func voiceIDs(t *testing.T, s *Store) (voices, removals []string) {
	t.Helper()
	_, all, gone, err := s.People.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range all {
		voices = append(voices, v.ID)
	}
	for _, r := range gone {
		removals = append(removals, r.ID)
	}
	return voices, removals
}

func TestPeople(t *testing.T) {
	onBoth(t, func(t *testing.T, s *Store) {
		ctx := t.Context()
		addDevice(t, s, "m")
		want(t, s.Users.Add(ctx, User{ID: "u", Name: "anna", Shown: "Anna", Role: Owner}), nil)
		want(t, s.Users.Add(ctx, User{ID: "o", Name: "o", Shown: "O", Role: Owner}), nil)
		household(t, s, "Anna", "Ben")
		before, err := s.People.Changes(ctx)
		if err != nil || before < 4 {
			t.Errorf("%d changes, %v", before, err)
		}
		want(t, s.People.Add(ctx, Person{ID: "x", Name: " anna "}), ErrExists)
		want(t, s.People.Edit(ctx, "Ben", "ANNA", ""), ErrExists)
		want(t, s.People.Edit(ctx, "nobody", "N", ""), ErrNotFound)
		want(t, s.People.AddVoice(ctx, Voice{ID: "v", PersonID: "nobody", Service: "svc", Model: "m", Source: "x", Length: 1}, 9), ErrNotFound)
		fact := func(id, person string) Memory {
			return Memory{ID: id, Kind: FactMemory, Text: "likes tea", Person: person, At: at(1), Sure: 80}
		}
		want(t, s.Memories.Write(ctx, MemoryChange{DeviceID: "m", Agent: "a", Add: []Memory{fact("1", "Anna"), fact("2", ""), fact("3", "Ben")}}), nil)
		want(t, s.People.Edit(ctx, "Anna", "Anna Maria", "u"), nil)
		people, voices, _, err := s.People.List(ctx)
		if err != nil || len(people) != 2 || people[0].Name != "Anna Maria" || people[0].UserID != "u" || people[0].ByName != "owner" {
			t.Errorf("%+v, %v", people, err)
		}
		if v := voices[1]; len(voices) != 4 || v.Print != nil || v.Length != 2*time.Second || voices[3].DeviceID != "m" || string(voices[3].Print) != "\x01\x02" {
			t.Errorf("%+v", voices)
		}
		of, _ := s.Memories.Of(ctx, "m", "a")
		if got := of[len(of)-1].Person + of[0].Person; got != "Anna Maria"+"Ben" && got != "BenAnna Maria" {
			t.Errorf("facts are of %q", got)
		}

		// Deleting a person has the service forget what it keeps; what is kept here is gone at once.
		want(t, s.People.Delete(ctx, "Anna", true), nil)
		want(t, s.People.Delete(ctx, "Anna", true), ErrNotFound)
		ids, gone := voiceIDs(t, s)
		same(t, ids, []string{"Ben-far", "Ben-here"})
		same(t, gone, []string{"Anna-far"})
		if of, _ := s.Memories.Of(ctx, "m", "a"); len(of) != 2 {
			t.Errorf("%d facts are left, want 2", len(of))
		}
		want(t, s.People.NotRemoved(ctx, "Anna-far", "it is away", at(60)), nil)
		_, _, removals, _ := s.People.List(ctx)
		if r := removals[0]; r.Tries != 1 || r.Fault != "it is away" || !r.NextAt.Equal(at(60)) || r.Service != "svc" {
			t.Errorf("%+v", r)
		}
		want(t, s.People.Removed(ctx, "Anna-far"), nil)
		want(t, s.People.DeleteVoice(ctx, "Anna", "Ben-far"), ErrNotFound)
		want(t, s.People.DeleteVoice(ctx, "Ben", "Ben-here"), nil)
		ids, gone = voiceIDs(t, s)
		same(t, ids, []string{"Ben-far"})
		same(t, gone, nil)
		if after, err := s.People.Changes(ctx); err != nil || after <= before {
			t.Errorf("%d changes after %d, %v", after, before, err)
		}

		// Of too many the oldest go, also at the service.
		for i, id := range []string{"1", "2", "3"} {
			want(t, s.People.AddVoice(ctx, Voice{ID: id, PersonID: "Ben", Service: "svc", Model: "m", Source: "browser", Length: 1e9, At: at(10 + i)}, 2), nil)
		}
		ids, gone = voiceIDs(t, s)
		same(t, ids, []string{"2", "3"})
		slices.Sort(gone) // they may be of one millisecond
		same(t, gone, []string{"1", "Ben-far"})

		// An account that is deleted leaves its person.
		want(t, s.People.Edit(ctx, "Ben", "Ben", "u"), nil)
		want(t, s.Users.Delete(ctx, "u"), nil)
		if people, _, _, _ := s.People.List(ctx); len(people) != 1 || people[0].UserID != "" {
			t.Errorf("%+v", people)
		}
	})
}

// TestSpeakerOfTurns: a turn names its speaker until that one is deleted.
func TestSpeakerOfTurns(t *testing.T) {
	onBoth(t, func(t *testing.T, s *Store) {
		ctx := t.Context()
		addDevice(t, s, "m")
		household(t, s, "Anna")
		e := turnOf("m", "c", 1)
		e.Turn.Speaker, e.Turn.SpeakerSure = "Anna", 82
		s.Log.Put(e)
		stranger := turnOf("m", "c", 2)
		stranger.Turn.Speaker = StrangerSpoke
		s.Log.Put(stranger)
		before := turnOf("m", "c", 3)
		before.Turn.Speaker = "Anna" // whose voice was heard a moment ago
		s.Log.Put(before)
		flush(t, s)
		said, err := s.Memories.Said(ctx, "c", 0, 9)
		if err != nil || len(said) != 3 || said[0].Speaker != "Anna" || said[1].Speaker != "" || said[2].Speaker != "" {
			t.Errorf("%+v, %v", said, err)
		}
		want(t, s.People.Delete(ctx, "Anna", false), nil)
		if said, _ := s.Memories.Said(ctx, "c", 0, 9); said[0].Speaker != "" {
			t.Errorf("a person who was deleted is named: %+v", said[0])
		}
	})
}
