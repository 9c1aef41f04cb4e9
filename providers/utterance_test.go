package providers

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

func collect(s ASRStream) (texts []string, err error) {
	for tr, e := range s.Transcripts() {
		if e != nil {
			return texts, e
		}
		texts = append(texts, tr.Text)
	}
	return texts, nil
}

func TestUtteranceIsHandedOverWhole(t *testing.T) {
	var heard []int16
	var asked ASRRequest
	s := OpenUtterance(t.Context(), ASRRequest{Rate: 16000, Language: "zh"},
		func(_ context.Context, pcm []int16, req ASRRequest) (Transcript, error) {
			heard, asked = pcm, req
			return Transcript{Text: "hello", Provider: "p"}, nil
		})
	frame := []int16{1, 2, 3}
	for range 2 {
		if err := s.Write(frame); err != nil {
			t.Fatal(err)
		}
	}
	frame[0] = 99 // the stream has its own copy
	if err := s.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	var got []Transcript
	for tr, err := range s.Transcripts() {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, tr)
	}
	if want := []Transcript{{Text: "hello", Final: true, Provider: "p"}}; !slices.Equal(got, want) {
		t.Errorf("transcripts = %+v, want %+v", got, want)
	}
	if want := []int16{1, 2, 3, 1, 2, 3}; !slices.Equal(heard, want) {
		t.Errorf("heard %v, want %v", heard, want)
	}
	if asked.Language != "zh" {
		t.Errorf("request lost its language: %+v", asked)
	}
}

func TestUtteranceRefusesWrongUse(t *testing.T) {
	ok := func(context.Context, []int16, ASRRequest) (Transcript, error) { return Transcript{}, nil }
	s := OpenUtterance(t.Context(), ASRRequest{Rate: 100}, ok)
	if err := s.Write(make([]int16, 65*100)); err != nil {
		t.Fatalf("65 s must fit: %v", err)
	}
	if err := s.Write([]int16{1}); !errors.Is(err, ErrUtteranceFull) {
		t.Errorf("past 65 s: %v", err)
	}
	for range 2 {
		if err := s.CloseWrite(); err != nil {
			t.Errorf("CloseWrite: %v", err)
		}
	}
	if err := s.Write([]int16{1}); !errors.Is(err, ErrUtteranceClosed) {
		t.Errorf("write after close: %v", err)
	}
	if _, err := collect(s); err != nil {
		t.Error(err)
	}
	if _, err := collect(s); !errors.Is(err, errRangedTwice) {
		t.Errorf("second loop: %v", err)
	}
}

func TestUtteranceError(t *testing.T) {
	broken := &Error{Provider: "p", Op: "transcribe", Kind: Unavailable, Err: errors.New("down")}
	s := OpenUtterance(t.Context(), ASRRequest{Rate: 16000},
		func(context.Context, []int16, ASRRequest) (Transcript, error) { return Transcript{Text: "x"}, broken })
	_ = s.CloseWrite()
	if texts, err := collect(s); !errors.Is(err, broken) || texts != nil {
		t.Errorf("got %v, %v", texts, err)
	}
}

func TestUtteranceEndsWithItsContext(t *testing.T) {
	t.Run("while sound still comes", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			s := OpenUtterance(ctx, ASRRequest{}, func(context.Context, []int16, ASRRequest) (Transcript, error) {
				t.Error("the request began without CloseWrite")
				return Transcript{}, nil
			})
			time.AfterFunc(time.Second, cancel)
			if _, err := collect(s); err != context.Canceled { //nolint:errorlint // it must be unchanged
				t.Errorf("got %v", err)
			}
		})
	})
	t.Run("while the request runs", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			s := OpenUtterance(ctx, ASRRequest{}, func(ctx context.Context, _ []int16, _ ASRRequest) (Transcript, error) {
				<-ctx.Done()
				return Transcript{}, &Error{Kind: Unavailable, Err: ctx.Err()}
			})
			_ = s.CloseWrite()
			time.AfterFunc(time.Second, cancel)
			start := time.Now()
			if _, err := collect(s); err != context.Canceled { //nolint:errorlint // it must be unchanged
				t.Errorf("got %v", err)
			}
			if took := time.Since(start); took != time.Second {
				t.Errorf("returned %v after the start", took)
			}
		})
	})
}
