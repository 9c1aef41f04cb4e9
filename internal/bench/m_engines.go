package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"xiaozhi/internal/devicetest"
)

// The devices of M22 that have the engines of the program itself.
const (
	heardBySelf  = "24:6f:28:bf:00:01"
	spokenBySelf = "24:6f:28:bf:00:02"
)

// ownEngines are the settings of them.
const ownEngines = `agents: {own: {asr: [pocketsphinx], tts: [local]}}
devices: {"` + heardBySelf + `": {agent: own}, "` + spokenBySelf + `": {agent: own}}
`

const (
	longUtterance = 20 * time.Second
	longWords     = 400 // of a sentence
)

// embedded is M22: the jitter of devices that are spoken to by a service, before and while the embedded recogniser hears one
// long utterance after the other and the embedded voice makes the sound of long sentences.
func embedded(ctx context.Context, r *rig) ([]Figure, error) {
	const what = "jitter beside the embedded engines"
	if r.own == nil {
		return []Figure{unmeasured("M22", what, "only of a server that the bench starts, with pocketsphinx installed")}, nil
	}
	if err := r.own.await(ctx, readyLimit, "is not ready", r.own.ready); err != nil {
		return nil, err
	}
	r.stubs.Set(Plan{Sound: -1, Replies: []string{strings.Repeat("word and ", longWords/2) + "end."}})
	o := devicetest.Options{Mode: devicetest.Manual, NoMCP: true}
	speakers, err := r.speaking(ctx, r.speakers, o)
	if err != nil {
		return nil, err
	}
	err1 := pause(ctx, time.Second)
	before, err2 := listenTo(ctx, speakers, r.window)
	if err := cmp.Or(err1, err2); err != nil {
		return nil, err
	}
	o.DeviceID = heardBySelf
	talker, err1 := r.dial(ctx, o)
	o.DeviceID = spokenBySelf
	listener, err2 := r.dial(ctx, o)
	if err := cmp.Or(err1, err2); err != nil {
		return nil, err
	}
	working, stop := context.WithCancel(ctx)
	done := make(chan error, 2)
	heard, said := 0, 0
	go func() {
		done <- endlessly(working, func() error { heard++; return talker.saysMuch(working, r.said.packets) })
	}()
	go func() {
		done <- endlessly(working, func() error { said++; return listener.isToldMuch(working) })
	}()
	err1 = pause(ctx, time.Second)
	control := r.target.watch(ctx)
	share := usage(r.target.pid)
	during, err2 := listenTo(ctx, speakers, r.window)
	used := share()
	watched := control()
	stop()
	if err := cmp.Or(err1, err2, <-done, <-done); err != nil {
		return nil, err
	}
	if n := len(during.deaf); n > 0 {
		return nil, fmt.Errorf("%d of %d speakers were told nothing any more", n, len(speakers))
	}
	beside := sampled("M22", fmt.Sprintf("jitter of %d beside the embedded engines", len(speakers)), ms(during.jitter), most(P99, 10)).
		noted("%d underruns; %d utterances, %d sentences; the server used %.2f cores", during.underruns, heard, said, used).asJitter()
	beside.Control = watched
	return []Figure{
		sampled("M22", fmt.Sprintf("jitter of %d devices that a service speaks to", len(speakers)), ms(before.jitter)).asJitter(),
		beside,
	}, nil
}

// endlessly calls f until ctx ends, and returns what went wrong before.
func endlessly(ctx context.Context, f func() error) error {
	for {
		if err := f(); ctx.Err() != nil {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// saysMuch holds the button for a long utterance, and waits until an answer begins.
func (c *client) saysMuch(ctx context.Context, packets [][]byte) error {
	n := int(longUtterance / c.packet)
	said := slices.Repeat(packets, n/len(packets)+1)[:n]
	if err := errors.Join(c.ListenStart(devicetest.Manual), c.SayPackets(ctx, time.Now(), said...), c.ListenStop()); err != nil {
		return err
	}
	if _, err := c.told(ctx, "start"); err != nil {
		return err
	}
	_, err := c.cut(ctx)
	return err
}

// isToldMuch asks for a long sentence, and interrupts it when it is heard.
func (c *client) isToldMuch(ctx context.Context) error {
	if err := c.ask(ctx, aStory); err != nil {
		return err
	}
	_, err := c.cut(ctx)
	return errors.Join(err, pause(ctx, 200*time.Millisecond))
}
