package agent

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"
	"unicode"

	"xiaozhi/audio"
	"xiaozhi/prompts"
)

// floor is one turn's right to speak. The turn's goroutines speak through it,
// and the conversation takes it away: after cut, undo or stop nothing of the
// turn can reach the device any more. All methods may be called at the same time.
type floor struct {
	out    Outbox
	turn   uint64
	format audio.Format
	lead   int

	monitor *monitor // hears what is sent; nil: nobody does

	phases  *phases // of all replies; nil: this one keeps to itself
	slot    int     // of phases, while spreads
	spreads bool

	granted chan struct{} // closed when the turn may be seen and heard, or never will be

	mu        sync.Mutex
	trial     bool // nothing of the turn may reach the device yet
	wanted    bool // the turn would have begun to speak
	paused    bool // no frame leaves for the moment
	resumed   time.Time
	waiting   bool // a frame was encoded and is not handed over yet
	firm      bool // voice does not cut it
	closed    bool
	committed bool // something irrevocable was done: the turn cannot be undone
	started   time.Time
	firstOut  time.Time      // when the first frame left
	enc       *audio.Encoder // made with the first frame that needs it
	pacer     *audio.Pacer
	buf       []byte
	strange   bool // packets of another encoder were sent since enc's last
	spoken    []spokenSentence
	held      []Message // what may be shown when the turn can no more be undone
	shown     bool      // a chunk was passed on
}

// spokenSentence is how far a sentence got.
type spokenSentence struct {
	utterable
	frames int  // handed over so far
	whole  bool // the last of its frames was handed over
}

func newFloor(out Outbox, turn uint64, format audio.Format, lead int) *floor {
	f := newTrialFloor(out, turn, format, lead)
	f.grant()
	return f
}

// newTrialFloor makes a floor that lets nothing through before grant.
func newTrialFloor(out Outbox, turn uint64, format audio.Format, lead int) *floor {
	return &floor{
		out: out, turn: turn, format: format, lead: lead, pacer: audio.NewPacer(format.Frame, lead),
		granted: make(chan struct{}), trial: true,
	}
}

// grant ends the trial: what the turn has ready is let through. It reports
// whether tts start was sent.
func (f *floor) grant() (began bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed || !f.trial {
		return false
	}
	f.endTrial()
	held := f.held
	f.held = nil
	for _, m := range held {
		if m.Kind == MessageTTSStart {
			f.open()
			continue
		}
		f.pass(m)
	}
	return f.wanted
}

// await waits until the turn may be heard, or never will be.
func (f *floor) await(ctx context.Context) error {
	select {
	case <-f.granted:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// endTrial lets those go on who wait for it. The caller holds mu.
func (f *floor) endTrial() {
	if f.trial {
		f.trial = false
		close(f.granted)
	}
}

// close takes the floor away for good. The caller holds mu.
func (f *floor) close() {
	if f.spreads {
		f.phases.giveBack(f.slot)
		f.spreads = false
	}
	f.closed = true
	f.endTrial()
}

// spread keeps the frames of this turn out of the way of others'. The caller
// holds mu.
func (f *floor) spread() {
	if f.phases == nil {
		return
	}
	slot, move := f.phases.take(f.pacer.PlayoutEnd().Add(f.format.Frame/2), f.format.Frame)
	f.slot, f.spreads = slot, true
	f.pacer.Shift(move)
}

// pause lets no frame through until resume. It reports whether it was not
// paused before.
func (f *floor) pause() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.paused || f.closed {
		return false
	}
	if !f.waiting && f.pacer.Lead(time.Now()) > 0 {
		f.soften() // else there is nothing that plays
	}
	f.paused = true
	f.pacer.Pause()
	return true
}

// resume goes on where pause stopped. It reports whether it was paused.
func (f *floor) resume() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.paused || f.closed {
		return false
	}
	f.paused, f.resumed = false, time.Now()
	return true
}

// hold makes the turn one that voice does not cut.
func (f *floor) hold() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.firm = true
}

// holds reports whether voice does not cut the turn.
func (f *floor) holds() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.firm
}

// start sends tts start, once. It reports whether it was sent just now.
func (f *floor) start() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed || !f.started.IsZero() {
		return false
	}
	if f.trial {
		if !f.wanted {
			f.wanted = true
			f.held = append(f.held, Message{Kind: MessageTTSStart})
		}
		return false
	}
	f.open()
	return true
}

// open sends tts start and what had to wait for it. The caller holds mu.
func (f *floor) open() {
	f.started, f.committed = time.Now(), true
	f.out.Send(Message{Kind: MessageTTSStart, Turn: f.turn})
	for _, m := range f.held {
		f.shown = true
		f.out.Send(m)
	}
	f.held = nil
}

// startedAt is when tts start was sent; zero before.
func (f *floor) startedAt() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.started
}

// firstFrame is when the first frame left; zero before.
func (f *floor) firstFrame() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.firstOut
}

// commit makes the turn one that cannot be undone, because a tool is about to
// run. False: it was undone already.
func (f *floor) commit() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.committed = f.committed || !f.closed
	return !f.closed
}

// undo takes the floor away if nothing irrevocable was done yet.
func (f *floor) undo() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.committed || f.closed {
		return false
	}
	f.close()
	return true
}

// send passes a message of the turn on while it has the floor. A chunk of the
// answer waits for tts start: before it, the turn may still be undone.
func (f *floor) send(m Message) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return false
	}
	m.Turn = f.turn
	if f.trial {
		f.held = append(f.held, m)
		return true
	}
	f.pass(m)
	return true
}

// pass passes a message on, or holds a chunk back until tts start. The caller
// holds mu.
func (f *floor) pass(m Message) {
	if m.Kind == MessageChunk && f.started.IsZero() {
		f.held = append(f.held, m)
		return
	}
	f.shown = f.shown || m.Kind == MessageChunk
	f.out.Send(m)
}

// sentenceStart announces the sentence whose first frame is next.
func (f *floor) sentenceStart(s utterable) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return
	}
	if n := len(f.spoken); n > 0 {
		f.spoken[n-1].whole = true
	}
	f.spoken = append(f.spoken, spokenSentence{utterable: s})
	f.out.Send(Message{Kind: MessageSentenceStart, Turn: f.turn, Text: s.display})
}

// due is when the next frame may leave; not after now means at once.
func (f *floor) due(now time.Time) time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.pacer.Due(now)
}

// encode turns one frame of PCM, which it may change, into a packet, which is
// good until the next; nil when the floor is gone.
func (f *floor) encode(pcm []int16) ([]byte, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil, nil
	}
	if err := f.encoder(); err != nil {
		return nil, err
	}
	if f.pacer.Started() && f.pacer.Lead(time.Now()) == 0 {
		audio.FadeIn(pcm, f.format.Rate) // it begins out of silence
	}
	n, err := f.enc.Encode(pcm, f.buf)
	if err != nil {
		return nil, fmt.Errorf("encode a frame: %w", err)
	}
	f.waiting = true
	return f.buf[:n], nil
}

// prepare makes the encoder ahead of the first frame: that takes as long as
// encoding one. What fails is met again where it is used.
func (f *floor) prepare() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.closed && f.enc == nil {
		_ = f.encoder()
	}
}

// encoder makes enc ready for the next frame. The caller holds mu.
func (f *floor) encoder() error {
	if f.enc == nil {
		enc, err := audio.NewEncoder(f.format)
		if err != nil {
			return fmt.Errorf("make an encoder: %w", err)
		}
		f.enc, f.buf, f.strange = enc, make([]byte, audio.MaxPacket), false
	}
	if f.strange {
		f.strange = false
		return f.enc.Reset()
	}
	return nil
}

// foreign lets a packet pass that was encoded elsewhere; nil when the floor is gone.
func (f *floor) foreign(packet []byte) []byte {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil
	}
	f.strange = true
	return packet
}

// frame hands one packet over. False: it was not taken, because the outbox is
// full; the floor's end counts as taken.
func (f *floor) frame(packet []byte) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return true
	}
	if f.paused || !f.hand(packet) {
		return false
	}
	f.waiting = false
	return true
}

// hand hands one packet over. The caller holds mu.
func (f *floor) hand(packet []byte) bool {
	if !f.out.Audio(f.turn, packet) {
		return false
	}
	f.monitor.sent(packet)
	now := time.Now()
	f.pacer.Sent(now)
	if f.firstOut.IsZero() {
		f.firstOut = now
		f.spread()
	}
	if n := len(f.spoken); n > 0 {
		f.spoken[n-1].frames++
	}
	return true
}

// hush sends one frame in which the sound ends softly, because the next one is
// not there in time. It belongs to the sentence that it interrupts.
func (f *floor) hush() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.soften()
}

// soften is hush. The caller holds mu.
func (f *floor) soften() {
	if f.closed || f.enc == nil || f.strange || !f.pacer.Started() {
		return // packets of others end as they end
	}
	if n, err := f.enc.Silence(f.buf); err == nil {
		f.hand(f.buf[:n]) // a full outbox does without
	}
}

// late tells that a frame that was ready left d after it was due: the lead
// adapts to it (audio.Pacer). So it does to what waits before the socket, where
// the outbox can tell.
func (f *floor) late(d time.Duration) {
	if out, ok := f.out.(Lagging); ok {
		d = max(d, out.Lag())
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.closed && (f.resumed.IsZero() || time.Since(f.resumed) > d) {
		f.pacer.Late(d) // a pause on purpose is no lateness, nor is the end of one by a cut
	}
}

// playoutEnd is when the device will have played all it was given.
func (f *floor) playoutEnd() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.pacer.PlayoutEnd()
}

// stop ends the reply in good order: the start/stop pair is completed, unless
// the turn is still on trial.
func (f *floor) stop() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return
	}
	if f.trial {
		f.close()
		return
	}
	if f.started.IsZero() {
		f.open()
	}
	if n := len(f.spoken); n > 0 {
		f.spoken[n-1].whole = true
	}
	f.close()
	f.committed = true
	f.out.Send(Message{Kind: MessageTTSStop, Turn: f.turn})
}

// cut takes the floor away at once. If tts start was sent, one silent frame
// (only if a frame was sent) and tts stop follow; it reports whether they did.
func (f *floor) cut() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return false
	}
	f.close()
	if f.started.IsZero() {
		return false
	}
	m := Message{Kind: MessageTTSStop, Turn: f.turn, Cut: true}
	if !f.firstOut.IsZero() && f.encoder() == nil {
		if n, err := f.enc.Silence(f.buf); err == nil {
			m.Closing = append([]byte(nil), f.buf[:n]...)
		}
	}
	f.out.Send(m)
	return true
}

// heard is what the user has heard by now of each step's sentences that belong
// to the answer, and whether something that was begun or waiting is missing.
func (f *floor) heard(now time.Time, steps int) (texts []string, partial bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	texts = make([]string, max(steps, 1))
	left := f.pacer.Heard(now)
	for _, s := range f.spoken {
		text, whole := s.heard(&left, f.format.Frame)
		partial = partial || !whole
		if s.keep && text != "" && s.step < len(texts) {
			texts[s.step] = joinText(texts[s.step], text)
		}
	}
	return texts, partial
}

// heard is what was played of a sentence, and whether that is all of it. left
// is how much sound the device has played from the sentence's beginning on, and
// becomes what is left of that for the next.
func (s spokenSentence) heard(left *time.Duration, frame time.Duration) (text string, whole bool) {
	total := time.Duration(s.frames) * frame
	played := min(*left, total)
	*left -= played
	if s.whole && played == total {
		return s.display, true
	}
	return prefixHeard(s, played, frame), false
}

// saying is what the device is playing by now, and has played not long before:
// the texts of the sentences.
func (f *floor) saying(now time.Time) []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []string
	ended := f.pacer.Heard(now) - echoMemory
	for _, s := range f.spoken {
		length := time.Duration(s.frames) * f.format.Frame
		if ended < length {
			out = append(out, s.display)
		}
		ended -= length
	}
	return out
}

// asides is what the user has heard by now that is no part of the answer: a
// phrase that stands for one, or the reason why it is not whole.
func (f *floor) asides(now time.Time) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var all string
	left := f.pacer.Heard(now)
	for _, s := range f.spoken {
		text, _ := s.heard(&left, f.format.Frame)
		if !s.keep && s.sound == nil && !passing(s.fallback) {
			all = joinText(all, text)
		}
	}
	return all
}

// passing reports whether a phrase only passes the time.
func passing(phrase string) bool {
	switch phrase {
	case prompts.Filler, prompts.FillerLong, prompts.SlowASR, prompts.SlowLLM, prompts.SlowTTS:
		return true
	}
	return false
}

// showed reports whether a piece of the answer was passed on as text.
func (f *floor) showed() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.shown
}

// played is how much sound the device has played of the turn.
func (f *floor) played(now time.Time) time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.pacer.Heard(now)
}

// runeTime is how long a character takes to say, for sentences whose whole
// sound is not there yet: about 4.5 CJK characters or 14 letters a second.
func runeTime(language string) time.Duration {
	if language == "zh" {
		return 220 * time.Millisecond
	}
	return 70 * time.Millisecond
}

// prefixHeard is the part of a sentence that was played.
func prefixHeard(s spokenSentence, played, frame time.Duration) string {
	runes := []rune(s.display)
	total := time.Duration(s.frames) * frame
	if !s.whole {
		total = max(total, time.Duration(s.length.nanos.Load()))
		if !s.length.whole.Load() {
			total = max(total, time.Duration(len(runes))*runeTime(s.language))
		}
	}
	if total <= 0 || played <= 0 {
		return ""
	}
	n := int(int64(len(runes)) * int64(played) / int64(total))
	return strings.TrimSpace(string(runes[:min(n, len(runes))]))
}

// counters are what the pacer measured.
func (f *floor) counters() (frames, underruns int, minLead time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.pacer.Frames(), f.pacer.Underruns(), f.pacer.MinLead()
}

// joinText puts two pieces of text together, with a space where one belongs.
func joinText(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	last, first := []rune(a), []rune(b)
	if unicode.IsSpace(last[len(last)-1]) || isCJK(first[0]) || isCJK(last[len(last)-1]) || last[len(last)-1] > 0x3000 {
		return a + b
	}
	return a + " " + b
}
