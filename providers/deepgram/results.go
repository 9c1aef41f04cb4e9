package deepgram

import (
	"encoding/json"
	"fmt"

	"xiaozhi/providers"
	"xiaozhi/providers/transport"
)

// result holds the words of a message.
type result struct {
	text string // of the sentence that is being spoken, as a whole
	done bool   // the sentence is finished
	end  bool   // nothing more will come
	lang string // that was heard; may be empty
	turn int    // of flux: the number of the turn
}

// parseNova reads a message of /v1/listen. ok says whether it holds anything for us.
func parseNova(message []byte) (r result, ok bool, err error) {
	var m struct {
		Type    string          `json:"type"`
		Final   bool            `json:"is_final"`
		Channel json.RawMessage `json:"channel"`
	}
	if err := transport.Decode(message, &m); err != nil {
		return r, false, err
	}
	switch m.Type {
	case "Results":
		var channel struct {
			Alternatives []struct {
				Transcript string   `json:"transcript"`
				Languages  []string `json:"languages"`
			} `json:"alternatives"`
		}
		if err := transport.Decode(m.Channel, &channel); err != nil {
			return r, false, fmt.Errorf("results without a channel: %w", err)
		}
		r.done = m.Final
		if len(channel.Alternatives) > 0 {
			best := channel.Alternatives[0]
			r.text = best.Transcript
			if len(best.Languages) > 0 {
				r.lang = best.Languages[0]
			}
		}
		return r, true, nil
	case "Metadata":
		return result{end: true}, true, nil
	case "Error":
		return r, false, failure(message)
	}
	return r, false, nil
}

// parseFlux reads a message of /v2/listen.
func parseFlux(message []byte) (r result, ok bool, err error) {
	var m struct {
		Type       string        `json:"type"`
		Event      string        `json:"event"`
		Turn       transport.Int `json:"turn_index"`
		Transcript string        `json:"transcript"`
		Languages  []string      `json:"languages"`
	}
	if err := transport.Decode(message, &m); err != nil {
		return r, false, err
	}
	switch m.Type {
	case "TurnInfo":
		r = result{text: m.Transcript, done: m.Event == "EndOfTurn", turn: int(m.Turn)}
		if len(m.Languages) > 0 {
			r.lang = m.Languages[0]
		}
		return r, true, nil
	case "Error":
		return r, false, failure(message)
	}
	return r, false, nil
}

// failure makes the error of a message that tells of one.
func failure(message []byte) error {
	var m struct {
		Code        transport.Code `json:"code"`
		Description string         `json:"description"`
		Words       string         `json:"message"`
	}
	if err := transport.Decode(message, &m); err != nil {
		return err
	}
	if m.Description == "" {
		m.Description = m.Words
	}
	r := transport.Refused(providers.Unavailable, string(m.Code), m.Description)
	judge(r)
	return r
}
