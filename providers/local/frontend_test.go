package local

import (
	"os/exec"
	"strings"
	"testing"
	"unicode/utf8"
)

func testFront(testing.TB) *reader { return newReader() }

// say joins the units of a text: English in brackets.
func say(f *reader, text, lang string) string {
	units, _ := f.plan(text, lang)
	var parts []string
	for _, u := range units {
		if u.lang == en {
			u.text = "[" + u.text + "]"
		}
		parts = append(parts, u.text)
	}
	return strings.Join(parts, " ")
}

func TestChineseWords(t *testing.T) {
	for _, tc := range []struct{ in, want string }{
		{"8:30", "八点半"},
		{"8:30-10:00", "八点半到十点"},
		{"8:05", "八点零五分"},
		{"14:45:10", "十四点四十五分十秒"},
		{"2:15", "两点十五分"},
		{"3:20 PM", "下午三点二十分"},
		{"16:9", "十六比九"},
		{"2026年8月8日", "二零二六年八月八日"},
		{"2021年1月1日", "二零二壹年壹月壹日"},
		{"2026-11-21", "二零二六年十壹月二十壹日"},
		{"2026/11/02开会", "二零二六年十壹月二日开会"},
		{"2020-2026年", "二零二零到二零二六年"},
		{"23", "二十三"},
		{"10", "十"},
		{"15", "十五"},
		{"110个", "一百一十个"},
		{"105", "一百零五"},
		{"200", "两百"},
		{"2200", "两千二百"},
		{"10005", "一万零五"},
		{"10500", "一万零五百"},
		{"100000", "十万"},
		{"1,234,567", "一百二十三万四千五百六十七"},
		{"200000001", "二零零零零零零零壹"},
		{"20000000", "两千万"},
		{"0", "零"},
		{"007", "零零七"},
		{"3.14", "三点壹四"},
		{"2.5", "二点五"},
		{"1.2.3", "壹点二点三"},
		{"50%", "百分之五十"},
		{"12.5%", "百分之十二点五"},
		{"30%-50%", "百分之三十到百分之五十"},
		{"-5", "负五"},
		{"-5℃", "零下五摄氏度"},
		{"23℃", "二十三摄氏度"},
		{"15~23℃", "十五到二十三摄氏度"},
		{"90°", "九十度"},
		{"¥3.50", "三点五元"},
		{"￥99", "九十九元"},
		{"$2", "两美元"},
		{"€10", "十欧元"},
		{"3元", "三元"},
		{"2个", "两个"},
		{"2点", "两点"},
		{"第2个", "第二个"},
		{"2月2号", "二月二号"},
		{"12个", "十二个"},
		{"3只猫", "三隻猫"},
		{"两只老虎", "两隻老虎"},
		{"13812345678", "幺三八幺二三四五六七八"},
		{"138-1234-5678", "幺三八幺二三四五六七八"},
		{"拨打110", "拨打幺幺零"},
		{"010-12345678", "零幺零幺二三四五六七八"},
		{"5km", "五公里"},
		{"2kg", "两公斤"},
		{"60km/h", "六十公里每小时"},
		{"1/3", "三分之一"},
		{"3-5天", "三到五天"},
		{"1+1=2", "一加一等于二"},
		{"16GB内存", "十六吉字节内存"},
	} {
		folded, _ := fold(tc.in, zh)
		if got := chineseWords(folded); got != tc.want {
			t.Errorf("%s: %s, want %s", tc.in, got, tc.want)
		}
	}
}

func TestPinyin(t *testing.T) {
	f := testFront(t)
	for _, tc := range []struct{ in, want string }{
		{"你好，世界。", "ni3 hao3, shi4 jie4."},
		{"音乐", "yin1 yue4"},
		{"快乐", "kuai4 le4"},
		{"银行", "yin2 hang2"},
		{"行走", "xing2 zou3"},
		{"长大", "zhang3 da4"},
		{"很长", "hen3 chang2"},
		{"重庆很重要", "chong2 qing4 hen3 zhong4 yao4"},
		{"重新开始", "chong2 xin1 kai1 shi3"},
		{"还钱", "huan2 qian2"},
		{"还有", "hai2 you3"},
		{"了解为了", "liao3 jie3 wei4 le5"},
		{"觉得得到", "jue2 de5 de2 dao4"},
		{"不是", "bu2 shi4"},
		{"不好", "bu4 hao3"},
		{"一个", "yi2 ge4"},
		{"一天", "yi4 tian1"},
		{"第一", "di4 yi1"},
		{"星期一", "xing1 qi1 yi1"},
		{"2021年", "er4 ling2 er4 yi1 nian2"},
		{"女儿绿色", "nv3 er2 lv4 se4"},
		{"三只猫", "san1 zhi1 mao1"},
		{"爸爸妈妈，谢谢！", "ba4 ba5 ma1 ma5, xie4 xie5!"},
		{"重慶銀行", "chong2 qing4 yin2 xing2"},
		{"iPhone 手机", "[iPhone] shou3 ji1"},
		{"打开WiFi和LED灯", "da3 kai1 [WiFi] he2 [L E D] deng1"},
		{"我用MP3听歌", "wo3 yong4 [M P] san1 ting1 ge1"},
		{"人人々", "ren2 ren2 ren2"},
		{"！？。", ""},
		{"", ""},
		{"😀", ""},
	} {
		got := say(f, tc.in, zh)
		if tc.in == "重慶銀行" {
			if !strings.Contains(got, "qing4 yin2") {
				t.Errorf("%s: %q", tc.in, got)
			}
			continue
		}
		if got != tc.want {
			t.Errorf("%s: %q, want %q", tc.in, got, tc.want)
		}
	}
}

func TestEnglishWords(t *testing.T) {
	f := testFront(t)
	for _, tc := range []struct{ in, want string }{
		{"Hello, world!", "[Hello, world!]"},
		{"It’s 23°C & sunny.", "[It's 23 degrees Celsius and sunny.]"},
		{"50% off", "[50 percent off]"},
		{"2026-11-21", "[November 21st, 2026]"},
		{"at 8:00 PM", "[at 8 P M]"},
		{"at 8:30 pm.", "[at 8:30 P M]"},
		{"at 8:00", "[at 8 o'clock]"},
		{"$3.5 million", "[3.5 million dollars]"},
		{"€5 and £6", "[5 euros and 6 pounds]"},
		{"10-20 km", "[10 to 20 kilometers]"},
		{"-5 degrees", "[minus 5 degrees]"},
		{"call 555-123-4567", "[call 5 5 5, 1 2 3, 4 5 6 7]"},
		{"see https://example.com/a?b=c now", "[see link now]"},
		{"Café déjà vu", "[Cafe deja vu]"},
		{"**bold** _text_", "[bold text]"},
		{"wait... what?!", "[wait. what?]"},
		{"I like 重庆 very much, it is a lovely city", "[I like] chong2 qing4 [very much, it is a lovely city]"},
		{"...", ""},
	} {
		if got := say(f, tc.in, en); got != tc.want {
			t.Errorf("%s: %q, want %q", tc.in, got, tc.want)
		}
	}
}

func TestForeignScripts(t *testing.T) {
	f := testFront(t)
	for _, text := range []string{"こんにちは", "Привет", "안녕하세요", "שלום"} {
		if units, foreign := f.plan(text, en); len(units) != 0 || foreign == "" {
			t.Errorf("%s: %v, foreign %q", text, units, foreign)
		}
	}
}

func TestUnitsAreShort(t *testing.T) {
	f := testFront(t)
	for _, text := range []string{strings.Repeat("今天天气很好，", 200), strings.Repeat("好", 2000), strings.Repeat("word ", 400), strings.Repeat("x", 2000)} {
		units, _ := f.plan(text, zh)
		if len(units) < 2 {
			t.Fatalf("%d units", len(units))
		}
		for _, u := range units {
			if u.lang == zh && len(strings.Fields(u.text)) > maxHan || u.lang == en && len(u.text) > 2*maxLatin {
				t.Errorf("unit of %d: %.40q", len(u.text), u.text)
			}
		}
	}
}

func TestPhraseTable(t *testing.T) {
	r := newReader()
	entries := 0
	for entry := range strings.FieldsFuncSeq(phraseTable, func(c rune) bool { return c == ';' || c == '\n' }) {
		f := strings.Fields(entry)
		if len(f) == 0 || strings.HasPrefix(f[0], "//") {
			continue
		}
		entries++
		if n := len([]rune(f[0])); n != len(f)-1 {
			t.Errorf("%q: %d syllables for %d characters", entry, len(f)-1, n)
		}
		for _, s := range f[1:] {
			if !syllable.MatchString(s) {
				t.Errorf("%q: syllable %q", entry, s)
			}
		}
	}
	if len(r.phrases) != entries {
		t.Errorf("%d phrases of %d entries: some are there twice", len(r.phrases), entries)
	}
}

// checkUnits holds what the engines rely on.
func checkUnits(t *testing.T, units []unit) {
	t.Helper()
	for _, u := range units {
		if strings.TrimSpace(u.text) == "" {
			t.Errorf("empty unit: %q", u.text)
		}
		for _, r := range u.text {
			if r < ' ' || r > '~' {
				t.Errorf("%s unit holds %q: %q", u.lang, r, u.text)
			}
		}
		if u.lang == zh {
			for w := range strings.FieldsSeq(u.text) {
				if w = strings.TrimRight(w, ",.!?;:"); !syllable.MatchString(w) {
					t.Errorf("%q is no syllable: %q", w, u.text)
				}
			}
		}
	}
}

func FuzzPlan(f *testing.F) {
	for _, s := range []string{
		"8:30", "今天23℃，-5%", "iPhone 15 手机", "¥3.5万", "2026-13-45", "99:99", "1/0", "不一不一", "々", "a々", "１２３，４５６",
		"\x00\xff", "é́", "000000000000000000", ".......", "$", "-", "第", "1.1.1.1", "a-1", "+86 138 1234 5678",
	} {
		f.Add(s, true)
		f.Add(s, false)
	}
	front := testFront(f)
	f.Fuzz(func(t *testing.T, text string, chinese bool) {
		if utf8.RuneCountInString(text) > MaxChars {
			return
		}
		lang := en
		if chinese {
			lang = zh
		}
		units, _ := front.plan(text, lang)
		checkUnits(t, units)
	})
}

// phonemes asks espeak-ng how it says a Chinese text.
func phonemes(t *testing.T, text string) string {
	t.Helper()
	cmd := exec.Command(needEspeak(t), "-v", chineseVoice, "-b", "1", "-q", "-x", "--stdin")
	cmd.Stdin = strings.NewReader(text)
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(strings.Fields(strings.ReplaceAll(string(out), "_|", "")), " ")
}

func TestPhonemes(t *testing.T) {
	f := testFront(t)
	for _, tc := range []struct{ in, want string }{
		{"音乐", "j'i55n 'yE51"},
		{"银行", "j'i35n X'a35N"},
		{"重庆", "ts.h'ong35 tS;h'i51N"},
		{"长大", "ts.'a21N t'A51"},
		{"你好", "n'i35 X'Au214"},
		{"不是", "p'u35 s.'i.51"},
		{"23", "'@r51 s.'i.35 s'a55n"},
		{"8:30", "p'A55 tiE21n p'a51n"},
	} {
		got := phonemes(t, say(f, tc.in, zh))
		if plain(got) != plain(tc.want) {
			t.Errorf("%s: %s, want %s", tc.in, got, tc.want)
		}
	}
}

// plain drops the stress marks, which do not matter in Chinese.
func plain(s string) string { return strings.ReplaceAll(s, "'", "") }

// Every syllable that the front end can produce must be one toned syllable to
// the voice: a voice that spells, or says the digit, gives more.
func TestEverySyllableHasItsTone(t *testing.T) {
	f := testFront(t)
	seen := map[string]bool{}
	for _, p := range f.phrases {
		for _, s := range p {
			seen[s] = true
		}
	}
	for r := rune(0x4e00); r < 0x9fa6; r++ {
		if s := f.single([]rune{r}, 0); s != "" {
			seen[strings.TrimSuffix(s, "~")] = true
		}
	}
	var all []string
	for s := range seen {
		if s != "m2" && s != "n2" && s != "hm5" && s != "ng2" && s != "m4" && s != "n4" && s != "m5" && s != "n5" { // hums, without a vowel to bear a tone
			all = append(all, s)
		}
	}
	if len(all) < 1000 {
		t.Fatalf("only %d syllables", len(all))
	}
	got := strings.Split(phonemes(t, strings.Join(all, ".\n\n")+"."), " ")
	if len(got) != len(all) {
		t.Fatalf("%d syllables said as %d", len(all), len(got))
	}
	tones := map[byte]string{'1': "55", '2': "35", '3': "21 214", '4': "51", '5': "11 22 33 44"}
	for i, s := range all {
		digits := strings.Map(func(r rune) rune {
			if isDigit(r) {
				return r
			}
			return -1
		}, got[i])
		if digits == "" || !strings.Contains(tones[s[len(s)-1]], digits) {
			t.Errorf("%s is said as %s", s, got[i])
		}
	}
}
