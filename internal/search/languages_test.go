package search

import (
	"slices"
	"testing"
)

func TestStemsIn(t *testing.T) {
	for _, tc := range []struct {
		word, language, stem string
		empty                bool
	}{
		{"Dateien", "de", "file", false},
		{"gelöscht", "de", "delet", false},
		{"größe", "de", "size", false},
		{"der", "de", "", true},
		{"fichiers", "fr", "file", false},
		{"supprimez", "fr", "delet", false},
		{"les", "fr", "", true},
		{"archivos", "es", "file", false},
		{"elimine", "es", "delet", false},
		{"los", "es", "", true},
		{"files", "en", "file", false},
		{"the", "en", "the", true},
		{"fil", "it", "fil", false},
		{"", "de", "", false},
	} {
		stems, empty := StemsIn(tc.word, tc.language)
		if empty != tc.empty || tc.stem != "" && !slices.Contains(stems, tc.stem) {
			t.Errorf("StemsIn(%q, %q): got %q, %v; want %q, %v", tc.word, tc.language, stems, empty, tc.stem, tc.empty)
		}
	}
}

// TestStemsIn_OneKeyForForms checks that inflected forms meet, in a catalog of the same language, too.
func TestStemsIn_OneKeyForForms(t *testing.T) {
	for language, forms := range map[string][2]string{"de": {"Lieferungen", "Lieferung"}, "fr": {"livraisons", "livraison"}, "es": {"entregas", "entrega"}} {
		a, _ := StemsIn(forms[0], language)
		b, _ := StemsIn(forms[1], language)
		if a[0] != b[0] {
			t.Errorf("%s: got %q for %s and %q for %s, want one stem", language, a[0], forms[0], b[0], forms[1])
		}
	}
}
