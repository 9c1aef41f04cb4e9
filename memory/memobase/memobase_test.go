package memobase

import (
	"testing"

	"xiaozhi/internal/servicetest"
	fake "xiaozhi/internal/servicetest/memobase"
	"xiaozhi/memory"
	"xiaozhi/memory/hosted"
	"xiaozhi/memory/hosted/hostedtest"
)

func at(a hosted.Account) (hosted.Service, error) { return New(Options{Account: a, Own: true}) }

func TestMemobase(t *testing.T) {
	hostedtest.TestService(t, hostedtest.Case{Fake: fake.New(t), New: at})
}

// TestEventsGoToo: what an event tells of a fact goes with it, and what other events tell stays.
func TestEventsGoToo(t *testing.T) {
	s := fake.New(t)
	service, err := at(hosted.Account{Name: "mine", BaseURL: s.URL() + "/api/v1", Key: servicetest.Key, Proxy: "none"}) // as its own clients want the address
	if err != nil {
		t.Fatal(err)
	}
	anna := memory.Owner{Device: "m", Agent: "home"}
	if _, err := service.Learn(t.Context(), anna, "t", []memory.Said{{Seq: 1, Heard: "I am allergic to peanuts. My cat is called Tom."}}); err != nil {
		t.Fatal(err)
	}
	facts, err := service.Facts(t.Context(), anna)
	if err != nil || len(facts) != 2 || len(s.Events()) != 2 {
		t.Fatalf("%+v %v, events %q", facts, err, s.Events())
	}
	if err := service.Forget(t.Context(), anna, memory.Fact{ID: facts[0].ID}); err != nil { // its words are not known here
		t.Fatal(err)
	}
	if left := s.Events(); len(left) != 1 || left[0] != "My cat is called Tom" {
		t.Errorf("events that are left: %q", left)
	}
}

// TestUsers: the id of a user is a UUID of version 5 that is the same each time and nobody else's.
func TestUsers(t *testing.T) {
	a, b := userOf(memory.Owner{Device: "m", Agent: "home"}), userOf(memory.Owner{Device: "mhome"})
	if len(a) != 36 || a[14] != '5' || a == b || a != userOf(memory.Owner{Device: "m", Agent: "home"}) {
		t.Errorf("%s %s", a, b)
	}
}
