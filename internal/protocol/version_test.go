package protocol

import "testing"

func TestVersions(t *testing.T) {
	for i, v := range Versions() {
		if v.IsHandshake() == v.AtLeast(V20260728) {
			t.Errorf("%s: got handshake %t and modern %t, want one of them", v, v.IsHandshake(), v.AtLeast(V20260728))
		}
		for j, other := range Versions() {
			if got, want := v.AtLeast(other), i >= j; got != want {
				t.Errorf("%s at least %s: got %t, want %t", v, other, got, want)
			}
		}
	}
	for asked, want := range map[Version]Version{V20241105: V20241105, V20250618: V20250618, V20260728: V20251125, "2024-11": V20251125, "": V20251125} {
		if got := Negotiate(asked); got != want {
			t.Errorf("Negotiate(%q): got %s, want %s", asked, got, want)
		}
	}
	want := `["2026-07-28","2025-11-25","2025-06-18","2025-03-26","2024-11-05"]`
	if got := string(JSON(Versions())); got != want {
		t.Errorf("JSON: got %s, want %s", got, want)
	}
}
