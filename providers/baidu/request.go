package baidu

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"xiaozhi/providers"
	"xiaozhi/providers/transport"
)

// maxAnswer is the length of an answer in bytes.
const maxAnswer = 1 << 20

// question is the body of a request.
type question struct {
	Format  string `json:"format"`
	Rate    int    `json:"rate"`
	Dev     int    `json:"dev_pid"`
	CUID    string `json:"cuid"`
	Channel int    `json:"channel"`
	Token   string `json:"token"`
	Speech  []byte `json:"speech"`
	Length  int    `json:"len"` // of the sound in bytes
}

// answer holds the members of the service's answer. The gate in front of it has names of its own.
type answer struct {
	Code      transport.Int `json:"err_no"`
	Words     string        `json:"err_msg"`
	SN        string        `json:"sn"`
	Result    []string      `json:"result"`
	GateCode  transport.Int `json:"error_code"`
	GateWords string        `json:"error_msg"`
}

// ask sends one request.
func (a *asr) ask(ctx context.Context, token providers.Secret, pcm []int16, req providers.ASRRequest) (answer, error) {
	speech := make([]byte, 0, 2*len(pcm))
	for _, v := range pcm {
		speech = binary.LittleEndian.AppendUint16(speech, uint16(v))
	}
	body, err := json.Marshal(question{"pcm", req.Rate, a.product(req.Language), a.cuid, 1, token.Reveal(), speech, len(speech)})
	if err != nil {
		return answer{}, fmt.Errorf("encode request: %w", err)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, a.url, bytes.NewReader(body))
	if err != nil {
		return answer{}, transport.Refused(providers.BadRequest, "", "the address is not a URL")
	}
	r.Header.Set("Content-Type", "application/json")
	for name, value := range a.headers {
		r.Header.Set(name, value.Reveal())
	}
	resp, err := a.client.Do(r)
	if err != nil {
		return answer{}, err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return answer{}, transport.ReadRefusal(resp)
	}
	var out answer
	if err := readJSON(resp.Body, &out); err != nil {
		return answer{}, err
	}
	if out.Code == 0 && out.GateCode != 0 {
		out.Code, out.Words = out.GateCode, out.GateWords
	}
	return out, nil
}

// readJSON reads an answer.
func readJSON(r io.Reader, v any) error {
	body, err := io.ReadAll(io.LimitReader(r, maxAnswer+1))
	if err != nil {
		return fmt.Errorf("read the answer: %w", err)
	}
	if len(body) > maxAnswer {
		return fmt.Errorf("the answer is longer than %d bytes", maxAnswer)
	}
	return transport.Decode(body, v)
}

// forgotten says whether the service does not know the token, or not any more.
func (r answer) forgotten() bool { return r.Code == 110 || r.Code == 111 || r.Code == 3302 }

// text returns what was said, "" where nothing was, or the refusal.
func (r answer) text() (string, error) {
	kind := providers.Unavailable
	switch r.Code {
	case 0:
		if r.Result == nil {
			return "", errors.New("the answer holds no result")
		}
		return strings.TrimSpace(strings.Join(r.Result[:min(1, len(r.Result))], "")), nil
	case 3301, 3307: // sound in which it hears nothing
		return "", nil
	case 3302, 110, 111, 6, 13, 14, 15, 100:
		kind = providers.Unauthorized
	case 3305, 17, 19: // what the account may ask a day, or in all, is used up
		kind = providers.NoCredit
	case 3304, 4, 18:
		kind = providers.RateLimited
	case 3300, 3308, 3309, 3310, 3311, 3312, 3313, 3314:
		kind = providers.BadRequest
	}
	refused := transport.Refused(kind, strconv.Itoa(int(r.Code)), cmp.Or(r.Words, "no words"))
	refused.LogID = r.SN
	return "", refused
}
