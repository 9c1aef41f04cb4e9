package local_test

import (
	"fmt"
	"strings"
	"testing"

	"xiaozhi/mcp"
	"xiaozhi/mcp/local"
)

// TestCalendarAsked: days by the names people call them; it is 2026-11-21.
func TestCalendarAsked(t *testing.T) {
	box := beside(t, nil, local.Options{})
	for arguments, want := range map[string]string{
		`{"date":"今年中秋节"}`: "公历2026年9月25日 星期五", `{"date":"中秋节"}`: "公历2027年9月15日 星期三", `{"date":"明年的中秋"}`: "公历2027年9月15日", `{"date":"明年端午节"}`: "公历2027年6月9日", `{"date":"Mid-Autumn Festival next year"}`: "公历2027年9月15日",
		`{"date":"大年三十"}`: "公历2027年2月5日 星期五，农历丙午年（马年）腊月廿九，除夕", `{"date":"春节"}`: "公历2027年2月6日", `{"date":"去年除夕"}`: "公历2025年1月28日", `{"date":"清明节"}`: "公历2027年4月5日", `{"date":"冬至"}`: "公历2026年12月22日", `{"date":"今年国庆节"}`: "公历2026年10月1日", `{"date":"chinese new year"}`: "公历2027年2月6日", `{"date":"母亲节"}`: "公历2027年5月9日",
		// there is no thirtieth from 2025 to 2029
		`{"lunar_date":"12-30"}`: "公历2027年2月5日", `{"lunar_date":"2025-12-30"}`: "公历2026年2月16日", `{"lunar_date":"2024-12-30"}`: "公历2025年1月28日", `{"lunar_date":"2029-12-30"}`: "公历2030年2月2日", `{"lunar_date":"大年三十"}`: "公历2027年2月5日",
		`{"lunar_date":"八月十五"}`: "公历2027年9月15日", `{"lunar_date":"正月初一"}`: "公历2027年2月6日", `{"lunar_date":"腊月二十三"}`: "公历2027年1月30日", `{"lunar_date":"冬月廿三"}`: "公历2026年12月31日", `{"lunar_date":"2025年闰六月初一"}`: "公历2025年7月25日", `{"lunar_date":"闰六月初一"}`: "公历2036年7月23日", `{"lunar_date":"农历二零二六年八月十五"}`: "公历2026年9月25日",
	} {
		if r := call(t, box, "zh", "get_lunar_calendar", arguments); r.Action != mcp.ActionTypeReqLLM || !strings.HasPrefix(mcp.ResultText(r), want) {
			t.Errorf("%s: %s, want %s", arguments, mcp.ResultText(r), want)
		}
	}
	for _, arguments := range []string{`{"date":"节"}`, `{"date":"今年"}`, `{"date":"我的生日"}`, `{"lunar_date":"闰月"}`, `{"lunar_date":"2026-2-30"}`, `{"lunar_date":"腊月三十一"}`, `{"lunar_date":"二〇二六年闰六月初一"}`, `{"lunar_date":"--"}`, `{"lunar_date":"99999999999999999999-1-1"}`} {
		if r := call(t, box, "zh", "get_lunar_calendar", arguments); r.Action != mcp.ActionTypeError {
			t.Errorf("%s: %+v, want an error", arguments, r)
		}
	}
}

// TestCalendarThereAndBack: the lunar date that the tool tells leads back to the day.
func TestCalendarThereAndBack(t *testing.T) {
	box := beside(t, nil, local.Options{})
	for _, day := range []string{"1900-01-31", "1949-10-01", "2020-05-23", "2020-06-20", "2025-07-25", "2026-02-16", "2033-12-22", "2034-01-19", "2100-12-30"} {
		told := mcp.ResultText(call(t, box, "zh", "get_lunar_calendar", fmt.Sprintf(`{"date":%q}`, day)))
		_, lunar, _ := strings.Cut(told, "年）")
		lunar, _, _ = strings.Cut(lunar, "，")
		year := day[:4]
		if strings.HasPrefix(lunar, "腊月") || day == "2034-01-19" {
			year = fmt.Sprint(map[bool]int{true: 2025, false: 2033}[day == "2026-02-16"])
		}
		if day == "2100-12-30" {
			year = "2100"
		}
		back := mcp.ResultText(call(t, box, "zh", "get_lunar_calendar", fmt.Sprintf(`{"lunar_date":"%s年%s"}`, year, lunar)))
		if back != told {
			t.Errorf("%s is %s, and %s年%s is %s", day, told, year, lunar, back)
		}
	}
}
