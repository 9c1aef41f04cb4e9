package store

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// talksOf are the ids of a list.
func talksOf(l TalkList) (ids []string) {
	for i := range l.Talks {
		ids = append(ids, l.Talks[i].ID)
	}
	return ids
}

// fourTalks fills a store with talks of ann's speaker, of ben's and of nobody's.
func fourTalks(t *testing.T, s *Store) {
	t.Helper()
	ctx := t.Context()
	for _, id := range []string{"ann", "ben"} {
		want(t, s.Users.Add(ctx, User{ID: id, Name: id, Shown: id, Role: Member, CreatedAt: at(0)}), nil)
	}
	for id, owner := range map[string]string{"a1": "ann", "a2": "ann", "b1": "ben", "n": ""} {
		addDevice(t, s, id)
		_, err := s.Devices.Edit(ctx, id, func(d *Device) error { d.OwnerID = owner; return nil })
		want(t, err, nil)
		_, err = s.db.exec(ctx, "UPDATE devices SET name = $1 WHERE id = $2", "speaker "+id, id)
		want(t, err, nil)
	}
	put := func(n int, device, talk string, change func(*Entry)) {
		e := turnOf(device, talk, n)
		e.Conversation.BeganAt = at(0).Add(time.Duration(n/10) * time.Minute)
		e.Agent = "anna"
		if change != nil {
			change(e)
		}
		s.Log.Put(e)
	}
	put(10, "a1", "c1", func(e *Entry) {
		e.Turn.Heard, e.Turn.E2E, e.Turn.CostMicros = "现在几点 100%", 900*time.Millisecond, new(5)
	})
	put(11, "a1", "c1", func(e *Entry) {
		e.Turn.Said, e.Turn.Cause, e.Turn.E2E, e.Turn.CostMicros, e.Agent = "Half past NINE", "barge-in", 2*time.Second, new(7), "bob"
	})
	put(20, "a2", "c2", func(e *Entry) { e.Turn.Fault, e.Turn.Cause = "broken", "failed" })
	put(30, "b1", "c3", func(e *Entry) { e.Calls[0].Name = "lamp.on" })
	put(40, "n", "c4", nil)
	flush(t, s)
}

// TestTalks: each filter finds what it names, a member's own talks only, and a list goes on where it ended.
func TestTalks(t *testing.T) {
	onBoth(t, func(t *testing.T, s *Store) {
		ctx := t.Context()
		fourTalks(t, s)
		want(t, s.Conversations.Keep(ctx, "c2", true), nil)
		for _, c := range []struct {
			f    TalkFilter
			want string
		}{
			{TalkFilter{}, "c4 c3 c2 c1"},
			{TalkFilter{Owner: "ann"}, "c2 c1"},
			{TalkFilter{Owner: "ben"}, "c3"},
			{TalkFilter{Owner: "nobody"}, ""},
			{TalkFilter{Owner: "ann", Device: "a1"}, "c1"},
			{TalkFilter{Owner: "ann", Device: "b1"}, ""},
			{TalkFilter{Device: "n"}, "c4"},
			{TalkFilter{Agent: "bob"}, "c1"},
			{TalkFilter{Kept: true}, "c2"},
			{TalkFilter{Text: "几点"}, "c1"},
			{TalkFilter{Text: "past nine"}, "c1"},
			{TalkFilter{Text: "100%"}, "c1"},
			{TalkFilter{Text: "0%0"}, ""},
			{TalkFilter{Text: "_ime"}, ""},
			{TalkFilter{Text: "what time", Owner: "ben"}, "c3"},
			{TalkFilter{Failed: true}, "c2"},
			{TalkFilter{Failed: true, Owner: "ben"}, ""},
			{TalkFilter{Interrupted: true}, "c1"},
			{TalkFilter{Slower: 1500 * time.Millisecond}, "c1"},
			{TalkFilter{Slower: 2 * time.Second}, ""},
			{TalkFilter{Tool: "lamp.on"}, "c3"},
			{TalkFilter{Tool: "lamp.on", Failed: true}, ""},
			{TalkFilter{Text: "几点", Interrupted: true}, ""}, // of one and the same turn
		} {
			l, err := s.Talks.List(ctx, c.f, Page{})
			if got := strings.Join(talksOf(l), " "); err != nil || got != c.want || l.Next != (Cursor{}) {
				t.Errorf("%+v: %q, want %q; %+v, %v", c.f, got, c.want, l.Next, err)
			}
		}
		var all []string
		for p := (Page{Limit: 1}); ; {
			l, err := s.Talks.List(ctx, TalkFilter{}, p)
			if err != nil || len(all) > 9 {
				t.Fatal(err, all)
			}
			all = append(all, talksOf(l)...)
			if p.Before = l.Next; l.Next == (Cursor{}) {
				break
			}
		}
		if !slices.Equal(all, []string{"c4", "c3", "c2", "c1"}) {
			t.Errorf("%q", all)
		}
		c1, err := s.Talks.Get(ctx, "c1")
		if err != nil || c1.DeviceName != "speaker a1" || c1.OwnerID != "ann" || c1.Agent != "bob" || c1.Words != "现在几点 100%" || c1.Failed != 0 || c1.Interrupted != 1 ||
			c1.Slowest != 2*time.Second || c1.CostMicros != 12 || c1.Turns != 2 || !c1.LastAt.Equal(at(0).Add(11*time.Second)) {
			t.Errorf("%+v, %v", c1, err)
		}
		of, err := s.Talks.OfTurn(ctx, "c3-000030")
		if err != nil || of.ID != "c3" || of.OwnerID != "ben" {
			t.Errorf("%+v, %v", of, err)
		}
		_, err = s.Talks.OfTurn(ctx, "nothing")
		want(t, err, ErrNotFound)
		n, err := s.Talks.With(ctx, "c1", 10, 50)
		if err != nil || len(n.Messages) != 1 || len(n.Messages["c1-000011"]) != 2 || len(n.Calls["c1-000011"]) != 1 || len(n.Recordings) != 0 {
			t.Errorf("%+v, %v", n, err)
		}
	})
}

// TestTalksSearchBounded: a search that finds nothing for long says where it goes on.
func TestTalksSearchBounded(t *testing.T) {
	s := openFile(t, t.TempDir()+"/x.db")
	addDevice(t, s, "m")
	b := newBatch()
	for i := range searched + 20 {
		e := turnOf("m", fmt.Sprintf("c%05d", i), i)
		e.Conversation.BeganAt = at(0).Add(time.Duration(i) * time.Minute)
		if i == 3 {
			e.Turn.Heard = "needle"
		}
		e.Turn.ConversationID, e.Turn.DeviceID = e.Conversation.ID, "m"
		b.entries = append(b.entries, e)
	}
	want(t, s.Log.write(t.Context(), &b), nil)
	l, err := s.Talks.List(t.Context(), TalkFilter{Text: "needle"}, Page{})
	if err != nil || len(l.Talks) != 0 || l.Next.ID != "c00020" {
		t.Fatalf("%+v, %v", l, err)
	}
	l, err = s.Talks.List(t.Context(), TalkFilter{Text: "needle"}, Page{Before: l.Next})
	if err != nil || len(l.Talks) != 1 || l.Talks[0].ID != "c00003" || l.Next != (Cursor{}) {
		t.Errorf("%+v, %v", l, err)
	}
}

// TestDeleteTalks: a turn, or a talk, is gone with all that belongs to it.
func TestDeleteTalks(t *testing.T) {
	onBoth(t, func(t *testing.T, s *Store) {
		ctx := t.Context()
		fourTalks(t, s)
		want(t, s.DeleteTurn(ctx, "c1-000010"), nil)
		c1, err := s.Talks.Get(ctx, "c1")
		if err != nil || c1.Turns != 1 || c1.Words != "what time is it" {
			t.Errorf("%+v, %v", c1, err)
		}
		want(t, s.DeleteTurn(ctx, "c1-000011"), nil)
		_, err = s.Talks.Get(ctx, "c1")
		want(t, err, ErrNotFound)
		want(t, s.DeleteTurn(ctx, "c1-000011"), ErrNotFound)
		want(t, s.DeleteTalk(ctx, "c3"), nil)
		want(t, s.DeleteTalk(ctx, "c3"), ErrNotFound)
		_, _, calls, err := s.Turns.Get(ctx, "c3-000030")
		want(t, err, ErrNotFound)
		if all, err := s.Turns.Calls(ctx, "", Page{}); err != nil || len(calls) != 0 || len(all) != 2 {
			t.Errorf("%+v, %v", all, err)
		}
	})
}
