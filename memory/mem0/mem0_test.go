package mem0

import (
	"testing"
	"time"

	"xiaozhi/internal/servicetest"
	fake "xiaozhi/internal/servicetest/mem0"
	"xiaozhi/memory"
	"xiaozhi/memory/hosted"
	"xiaozhi/memory/hosted/hostedtest"
)

// at makes the service that asks a fake, and asks it often.
func at(own bool) func(a hosted.Account) (hosted.Service, error) {
	return func(a hosted.Account) (hosted.Service, error) {
		s, err := New(Options{Account: a, Own: own})
		if err == nil {
			s.poll = time.Millisecond
		}
		return s, err
	}
}

func TestCloud(t *testing.T) {
	hostedtest.TestService(t, hostedtest.Case{Fake: fake.New(t), New: at(false), Talks: true, Users: true})
}

func TestOwnServer(t *testing.T) {
	hostedtest.TestService(t, hostedtest.Case{Fake: fake.Own(t), New: at(true), Talks: true, Users: true})
}

// TestWorkedOffLater: the cloud works off later what it is given: until then a talk is not settled; a fact that is to be remembered is waited for;
// what it could not work off is an error.
func TestWorkedOffLater(t *testing.T) {
	s := fake.New(t)
	service, err := at(false)(hosted.Account{Name: "mine", BaseURL: s.URL(), Key: servicetest.Key, Proxy: "none"})
	if err != nil {
		t.Fatal(err)
	}
	anna := memory.Owner{Device: "m", Agent: "home"}
	s.Behave(servicetest.Trouble{Delay: 20 * time.Millisecond})
	if id, err := service.Remember(t.Context(), anna, memory.Fact{Text: "It rains."}); err != nil || id == "" {
		t.Errorf("%q %v", id, err)
	}
	service.(*Service).poll = pollTime
	s.Behave(servicetest.Trouble{Delay: time.Hour})
	said := []memory.Said{{Seq: 1, Heard: "I like snow."}}
	if settled, err := service.Learn(t.Context(), anna, "t", said); err != nil || settled {
		t.Errorf("%v %v", settled, err)
	}
	s.Behave(servicetest.Trouble{Fails: true})
	if _, err := service.Learn(t.Context(), anna, "t", said); err == nil {
		t.Error("a talk that could not be worked off is no error")
	}
}

// TestManyPages: all that is known is read, a page at a time.
func TestManyPages(t *testing.T) {
	s := fake.New(t)
	service, err := at(false)(hosted.Account{Name: "mine", BaseURL: s.URL(), Key: servicetest.Key, Proxy: "none"})
	if err != nil {
		t.Fatal(err)
	}
	anna := memory.Owner{Device: "m", Agent: "home"}
	for i := range 2*pageSize + 1 {
		s.Keep(servicetest.Item{ID: string(rune('a' + i)), User: userOf(anna), Text: string(rune('a' + i))})
	}
	if all, err := service.Facts(t.Context(), anna); err != nil || len(all) != 2*pageSize+1 {
		t.Errorf("%d, %v", len(all), err)
	}
}

func TestBadAddress(t *testing.T) {
	if _, err := New(Options{Account: hosted.Account{Name: "mine", BaseURL: "ftp://x"}}); err == nil {
		t.Error("no error")
	}
	s, err := New(Options{Account: hosted.Account{Name: "mine"}})
	if err != nil || s.Name() != "mine" {
		t.Error(err)
	}
}
