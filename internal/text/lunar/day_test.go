package lunar

import (
	"strings"
	"testing"
	"time"

	"xiaozhi/internal/text"
)

// TestFind: days by what people call them, told as an answer; it is a Tuesday.
func TestFind(t *testing.T) {
	now := time.Date(2026, 11, 24, 15, 4, 0, 0, time.FixedZone("CST", 8*3600))
	for words, want := range map[string]string{
		"圣诞节": "圣诞节是12月25日，星期五，还有31天。", "圣诞": "圣诞节是12月25日，星期五，还有31天。", "春节": "春节是2027年2月6日，星期六，还有74天。", "过年": "春节是2027年2月6日，星期六，还有74天。",
		"明天": "明天是11月25日，星期三。", "后天": "后天是11月26日，星期四。", "昨天": "昨天是11月23日，星期一。", "今天": "今天是11月24日，星期二。", "前天": "前天是11月22日，星期日。", "大前天": "11月21日，星期六，过去3天了。",
		"上周五": "11月20日，星期五，过去4天了。", "上周二": "11月17日，星期二，过去7天了。", "上个星期一": "11月16日，星期一，过去8天了。", "三天前": "11月21日，星期六，过去3天了。", "两个星期以前": "11月10日，星期二，过去14天了。",
		"五一": "劳动节是2027年5月1日，星期六，还有158天。", "今年国庆节": "国庆节是10月1日，星期四，过去54天了。", "农历八月十五": "2027年9月15日，星期三，还有295天。", "正月十五": "2027年2月20日，星期六，还有88天。", "冬至": "冬至是12月22日，星期二，还有28天。", "清明": "清明是2027年4月5日，星期一，还有132天。",
		"christmas": "Christmas is on Friday, December 25, in 31 days.", "Christmas Day": "Christmas is on Friday, December 25, in 31 days.", "new year's": "New Year's Day is on Friday, January 1, 2027, in 38 days.", "the spring festival": "Chinese New Year is on Saturday, February 6, 2027, in 74 days.",
		"tomorrow": "Tomorrow is Wednesday, November 25.", "yesterday": "Yesterday was Monday, November 23.", "saturday": "That is Saturday, November 28, in 4 days.", "last friday": "That was Friday, November 20, 4 days ago.", "last tuesday": "That was Tuesday, November 17, 7 days ago.", "two weeks ago": "That was Tuesday, November 10, 14 days ago.",
		"thanksgiving": "Thanksgiving is on Thursday, November 26, in 2 days.", "easter": "Easter is on Sunday, March 28, 2027, in 124 days.", "easter this year": "Easter was on Sunday, April 5, 233 days ago.", "halloween": "Halloween is on Sunday, October 31, 2027, in 341 days.", "christmas 2030": "Christmas is on Wednesday, December 25, 2030, in 1492 days.", "2028年春节": "春节是2028年1月26日，星期三，还有428天。", "周末": "11月28日，星期六，还有4天。", "november 1st 1953": "That was Sunday, November 1, 1953, 26686 days ago.", "next weekend": "That is Saturday, December 5, in 11 days.", "mothers day": "Mother's Day is on Sunday, May 9, 2027, in 166 days.", "the mid-autumn festival": "Mid-Autumn Festival is on Wednesday, September 15, 2027, in 295 days.",
	} {
		d, ok := Find(words, now)
		if got := d.Say(now, text.Of(words), false); !ok || got != want {
			t.Errorf("%s: %q, %v, want %q", words, got, ok, want)
		}
	}
	for words, want := range map[string]string{"圣诞节": "还有4个星期零3天。", "december 8": "in 2 weeks.", "december 2": "in 1 week and 1 day.", "saturday": "in 4 days."} {
		d, _ := Find(words, now)
		if got := d.Say(now, text.Of(words), true); !strings.HasSuffix(got, want) {
			t.Errorf("%s in weeks: %q, want %q", words, got, want)
		}
	}
	for _, words := range []string{"", "my birthday", "节", "我的生日", "the party", "february 30 1999", "christmas 99", "上", "last", "ago", "农历", "农历十三月一号", "next", "前", "三"} {
		if d, ok := Find(words, now); ok {
			t.Errorf("%q is %v", words, d)
		}
	}
}

func TestEaster(t *testing.T) {
	for _, want := range []string{"1954-04-18", "1981-04-19", "2000-04-23", "2024-03-31", "2025-04-20", "2026-04-05", "2027-03-28", "2038-04-25", "2076-04-19"} {
		if d := date(t, want); !easter(d.Year()).Equal(d) {
			t.Errorf("%v, want %s", easter(d.Year()), want)
		}
	}
}

// TestAliases: each stands for a name that there is.
func TestAliases(t *testing.T) {
	for line := range strings.Lines(aliasesFile) {
		other, own, _ := strings.Cut(strings.TrimSpace(line), "\t")
		if n := called()[other]; n.zh == "" || folded(other) != other {
			t.Errorf("%s stands for %q, which is none", other, own)
		}
	}
}

// TestSaid: what the calendar answers.
func TestSaid(t *testing.T) {
	now := time.Date(2026, 11, 24, 15, 4, 0, 0, time.UTC)
	for want, got := range map[string]func() (string, error){
		"农历丙午年十月十六。":                                                                  func() (string, error) { return SayDate(now, text.Chinese) },
		"In the Chinese calendar it is day 16 of month 10, in the year of the Horse.": func() (string, error) { return SayDate(now, text.English) },
		"1992年是壬申年，属猴。":                                                               func() (string, error) { return SayYear(1992, text.Chinese) },
		"2027 is the year of the Goat.":                                               func() (string, error) { return SayYear(2027, text.English) },
		"下一个节气是大雪，12月7日，还有13天。":                                                       func() (string, error) { return SayTerm(now, text.Chinese), nil },
		"今天是大雪，下一个节气是冬至，12月22日，还有15天。":                                                func() (string, error) { return SayTerm(date(t, "2026-12-07"), text.Chinese), nil },
		"不是节日。下一个节日：感恩节就是后天，11月26日，星期四。":                                              func() (string, error) { return SayFestivals(now, now, text.Chinese), nil },
		"Today is Christmas.":                                                         func() (string, error) { d := date(t, "2026-12-25"); return SayFestivals(d, d, text.English), nil },
		"2月6日是春节。":                                                                    func() (string, error) { return SayFestivals(date(t, "2027-02-06"), now, text.Chinese), nil },
		"The next solar term is Major Snow, on December 7, in 13 days.":               func() (string, error) { return SayTerm(now, text.English), nil },
	} {
		if said, err := got(); err != nil || said != want {
			t.Errorf("%q, %v, want %q", said, err, want)
		}
	}
	if _, err := SayYear(1, text.Chinese); err == nil {
		t.Error("the year 1 has an animal")
	}
}
