package main

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"xiaozhi/internal/devicetest"
	"xiaozhi/internal/openaitest"
)

// clock matches what a prompt holds of the time: the present one, and how much of a cut story was heard.
var clock = regexp.MustCompile(`And so the story [^"]*…|\b\d{1,2}:\d\d\b|\d{4}年\d+月\d+日|\d{4}-\d\d-\d\d|(Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day, \d+ \w+ \d{4}`)

// story is an answer of three sentences; endless one that goes on until it is cut.
var (
	story   = says("Once there was ", "a small robot. It lived ", "in a box. ", "One day it spoke.")
	endless = says(strings.Repeat("And so "+goesOn+" and on, and then it goes on. ", 12))
)

// kitchen is a board with one more tool that fails and one that takes long.
func kitchen() []devicetest.Tool {
	gate := devicetest.Tool{
		Name: "self.gate.open", Description: "Opens the gate.",
		Call: func(context.Context, devicetest.Call) (devicetest.Result, error) {
			return devicetest.Result{}, errors.New("the gate is stuck")
		},
	}
	oven := devicetest.Tool{
		Name: "self.oven.preheat", Description: "Heats the oven, and tells when it is hot.",
		Call: func(ctx context.Context, _ devicetest.Call) (devicetest.Result, error) {
			select {
			case <-time.After(time.Second):
			case <-ctx.Done():
			}
			return devicetest.Result{Text: "The oven is hot."}, nil
		},
	}
	return append(devicetest.NewBoard().Tools(), gate, oven)
}

// slowTool is a query that takes three seconds.
func slowTool() devicetest.Tool {
	return devicetest.Tool{
		Name: "self.meter.get_reading", Description: "Reads the meter.",
		Call: func(ctx context.Context, _ devicetest.Call) (devicetest.Result, error) {
			select {
			case <-time.After(3 * time.Second):
			case <-ctx.Done():
			}
			return devicetest.Result{Text: "seventeen"}, nil
		},
	}
}

// wave is a WAV file of a tone.
func wave(d time.Duration) string {
	const rate = 16000
	n := int(d.Seconds() * rate)
	out := []byte("RIFF\x00\x00\x00\x00WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00\x80\x3e\x00\x00\x00\x7d\x00\x00\x02\x00\x10\x00data")
	out = binary.LittleEndian.AppendUint32(out, uint32(2*n))
	for i := range n {
		out = binary.LittleEndian.AppendUint16(out, uint16(int16(9000*math.Sin(2*math.Pi*330*float64(i)/rate))))
	}
	binary.LittleEndian.PutUint32(out[4:], uint32(len(out)-8))
	return string(out)
}

// device is a talk with one device.
func device(name string, o devicetest.Options, book map[string]answer, play func(a *actor) error) talk {
	return talk{name: name, book: book, play: func(s *stage) error {
		a, err := s.dial("device", o)
		if err != nil {
			return err
		}
		return play(a)
	}}
}

// loosely compares only how long replies are.
func (t talk) loosely() talk {
	t.loose = true
	return t
}

// with gives a talk settings.
func (t talk) with(config string) talk {
	t.config = config
	return t
}

func typing(texts ...string) func(*actor) error {
	return func(a *actor) error { return a.typed(texts...) }
}

func saying(texts ...string) func(*actor) error {
	return func(a *actor) error { return a.spoken(texts...) }
}

// named makes a talk anew: its devices have a state.
func named(name string) talk {
	all := talks()
	return all[slices.IndexFunc(all, func(t talk) bool { return t.name == name })]
}

// talks is the fixed set. What was mended on purpose since the first build that
// it compares with is left out: an unknown type on /mcp/ws, lists of timers
// without a model.
func talks() []talk {
	type (
		options = devicetest.Options
		book    = map[string]answer
	)
	failure := openaitest.Failure(500, "no brain")
	late := func(d time.Duration, pieces ...string) answer {
		reply := openaitest.Text(pieces...).After(d)
		return answer{reply: &reply}
	}
	broken := openaitest.Text("This is the beginning. ", "And this").Then(openaitest.Piece{Cut: true})
	return []talk{
		device("typed", options{}, book{"tell me a story": story}, typing("tell me a story", "what else is there to say")),
		device("typed, Chinese", options{Language: "zh-CN"}, book{"讲个故事": says("从前有一个小机器人。", "它住在盒子里。")}, typing("请给我讲个故事吧", "你还想说点别的什么吗")),
		device("spoken, auto", options{}, book{"tell me a story": story}, saying("tell me a story", "what else is there to say")),
		device("spoken, realtime", options{Mode: devicetest.Realtime}, book{"tell me a story": story}, saying("tell me a story", "what else is there to say")),
		device("spoken, manual", options{Mode: devicetest.Manual}, book{"tell me a story": story}, func(a *actor) error {
			for _, words := range []string{"tell me a story", "what else is there to say"} {
				if err := a.ListenStart(devicetest.Manual); err != nil {
					return err
				}
				if err := errors.Join(a.speaks(words), a.ListenStop(), a.answered()); err != nil {
					return err
				}
			}
			return nil
		}),
		device("nothing understood", options{}, nil, func(a *actor) error {
			if err := a.speaks(""); err != nil {
				return err
			}
			if err := a.answered(); err != nil {
				return err
			}
			return a.spoken("what else is there to say")
		}),
		device("recognition fails", options{}, nil, saying("FAIL")),
		device("model fails", options{}, book{"nothing works": {reply: &failure}}, typing("does it mean that nothing works", "what else is there to say")),
		device("voice fails", options{}, book{"nothing works": says("This is mute. ", "This is not.")}, typing("does it mean that nothing works")),
		device("wake word", options{OpenListen: true, Wake: devicetest.Wake{Word: "hi xiaozhi", Frames: 33}}, nil, func(a *actor) error {
			if err := a.answered(); err != nil {
				return err
			}
			return a.spoken("what else is there to say")
		}),
		device("wake word in a reply", options{}, book{"tell me a story": endless}, func(a *actor) error {
			if err := errors.Join(a.Detect("tell me a story"), a.begun(1800*time.Millisecond)); err != nil {
				return err
			}
			if err := errors.Join(a.Abort(devicetest.WakeWord), a.answered()); err != nil {
				return err
			}
			a.s.pause(time.Second) // it listens by itself once its queue is played
			return a.typed("what else is there to say")
		}),
		device("abort", options{}, book{"tell me a story": endless}, func(a *actor) error {
			if err := errors.Join(a.Detect("tell me a story"), a.begun(1800*time.Millisecond), a.Abort(""), a.answered()); err != nil {
				return err
			}
			return a.typed("what else is there to say")
		}),
		device("abort in silence", options{}, nil, func(a *actor) error {
			if err := a.Abort(""); err != nil {
				return err
			}
			a.s.pause(300 * time.Millisecond)
			return a.typed("what else is there to say")
		}),
		device("listen start in a reply", options{}, book{"tell me a story": endless}, func(a *actor) error {
			if err := errors.Join(a.Detect("tell me a story"), a.begun(1800*time.Millisecond), a.ListenStart(devicetest.Auto), a.answered()); err != nil {
				return err
			}
			return a.spoken("what else is there to say")
		}),
		device("typed into a reply", options{}, book{"tell me a story": endless}, func(a *actor) error {
			if err := errors.Join(a.Detect("tell me a story"), a.begun(1800*time.Millisecond), a.Detect("what else is there to say"), a.answered()); err != nil {
				return err
			}
			return a.answered()
		}),
		device("barge-in", options{Mode: devicetest.Realtime}, book{"tell me a story": endless}, func(a *actor) error {
			if err := errors.Join(a.Detect("tell me a story"), a.begun(1200*time.Millisecond), a.speaks("please talk about the weather instead"), a.answered()); err != nil {
				return err
			}
			return a.answered()
		}),
		device("stop word", options{Mode: devicetest.Realtime}, book{"tell me a story": endless}, func(a *actor) error {
			if err := errors.Join(a.Detect("tell me a story"), a.begun(1200*time.Millisecond), a.speaks("stop"), a.answered()); err != nil {
				return err
			}
			return a.typed("what else is there to say")
		}),
		device("backchannel", options{Mode: devicetest.Realtime}, book{"tell me a story": says("And so " + goesOn + " and on, and then it goes on, and in the end it is over.")}, func(a *actor) error {
			if err := errors.Join(a.Detect("tell me a story"), a.begun(1200*time.Millisecond), a.speaks("uh huh"), a.answered()); err != nil {
				return err
			}
			return a.typed("what else is there to say")
		}).loosely(), // it pauses where the voice came
		device("pauses while speaking", options{}, nil, func(a *actor) error {
			if err := errors.Join(a.speaks("what else is there to say", 450*time.Millisecond, 300*time.Millisecond), a.answered()); err != nil {
				return err
			}
			return a.spoken("and what is there to hear")
		}),
		device("noise over a reply", options{Mode: devicetest.Realtime}, book{"tell me a story": says("And so " + goesOn + " and on, and then it goes on, and in the end it is over.")}, func(a *actor) error {
			if err := errors.Join(a.Detect("tell me a story"), a.begun(1200*time.Millisecond), a.speaks(""), a.answered()); err != nil {
				return err
			}
			return a.typed("what else is there to say")
		}).loosely(), // it pauses where the voice came
		device("more while it thinks", options{}, book{"in the end": late(2*time.Second, "That was all of it.")}, func(a *actor) error {
			return errors.Join(a.speaks("what comes in the end", 900*time.Millisecond), a.answered())
		}),
		device("typed twice", options{}, book{"at first": late(time.Second, "The first."), "after that": late(time.Second, "The second.")}, func(a *actor) error {
			if err := a.Detect("what comes at first"); err != nil {
				return err
			}
			a.s.pause(400 * time.Millisecond)
			return a.typed("what comes after that")
		}),
		device("slow model", options{}, book{"in the end": late(6*time.Second, "That was all of it.")}, typing("what comes in the end")).with("voice: {slow_notice: 2500ms}\n"),
		device("slow tool", options{Tools: []devicetest.Tool{slowTool()}}, book{"measure": calls("self.meter.get_reading", "{}")}, typing("please measure it")),
		device("model breaks off", options{}, book{"broken": {reply: &broken}}, typing("is it all broken", "what else is there to say")),
		device("silence, manual", options{Mode: devicetest.Manual}, nil, func(a *actor) error {
			if err := a.ListenStart(devicetest.Manual); err != nil {
				return err
			}
			if err := errors.Join(a.Silence(a.s.ctx, time.Second), a.ListenStop(), a.answered()); err != nil {
				return err
			}
			return a.typed("what else is there to say")
		}),
		device("button in a reply, manual", options{Mode: devicetest.Manual}, book{"tell me a story": endless}, func(a *actor) error {
			if err := errors.Join(a.Detect("tell me a story"), a.begun(1800*time.Millisecond), a.ListenStart(devicetest.Manual), a.answered()); err != nil {
				return err
			}
			return errors.Join(a.speaks("what else is there to say"), a.ListenStop(), a.answered())
		}),
		device("conversation's own tools", options{}, book{
			"a poet": calls("change_role", `{"role":"story"}`), "forget all": calls("forget_conversation", "{}"), "be off": calls("exit", `{"say_goodbye":true}`),
		}, func(a *actor) error {
			return errors.Join(a.typed("what is new today", "please talk like a poet", "now forget all of that", "what else is there to say", "you may be off now"), a.gone())
		}),
		device("tools", options{Tools: kitchen()}, book{
			"light the room": calls("self.lamp.turn_on", "{}"), "gloomy": calls("self.lamp.get_state", "{}"),
			"louder": calls("self.audio_speaker.set_volume", `{"volume":88}`), "much too loud": calls("self.audio_speaker.set_volume", `{"volume":400}`),
			"let him in": calls("self.gate.open", "{}"), "nonsense": calls("no.such.tool", "{}"),
			"both of them": {calls: []call{{"self.lamp.turn_off", "{}"}, {"self.get_device_status", "{}"}}},
		}, typing("please light the room", "is it gloomy in here", "could it be louder", "this is much too loud for me", "please let him in now", "do some nonsense", "do both of them")),
		device("offline commands", options{Tools: kitchen()}, nil, typing("turn on the lamp", "set the volume to 30", "what time is it", "what is the volume")),
		device("tool that takes long", options{Tools: kitchen()}, book{"roast": calls("self.oven.preheat", "{}")}, func(a *actor) error {
			if err := a.typed("i want to roast something"); err != nil {
				return err
			}
			return a.answered()
		}).with("tools: {jobs: [self.oven.preheat]}\n"),
		device("tool that wants a yes", options{Tools: kitchen()}, book{"light the room": calls("self.lamp.turn_on", "{}")},
			typing("please light the room", "yes", "please light the room", "no")).with("tools: {confirm: [self.lamp.turn_on]}\n"),
		device("vision", options{Tools: kitchen()}, book{"my desk": calls("self.camera.take_photo", `{"question":"What is there?"}`), "What is there": says("A red disc.")},
			typing("please describe my desk")),
		device("things", options{Profile: devicetest.OldIoT162, Things: things(), Quirks: devicetest.Quirks{StatesAtOnce: true}},
			book{"light the room": calls("self.lamp.turn_on", "{}"), "dim it": calls("self.lamp.set_level", `{"level":"40"}`)},
			typing("please light the room", "please dim it a little", "set the volume to 50")),
		device("framing 2", options{Protocol: 2}, book{"tell me a story": story}, saying("tell me a story")),
		device("framing 3, frames of 20 ms", options{Protocol: 3, Sound: devicetest.Sound{FrameMs: 20}}, book{"tell me a story": story}, saying("tell me a story")),
		device("echo cancelling", options{Mode: devicetest.Realtime, Protocol: 2, Sound: devicetest.Sound{AEC: true}}, book{"tell me a story": story}, saying("tell me a story", "what else is there to say")),
		device("desktop", options{Profile: devicetest.PyXiaozhi, Tools: kitchen()}, book{"light the room": calls("self.lamp.turn_on", "{}")}, typing("please light the room", "what else is there to say")),
		device("browser", options{Profile: devicetest.Browser, Mode: devicetest.Manual}, book{"tell me a story": story}, typing("tell me a story", "what else is there to say")),
		device("older firmware", options{Profile: devicetest.Firmware222Minus, NoMCP: true}, nil, saying("what else is there to say")),
		device("thoughts and marks", options{}, book{"think": says("<think>Let me see.</think>", "😀 **Well**, `this` is [it](http://a.b). ", "- one\n- two\n", "It costs 3.50 € on 5/6.")}, typing("please think about it")),
		device("timer", options{}, book{"an egg": calls("set_timer", `{"seconds":4}`)}, func(a *actor) error {
			if err := a.typed("please boil an egg for me"); err != nil {
				return err
			}
			return errors.Join(a.answered(), a.typed("what else is there to say"))
		}),
		device("goodbye", options{}, nil, func(a *actor) error {
			if err := a.typed("goodbye"); err != nil {
				return err
			}
			return a.gone()
		}),
		device("idle", options{}, nil, func(a *actor) error { return a.gone() }).with("voice: {idle_close: 5s}\n"),
		device("small brain", options{Tools: kitchen()}, nil, typing(
			"what time is it", "what is the date today", "set the volume to thirty five", "turn the volume up", "mute", "how loud are you", "set the brightness to forty", "make the screen brighter",
			"how much battery is left", "turn on the lamp", "take a photo", "what can you do", "what's your name", "tell me about the french revolution", "thank you very much")).with("llm: [rules]\n"),
		device("small brain, Chinese", options{Language: "zh-CN", Tools: kitchen()}, nil, typing(
			"现在几点了", "今天几号", "今天星期几", "把音量调到百分之三十", "声音大一点", "静音", "现在音量是多少", "亮度调到八十", "还有多少电", "打开灯", "关灯", "拍张照片", "你会做什么", "你叫什么名字", "给我讲讲法国大革命", "谢谢")).with("llm: [rules]\n"),
		device("small brain's timers", options{}, nil, typing(
			"list my timers", "set a timer for five minutes", "remind me in half an hour", "set a timer for ten minutes", "how long is left", "cancel all timers", "next song", "pause the music",
			"计时十分钟", "三十分钟后提醒我喝水", "取消所有提醒", "下一首", "forget what we said", "never mind")).with("llm: [rules]\n"),
		device("offline voice", options{}, nil, typing("what can you do", "你会做什么")).with("llm: [rules]\ntts: [local]\n").loosely(),
		localTools(),
		music(), reconnect(), signalled(), ota(), gatewayHTTP(), gatewaySocket(), gatewayDevice(), badMessages(), badOpenings(), light("light", false), light("light, enveloped", true),
	}
}

func things() []devicetest.Thing {
	speaker, _ := devicetest.Speaker()
	return []devicetest.Thing{devicetest.Lamp(), speaker}
}

// gone waits until the server has ended the connection.
func (a *actor) gone() error {
	select {
	case <-a.Done():
		return nil
	case <-time.After(20 * time.Second):
		return errors.New("the connection did not end")
	}
}

func music() talk {
	t := device("music", devicetest.Options{}, map[string]answer{"a tune": calls("play_music", "{}")}, func(a *actor) error {
		if err := a.typed("i could do with a tune"); err != nil {
			return err
		}
		a.s.pause(4 * time.Second) // the music begins a second after the reply
		if err := errors.Join(a.Detect("stop the music"), a.answered(), a.answered()); err != nil {
			return err
		}
		return a.typed("what else is there to say")
	})
	t.files = map[string]string{"data/music/A Song.wav": wave(20 * time.Second)}
	return t
}

// reconnect talks, comes again, and once more while the connection before is open.
func reconnect() talk {
	return talk{name: "reconnect", book: map[string]answer{"tell me a story": endless}, play: func(s *stage) error {
		o := devicetest.Options{Tools: kitchen()}
		for i, name := range []string{"first", "second", "third", "fourth", "fifth"} {
			a, err := s.dial(name, o)
			if err != nil {
				return err
			}
			if err := a.typed("remember the number " + name); err != nil {
				return err
			}
			switch i {
			case 0:
				a.Close()
			case 3: // in the middle of a reply
				if err := errors.Join(a.Detect("tell me a story"), a.begun(1800*time.Millisecond)); err != nil {
					return err
				}
				a.Close()
			}
		}
		return nil
	}}
}

// signalled ends the server while one device listens to a reply and one is idle.
func signalled() talk {
	return talk{name: "server ends", book: map[string]answer{"tell me a story": story}, play: func(s *stage) error {
		idle, err := s.dial("idle", devicetest.Options{DeviceID: "24:6f:28:aa:10:03", Mode: devicetest.Manual})
		if err != nil {
			return err
		}
		listens, err := s.dial("listens", devicetest.Options{DeviceID: "24:6f:28:aa:10:04"})
		if err != nil {
			return err
		}
		speaks, err := s.dial("speaks", devicetest.Options{})
		if err != nil {
			return err
		}
		if err := errors.Join(speaks.Detect("tell me a story"), speaks.begun(300*time.Millisecond)); err != nil {
			return err
		}
		s.server.signal()
		return errors.Join(idle.gone(), listens.gone(), speaks.gone())
	}, unlogged: []string{"INFO hanging up:", "INFO turn:"}} // the farewell is a turn by now, with the lines of one
}

func ota() talk {
	return talk{name: "ota", config: "auth: {enabled: true, token: secret-token-of-all}\n", play: func(s *stage) error {
		const id = "Device-Id: 24:6f:28:aa:10:02"
		for _, r := range [][]string{
			{"GET", "/xiaozhi/ota/", ""},
			{"GET", "/xiaozhi/ota", ""},
			{"POST", "/xiaozhi/ota/", "{}", id},
			{"POST", "/xiaozhi/ota", "{}", id},
			{"POST", "/xiaozhi/ota/", `{"application":{"version":"2.4.2"},"board":{"type":"x"},"language":"en-US"}`, id, "Client-Id: c", "User-Agent: x/1"},
			{"POST", "/xiaozhi/ota/", "not JSON", id},
			{"POST", "/xiaozhi/ota/", "{}"},
			{"POST", "/xiaozhi/ota/", "{}", "Device-Id: <x>"},
			{"PUT", "/xiaozhi/ota/", "{}", id},
			{"POST", "/xiaozhi/ota/activate", "{}", id},
			{"GET", "/xiaozhi/v1/", ""},
			{"GET", "/", ""},
			{"GET", "/nowhere", ""},
			{"GET", "/healthz", ""},
			{"GET", "/readyz", ""},
			{"POST", "/mcp/vision/explain", "", id},
			{"GET", "/mcp/vision/explain", ""},
			{"GET", "/api/devices", ""},
		} {
			if _, err := s.http(r[0], r[1], r[2], r[3:]...); err != nil {
				return err
			}
		}
		return s.socket("/xiaozhi/v1/", `{"type":"hello"}`)
	}}
}

// rpc is a JSON-RPC request.
func rpc(id int, method, params string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, id, method, params)
}

// requests ask the gateway for all that it offers, and for what it does not.
func requests() []string {
	return []string{
		rpc(1, "initialize", `{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"w","version":"1"}}`),
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
		rpc(2, "ping", "{}"), rpc(3, "tools/list", "{}"), rpc(4, "resources/list", "{}"), rpc(5, "resources/templates/list", "{}"), rpc(6, "prompts/list", "{}"),
		rpc(7, "tools/call", `{"name":"util.hash","arguments":{"data":"Hello World"}}`),
		rpc(8, "tools/call", `{"name":"no.such","arguments":{}}`), rpc(10, "no/such", "{}"), rpc(11, "resources/read", `{"uri":"xiaozhi://nowhere"}`),
		rpc(12, "prompts/get", `{"name":"nothing"}`), rpc(13, "tools/call", `{"name":"timer.list_timers","arguments":{}}`), `{"jsonrpc":"1.0","id":1}`, `[`, `[]`, `7`,
	}
}

func gatewayHTTP() talk {
	return talk{name: "gateway over HTTP", play: func(s *stage) error {
		headers := []string{"Content-Type: application/json", "Accept: application/json, text/event-stream"}
		for _, body := range requests() {
			if _, err := s.http("POST", "/api/mcp/jsonrpc", body, headers...); err != nil {
				return err
			}
		}
		for _, r := range [][]string{
			{"GET", "/api/mcp/health", ""},
			{"GET", "/api/mcp/tools", ""},
			{"GET", "/api/mcp/resources", ""},
			{"GET", "/api/mcp/prompts", ""},
			{"POST", "/api/mcp/tools/call", `{"name":"util.hash","arguments":{"data":"Hello World"}}`},
			{"POST", "/api/mcp/tools/call", `{"name":"no.such"}`},
			{"POST", "/api/mcp/tools/call", `{`},
			{"GET", "/api/mcp/tools/call", ""},
			{"POST", "/api/mcp/jsonrpc/time", rpc(1, "tools/list", "{}")},
			{"POST", "/api/mcp/jsonrpc/nowhere", rpc(1, "tools/list", "{}")},
			{"DELETE", "/api/mcp/jsonrpc", ""},
			{"OPTIONS", "/api/mcp/jsonrpc", ""},
		} {
			if _, err := s.http(r[0], r[1], r[2], headers...); err != nil {
				return err
			}
		}
		return nil
	}}
}

func gatewaySocket() talk {
	return talk{name: "gateway over WebSocket", play: func(s *stage) error {
		return s.socket("/mcp/ws", append(requests(), `{"type":"ping"}`, `{"type":"tool_call","requestId":"r2"}`)...)
	}}
}

// localTools calls every tool of the server from outside, for a device of either language.
func localTools() talk {
	return talk{name: "local tools", play: func(s *stage) error {
		for _, o := range []devicetest.Options{{DeviceID: "24:6f:28:aa:10:05", Language: "en-US"}, {DeviceID: "24:6f:28:aa:10:06", Language: "zh-CN"}} {
			a, err := s.dial(o.Language, o)
			if err != nil {
				return err
			}
			for _, c := range [][2]string{
				{"util.calculate", `"expression":"(12.5+3)*2^3"`},
				{"util.calculate", `"expression":"1/0"`},
				{"util.calculate", `"expression":"sin(30°)+"`},
				{"time.get_current_time", ""},
				{"time.get_lunar_calendar", `"date":"2026-02-17"`},
				{"time.get_lunar_calendar", `"date":"2027年中秋节"`},
				{"time.get_lunar_calendar", `"date":"no day"`},
				{"timer.list_timers", ""},
				{"timer.set_timer", `"seconds":1000`},
				{"timer.set_timer", `"duration":"half an hour"`},
				{"timer.set_timer", `"duration":"十分钟"`},
				{"timer.set_timer", `"duration":"soon"`},
				{"timer.set_timer", ""},
				{"timer.set_reminder", `"text":"tea","time":"in 20 minutes"`},
				{"timer.set_reminder", `"text":"喝茶","time":"二十分钟后"`},
				{"timer.set_reminder", `"text":"tea","time":"when I say so"`},
				{"timer.list_timers", ""},
				{"timer.cancel_timer", `"all":true`},
				{"timer.cancel_timer", `"all":true`},
				{"music.list_music", ""},
				{"music.play_music", `"name":"nothing like it"`},
				{"music.stop_music", ""},
				{"talk.change_role", `"role":"no such role"`},
				{"talk.forget_conversation", ""},
				{"device.adjust_volume", `"change":"up"`},
				{"device.set_volume", `"volume":200`},
				{"device.get_device_status", ""},
				{"device.take_photo", `"question":"?"`},
				{"device.abort", ""},
				{"device.say", ""},
				{"time.now", `"format":"nonsense"`},
				{"util.hash", `"data":"x","algorithm":"md5"`},
			} {
				arguments := `{"device_id":"` + o.DeviceID + `"`
				if c[1] != "" {
					arguments += "," + c[1]
				}
				if !strings.HasPrefix(c[0], "device.") && !strings.HasPrefix(c[0], "timer.") && !strings.HasPrefix(c[0], "talk.") {
					arguments = "{" + c[1]
				}
				if _, err := s.http("POST", "/api/mcp/jsonrpc", rpc(1, "tools/call", `{"name":"`+c[0]+`","arguments":`+arguments+`}}`), "Content-Type: application/json"); err != nil {
					return err
				}
			}
			s.pause(4 * time.Second) // what is spoken of it
			a.Close()
		}
		return nil
	}}
}

// gatewayDevice works a connected device from outside.
func gatewayDevice() talk {
	return talk{name: "gateway and a device", config: "mcp: {transcripts: true}\n", book: map[string]answer{"tell me a story": endless}, play: func(s *stage) error {
		a, err := s.dial("device", devicetest.Options{Tools: kitchen()[:12]})
		if err != nil {
			return err
		}
		if err := a.typed("what else is there to say"); err != nil {
			return err
		}
		s.pause(time.Second)
		for _, c := range [][2]string{
			{"device.list_devices", "{}"},
			{"device-246f28aa1002.self.audio_speaker.set_volume", `{"volume":33}`},
			{"device-246f28aa1002.self.audio_speaker.set_volume", `{"volume":"x"}`},
			{"device-246f28aa1002.self.lamp.get_state", "{}"},
			{"device.say", `{"text":"The washing machine is done.","now":false}`},
			{"device.say", `{"device_id":"nobody","text":"x"}`},
			{"timer.set_timer", `{"seconds":1000}`},
			{"timer.list_timers", "{}"},
		} {
			params, err := json.Marshal(map[string]any{"name": c[0], "arguments": json.RawMessage(c[1])})
			if err != nil {
				return err
			}
			if _, err := s.http("POST", "/api/mcp/jsonrpc", rpc(1, "tools/call", string(params)), "Content-Type: application/json"); err != nil {
				return err
			}
			s.pause(400 * time.Millisecond)
		}
		var ask sync.WaitGroup
		var failed error
		ask.Go(func() {
			_, failed = s.http("POST", "/api/mcp/jsonrpc", rpc(3, "tools/call", `{"name":"device.ask","arguments":{"text":"Is it warm enough?"}}`), "Content-Type: application/json")
		})
		err = errors.Join(a.answered(), a.speaks("it is quite warm in here"))
		ask.Wait()
		if err = errors.Join(err, failed); err != nil {
			return err
		}
		for _, uri := range []string{"xiaozhi://devices", "xiaozhi://devices/246f28aa1002/transcript"} {
			if _, err := s.http("POST", "/api/mcp/jsonrpc", rpc(1, "resources/read", `{"uri":"`+uri+`"}`), "Content-Type: application/json"); err != nil {
				return err
			}
		}
		_, err = s.http("POST", "/api/mcp/jsonrpc", rpc(2, "tools/list", "{}"), "Content-Type: application/json")
		return err
	}}
}

func badMessages() talk {
	return device("bad messages", devicetest.Options{Tools: kitchen()[:3]}, nil, func(a *actor) error {
		for _, text := range []string{
			`{`, `[]`, `null`, `"x"`, `7`, `{}`, `{"type":7}`, `{"type":"no such"}`, `{"type":"listen"}`, `{"type":"listen","state":"sideways"}`, `{"type":"listen","state":"start","mode":"loud"}`,
			`{"type":"abort","reason":7}`, `{"type":"mcp"}`, `{"type":"mcp","payload":7}`, `{"type":"mcp","payload":{"jsonrpc":"2.0","id":999,"result":{}}}`, `{"type":"hello"}`,
			`{"type":"iot","states":7}`, `{"type":"listen","state":"detect"}`, `{"type":"listen","state":"detect","text":""}`, `{"session_id":"foreign","type":"abort"}`, `{"type":"goodbye"}`,
		} {
			if err := a.SendText([]byte(text)); err != nil {
				return err
			}
			a.s.pause(150 * time.Millisecond)
		}
		for _, frame := range [][]byte{{}, {0xff}, make([]byte, 4000), []byte("not Opus at all")} {
			if err := a.SendBinary(frame); err != nil {
				return err
			}
		}
		a.s.pause(300 * time.Millisecond)
		if err := a.typed("what else is there to say"); err != nil {
			return err
		}
		if err := a.SendText([]byte(strings.Repeat("x", 2<<20))); err != nil {
			return err
		}
		return a.gone()
	})
}

// badOpenings are connections that never get to a talk, and odd hellos.
func badOpenings() talk {
	return talk{name: "bad openings", play: func(s *stage) error {
		for _, hello := range []string{
			`{"type":"listen","state":"detect","text":"what else is there to say"}`, `{"type":"hello"}`, `{"type":"hello","version":9,"transport":"websocket"}`, `{"type":"hello","transport":"udp"}`,
			`{"type":"hello","version":1,"transport":"websocket","audio_params":{"format":"pcm","sample_rate":8000,"channels":2,"frame_duration":7}}`,
			`{"type":"hello","version":1,"transport":"websocket","audio_params":{"format":"opus","sample_rate":48000,"channels":1,"frame_duration":20}}`,
			`{"type":"hello","version":1,"transport":"websocket","features":{"mcp":true}}`, `not JSON`, `{"type":"mcp","payload":{}}`,
		} {
			if err := s.socket("/xiaozhi/v1/", hello); err != nil {
				return err
			}
		}
		return nil
	}}
}

// light is a talk with a peer of the light dialect.
func light(name string, enveloped bool) talk {
	return talk{name: name, book: map[string]answer{
		"amplify": calls("amplify_volume", `{"level":80}`), "how warm": calls("read_heat", "{}"), "break it": calls("break_it", "{}"), "tell me a story": story,
	}, play: func(s *stage) error {
		tool := func(name, kind, result string) devicetest.LightTool {
			return devicetest.LightTool{
				Name: name, Description: "For a test.", MainType: "remote", SubType: kind, Parameters: json.RawMessage(`{"type":"object","properties":{}}`),
				Call: func(context.Context, json.RawMessage) string { return result },
			}
		}
		l, err := devicetest.DialLight(s.ctx, devicetest.LightOptions{URL: "ws" + strings.TrimPrefix(s.server.base, "http") + "/xiaozhi/v1/", Enveloped: enveloped})
		if err != nil {
			return err
		}
		s.closers = append(s.closers, func() {
			l.Close()
			s.tape.device("peer", l.Events(), nil)
		})
		if _, err := l.Register(s.ctx, "r1", tool("amplify_volume", "control", `"result":{"status":"success","message":"done"}`),
			tool("read_heat", "query", `"result":{"celsius":21}`), tool("break_it", "control", `"error":{"code":-32000,"message":"it is broken"}`)); err != nil {
			return err
		}
		for _, text := range []string{"please amplify the sound", "how warm is it in here", "please break it for me", "tell me a story"} {
			if err := l.Type(text); err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(s.ctx, 20*time.Second)
			_, err := l.WaitReply(ctx)
			cancel()
			if err != nil {
				return err
			}
			s.pause(4 * time.Second) // a failure is told at the next pause
		}
		_, err = l.Register(s.ctx, "r2")
		return err
	}}
}
