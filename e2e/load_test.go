package e2e

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"reflect"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"xiaozhi/agent"
	"xiaozhi/audio"
	"xiaozhi/internal/devicetest"
	"xiaozhi/internal/openaitest"
	"xiaozhi/internal/testall"
)

// TestFiftyDevicesKeepTheirOwn lets fifty devices talk at once. Each speaks a
// tone of its own; the fake recogniser tells the device by its tone, the fake
// model by the text, and the fake voice answers with the device's tone. So
// what one device hears of another would be seen in the text and in the sound.
//
// It has the machine for itself: beside forty other tests fifty devices are served so slowly that connections time out.
func TestFiftyDevicesKeepTheirOwn(t *testing.T) {
	needRace(t)
	ctx := limit(t)
	s := start(t, instant(echoCloud(t)))
	s.waitReady(ctx, t)
	var wg sync.WaitGroup
	for i := range devicesAtOnce {
		wg.Go(func() {
			if err := talkAlone(ctx, t, s, i); err != nil {
				t.Errorf("device %d: %v", i, err)
			}
		})
	}
	wg.Wait()
}

// devicesAtOnce is the number of devices that talk at the same time.
const devicesAtOnce = 50

// toneOf is the tone of device i in Hz.
func toneOf(i int) float64 { return 300 + 40*float64(i) }

// rounds is how often each device speaks, and said the length of what it says.
var (
	rounds = testall.Pick[time.Duration](3, 1)
	said   = 960 * time.Millisecond
)

// TestTonesOfDevices: each device's tone is known behind the codec, in each round.
func TestTonesOfDevices(t *testing.T) {
	for i := range devicesAtOnce {
		dec, err := audio.NewDecoder(16000)
		if err != nil {
			t.Fatal(err)
		}
		for packets := range slices.Chunk(tone(t, toneOf(i), rounds*said), int(said/(60*time.Millisecond))) {
			var pcm []int16
			for _, packet := range packets {
				frame := make([]int16, 960)
				n, err := dec.Decode(packet, frame)
				if err != nil {
					t.Fatal(err)
				}
				pcm = append(pcm, frame[:n]...)
			}
			if got := deviceOf(pcm, 16000); got != i {
				t.Errorf("device %d is taken for %d", i, got)
			}
		}
	}
}

// deviceOf is the device whose tone is the strongest in this sound (Goertzel's
// way to one line of a spectrum), -1 if there is hardly any sound. Each eighth of a
// second counts for itself: where the sound stalled it goes on with another phase,
// and its parts could cancel each other out.
func deviceOf(pcm []int16, rate int) int {
	best, loudest := -1, 0.0
	for i := range devicesAtOnce {
		c := 2 * math.Cos(2*math.Pi*toneOf(i)/float64(rate))
		power := 0.0
		for part := range slices.Chunk(pcm, rate/8) {
			var a, b float64
			for _, s := range part {
				a, b = float64(s)+c*a-b, a
			}
			power += a*a + b*b - c*a*b
		}
		if power > loudest && len(pcm) > rate/4 {
			best, loudest = i, power
		}
	}
	return best
}

// TestToneAfterAStall: a tone is known although its halves have opposite phases.
func TestToneAfterAStall(t *testing.T) {
	for i := range devicesAtOnce {
		first := samples(openaitest.Tone(24000, toneOf(i), 600*time.Millisecond))
		second := slices.Clone(first)
		for k := range second {
			second[k] = -second[k]
		}
		skip := int(math.Round(24000 / toneOf(i) * math.Round(0.06*toneOf(i)))) // whole periods
		if got := deviceOf(slices.Concat(first[:len(first)-skip], second[:len(second)-skip]), 24000); got != i {
			t.Errorf("device %d is taken for %d", i, got)
		}
	}
}

// echoCloud hears, thinks and speaks as TestFiftyDevicesKeepTheirOwn says.
func echoCloud(t *testing.T) *openaitest.Server {
	t.Helper()
	cloud := startCloud(t)
	marker := regexp.MustCompile(`marker (\d+)`)
	last := func(text string) int {
		found := marker.FindAllStringSubmatch(text, -1)
		if len(found) == 0 {
			return -1
		}
		i, _ := strconv.Atoi(found[len(found)-1][1])
		return i
	}
	cloud.Handle(openaitest.Transcribe, func(r *openaitest.Request) openaitest.Reply {
		i := deviceOf(samples(r.File[min(44, len(r.File)):]), 16000)
		return openaitest.JSON(http.StatusOK, fmt.Sprintf(`{"text":"This is marker %d speaking"}`, i))
	})
	cloud.Handle(openaitest.Chat, func(r *openaitest.Request) openaitest.Reply {
		i := last(string(r.Body))
		return openaitest.Text("First I say ", fmt.Sprintf("marker %d. Then ", i), fmt.Sprintf("again marker %d.", i))
	})
	cloud.Handle(openaitest.Speak, func(r *openaitest.Request) openaitest.Reply {
		i := last(string(r.Body))
		return openaitest.Sound("audio/pcm", openaitest.Tone(24000, toneOf(i), 590*time.Millisecond), 4800) // and its soft end
	})
	return cloud
}

// talkAlone is one device's part.
func talkAlone(ctx context.Context, t *testing.T, s *server, i int) error {
	t.Helper()
	d, err := devicetest.Dial(ctx, devicetest.Options{
		URL: s.ws, DeviceID: fmt.Sprintf("24:6f:28:01:00:%02x", i), Mode: devicetest.Manual,
		Tools: devicetest.NewBoard().Tools(), Limits: devicetest.Limits{Tolerance: 2 * time.Second}, // fifty at once, with the race detector
	})
	if err != nil {
		return err
	}
	defer d.Close()
	for packets := range slices.Chunk(tone(t, toneOf(i), rounds*said), int(said/(60*time.Millisecond))) {
		err := errors.Join(d.ListenStart(devicetest.Manual), d.SendFrames(packets...), d.ListenStop())
		if err != nil {
			return err
		}
		r, err := d.WaitReply(ctx)
		if err != nil {
			return fmt.Errorf("no reply: %w", err)
		}
		if want := fmt.Sprintf("This is marker %d speaking", i); r.Heard != want {
			return fmt.Errorf("was understood as %q, want %q", r.Heard, want)
		}
		if want := fmt.Sprintf("First I say marker %d. Then again marker %d.", i, i); r.Text() != want {
			return fmt.Errorf("reads %q, want %q", r.Text(), want)
		}
		if r.Frames < 20 || r.Frames > 24 { // where synthesis stalls, a frame lets the sound fade
			return fmt.Errorf("%d frames came, want 20", r.Frames)
		}
		if got := deviceOf(r.PCM, r.Rate); got != i {
			return fmt.Errorf("hears the sound of device %d", got)
		}
	}
	for _, v := range d.Violations() {
		if v.Rule != devicetest.RuleFrameDropped { // this process was too slow to take it
			t.Errorf("device %d: %s", i, v)
		}
	}
	return nil
}

// instant is a server whose three engines are the fake cloud, which answers at once.
func instant(cloud *openaitest.Server) setup {
	return setup{
		race: true, profiles: true,
		env: []string{"XIAOZHI_LLM=cloud", "XIAOZHI_LOG__LEVEL=info"},
		config: "server: {max_devices: 5000}\nasr: [cloud]\nllm: [cloud]\ntts: [cloud]\n" +
			"providers: {cloud: {type: openai, base_url: \"" + cloud.URL() + "\", api_key: k, model: m}}\n",
	}
}

// tone is a sine as a device's packets.
func tone(t *testing.T, hz float64, length time.Duration) [][]byte {
	t.Helper()
	enc, err := audio.NewEncoderOf(audio.Recognition, audio.Device())
	if err != nil {
		t.Fatal(err)
	}
	pcm := samples(openaitest.Tone(16000, hz, length))
	var packets [][]byte
	for ; len(pcm) >= 960; pcm = pcm[960:] {
		packet := make([]byte, 1500)
		n, err := enc.Encode(pcm[:960], packet)
		if err != nil {
			t.Fatal(err)
		}
		packets = append(packets, packet[:n])
	}
	return packets
}

// samples reads 16 bit little endian PCM.
func samples(raw []byte) []int16 {
	pcm := make([]int16, len(raw)/2)
	for i := range pcm {
		pcm[i] = int16(uint16(raw[2*i]) | uint16(raw[2*i+1])<<8)
	}
	return pcm
}

// TestDropsLeaveNothingBehind connects 500 times or, in make test, 120 times, and drops the connection
// before the hello, after it, while the model thinks, or in the middle of the
// reply. Then no more goroutines may live than after a single connection.
func TestDropsLeaveNothingBehind(t *testing.T) {
	t.Parallel()
	needRace(t)
	const workers = 10
	cycles := testall.Pick(500, 120)
	one := start(t, instant(slowCloud(t)))
	one.waitReady(limit(t), t)
	dropAll(t, one, 1, 1)
	base := len(one.goroutines(limit(t), t))

	s := start(t, instant(slowCloud(t)))
	s.waitReady(limit(t), t)
	dropAll(t, s, cycles, workers)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	got := s.atMost(ctx, t, base+5)
	t.Logf("%d goroutines after %d cycles, %d after one connection", len(got), cycles, base)
}

// slowCloud answers so slowly that every stage can be hit.
func slowCloud(t *testing.T) *openaitest.Server {
	t.Helper()
	cloud := startCloud(t)
	cloud.Handle(openaitest.Chat, func(*openaitest.Request) openaitest.Reply {
		return openaitest.TextEvery(20*time.Millisecond, "This is one ", "sentence. ", "Here is another ", "sentence of it.")
	})
	return cloud
}

// dropAll connects n times, some at a time, and waits until the server has let go of all.
func dropAll(t *testing.T, s *server, n, workers int) {
	t.Helper()
	ctx := limit(t)
	left := func() int { return strings.Count(s.log.String(), `msg="device left"`) }
	before := left()
	todo := make(chan int, n)
	for i := range n {
		todo <- i
	}
	close(todo)
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for i := range todo {
				if err := drop(ctx, s, i); err != nil {
					t.Errorf("cycle %d: %v", i, err)
				}
			}
		})
	}
	wg.Wait()
	for left() < before+n {
		if ctx.Err() != nil {
			t.Fatalf("%d of %d connections have ended", left()-before, n)
		}
		time.Sleep(20 * time.Millisecond) // another process
	}
	time.Sleep(300 * time.Millisecond) // what follows the last line of the log
}

// drop is one cycle; i says where it is dropped.
func drop(ctx context.Context, s *server, i int) error {
	id := fmt.Sprintf("24:6f:28:02:00:%02x", i%200) // some come again
	if i%4 == 1 {
		return dropBeforeHello(ctx, s, id)
	}
	d, err := devicetest.Dial(ctx, devicetest.Options{URL: s.ws, DeviceID: id, Sound: devicetest.Sound{NoDecode: true}, Tools: devicetest.NewBoard().Tools()})
	if err != nil {
		return err
	}
	defer d.Close()
	if i%4 == 2 { // soon after the hello: the tools are being listed
		time.Sleep(rand.N(20 * time.Millisecond))
		d.CloseTCP()
		return nil
	}
	if err := d.Detect("tell me a story"); err != nil {
		return err
	}
	if i%4 == 3 { // while the model thinks, or when the reply begins
		time.Sleep(rand.N(200 * time.Millisecond))
		d.CloseTCP()
		return nil
	}
	_, err = d.Wait(ctx, func(e devicetest.Event) bool { return e.Kind == devicetest.KindFrame })
	time.Sleep(rand.N(200 * time.Millisecond))
	d.CloseTCP()
	return err
}

// dropBeforeHello upgrades and goes away.
func dropBeforeHello(ctx context.Context, s *server, id string) error {
	host := strings.TrimSuffix(strings.TrimPrefix(s.ws, "ws://"), "/xiaozhi/v1/")
	c, err := new(net.Dialer).DialContext(ctx, "tcp", host)
	if err != nil {
		return err
	}
	defer c.Close()
	_, err = fmt.Fprintf(c, "GET /xiaozhi/v1/ HTTP/1.1\r\nHost: %s\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"+
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nDevice-Id: %s\r\n\r\n", host, id)
	if err != nil {
		return err
	}
	head := make([]byte, 12)
	if _, err := io.ReadFull(c, head); err != nil {
		return err
	}
	if string(head) != "HTTP/1.1 101" {
		return fmt.Errorf("the server answered %q", head)
	}
	return nil
}

var profilesLine = regexp.MustCompile(`msg="profiles are served" addr=(\S+)`)

// goroutines gives the stacks of the goroutines of a server that serves profiles,
// less those that hold idle connections to the cloud and those that still
// synthesise phrases for later.
func (s *server) goroutines(ctx context.Context, t *testing.T) []string {
	t.Helper()
	addr := profilesLine.FindStringSubmatch(s.log.String())
	if addr == nil {
		t.Fatal("the server serves no profiles")
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr[1]+"/debug/pprof/goroutine?debug=2", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	dump, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	var stacks []string
	for stack := range strings.SplitSeq(string(dump), "\n\n") {
		stack = strings.TrimSpace(stack)
		if strings.HasPrefix(stack, "goroutine ") && !strings.Contains(stack, "net/http.(*persistConn)") {
			stacks = append(stacks, stack)
		}
	}
	if len(stacks) < 3 {
		t.Fatalf("the dump holds %d goroutines:\n%s", len(stacks), dump)
	}
	return withoutRendering(stacks)
}

// atMost waits until no more goroutines than that are left in a server, and gives
// those that are.
func (s *server) atMost(ctx context.Context, t *testing.T, most int) []string {
	t.Helper()
	for {
		stacks := s.goroutines(ctx, t)
		if len(stacks) <= most {
			return stacks
		}
		select {
		case <-time.After(100 * time.Millisecond): // another process
		case <-ctx.Done():
			t.Errorf("%d goroutines, want %d at most:\n%s", len(stacks), most, strings.Join(stacks, "\n\n"))
			return stacks
		}
	}
}

var (
	goroutineID = regexp.MustCompile(`^goroutine (\d+) `)
	createdIn   = regexp.MustCompile(`created by .* in goroutine (\d+)`)
	// renderer is the function that synthesises phrases for later.
	renderer = runtime.FuncForPC(reflect.ValueOf(agent.Prewarm).Pointer()).Name()
)

// withoutRendering leaves out the goroutine that synthesises phrases for later,
// and those that it or they have started: a server does that for some seconds
// after it is ready, longer on a busy machine.
func withoutRendering(stacks []string) []string {
	rendering := map[string]bool{}
	for grown := true; grown; {
		grown = false
		for _, stack := range stacks {
			id := goroutineID.FindStringSubmatch(stack)
			if id == nil || rendering[id[1]] {
				continue
			}
			parent := createdIn.FindStringSubmatch(stack)
			if strings.Contains(stack, renderer+"(") || parent != nil && rendering[parent[1]] {
				rendering[id[1]], grown = true, true
			}
		}
	}
	return slices.DeleteFunc(stacks, func(stack string) bool {
		id := goroutineID.FindStringSubmatch(stack)
		return id != nil && rendering[id[1]]
	})
}
