package sentence

import (
	"slices"
	"strings"
	"testing"

	"xiaozhi/internal/text"
	"xiaozhi/prompts"
)

// TestSplitterLanguages: "|" stands where a text is cut, and where it comes a letter at a time it is cut there too.
func TestSplitterLanguages(t *testing.T) {
	set, err := prompts.Load("")
	if err != nil {
		t.Fatal(err)
	}
	const long = "Und jetzt noch ein Satz, der ganz ohne jede Abkürzung auskommt."
	for _, c := range []struct {
		lang text.Lang
		want string
	}{
		{"ja", "はい。|明日の東京は晴れで、最高気温は二十三度、最低気温は十二度の予想です。|傘はいりません！"},
		{"ja", "「こんにちは。」|と言いました。"},
		{"ko", "네, 알겠습니다.|내일 서울은 맑고 최고 기온은 섭씨 이십삼 도, 최저 기온은 십이 도입니다.|우산은 필요 없어요!"},
		{"vi", "Vâng ạ.|TP. Hồ Chí Minh ngày mai trời nắng, nhiệt độ cao nhất là 33,5 độ C."},
		{"de", "Das kostet 3,50 Euro.|" + long},
		{"de", "Nimm z. B. Obst, d. h. Äpfel,|Birnen usw. oder auch ca. 200 g Nüsse. " + long},
		{"de", "Nimm z.B. einen Apfel.|" + long},
		{"de", "Am 3. Mai um 15:30 Uhr kommt Dr. Müller.|" + long},
		{"de", "Sie sagte: „Komm bald.“|Dann ging sie. " + long},
		{"de", "Sie sagte »Komm bald« und ging.|" + long},
		{"es", "¡Hola!|¿Qué tal estás hoy, querido amigo mío de toda la vida?|Muy bien, gracias."},
		{"es", "No.|El Sr. García y la Sra. López, p. ej., pagaron 3,50 euros en EE.UU. el año pasado."},
		{"es", "¿Sí?|¡Vale!"},
		{"ru", "Яблоки, груши и т. д. стоят 3,5 руб. за штуку.|Это очень хорошая цена для такого времени года, правда?"},
		{"ru", "Он родился в 1799 г. в Москве.|А. С. Пушкин писал стихи, прозу, письма и т.п. всю свою жизнь."},
		{"ru", "Он сказал: «Приходи.»|Потом ушёл."},
		{"fr", "C'est p.ex. une pomme.|« Bonjour », dit-il, et il s'en alla sans un mot de plus à la gare."},
		{"en", "Mr. Smith paid $3.50,|i.e. too much. He will not come to this shop ever again."},
	} {
		want := strings.Split(c.want, "|")
		whole := strings.Join(want, " ")
		if c.lang == "ja" || whole == "¿Sí? ¡Vale!" {
			whole = strings.Join(want, "")
		}
		for _, at := range []int{len(whole), 1} {
			s := Splitter{Lang: c.lang, Words: set.Words(c.lang)}
			var got []string
			runes := []rune(whole)
			for piece := range slices.Chunk(runes, at) {
				got = append(got, s.Feed(string(piece))...)
			}
			got = append(got, s.Flush()...)
			if !slices.Equal(joinShort(got), joinShort(want)) {
				t.Errorf("%s, %d at a time: %q, want %q", c.lang, at, got, want)
			}
		}
	}
}

// joinShort joins what comes after the first segment: later sentences are merged up to a length.
func joinShort(segments []string) []string {
	if len(segments) < 3 {
		return segments
	}
	return []string{segments[0], strings.Join(segments[1:], " ")}
}

func TestSpeakableLanguages(t *testing.T) {
	for lang, want := range map[text.Lang]string{
		"ja": "3 × 4、ここ", "de": "3 × 4, ここ", "zh": "3乘4，ここ", "zh-TW": "3乘4，ここ", "en": "3 times 4, ここ", "": "3 times 4, ここ",
	} {
		if got := Speakable("3 * 4\nここ", lang); got != want {
			t.Errorf("%q: %q, want %q", lang, got, want)
		}
	}
	if got := Speakable("Siehe https://a.example/b mehr", "de"); got != "Siehe mehr" {
		t.Errorf("a link: %q", got)
	}
}

func TestNewLanguage(t *testing.T) {
	for _, c := range []struct {
		words      string
		turn, want text.Lang
	}{
		{"了解しました。", "ja", "ja"}, {"了解。", "ja", "ja"}, {"了解。", "zh", "zh"}, {"Gerne!", "de", "de"}, {"Gladly, of course!", "zh", "en"}, {"Gladly, of course!", "ja", "en"},
		{"OK.", "ja", "ja"}, {"你好", "de", "zh"}, {"Привет!", "en", "ru"}, {"3.", "ko", "ko"}, {"你好", "zh-TW", "zh-TW"}, {"¡Claro!", "zh", "es"},
	} {
		if got := New(c.words, c.turn).Language; got != c.want {
			t.Errorf("%q in %q: %q, want %q", c.words, c.turn, got, c.want)
		}
	}
}
