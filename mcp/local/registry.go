package local

import (
	"encoding/json"
	"slices"

	"xiaozhi/mcp"
)

// entry is one tool of this server: all that can be said of it in one place.
type entry struct {
	name    string
	zh, en  string       // what it does, for the model; both are given to it
	schema  string       // JSON Schema of its arguments
	runs    mcp.ToolType // what a call means for the talk, which decides the tool's kind
	handler Handler

	readOnly bool                         // it changes nothing
	stream   string                       // the group it is listed under outward
	device   bool                         // it works on a device, whatever it runs as
	when     func(device []mcp.Tool) bool // it is offered beside these tools of the device; nil: always
}

// noArguments is the schema of a tool that takes none.
const noArguments = `{"type":"object","properties":{}}`

// registry returns every tool that this server runs itself, in the order in
// which models see them. Those whose outcome is a handler of the conversation
// are queries, so that they are waited for.
func registry(o Options) []entry {
	c := clock{o.Now}
	return slices.Concat(
		grouped("", c.knowing()), grouped("info", outside{o.Weather, o.News, o.Log}.telling()), grouped("talk", roles(slices.Clone(o.Roles)).talking()),
		grouped("timer", c.ringing()), grouped("music", player{o.Music, o.Log}.playing()), grouped("device", working()),
	)
}

// grouped lists entries under a stream, those that name none themselves.
func grouped(stream string, entries []entry) []entry {
	for i := range entries {
		e := &entries[i]
		if e.stream == "" {
			e.stream = stream
		}
		e.device = stream == "device" || e.runs == mcp.ToolSystemCtl || e.runs == mcp.ToolChangeSysPrompt
	}
	return entries
}

// knowing are the tools that tell something.
func (c clock) knowing() []entry {
	return []entry{
		{
			name: "get_current_time", stream: "time", runs: mcp.ToolWait, handler: c.currentTime, readOnly: true,
			zh:     "获取当前的日期、时间和星期。",
			en:     "Tells the current date, time and weekday.",
			schema: noArguments,
		},
		{
			name: "get_lunar_calendar", stream: "time", runs: mcp.ToolWait, handler: c.calendar, readOnly: true,
			zh:     "查询农历：今天或某一天的农历日期、干支、生肖、节气和节日，或某个农历日期是公历哪天。",
			en:     "Tells the Chinese lunar date, zodiac year, solar terms and festivals of today or of a day, or which day a lunar date is.",
			schema: calendarSchema,
		},
		{
			name: "calculate", stream: "util", runs: mcp.ToolWait, handler: calculate, readOnly: true,
			zh: "精确计算一个算式，支持加减乘除、乘方、百分数、阶乘和 sqrt 等函数。心算不可靠时用。",
			en: "Works out an expression exactly. Use it instead of doing sums yourself.",
			schema: `{"type":"object","properties":{"expression":{"type":"string","minLength":1,"maxLength":1000,` +
				`"description":"如 (12.5+3)*2^3、15% * 80、sqrt(2)、sin(30°) / such as (12.5+3)*2^3"}},"required":["expression"]}`,
		},
	}
}

// talking are the tools that touch the conversation.
func (r roles) talking() []entry {
	entries := []entry{
		{
			name: "exit", runs: mcp.ToolSystemCtl, handler: exit,
			zh: "用户想结束对话、说再见或要求退出时调用。",
			en: "Ends the conversation. Call it when the user says goodbye or wants to stop talking.",
			schema: `{"type":"object","properties":{"say_goodbye":{"type":"string",` +
				`"description":"告别的话 / a short farewell in the user's language"}}}`,
		},
		{
			name: "forget_conversation", runs: mcp.ToolSystemCtl, handler: forget,
			zh:     "忘掉到现在为止的对话，重新开始。只在用户明确要求时调用。",
			en:     "Forgets the conversation so far and starts anew. Only when the user asks for it.",
			schema: noArguments,
		},
	}
	if len(r) > 0 {
		entries = append(entries, entry{
			name: "change_role", runs: mcp.ToolChangeSysPrompt, handler: r.changeRole,
			zh:     "切换助手的角色，或换回原来的角色。",
			en:     "Changes the assistant's role, or goes back to the first one.",
			schema: roleSchema(r),
		})
	}
	return entries
}

// ringing are the tools for what is to be told later.
func (c clock) ringing() []entry {
	return []entry{
		{
			name: "set_timer", runs: mcp.ToolSystemCtl, handler: c.setTimer,
			zh:     "设一个倒计时，到时响铃提醒。",
			en:     "Sets a countdown that rings when it is over.",
			schema: timerSchema,
		},
		{
			name: "set_reminder", runs: mcp.ToolSystemCtl, handler: c.setReminder,
			zh:     "设一个提醒或闹钟，在某个时间告诉用户一件事。",
			en:     "Sets a reminder or an alarm: tells the user something at a time of day.",
			schema: reminderSchema,
		},
		{
			name: "list_timers", runs: mcp.ToolSystemCtl, handler: listTimers, readOnly: true,
			zh:     "列出还没响的倒计时和提醒。",
			en:     "Lists the timers and reminders that are still to come.",
			schema: noArguments,
		},
		{
			name: "cancel_timer", runs: mcp.ToolSystemCtl, handler: cancelTimer,
			zh:     "取消一个或全部倒计时和提醒。",
			en:     "Cancels one timer or reminder, or all.",
			schema: cancelSchema,
		},
	}
}

// working are the tools that work the device through its own tools. Each is
// offered only where the device has no tool that does the same by itself.
func working() []entry {
	v, b := volume(), brightness()
	return []entry{
		{
			name: "set_volume", runs: mcp.ToolWait, handler: v.set, when: v.lacksPlain,
			zh: "把音量设为一个数值。", en: "Sets the volume to a number.", schema: volumeSchema,
		},
		{
			name: "adjust_volume", runs: mcp.ToolWait, handler: v.adjust, when: v.moves,
			zh:     "相对调节音量：大一点、小一点、最大、静音。用户没有说具体数值时用。",
			en:     "Makes it louder or quieter. Use it when the user names no number.",
			schema: adjustSchema,
		},
		{
			name: "set_brightness", runs: mcp.ToolWait, handler: b.set, when: b.lacksPlain,
			zh: "把屏幕亮度设为一个数值。", en: "Sets the screen's brightness to a number.", schema: brightnessSchema,
		},
		{
			name: "adjust_brightness", runs: mcp.ToolWait, handler: b.adjust, when: b.moves,
			zh:     "相对调节屏幕亮度：亮一点、暗一点、最亮、最暗。用户没有说具体数值时用。",
			en:     "Makes the screen brighter or darker. Use it when the user names no number.",
			schema: adjustSchema,
		},
		{
			name: "get_device_status", runs: mcp.ToolWait, handler: deviceStatus, readOnly: true, when: lacksStatus,
			zh: "查询设备的状态，如音量、电量、网络。", en: "Tells how the device is: volume, battery, network.", schema: noArguments,
		},
		{
			name: "take_photo", runs: mcp.ToolWait, handler: takePhoto, when: lacksPhoto,
			zh: "用设备的摄像头拍照并描述画面。", en: "Takes a photo with the device's camera and describes it.", schema: photoSchema,
		},
	}
}

// telling are the tools for what stands in the config.
func (o outside) telling() []entry {
	var entries []entry
	if p := o.weather.Page; p != nil {
		entries = append(entries, entry{
			name: "get_weather", runs: mcp.ToolWait, handler: o.tellWeather, readOnly: true,
			zh:     "查询天气和预报。",
			en:     "Tells the weather and the forecast.",
			schema: outsideSchema(p, "city", "城市，如 北京；不给就是用户所在的城市 / the city; where the user is if left out"),
		})
	}
	if p := o.news.Page; p != nil {
		entries = append(entries, entry{
			name: "get_news", runs: mcp.ToolWait, handler: o.tellNews, readOnly: true,
			zh:     "查询最新的新闻。",
			en:     "Tells the latest news.",
			schema: outsideSchema(p, "query", "关于什么，可省略 / about what, may be left out"),
		})
	}
	return entries
}

// playing are the tools for music of the server's own folder.
func (p player) playing() []entry {
	if p.music == nil {
		return nil
	}
	return []entry{
		{
			name: "play_music", runs: mcp.ToolSystemCtl, handler: p.playMusic, when: lacksPlayer,
			zh: "播放服务器上的音乐：按歌名、歌手找，没有说就随便放一首。",
			en: "Plays music from the server's folder, by title or artist, or any if none is named.",
			schema: `{"type":"object","properties":{"name":{"type":"string","maxLength":200,` +
				`"description":"歌名或歌手，可省略 / title or artist, may be left out"}}}`,
		},
		{
			name: "list_music", runs: mcp.ToolWait, handler: p.listMusic, readOnly: true, when: lacksPlayer,
			zh:     "列出服务器上有哪些音乐。",
			en:     "Lists the music in the server's folder.",
			schema: noArguments,
		},
		{
			name: "stop_music", runs: mcp.ToolSystemCtl, handler: playerControl(mcp.MusicStop), when: lacksPlayer,
			zh: "停止播放音乐。", en: "Stops the music.", schema: noArguments,
		},
		{
			name: "pause_music", runs: mcp.ToolSystemCtl, handler: playerControl(mcp.MusicPause), when: lacksPlayer,
			zh: "暂停音乐。", en: "Pauses the music.", schema: noArguments,
		},
		{
			name: "resume_music", runs: mcp.ToolSystemCtl, handler: playerControl(mcp.MusicResume), when: lacksPlayer,
			zh: "继续播放音乐。", en: "Goes on with the music.", schema: noArguments,
		},
		{
			name: "next_song", runs: mcp.ToolSystemCtl, handler: playerControl(mcp.MusicNext), when: lacksPlayer,
			zh: "换下一首。", en: "Plays the next song.", schema: noArguments,
		},
	}
}

// tool is the entry as sources list it.
func (e entry) tool() mcp.Tool {
	return mcp.Tool{
		Name:        e.name,
		Description: e.zh + " " + e.en,
		Schema:      json.RawMessage(e.schema),
		Kind:        e.runs.Kind(),
		Annotations: mcp.Annotations{ReadOnly: &e.readOnly},
		When:        e.when,
		Stream:      e.stream,
		NeedsDevice: e.device,
	}
}
