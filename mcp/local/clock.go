package local

import (
	"context"
	"time"

	"xiaozhi/mcp"
)

// currentTime tells the time in the turn's zone, in words of the turn's
// language; the Chinese ones are those of seed 004, 6.2, with the weekday.
func (s *Source) currentTime(ctx context.Context, _ map[string]any) mcp.ActionResponse {
	info := mcp.InfoFrom(ctx)
	now := s.now()
	if info.Zone != nil {
		now = now.In(info.Zone)
	}
	text := "当前时间是: " + now.Format(time.DateTime) + " " + chineseWeekday(now.Weekday())
	if info.Language == "en" {
		text = "The current time is " + now.Format(time.DateTime) + " " + now.Weekday().String()
	}
	return mcp.ActionResponse{Action: mcp.ActionTypeReqLLM, Result: text}
}

func chineseWeekday(day time.Weekday) string {
	return [...]string{"星期日", "星期一", "星期二", "星期三", "星期四", "星期五", "星期六"}[day]
}
