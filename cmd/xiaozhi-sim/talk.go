package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"
	"time"

	"xiaozhi/internal/devicetest"
)

const talkUsage = `usage: xiaozhi talk [flags]

Talks to a server as a simulated speaker: shows each message with its time,
offers tools as a real device does, and says which rules of the device protocol
the server broke. With neither --text nor --wav it takes typed lines.
模拟一台设备与服务对话；不带 --text 和 --wav 时，逐行读取键盘输入。

`

// prompt is one thing to say to the server.
type prompt struct {
	text string // typed, if not empty
	wav  string // file to speak otherwise
}

// talkOptions are the flags of the subcommand.
type talkOptions struct {
	server     string
	prompts    []prompt // in the order of the command line
	mode       string
	save       string
	deviceID   string
	token      string
	protocol   int
	frame      int
	noMCP      bool
	lang       string
	timeout    time.Duration
	abortAfter time.Duration
	verbose    bool
}

// talkTolerance is forgiven in rules about time: networks and desktops are not a device's clock.
const talkTolerance = 50 * time.Millisecond

// talk is the subcommand. It returns 0 when every prompt got a reply, 1 when the
// connection, the protocol or a reply failed, and 2 when it was misused.
func talk(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	o, err := parseTalk(args, stdout)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		fmt.Fprintf(stderr, "xiaozhi talk: %v\nxiaozhi talk --help lists the flags / 查看参数\n", err)
		return 2
	}
	t := &talker{o: o, out: newTranscript(stdout, o.verbose), board: devicetest.NewBoard()}
	err = t.prepare()
	if err != nil {
		fmt.Fprintf(stderr, "xiaozhi talk: %v\n", err)
		return 2
	}
	if len(o.prompts) > 0 {
		err = t.all(ctx, o.prompts)
	} else {
		err = t.lines(ctx, stdin, isTerminal(stdin))
	}
	t.hangUp()
	t.summary()
	if saveErr := t.save(); err == nil {
		err = saveErr
	}
	if err != nil {
		fmt.Fprintf(stderr, "xiaozhi talk: %v / 对话失败\n", err)
		return 1
	}
	return 0
}

// parseTalk reads and checks the command line. If that asks for help, it is written to help.
func parseTalk(args []string, help io.Writer) (talkOptions, error) {
	o := talkOptions{}
	flags := flag.NewFlagSet("talk", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // errors are returned, and printed once
	flags.Usage = func() {}
	flags.StringVar(&o.server, "server", "http://127.0.0.1:8000/xiaozhi/ota/", "WebSocket `URL` (ws://), or OTA URL (http://) that says where to connect / 服务地址")
	flags.Func("text", "typed `words`; may be given again / 文字输入，可重复", func(s string) error {
		if strings.TrimSpace(s) == "" {
			return errors.New("no words")
		}
		o.prompts = append(o.prompts, prompt{text: s})
		return nil
	})
	flags.Func("wav", "`file` to speak, any usual rate; may be given again / 语音文件，可重复", func(s string) error {
		o.prompts = append(o.prompts, prompt{wav: s})
		return nil
	})
	flags.StringVar(&o.mode, "mode", "auto", "auto, manual or realtime / 拾音模式")
	flags.StringVar(&o.save, "save", "", "WAV `file` for the replies / 保存回复")
	flags.StringVar(&o.deviceID, "device-id", "", "Device-Id; default: a fixed address / 设备号")
	flags.StringVar(&o.token, "token", "", "token, in place of the one that the OTA reply gives / 令牌")
	flags.IntVar(&o.protocol, "protocol", 0, "binary framing: 1, 2 or 3; default: what the OTA reply says, or 1 / 音频封装")
	flags.IntVar(&o.frame, "frame", 60, "length of an uplink frame: 20, 40 or 60 ms / 帧长")
	flags.BoolVar(&o.noMCP, "no-mcp", false, "offer no tools / 不提供工具")
	flags.StringVar(&o.lang, "lang", "", "language that the device reports, as zh-CN / 设备语言")
	flags.DurationVar(&o.timeout, "timeout", 60*time.Second, "longest wait for a connection and for each reply / 最长等待")
	flags.DurationVar(&o.abortAfter, "abort-after", 0, "press the button this long after a reply's first sound / 打断回复")
	flags.BoolVar(&o.verbose, "verbose", false, "show every message / 显示全部消息")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			fmt.Fprint(help, talkUsage)
			flags.SetOutput(help)
			flags.PrintDefaults()
		}
		return o, err
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("unknown argument %q / 未知参数", flags.Arg(0))
	}
	return o, o.check()
}

func (o talkOptions) check() error {
	u, err := url.Parse(o.server)
	if err != nil {
		return fmt.Errorf("--server: %w", err)
	}
	if !slices.Contains([]string{"http", "https", "ws", "wss"}, u.Scheme) || u.Host == "" {
		return fmt.Errorf("--server %q: must begin with ws://, wss://, http:// or https:// / 地址无效", o.server)
	}
	if !slices.Contains([]string{"auto", "manual", "realtime"}, o.mode) {
		return fmt.Errorf("--mode %q: must be auto, manual or realtime", o.mode)
	}
	if !slices.Contains([]int{0, 1, 2, 3}, o.protocol) {
		return fmt.Errorf("--protocol %d: must be 1, 2 or 3", o.protocol)
	}
	if !slices.Contains([]int{20, 40, 60}, o.frame) {
		return fmt.Errorf("--frame %d: must be 20, 40 or 60", o.frame)
	}
	if o.timeout <= 0 || o.abortAfter < 0 {
		return errors.New("--timeout must be more than 0, and --abort-after not less")
	}
	return nil
}
