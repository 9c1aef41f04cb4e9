package devicetest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Mode is a listen mode (3.2.1).
type Mode string

// The listen modes.
const (
	Auto     Mode = "auto"     // the server finds the end of what is said
	Manual   Mode = "manual"   // push to talk
	Realtime Mode = "realtime" // the microphone stays open while the server speaks
)

// State is a state of the device (3.1).
type State string

// The states. A Device starts in Connecting, or in Idle when its profile has no such state.
const (
	Connecting State = "connecting"
	Idle       State = "idle"
	Listening  State = "listening"
	Speaking   State = "speaking"
)

// Options say what kind of device connects, and to where. The zero value of every field but URL works.
type Options struct {
	URL        string       // ws:// or wss:// address; with NetConn its host may be any name
	NetConn    net.Conn     // an open transport to use instead of dialling, as one end of net.Pipe
	HTTPClient *http.Client // for OTA and camera uploads; nil: a fresh one. Redirects are never followed

	DeviceID string      // Device-Id; empty: 24:6f:28:aa:10:02
	ClientID string      // Client-Id; empty: a fixed UUID
	Token    string      // as given by OTA; without a space, Bearer is put before it
	Page     http.Header // of a web page: Origin and cookies, beside what all send; nil: it is none
	Protocol int         // binary framing 1, 2 or 3; 0: 1
	Language string      // Accept-Language of the OTA request; empty: en-US
	Flash    *Flash      // keeps the token over boots; nil: a token that a reply leaves out is none
	Waiting  Waiting     // for a person to accept the code

	Profile    Profile
	Mode       Mode // first listen mode; empty: Auto
	OpenListen bool // Dial sends listen start as its first act, before the main task sees any message
	Wake       Wake // with OpenListen

	Hello  json.RawMessage // sent as it is in place of the hello, if set
	NoMCP  bool            // hello without features.mcp
	Tools  []Tool          // offered by MCP, in pages
	Things []Thing         // of the IoT protocol: for profiles without MCP

	Sound  Sound
	Limits Limits
	Quirks Quirks
}

// Wake is the wake word that opens a conversation.
type Wake struct {
	Word   string // sent as a detect before the listen start; empty: none
	Frames int    // length of the burst of sound before the detect
}

// Sound says how the device records and plays.
type Sound struct {
	FrameMs  int   // uplink frame, 20, 40 or 60 ms; 0: what the profile uses
	PCM      bool  // both directions are PCM in the place of Opus (4.6)
	NoDTX    bool  // silence is encoded like any sound, not as packets of one byte
	AEC      bool  // hello with features.aec; downlink timestamps are echoed (4.5)
	Room     *Room // the path from the loudspeaker to the microphone; nil: none
	NoDecode bool  // sound is not decoded: replies keep none, and closing frames are not heard; for load generators
	// OnFrame, if set, is called by the receiver with the arrival of each binary message and its bytes, in place of
	// an event of KindFrame: for load generators, whose long replies would fill the memory. It must return at once.
	OnFrame func(at time.Time, message []byte)
}

// Limits loosen or tighten the rules about time.
type Limits struct {
	Tolerance  time.Duration // is forgiven in each of them; for networks and busy machines
	MaxLead    time.Duration // most sound that may be ahead; 0: 360 ms
	StrictLead bool          // a lead below 180 ms and an underrun are violations: sound is known to be at hand
	MaxPause   time.Duration // longest pause between two questions whether a code was accepted; 0: as long as real devices pause
}

// Quirks are ways in which one device is slower or odder than others.
type Quirks struct {
	MuteMCP      bool // MCP requests are checked but never answered
	StatesAtOnce bool // things that a command changed are reported right after it, as some builds do
	// Freezes makes a tool stop all of the device, not only its main task: nothing
	// is read from the socket and the microphone hears nothing until it returns.
	// What comes meanwhile waits in the network; the open reply is forgiven as much.
	Freezes       bool
	MainTaskDelay time.Duration // how long each message waits before the main task applies it
}

// Defaults of Options.
const (
	defaultDeviceID = "24:6f:28:aa:10:02"
	defaultClientID = "7d0f4e1c-5a0e-4a66-9a5e-0c2b8a6f1d33"
	boardName       = "bread-compact-wifi"
	firmwareVersion = "2.4.2"
)

func (o Options) withDefaults() Options {
	o.DeviceID = cmp.Or(o.DeviceID, defaultDeviceID)
	o.ClientID = cmp.Or(o.ClientID, defaultClientID)
	o.Language = cmp.Or(o.Language, "en-US")
	o.Mode = cmp.Or(o.Mode, Auto)
	o.Protocol = cmp.Or(o.Protocol, 1)
	o.Sound.FrameMs = cmp.Or(o.Sound.FrameMs, o.Profile.traits().frameMs)
	o.Limits.MaxLead = cmp.Or(o.Limits.MaxLead, 360*time.Millisecond)
	client := http.Client{
		Timeout:   60 * time.Second, // 30 s for the headers and 30 s for the body (section 8)
		Transport: &http.Transport{DisableKeepAlives: true, DisableCompression: true},
	}
	if o.HTTPClient != nil {
		client = *o.HTTPClient
	}
	// A redirect is handed back as the answer, for devices follow none.
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	o.HTTPClient = &client
	return o
}

func (o Options) offersMCP() bool {
	if o.Hello == nil {
		return !o.Profile.traits().noFeatures && !o.NoMCP
	}
	var h clientHello
	if err := json.Unmarshal(o.Hello, &h); err != nil {
		return false // a broken hello on purpose offers nothing
	}
	return h.Features != nil && h.Features.MCP
}

func (o Options) check() error {
	switch {
	case !slices.Contains([]int{1, 2, 3}, o.Protocol):
		return fmt.Errorf("protocol %d: must be 1, 2 or 3", o.Protocol)
	case !slices.Contains([]int{20, 40, 60}, o.Sound.FrameMs):
		return fmt.Errorf("frame of %d ms: must be 20, 40 or 60", o.Sound.FrameMs)
	case !slices.Contains([]Mode{Auto, Manual, Realtime}, o.Mode):
		return fmt.Errorf("mode %q: must be auto, manual or realtime", o.Mode)
	}
	if err := cmp.Or(o.checkPCM(), o.Sound.Room.check(o)); err != nil {
		return err
	}
	return CheckURL(o.URL)
}

// CheckURL says why the firmware's URL parser would not reach this WebSocket address (2.1).
func CheckURL(raw string) error {
	u, err := url.Parse(raw)
	scheme, rest, _ := strings.Cut(raw, "://")
	why := ""
	switch {
	case !strings.Contains(raw, "://") || (scheme != "ws" && scheme != "wss"):
		why = "must begin with ws:// or wss://"
	case err != nil:
		why = err.Error()
	case strings.Contains(u.Host, "["):
		why = "devices know no IPv6 addresses"
	case u.Hostname() == "":
		why = "no host"
	case u.Port() == "" && strings.Contains(rest, ":"):
		why = "without a port no colon may follow the host"
	case u.Path == "" && u.RawQuery != "":
		why = "a slash must come between host and query"
	case u.User != nil:
		why = "devices know no user names"
	default:
		return nil
	}
	return fmt.Errorf("url %q: %s", raw, why)
}

// authorization is the header for a token (1.3); empty for none.
func authorization(token string) string {
	if token == "" || strings.Contains(token, " ") {
		return token
	}
	return "Bearer " + token
}

// Profile is a family of clients that behave alike.
type Profile int

// The profiles. The zero value is present firmware.
const (
	Firmware242      Profile = iota // firmware 2.2.2 to 2.4.2: plays out before it listens again
	Firmware222Minus                // firmware 1.8 to before 2.2.2: tts stop discards what is unplayed
	PyXiaozhi                       // a desktop client: no connecting state, answers each tts stop in auto mode
	Browser                         // a test page: ids in the query, plays in any state, never listens by itself
	OldIoT162                       // firmware 1.6.2: 10 packets of buffer, no features, empty session ids
)

type traits struct {
	name          string
	rests         State // after the server's hello; empty: in connecting, which others do not have
	queue         int   // packets of playback buffer
	dropOldest    bool  // a full buffer loses the oldest packet instead of the new one
	anyState      bool  // plays sound in every state
	clearOnListen bool  // entering listening clears the buffer, in any mode
	noFlush       bool  // entering speaking keeps the buffer
	noRelisten    bool  // tts stop in auto mode does not lead to listen start
	answersStops  bool  // every tts stop in auto mode is answered with listen start
	stopDiscards  bool  // tts stop in auto mode discards what is unplayed
	realtimeStays bool  // tts start in realtime mode does not leave listening
	abortLeaves   bool  // an abort leaves speaking without waiting for tts stop
	emptySession  bool  // messages carry an empty session_id
	queryIDs      bool  // ids and token go into the URL
	noFeatures    bool  // the hello has no features
	frameMs       int   // usual uplink frame
}

func (p Profile) traits() traits {
	return [...]traits{
		Firmware242:      {name: "firmware", queue: 40, frameMs: 60},
		Firmware222Minus: {name: "firmware before 2.2.2", queue: 40, stopDiscards: true, frameMs: 60},
		PyXiaozhi: {
			name: "desktop", rests: Listening, queue: 166, dropOldest: true, anyState: true, noFlush: true, answersStops: true,
			stopDiscards: true, realtimeStays: true, abortLeaves: true, emptySession: true, frameMs: 20,
		},
		Browser: {
			name: "browser", rests: Idle, queue: 4000, anyState: true, noFlush: true, noRelisten: true,
			abortLeaves: true, queryIDs: true, frameMs: 60,
		},
		OldIoT162: {
			name: "firmware 1.6.2", queue: 10, anyState: true, clearOnListen: true, stopDiscards: true,
			emptySession: true, noFeatures: true, frameMs: 60,
		},
	}[p]
}

// String names the profile.
func (p Profile) String() string { return p.traits().name }
