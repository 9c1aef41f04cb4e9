package rules

import (
	"slices"
	"strings"
)

// chinesePatterns returns the ways of saying things in Chinese. The first that fits
// counts.
func chinesePatterns() []pattern {
	return slices.Concat(
		ways(intent{act: actTime},
			`(现在|这会儿|当前)?(是|到)?几点(钟|多)?了?`, `(现在|当前)是?什么时间了?`, `(现在|当前)?的?时间(是多少|是几点|是什么|多少)?`,
			`(告诉我|报A|说A|看A|看看|播报A|你?知道)(现在|当前)?的?(时间|是?几点)了?`, `报个?时`, `(现在)?(是)?什么时候了`),
		ways(intent{act: actDate},
			`(今天|现在)?是?(几月几号|几月几日|几号|多少号|什么日子|星期几|周几|礼拜几)`, `(今天|现在)?的?日期(是多少|是什么|是几号)?`,
			`今天(是)?几月几(号|日)(星期几)?`, `(告诉我|报A|说A)(今天)?的?(日期|是?几号|是?星期几)`),
		chineseLevel(volume, "V", "大|高|响", "小|低|轻"),
		chineseLevel(brightness, "B", "亮|高|大", "暗|低|小"),
		chineseLoudness(),
		ways(intent{act: actStop},
			`停|停停|停止|停下来?|停A|打住|(别|不要|不用)(说|放|唱|讲|播|念)(话|歌)?了?|闭嘴|住口|安静A|取消|算了|够了`,
			`停止(播放|说话|音乐)|停止播放(音乐|歌曲?)|(关闭|关掉|停掉)(音乐|歌)|(音乐|歌)(停|停掉|关|关掉|关上)|别吵`),
		ways(intent{act: actNext},
			`(播放|放|听|换|切换?到?|来|我要听)?下一?(首|个|曲|条|集)(歌|曲|音乐|曲子)?`, `换一?首(歌|曲子)?|切歌|跳过(这首|这个)?歌?`),
		ways(intent{act: actPause}, `暂停(播放)?(音乐|歌曲?)?A|(音乐|歌曲?|播放)暂停A`),
		ways(intent{act: actTimer},
			`过?NU(之后|以后|后)(再)?(提醒|叫|喊|通知)(我|A).{0,20}`, `过NU(再)?(提醒|叫|喊|通知)(我|A).{0,20}`,
			`(提醒|叫|喊|通知)我?NU(之后|以后|后).{0,20}`, `(设|定|设置|设定|开|订|建)A个?(一个)?NU(后)?的?(定时器?|闹钟|闹铃|倒计时|计时器?|提醒)`,
			`(倒计时|定时|计时)NU`, `(设|定|设置|设定|开)A个?(定时器?|闹钟|倒计时|计时器?)NU`),
		chineseTimers(),
		chineseAsking(),
		chineseTalk(),
	)
}

// chineseLevel returns the patterns about a level that is called by its name, with
// the words for more and for less.
func chineseLevel(of level, name, more, less string) []pattern {
	at := func(a act) intent { return intent{act: a, level: of} }
	named := func(texts ...string) []string {
		for i, t := range texts {
			texts[i] = strings.NewReplacer("LEVEL", name, "MORE", "("+more+")", "LESS", "("+less+")").Replace(t)
		}
		return texts
	}
	return slices.Concat(
		ways(at(actSet), named(`(把|将)?LEVEL(大小)?S?T?N`, `(把|将)?LEVEL(提高|降低|增大|减小|加大|S?MORE|S?LESS)TN`, `S?T?LEVELT?N`)...),
		ways(at(actUp), named(`(把|将)?LEVEL(S?MORE|增加|加大|加|增大|提高|增强)N`, `(把|将)?LEVEL(再|太|有点)?(S?MORE|增加|加大|增大|提高|增强)A`,
			`(再|S)?MOREALEVEL`, `(增大|加大|提高|增加|增强|放大|调MORE)ALEVEL`)...),
		ways(at(actDown), named(`(把|将)?LEVEL(S?LESS|减少|减|减小|降低|减弱)N`, `(把|将)?LEVEL(再|有点)?(S?LESS|减少|减小|降低|减弱)A`,
			`(再|S)?LESSALEVEL`, `(减小|降低|减少|减弱|调LESS)ALEVEL`)...),
		ways(at(actMax), named(`(把|将)?LEVELS?T?最MORE`, `最MORELEVEL`)...),
		ways(at(actMin), named(`(把|将)?LEVELS?T?最LESS`, `最LESSLEVEL`)...),
		ways(at(actAsk), named(`(现在|当前)?LEVEL(大小)?(现在|目前)?(是|有)?(多少|多大|多高|几)`, `(现在|当前|查A|看A)的?LEVEL`)...),
	)
}

// chineseLoudness are about sound and light without the level's name.
func chineseLoudness() []pattern {
	at := func(a act, l level) intent { return intent{act: a, level: l} }
	return slices.Concat(
		ways(at(actDown, volume), `V太(大|吵|响)|太(大声|吵|响)|V有点(大|吵)`),
		ways(at(actUp, volume), `V太(小|轻|低)|V?太小声|(说|讲)?(话)?(再)?大A声A|大A声A(说|讲)话?|大A声A|V有点小`),
		ways(at(actDown, volume), `(说|讲)?(话)?(再)?小A声A|小A声A(说|讲)话?|轻A声A`),
		ways(at(actMax, volume), `最大声|(S)?T最大声`),
		ways(at(actMin, volume), `静音|(关闭|关掉|关上)V|V(关掉|关闭|关上|关)`),
		ways(at(actDown, brightness), `B?太(亮|刺眼)|(再|调)?暗(一点儿?|点儿?|一些|些)`),
		ways(at(actUp, brightness), `B?太暗|(再|调)?亮(一点儿?|点儿?|一些|些)`),
	)
}

// chineseTimers returns the ways to ask what timers and reminders there are.
func chineseTimers() []pattern {
	texts := []string{
		`(我|你|我们|一共|总共|都|还|目前|当前|今天|明天)*(有|设置?了?|定了?)(些|一些)?(正在|在)?(什么|哪些|哪几个|几个|多少个?|啥)(正在|在)?(运行|跑|走)?的?NAME`,
		`(我|你|我们|一共|总共|都|还|目前|当前|今天|明天)*(有没有|有)(设置?|定)?(任何|什么)?(别的|其他的?)?NAME(在(运行|跑|走))?`,
		`(列|列出|列举|列A|显示|查看|查询|查|看|查A|看A|看看|报|报A|念|念A|读|读A|说|说A|告诉我?)(出来?)?(我|我们|你)?(的|现在|目前|当前|现有|所有|全部)*(都)?(有|设了|定了)?(哪些|什么|几个)?NAME(列表|清单)?`,
		`(我|我们|你)?(的|现在|目前|当前|现有|所有|全部)+NAME(列表|清单)?(都)?(有)?(哪些|什么|几个|呢)?`,
		`NAME(列表|清单|都?有(哪些|什么|几个)|有没有)`, `(我的?|这个|那个)?NAME(还有|还剩|剩|剩下|还要)(下)?(多久|多长时间|多少时间|几分钟)`,
		`(有)?(哪些|什么|几个|多少个?)NAME(在(运行|跑|走))?`,
	}
	const name = `(个)?(定时器?|闹钟|闹铃|倒计时|计时器?|提醒(事项)?)((和|或|跟)?(定时器?|闹钟|提醒))?`
	for i, t := range texts {
		texts[i] = strings.ReplaceAll(t, "NAME", name)
	}
	return ways(intent{act: actTimers}, texts...)
}

// chineseAsking are about the device and what it sees.
func chineseAsking() []pattern {
	return slices.Concat(
		ways(intent{act: actHelp},
			`你?(都|还)?(能|会|可以)(帮我)?(做|干)(什么|啥|些?什么|些?啥|哪些事|些?什么事)`, `你?有(什么|哪些|啥)(功能|本事)`, `帮助|怎么用|你?(都|还)?会(些)?(什么|啥)`, `你?(都|还)?(能|会|可以)(帮我)?干嘛`, `你有(什么|啥)用`),
		ways(intent{act: actBattery},
			`(现在)?(还有|剩|还剩|剩下)?(多少|几格)电量?`, `(现在)?电(量|池)(电量)?(是|还有|还剩|剩|有)?(多少|几格|够)?`, `(你?在|正在|有没有在)充电|充电没有|(还)?有电|有没有电|没电`),
		ways(intent{act: actStatus}, `(查A|看A)?(设备|你的|机器)(的)?状态(怎么样|如何|是什么)?|(查A|看A)状态|设备怎么样`),
		ways(intent{act: actPhoto},
			`(拍(一?张|个)?(照|照片|相片|相|图)(片)?|照(一?张|个)?相)(看看|看一看|瞧瞧)?((这|那)(个|里)?(是|有)(个)?(什么|啥)(东西)?)?`,
			`(看看|看一看|瞧瞧|看A)(这|那|前面|眼前|周围)(个|里)?(是|有)(个)?(什么|啥)(东西)?`, `(你|现在)?(能)?看(到|见|得见|得到)了?(什么|啥)`, `(你看)?(这|那)个?是(个)?(什么|啥)(东西)?`,
			`看A这(个|里)?(是|有)?(什么)?(东西)?`, `我(手里|手上|手中)?(拿|举)(着|的)?(是)?(什么|啥)`, `(描述|说)A(你看到的|眼前的?|画面).{0,4}`),
	)
}

// chineseTalk returns the patterns of greetings, thanks and the like.
func chineseTalk() []pattern {
	return slices.Concat(
		ways(intent{act: actExit}, `再见|拜+|退出|结束(对话|聊天)?|晚安|(下次|回头|改天)(再)?(聊|见)|没事了|(你)?(可以)?(去)?休息了?|退下`),
		ways(intent{act: actHello}, `(你|您|大家)好|哈喽|嗨|早上好|下午好|晚上好|早安|你在(吗|不在)?|在吗`),
		ways(intent{act: actThanks}, `(多|太|非常)?(谢谢|感谢)(你|您)?|多谢|辛苦`),
		ways(intent{act: actWho}, `你(是|叫)(谁|什么|啥)(名字)?|你的?名字(是什么|叫什么)?|(自我)?介绍A(你)?自己|自我介绍A`),
	)
}
