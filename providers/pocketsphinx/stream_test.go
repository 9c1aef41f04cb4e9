package pocketsphinx

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"

	"xiaozhi/providers"
)

// streamOf makes a stream that no recogniser works on.
func streamOf(t *testing.T) (*stream, context.CancelCauseFunc) {
	t.Helper()
	ctx, cancel := context.WithCancelCause(t.Context())
	return newStream(ctx, cancel), cancel
}

func TestTakeOrder(t *testing.T) {
	s, _ := streamOf(t)
	var want []int16
	for i := range 10 {
		piece := slices.Repeat([]int16{int16(i)}, 100+i)
		want = append(want, piece...)
		if err := s.Write(piece); err != nil {
			t.Fatal(err)
		}
		clear(piece) // the caller may use it again
	}
	s.CloseWrite()
	s.CloseWrite()
	var got []int16
	for {
		pcm, more, err := s.take(nil, 64)
		if err != nil {
			t.Fatal(err)
		}
		if !more {
			break
		}
		got = append(got, pcm...)
	}
	if !slices.Equal(got, want) {
		t.Errorf("took %d samples, want the %d that were written", len(got), len(want))
	}
}

func TestTakeWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, cancel := streamOf(t)
		type taken struct {
			pcm  []int16
			more bool
			err  error
		}
		results := make(chan taken, 1)
		take := func() {
			pcm, more, err := s.take(nil, hearSamples)
			results <- taken{pcm, more, err}
		}
		go take()
		synctest.Wait()
		if len(results) != 0 {
			t.Fatal("took sound before there was any")
		}
		s.Write([]int16{1, 2})
		if got := <-results; !slices.Equal(got.pcm, []int16{1, 2}) || !got.more || got.err != nil {
			t.Errorf("took %+v", got)
		}
		go take()
		synctest.Wait()
		cancel(context.Canceled)
		if got := <-results; !errors.Is(got.err, context.Canceled) {
			t.Errorf("after the end of the context: %+v", got)
		}
	})
}

func TestFinalTranscriptHasRoom(t *testing.T) {
	s, _ := streamOf(t)
	for range 3 * results {
		s.partial(providers.Transcript{Text: "part"})
	}
	select {
	case s.out <- result{transcript: providers.Transcript{Text: "all", Final: true}}:
	default:
		t.Fatal("no place for the final transcript")
	}
	close(s.out)
	var texts []string
	for got, err := range s.Transcripts() {
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, got.Text)
	}
	if want := []string{"part", "part", "part", "all"}; !slices.Equal(texts, want) {
		t.Errorf("read %q, want %q", texts, want)
	}
}

func TestUtteranceMaximumLength(t *testing.T) {
	s, _ := streamOf(t)
	minute := make([]int16, 60*sampleRate)
	for range 2 {
		if err := s.Write(minute); err != nil {
			t.Fatal(err)
		}
		for {
			if pcm, _, err := s.take(nil, len(minute)); err != nil || len(pcm) == len(minute) {
				break
			}
		}
	}
	if err := s.Write(minute[:1]); err == nil {
		t.Error("more than 120 s were taken")
	}
}

func TestStreamOfClosedRecognizer(t *testing.T) {
	s, cancel := streamOf(t)
	cancel(&providers.Error{Provider: "pocketsphinx", Op: "transcribe", Kind: providers.Unavailable, Err: errClosed})
	for _, err := range []error{s.Write([]int16{1}), s.cause()} {
		if e, ok := errors.AsType[*providers.Error](err); !ok || e.Kind != providers.Unavailable {
			t.Errorf("closed: %v", err)
		}
	}
}
