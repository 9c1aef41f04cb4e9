package watch

import (
	"errors"

	"xiaozhi/agent/turn"
	"xiaozhi/connection"
	"xiaozhi/internal/contact"
)

// reason says why a connection has ended. The server's own faults are all one: the log tells them apart. What is no usual end is said
// as the log does.
func reason(end *connection.Reason) contact.Why {
	if end.Kind == connection.Internal {
		return contact.Say("contact/end-fault")
	}
	id := map[string]string{
		"too many long messages of devices are being read":                              "contact/end-long",
		"conversation hung up":                                                          "contact/end-over",
		"conversation is over":                                                          "contact/end-over",
		"replaced by a new connection of the same device":                               "contact/end-replaced",
		"server is stopping":                                                            "contact/end-stopping",
		"server was closed":                                                             "contact/end-stopping",
		"server is too busy":                                                            "contact/end-busy",
		"server is full, and a regular device needs the place":                          "contact/end-displaced",
		"the device was accepted, refused or forgotten by a person":                     "contact/end-changed",
		"the person of the page has logged out":                                         "contact/end-logout",
		"no hello within 10 s":                                                          "contact/hello-late",
		"no Device-Id, and no mcp/registerTools that names the device":                  "contact/end-nameless",
		"device closed the connection":                                                  "contact/end-left",
		"device does not read: control queue is full":                                   "contact/end-stuck",
		"device does not read: no pong while it is spoken to":                           "contact/end-stuck",
		"write to device failed":                                                        "contact/end-write",
		"no data and no pong for 60 s":                                                  "contact/end-silent",
		"a message took longer than 30 s":                                               "contact/end-slow",
		"device floods the connection":                                                  "contact/end-flood",
		"device sends events faster than they can mean anything":                        "contact/end-flood",
		"device turned away":                                                            "contact/end-away",
		"device broke the WebSocket protocol":                                           "contact/end-protocol",
		"message too big":                                                               "contact/end-big",
		"pcm is 16000 Hz, 1 channel, frames of 60 ms, framing 1 (docs/protocol.md 4.6)": "contact/end-pcm",
		"a message of pcm is 2 to 3840 bytes, an even number (docs/protocol.md 4.6)":    "contact/end-pcm",
	}[end.Text]
	if id == "" {
		return contact.Quoted(end.Text)
	}
	return contact.Say(id)
}

// cause says why a turn has ended before all of it was heard.
func cause(err error) contact.Why {
	if ended, ok := errors.AsType[*connection.Reason](err); ok {
		return reason(ended)
	}
	for _, known := range []struct {
		err error
		id  string
	}{
		{turn.ErrBargeIn, "contact/cut-voice"}, {turn.ErrResumed, "contact/cut-voice"}, {turn.ErrAborted, "contact/cut-device"},
		{turn.ErrReplaced, "contact/cut-newer"}, {turn.ErrPaused, "contact/cut-paused"}, {turn.ErrGoodbye, "contact/end-over"},
	} {
		if errors.Is(err, known.err) {
			return contact.Say(known.id)
		}
	}
	return contact.Quoted(err.Error())
}
