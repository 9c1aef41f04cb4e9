package local_test

import (
	"testing"

	"xiaozhi/mcp"
	"xiaozhi/mcp/local"
)

func TestCalendar(t *testing.T) {
	box := beside(t, nil, local.Options{})
	for name, test := range map[string]struct{ language, arguments, want string }{
		"today":          {"zh", ``, "公历2026年11月21日 星期六，农历丙午年（马年）十月十三，下一个节气是11月22日的小雪"},
		"today, en":      {"en", `{}`, "Saturday, 21 November 2026; in the Chinese calendar day 13 of month 10 of the year of the Horse (丙午年十月十三); the next solar term is Minor Snow (小雪) on 22 November"},
		"new year":       {"zh", `{"date":"2026-02-17"}`, "公历2026年2月17日 星期二，农历丙午年（马年）正月初一，春节，下一个节气是2月18日的雨水"},
		"leap month":     {"zh", `{"date":"2025年7月25日"}`, "公历2025年7月25日 星期五，农历乙巳年（蛇年）闰六月初一，下一个节气是8月7日的立秋"},
		"leap month, en": {"en", `{"date":"2033-12-22"}`, "Thursday, 22 December 2033; in the Chinese calendar day 1 of leap month 11 of the year of the Ox (癸丑年闰冬月初一); the next solar term is Minor Cold (小寒) on 5 January"},
		"a term":         {"zh", `{"date":"明天"}`, "公历2026年11月22日 星期日，农历丙午年（马年）十月十四，今日小雪，下一个节气是12月7日的大雪"},
		"a term, en":     {"en", `{"date":"2026-12-22"}`, "Tuesday, 22 December 2026; in the Chinese calendar day 14 of month 11 of the year of the Horse (丙午年冬月十四); the solar term Winter Solstice (冬至) begins; the next solar term is Minor Cold (小寒) on 5 January"},
		"lunar":          {"zh", `{"lunar_date":"2026-8-15"}`, "公历2026年9月25日 星期五，农历丙午年（马年）八月十五，中秋节，下一个节气是10月8日的寒露"},
		"lunar, next":    {"zh", `{"lunar_date":"8-15"}`, "公历2027年9月15日 星期三，农历丁未年（羊年）八月十五，中秋节，下一个节气是9月23日的秋分"},
		"lunar, leap":    {"zh", `{"lunar_date":"2025-r6-1"}`, "公历2025年7月25日 星期五，农历乙巳年（蛇年）闰六月初一，下一个节气是8月7日的立秋"},
		"lunar, 闰":       {"zh", `{"lunar_date":"2025-闰6-1"}`, "公历2025年7月25日 星期五，农历乙巳年（蛇年）闰六月初一，下一个节气是8月7日的立秋"},
		"lunar, today":   {"zh", `{"lunar_date":"10-13"}`, "公历2026年11月21日 星期六，农历丙午年（马年）十月十三，下一个节气是11月22日的小雪"},
	} {
		r := call(t, box, test.language, "get_lunar_calendar", test.arguments)
		if r.Action != mcp.ActionTypeReqLLM || r.Result != test.want {
			t.Errorf("%s: %v, want %s", name, r.Result, test.want)
		}
	}
	for _, arguments := range []string{
		`{"date":"1899-01-01"}`, `{"date":"2101-01-01"}`, `{"date":"soon"}`, `{"lunar_date":"2026-r6-1"}`, `{"lunar_date":"13-1"}`, `{"lunar_date":"x"}`,
		`{"lunar_date":"2026-1-31"}`, `{"lunar_date":"1-2-3-4"}`, `{"lunar_date":"r2026-1-1"}`, `{"date":"2026-02-30"}`,
	} {
		if r := call(t, box, "en", "get_lunar_calendar", arguments); r.Action != mcp.ActionTypeError {
			t.Errorf("%s: %+v, want an error", arguments, r)
		}
	}
}
