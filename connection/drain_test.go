package connection

import (
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"xiaozhi/agent"
)

// TestShutdownLetsRepliesEnd stops the server in the middle of a turn: the
// device hears its reply to the end, or 8 s of it; whoever waits for nothing is
// closed at once.
func TestShutdownLetsRepliesEnd(t *testing.T) {
	for name, c := range map[string]struct {
		sent  []agent.MessageKind // before the server stops
		stops time.Duration       // after which the reply ends; 0: never by itself
		want  time.Duration       // after which the connection is closed
	}{
		"no turn":      {want: 0},
		"turn is over": {sent: []agent.MessageKind{agent.MessageSTT, agent.MessageTTSStart, agent.MessageTTSStop}, want: 0},
		"thinking":     {sent: []agent.MessageKind{agent.MessageSTT}, stops: 3 * time.Second, want: 3 * time.Second},
		"speaking":     {sent: []agent.MessageKind{agent.MessageSTT, agent.MessageTTSStart}, stops: 2 * time.Second, want: 2 * time.Second},
		"server turn":  {sent: []agent.MessageKind{agent.MessageTTSStart}, stops: time.Second, want: time.Second},
		"endless":      {sent: []agent.MessageKind{agent.MessageTTSStart}, want: replyDrain},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, nil, func(t *testing.T, r *rig) {
				p := r.greet("d1")
				talk := r.talk(0)
				for _, kind := range c.sent {
					talk.out.Send(agent.Message{Kind: kind})
				}
				began := time.Now()
				if c.stops > 0 {
					time.AfterFunc(c.stops, func() { talk.out.Send(agent.Message{Kind: agent.MessageTTSStop}) })
				}
				if err := r.server.Shutdown(t.Context()); err != nil {
					t.Fatal(err)
				}
				<-p.done
				closed := p.of(websocket.CloseMessage)
				if len(closed) != 1 || closed[0].code != 1000 || closed[0].at.Sub(began) != c.want {
					t.Errorf("closed %v after %v, want after %v", closed, time.Since(began), c.want)
				}
				texts := p.texts()
				if c.stops > 0 && !strings.Contains(texts[len(texts)-1], `"stop"`) {
					t.Errorf("the last message is %s", texts[len(texts)-1])
				}
			})
		})
	}
}
