package intent

import (
	"strings"
	"unicode/utf8"
)

// completeChinese judges a Chinese text without marks and spaces, in simplified
// signs: whole texts first, then what asks for more, then what closes.
func completeChinese(said string) Completeness {
	if oneOf(said, zhWhole) {
		return Finished
	}
	rest, opening := withoutOpening(said)
	short := utf8.RuneCountInString(rest) == 1 && rest != "停"
	switch {
	case oneOf(said, zhUnclear), rest == "" && oneOf(opening, zhAnswers):
		return Undecided
	case rest == "":
		return Unfinished // nothing but the beginning of a request: 请你帮我
	case oneOf(rest, zhBareVerb):
		if short && opening == "" {
			return Undecided // an answer: 想
		}
		return Unfinished
	case oneOf(rest, zhWhole) && !short:
		return Finished
	case zhLacksVerb(rest):
		return Unfinished
	}
	if f := zhAsksForMore(said); f != Finished {
		return f
	}
	return zhCloses(said, rest)
}

// zhWhole are texts that are whole as they are.
const zhWhole = "好啊 好呀 好吧 好嘞 行啊 行吧 对啊 是啊 停 停下 停止 停一下 停下来 暂停 继续 下一首 上一首 下一个 上一个 换一首 换一个 再来一首 再来一个 " +
	"等等 等一下 等会 等会儿 别说了 别讲了 别唱了 别吵 别吵了 闭嘴 安静 安静点 够了 取消 算了 退出 静音 关机 重启 拍照 拍张照 " +
	"大声点 小声点 大点声 小点声 再说一遍 再说一次 再来一遍 重复一遍 报时 唱首歌 唱歌 讲个故事 讲故事 讲个笑话 讲笑话 放首歌 放音乐 听音乐 听歌 " +
	"好 好的 行 是 是的 对 对的 不 不要 不用 不是 不对 不行 不好 不可以 不需要 不想 不知道 可以 需要 没有 没事 没关系 没问题 没错 当然 当然可以 确定 确认 同意 知道 知道了 明白 " +
	"你好 您好 早安 早上好 上午好 中午好 下午好 晚上好 晚安 再见 拜拜 谢谢 谢谢你 谢谢您 多谢 你好小智 " +
	"什么 为什么 为啥 怎么办 怎么回事 怎么样 真的 几点 我不要 我不想 我愿意 我也是 我也要 就这样 就要这个 不客气 没有了"

// zhUnclear are short texts that are as often an answer as a beginning.
const zhUnclear = "播放 打开 关闭 我有 我会 我能 我可以 你可以 你知道 我就是 他就是 她就是 它就是 你就是 我是 是我 对了 那对 有没有 是不是 要不要 那里 哪里 不知"

// zhAnswers are opening words that are answers or calls too.
const zhAnswers = "好 好的 对 嗯 啊 哦 小智 小智同学 你好 我 你 您 他 她 它 我们 你们 他们 大家 今天 明天 昨天 后天 现在 待会 待会儿 等会 先"

// zhOpening are words that open a request, a sentence or nothing at all. A text
// of them alone is a beginning. Longer ones stand before their own beginnings.
const zhOpening = "小智同学 小智 你好 你能不能 你可不可以 能不能帮我 可以帮我 请问一下 请问 请你 请 麻烦你 麻烦 能不能 可不可以 可以不可以 能否 帮帮忙 帮我 帮忙 帮 " +
	"我想要 我想知道 我想问一下 我想问你 我想问 我想听 我想看 我想 我还想 我要 我需要 我希望 我觉得 我认为 我以为 我打算 我准备 我应该 我可以 我能 我会 我就 我 " +
	"你知不知道 你知道 你能 你可以 你会 你觉得 你认为 你是不是 你有没有 你 您 他 她 它 咱们 我们 你们 他们 大家 " +
	"告诉我 跟我说 提醒我 叫我 让我 给我 替我 教我 陪我 问你 问一下 问你个 " +
	"然后 还有 因为 所以 但是 可是 不过 如果 要是 假如 而且 并且 或者 以及 另外 比如说 比如 例如 虽然 既然 由于 即使 尽管 首先 其次 接着 最后 第一 第二 第三 " +
	"那个 这个 就是说 就是 那么 那 呃 额 唔 嗯 啊 哦 哎 诶 喂 嘿 好的 好 给 和 跟 再 先 就 在 从 对 关于 今天 明天 昨天 后天 现在 待会 待会儿 等会"

// withoutOpening takes the opening words away and returns the last of them too.
func withoutOpening(said string) (rest, opening string) {
	for {
		rest, ok := beginsWith(said, zhOpening)
		if !ok {
			return said, opening
		}
		said, opening = rest, strings.TrimSuffix(said, rest)
	}
}

// zhBareVerb are verbs that want an object when nothing else was said.
const zhBareVerb = "问一下 查一下 查查 查 搜一下 搜 搜索 找一下 找 看一下 听一下 放一下 讲一个 讲 说 念 唱 放 设 设置 设个 设一个 定 定个 定一个 订个 订一个 调 调节 切换 切换到 " +
	"想 要 想要 需要 问 买 叫 写 写一个 翻译 翻译一下 计算 算一下 打电话 加 添加 提醒 播放一首 播放一下 来一首 来个 来一个 来点 换成 改成 打算 准备 有 是 会 能 可以帮我 第"

// zhNouns are things that are spoken of to a speaker; some hold a verb's sign.
const zhNouns = "空调温度 空调 电灯 台灯 夜灯 吊灯 灯带 灯光 灯泡 灯 电视机 电视 窗帘 纱帘 风扇 电扇 音乐 大门 房门 车门 门 窗户 窗 插座 开关 音量 声音 亮度 温度 湿度 闹钟 闹铃 提醒 定时器 计时器 " +
	"歌曲 歌 故事 笑话 新闻 相机 摄像头 净化器 加湿器 除湿机 热水器 扫地机器人 扫地机 收音机 音箱 蓝牙 屏幕 电脑 油烟机 洗衣机 电饭煲 投影仪 广播 戏曲 古诗 诗"

// zhLacksVerb reports whether the text says "take the lamp" (把灯) and not yet
// what to do with it: what follows is a thing and no verb.
func zhLacksVerb(rest string) bool {
	held, ok := beginsWith(rest, "把 将")
	if !ok {
		return false
	}
	for noun := range strings.FieldsSeq(zhNouns) {
		held = strings.ReplaceAll(held, noun, "")
	}
	return utf8.RuneCountInString(held) <= 8 && !strings.ContainsAny(held, "开关调设改换放停拿打删取加减切播移送给成到掉上下高低大小说读念写翻存录收"+
		"擦洗倒修带拉推挂吃喝用做算卖买寄发记忘弄搞摆点拍卷搬扔丢清除锁完好起来去了吧")
}

// zhMore are endings behind which something must follow.
const zhMore = "然后 还有 因为 所以 但是 可是 如果 要是 假如 假设 而且 并且 或者 或 以及 另外 比如 比如说 例如 譬如 虽然 既然 由于 即使 尽管 除了 关于 对于 至于 为了 无论 不管 不但 不仅 只要 除非 接着 其次 首先 " +
	"的话 的时候 之前先 之后再 以后再 完了再 百分之 那个 这个 就是说 就是 那么 怎么 呃 额 嗯 唔 " +
	"请把 把 将 请 请你 麻烦你 帮我 我想 我要 我想要 我需要 我希望 我觉得 我认为 我以为 我打算 想问 想知道 能不能帮 你能 你能不能 " +
	"设为 设置为 设成 设置成 改为 改成 换为 换成 调为 调成 变成 当成 翻译成 翻成 转成 称为 命名为 叫做 名叫 " +
	"调到 设到 设置到 加到 降到 升到 开到 调高到 调低到 调大到 调小到 定到 改到 推迟到 提前到 换到 切到 切换到 跳到 放到 移到 送到 发到 发给 打给 寄给 送给 交给 转给 分给 拿给 " +
	"放在 住在 设在 定在 就在 正在 是在 站在 坐在 停在 挂在 写在 " +
	"还是 特别是 尤其是 而是 只是 总是 老是 应该是 可能是 好像是 大概是 意思是 问题是 名字是 密码是 号码是 电话是 答案是 时间是 地址是 原因是 关键是 主要是 这是 只有 " +
	"给 和 跟 与 从 被 让 第一 第二 第三 第"

// zhAsksForMore judges the last word: no when something must follow, maybe
// where the same word does end sentences too, yes when it tells nothing.
func zhAsksForMore(said string) Completeness {
	before, ok := endsWith(said, zhMore)
	if !ok {
		return Finished
	}
	if _, ends := endsWith(before, zhEndsAfter(said[len(before):])); ends {
		return Undecided
	}
	return Unfinished
}

// zhEndsAfter returns the signs before a word of zhMore with which it ends a
// sentence: 暖和, 我就要这个, 他得了第一, 他不给.
func zhEndsAfter(word string) string {
	switch word {
	case "和":
		return "暖 温 饱 柔 缓 平 总 随 亲 调"
	case "跟":
		return "高 脚 后"
	case "与":
		return "参 赠 给"
	case "从":
		return "服 听 顺 随 盲 遵"
	case "被":
		return "棉 盖 叠 羽绒"
	case "让":
		return "不 谦 退 转 礼 忍 肯"
	case "给":
		return "不 就 要 肯 该"
	case "那个", "这个":
		return "要 是 听 选 看 买 吃 喝 用 找 换 欢 掉 除 停"
	case "就是":
		return "我 他 她 它 本来"
	case "嗯", "额":
		return "名 金 余"
	case "第一", "第二", "第三":
		return "得 得了 拿 拿了 考 考了 排 排名 全班 世界 安全 天下 是 友谊"
	case "帮我":
		return "帮 来 谁 要 不"
	case "我要":
		return "是 不是"
	case "将":
		return "麻 打麻 上 大 武"
	case "怎么":
		return "不 没"
	case "我认为", "我以为", "我觉得":
		return "是"
	case "送给", "交给", "发给":
		return "不"
	case "或":
		return "或"
	}
	return ""
}

// zhCloses judges a text whose last word asks for nothing: particles, question
// words and commands that have their object close a sentence.
func zhCloses(said, rest string) Completeness {
	if before, ok := endsWith(said, "吗 呢 吧 啊 呀 啦 嘛 哟 咯 喽 啰 哇 呗 嘞"); ok {
		particle := strings.TrimPrefix(said, before)
		if oneOf(before, "其实 首先 就是 那个 这个 第一 嗯 呃") || (!strings.Contains("吗呢", particle) && zhAsksForMore(before) != Finished) {
			return Undecided // 就是呢, 因为啊: drawn out, not over
		}
		return Finished
	}
	if before, ok := strings.CutSuffix(said, "了"); ok {
		if _, open := endsWith(before, "到 对 有 去 买"); open {
			return Undecided // 我去了 and then where
		}
		return Finished
	}
	switch {
	case zhAsks(said), zhCommands(said, rest):
		return Finished
	}
	return Undecided
}

// zhAsks reports whether the text ends as a question does.
func zhAsks(said string) bool {
	if before, ok := endsWith(said, "什么时候"); ok {
		_, is := endsWith(before, "是 在")
		return is
	}
	if before, ok := endsWith(said, "什么 多少"); ok {
		return !strings.HasSuffix(before, "有")
	}
	if _, ok := endsWith(said, "几点"); ok {
		return strings.Contains(said, "现在") || strings.HasSuffix(said, "到几点") || strings.HasSuffix(said, "是几点")
	}
	_, ok := endsWith(said, "什么意思 什么名字 什么颜色 什么歌 什么天气 是么 好么 行么 在么 多少钱 多少度 多少岁 几号 星期几 周几 礼拜几 几岁 几度 几月 几天 怎么样 怎么办 咋样 咋办 "+
		"怎么走 怎么做 怎么说 怎么写 怎么读 怎么用 怎么去 怎么办理 怎么念 怎么弄 怎么玩 怎么开 怎么关 怎么画 怎么唱 怎么修 在哪 在哪里 在哪儿 去哪 去哪里 去哪儿 是哪里 是谁 找谁 像谁 为什么 "+
		"多大 多远 多久 多高 多长 多重 好不好 行不行 对不对 可不可以 能不能行 好不好听 是真的")
	return ok
}

// zhCommands reports whether the text is a command that has its object.
func zhCommands(said, rest string) bool {
	if _, ok := endsWith(said, "大一点 小一点 高一点 低一点 亮一点 暗一点 快一点 慢一点 大声一点 轻一点 热一点 冷一点 暖一点 凉一点 响一点 "+
		"大点 小点 高点 低点 亮点 暗点 快点 慢点 大声点 小声点 打开 关掉 关上 关闭 关一下 开一下 打开一下 关起来 停掉 调高 调低 调大 调小 调亮 调暗 删掉 删除 取消 开开 介绍一下 再说一遍 一遍"); ok {
		return said != "打开" && rest != "打开" && rest != "关闭"
	}
	object, ok := beginsWith(rest, "打开 开启 启动 关闭 关掉 关上 开 关 播放 暂停 停止 继续播放 继续放 放 唱 讲 来点 来 听 调高 调低 调大 调小 增大 减小 增加 减少 提高 降低 取消 删除 查看")
	if !ok || object == "" {
		return false
	}
	_, ok = endsWith(object, zhNouns)
	return ok
}
