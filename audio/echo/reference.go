package echo

// reference holds the sound that the loudspeaker was given, as one stream of
// samples, and the places of the timestamps in it.
type reference struct {
	ring    [memorySize]int16
	written int64 // samples so far; the next one's place
	begin   int64 // the stretch that is being played begins here: before it was silence
	fence   int64 // where the next stretch begins, which is not played yet; negative: no stretch follows
	packets [packetCount]stampedPacket
	next    int
}

const (
	memorySize  = 32768 // samples: 2 s, from the sending of a packet until it is heard no more
	packetCount = 128   // timestamps that are remembered: longer than the ring, down to packets of 20 ms
)

// stampedPacket is a timestamp and the place in the stream where its packet begins.
type stampedPacket struct {
	stamp uint32
	from  int64
}

// add appends a packet.
func (t *reference) add(stamp uint32, pcm []int16) {
	if stamp != 0 {
		t.packets[t.next] = stampedPacket{stamp, t.written}
		t.next = (t.next + 1) % packetCount
	}
	for len(pcm) > 0 {
		n := copy(t.ring[t.written%memorySize:], pcm)
		t.written += int64(n)
		pcm = pcm[n:]
	}
}

// find returns the place of a packet that is not forgotten; the newest, if a
// timestamp was given twice.
func (t *reference) find(stamp uint32) (int64, bool) {
	if stamp == 0 {
		return 0, false
	}
	for i := range t.packets {
		p := t.packets[(t.next-1-i+2*packetCount)%packetCount]
		if p.stamp == stamp {
			return p.from, p.from > t.written-memorySize
		}
	}
	return 0, false
}

// end returns the place where the stretch that is being played ends so far.
func (t *reference) end() int64 {
	if t.fence >= 0 {
		return t.fence
	}
	return t.written
}

// enter begins the new stretch, if there is one and the place lies in it. It
// reports whether there is anything to be played from that place on.
func (t *reference) enter(place int64) bool {
	if t.fence >= 0 && place >= t.fence {
		t.begin, t.fence = t.fence, -1
	}
	return place < t.end()
}

// read writes the samples from a place on, and silence where there is no sound.
func (t *reference) read(dst []float32, from int64) {
	first, end := max(t.begin, t.written-memorySize), t.end()
	for i := range dst {
		dst[i] = 0
		if at := from + int64(i); at >= first && at < end {
			dst[i] = float32(t.ring[at%memorySize])
		}
	}
}

// reset forgets all.
func (t *reference) reset() {
	t.begin, t.fence = t.written, -1
	clear(t.packets[:])
}
