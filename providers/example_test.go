package providers_test

import (
	"context"
	"errors"
	"fmt"

	"xiaozhi/providers"
)

// A service that recognises whole utterances becomes a stream.
func ExampleOpenUtterance() {
	recognize := func(_ context.Context, pcm []int16, req providers.ASRRequest) (providers.Transcript, error) {
		return providers.Transcript{Text: fmt.Sprintf("%.1f s of sound", float64(len(pcm))/float64(req.Rate))}, nil
	}
	stream := providers.OpenUtterance(context.Background(), providers.ASRRequest{Rate: 16000}, recognize)
	for range 5 { // as the frames come from the device
		if err := stream.Write(make([]int16, 960)); err != nil {
			fmt.Println(err)
		}
	}
	if err := stream.CloseWrite(); err != nil { // the user has finished
		fmt.Println(err)
	}
	for transcript, err := range stream.Transcripts() {
		fmt.Println(transcript.Text, transcript.Final, err)
	}
	// Output: 0.3 s of sound true <nil>
}

// Callers ask an error for its kind, whatever has wrapped it.
func ExampleError() {
	err := fmt.Errorf("open asr stream: %w", &providers.Error{
		Provider: "cloud", Op: "transcribe", Kind: providers.Unauthorized, Err: errors.New("status 401: no such key"),
	})
	if failed, ok := errors.AsType[*providers.Error](err); ok && failed.Kind == providers.Unauthorized {
		fmt.Println(failed.Provider, "refuses the key")
	}
	// Output: cloud refuses the key
}
