package measure

import (
	"strings"
	"testing"

	"xiaozhi/internal/text"
)

// TestConvert: quantities as they are said, in both languages.
func TestConvert(t *testing.T) {
	for said, want := range map[string]string{
		"一斤 > 克": "1斤是500克。", "三斤半 > 公斤": "3.5斤是1.75公斤。", "一米八 > 厘米": "1.8米是180厘米。", "一米七五 > 英尺": "1.75米是5.74英尺。", "五英里 > 公里": "5英里是8.05公里。",
		"一百华氏度 > 摄氏度": "100华氏度是37.78摄氏度。", "华氏一百度 > 摄氏度": "100华氏度是37.78摄氏度。", "零下十摄氏度 > 华氏度": "-10摄氏度是14华氏度。", "两亩 > 平方米": "2亩是1333.3平方米。", "半公斤 > 斤": "0.5公斤是1斤。",
		"三个小时 > 分钟": "3小时是180分钟。", "一个半小时 > 分钟": "1.5小时是90分钟。", "一天 > 小时": "1天是24小时。", "二点五公里 > 米": "2.5公里是2500米。", "2.5公里 > 米": "2.5公里是2500米。", "一公斤 > 斤": "1公斤是2斤。", "三两 > 克": "3两是150克。",
		"a pound > grams": "1 pound is 453.6 grams.", "six feet > centimeters": "6 feet is 182.88 centimeters.", "5 feet 10 inches > cm": "5.83 feet is 177.8 centimeters.", "five foot nine > cm": "5.75 feet is 175.26 centimeters.", "五亩地 > 平方米": "5亩是3333.3平方米。", "两斤三两 > 克": "2.3斤是1150克。", "一斤肉 > 克": "1斤是500克。", "a pound of butter > grams": "1 pound is 453.6 grams.", "half a mile > meters": "0.5 miles is 804.7 meters.",
		"350 degrees fahrenheit > celsius": "350 degrees fahrenheit is 176.7 degrees celsius.", "minus 40 celsius > fahrenheit": "-40 degrees celsius is -40 degrees fahrenheit.", "one and a half cups > ml": "1.5 cups is 354.9 milliliters.",
		"three hours > minutes": "3 hours is 180 minutes.", "a week > hours": "1 week is 168 hours.", "2.5 kg > pounds": "2.5 kilos is 5.51 pounds.", "1 inch > miles": "1 inch is 0.0000158 miles.", "a hundred miles > km": "100 miles is 160.9 kilometers.",
	} {
		from, to, _ := strings.Cut(said, " > ")
		if got, ok := Convert(from, to, text.Of(said)); !ok || got != want {
			t.Errorf("%s: %q, want %q", said, got, want)
		}
	}
	for _, said := range []string{"一斤 > 米", "wife > coffee", "三个人 > 克", "a pound > pounds", " > 米", "三 > 克", "people > london", "3 > km", "- > km", "1e9 km > m"} {
		from, to, _ := strings.Cut(said, " > ")
		if got, ok := Convert(from, to, text.Of(said)); ok {
			t.Errorf("%s: %q, want nothing", said, got)
		}
	}
}

// TestUnits: every line of the table can be read, and no name stands for two units.
func TestUnits(t *testing.T) {
	names := 0
	for line := range strings.Lines(unitsFile) {
		fields := strings.Fields(line)
		if len(fields) < 5 {
			t.Fatalf("%q", line)
		}
		names += len(fields[4:]) + len(strings.Split(fields[3], ","))
		u := unitOf(strings.ReplaceAll(fields[4], "_", " "))
		if u == nil || u.factor <= 0 || unitOf(u.zh) != u {
			t.Errorf("%q: %+v", line, u)
		}
	}
	if names != len(units()) {
		t.Errorf("%d names, %d of them different", names, len(units()))
	}
}
