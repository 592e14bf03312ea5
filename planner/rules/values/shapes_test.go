package values

import (
	"strings"
	"testing"
)

func TestShapes(t *testing.T) {
	check(t, Options{Language: "en"}, []row{
		{"write to bob.smith+x@mail.example.com, please", "email bob.smith+x@mail.example.com"},
		{"open https://example.com/a?b=c#d.", "url https://example.com/a?b=c#d"},
		{"visit example.com", "url example.com"},
		{"how big is notes.txt?", "path notes.txt"},
		{"read src/main.go and ~/x and /etc/hosts", "path src/main.go; id src/main.go; path ~/x; path /etc/hosts"},
		{`open C:\x\y.txt`, `path C:\x\y.txt`},
		{`read "/data/a b.txt"`, "quote /data/a b.txt"},
		{`read "/data/a.txt"`, "quote /data/a.txt; path /data/a.txt"},
		{"clone golang/go", "path golang/go; id golang/go"},
		{"open src/main.go:", "path src/main.go; id src/main.go"},
		{"and/or", ""},
		{"he said e.g. this, i.e. that.", ""},
		{"cancel order A-99812", "id A-99812"},
		{"close INC0012 and #4711", "id INC0012; id 4711"},
		{"order 4711", "number 4711"},
		{"ISBN 978-3-16-148410-0", "id 978-3-16-148410-0"},
		{"user_id and maxItems", "id user_id; id maxItems"},
		{"call 555-1234", "id 555-1234"},
		{"id 550e8400-e29b-41d4-a716-446655440000", "id 550e8400-e29b-41d4-a716-446655440000"},
		{"commit d653929", "id d653929"},
		{"create the folder reports", "path reports"},
		{"list the folder.", ""},
		{"create a folder called backup", "phrase backup"},
		{"create a folder called Blue Sky", "phrase Blue Sky; name Blue Sky"},
		{"room: blue, floor: 3", "phrase blue; number 3"},
		{"set status=open now", "phrase open"},
		{"is it true", "flag true"},
		{"set dark mode to disabled", "flag false"},
	})
	check(t, Options{Language: "de"}, []row{{"lösche den Ordner Bilder", "path Bilder"}, {"Suche Flüge von München", "name Flüge; name München"}, {"ein Ordner namens Berichte", "phrase Berichte; name Berichte"}})
	check(t, Options{Language: "fr"}, []row{{"supprime le dossier photos", "path photos"}, {"un dossier nommé rapports", "phrase rapports"}})
	check(t, Options{Language: "es"}, []row{{"borra la carpeta fotos", "path fotos"}, {"una carpeta llamada informes", "phrase informes"}})
}

func TestNames(t *testing.T) {
	check(t, Options{Language: "en"}, []row{
		{"Who is in the Berlin office?", "name Berlin"},
		{"Email John Smith and Ann-Marie O'Neil", "name John Smith; name Ann-Marie O'Neil"},
		{"about the Bank of America", "name Bank of America"},
		{"ask Dr. Smith. Then leave", "name Dr. Smith"},
		{"what I'm doing. Tell me", ""},
		{"in the U.S this year", "name U.S; dates 2025-01-01..2025-12-31"},
		{"by Liverpool F.C. Then leave", "name Liverpool F.C"},
		{"tickets for The British Museum", "name The British Museum"},
		{"for Windows 10.", "name Windows 10; name Windows; number 10"},
		{"in Paris 3 nights", "name Paris; number 3"},
		{"Delete Contact C-90", "name Contact; id C-90"},
		{"flights from Paris to London", "name Paris; name London"},
	})
	check(t, Options{Language: "de"}, []row{
		{"Wie ist das Wetter in Berlin?", "name Berlin"},
		{"eine Mail an Frau Müller", "name Frau Müller"},
		{"Lösche Kontakt C-90", "name Kontakt; id C-90"},
	})
	check(t, Options{Language: "fr"}, []row{{"la météo à Paris", "name Paris"}})
	check(t, Options{Language: "es"}, []row{{"el tiempo en Madrid", "name Madrid"}})
}

func TestQuotations(t *testing.T) {
	for text, want := range map[string]string{
		`say "hello world" now`:                      "hello world",
		"say “hello” now":                            "hello",
		"sag „hallo“ jetzt":                          "hallo",
		"dis « bonjour » maintenant":                 "",
		"dis «bonjour» maintenant":                   "bonjour",
		"sag »hallo« jetzt":                          "hallo",
		"say 'hello' now":                            "hello",
		"say ‘it’s me’ now":                          "it’s me",
		"say 'it's me' now":                          "it's me",
		"don't say that it's the players' fault":     "",
		"rename 'the players' names' to 'team list'": "the players' names|team list",
		"run `go test ./...` here":                   "go test ./...",
		`say "hello`:                                 "hello",
		`a "b" and "c"`:                              "b|c",
		`the 5" pipe and 6" pipe`:                    "",
		`say ""`:                                     "",
	} {
		var got []string
		for _, v := range Extract(text, Options{Now: now(), Language: "en"}) {
			if v.Kind == Quotation {
				got = append(got, v.Text)
			}
		}
		if strings.Join(got, "|") != want {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
	check(t, Options{Language: "en"}, []row{
		{`the note "buy 3 eggs"`, "quote buy 3 eggs"},
		{`on "2025-04-03"`, "quote 2025-04-03; date 2025-04-03"},
		{`to "bob@x.com"`, "quote bob@x.com; email bob@x.com"},
	})
}

// TestCues checks the function word and the noun before values.
func TestCues(t *testing.T) {
	for _, row := range []struct{ language, text, want string }{
		{"en", "flights from Paris to London", "from Paris|to London"},
		{"en", "cancel order 4711", "[order]4711"},
		{"en", "cancel order number 4711", "[order number]4711"},
		{"en", "cancel order #4711", "[order]4711"},
		{"en", "book it, room: Blue", "[room]Blue|[room]Blue"},
		{"en", "due date: 2025-04-03", "[due date]2025-04-03"},
		{"en", "with a radius of 5", "of 5"},
		{"en", "radius = 5", "[radius]5"},
		{"en", "with a=1", "with [a]1"},
		{"es", "a las 9 de la noche", ""},
		{"de", "bis zum 15. Mai", "until 15. Mai"},
		{"fr", "quatre personnes demain", "quatre|[personnes]demain"},
		{"en", "send it to bob@x.com at noon", "to bob@x.com|at noon"},
		{"en", "between 5 and 10 items", "from 5|to 10"},
		{"en", "pages 3-5", "from [pages]3|to 5"},
		{"en", "from the order A-1", "from [order]A-1"},
		{"en", "Move it. Berlin", ""},
		{"de", "von Paris nach London", "from Paris|to London"},
		{"de", "ein Ordner namens \"Neu\"", "named Neu"},
		{"fr", "un vol de Paris à Londres", "from Paris|to Londres"},
		{"fr", "jusqu'à demain", "until demain"},
		{"es", "un vuelo desde Madrid hasta Lima", "from Madrid|until Lima"},
		{"es", "un vuelo de Madrid a Lima", "from Madrid|to Lima"},
	} {
		var got []string
		for _, v := range Extract(row.text, Options{Now: now(), Language: row.language}) {
			if v.Kind == TimeRange || v.Kind == Time && v.Text != "noon" {
				continue
			}
			s := v.Text
			if v.Label != "" {
				s = "[" + v.Label + "]" + s
			}
			if v.Cue != "" {
				s = v.Cue + " " + s
			}
			got = append(got, s)
		}
		if strings.Join(got, "|") != row.want {
			t.Errorf("%q: got %q, want %q", row.text, strings.Join(got, "|"), row.want)
		}
	}
}
