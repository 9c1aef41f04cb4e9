package openai

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"strings"
	"time"

	"xiaozhi/audio/file"
	"xiaozhi/providers"
)

// shortest is the least sound worth asking about: below it there is no word,
// and some servers answer with an error.
const shortest = 100 * time.Millisecond

// ASR recognises whole utterances by POST audio/transcriptions.
type ASR struct {
	o Options
}

// NewASR checks the settings and makes a recogniser. It asks the server nothing.
func NewASR(o Options) (*ASR, error) {
	o, err := o.prepare(o.ASRModel)
	if err != nil {
		return nil, err
	}
	return &ASR{o: o}, nil
}

// Name returns the provider's name.
func (a *ASR) Name() string { return a.o.Name }

// Open begins an utterance. The request is made when it is complete.
func (a *ASR) Open(ctx context.Context, req providers.ASRRequest) (providers.ASRStream, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return providers.OpenUtterance(ctx, req, a.recognize), nil
}

// recognize uploads the utterance and reads the reply.
func (a *ASR) recognize(ctx context.Context, pcm []int16, req providers.ASRRequest) (providers.Transcript, error) {
	final := providers.Transcript{Final: true, Provider: a.o.Name}
	if time.Duration(len(pcm))*time.Second/time.Duration(req.Rate) < shortest {
		return final, nil
	}
	reqCtx, cancel := context.WithTimeoutCause(ctx, a.o.Timeouts.Transcribe, errStalled)
	defer cancel()
	text, language, err := a.transcribe(reqCtx, pcm, req)
	if err != nil {
		return providers.Transcript{}, a.o.wrap(ctx, reqCtx, "transcribe", err)
	}
	final.Text, final.Language = text, language
	return final, nil
}

// transcribe makes the request. Its errors are not yet wrapped.
func (a *ASR) transcribe(ctx context.Context, pcm []int16, req providers.ASRRequest) (text, language string, err error) {
	form, contentType, err := a.form(pcm, req)
	if err != nil {
		return "", "", err
	}
	resp, err := a.o.send(ctx, http.MethodPost, "/audio/transcriptions", contentType, form)
	if err != nil {
		return "", "", err
	}
	defer func() { _ = resp.Body.Close() }()
	if strings.HasPrefix(resp.Header.Get("Content-Type"), "text/plain") {
		return readPlain(resp.Body)
	}
	var reply struct {
		Text     *string         `json:"text"`
		Language json.RawMessage `json:"language"` // a name, a code or null, by server
	}
	if err := readJSON(resp, &reply); err != nil {
		return "", "", err
	}
	if reply.Text == nil {
		return "", "", errors.New("the reply has no text")
	}
	return strings.TrimSpace(*reply.Text), languageCode(strings.Trim(string(reply.Language), `"`)), nil
}

// readPlain takes the text of a server that leaves out the JSON, or the JSON of
// one that calls it plain text.
func readPlain(r io.Reader) (text, language string, err error) {
	body, err := io.ReadAll(io.LimitReader(r, maxReply))
	if err != nil {
		return "", "", err
	}
	if message, ok := errorMessage(body); ok {
		return "", "", &statusError{text: message}
	}
	var reply struct {
		Text *string `json:"text"`
	}
	if json.Unmarshal(body, &reply) == nil && reply.Text != nil {
		body = []byte(*reply.Text)
	}
	return strings.TrimSpace(string(body)), "", nil
}

// form returns the multipart body: the WAV file and the fields beside it.
func (a *ASR) form(pcm []int16, req providers.ASRRequest) (*bytes.Reader, string, error) {
	var body bytes.Buffer
	body.Grow(len(pcm)*2 + 1024)
	w := multipart.NewWriter(&body)
	fields := [][2]string{{"model", a.o.Model}, {"response_format", "json"}}
	if language := languageCode(req.Language); language != "" {
		fields = append(fields, [2]string{"language", language})
	}
	for _, f := range fields {
		if err := w.WriteField(f[0], f[1]); err != nil {
			return nil, "", fmt.Errorf("write field %s: %w", f[0], err)
		}
	}
	part, err := w.CreatePart(textproto.MIMEHeader{
		"Content-Disposition": {`form-data; name="file"; filename="utterance.wav"`},
		"Content-Type":        {"audio/wav"},
	})
	if err != nil {
		return nil, "", fmt.Errorf("write file: %w", err)
	}
	if err := file.WriteWAV(part, pcm, req.Rate); err != nil {
		return nil, "", fmt.Errorf("write file: %w", err)
	}
	if err := w.Close(); err != nil {
		return nil, "", fmt.Errorf("close form: %w", err)
	}
	return bytes.NewReader(body.Bytes()), w.FormDataContentType(), nil
}

// languageCode is "zh" or "en" for the names that servers and devices use, else "".
func languageCode(name string) string {
	name = strings.ToLower(name)
	switch {
	case name == "chinese" || name == "mandarin" || name == "zh" || strings.HasPrefix(name, "zh-") || strings.HasPrefix(name, "zh_"):
		return "zh"
	case name == "english" || name == "en" || strings.HasPrefix(name, "en-") || strings.HasPrefix(name, "en_"):
		return "en"
	}
	return ""
}
