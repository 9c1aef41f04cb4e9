package intent

import (
	"strings"
	"testing"

	"xiaozhi/internal/text"
	"xiaozhi/prompts"
)

// tongue returns the judge of a language, by the words of the program.
func tongue(tb testing.TB, lang text.Lang) Tongue {
	tb.Helper()
	set, err := prompts.Load("")
	if err != nil {
		tb.Fatal(err)
	}
	return Tongue{lang, set.Words(lang)}
}

func TestTongueClassify(t *testing.T) {
	for _, c := range []struct {
		lang  text.Lang
		want  Kind
		texts string // separated by |
	}{
		{"ja", Noise, "駅|えき|ね"},
		{"ja", Backchannel, "あ|えっと|あの|う、|はい|うん、うん|そうですか|なるほど。|へえ、そうなんだ|わかりました|ありがとうございます|OK"},
		{"ja", Stop, "ストップ|止めて|ちょっと待って|もういいよ|小智、静かにして|止めてください|うん、止めて|停止"},
		{"ja", Request, "電気をつけて|明日の天気は|音楽を止めて電気を消して|停車駅はどこ|次|不要な物|別の曲|没問題なに|今日は何曜日"},
		{"ko", Noise, "불|좀"},
		{"ko", Backchannel, "어|음|네|네, 네|그래요|알겠습니다|정말|고마워"},
		{"ko", Stop, "그만|그만해 줘|잠깐만|조용히 해|이제 그만"},
		{"ko", Request, "불 켜 줘|네가 뭐야|다음|그만 듣고 불 꺼 줘|내일 날씨 어때"},
		{"vi", Noise, "nhạc|đi"}, {"vi", Backchannel, "à|ờ|vâng|ừ, ừ|đúng rồi|cảm ơn"}, {"vi", Stop, "dừng lại|thôi đi|chờ một chút|dừng lại đi"},
		{"vi", Request, "bật đèn phòng khách|dừng lại rồi bật đèn|mấy giờ rồi|tiếp"},
		{"de", Noise, "Licht|der|the"}, {"de", Backchannel, "ähm|Ja.|ja, ja|Ach so!|genau|vielen Dank|alles klar"}, {"de", Stop, "Stopp!|Hör auf|jetzt sei still|warte mal bitte|halt"},
		{"de", Request, "Mach das Licht an|Stopp, und mach das Licht aus|lauter|wie spät ist es|was war das|no way man"},
		{"es", Noise, "luz|y"}, {"es", Backchannel, "eh|sí|vale, vale|claro|ya veo|muchas gracias"}, {"es", Stop, "para|¡Basta!|espera, un segundo|cállate ya|para por favor"},
		{"es", Request, "enciende la luz|para la música y enciende la luz|siguiente|¿Qué hora es?|para mañana"},
		{"ru", Noise, "свет|уже"}, {"ru", Backchannel, "э|ну|да|ага, понятно|хорошо|ну да"}, {"ru", Stop, "стоп|хватит уже|подожди, пожалуйста|замолчи|выключи музыку"},
		{"ru", Request, "включи свет|стоп и включи свет|громче|сколько времени"},
		{"fr", Noise, "euh|non|stop|wait|好"}, {"fr", Request, "allume la lumière|hold on|好的好的"},
	} {
		own := tongue(t, c.lang)
		for words := range strings.SplitSeq(c.texts, "|") {
			if got := own.Classify(words, nil); got != c.want {
				t.Errorf("%q in %s: %v, want %v", words, c.lang, got, c.want)
			}
		}
	}
	if tongue(t, "fr").Classify("tais-toi", []string{"tais-toi"}) != Stop || tongue(t, "ja").Classify("停", []string{"停"}) != Stop {
		t.Error("a stop-word of the settings does not count")
	}
	if own := tongue(t, "zh-TW"); own.Classify("停一下", nil) != Stop || own.Classify("打开灯", nil) != Request {
		t.Error("Chinese of Taiwan is not Chinese")
	}
	if (Tongue{Lang: "de"}).Classify("ja", nil) != Noise {
		t.Error("without words")
	}
}

func TestTongueComplete(t *testing.T) {
	for _, c := range []struct {
		lang  text.Lang
		want  Completeness
		texts string
	}{
		{"ja", Finished, "ストップ|はい|明日の天気は？|電気をつけて。|さようなら"}, {"ja", Unfinished, "電気を|それから|えっと|明日の会議について|3分後に"}, {"ja", Undecided, "電気をつけて|明日の天気|電気を。|26"},
		{"ko", Finished, "네|그만|내일 날씨 어때?"}, {"ko", Unfinished, "불을 켜고 그리고|노래를|만약"}, {"ko", Undecided, "불 켜 줘|26"},
		{"vi", Finished, "dừng lại|bật đèn."}, {"vi", Unfinished, "bật đèn và|nếu|bật đèn ở"}, {"vi", Undecided, "bật đèn"},
		{"de", Finished, "ja|Stopp|Mach das Licht an.|Wie spät ist es?"}, {"de", Unfinished, "Mach das Licht und|weil|erinnere mich, dass|stell den Wecker auf"}, {"de", Undecided, "Mach das Licht an|der Hund|und.|um 7"},
		{"es", Finished, "sí|para la música|¿Qué hora es?"}, {"es", Unfinished, "enciende la|y|pon un recordatorio para"}, {"es", Undecided, "enciende la luz|casa"},
		{"ru", Finished, "да|стоп|включи свет!"}, {"ru", Unfinished, "включи свет и|потому что|напомни мне в"}, {"ru", Undecided, "включи свет|молоко"},
		{"fr", Undecided, "allume la|然后|and|因为"}, {"fr", Finished, "allume la lumière."},
	} {
		own := tongue(t, c.lang)
		for words := range strings.SplitSeq(c.texts, "|") {
			if got := own.Complete(words); got != c.want {
				t.Errorf("%q in %s: %v, want %v", words, c.lang, got, c.want)
			}
		}
	}
	if tongue(t, "yue").Complete("帮我") != Unfinished || tongue(t, "").Complete("turn on the") != Unfinished {
		t.Error("Chinese and English are judged by other rules")
	}
}

func TestTongueYesNo(t *testing.T) {
	for lang, c := range map[text.Lang]struct{ action, yes, no, unclear string }{
		"ja": {"ドアを開ける", "はい|うん、いいよ|はい、お願いします|はい、ドアを開ける", "いいえ|だめ|やめて|はい、やっぱりやめて|いらない|ちょっと待って", "今何時ですか|はい？|えっと"},
		"ko": {"문 열기", "네|응, 좋아|네, 문 열기", "아니요|안 돼|네, 아니 하지 마|취소", "지금 몇 시야|네?|음"},
		"vi": {"mở cửa", "có|vâng|đồng ý|ừ mở cửa đi", "không|đừng|vâng, à thôi|hủy", "mấy giờ rồi|có?|à"},
		"de": {"die Tür öffnen", "ja|Ja, bitte.|ja mach das|klar, die Tür öffnen", "nein|nicht jetzt|ja, nein, doch nicht|abbrechen|lass es", "wie spät ist es|ja?|ähm"},
		"es": {"abrir la puerta", "sí|Sí, por favor.|claro, hazlo|de acuerdo", "no|mejor no|sí, no, espera|cancela", "¿qué hora es?|sí?|eh"},
		"ru": {"открыть дверь", "да|да, конечно|хорошо, открыть дверь", "нет|не надо|да нет|отмена", "который час|да?|ну"},
		"fr": {"ouvrir la porte", "", "", "oui|non|yes|好的"},
	} {
		own := tongue(t, lang)
		for want, texts := range map[Answer]string{Yes: c.yes, No: c.no, Unclear: c.unclear} {
			for words := range strings.SplitSeq(texts, "|") {
				if got := own.YesNo(words, c.action); words != "" && got != want {
					t.Errorf("%q in %s: %d, want %d", words, lang, got, want)
				}
			}
		}
	}
	for lang, words := range map[text.Lang]string{"ja": "はい、でもその前に", "de": "ja aber wie spät ist es", "ru": "ну"} {
		if !tongue(t, lang).Answering(words) {
			t.Errorf("%q in %s is no answer", words, lang)
		}
	}
	if tongue(t, "de").Answering("wie spät ist es") || tongue(t, "en").YesNo("yes", "x") != Yes || !tongue(t, "zh").Answering("嗯") {
		t.Error("a request passes for an answer, or English and Chinese do not")
	}
}

func TestTongueEcho(t *testing.T) {
	const playing = "Ich habe das Licht im Wohnzimmer angemacht"
	for words, want := range map[string]bool{"das Licht im Wohnzimmer": true, "nicht das Licht im Wohnzimmer": false, "Stopp": false, "wie spät ist es denn": false} {
		if got := tongue(t, "de").Echo(words, playing); got != want {
			t.Errorf("%q: %v", words, got)
		}
	}
	if !tongue(t, "ja").Echo("明日は晴れるでしょう", "東京の明日は晴れるでしょう") || !tongue(t, "zh").Echo("明天是晴天", "北京明天是晴天") {
		t.Error("an echo is not known")
	}
}

func FuzzTongue(f *testing.F) {
	for lang, words := range map[string]string{"ja": "はい、ドアを", "ko": "네 그만", "de": "ja nein\xff", "es": "¿sí?", "ru": "да_нет", "vi": "", "fr": "_"} {
		f.Add(lang, words, words)
	}
	set, err := prompts.Load("")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, lang, words, other string) {
		own := Tongue{text.Lang(lang), set.Words(text.Lang(lang))}
		if once, again := own.Classify(words, []string{other}), own.Classify(words, []string{other}); once != again {
			t.Errorf("%v, then %v", once, again)
		}
		if spokenSigns(words) == "" && own.Classify(words, nil) != Noise {
			t.Errorf("%q is more than noise", words)
		}
		if no := own.words().Negations; len(no) > 0 && own.YesNo(words+" "+no[0], other) == Yes {
			t.Errorf("%q with %q is a yes", words, no[0])
		}
		own.Complete(words)
		own.Echo(words, other)
		own.Answering(words)
	})
}
