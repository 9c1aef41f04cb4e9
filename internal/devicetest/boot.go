package devicetest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Flash holds what a device keeps while it is off. A member that a reply leaves out keeps its value (1.3). Its
// methods may be called at the same time.
type Flash struct {
	mu    sync.Mutex
	token string
}

// NewFlash returns what a device has kept: a token, or nothing.
func NewFlash(token string) *Flash { return &Flash{token: token} }

// keep stores the token of a reply, and returns the one that the device has then.
func (f *Flash) keep(token string, sent bool) string {
	if f == nil {
		return token
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if sent {
		f.token = token
	}
	return f.token
}

// Waiting names a way of waiting for a person to accept the code (1.4).
type Waiting int

// The ways of waiting. The zero value is that of firmware since 1.6.
const (
	Polls10   Waiting = iota // asks /activate ten times, 3 s after each 202 and 10 s after anything else, then OTA again
	PollsOnce                // firmware since 2.1 whose button was pressed: one poll, then OTA again
	Reposts60                // firmware before 1.6: it asks OTA again every 60 s, and knows no /activate
	PollsPy                  // the desktop client: asks /activate every 5 s, sixty times, then gives up
	Ignores                  // test pages, and firmware before 1.2: they start at once
)

// Boot asks an OTA address as a device does at its boot, and waits as long as the replies say that it must be paired.
// shown is told each code that the device shows and says. Beside the options of [Provision] it uses Waiting.
func Boot(ctx context.Context, otaURL string, o Options, shown func(code string)) (Provisioned, error) {
	o = o.withDefaults()
	for {
		p, err := Provision(ctx, otaURL, o)
		if err != nil || p.Code == "" {
			return p, err
		}
		if shown != nil {
			shown(p.Code)
		}
		switch o.Waiting {
		case Ignores:
			return p, nil
		case Reposts60:
			err = o.pause(ctx, time.Minute)
		case Polls10:
			err = o.poll(ctx, otaURL, p, 10, 3*time.Second)
		case PollsOnce:
			err = o.poll(ctx, otaURL, p, 1, 3*time.Second)
		case PollsPy:
			if err = o.poll(ctx, otaURL, p, 60, 5*time.Second); err == nil {
				continue
			}
		}
		if err != nil {
			return p, err
		}
	}
}

// poll asks at most so many times whether the device was accepted.
func (o Options) poll(ctx context.Context, otaURL string, p Provisioned, times int, wait time.Duration) error {
	for range times {
		status, err := o.activate(ctx, otaURL, p.Challenge)
		switch {
		case err != nil:
			return err
		case status == http.StatusOK:
			return nil
		case status != http.StatusAccepted:
			wait = 10 * time.Second
		}
		if err := o.pause(ctx, wait); err != nil {
			return err
		}
	}
	return nil
}

// activate asks once, with the body that the client sends.
func (o Options) activate(ctx context.Context, otaURL, challenge string) (status int, err error) {
	body := []byte("{}")
	if o.Profile == PyXiaozhi {
		type proof struct {
			Algorithm string `json:"algorithm"`
			Serial    string `json:"serial_number"`
			Challenge string `json:"challenge"`
			HMAC      string `json:"hmac"`
		}
		body, err = json.Marshal(map[string]proof{"Payload": {"hmac-sha256", "SN-0001", challenge, strings.Repeat("0", 64)}})
		if err != nil {
			return 0, err
		}
	}
	if !strings.HasSuffix(otaURL, "/") {
		otaURL += "/"
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, otaURL+"activate", bytes.NewReader(body))
	if err != nil {
		return 0, fmt.Errorf("activation: %w", err)
	}
	req.Close = true
	req.Header = o.bootHeader()
	resp, err := o.HTTPClient.Do(req)
	if err != nil {
		return 0, fmt.Errorf("activation: %w", err)
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body) // what is in it is not read on 200 and 202
	return resp.StatusCode, err
}

// bootHeader is the header of all requests at the boot (1.2).
func (o Options) bootHeader() http.Header {
	return http.Header{
		"Activation-Version": {"1"}, "Device-Id": {o.DeviceID}, "Client-Id": {o.ClientID},
		"User-Agent": {boardName + "/" + firmwareVersion}, "Accept-Language": {o.Language}, "Content-Type": {"application/json"},
	}
}

// pause waits between two questions.
func (o Options) pause(ctx context.Context, d time.Duration) error {
	if most := o.Limits.MaxPause; most > 0 {
		d = min(d, most)
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
