package openai

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"strings"
	"sync"
	"time"

	"xiaozhi/audio/file"
	"xiaozhi/internal/text"
	"xiaozhi/providers"
	"xiaozhi/providers/generation"
	"xiaozhi/providers/recognition"
	"xiaozhi/providers/service"
	"xiaozhi/providers/sse"
	"xiaozhi/providers/transport"
)

// shortest is the least sound worth asking about: below it there is no word,
// and some servers answer with an error.
const shortest = 100 * time.Millisecond

// transcribeTime bounds a transcription, from the end of the sound on.
const transcribeTime = 20 * time.Second

// uploader recognises utterances that are uploaded when they are complete. The text comes
// as the model finds it, where the service sends events.
type uploader struct {
	at      generation.Endpoint
	account transport.Account
	section service.Section
	model   string
	events  bool // ask for them
	parts   bool // each holds a segment, and the end of the stream is that of the text
	bare    bool // the service is told the model, and nothing more
}

// Upload is a recogniser by POST audio/transcriptions whose text comes in pieces.
type Upload struct {
	u      *uploader
	driver *recognition.Recognizer
}

func newUpload(u *uploader) *Upload {
	return &Upload{u: u, driver: recognition.New(recognition.Options{
		Account: u.account, Dial: u.begin, Tries: 1, Final: cmp.Or(u.section.Timeouts.First, transcribeTime),
	})}
}

// Name returns the provider's name.
func (u *Upload) Name() string { return u.u.account.Name }

// Open begins an utterance. The request is made when it is complete.
func (u *Upload) Open(ctx context.Context, req providers.ASRRequest) (providers.ASRStream, error) {
	return u.driver.Open(ctx, req)
}

// Warm opens a connection for the next request, if none waits for it already.
func (u *Upload) Warm(ctx context.Context) error {
	return u.u.account.Warm(ctx, u.u.at.Client, func(ctx context.Context) (*http.Response, error) {
		return u.u.at.Head(ctx, "/models", "Authorization", u.u.bearer())
	})
}

// bearer is the header that proves who asks; "" for servers that want none.
func (u *uploader) bearer() string {
	if u.section.Key == "" {
		return ""
	}
	return "Bearer " + u.section.Key.Reveal()
}

// begin begins an utterance. Nothing is asked yet.
func (u *uploader) begin(ctx context.Context, req providers.ASRRequest) (recognition.Session, error) {
	own, cancel := context.WithCancel(ctx)
	return &uploading{u: u, ctx: func() context.Context { return own }, cancel: cancel, req: req, complete: make(chan struct{})}, nil
}

// uploading is one utterance.
type uploading struct {
	u        *uploader
	ctx      func() context.Context
	cancel   context.CancelFunc // ends the request, and closes its answer
	req      providers.ASRRequest
	pcm      []int16 // belongs to the sender until complete is closed
	complete chan struct{}
	once     sync.Once
	stream   *sse.Reader
}

// Send keeps a copy of pcm.
func (x *uploading) Send(pcm []int16) error {
	x.pcm = append(x.pcm, pcm...)
	return nil
}

// Finish lets the request begin.
func (x *uploading) Finish() error {
	x.once.Do(func() { close(x.complete) })
	return nil
}

// Close ends the request.
func (x *uploading) Close() { x.cancel() }

// Receive makes the request when the sound is complete, and then reads the answer.
func (x *uploading) Receive() (recognition.Result, error) {
	if x.stream == nil {
		select {
		case <-x.complete:
		case <-x.ctx().Done():
			return recognition.Result{}, x.ctx().Err()
		}
		if time.Duration(len(x.pcm))*time.Second/time.Duration(x.req.Rate) < shortest {
			return recognition.Result{Kind: recognition.Over}, nil
		}
		whole, err := x.ask()
		if err != nil || whole.Kind == recognition.Over {
			return whole, err
		}
	}
	return x.event()
}

// ask makes the request. The result is over if the answer came as a whole.
func (x *uploading) ask() (recognition.Result, error) {
	resp, err := transport.Again(x.ctx(), x.u.section.Tries(), func() (*http.Response, error) { return x.u.post(x.ctx(), x.pcm, x.req) })
	if err != nil {
		return recognition.Result{}, err
	}
	if strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		x.stream = sse.NewReader(resp.Body)
		context.AfterFunc(x.ctx(), func() { _ = resp.Body.Close() })
		return recognition.Result{}, nil
	}
	defer func() { _ = resp.Body.Close() }()
	said, language, err := readTranscription(resp)
	return recognition.Result{Kind: recognition.Over, Text: said, Language: language}, err
}

// event reads an event of the answer.
func (x *uploading) event() (recognition.Result, error) {
	e, err := x.stream.Next()
	if errors.Is(err, io.EOF) {
		if !x.u.parts {
			return recognition.Result{}, errors.New("the answer ended before its text was complete")
		}
		return recognition.Result{Kind: recognition.Over}, nil
	}
	if err != nil {
		return recognition.Result{}, err
	}
	if string(e.Data) == sse.Done {
		return recognition.Result{Kind: recognition.Over}, nil // not all say the whole text before
	}
	return transcriptEvent(e.Data)
}

// transcriptEvent reads an event: of OpenAI, or of servers that send the text of each
// segment.
func transcriptEvent(data []byte) (r recognition.Result, err error) {
	var e struct {
		Type  string  `json:"type"`
		Delta string  `json:"delta"`
		Text  *string `json:"text"`
	}
	if err := transport.Decode(data, &e); err != nil {
		return r, err
	}
	switch {
	case e.Type == "transcript.text.delta":
		return recognition.Result{Kind: recognition.Append, Text: e.Delta}, nil
	case e.Type == "transcript.text.done":
		return recognition.Result{Kind: recognition.Over, Text: strings.TrimSpace(*cmp.Or(e.Text, new(string)))}, nil
	case e.Type == "" && e.Text != nil:
		return recognition.Result{Kind: recognition.Sentence, Text: strings.TrimSpace(*e.Text)}, nil
	}
	if fault := generation.FaultOf(data); fault != nil {
		return r, fault.Refusal()
	}
	return r, nil // an event that later versions send
}

// post uploads an utterance. The caller closes the body of the response.
func (u *uploader) post(ctx context.Context, pcm []int16, req providers.ASRRequest) (*http.Response, error) {
	body := bytes.NewBuffer(make([]byte, 0, 2*len(pcm)+2048))
	w := multipart.NewWriter(body)
	fields := map[string]string{
		"model": u.model, "response_format": "json", "language": languageCode(req.Language), "prompt": u.section.Text("prompt", ""),
	}
	if u.bare {
		delete(fields, "response_format")
		delete(fields, "language")
	}
	if u.events {
		fields["stream"] = "true"
	}
	for name, value := range u.section.Extra {
		fields[name] = fmt.Sprint(value)
	}
	for name, value := range fields {
		if value != "" {
			if err := w.WriteField(name, value); err != nil {
				return nil, fmt.Errorf("write form: %w", err)
			}
		}
	}
	part, err := w.CreatePart(textproto.MIMEHeader{
		"Content-Disposition": {`form-data; name="file"; filename="utterance.wav"`}, "Content-Type": {"audio/wav"},
	})
	if err != nil {
		return nil, fmt.Errorf("write form: %w", err)
	}
	if err := errors.Join(file.WriteWAV(part, pcm, req.Rate), w.Close()); err != nil {
		return nil, fmt.Errorf("write form: %w", err)
	}
	r, err := u.at.Post(ctx, "/audio/transcriptions", body.Bytes(), "Authorization", u.bearer(), "Content-Type", w.FormDataContentType())
	if err != nil {
		return nil, err
	}
	resp, err := u.at.Client.Do(r)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		refused := transport.ReadRefusal(resp)
		_ = resp.Body.Close()
		judge(refused)
		return nil, refused
	}
	return resp, nil
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
