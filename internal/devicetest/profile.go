package devicetest

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

// traits are the differences between profiles.
type traits struct {
	name          string
	queue         int  // packets of playback buffer
	dropOldest    bool // a full buffer loses the oldest packet instead of the new one
	anyState      bool // plays sound in every state
	clearOnListen bool // entering listening clears the buffer, in any mode
	noConnecting  bool // no connecting state, and moves between states are never refused
	noFlush       bool // entering speaking keeps the buffer
	noRelisten    bool // tts stop in auto mode does not lead to listen start
	answersStops  bool // every tts stop in auto mode is answered with listen start
	stopDiscards  bool // tts stop in auto mode discards what is unplayed
	realtimeStays bool // tts start in realtime mode does not leave listening
	abortLeaves   bool // an abort leaves speaking without waiting for tts stop
	emptySession  bool // messages carry an empty session_id
	queryIDs      bool // ids and token go into the URL
	noFeatures    bool // the hello has no features
	frameMs       int  // usual uplink frame
}

func (p Profile) traits() traits {
	switch p {
	case Firmware222Minus:
		return traits{name: "firmware before 2.2.2", queue: 40, stopDiscards: true, frameMs: 60}
	case PyXiaozhi:
		return traits{
			name: "desktop", queue: 166, dropOldest: true, anyState: true, noConnecting: true, noFlush: true, answersStops: true,
			stopDiscards: true, realtimeStays: true, abortLeaves: true, emptySession: true, frameMs: 20,
		}
	case Browser:
		return traits{
			name: "browser", queue: 4000, anyState: true, noConnecting: true, noFlush: true, noRelisten: true,
			abortLeaves: true, queryIDs: true, frameMs: 60,
		}
	case OldIoT162:
		return traits{
			name: "firmware 1.6.2", queue: 10, anyState: true, clearOnListen: true, stopDiscards: true,
			emptySession: true, noFeatures: true, frameMs: 60,
		}
	default:
		return traits{name: "firmware", queue: 40, frameMs: 60}
	}
}

// String names the profile.
func (p Profile) String() string { return p.traits().name }
