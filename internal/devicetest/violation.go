package devicetest

import (
	"fmt"
	"time"
)

// Rule names one requirement of the device protocol that a server can break.
type Rule string

// Timed says whether a rule is about time, so that a busy machine can make a good server break it.
func (r Rule) Timed() bool {
	switch r {
	case RuleHelloLate, RuleLateClose, RuleStartAfterAbort, RuleStopEarly, RuleStopLate, RuleStopMissing, RuleAbortSlow, RuleAbortFrames,
		RuleSentenceEarly, RuleEarlyFrame, RuleFrameDropped, RuleQueueFull, RuleLeadHigh, RuleLeadLow, RuleUnderrun:
		return true
	default:
		return false
	}
}

// The rules of opening a connection (sections 1.3, 2.1 and 2.3).
const (
	RuleOTA            Rule = "ota"             // a provisioning reply that a device cannot use
	RuleUpgrade        Rule = "upgrade"         // extensions or subprotocols that were not asked for
	RuleHelloTransport Rule = "hello_transport" // no string transport "websocket": reboots the device
	RuleHelloLate      Rule = "hello_late"      // no hello within 10 s
	RuleHelloAgain     Rule = "hello_again"     // more than one hello on a connection
	RuleHelloAudio     Rule = "hello_audio"     // a rate or frame length the device cannot decode
	RuleBeforeHello    Rule = "before_hello"    // anything sent before the hello
	RuleSessionID      Rule = "session_id"      // missing, malformed, or not the hello's
)

// The rules of text messages (sections 2.5, 3 and 5).
const (
	RuleJSON       Rule = "json"        // not one JSON object
	RuleType       Rule = "type"        // type, state, text or emotion missing or not a string
	RuleTooLong    Rule = "too_long"    // text over 8 KiB or binary over 1.5 KiB
	RuleTooDeep    Rule = "too_deep"    // JSON nested 16 levels or more
	RuleAbortEcho  Rule = "abort_echo"  // a message of type abort sent to a device
	RuleEmotion    Rule = "emotion"     // a face that not all displays have
	RuleCommand    Rule = "command"     // a system command that no firmware knows
	RuleGlyphs     Rule = "glyph_push"  // glyphs for a device that did not ask for them
	RuleStale      Rule = "stale"       // a channel left without data for over 120 s
	RuleLateClose  Rule = "late_close"  // TCP still open 1 s after the Close frame
	RuleFlood      Rule = "flood"       // more messages than the main task can ever keep up with
	RuleIoT        Rule = "iot"         // a command that crashes older firmware, or one sent to newer firmware
	RuleMCPSilent  Rule = "mcp_silent"  // a request that the firmware drops without an answer
	RuleMCPID      Rule = "mcp_id"      // an id that is a duplicate or outside 1..2147483647
	RuleMCPBusy    Rule = "mcp_busy"    // a second tools/call while one is in flight
	RuleMCPRequest Rule = "mcp_request" // other defects of a request: version, vision url, stackSize
)

// The rules of a reply (sections 3.1, 3.2.4, 3.4, 4.2 and 4.3).
const (
	RuleStartTwice       Rule = "start_twice"        // tts start inside a reply
	RuleStartConnecting  Rule = "start_connecting"   // tts start while the device is connecting: refused
	RuleStartAfterAbort  Rule = "start_after_abort"  // tts start before the stop that an abort is owed
	RuleStopUnpaired     Rule = "stop_unpaired"      // tts stop with neither a start nor an abort
	RuleStopEarly        Rule = "stop_early"         // tts stop before the sound was played
	RuleStopLate         Rule = "stop_late"          // tts stop more than 120 ms after play-out
	RuleStopMissing      Rule = "stop_missing"       // no tts stop at all
	RuleAbortSlow        Rule = "abort_slow"         // tts stop more than 50 ms after an abort
	RuleAbortFrames      Rule = "abort_frames"       // more than the closing frame after an abort
	RuleAbortLoud        Rule = "abort_loud"         // a cut reply that does not end with a silent frame
	RuleSentenceEarly    Rule = "sentence_early"     // subtitle more than 360 ms before its sound
	RuleOutsideReply     Rule = "outside_reply"      // sentence_start or emotion outside a reply
	RuleSTTInReply       Rule = "stt_in_reply"       // stt between tts start and tts stop
	RuleEarlyFrame       Rule = "early_frame"        // sound within 100 ms after tts start
	RuleFrameOutside     Rule = "frame_outside"      // sound before tts start or after tts stop
	RuleFrameDropped     Rule = "frame_dropped"      // sound that met a device which is not speaking
	RuleQueueFull        Rule = "queue_full"         // sound for which the device had no room
	RuleTimestamp        Rule = "timestamp"          // playback timestamps that do not fit the hello
	RuleFraming          Rule = "framing"            // a header that does not say what follows it
	RulePacket           Rule = "packet"             // not mono Opus, or not decodable
	RulePacketDuration   Rule = "packet_duration"    // a packet that is not as long as the hello said
	RuleLeadHigh         Rule = "lead_high"          // more sound sent ahead than allowed
	RuleLeadLow          Rule = "lead_low"           // less than 180 ms ahead (Limits.StrictLead)
	RuleUnderrun         Rule = "underrun"           // sound that came after the speaker fell silent (Limits.StrictLead)
	RuleCloseInsideReply Rule = "close_inside_reply" // connection closed by the server inside a reply
)

// The rules for peers of the light dialect (docs/mcp.md, "Dialects").
const (
	RuleLightBytes   Rule = "light_bytes"   // a frame that differs from the written form
	RuleLightFraming Rule = "light_framing" // an envelope where frames are bare, or none where they are not
	RuleLightForeign Rule = "light_foreign" // sound, or a message that is no JSON-RPC, to a peer that said no hello
	RuleLightID      Rule = "light_id"      // a call whose id is empty or was used before
	RuleLightReply   Rule = "light_reply"   // a second final of a reply
)

// Violation is one breach of a rule, seen at a moment.
type Violation struct {
	At     time.Time
	Rule   Rule
	Detail string
}

// String is the rule and what happened, without the time.
func (v Violation) String() string {
	if v.Detail == "" {
		return string(v.Rule)
	}
	return fmt.Sprintf("%s: %s", v.Rule, v.Detail)
}

// ViolationError is a violation after which a device cannot go on. Dial returns it.
type ViolationError struct{ Violation }

// Error is the rule and what happened.
func (e *ViolationError) Error() string { return "device protocol: " + e.String() }
