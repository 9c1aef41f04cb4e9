package e2e

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"xiaozhi/internal/devicetest"
	"xiaozhi/internal/openaitest"
	"xiaozhi/internal/speechtest"
	"xiaozhi/internal/testall"
)

// tally adds up results of devices that speak at the same time.
type tally struct {
	mu            sync.Mutex
	errors, words int
	right, total  int
	lines         []string
}

func (c *tally) add(clip speechtest.Clip, heard string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, w := speechtest.WER(clip.Text, heard)
	c.errors, c.words, c.total = c.errors+e, c.words+w, c.total+1
	if e == 0 {
		c.right++
	} else {
		c.lines = append(c.lines, fmt.Sprintf("%s: said %q, heard %q", clip.Name, clip.Text, heard))
	}
}

// speak lets some devices speak the clips in auto mode, one reply after each.
// It returns how many turns each clip opened beyond the first.
func speak(ctx context.Context, t *testing.T, s *server, clips []speechtest.Clip, tools []devicetest.Tool, sum *tally) {
	t.Helper()
	const devices = 3
	var wg sync.WaitGroup
	for n := range devices {
		d := s.dial(ctx, t, devicetest.Options{
			DeviceID: fmt.Sprintf("24:6f:28:aa:20:%02x", n), OpenListen: true, Tools: tools, NoMCP: tools == nil,
			Limits: devicetest.Limits{Tolerance: 500 * time.Millisecond}, // three speakers and two recognisers on a small machine
		})
		if tools != nil {
			waitForTools(ctx, t, d)
		}
		wg.Go(func() {
			for i := n; i < len(clips); i += devices {
				if err := d.Say(ctx, clips[i].PCM()); err != nil {
					t.Errorf("%s: %v", clips[i].Name, err)
					return
				}
				if err := d.Silence(ctx, time.Second); err != nil {
					t.Errorf("%s: %v", clips[i].Name, err)
					return
				}
				r, err := d.WaitReply(ctx)
				if err != nil {
					t.Errorf("%s: no reply: %v", clips[i].Name, err)
					return
				}
				sum.add(clips[i], r.Heard)
			}
			if st := d.Stats(); st.Replies != (len(clips)-n+devices-1)/devices {
				t.Errorf("%d replies to %d prompts", st.Replies, (len(clips)-n+devices-1)/devices)
			}
		})
	}
	wg.Wait()
}

// TestDictation speaks human prompts over the wire: at most 30 % of the words
// are wrong, and one prompt is one turn.
func TestDictation(t *testing.T) {
	t.Parallel()
	ctx := limit(t)
	clips, err := speechtest.Prompts()
	if err != nil {
		t.Fatal(err)
	}
	most := testall.Pick(24, 6)
	short := clips[:0:0]
	for _, c := range clips {
		if c.Duration() < 4*time.Second && len(short) < most {
			short = append(short, c)
		}
	}
	cloud := startCloud(t)
	cloud.Reply(openaitest.Chat, openaitest.Text("Fine."))
	s := start(t, setup{env: cloudEnv(cloud)})
	s.waitReady(ctx, t)
	var sum tally
	speak(ctx, t, s, short, nil, &sum)
	t.Logf("dictation: %d of %d words wrong, %d of %d prompts exact", sum.errors, sum.words, sum.right, sum.total)
	if sum.total != len(short) || sum.errors*100 > sum.words*30 {
		t.Errorf("too many words are wrong:\n%s", strings.Join(sum.lines, "\n"))
	}
}

// everyNth gives every nth clip, the first one too.
func everyNth(clips []speechtest.Clip, n int) iter.Seq[speechtest.Clip] {
	return func(yield func(speechtest.Clip) bool) {
		for i := 0; i < len(clips) && yield(clips[i]); i += n {
		}
	}
}

// TestSpokenCommands makes tools of spoken commands, so that the recogniser's
// grammar knows them: at least 85 % are understood exactly.
func TestSpokenCommands(t *testing.T) {
	t.Parallel()
	ctx := limit(t)
	clips, err := speechtest.Commands()
	if err != nil {
		t.Fatal(err)
	}
	clips = slices.DeleteFunc(clips, func(c speechtest.Clip) bool { return c.Text == "goodbye" }) // it ends the conversation
	var tools []devicetest.Tool
	for _, c := range clips {
		tools = append(tools, devicetest.Tool{
			Name: "self." + strings.ReplaceAll(c.Text, " ", "_"), Description: c.Text,
			Call: func(context.Context, devicetest.Call) (devicetest.Result, error) {
				return devicetest.Result{Text: "true"}, nil
			},
		})
	}
	cloud := startCloud(t)
	cloud.Reply(openaitest.Chat, openaitest.Text("Fine."))
	s := start(t, setup{env: cloudEnv(cloud)})
	s.waitReady(ctx, t)
	if !testall.Running() { // all can be said, a few are
		clips = slices.Collect(everyNth(clips, 5))
	}
	var sum tally
	speak(ctx, t, s, clips, tools, &sum)
	t.Logf("commands: %d of %d exact", sum.right, sum.total)
	if sum.total != len(clips) || sum.right*100 < sum.total*85 {
		t.Errorf("too few commands are understood:\n%s", strings.Join(sum.lines, "\n"))
	}
}

// TestNoiseOpensNoTurn plays music, tones and silence to a listening server.
func TestNoiseOpensNoTurn(t *testing.T) {
	t.Parallel()
	ctx := limit(t)
	music, err := speechtest.Music()
	if err != nil {
		t.Fatal(err)
	}
	noise, err := speechtest.Noise()
	if err != nil {
		t.Fatal(err)
	}
	s := plainServer.use(t)
	s.waitReady(ctx, t)
	var wg sync.WaitGroup
	for n, clips := range [][]speechtest.Clip{music[:2], noise} {
		d := s.dial(ctx, t, devicetest.Options{DeviceID: fmt.Sprintf("24:6f:28:aa:30:%02x", n), OpenListen: true, NoMCP: true, Sound: devicetest.Sound{NoDTX: true}})
		wg.Go(func() {
			for _, c := range clips {
				if err := d.Say(ctx, c.PCM()); err != nil {
					t.Error(err)
					return
				}
				if err := d.Silence(ctx, 1200*time.Millisecond); err != nil {
					t.Error(err)
					return
				}
				for _, e := range d.Events() {
					if e.Kind == devicetest.KindReceived && (e.Type == "stt" || e.Type == "tts") {
						t.Errorf("%s opened a turn: %s", c.Name, e.Raw)
						return
					}
				}
			}
		})
	}
	wg.Wait()
}

// TestChineseIsExplained speaks Chinese to a server that has no recogniser for
// it: a spoken and logged explanation, no English garbage.
func TestChineseIsExplained(t *testing.T) {
	t.Parallel()
	ctx := limit(t)
	s := plainServer.use(t)
	s.waitReady(ctx, t)
	d := s.dial(ctx, t, devicetest.Options{OpenListen: true, NoMCP: true, Language: "zh-CN"})
	clip := clipNamed(t, speechtest.Mandarin, "yi-shi")
	if err := d.Say(ctx, clip.PCM()); err != nil {
		t.Fatal(err)
	}
	if err := d.Silence(ctx, time.Second); err != nil {
		t.Fatal(err)
	}
	r := reply(ctx, t, d)
	if r.Heard != "" || !strings.Contains(r.Text(), "中文") || r.Frames == 0 {
		t.Errorf("heard %q, said %q in %d frames", r.Heard, r.Text(), r.Frames)
	}
	if !strings.Contains(s.log.String(), "no Chinese recogniser is configured") {
		t.Error("the log does not say why")
	}
}
