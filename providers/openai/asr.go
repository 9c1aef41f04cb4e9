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
	"xiaozhi/internal/text"
	"xiaozhi/providers"
	"xiaozhi/providers/transport"
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
	reqCtx, cancel := context.WithTimeoutCause(ctx, a.o.Timeouts.Transcribe, transport.ErrStalled)
	defer cancel()
	said, language, err := a.transcribe(reqCtx, pcm, req)
	if err != nil {
		return providers.Transcript{}, a.o.wrap(ctx, reqCtx, "transcribe", err)
	}
	final.Text, final.Language = said, language
	return final, nil
}

// transcribe makes the request. Its errors are not yet wrapped.
func (a *ASR) transcribe(ctx context.Context, pcm []int16, req providers.ASRRequest) (said, language string, err error) {
	var wav bytes.Buffer
	wav.Grow(len(pcm)*2 + 64)
	if err := file.WriteWAV(&wav, pcm, req.Rate); err != nil {
		return "", "", fmt.Errorf("write file: %w", err)
	}
	var form bytes.Buffer
	kind, err := a.form(&form, wav.Bytes(), languageCode(req.Language))
	if err != nil {
		return "", "", fmt.Errorf("write form: %w", err)
	}
	resp, err := a.o.post(ctx, "/audio/transcriptions", kind, form.Bytes())
	if err != nil {
		return "", "", err
	}
	defer func() { _ = resp.Body.Close() }()
	return readTranscription(resp)
}

// form writes what is uploaded, and returns its media type.
func (a *ASR) form(w io.Writer, wav []byte, language string) (kind string, err error) {
	form := multipart.NewWriter(w)
	header := textproto.MIMEHeader{}
	header.Set("Content-Disposition", `form-data; name="file"; filename="utterance.wav"`)
	header.Set("Content-Type", "audio/wav")
	part, err := form.CreatePart(header)
	if err == nil {
		_, err = part.Write(wav)
	}
	for _, field := range [][2]string{{"model", a.o.Model}, {"language", language}, {"response_format", "json"}} {
		if err == nil && field[1] != "" {
			err = form.WriteField(field[0], field[1])
		}
	}
	if err == nil {
		err = form.Close()
	}
	return form.FormDataContentType(), err
}

// readTranscription reads a reply that is whole: JSON, or a plain text.
func readTranscription(resp *http.Response) (said, language string, err error) {
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxReply))
	if err != nil {
		return "", "", err
	}
	if message, ok := transport.ErrorMessage(body); ok {
		return "", "", &transport.Refusal{Status: resp.StatusCode, Text: message}
	}
	var reply struct {
		Text     *string         `json:"text"`
		Language json.RawMessage `json:"language"` // a name, a code or null, by server
	}
	switch err := json.Unmarshal(body, &reply); {
	case err == nil && reply.Text != nil:
		return strings.TrimSpace(*reply.Text), languageCode(strings.Trim(string(reply.Language), `"`)), nil
	case strings.HasPrefix(resp.Header.Get("Content-Type"), "text/plain"):
		return strings.TrimSpace(string(body)), "", nil
	case err != nil:
		return "", "", fmt.Errorf("the reply is not the JSON expected: %w", err)
	}
	return "", "", errors.New("the reply has no text")
}

// languageCode is the code of ISO 639 for the names and tags that servers and devices use, else "".
func languageCode(name string) string { return string(text.LangNamed(name).Base()) }
