package app

import (
	"bytes"
	"fmt"

	"xiaozhi/audio"
	"xiaozhi/audio/file"
	"xiaozhi/connection"
	"xiaozhi/prompts"
)

// notices encodes what the server says without a conversation, once for all devices: when
// it has to be said there is no time left for an engine or an encoder.
func notices(set *prompts.Set) (func(connection.NoticeKind, string) connection.Notice, error) {
	made := map[connection.NoticeKind]map[string]connection.Notice{}
	for kind, id := range map[connection.NoticeKind]string{
		connection.NoticeBusy:     prompts.Overload,
		connection.NoticeStopping: prompts.ShuttingDown,
	} {
		made[kind] = map[string]connection.Notice{}
		for _, lang := range []string{"zh", "en"} {
			n, err := newNotice(prompts.Sound(id, lang))
			if err != nil {
				return nil, fmt.Errorf("encode the phrase %s of %s: %w", id, lang, err)
			}
			n.Text = set.Phrase(id, lang)
			made[kind][lang] = n
		}
	}
	return func(kind connection.NoticeKind, lang string) connection.Notice {
		if lang != "en" {
			lang = "zh"
		}
		return made[kind][lang]
	}, nil
}

// newNotice encodes a WAV file as devices play it, the last frame filled up with silence.
func newNotice(wav []byte) (connection.Notice, error) {
	var n connection.Notice
	pcm, rate, err := file.ReadWAV(bytes.NewReader(wav))
	if err != nil {
		return n, err
	}
	conv, err := audio.NewResampler(rate, audio.Reply.Rate)
	if err != nil {
		return n, err
	}
	pcm = conv.Flush(conv.Write(nil, pcm))
	enc, err := audio.NewEncoder(audio.Reply)
	if err != nil {
		return n, err
	}
	frame, packet := make([]int16, audio.Reply.Samples()), make([]byte, audio.MaxPacket)
	for len(pcm) > 0 {
		k := copy(frame, pcm)
		clear(frame[k:])
		pcm = pcm[k:]
		size, err := enc.Encode(frame, packet)
		if err != nil {
			return n, err
		}
		n.Packets = append(n.Packets, bytes.Clone(packet[:size]))
	}
	size, err := enc.Silence(packet)
	n.Closing = bytes.Clone(packet[:size])
	return n, err
}
