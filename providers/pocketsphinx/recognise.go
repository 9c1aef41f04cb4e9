package pocketsphinx

import (
	"context"

	"xiaozhi/providers"
)

// recognise runs on the goroutine of one stream: it waits for sound, acquires a
// decoder, and ends with exactly one result, unless ctx ends first.
func (r *Recognizer) recognise(ctx context.Context, s *stream, req providers.ASRRequest) {
	defer close(s.out)
	final, err := r.utterance(ctx, s, req)
	if ctx.Err() != nil {
		return // Transcripts says so by itself
	}
	if err != nil {
		s.out <- result{err: r.failed("transcribe", err)}
		return
	}
	s.out <- result{transcript: final}
}

// utterance recognises the sound of s.
func (r *Recognizer) utterance(ctx context.Context, s *stream, req providers.ASRRequest) (providers.Transcript, error) {
	nothing := providers.Transcript{Final: true, Provider: r.name}
	pcm, more, err := s.take(nil, hearSamples)
	if err != nil || !more {
		return nothing, err
	}
	lent, err := r.pool.acquire(ctx)
	if err != nil {
		return nothing, err
	}
	defer r.pool.release(lent)
	d := lent.decoder
	defer d.end()
	if err := d.begin(req.Phrases); err != nil {
		return nothing, err
	}
	stop := func() bool { return ctx.Err() != nil }
	last, heard := "", 0
	for more {
		if err := d.hear(pcm, stop); err != nil {
			return nothing, err
		}
		if heard += len(pcm); heard >= partialEvery {
			heard = 0
			if text := d.partial(); text != last {
				last = text
				s.partial(providers.Transcript{Text: text, Language: "en", Provider: r.name})
			}
		}
		if pcm, more, err = s.take(pcm[:0], hearSamples); err != nil {
			return nothing, err
		}
	}
	m, err := d.finish(stop)
	if err != nil {
		return nothing, err
	}
	v := m.judge(req.Language)
	r.log.Debug("utterance judged", "grammar", v.grammar, "rejected", v.rejected,
		"fit", v.fit, "margin", v.margin, "doubt", v.doubt, "words", v.words)
	final := providers.Transcript{Text: v.text, Final: true, Rejected: v.rejected, Provider: r.name}
	if v.text != "" && !v.rejected {
		final.Language = "en"
	}
	return final, nil
}
