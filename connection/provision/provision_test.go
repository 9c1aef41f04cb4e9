package provision

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"xiaozhi/connection"
	"xiaozhi/connection/request"
	"xiaozhi/internal/wire"
	"xiaozhi/mcp"
	"xiaozhi/mcp/rawjson"
)

const firmwareBody = `{"version":2,"language":"en-US","flash_size":16777216,"minimum_free_heap_size":"8123456",
 "mac_address":"24:6f:28:aa:10:02","chip_info":{"model":9},"application":{"name":"xiaozhi","version":"2.4.2"},
 "board":{"type":"bread-compact-wifi","ssid":"home","rssi":-51}}`

// otaServer serves OTA without a listener.
func otaServer(tb testing.TB, change func(*Options)) (*Handler, http.Handler) {
	tb.Helper()
	registry := connection.New(connection.Options{NewConversation: func(wire.Session, wire.Outbox, []mcp.Source) (connection.Conversation, error) {
		return nil, errors.New("there is none")
	}})
	requests, err := request.New(request.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	opts := Options{Registry: registry, Requests: requests, Zone: time.FixedZone("CST", 8*3600)}
	if change != nil {
		change(&opts)
	}
	h, err := New(opts)
	if err != nil {
		tb.Fatal(err)
	}
	return h, h.Wrap(http.NotFoundHandler())
}

// post asks as a device does.
func post(h http.Handler, path, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, "http://192.168.1.10:8000"+path, strings.NewReader(body))
	r.Header = http.Header{
		"Device-Id": {"24:6F:28:aa:10:02"}, "Client-Id": {"7d0f4e1c"}, "Activation-Version": {"1"},
		"User-Agent": {"bread-compact-wifi/2.4.1"}, "Accept-Language": {"zh-CN"}, "Content-Type": {"application/json"},
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestOTAReply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, h := otaServer(t, nil)
		w := post(h, "/xiaozhi/ota/", firmwareBody)
		want := `{"server_time":{"timestamp":946684800000,"timezone_offset":480},"firmware":{"version":"2.4.2","url":""},` +
			`"websocket":{"url":"ws://192.168.1.10:8000/xiaozhi/v1/","token":"","version":1}}`
		if w.Code != 200 || w.Body.String() != want {
			t.Errorf("got  %d %s\nwant %s", w.Code, w.Body, want)
		}
	})
}

// The offset is that of the moment: zones have summers.
func TestOTATimeZone(t *testing.T) {
	zone, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatalf("the zone database is needed: %v", err)
	}
	for _, tc := range []struct {
		after  time.Duration
		offset int
	}{{0, 60}, {200 * 24 * time.Hour, 120}} {
		synctest.Test(t, func(t *testing.T) {
			time.Sleep(tc.after) // fake time, from 2000-01-01
			s, _ := otaServer(t, func(o *Options) { o.Zone = zone })
			reply := s.reply(s.o.Requests.BaseURL(httptest.NewRequest("POST", "/", nil)), "1.0", "d")
			s.o.ZoneOf = func(id string) *time.Location { return time.FixedZone(id, 3600) }
			if other := s.reply(s.o.Requests.BaseURL(httptest.NewRequest("POST", "/", nil)), "1.0", "elsewhere"); other.ServerTime.Offset != 60 {
				t.Errorf("of a device in another zone: %+v", other.ServerTime)
			}
			if reply.ServerTime.Offset != tc.offset || reply.ServerTime.Timestamp != time.Now().UnixMilli() {
				t.Errorf("%+v, want offset %d", reply.ServerTime, tc.offset)
			}
		})
	}
}

func TestOTAPaths(t *testing.T) {
	_, h := otaServer(t, nil)
	for path, want := range map[string]string{
		"/xiaozhi/ota/": "server_time", "/xiaozhi/ota": "server_time", "/api/ota/": "server_time", "/api/ota": "server_time",
		"/api/device/ota": "server_time", "/api/device/ota/": "server_time", "//xiaozhi/ota/": "server_time",
		"/xiaozhi/ota/activate": "activated", "/xiaozhi/ota//activate": "activated", "/xiaozhi/ota/activate/": "activated", "/api/device/ota/activate": "activated",
	} {
		for _, body := range []string{firmwareBody, "{}", ""} {
			w := post(h, path, body)
			if w.Code != 200 || !strings.Contains(w.Body.String(), want) {
				t.Errorf("%s: %d %s", path, w.Code, w.Body)
			}
		}
	}
}

func TestOTAFirmwareVersion(t *testing.T) {
	_, h := otaServer(t, nil)
	app := func(v string) string { return `{"application":{"version":` + v + `}}` }
	for _, tc := range []struct{ body, want string }{
		{app(`"2.4.2"`), "2.4.2"},
		{app(`"10"`), "10"},
		{app(`"v2.4.2"`), "0.0.0"},
		{app(`"2.4.2-beta"`), "0.0.0"},
		{app(`"2..4"`), "0.0.0"},
		{app(`"99999999999.0"`), "0.0.0"},
		{app(`242`), "2.4.1"},                    // not a string: the User-Agent knows
		{`{"board":{"ssid":"my"net"}}`, "2.4.1"}, // broken: the User-Agent knows
		{`[]`, "2.4.1"},
		{``, "2.4.1"},
		{`{"application":[]}`, "2.4.1"},
		{strings.Repeat(`{"a":`, 20_000), "2.4.1"},
		{strings.Repeat("x", 200<<10), "2.4.1"},
		{"\x00\xff\xfe", "2.4.1"},
	} {
		w := post(h, "/xiaozhi/ota/", tc.body)
		var answer reply
		if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil || w.Code != 200 {
			t.Fatalf("%.40q: %d %v", tc.body, w.Code, err)
		}
		if answer.Firmware.Version != tc.want || answer.Firmware.URL != "" {
			t.Errorf("%.40q: firmware %+v, want %s", tc.body, answer.Firmware, tc.want)
		}
	}
}

// Firmware stores every member of websocket under its name, 15 bytes at most,
// and takes an mqtt member for an order to use it.
func TestOTAReplyMembers(t *testing.T) {
	_, h := otaServer(t, func(o *Options) { o.Auth = request.Auth{Enabled: true, Token: "dvc_5f2e9c"} })
	w := post(h, "/xiaozhi/ota/", firmwareBody)
	var reply map[string]map[string]any
	if err := json.Unmarshal(w.Body.Bytes(), &reply); err != nil {
		t.Fatal(err)
	}
	if len(reply) != 3 || reply["server_time"] == nil || reply["firmware"] == nil {
		t.Errorf("members of the reply: %v", reply)
	}
	ws := reply["websocket"]
	if len(ws) != 3 || ws["token"] != "dvc_5f2e9c" || ws["version"] != 1.0 || ws["url"] == "" {
		t.Errorf("websocket: %v", ws)
	}
	if _, force := reply["firmware"]["force"]; force {
		t.Error("firmware.force is set")
	}
}

func TestOTAWithoutIdentity(t *testing.T) {
	_, h := otaServer(t, nil)
	r := httptest.NewRequest(http.MethodPost, "/xiaozhi/ota/", strings.NewReader("{}"))
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	if w.Code != 200 || !strings.Contains(w.Body.String(), "websocket") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

func TestOTALanguage(t *testing.T) {
	s, h := otaServer(t, nil)
	post(h, "/xiaozhi/ota/", `{"language":"en-US"}`)
	if got := s.o.Registry.Language("24:6f:28:aa:10:02"); got != "en" {
		t.Errorf("the body said en-US: %q", got)
	}
	post(h, "/xiaozhi/ota/", `{}`)
	if got := s.o.Registry.Language("24:6f:28:aa:10:02"); got != "zh" {
		t.Errorf("Accept-Language said zh-CN: %q", got)
	}
}

func TestOTAMethods(t *testing.T) {
	_, h := otaServer(t, nil)
	for _, path := range []string{"/xiaozhi/ota/", "/xiaozhi/ota/activate"} {
		for _, tc := range []struct {
			method string
			status int
		}{
			{http.MethodGet, 200},
			{http.MethodHead, 200},
			{http.MethodPost, 200},
			{http.MethodOptions, 204},
			{http.MethodPut, 405},
			{http.MethodDelete, 405},
			{http.MethodPatch, 405},
		} {
			r := httptest.NewRequest(tc.method, path, nil)
			r.Header.Set("Origin", "http://localhost:8006")
			r.Header.Set("Access-Control-Request-Private-Network", "true")
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			if w.Code != tc.status {
				t.Errorf("%s %s: %d, want %d", tc.method, path, w.Code, tc.status)
			}
			if w.Header().Get("Access-Control-Allow-Origin") != "http://localhost:8006" || w.Header().Get("Vary") != "Origin" {
				t.Errorf("%s %s: browsers are shut out", tc.method, path)
			}
			if tc.status == 204 {
				allowed := w.Header().Get("Access-Control-Allow-Headers")
				for _, name := range []string{"Device-Id", "Client-Id", "Authorization", "Content-Type", "Activation-Version"} {
					if !strings.Contains(allowed, name) {
						t.Errorf("preflight does not allow %s: %s", name, allowed)
					}
				}
				if w.Header().Get("Access-Control-Allow-Private-Network") != "true" || !strings.Contains(w.Header().Get("Access-Control-Allow-Methods"), "POST") {
					t.Errorf("preflight: %v", w.Header())
				}
			}
		}
	}
}

// Web pages of others may not be a device, and read nothing.
func TestOTAOfStrangePages(t *testing.T) {
	_, h := otaServer(t, nil)
	for _, path := range []string{"/xiaozhi/ota/", "/xiaozhi/ota/activate"} {
		for method, status := range map[string]int{
			http.MethodGet: 200, http.MethodHead: 200, http.MethodPost: 403, http.MethodOptions: 403, http.MethodPut: 403,
		} {
			r := httptest.NewRequest(method, path, strings.NewReader(firmwareBody))
			r.Header.Set("Origin", "https://evil.example")
			r.Header.Set("Access-Control-Request-Private-Network", "true")
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			if w.Code != status {
				t.Errorf("%s %s: %d, want %d", method, path, w.Code, status)
			}
			for name := range w.Header() {
				if strings.HasPrefix(name, "Access-Control-") {
					t.Errorf("%s %s: %s", method, path, name)
				}
			}
			if status == 403 && (!strings.Contains(w.Body.String(), "server.origins") || strings.Contains(w.Body.String(), "websocket")) {
				t.Errorf("%s %s: %s", method, path, w.Body)
			}
		}
	}
}

func TestOTAPage(t *testing.T) {
	_, h := otaServer(t, nil)
	page := func(url string) string {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, url, nil))
		if w.Code != 200 || !strings.HasPrefix(w.Header().Get("Content-Type"), "text/html") {
			t.Fatalf("%d %v", w.Code, w.Header())
		}
		return w.Body.String()
	}
	text := page("http://192.168.1.10:8000/xiaozhi/ota/")
	for _, part := range []string{"http://192.168.1.10:8000/xiaozhi/ota/", "ws://192.168.1.10:8000/xiaozhi/v1/", "配网", "OTA address", "Devices connected", "<dd>0</dd>"} {
		if !strings.Contains(text, part) {
			t.Errorf("the page lacks %q", part)
		}
	}
	if strings.Contains(text, "this machine only") || !strings.Contains(page("http://127.0.0.1:8000/xiaozhi/ota/"), "this machine only") {
		t.Error("the warning about loopback is wrong")
	}
	if !strings.Contains(page("http://[fd00::1]:8000/xiaozhi/ota/"), "cannot use an IPv6 address") {
		t.Error("no warning about IPv6")
	}
}

// On a real socket: status 200, Content-Length, not chunked, small, and a Host
// without a port is understood.
func TestOTAOnTheWire(t *testing.T) {
	_, h := otaServer(t, nil)
	web := httptest.NewServer(h)
	defer web.Close()
	port := web.URL[strings.LastIndexByte(web.URL, ':')+1:]
	for _, request := range []string{
		"POST /xiaozhi/ota/ HTTP/1.1\r\nHost: 127.0.0.1\r\nDevice-Id: a\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}",
		"POST /xiaozhi/ota HTTP/1.1\r\nHost: 127.0.0.1\r\nDevice-Id: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
		"POST /xiaozhi/ota HTTP/1.0\r\nDevice-Id: a\r\nContent-Length: 2\r\n\r\n{}",
	} {
		conn, err := web.Client().Transport.(*http.Transport).DialContext(t.Context(), "tcp", web.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(conn, request); err != nil {
			t.Fatal(err)
		}
		br := bufio.NewReader(conn)
		status, _ := br.ReadString('\n')
		if !strings.HasPrefix(status, "HTTP/1.") || !strings.Contains(status, " 200 ") {
			t.Errorf("status line %q", status)
		}
		length := -1
		for {
			line, err := br.ReadString('\n')
			if err != nil || line == "\r\n" {
				break
			}
			name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
			switch name {
			case "Content-Length":
				length, _ = strconv.Atoi(value)
			case "Transfer-Encoding":
				t.Errorf("reply is %s", value)
			}
		}
		if length <= 0 || length >= 4096 {
			t.Fatalf("Content-Length %d", length)
		}
		body := make([]byte, length)
		if _, err := io.ReadFull(br, body); err != nil {
			t.Fatal(err)
		}
		if want := fmt.Sprintf(`"ws://127.0.0.1:%s/xiaozhi/v1/"`, port); !strings.Contains(string(body), want) {
			t.Errorf("body %s lacks %s", body, want)
		}
		conn.Close()
	}
}

// A device that promises a body and sends none does not hold us for ever.
func TestOTABodyMissing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, h := otaServer(t, nil)
		nc, far := net.Pipe()
		conns := make(chan net.Conn, 1)
		conns <- far
		web := &http.Server{Handler: h}
		over := make(chan struct{})
		go func() { defer close(over); _ = web.Serve(oneConn{conns}) }()
		defer func() { nc.Close(); close(conns); web.Close(); <-over }()
		began := time.Now()
		fmt.Fprint(nc, "POST /xiaozhi/ota/ HTTP/1.1\r\nHost: h\r\nDevice-Id: a\r\nContent-Length: 500\r\n\r\n{")
		answer, err := http.ReadResponse(bufio.NewReader(nc), nil)
		if err != nil || answer.StatusCode != 200 {
			t.Fatalf("%v %v", answer, err)
		}
		if took := time.Since(began); took > otaReadTime {
			t.Errorf("answered after %v", took)
		}
	})
}

// oneConn is a listener for the connections of a channel.
type oneConn struct{ conns chan net.Conn }

func (l oneConn) Accept() (net.Conn, error) {
	if nc, ok := <-l.conns; ok {
		return nc, nil
	}
	return nil, net.ErrClosed
}
func (oneConn) Close() error   { return nil }
func (oneConn) Addr() net.Addr { return &net.TCPAddr{} }

func FuzzReadOTA(f *testing.F) {
	f.Add("zh-CN", "board/1.0", []byte(firmwareBody))
	f.Add("", "", []byte(`{"language":7,"application":"x","board":[{}]}`))
	f.Add("*", "/", []byte(`{"application":{"version":"v1"}}`))
	f.Fuzz(func(t *testing.T, language, agent string, body []byte) {
		asked := readOTA(http.Header{"Accept-Language": {language}, "User-Agent": {agent}}, body)
		s, _ := otaServer(t, nil)
		reply := s.reply(s.o.Requests.BaseURL(httptest.NewRequest("POST", "/", nil)), asked.version, "d")
		if !isNumericVersion(reply.Firmware.Version) {
			t.Errorf("a device would crash on version %q", reply.Firmware.Version)
		}
		if out, err := rawjson.Marshal(reply); err != nil || len(out) > 4096 {
			t.Errorf("%d bytes, %v", len(out), err)
		}
	})
}

// TestOTASignal: how strong the Wi-Fi of a device is counts only as a number that it can be.
func TestOTASignal(t *testing.T) {
	for body, want := range map[string]int{firmwareBody: -51, `{"board":{"rssi":"-51"}}`: 0, `{"board":{"rssi":5}}`: 0, `{"board":{"rssi":-1e9}}`: 0, `{"board":{}}`: 0, `{`: 0} {
		if got := readOTA(nil, []byte(body)).signal; got != want {
			t.Errorf("%s: %d dBm, want %d", body, got, want)
		}
	}
}

// TestOTADescribesInOneLine: what a device tells of itself stands in lists that people
// read before they accept a device, so it makes no line of its own there.
func TestOTADescribesInOneLine(t *testing.T) {
	d := readOTA(nil, []byte(`{"application":{"version":"1.0\n24:6f:28:aa:10:02"},"board":{"type":"bread\r\n24:6f:28:aa:10:02  new \u001b[31m\u202e"}}`))
	if d.version != "1.0 24:6f:28:aa:10:02" || d.board != "bread 24:6f:28:aa:10:02 new [31m" {
		t.Errorf("%q, %q", d.version, d.board)
	}
}
