package prompts_test

import (
	"testing"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/prompts"
)

func TestTime(t *testing.T) {
	for _, row := range []struct {
		zone *time.Location
		want string
	}{
		{time.UTC, "Monday, 2026-03-02 15:04 UTC"},
		{time.FixedZone("CET", 60*60), "Monday, 2026-03-02 15:04 CET (UTC+01:00)"},
		{time.FixedZone("-03", -3*60*60), "Monday, 2026-03-02 15:04 UTC-03:00"},
		{time.FixedZone("", 60*60), "Monday, 2026-03-02 15:04 UTC+01:00"},
	} {
		if got := prompts.Time(time.Date(2026, time.March, 2, 15, 4, 59, 0, row.zone)); got != row.want {
			t.Errorf("got %s, want %s", got, row.want)
		}
	}
}
