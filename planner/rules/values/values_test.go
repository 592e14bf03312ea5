package values

import (
	"testing"
	"time"
)

func TestTry(t *testing.T) {
	now := time.Date(2025, 6, 4, 10, 0, 0, 0, time.UTC)
	for _, q := range []struct{ l, s string }{
		{"en", "Send 1,250.50 EUR to bob@x.com tomorrow at 3pm for 2 hours"},
		{"de", "Überweise 1.250,50 EUR an Müller am 03.04.2025 um 2 Uhr, fünfundzwanzig Äpfel"},
		{"en", `create folder reports in "my docs" and cancel order A-99812 or #4711 from 9 to 5`},
		{"en", "what is 15% of $2500 and 3 * (4+5)? last week, Q3 2025, in three days, next Monday"},
		{"fr", "la semaine prochaine à 14h30, vingt-cinq euros, 3 avril 2025, quatre-vingt-dix-sept"},
		{"es", "el 3 de abril de 2025 a las tres y media, veinticinco, mañana"},
		{"en", "half past three on the 5th, April 3rd, 2025 between 3 and 5 pm, 3 to 5 June, an hour and a half, noon, end of the month"},
	} {
		for _, v := range Extract(q.s, Options{Now: now, Language: q.l}) {
			t.Logf("%d %q num=%s unit=%s noun=%s %s %s cue=%s label=%s alt=%d", v.Kind, v.Text, v.Number, v.Unit, v.Noun, v.Time.Format("060102 1504"), v.Until.Format("060102 1504"), v.Cue, v.Label, len(v.Alternatives))
		}
	}
}
