package rules

import (
	"fmt"
	"strings"
	"testing"
)

// saidDates writes the dates and times that a question mentions, resolved on Monday 2 June 2025.
func saidDates(question string) string {
	r := read(question)
	from := today(monday())
	if r.today.full() {
		from = r.today
	}
	var out []string
	for _, m := range r.mentions {
		switch m.kind {
		case kindDate:
			text := m.date.resolve(from).format("", "")
			if m.date.timed {
				text += fmt.Sprintf("T%02d:%02d", m.date.hour, m.date.minute)
			}
			out = append(out, text)
		case kindTime:
			out = append(out, fmt.Sprintf("%02d:%02d", m.date.hour, m.date.minute))
		}
	}
	return strings.Join(out, " ")
}

func TestDates(t *testing.T) {
	for question, want := range map[string]string{
		"weather on 2023-04-03":                         "2023-04-03",
		"weather on 2023/4/3":                           "2023-04-03",
		"from 2023-04-03T16:30:00Z on":                  "2023-04-03T16:30",
		"weather on 2023-13-03":                         "",
		"weather on 2023-12-32":                         "",
		"weather on 04/03/2023":                         "2023-04-03",
		"weather on 23/04/2023":                         "2023-04-23",
		"weather on April 3rd, 2023":                    "2023-04-03",
		"weather on April 3 of 2023":                    "2023-04-03",
		"weather on 3 April 2023":                       "2023-04-03",
		"weather on the 3rd of April 2023":              "2023-04-03",
		"weather on 2023 April 3":                       "2023-04-03",
		"weather in April 2023":                         "2023-04",
		"weather on Apr. 3":                             "",
		"weather on Sept 30":                            "2025-09-30",
		"weather on June 1":                             "2026-06-01",
		"weather on June 2":                             "2025-06-02",
		"weather on June 3":                             "2025-06-03",
		"on april 3 and may 5, 2024":                    "2026-04-03",
		"it may 5 times":                                "",
		"we march 5 miles":                              "",
		"the 5th of march":                              "2026-03-05",
		"the 32nd of April":                             "",
		"weather today":                                 "2025-06-02",
		"weather tomorrow":                              "2025-06-03",
		"weather yesterday":                             "2025-06-01",
		"weather tonight":                               "2025-06-02",
		"weather the day after tomorrow":                "2025-06-04",
		"the day after":                                 "",
		"weather on Monday":                             "2025-06-02",
		"weather on Tuesday":                            "2025-06-03",
		"weather next Monday":                           "2025-06-09",
		"weather last Monday":                           "2025-05-26",
		"weather this Friday":                           "2025-06-06",
		"on sunday":                                     "",
		"Email me tomorrow's schedule":                  "2025-06-03",
		"Email me today's schedule":                     "2025-06-02",
		"today's":                                       "2025-06-02",
		"Today's date is 2024-02-28. Weather tomorrow?": "2024-02-29",
		"Today is March 1, 2024. Weather yesterday?":    "2024-03-01 2024-02-29",
		"current date: 2024-02-28, weather tomorrow":    "2024-02-29",
		"The current weather":                           "",
		"today, 2024-05-06":                             "2024-05-06",
		"tomorrow 5 May 2026 at 4pm":                    "2026-05-05 16:00",
		"at 3pm":                                        "15:00",
		"at 12am":                                       "00:00",
		"at 12 p.m.":                                    "12:00",
		"at 4:30 PM":                                    "16:30",
		"at 09:16":                                      "09:16",
		"at 23:59":                                      "23:59",
		"at 24:00":                                      "",
		"at 12:60":                                      "",
		"at noon":                                       "12:00",
		"at midnight":                                   "00:00",
		"at 5":                                          "",
		"at 5 a.m. tomorrow":                            "05:00 2025-06-03",
		"tomorrow at 5pm":                               "17:00 2025-06-03T17:00",
		"tomorrow by 17:30":                             "17:30 2025-06-03T17:30",
		"June 3, 2025 at 5:30 pm":                       "17:30 2025-06-03T17:30",
		"today's date is tomorrow's":                    "2025-06-03",
		"Friday, June 6, 2025":                          "2025-06-06",
		"from January 5 to January 7, 2024":             "2024-01-05 2024-01-07",
		"the year 2023":                                 "",
		"1999 May":                                      "",
		"2250 May":                                      "",
	} {
		if got := saidDates(question); got != want {
			t.Errorf("%q: got %q, want %q", question, got, want)
		}
	}
}

// The days that a question without a year of its own leaves open are those of its other date.
func TestSharedYear(t *testing.T) {
	if got, want := saidDates("from May 5 to May 7, 2021 and on 3 June"), "2021-05-05 2021-05-07 2021-06-03"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestDateFormats(t *testing.T) {
	d := date{year: 2025, month: 6, day: 3, hour: 17, minute: 5, timed: true}
	for description, want := range map[string]string{
		"":                             "2025-06-03",
		"the day, as DD.MM.YYYY":       "03.06.2025",
		"MM/DD/YYYY":                   "06/03/2025",
		"as YYYY-MM-DD HH:MM:SS":       "2025-06-03 17:05:00",
		"such as 2024-01-02T03:04:05Z": "2025-06-03T17:05:00Z",
		"yyyymmdd":                     "20250603",
	} {
		if got := d.format(description, ""); got != want {
			t.Errorf("%q: got %q, want %q", description, got, want)
		}
	}
	if got, want := d.format("", "date-time"), "2025-06-03T17:05:00Z"; got != want {
		t.Errorf("date-time: got %q, want %q", got, want)
	}
	if got, want := (date{year: 2025, month: 6}).format("", ""), "2025-06"; got != want {
		t.Errorf("a month: got %q, want %q", got, want)
	}
	m := mention{text: "5:05 pm", date: d}
	for description, want := range map[string]string{"": "5:05 pm", "HH:MM": "17:05", "HH:MM:SS": "17:05:00", "in 24-hour form": "17:05"} {
		if got := m.clock(description); got != want {
			t.Errorf("clock %q: got %q, want %q", description, got, want)
		}
	}
}
