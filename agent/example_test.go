package agent_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"xiaozhi/agent"
	"xiaozhi/internal/wire"
	"xiaozhi/mcp/router"
	"xiaozhi/prompts"
	"xiaozhi/providers"
	"xiaozhi/providers/providertest"
)

// display is the way to a device that shows texts and plays nothing.
type display struct{ stopped chan struct{} }

func (d display) Send(m wire.Message) {
	if m.Kind == wire.MessageSentenceStart {
		fmt.Println("it says:", m.Text)
	}
	if m.Kind == wire.MessageFinal {
		fmt.Println("it has said:", m.Text)
		close(d.stopped)
	}
}

func (display) Audio(uint64, []byte) (stamp uint32, ok bool) { return 0, true }
func (display) Lag() time.Duration                           { return 0 }
func (display) HangUp(error)                                 {}

// A conversation gets what a device does as events, and answers through an Outbox.
func Example() {
	texts, err := prompts.Load("")
	if err != nil {
		fmt.Println(err)
		return
	}
	tools := router.New(router.Options{})
	defer tools.Close()
	devices := agent.NewDevices()
	defer devices.Close()
	device := display{stopped: make(chan struct{})}
	model := &providertest.LLM{Answer: func(providers.LLMRequest) providertest.Step { return providertest.Say("It is ", "half past nine.") }}
	talk := agent.New(agent.Options{
		VAD: &providertest.VAD{}, ASR: &providertest.ASR{}, LLM: model, TTS: &providertest.TTS{Script: []providertest.Speech{{Length: 60 * time.Millisecond}}},
		Prompts: texts, Devices: devices, Guard: time.Millisecond,
	}, wire.Session{DeviceID: "24:6f:28:00:00:01", Language: "en"}, device, tools)

	ctx, hangUp := context.WithCancelCause(context.Background())
	over := make(chan error)
	go func() { over <- talk.Run(ctx) }()
	if err := talk.Post(wire.Detect{Text: "What time is it?"}); err != nil {
		fmt.Println(err)
	}
	<-device.stopped
	hangUp(errors.New("the user has left"))
	fmt.Println(<-over)
	// Output:
	// it says: It is half past nine.
	// it has said: It is half past nine.
	// the user has left
}
