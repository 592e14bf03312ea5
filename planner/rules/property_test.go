package rules_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/agenticnexus/agenticnexus/planner/rules"
)

// order is a command in a language, with the forms that sentences about it need.
type order struct{ command, infinitive, past, object string }

// english returns commands to the tools of the office and the desk.
func english(r *rand.Rand) order {
	n := fmt.Sprint(1 + r.IntN(999))
	all := []order{
		{"close", "close", "closed", "issue " + n + " of acme/web"},
		{"merge", "merge", "merged", "pull request " + n + " of acme/api"},
		{"delete", "delete", "deleted", "contact C-" + n},
		{"delete", "delete", "deleted", "event evt_" + n},
		{"create", "create", "created", "a branch fix-" + n + " in acme/web"},
		{"send", "send", "sent", "invoice INV-" + n + " to billing@acme.com"},
		{"decline", "decline", "declined", "the invitation evt_" + n},
		{"create", "create", "created", "a contact for Bob Stone, bob" + n + "@stone.io"},
		{"open", "open", "opened", "an issue in acme/web titled \"Logo " + n + " is blurry\""},
		{"move", "move", "moved", "event evt_" + n + " to 2026-04-02"},
	}
	return all[r.IntN(len(all))]
}

// wrappers take the consent out of a command.
var wrappers = []func(o order) string{
	func(o order) string { return "Do not " + o.command + " " + o.object },
	func(o order) string { return "don't " + o.command + " " + o.object + "." },
	func(o order) string { return "Please do not " + o.command + " " + o.object + "!" },
	func(o order) string { return "Never " + o.command + " " + o.object },
	func(o order) string { return "You must not " + o.command + " " + o.object },
	func(o order) string { return "Should I " + o.infinitive + " " + o.object + "?" },
	func(o order) string { return "What if I " + o.infinitive + " " + o.object + "?" },
	func(o order) string { return "What happens when I " + o.infinitive + " " + o.object + "?" },
	func(o order) string { return "How do I " + o.infinitive + " " + o.object + "?" },
	func(o order) string { return "Did Tom " + o.infinitive + " " + o.object + "?" },
	func(o order) string { return "Why would anybody " + o.infinitive + " " + o.object + "?" },
	func(o order) string { return "If the tests pass, " + o.command + " " + o.object },
	func(o order) string {
		return strings.ToUpper(o.command[:1]) + o.command[1:] + " " + o.object + " if Ann agrees"
	},
	func(o order) string { return "I " + o.past + " " + o.object + " yesterday." },
	func(o order) string { return "Tom " + o.past + " " + o.object + "." },
	func(o order) string { return "Somebody has " + o.past + " " + o.object + "." },
	func(o order) string { return "Bob told me to " + o.infinitive + " " + o.object + "." },
	func(o order) string { return "She said: " + o.command + " " + o.object },
	func(o order) string {
		return "He wrote \"" + o.command + " " + strings.ReplaceAll(o.object, "\"", "'") + "\"."
	},
	func(o order) string { return "\"" + o.command + " " + strings.ReplaceAll(o.object, "\"", "'") + "\"" },
	func(o order) string { return "Suppose we " + o.past + " " + o.object + "." },
	func(o order) string { return "I would rather not " + o.infinitive + " " + o.object + "." },
	func(o order) string { return "It would be wrong to " + o.infinitive + " " + o.object + "." },
	func(o order) string { return "I wonder who " + o.past + " " + o.object + "." },
	func(o order) string { return "Do anything but " + o.command + " " + o.object },
	func(o order) string {
		return "Before you " + o.command + " " + o.object + ", list the branches of acme/web"
	},
	func(o order) string { return o.command + " " + o.object + ", yes or no?" },
	func(o order) string { return o.command + " " + o.object + " the moment an alert fires" },
	func(o order) string { return "Only " + o.command + " " + o.object + " after approval" },
	func(o order) string { return "Ask me, then " + o.command + " " + o.object },
	func(o order) string { return o.command + " " + o.object + ". No, leave it." },
	func(o order) string { return "From now on, " + o.command + " " + o.object },
	func(o order) string { return "The mail reads: " + o.command + " " + o.object },
}

// foreign are sentences without consent in other languages; N stands for a number.
var foreign = []string{
	"Schließe Issue N in acme/web nicht.", "Bitte lösche den Kontakt C-N nicht.", "Soll ich den Kontakt C-N löschen?", "Was passiert, wenn ich Issue N in acme/web schließe?",
	"Lösche niemals den Kontakt C-N", "Tom hat den Kontakt C-N gelöscht.", "Ich habe gestern Issue N in acme/web geschlossen.", "Wenn die Tests laufen, lösche den Kontakt C-N.",
	"Er sagte, ich soll den Kontakt C-N löschen.", "Wie lösche ich den Kontakt C-N?",
	"Ne ferme pas l'issue N de acme/web", "Ne supprimez jamais le contact C-N.", "Dois-je supprimer le contact C-N ?", "Que se passe-t-il si je supprime le contact C-N ?",
	"J'ai supprimé le contact C-N hier.", "Si les tests passent, supprime le contact C-N.", "Il m'a dit de supprimer le contact C-N.", "Comment supprimer le contact C-N ?",
	"No cierres el issue N de acme/web", "Nunca elimines el contacto C-N.", "¿Debo eliminar el contacto C-N?", "¿Qué pasa si elimino el contacto C-N?",
	"Ayer eliminé el contacto C-N.", "Si las pruebas pasan, elimina el contacto C-N.", "Me dijo que eliminara el contacto C-N.", "¿Cómo elimino el contacto C-N?",
}

func TestNoConsentNoWrite(t *testing.T) {
	tools, catalog := everyday(t, "office.catalog.jsonl")
	planner := rules.New(rules.Options{Now: today})
	r := rand.New(rand.NewPCG(7, 11))
	check := func(question string) {
		p, err := planner.Plan(t.Context(), question, catalog)
		if err != nil {
			t.Fatalf("%s: %v", question, err)
		}
		if w := writes(p, tools); len(w) > 0 {
			t.Errorf("%s: got the writes %q, want none", question, w)
		}
		for _, s := range p.Open {
			t.Logf("%s: asks for arguments of %s", question, s.Tool)
		}
	}
	count := 3000
	if testing.Short() {
		count = 300
	}
	for i := range count {
		check(wrappers[i%len(wrappers)](english(r)))
	}
	for i := range count / 10 {
		check(strings.ReplaceAll(foreign[i%len(foreign)], "N", fmt.Sprint(1+r.IntN(999))))
	}
}

// TestConsentWrites is the other side: the commands themselves are planned.
func TestConsentWrites(t *testing.T) {
	tools, catalog := everyday(t, "office.catalog.jsonl")
	planner := rules.New(rules.Options{Now: today})
	r := rand.New(rand.NewPCG(7, 11))
	done := 0
	for range 200 {
		o := english(r)
		p, err := planner.Plan(t.Context(), o.command+" "+o.object, catalog)
		if err != nil {
			t.Fatal(err)
		}
		if len(writes(p, tools)) == 1 {
			done++
		} else {
			t.Logf("%s %s: got %q", o.command, o.object, calls(p))
		}
	}
	if done < 180 {
		t.Errorf("got %d of 200 commands planned, want at least 180", done)
	}
}
