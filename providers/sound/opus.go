package sound

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"xiaozhi/audio"
	"xiaozhi/audio/file"
	"xiaozhi/providers"
)

const (
	opusRate = 24000                 // Hz of PCM; the rate of the replies, so that nothing need be resampled
	opusRoll = 80 * time.Millisecond // of packets that a decoder hears before its sound counts (RFC 7845, section 4.6)
)

// errVorbis is the error of Ogg with the older codec, which some servers at home make of "ogg".
var errVorbis = errors.New("the server sent Ogg Vorbis, which is not read: let it send wav")

// opusPlayer passes the packets of an Ogg Opus stream on, merged to those of
// 60 ms that devices play, the last one padded. What cannot be merged is
// decoded: one of stereo or odd lengths, and the rest of a stream whose packets
// change their kind. It is for one sentence.
type opusPlayer struct {
	*Player
	merge   *audio.Repacketizer
	skip    time.Duration // still to be left out at the beginning
	rolled  [][]byte      // the newest packets, for a decoder that begins within the stream: those waiting and 80 ms before
	decoder *audio.Decoder
	pcm     []int16
}

// playOpus plays Ogg Opus.
func playOpus(r io.Reader, p *Player) error {
	pages := file.NewOggReader(r)
	first, err := pages.Next()
	if err != nil {
		return short(err)
	}
	if bytes.HasPrefix(first, []byte("\x01vorbis")) {
		return errVorbis
	}
	head, err := file.ParseOpusHead(first)
	if err != nil {
		return err
	}
	if _, err := pages.Next(); err != nil { // OpusTags
		return short(err)
	}
	o := &opusPlayer{
		Player: p, merge: audio.NewRepacketizer(audio.Reply.Frame),
		skip: audio.Format{Rate: 48000}.Duration(head.PreSkip),
	}
	for {
		packet, err := pages.Next()
		switch {
		case errors.Is(err, io.EOF):
			return o.end()
		case err != nil:
			return err
		case len(packet) == 0 || file.IsOpusHeader(packet): // of the next stream: some services begin one for each part
			continue
		}
		if err := o.packet(packet); err != nil {
			return err
		}
		if length, err := audio.PacketDuration(packet); err == nil && p.spend(length) {
			return ErrEndless
		}
		if p.left {
			return nil
		}
	}
}

// packet plays one packet of the stream.
func (o *opusPlayer) packet(packet []byte) error {
	if o.decoder != nil {
		return o.decode(packet)
	}
	length, err := audio.PacketDuration(packet)
	if err != nil {
		return fmt.Errorf("opus packet: %w", err)
	}
	if length <= o.skip { // of what is to be left out, only whole packets are: the rest is a few milliseconds
		o.skip -= length
		o.remember(packet, length)
		return nil
	}
	if err := o.merge.Add(packet); err != nil {
		if err := o.open(); err != nil {
			return err
		}
		return o.decode(packet)
	}
	o.remember(packet, length)
	if !o.merge.Full() {
		return nil
	}
	o.yieldPacket()
	return nil
}

// yieldPacket passes a whole packet on.
func (o *opusPlayer) yieldPacket() {
	o.skip, o.heard, o.part = 0, true, true
	o.left = !o.yield(providers.Sound{Packets: [][]byte{o.merge.Take(nil)}}, nil)
}

// remember keeps a packet and drops those that a decoder would not need.
func (o *opusPlayer) remember(packet []byte, length time.Duration) {
	need := int((o.merge.Waiting() + opusRoll + length - 1) / length)
	var old []byte
	for len(o.rolled) > need {
		old = o.rolled[0] // before Delete moves the others
		o.rolled = slices.Delete(o.rolled, 0, 1)
	}
	o.rolled = append(o.rolled, append(old[:0], packet...))
}

// open makes a decoder that has heard what was passed on last, and plays the
// packets that were waiting to be merged.
func (o *opusPlayer) open() error {
	var err error
	if o.decoder, err = audio.NewDecoder(opusRate); err != nil {
		return fmt.Errorf("open opus decoder: %w", err)
	}
	o.pcm = make([]int16, audio.MaxFrameSamples(opusRate))
	waiting := o.merge.Waiting()
	for i, packet := range o.rolled {
		var left time.Duration // from this packet on
		for _, p := range o.rolled[i:] {
			length, err := audio.PacketDuration(p)
			if err != nil {
				return fmt.Errorf("opus packet: %w", err)
			}
			left += length
		}
		if left <= waiting {
			if err := o.decode(packet); err != nil {
				return err
			}
			continue
		}
		if _, err := o.decoder.Decode(packet, o.pcm); err != nil {
			return fmt.Errorf("opus packet: %w", err)
		}
	}
	o.merge.Clear()
	o.rolled = nil
	return nil
}

// decode plays one packet as PCM.
func (o *opusPlayer) decode(packet []byte) error {
	n, err := o.decoder.Decode(packet, o.pcm)
	if err != nil {
		return fmt.Errorf("opus packet: %w", err)
	}
	reply := audio.Format{Rate: opusRate, Frame: o.skip}
	left := min(reply.Samples(), n)
	o.skip -= reply.Duration(left)
	o.Play(opusRate, o.pcm[left:n])
	return nil
}

// end plays what did not fill a packet.
func (o *opusPlayer) end() error {
	switch {
	case o.decoder != nil || o.merge.Waiting() == 0:
		return nil
	case !o.merge.Pad():
		return o.open()
	}
	o.yieldPacket()
	return nil
}
