package doctor

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/x509"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"xiaozhi/internal/contact"
	"xiaozhi/internal/text"
)

// ids lists what was found, without what is well where all is set to false.
func ids(all []Finding, everything bool) (out []string) {
	for _, f := range all {
		if everything || f.Level != OK {
			out = append(out, strings.TrimPrefix(f.What.ID, "doctor/"))
		}
		for _, lang := range []text.Lang{text.English, text.Chinese} {
			if what, do := f.In(lang); what == "" || strings.Contains(what+do, "%!") || strings.HasPrefix(what, "doctor/") || f.Level != OK && do == "" {
				out = append(out, "BROKEN "+what+" | "+do)
			}
		}
	}
	return out
}

// TestOutside: what stands between devices and the server is found out by asking through it.
func TestOutside(t *testing.T) {
	t.Parallel()
	links := NewLinks(time.Now, nil)
	var strip, other, broken bool
	serve := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case broken:
			w.WriteHeader(http.StatusBadGateway)
		case strings.HasPrefix(r.URL.Path, PhonePath) && !other:
			links.Open(strings.TrimPrefix(r.URL.Path, PhonePath), netip.MustParseAddr("127.0.0.1"), "")
		case r.URL.Path == "/healthz":
			_, _ = io.WriteString(w, "ok\n")
		case r.Header.Get("Upgrade") == "websocket" && !strip && r.Header.Get("Mark") == "mine":
			w.Header().Set("Upgrade", "websocket")
			w.Header().Set("Connection", "Upgrade")
			w.WriteHeader(http.StatusSwitchingProtocols)
		}
	})
	plain, safe := httptest.NewServer(serve), httptest.NewTLSServer(serve)
	defer plain.Close()
	defer safe.Close()
	trusted := x509.NewCertPool()
	trusted.AddCert(safe.Certificate())
	ends := safe.Certificate().NotAfter
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := taken.Addr().String()
	taken.Close()
	name := strings.Replace(safe.URL, "127.0.0.1", "localhost", 1)
	for what, c := range map[string]struct {
		url                  string
		strip, other, broken bool
		roots                *x509.CertPool
		now                  time.Time
		want                 []string
		around               contact.Around
	}{
		"none":                {},
		"unread":              {url: "http://", want: []string{"public-unread"}},
		"plain":               {url: plain.URL},
		"written as ws":       {url: strings.Replace(plain.URL, "http", "ws", 1) + "/"},
		"safe":                {url: safe.URL, roots: trusted},
		"private":             {url: safe.URL, want: []string{"certificate-private"}, around: contact.Around{PrivateCertificate: true}},
		"another name":        {url: name, roots: trusted, want: []string{"certificate-name"}, around: contact.Around{PrivateCertificate: true}},
		"a few days left":     {url: safe.URL, roots: trusted, now: ends.Add(-50 * time.Hour), want: []string{"certificate-days"}},
		"over":                {url: safe.URL, roots: trusted, now: ends.Add(time.Hour), want: []string{"certificate-over"}, around: contact.Around{PrivateCertificate: true}},
		"no sockets":          {url: plain.URL, strip: true, want: []string{"socket-refused"}, around: contact.Around{NoUpgrade: true}},
		"another server":      {url: plain.URL, other: true, want: []string{"public-other"}},
		"a proxy alone":       {url: plain.URL, broken: true, want: []string{"public-strange"}},
		"nobody":              {url: "http://" + closed, want: []string{"public-silent"}},
		"a name nobody has":   {url: "http://speakers.invalid", want: []string{"public-name"}},
		"https where is none": {url: strings.Replace(plain.URL, "http", "https", 1), want: []string{"public-silent"}},
	} {
		strip, other, broken = c.strip, c.other, c.broken
		o := Outside{URL: c.url, TrustProxy: true, Talk: "/xiaozhi/v1/", Health: "/healthz", Knock: links.Knock, Header: http.Header{"Mark": {"mine"}}, Roots: c.roots, Now: time.Now}
		if !c.now.IsZero() {
			o.Now = func() time.Time { return c.now }
		}
		found, around := o.Check(t.Context())
		around.Port = ""
		if got := ids(found, false); !slices.Equal(got, c.want) || around != c.around {
			t.Errorf("%s: found %q, %+v", what, ids(found, true), around)
		}
	}
	leaf := safe.Certificate()
	for when, want := range map[time.Time]string{ends.Add(-50 * 24 * time.Hour): "https-files", ends.Add(-time.Hour): "certificate-days", ends.Add(time.Hour): "certificate-over"} {
		if got := ids(CheckHTTPS(leaf, false, when), true); !slices.Equal(got, []string{want}) {
			t.Errorf("%v: %q", when, got)
		}
	}
	if got := ids(append(CheckHTTPS(leaf, true, time.Now()), CheckHTTPS(nil, false, time.Now())...), true); !slices.Equal(got, []string{"https-made", "https-none"}) {
		t.Errorf("%q", got)
	}
	if n := len((&asked{}).roots().Subjects()); n < 50 { //nolint:staticcheck // the pool is made here
		t.Errorf("%d public authorities", n)
	}
}

// TestFindings: each check tells what is well from what is not, in both languages.
func TestFindings(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	open := l.Addr().String()
	gone, _ := net.Listen("tcp", "127.0.0.1:0")
	closed := gone.Addr().String()
	gone.Close()
	defer l.Close()
	now := time.Now()
	folder := t.TempDir()
	say := contact.Say("services/about-clock")
	for _, c := range []struct {
		what string
		got  []Finding
		want string
	}{
		{"told", CheckAddresses([]string{"192.168.1.2:8000", "127.0.0.1:8000"}, ""), "told-asked address"},
		{"no address", CheckAddresses([]string{"127.0.0.1:8000"}, ""), "told-asked address-none"},
		{"a container", CheckAddresses([]string{"172.17.0.2:8000"}, "http://192.168.1.2"), "told-public address-container"},
		{"ports", CheckPorts(t.Context(), []string{open, closed}), "port-open port-closed"},
		{"no clock", CheckClock(Time{Zone: time.UTC}, now), "zone clock-unknown"},
		{"clock", CheckClock(Time{Zone: time.UTC, Service: "api.example", Off: time.Second}, now), "zone clock-right"},
		{"wrong clock", CheckClock(Time{Zone: time.UTC, Service: "api.example", Off: -time.Hour}, now), "zone clock-off"},
		{"no folder", CheckDisk(filepath.Join(folder, "none"), ""), "disk-none"},
		{"network", CheckDisk(filepath.Join(folder, "none"), "nfs"), "disk-network disk-none"},
		{"in time", CheckSpeed(time.Millisecond, 20*time.Millisecond, true), "in-time"},
		{"late", CheckSpeed(15*time.Millisecond, 20*time.Millisecond, false), "loading late"},
		{"services", CheckServices([]Chain{
			{Role: "asr", Members: []Member{{Name: "a", State: OK}, {Name: "b", State: Problem, Fault: say}, {Name: "c", Left: true, Fault: "no key"}}},
			{Role: "llm", Agents: []string{"x"}, Members: []Member{{Name: "b", State: Warning, Fault: ""}}}, {Role: "vision"},
		}), "service-fails service-left service-answers service-fails service-none"},
		{"no store", CheckStore(false, nil), "store-none"},
		{"store", CheckStore(true, nil), "store-well"},
		{"sick store", CheckStore(true, []contact.Why{contact.Say("app/store-full")}), "app/store-full"},
		{"danger", CheckSafety([]contact.Why{contact.Line("root / 超级用户")}), "contact/said"},
		{"program", append(CheckProgram("1"), Settings(nil), Settings(io.EOF), Listened(":1", nil), Listened(":1", io.EOF)), "version settings-right contact/said port-free port-taken"},
	} {
		if got := strings.Join(ids(c.got, true), " "); got != c.want {
			t.Errorf("%s: %q", c.what, got)
		}
	}
	if got := CheckAddresses([]string{"127.0.0.1:8155"}, ""); !strings.Contains(got[1].Do.In(text.English), "0.0.0.0:8155") {
		t.Errorf("what to do: %s", got[1].Do.In(text.English))
	}
	if got := CheckDisk(folder, ""); len(got) != 1 || got[0].Area != Disk || strings.HasPrefix(ids(got, true)[0], "disk-closed") {
		t.Errorf("%+v", got)
	}
	for _, a := range Areas() {
		if a.Title().In(text.Chinese) == "" {
			t.Errorf("%s has no title", a)
		}
	}
}

// TestPhone: a link is opened once, by somebody else than this machine, and is over some time.
func TestPhone(t *testing.T) {
	t.Parallel()
	now := time.Now()
	told := 0
	l := NewLinks(func() time.Time { return now }, func() { told++ })
	phone, here := netip.MustParseAddr("192.168.1.50"), netip.MustParseAddr("127.0.0.1")
	made := l.New()
	code := strings.TrimPrefix(made.Path, PhonePath)
	l.Knock()
	if last, ok := l.Last(); !ok || last.Path != made.Path || last.Opened != nil {
		t.Errorf("%+v", last)
	}
	if l.Open("guessed", phone, "") || !l.Open(code, here, "curl") || !l.Open(code, phone, "a phone\x1b[2J") || !l.Open(code, netip.MustParseAddr("192.168.1.51"), "") {
		t.Error("links are not known")
	}
	if last, _ := l.Last(); told != 2 || last.Opened == nil || last.Opened.From != phone.String() || last.Opened.Here || strings.Contains(last.Opened.Browser, "\x1b") {
		t.Errorf("told %d times, %+v", told, last.Opened)
	}
	now = now.Add(linkLife)
	if _, ok := l.Last(); ok || l.Open(code, phone, "") {
		t.Error("it lives on")
	}
	for range 2 * maxLinks {
		l.New()
	}
	if len(l.links) != maxLinks {
		t.Errorf("%d links", len(l.links))
	}
}

// TestDoctor: a report is kept for a minute, those who come meanwhile share one, and followers are told.
func TestDoctor(t *testing.T) {
	t.Parallel()
	now, looked, told := time.Now(), 0, 0
	d := New(Options{Now: func() time.Time { return now }, Contacts: contact.New(nil), Check: func(context.Context, *Links) ([]Finding, contact.Around) {
		looked++
		now = now.Add(time.Second)
		return slices.Concat(CheckProgram("1"), CheckStore(false, nil), CheckAddresses(nil, "")), contact.Around{NoUpgrade: true}
	}})
	stop := d.Follow(func() { told++ })
	defer stop()
	r, err := d.Report(t.Context())
	if again, _ := d.Report(t.Context()); err != nil || looked != 1 || told != 1 || again.At != r.At || r.Worst != Problem || r.Findings[0].Area != Addresses || r.Findings[0].Level != Problem {
		t.Errorf("looked %d times, told %d times: %+v, %v", looked, told, r, err)
	}
	if _, err := d.Run(t.Context()); err != nil || looked != 2 {
		t.Errorf("looked %d times, %v", looked, err)
	}
	now = now.Add(2 * fresh)
	if old, err := d.Report(t.Context()); err != nil || looked != 2 || old.At.After(now) {
		t.Errorf("looked %d times, %v", looked, err)
	}
	ctx, end := context.WithCancel(t.Context())
	renewed := make(chan struct{})
	defer d.Follow(func() { close(renewed) })()
	watched := make(chan struct{})
	go func() { defer close(watched); d.Watch(ctx) }()
	<-renewed
	end()
	<-watched
	if looked != 3 {
		t.Errorf("looked %d times", looked)
	}
	d.Contacts().Asks(contact.Answer{Caller: contact.Caller{Device: "a"}, URL: "ws://h/"})
	if c, seen := d.Contact(t.Context(), "a"); !seen || c.Causes[0].ID != "contact/socket-upgrade" {
		t.Errorf("%+v", c)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := d.Run(over); err == nil {
		t.Error("a report for nobody")
	}
	var copied Report
	if data, err := json.Marshal(r); err != nil || json.Unmarshal(data, &copied) != nil || copied.Findings[0].What.In(text.Chinese) != r.Findings[0].What.In(text.Chinese) {
		t.Errorf("%s, %v", data, err)
	}
}

// TestBundle: secrets are not in the bundle, wherever they were.
func TestBundle(t *testing.T) {
	t.Parallel()
	const secret, odd = "s3cret-word", `s3cret"quoted`
	log := contact.New(nil)
	log.Asks(contact.Answer{Caller: contact.Caller{Device: "a", Board: secret}, Host: odd, Request: secret, Reply: odd, URL: "ws://" + secret + "/"})
	b := Bundle{
		Version: secret, Settings: []byte(`{"a":"s3cret-word","b":"s3cret\"quoted"}`), Warnings: []string{secret}, Log: secret + "\n" + odd + "\n",
		Report: ReportOf(time.Now(), []Finding{ok(Disk, "doctor/address", secret+odd)}), Contacts: log, Secrets: []string{"", "a", secret, odd}, Now: time.Now(),
	}
	var file bytes.Buffer
	if err := b.Write(&file); err != nil {
		t.Fatal(err)
	}
	z, err := zip.NewReader(bytes.NewReader(file.Bytes()), int64(file.Len()))
	if err != nil || len(z.File) != 6 {
		t.Fatal(z, err)
	}
	for _, f := range z.File {
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(r)
		if err != nil || strings.Contains(string(body), "s3cret") || len(body) == 0 {
			t.Errorf("%s: %s, %v", f.Name, body, err)
		}
		if strings.HasSuffix(f.Name, ".json") && !json.Valid(body) {
			t.Errorf("%s is no JSON: %s", f.Name, body)
		}
	}
}
