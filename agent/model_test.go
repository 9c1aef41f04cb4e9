package agent

import (
	"strings"
	"testing"
	"testing/synctest"

	"golang.org/x/tools/txtar"

	"xiaozhi/providers"
)

// A model that takes no trials is asked when the user has surely finished, and once.
func TestNoTrials(t *testing.T) {
	for _, can := range []providers.Capabilities{{}, {NoTrials: true}} {
		a, err := txtar.ParseFile("testdata/talk/trial.txtar")
		if err != nil {
			t.Fatal(err)
		}
		synctest.Test(t, func(t *testing.T) {
			s := readScene(a)
			s.llm.can = can
			s.run(t)
			if used := strings.Contains(s.log.String(), "speculation=used"); used == can.NoTrials || len(s.llm.requests) != 1 {
				t.Errorf("%+v: asked %d times, on a guess: %v", can, len(s.llm.requests), used)
			}
		})
	}
}

// What a model wants back comes back to it with the message and the call, within a turn and in
// the next one; each request says who talks in which dialogue.
func TestEchoComesBack(t *testing.T) {
	a := txtar.Parse([]byte(`
-- tools --
find query 100ms "the lamp"
-- llm --
echo {"signature":1} call find {}
echo {"reasoning":"where?"}
tokens 50 3
end
text It is there.
tokens 70 5
end
text Good bye.
end
-- script --
detect find it
until tts stop
detect thanks
until tts stop
-- expect --
`))
	synctest.Test(t, func(t *testing.T) {
		s := readScene(a)
		s.run(t)
		if len(s.llm.requests) != 3 {
			t.Fatalf("asked %d times", len(s.llm.requests))
		}
		for n, req := range s.llm.requests[1:] {
			var message, call string
			for _, m := range req.Messages {
				message += m.Echo.For("script")
				for _, c := range m.ToolCalls {
					call += c.Echo.For("script")
				}
			}
			if message != `{"reasoning":"where?"}` || call != `{"signature":1}` {
				t.Errorf("request %d holds %q and %q", n+2, message, call)
			}
		}
		if log := s.log.String(); !strings.Contains(log, "prompt_tokens=120 completion_tokens=8") {
			t.Error("the turn's line does not tell what it has cost")
		}
		first := s.llm.requests[0]
		if first.DeviceID != "24:6f:28:aa:10:02" || first.AgentID != "default" || first.Conversation == "" {
			t.Errorf("the request is of %q, %q, %q", first.DeviceID, first.AgentID, first.Conversation)
		}
		if next := s.llm.requests[2].Conversation; next != first.Conversation {
			t.Errorf("the dialogue %q became %q", first.Conversation, next)
		}
	})
}

// Another talk has another name.
func TestDialogueEndsWithTheTalk(t *testing.T) {
	c := &Conversation{o: &Options{}, dev: newDevice("a")}
	first := c.dialogue()
	if c.dialogue() != first {
		t.Error("it has two names")
	}
	c.dev.endTalk()
	if c.dialogue() == first {
		t.Error("a forgotten dialogue goes on")
	}
	k := &keeperInMemory{}
	c.o.Keeper = k
	c.dev.endTalk()
	if name := c.dialogue(); name != "talk1" {
		t.Errorf("kept as %q", name)
	}
	c.dev.talk.ID = "before"
	if name := c.dialogue(); name != "before" {
		t.Errorf("a talk that goes on is %q", name)
	}
}
