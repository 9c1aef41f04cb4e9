package devicetest

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"
)

// Provisioned holds the parts of an OTA reply that a device keeps (1.3), and its breaches.
type Provisioned struct {
	URL        string // of the WebSocket
	Token      string
	Protocol   int // 0: not said
	Time       time.Time
	Zone       time.Duration // offset of the wall clock
	Firmware   string        // version
	Code       string        // activation code; empty when the device is bound
	Challenge  string        // beside it
	Violations []Violation   // breaches that a device survives
	Raw        []byte
}

// flashKey and flashText are limits of the device's storage in bytes; more ends in a boot loop (1.3).
const (
	flashKey  = 15
	flashText = 4000
	shortURL  = 10 // an OTA address under this many characters is refused
)

// otaRequest is the body of the request, with language, id of the device twice and id of the client left open.
const otaRequest = `{
	"version":2,"language":"%[1]s","flash_size":16777216,"minimum_free_heap_size":"8123456",
	"mac_address":"%[2]s","uuid":"%[3]s","chip_model_name":"esp32s3",
	"application":{"name":"xiaozhi","version":"` + firmwareVersion + `","compile_time":"Aug  8 2026T08:30:00Z","idf_version":"v6.0",
		"elf_sha256":"9f1c9f1c9f1c9f1c9f1c9f1c9f1c9f1c9f1c9f1c9f1c9f1c9f1c9f1c9f1c9f1c"},
	"board":{"type":"` + boardName + `","name":"` + boardName + `","ssid":"home","rssi":-51,"ip":"192.168.1.40","mac":"%[2]s"},
	"partition_table":[{"label":"ota_0","type":0,"subtype":16,"address":131072,"size":4128768}],
	"ota":{"label":"ota_0"},"display":{"monochrome":false,"width":240,"height":240},
	"chip_info":{"model":9,"cores":2,"revision":2,"features":18}
}`

// programRequest is the body of a desktop client or a test page.
const programRequest = `{"application":{"version":"1.1.9","elf_sha256":"c8a8ecb6d6fbcda682494d9675cd1ead240ecf38bdde75282a42365a0e396033"},
	"board":{"type":"` + boardName + `","name":"xiaozhi","ip":"192.168.1.41","mac":"%s"}}`

// Provision asks an OTA address as a device does at its boot. An error means that the device would not get to a
// WebSocket server; what it would survive is in Violations. Of o it uses DeviceID, ClientID, Language, Profile, Flash and HTTPClient.
func Provision(ctx context.Context, otaURL string, o Options) (Provisioned, error) {
	o = o.withDefaults()
	if len(otaURL) < shortURL {
		return Provisioned{}, fmt.Errorf("ota url %q: devices refuse less than %d characters", otaURL, shortURL)
	}
	body := fmt.Sprintf(otaRequest, o.Language, o.DeviceID, o.ClientID)
	if o.Profile == PyXiaozhi || o.Profile == Browser { // they have no flash to describe
		body = fmt.Sprintf(programRequest, o.DeviceID)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, otaURL, strings.NewReader(body))
	if err != nil {
		return Provisioned{}, fmt.Errorf("ota request: %w", err)
	}
	req.Close = true
	req.Header = o.bootHeader()
	resp, err := o.HTTPClient.Do(req)
	if err != nil {
		return Provisioned{}, fmt.Errorf("ota request: %w", err)
	}
	defer resp.Body.Close()
	var p Provisioned
	raw, found, err := readHTTPReply(resp)
	if err == nil {
		p.Raw = raw
		for _, f := range found {
			p.violate("%s", f)
		}
		err = p.read(raw, o.Flash)
	}
	if err != nil {
		return p, fmt.Errorf("ota reply from %s: %w", otaURL, err)
	}
	return p, nil
}

func (p *Provisioned) violate(format string, args ...any) {
	p.Violations = append(p.Violations, Violation{At: time.Now(), Rule: RuleOTA, Detail: fmt.Sprintf(format, args...)})
}

// read takes the sections of a reply.
func (p *Provisioned) read(body []byte, flash *Flash) error {
	var sections map[string]json.RawMessage
	if err := json.Unmarshal(body, &sections); err != nil || sections == nil {
		return fmt.Errorf("not one JSON object: %s", shorten(body))
	}
	if raw, ok := sections["mqtt"]; ok && len(raw) > 0 && raw[0] == '{' {
		return fmt.Errorf("an mqtt object is present, so the device would never use the WebSocket")
	}
	if err := p.readFirmware(sections["firmware"]); err != nil {
		return err
	}
	p.readTime(sections["server_time"])
	var activation struct {
		Code      string `json:"code"`
		Challenge string `json:"challenge"`
	}
	if raw, ok := sections["activation"]; ok {
		if err := json.Unmarshal(raw, &activation); err != nil {
			p.violate("activation: %s", err)
		}
		if (activation.Code == "") != (activation.Challenge == "") {
			p.violate("activation needs code and challenge together")
		}
		p.Code, p.Challenge = activation.Code, activation.Challenge
	}
	return p.readWebSocket(sections["websocket"], flash)
}

func (p *Provisioned) readTime(raw json.RawMessage) {
	if raw == nil {
		p.violate("no server_time: the device has no clock")
		return
	}
	var t struct {
		Timestamp *float64 `json:"timestamp"`       // ms
		Offset    float64  `json:"timezone_offset"` // minutes
	}
	if err := json.Unmarshal(raw, &t); err != nil || t.Timestamp == nil {
		p.violate("server_time cannot be read: %s", shorten(raw))
		return
	}
	p.Time, p.Zone = time.UnixMilli(int64(*t.Timestamp)).UTC(), time.Duration(t.Offset)*time.Minute
	if ahead := time.Until(p.Time); p.Zone != 0 && (ahead-p.Zone).Abs() < time.Minute {
		p.violate("server_time is %s ahead: the device adds timezone_offset itself", ahead.Round(time.Second))
	}
	if p.Zone.Abs() > 14*time.Hour {
		p.violate("timezone_offset of %s: it is in minutes", p.Zone)
	}
}

// readFirmware checks the version, whose parser brings the device down on anything but numbers.
func (p *Provisioned) readFirmware(raw json.RawMessage) error {
	if raw == nil {
		return nil
	}
	var f struct {
		Version *string `json:"version"`
		URL     string  `json:"url"`
		Force   float64 `json:"force"`
	}
	if err := json.Unmarshal(raw, &f); err != nil {
		return fmt.Errorf("firmware: %w", err)
	}
	if f.Version != nil {
		p.Firmware = *f.Version
		if !regexp.MustCompile(`^\d+(\.\d+)*$`).MatchString(*f.Version) {
			return fmt.Errorf("firmware version %q is not dotted numbers: the device crashes at boot", *f.Version)
		}
	}
	if u, err := url.Parse(f.URL); f.URL != "" && (err != nil || !u.IsAbs()) {
		p.violate("firmware url %q is not absolute", f.URL)
	}
	if f.Force == 1 {
		p.violate("firmware force 1 makes the device install at every boot")
	}
	return nil
}

// readWebSocket checks what the device would store under the members' own names.
func (p *Provisioned) readWebSocket(raw json.RawMessage, flash *Flash) error {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(raw, &members); err != nil || members == nil {
		return fmt.Errorf("no websocket object: the device falls back to MQTT")
	}
	for name, value := range members {
		switch {
		case len(name) > flashKey:
			return fmt.Errorf("websocket member %q is longer than %d bytes: boot loop", name, flashKey)
		case len(value) > flashText:
			return fmt.Errorf("websocket member %q holds %d bytes: boot loop", name, len(value))
		case name != "url" && name != "token" && name != "version":
			p.violate("websocket member %q would be written to flash", name)
		}
	}
	var ws struct {
		URL     string `json:"url"`
		Token   string `json:"token"`
		Version int    `json:"version"`
	}
	err := json.Unmarshal(raw, &ws)
	if err == nil {
		err = CheckURL(ws.URL)
	}
	if err != nil {
		return fmt.Errorf("websocket: %w", err)
	}
	if ws.Version < 0 || ws.Version > 3 {
		p.violate("websocket version %d", ws.Version)
	}
	p.URL, p.Token, p.Protocol = ws.URL, flash.keep(ws.Token, members["token"] != nil), ws.Version
	return nil
}
