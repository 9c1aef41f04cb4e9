package lunar

import (
	"testing"
	"time"
)

func TestFindAll(t *testing.T) {
	tuesday := time.Date(2026, 11, 24, 15, 4, 0, 0, time.UTC)
	for words, want := range map[string]string{
		"the weekend": "28 29", "这个周末": "28 29", "next few days": "24 25 26", "这周": "24 25 26 27 28 29 30", "tomorrow": "25", "周五": "27",
	} {
		days, ok := FindAll(words, tuesday)
		got := ""
		for _, d := range days {
			got += d.Format(" 2")
		}
		if !ok || got != " "+want {
			t.Errorf("%s: %s, %v", words, got, ok)
		}
	}
	if days, ok := FindAll("weekend", time.Date(2026, 11, 29, 9, 0, 0, 0, time.UTC)); !ok || len(days) != 1 || days[0].Day() != 29 {
		t.Errorf("on sunday: %v", days)
	}
	if days, ok := FindAll("someday", tuesday); ok {
		t.Error(days)
	}
}
