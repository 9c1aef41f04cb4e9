package voiceprintapi_test

import (
	"bytes"
	"encoding/json"
	"io"
	"mime/multipart"
	"net/http"
	"testing"

	"xiaozhi/audio/file"
	"xiaozhi/internal/servicetest"
	"xiaozhi/internal/servicetest/voiceprintapi"
)

// post sends a file, with a field before it.
func post(t *testing.T, url, field, value, name string, samples int, key string) (status int, reply map[string]any) {
	t.Helper()
	var body bytes.Buffer
	w := multipart.NewWriter(&body)
	_ = w.WriteField(field, value)
	part, _ := w.CreateFormFile("file", name)
	pcm := make([]int16, samples)
	for i := range pcm {
		pcm[i] = int16(8000 * (1 - 2*(i/40%2)))
	}
	_ = file.WriteWAV(part, pcm, 16000)
	_ = w.Close()
	r, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, url, &body)
	r.Header.Set("Content-Type", w.FormDataContentType())
	if key != "" {
		r.Header.Set("Authorization", "Bearer "+key)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	all, _ := io.ReadAll(resp.Body)
	_ = json.Unmarshal(all, &reply)
	return resp.StatusCode, reply
}

func TestFakeRefusesAsTheServiceDoes(t *testing.T) {
	s := voiceprintapi.Start(t)
	at := s.URL() + voiceprintapi.Prefix
	for name, c := range map[string]struct {
		path, field, value, file, key string
		samples, want                 int
	}{
		"registered":  {"/register", "speaker_id", "a", "x.wav", servicetest.Key, 16000, 200},
		"no wav":      {"/register", "speaker_id", "a", "x.ogg", servicetest.Key, 16000, 400},
		"too short":   {"/register", "speaker_id", "a", "x.wav", servicetest.Key, 7000, 400},
		"no id":       {"/register", "speaker_id", "", "x.wav", servicetest.Key, 16000, 422},
		"no key":      {"/register", "speaker_id", "a", "x.wav", "", 16000, 403},
		"wrong key":   {"/register", "speaker_id", "a", "x.wav", "guess", 16000, 401},
		"nobody":      {"/identify", "speaker_ids", "", "x.wav", servicetest.Key, 16000, 400},
		"no such way": {"/nothing", "speaker_ids", "a", "x.wav", servicetest.Key, 16000, 404},
	} {
		if got, reply := post(t, at+c.path, c.field, c.value, c.file, c.samples, c.key); got != c.want {
			t.Errorf("%s: status %d, %v, want %d", name, got, reply, c.want)
		}
	}
	if _, reply := post(t, at+"/identify", "speaker_ids", "b, a", "x.wav", 16000, servicetest.Key); reply["speaker_id"] != "a" || reply["score"] != 1.0 {
		t.Errorf("identified %v", reply)
	}
	if _, reply := post(t, at+"/identify", "speaker_ids", "a", "x.wav", 400, servicetest.Key); reply["speaker_id"] != "" || reply["score"] != 0.0 {
		t.Errorf("of 800 bytes: %v", reply)
	}
}
