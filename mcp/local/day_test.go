package local_test

import (
	"testing"

	"xiaozhi/mcp"
	"xiaozhi/mcp/local"
)

// TestDaysAndUnits: what get_day, convert_units and a year tell a model; it is 2026-11-21.
func TestDaysAndUnits(t *testing.T) {
	box := beside(t, nil, local.Options{})
	for _, c := range []struct{ language, tool, arguments, want string }{
		{"zh", "get_day", `{"day":"圣诞节"}`, "圣诞节是12月25日，星期五，还有34天。"},
		{"en", "get_day", `{"day":"next friday"}`, "That is Friday, November 27, in 6 days."},
		{"en", "get_day", `{"day":"2027-01-01"}`, "That is Friday, January 1, 2027, in 41 days."},
		{"zh", "convert_units", `{"from":"三斤","to":"克"}`, "3斤是1500克。"},
		{"en", "convert_units", `{"from":"5 miles","to":"km"}`, "5 miles is 8.05 kilometers."},
		{"zh", "get_lunar_calendar", `{"year":1992}`, "1992年是壬申年，属猴。"},
		{"en", "get_lunar_calendar", `{"year":1992}`, "1992 is the year of the Monkey."},
	} {
		if r := call(t, box, c.language, c.tool, c.arguments); r.Action != mcp.ActionTypeReqLLM || mcp.ResultText(r) != c.want {
			t.Errorf("%s%s: %s, want %s", c.tool, c.arguments, mcp.ResultText(r), c.want)
		}
	}
	for tool, arguments := range map[string]string{
		"get_day": `{"day":"my birthday"}`, "convert_units": `{"from":"3 apples","to":"km"}`, "get_lunar_calendar": `{"year":3000}`,
	} {
		if r := call(t, box, "en", tool, arguments); r.Action != mcp.ActionTypeError {
			t.Errorf("%s%s: %+v, want an error", tool, arguments, r)
		}
	}
	if r := call(t, box, "ja", "get_day", `{"day":"明日"}`); r.Action != mcp.ActionTypeError {
		t.Errorf("a day in Japanese: %+v", r)
	}
}
