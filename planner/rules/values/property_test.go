package values

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/agenticnexus/agenticnexus/internal/schema"
)

// grouped writes a number with marks between thousands and before decimals.
func grouped(n int64, cents int, thousand, point string) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + thousand + s[i:]
	}
	return fmt.Sprintf("%s%s%02d", s, point, cents)
}

// one extracts the only value of a kind.
func one(t *rapid.T, language, text string, kind Kind) Value {
	var found []Value
	for _, v := range Extract(text, Options{Now: now(), Language: language}) {
		if v.Kind == kind {
			found = append(found, v)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%s %q: got %s, want one %s", language, text, showAll(found), kindNames[kind])
	}
	return found[0]
}

func TestWrittenNumbersAreRead(t *testing.T) {
	forms := []struct{ language, thousand, point string }{
		{"en", ",", "."}, {"en", "", "."}, {"de", ".", ","}, {"de", "", ","}, {"fr", " ", ","}, {"fr", "\u202f", ","}, {"fr", "\u00a0", ","}, {"es", ".", ","}, {"de", "'", "."},
	}
	rapid.Check(t, func(t *rapid.T) {
		n, cents := rapid.Int64Range(0, 1e12).Draw(t, "n"), rapid.IntRange(0, 99).Draw(t, "cents")
		form := rapid.SampledFrom(forms).Draw(t, "form")
		text := grouped(n, cents, form.thousand, form.point) + " EUR"
		v := one(t, form.language, text, Money)
		want := strings.TrimRight(strings.TrimRight(fmt.Sprintf("%d.%02d", n, cents), "0"), ".")
		if n == 0 && cents == 0 {
			want = "0"
		}
		if want == "" || string(v.Number) != want && !(cents == 0 && string(v.Number) == strconv.FormatInt(n, 10)) || v.Unit != "EUR" || v.Alternatives != nil {
			t.Fatalf("%q: got %s, want %s", text, show(v), want)
		}
	})
}

// english spells a number below a million.
func english(n int) string {
	small := strings.Fields("zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen")
	tens := strings.Fields("- - twenty thirty forty fifty sixty seventy eighty ninety")
	rest := func(n, unit int, and string) string {
		if n%unit == 0 {
			return ""
		}
		return and + english(n%unit)
	}
	switch {
	case n < 20:
		return small[n]
	case n < 100:
		return tens[n/10] + rest(n, 10, "-")
	case n < 1000:
		return small[n/100] + " hundred" + rest(n, 100, " and ")
	}
	return english(n/1000) + " thousand" + rest(n, 1000, " ")
}

// german spells a number below a million.
func german(n int) string {
	small := strings.Fields("null eins zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn fünfzehn sechzehn siebzehn achtzehn neunzehn")
	tens := strings.Fields("- - zwanzig dreißig vierzig fünfzig sechzig siebzig achtzig neunzig")
	rest := func(n int) string {
		if n == 0 {
			return ""
		}
		return german(n)
	}
	switch {
	case n < 20:
		return small[n]
	case n < 100 && n%10 == 0:
		return tens[n/10]
	case n < 100:
		ones := small[n%10]
		if n%10 == 1 {
			ones = "ein"
		}
		return ones + "und" + tens[n/10]
	case n < 1000:
		return strings.Replace(small[n/100], "eins", "ein", 1) + "hundert" + rest(n%100)
	}
	thousands := german(n / 1000)
	if strings.HasSuffix(thousands, "eins") {
		thousands = strings.TrimSuffix(thousands, "s")
	}
	return thousands + "tausend" + rest(n%1000)
}

// french spells a number below a thousand.
func french(n int) string {
	small := strings.Fields("zéro un deux trois quatre cinq six sept huit neuf dix onze douze treize quatorze quinze seize dix-sept dix-huit dix-neuf")
	tens := strings.Fields("- - vingt trente quarante cinquante soixante soixante quatre-vingt quatre-vingt")
	switch {
	case n < 20:
		return small[n]
	case n == 80:
		return "quatre-vingts"
	case n < 100:
		base := n / 10
		rest := n % 10
		if base == 7 || base == 9 {
			rest += 10
		}
		switch {
		case rest == 0:
			return tens[base]
		case (rest == 1 || rest == 11) && base < 8:
			return tens[base] + " et " + small[rest]
		}
		return tens[base] + "-" + small[rest]
	}
	out := "cent"
	if n >= 200 {
		out = small[n/100] + " cent"
	}
	if n%100 > 0 {
		out += " " + french(n%100)
	}
	return out
}

// spanish spells a number below a thousand.
func spanish(n int) string {
	small := strings.Fields("cero uno dos tres cuatro cinco seis siete ocho nueve diez once doce trece catorce quince dieciséis diecisiete dieciocho diecinueve veinte")
	tens := strings.Fields("- - - treinta cuarenta cincuenta sesenta setenta ochenta noventa")
	hundreds := strings.Fields("- ciento doscientos trescientos cuatrocientos quinientos seiscientos setecientos ochocientos novecientos")
	switch {
	case n <= 20:
		return small[n]
	case n < 30:
		return "veinti" + small[n-20]
	case n == 100:
		return "cien"
	case n < 100 && n%10 == 0:
		return tens[n/10]
	case n < 100:
		return tens[n/10] + " y " + small[n%10]
	case n%100 == 0:
		return hundreds[n/100]
	}
	return hundreds[n/100] + " " + spanish(n%100)
}

func TestSpelledNumbersAreRead(t *testing.T) {
	for language, spell := range map[string]func(int) string{"en": english, "de": german, "fr": french, "es": spanish} {
		most := 999
		if language == "en" || language == "de" {
			most = 9999
		}
		for n := 2; n <= most; n += 1 + n/200 {
			got := Extract(spell(n), Options{Now: now(), Language: language})
			if len(got) == 0 || got[0].Kind != Number && got[0].Kind != Ordinal || string(got[0].Number) != strconv.Itoa(n) || got[0].Text != spell(n) {
				t.Fatalf("%s %q: got %s, want %d", language, spell(n), showAll(got), n)
			}
		}
	}
}

func TestWrittenDatesAreRead(t *testing.T) {
	months := map[string][]string{
		"en": strings.Fields("January February March April May June July August September October November December"),
		"de": strings.Fields("Januar Februar März April Mai Juni Juli August September Oktober November Dezember"),
		"fr": strings.Fields("janvier février mars avril mai juin juillet août septembre octobre novembre décembre"),
		"es": strings.Fields("enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre"),
	}
	forms := []struct{ language, layout string }{
		{"en", "2006-01-02"}, {"en", "MONTH 2, 2006"}, {"en", "2 MONTH 2006"}, {"en", "the 2th of MONTH 2006"}, {"en", "02.01.2006"}, {"en", "2006/1/2"},
		{"de", "02.01.2006"}, {"de", "2.1.2006"}, {"de", "2. MONTH 2006"}, {"de", "02/01/2006"}, {"de", "2006-01-02"},
		{"fr", "2 MONTH 2006"}, {"fr", "02/01/2006"}, {"fr", "le 2 MONTH 2006"}, {"es", "2 de MONTH de 2006"}, {"es", "el 2 de MONTH del 2006"}, {"es", "02-01-2006"},
	}
	rapid.Check(t, func(t *rapid.T) {
		day := now().AddDate(0, 0, rapid.IntRange(-9000, 9000).Draw(t, "day"))
		form := rapid.SampledFrom(forms).Draw(t, "form")
		text := strings.Replace(day.Format(form.layout), "MONTH", months[form.language][day.Month()-1], 1)
		v := one(t, form.language, text, Date)
		if v.Time.Format(time.DateOnly) != day.Format(time.DateOnly) || v.Alternatives != nil {
			t.Fatalf("%q: got %s, want %s", text, show(v), day.Format(time.DateOnly))
		}
	})
}

func TestWrittenTimesAreRead(t *testing.T) {
	forms := []struct{ language, layout string }{
		{"en", "15:04"}, {"en", "3:04pm"}, {"en", "3:04 PM"}, {"en", "15:04:05"}, {"de", "15:04 Uhr"}, {"de", "15.04 Uhr"}, {"fr", "15h04"}, {"es", "15:04"},
		{"en", "2006-01-02T15:04:05Z07:00"},
	}
	rapid.Check(t, func(t *rapid.T) {
		at := now().Truncate(24 * time.Hour).Add(time.Duration(rapid.IntRange(0, 24*60-1).Draw(t, "minute")) * time.Minute)
		form := rapid.SampledFrom(forms).Draw(t, "form")
		v := one(t, form.language, at.Format(form.layout), Time)
		decided := !strings.Contains(form.layout, "Uhr") || at.Hour() >= 12 || at.Hour() == 0
		if v.Time.Format("15:04") != at.Format("15:04") || decided && v.Alternatives != nil {
			t.Fatalf("%q: got %s", at.Format(form.layout), show(v))
		}
	})
}

// TestWorkIsLinear compares a text with one ten times as long. What is allocated is a measure of the work.
func TestWorkIsLinear(t *testing.T) {
	for _, part := range []string{"1 + ", "( ", "' ", "\" ", "« ", "from 9 to ", "a/", "x@", "x,", "1,", "1,111,", "3.", "1 000 ", "twenty ", "ein", "3 and ", "Paris de ", "key: ", "3 to 5 ", "hour and "} {
		work := func(bytes int) float64 {
			return testing.AllocsPerRun(1, func() { Extract(strings.Repeat(part, bytes/len(part)), Options{Now: now(), Language: "en"}) })
		}
		if short, long := work(400), work(4000); long > 12*short+1000 {
			t.Errorf("%q: got %v allocations for 400 bytes and %v for 4,000", part, short, long)
		}
	}
}

func FuzzExtract(f *testing.F) {
	for _, text := range []string{
		"Send 1.250,50 EUR to bob@x.com on 3/4/2025 at 3pm", "“quoted” 'it's' «x» 15% of $2500, from 9 to 5", "in drei Tagen um halb vier, Ende des Monats",
		"quatre-vingt-dix-sept, la semaine prochaine à 14h30", "1 000 000,5 P1D Q3 #4711 a/b C:\\x ~ - − × \u00a0 \xff ß ＡＢ ½", "room: Blue, key=value called x", "1e99 1e-99 99999999999999999999 0/0 31/31/2025",
	} {
		for _, language := range codes {
			f.Add(text, language)
		}
	}
	parameters := []string{`{"type":"integer"}`, `{"type":"number","maximum":1}`, `{"type":"string","format":"date-time"}`, `{"type":"string","description":"DD/MM/YYYY"}`, `{}`}
	f.Fuzz(func(t *testing.T, text, language string) {
		last := 0
		for _, v := range Extract(text, Options{Now: now(), Language: language}) {
			if v.Start < last || v.Start >= v.End || v.End > len(text) {
				t.Fatalf("%q: got the span %d to %d after %d", text, v.Start, v.End, last)
			}
			if last = v.Start; utf8.ValidString(text) && !utf8.ValidString(text[v.Start:v.End]) {
				t.Fatalf("%q: the span %d to %d cuts a rune", text, v.Start, v.End)
			}
			for _, parameter := range parameters {
				s, _ := schema.Read(json.RawMessage(parameter))
				if fitted, ok := v.Fit(schema.Property{Name: "x", Schema: s}); ok && utf8.ValidString(text) {
					if _, err := json.Marshal(fitted.Value); err != nil {
						t.Fatalf("%q: %v", text, err)
					}
				}
			}
		}
		Enum(text, strings.Fields(text))
	})
}

func BenchmarkExtract(b *testing.B) {
	text := strings.Repeat("Send 1,250.50 EUR to bob@x.com on 3/4/2025 at 3pm and book a room in Paris for two hours. ", 110)
	for b.Loop() {
		Extract(text, Options{Now: now(), Language: "en"})
	}
}
