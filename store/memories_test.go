package store

import (
	"errors"
	"slices"
	"testing"
	"time"
)

func same(t *testing.T, got, expected []string) {
	t.Helper()
	if !slices.Equal(got, expected) {
		t.Errorf("%q, want %q", got, expected)
	}
}

func TestMemories(t *testing.T) {
	onBoth(t, func(t *testing.T, s *Store) {
		ctx := t.Context()
		addDevice(t, s, "m")
		addDevice(t, s, "n")
		texts := func(device, agent string) (all []string) {
			t.Helper()
			of, err := s.Memories.Of(ctx, device, agent)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range of {
				all = append(all, m.Kind+" "+m.Text)
			}
			return all
		}
		fact := func(id, words string, when int) Memory {
			return Memory{ID: id, Kind: FactMemory, Text: words, At: at(when), Sure: 80}
		}
		want(t, s.Memories.Write(ctx, MemoryChange{DeviceID: "m", Agent: "a", Add: []Memory{fact("1", "likes tea", 1), fact("2", "lives in Ulm", 2)}}), nil)
		want(t, s.Memories.Write(ctx, MemoryChange{DeviceID: "m", Agent: "b", Add: []Memory{fact("3", "likes wine", 3)}}), nil)
		want(t, s.Memories.Write(ctx, MemoryChange{DeviceID: "n", Agent: "a", Add: []Memory{fact("4", "likes rum", 4)}}), nil)
		same(t, texts("m", "a"), []string{"fact lives in Ulm", "fact likes tea"})
		same(t, texts("m", "b"), []string{"fact likes wine"})
		same(t, texts("m", "c"), nil)

		// Another one takes the place of a fact, and there is one summary.
		sum := Memory{ID: "s1", Kind: SummaryMemory, Text: "tea", At: at(4)}
		want(t, s.Memories.Write(ctx, MemoryChange{DeviceID: "m", Agent: "a", Add: []Memory{fact("5", "lives in Rome", 5)}, Replace: map[string]string{"2": "5", "4": "5"}, Summary: &sum}), nil)
		sum.ID, sum.Text = "s2", "tea and Rome"
		want(t, s.Memories.Write(ctx, MemoryChange{DeviceID: "m", Agent: "a", Summary: &sum}), nil)
		same(t, texts("m", "a"), []string{"fact lives in Rome", "summary tea and Rome", "fact likes tea"})
		same(t, texts("n", "a"), []string{"fact likes rum"}) // a change reaches no other device
		all, err := s.Memories.List(ctx, "m", Page{})
		if err != nil || len(all) != 5 {
			t.Errorf("%d rows with those that hold no more, %v", len(all), err)
		}

		want(t, s.Memories.Edit(ctx, "m", "a", "1", "likes green tea"), nil)
		want(t, s.Memories.Edit(ctx, "n", "a", "1", "x"), ErrNotFound)
		want(t, s.Memories.Delete(ctx, "n", "a", []string{"1"}), ErrNotFound)
		want(t, s.Memories.Delete(ctx, "m", "a", []string{"5"}), nil) // with what it took the place of
		same(t, texts("m", "a"), []string{"summary tea and Rome", "fact likes green tea"})
		if all, err := s.Memories.List(ctx, "m", Page{}); err != nil || len(all) != 3 {
			t.Errorf("%d rows, %v", len(all), err)
		}
		n, err := s.Memories.DeleteAll(ctx, "m", "a")
		if n != 1 || err != nil {
			t.Error(n, err)
		}
		same(t, texts("m", "a"), nil)
		same(t, texts("m", "b"), []string{"fact likes wine"})
		if err := s.Memories.Write(ctx, MemoryChange{DeviceID: "nobody", Agent: "a", Add: []Memory{fact("9", "x", 9)}}); !errors.Is(err, ErrNotFound) {
			t.Error(err)
		}
	})
}

func TestMemoriesLimit(t *testing.T) {
	onBoth(t, func(t *testing.T, s *Store) {
		ctx := t.Context()
		addDevice(t, s, "m")
		for i, sure := range []int{90, 10, 50} {
			m := Memory{ID: NewID(), Kind: FactMemory, Text: "x", At: at(i), Sure: sure}
			want(t, s.Memories.Write(ctx, MemoryChange{DeviceID: "m", Agent: "a", Most: 2, Add: []Memory{m}}), nil)
		}
		of, err := s.Memories.Of(ctx, "m", "a")
		if err != nil || len(of) != 2 || of[0].Sure != 50 || of[1].Sure != 90 {
			t.Errorf("%+v %v", of, err)
		}
	})
}

func TestUnreadTalks(t *testing.T) {
	onBoth(t, func(t *testing.T, s *Store) {
		ctx := t.Context()
		addDevice(t, s, "m")
		put := func(talk string, seq int, heard string) {
			s.Log.Put(&Entry{
				Conversation: Conversation{ID: talk, DeviceID: "m", BeganAt: at(0)}, Agent: "a",
				Turn: Turn{ID: NewID(), Seq: seq, At: at(seq), Kind: "user", Cause: "done", Heard: heard, Said: "yes"},
			})
		}
		put("c", 1, "one")
		put("c", 2, "two")
		want(t, s.Log.Flush(ctx), nil)
		open, err := s.Memories.Unread(ctx, 5)
		if err != nil || len(open) != 1 || open[0] != (Unread{"c", "m", 0, 2, at(2)}) {
			t.Fatalf("%+v %v", open, err)
		}
		said, err := s.Memories.Said(ctx, "c", 1, 5)
		if err != nil || len(said) != 1 || said[0].Heard != "two" || said[0].Agent != "a" || said[0].Seq != 2 {
			t.Errorf("%+v %v", said, err)
		}
		want(t, s.Memories.Write(ctx, MemoryChange{DeviceID: "m", Agent: "a", Talk: "c", Learned: 2}), nil)
		if open, err := s.Memories.Unread(ctx, 5); err != nil || len(open) != 0 {
			t.Errorf("%+v %v", open, err)
		}
		put("c", 3, "three")
		want(t, s.Log.Flush(ctx), nil)
		if open, err := s.Memories.Unread(ctx, 5); err != nil || len(open) != 1 || open[0].Learned != 2 || open[0].Turns != 3 {
			t.Errorf("%+v %v", open, err)
		}
		// Of a talk of which a turn was deleted, what comes is read.
		want(t, s.Memories.Write(ctx, MemoryChange{DeviceID: "m", Agent: "a", Talk: "c", Learned: 3, Add: []Memory{{ID: "f", Kind: FactMemory, Text: "x", TurnID: said[0].ID, At: at(1)}}}), nil)
		want(t, s.DeleteTurn(ctx, said[0].ID), nil)
		if of, err := s.Memories.Of(ctx, "m", "a"); err != nil || len(of) != 0 {
			t.Errorf("what was learned from the turn is still known: %+v %v", of, err)
		}
		put("c", 4, "four")
		want(t, s.Log.Flush(ctx), nil)
		if open, err := s.Memories.Unread(ctx, 5); err != nil || len(open) != 1 {
			t.Errorf("%+v %v", open, err)
		}
		cost := 7
		want(t, s.Memories.Spent(ctx, "a", MemoryRun{DeviceID: "m", ConversationID: "c", At: at(1), Took: time.Second, LLM: "x", TokensIn: 10, TokensOut: 3, CostMicros: &cost}), nil)
		rows, err := s.Turns.Costs(ctx, CostQuery{From: at(0), To: at(100)})
		if err != nil || len(rows) != 2 || rows[1].CostMicros != 7 || rows[1].Turns != 0 || rows[1].TokensIn != 10 {
			t.Errorf("%+v %v", rows, err)
		}
	})
}

// TestVectors: vectors of facts are kept with the model that made them; those of another model, another length or another text are made anew.
func TestVectors(t *testing.T) {
	onBoth(t, func(t *testing.T, s *Store) {
		ctx := t.Context()
		addDevice(t, s, "m")
		addDevice(t, s, "n")
		add := func(device, agent, id, words string) {
			t.Helper()
			want(t, s.Memories.Write(ctx, MemoryChange{DeviceID: device, Agent: agent, Add: []Memory{{ID: id, Kind: FactMemory, Text: words, At: at(1)}}}), nil)
		}
		add("m", "a", "1", "likes tea")
		add("m", "a", "2", "lives in Ulm")
		add("m", "b", "3", "likes wine")
		add("n", "a", "4", "likes rum")
		want(t, s.Memories.Write(ctx, MemoryChange{DeviceID: "m", Agent: "a", Summary: &Memory{ID: "s", Kind: SummaryMemory, Text: "tea", At: at(2)}}), nil)
		unlike := func(model string, bytes int, ids ...string) {
			t.Helper()
			after, got := "", []string(nil)
			for {
				rows, err := s.Memories.Unlike(ctx, model, bytes, after, 2)
				if err != nil {
					t.Fatal(err)
				}
				if len(rows) == 0 {
					break
				}
				for _, r := range rows {
					got, after = append(got, r.ID+r.Agent+r.DeviceID), r.ID
				}
			}
			same(t, got, ids)
		}
		unlike("x", 0, "1am", "2am", "3bm", "4an")
		want(t, s.Memories.SetVectors(ctx, "x", []Vector{{"1", "likes tea", []byte("12345")}, {"2", "lives in Rome", []byte("12345")}, {"3", "likes wine", []byte("123")}, {"none", "?", []byte("1")}}), nil)
		unlike("x", 0, "2am", "4an")
		unlike("x", 5, "2am", "3bm", "4an")
		unlike("y", 5, "1am", "2am", "3bm", "4an")
		of := func(device, agent, model string, want ...string) {
			t.Helper()
			rows, err := s.Memories.Vectors(ctx, device, agent, model)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, r := range rows {
				got = append(got, r.MemoryID+string(r.Data))
			}
			same(t, got, want)
		}
		of("m", "a", "x", "112345")
		of("m", "b", "x", "3123")
		of("n", "a", "x")
		of("m", "a", "y")
		want(t, s.Memories.Edit(ctx, "m", "a", "1", "likes green tea"), nil) // its vector was of other words
		of("m", "a", "x")
		want(t, s.Memories.Write(ctx, MemoryChange{DeviceID: "m", Agent: "b", Add: []Memory{{ID: "5", Kind: FactMemory, Text: "likes ale", At: at(3)}}, Replace: map[string]string{"3": "5"}}), nil)
		of("m", "b", "x") // it holds no more
	})
}

// TestPlaces: what a service keeps, and what it is to delete, is known until it has deleted it, also after the device is forgotten; it is given what was
// read and not what was said before.
func TestPlaces(t *testing.T) {
	onBoth(t, func(t *testing.T, s *Store) {
		ctx := t.Context()
		addDevice(t, s, "m")
		put := func(agent, what string, gone bool) {
			t.Helper()
			want(t, s.Memories.Put(ctx, Place{Service: "x", DeviceID: "m", Agent: agent, What: what, Gone: gone, At: at(len(agent + what))}), nil)
		}
		gone := func(service string, expected ...string) {
			t.Helper()
			all, err := s.Memories.Places(ctx, service)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, p := range all {
				got = append(got, p.DeviceID+p.Agent+p.What)
			}
			same(t, got, expected)
		}
		put("a", "", false)
		put("bb", "", false)
		put("a", "", false) // once more
		gone("x")
		put("a", "fact", true)
		gone("x", "mafact")
		gone("y")
		want(t, s.Memories.Left(ctx, Place{Service: "x", DeviceID: "m", Agent: "a", What: "fact"}), nil)
		gone("x")
		want(t, s.Memories.Leave(ctx, "y", "m"), nil)
		gone("x")
		want(t, s.Memories.Leave(ctx, "x", "m"), nil)
		gone("x", "ma", "mbb")
		put("a", "fact", true)
		want(t, s.Memories.Left(ctx, Place{Service: "x", DeviceID: "m", Agent: "a"}), nil) // with its parts
		gone("x", "mbb")
		put("a", "", false)
		if _, err := s.Forget(ctx, "m"); err != nil {
			t.Fatal(err)
		}
		gone("x", "ma", "mbb")
	})
}

func TestUngiven(t *testing.T) {
	onBoth(t, func(t *testing.T, s *Store) {
		ctx := t.Context()
		addDevice(t, s, "m")
		say := func(talk string, seq int) {
			t.Helper()
			s.Log.Put(&Entry{Conversation: Conversation{ID: talk, DeviceID: "m", BeganAt: at(0)}, Agent: "a", Turn: Turn{ID: NewID(), Seq: seq, At: at(seq), Kind: "user", Cause: "done", Heard: "x"}})
			want(t, s.Log.Flush(ctx), nil)
		}
		ungiven := func(expected ...Unread) {
			t.Helper()
			got, err := s.Memories.Ungiven(ctx, 9)
			if err != nil || len(got) != len(expected) {
				t.Fatalf("%+v %v, want %+v", got, err, expected)
			}
			for i := range got {
				if got[i].ID != expected[i].ID || got[i].Learned != expected[i].Learned || got[i].Turns != expected[i].Turns {
					t.Errorf("%+v, want %+v", got, expected)
				}
			}
		}
		read := func(talk string, learned int, give bool) {
			t.Helper()
			want(t, s.Memories.Write(ctx, MemoryChange{DeviceID: "m", Agent: "a", Talk: talk, Learned: learned, Give: give}), nil)
		}
		say("c", 1)
		ungiven() // nobody has read it
		read("c", 1, false)
		ungiven() // there was no service
		say("c", 2)
		say("c", 3)
		read("c", 3, true)
		ungiven(Unread{ID: "c", Learned: 1, Turns: 3})
		want(t, s.Memories.Given(ctx, "c", 3), nil)
		ungiven()
		say("d", 1)
		read("d", 1, true)
		if _, err := s.Memories.DeleteAll(ctx, "m", ""); err != nil {
			t.Fatal(err)
		}
		ungiven() // what is forgotten goes nowhere any more
	})
}

// TestErasedAtServices: what services have learned from a talk that is deleted they have to delete; of a turn, too, and they are given the rest of its
// talk again.
func TestErasedAtServices(t *testing.T) {
	onBoth(t, func(t *testing.T, s *Store) {
		ctx := t.Context()
		addDevice(t, s, "m")
		addDevice(t, s, "other")
		for _, device := range []string{"m", "other"} {
			want(t, s.Memories.Put(ctx, Place{Service: "x", DeviceID: device, Agent: "a"}), nil)
		}
		turns := map[string]string{}
		for _, talk := range []string{"gone", "dropped", "cut"} {
			for seq := 1; seq <= 3; seq++ {
				turns[talk] = NewID() // the last one
				s.Log.Put(&Entry{Conversation: Conversation{ID: talk, DeviceID: "m", BeganAt: at(0)}, Agent: "a", Turn: Turn{ID: turns[talk], Seq: seq, At: at(seq), Kind: "user", Cause: "done", Heard: "x"}})
			}
			want(t, s.Log.Flush(ctx), nil)
			want(t, s.Memories.Write(ctx, MemoryChange{DeviceID: "m", Agent: "a", Talk: talk, Learned: 3, Give: true}), nil)
			want(t, s.Memories.Given(ctx, talk, 3), nil)
		}
		want(t, s.DeleteTalk(ctx, "gone"), nil)
		want(t, s.DeleteTalk(ctx, "gone"), ErrNotFound)
		s.Log.Erase("dropped")
		want(t, s.Log.Flush(ctx), nil)
		want(t, s.DeleteTurn(ctx, turns["cut"]), nil)
		var got []string
		all, err := s.Memories.Places(ctx, "x")
		for _, p := range all {
			got = append(got, p.DeviceID+" "+p.What)
		}
		slices.Sort(got)
		want(t, err, nil)
		same(t, got, []string{"m talk:cut", "m talk:dropped", "m talk:gone"})
		rest, err := s.Memories.Ungiven(ctx, 9)
		if err != nil || len(rest) != 1 || rest[0].ID != "cut" || rest[0].Learned != 0 || rest[0].Turns != 2 {
			t.Errorf("%+v %v", rest, err)
		}
	})
}
