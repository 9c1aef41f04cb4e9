package devicetest

import (
	"context"
	"time"

	"xiaozhi/audio"
)

// mainTask applies messages and acts, one at a time, until the connection is gone.
func (d *Device) mainTask(ctx context.Context) {
	defer close(d.done)
	defer d.journal.end()
	defer d.relisten.Stop()
	for {
		select {
		case j := <-d.jobs:
			d.perform(ctx, j)
		case <-d.relisten.C:
			d.startListening()
		case <-d.gone:
			d.drain(ctx)
			return
		}
	}
}

// drain applies what came in before the connection went, and ends an open reply.
func (d *Device) drain(ctx context.Context) {
	for {
		select {
		case j := <-d.jobs:
			d.perform(ctx, j)
			continue
		default:
		}
		break
	}
	now := time.Now()
	d.setState(now, Idle)
	d.mu.Lock()
	r := d.turn.reply
	for _, v := range d.turn.overdue(now) {
		d.journal.violate(v.At, v.Rule, "%s", v.Detail)
	}
	d.turn.reply, d.turn.aborts = nil, nil
	d.mu.Unlock()
	d.complete(now, r)
}

func (d *Device) perform(ctx context.Context, j job) {
	if j.act != nil {
		j.done <- j.act()
		return
	}
	if d.opt.MainTaskDelay > 0 {
		wait := time.NewTimer(time.Until(j.at.Add(d.opt.MainTaskDelay)))
		defer wait.Stop()
		select {
		case <-wait.C:
		case <-d.gone:
		}
	}
	d.apply(ctx, j.message)
}

// apply does what a message means to the device's state (3.3).
func (d *Device) apply(ctx context.Context, m *inbound) {
	now := time.Now()
	switch {
	case m.kind == "tts" && m.state == "start":
		d.applyStart(now)
	case m.kind == "tts" && m.state == "stop":
		d.applyStop(now)
		d.complete(now, m.reply)
	case m.kind == "iot":
		d.runCommands(now, m)
	case m.kind == "mcp":
		d.answer(ctx, m)
	case m.kind == "system" && m.state == "reboot":
		d.CloseTCP()
	}
}

func (d *Device) applyStart(now time.Time) {
	d.mu.Lock()
	state, mode := d.state, d.mode
	d.mu.Unlock()
	switch {
	case state == Connecting:
		d.journal.violate(now, RuleStartConnecting, "tts start is refused while the device is connecting")
	case d.traits.realtimeStays && mode == Realtime:
	default:
		d.setState(now, Speaking)
	}
}

func (d *Device) applyStop(now time.Time) {
	d.mu.Lock()
	state, mode := d.state, d.mode
	d.mu.Unlock()
	switch {
	case state != Speaking:
		if d.traits.answersStops && mode == Auto {
			d.setState(now, Listening)
			d.startListening()
		}
	case mode == Manual:
		d.setState(now, Idle)
	default:
		d.setState(now, Listening)
		d.listenAgain(now, false)
	}
}

// listenAgain opens the microphone after a reply or a wake word. In auto mode
// present firmware first plays out what it has (3.1).
func (d *Device) listenAgain(now time.Time, wake bool) {
	d.mu.Lock()
	mode, ends := d.mode, d.player.ends
	if d.traits.noRelisten {
		d.mic = true
	}
	d.mu.Unlock()
	switch {
	case d.traits.noRelisten:
		d.micEvent(now)
	case mode == Realtime && !wake:
		// The microphone was open all the time; nothing is sent.
	case mode == Auto && !d.traits.stopDiscards && ends.After(now):
		d.relisten.Reset(ends.Sub(now))
	default:
		d.startListening()
	}
}

// startListening sends listen start, clears what is unplayed and opens the microphone.
func (d *Device) startListening() {
	d.mu.Lock()
	ready, mode := d.state == Listening, d.mode
	d.mu.Unlock()
	if !ready {
		return
	}
	if d.sendStates() != nil || d.sendControl(control{Type: "listen", State: "start", Mode: mode}) != nil {
		return // the reader sees the end of the connection too, and tells of it
	}
	now := time.Now()
	d.mu.Lock()
	if mode == Auto || d.traits.clearOnListen {
		d.flush(now)
	}
	d.mic = true
	d.mu.Unlock()
	d.micEvent(now)
}

func (d *Device) micEvent(now time.Time) {
	d.journal.add(Event{At: now, Kind: KindState, State: string(Listening), Text: "microphone on"})
}

// setState moves the device to a state and does what entering it does. Moves
// that the firmware refuses are left out.
func (d *Device) setState(now time.Time, next State) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.state == next || (d.state == Connecting && next == Speaking) {
		return
	}
	d.state = next
	if next == Idle {
		d.mic = false
	}
	if next == Speaking {
		d.relisten.Stop()
		d.mic = d.mic && d.mode == Realtime
		if !d.traits.noFlush {
			d.flush(now)
		}
	}
	d.journal.add(Event{At: now, Kind: KindState, State: string(next)})
}

// flush empties the playback queue and starts with a fresh decoder, unless the
// profile keeps its decoder. The caller holds mu.
func (d *Device) flush(now time.Time) {
	d.stats.Flushed += d.player.flush(now)
	d.stamps.flush()
	if d.traits.noFlush || !d.hasHello || d.opt.NoDecode {
		return
	}
	if d.state == Speaking {
		d.outlived = nil
	} else if d.outlived == nil {
		d.outlived = d.decoder
	}
	if fresh, err := audio.NewDecoder(d.rate); err == nil { // the same rate has worked at the hello
		d.decoder = fresh
	}
	if fresh, err := audio.NewDecoder(microphoneRate); err == nil && d.ear != nil {
		d.ear = fresh
	}
}

// complete hands a reply over, with the sound that was not thrown away.
func (d *Device) complete(now time.Time, r *Reply) {
	if r == nil {
		return
	}
	d.mu.Lock()
	r.PCM = d.player.take(r)
	d.stats.Replies++
	r = r.clone()
	d.mu.Unlock()
	d.journal.add(Event{At: now, Kind: KindReply, Text: r.Text(), Emotion: r.Emotion, Reply: r})
}
