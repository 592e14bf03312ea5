package intent

import (
	"fmt"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// grammar makes commands and sentences around them that do not ask for them.
type grammar struct {
	language string
	verbs    []string // "imperative infinitive first-person participle subjunctive", as the language has them
	objects  []string
	commands []string // %[1]s … %[5]s are the forms of the verb, %[6]s the object
	wrapped  []string
}

var grammars = []grammar{
	{"en",
		[]string{"cancel cancel cancelling cancelled -", "delete delete deleting deleted -",
			"merge merge merging merged -",
			"send send sending sent -", "book book booking booked -", "order order ordering ordered -",
			"archive archive archiving archived -", "deploy deploy deploying deployed -",
			"refund refund refunding refunded -",
			"overwrite overwrite overwriting overwritten -"},
		[]string{"order 4711", "the order", "my last order", "it", "all files in /tmp/a.b", "notes.txt",
			"them both", "Bob's ticket",
			"the file that was added yesterday", "this", "issue 12 of acme/web", "the contact named \"Ann\"",
			"ticket A-99812 right now",
			"the e-mail to a@b.de", "2 rooms for tomorrow", "everything in the cart, including the shoes"},
		[]string{"%[1]s %[6]s", "Please %[1]s %[6]s", "could you %[1]s %[6]s", "Could you please %[1]s %[6]s?",
			"I'd like you to %[1]s %[6]s",
			"I want to %[1]s %[6]s", "let's %[1]s %[6]s", "Hi, please %[1]s %[6]s. Thanks!",
			"don't forget to %[1]s %[6]s",
			"My manager is on leave. %[1]s %[6]s"},
		[]string{"do not %[1]s %[6]s", "Don't %[1]s %[6]s", "Please don’t %[1]s %[6]s",
			"please do not %[1]s %[6]s!", "never %[1]s %[6]s",
			"Never ever %[1]s %[6]s", "You must not %[1]s %[6]s", "you should never %[1]s %[6]s",
			"I don't want you to %[1]s %[6]s",
			"I do not want to %[1]s %[6]s", "let's not %[1]s %[6]s", "could you please not %[1]s %[6]s?",
			"dont %[1]s %[6]s",
			"under no circumstances %[1]s %[6]s", "do not list or %[1]s %[6]s", "Don't call Bob and %[1]s %[6]s",
			"Do not, I repeat, do not %[1]s %[6]s", "nobody should %[1]s %[6]s",
			"I never said you should %[1]s %[6]s",
			"should I %[1]s %[6]s?", "Should we %[1]s %[6]s", "can I %[1]s %[6]s?", "May I %[1]s %[6]s?",
			"shall I %[1]s %[6]s",
			"how do I %[1]s %[6]s?", "How can I %[1]s %[6]s", "how to %[1]s %[6]s", "why should I %[1]s %[6]s?",
			"did you %[1]s %[6]s?",
			"have you %[4]s %[6]s?", "is it OK to %[1]s %[6]s?", "Would it be wise to %[1]s %[6]s?",
			"what happens when I %[1]s %[6]s?",
			"do I have to %[1]s %[6]s?", "who may %[1]s %[6]s?", "Is it too late to %[1]s %[6]s?",
			"why don't you %[1]s %[6]s?",
			"When should I %[1]s %[6]s?", "Do you think I should %[1]s %[6]s?", "who can list and %[1]s %[6]s?",
			"what if I %[1]s %[6]s?", "What if we were to %[1]s %[6]s", "suppose I %[1]s %[6]s",
			"Imagine you %[1]s %[6]s",
			"I might %[1]s %[6]s", "I could %[1]s %[6]s", "I was thinking of %[3]s %[6]s",
			"I'm considering %[3]s %[6]s",
			"maybe %[1]s %[6]s", "would it help if I %[1]s %[6]s?", "I wonder whether I should %[1]s %[6]s",
			"Bob said to %[1]s %[6]s", "she asked me to %[1]s %[6]s", "They told us to %[1]s %[6]s",
			"my boss wants me to %[1]s %[6]s",
			"The customer wrote that we should %[1]s %[6]s", "I was told to %[1]s %[6]s",
			"according to Bob, %[1]s %[6]s",
			"Bob said: %[1]s %[6]s", "The mail says to call Ann and %[1]s %[6]s", "He wants you to %[1]s %[6]s",
			"I %[4]s %[6]s", "I have %[4]s %[6]s", "we've already %[4]s %[6]s", "Yesterday I %[4]s %[6]s",
			"You %[4]s %[6]s",
			"Bob has %[4]s %[6]s", "I will %[1]s %[6]s", "I am going to %[1]s %[6]s", "I forgot to %[1]s %[6]s",
			"if it rains, %[1]s %[6]s", "If it rains %[1]s %[6]s", "unless Bob calls, %[1]s %[6]s",
			"once Bob calls, %[1]s %[6]s",
			"When Bob calls, please %[1]s %[6]s", "%[1]s %[6]s if it rains", "%[1]s %[6]s unless Bob objects",
			"%[1]s %[6]s as soon as Bob calls",
			"Could you %[1]s %[6]s if it rains?", "As soon as Bob calls, call Ann and %[1]s %[6]s",
			"only if Bob calls, %[1]s %[6]s",
			"If it is late, call Ann, then %[1]s %[6]s", "%[1]s %[6]s? Never mind.",
			"%[1]s %[6]s. Actually, don't.",
			"\"%[1]s %[6]s\"", "'%[1]s %[6]s'", "“%[1]s %[6]s”", "> %[1]s %[6]s", "`%[1]s %[6]s`",
			"What does 'please %[1]s' mean?",
			"What does “%[1]s it” mean?"}},
	{"de",
		[]string{"storniere stornieren storniere storniert -", "lösche löschen lösche gelöscht -",
			"sende senden sende gesendet -",
			"buche buchen buche gebucht -", "archiviere archivieren archiviere archiviert -",
			"überschreibe überschreiben überschreibe überschrieben -"},
		[]string{"die Bestellung 4711", "das Ticket", "alle Dateien im Ordner", "meine Termine am 3. Mai",
			"sie alle", "den Raum für Bob",
			"diese E-Mail an a@b.de", "die Rechnung über 1.250,50 EUR"},
		[]string{"%[1]s %[6]s", "Bitte %[1]s %[6]s", "Könntest du bitte %[6]s %[2]s?", "Ich möchte %[6]s %[2]s",
			"Können Sie %[6]s %[2]s?",
			"bitte %[6]s %[2]s", "Lass uns %[6]s %[2]s"},
		[]string{"%[1]s %[6]s nicht", "%[1]s niemals %[6]s", "Bitte %[1]s %[6]s nicht!", "%[6]s nicht %[2]s",
			"bitte %[6]s nicht %[2]s",
			"Könntest du bitte %[6]s nicht %[2]s?", "Ich möchte %[6]s nicht %[2]s",
			"Auf keinen Fall %[6]s %[2]s", "Ich will nicht %[6]s %[2]s",
			"Soll ich %[6]s %[2]s?", "Sollte ich %[6]s %[2]s?", "Kann ich %[6]s %[2]s?",
			"Darf ich %[6]s %[2]s?", "Wie kann ich %[6]s %[2]s?",
			"Wie %[3]s ich %[6]s?", "Hast du %[6]s %[4]s?", "Muss ich %[6]s %[2]s?",
			"Warum soll ich %[6]s %[2]s?", "Wer darf %[6]s %[2]s?",
			"Was wäre, wenn ich %[6]s %[3]s?", "Was passiert, wenn ich %[6]s %[3]s?",
			"Angenommen, ich %[3]s %[6]s", "Ich überlege, %[6]s zu %[2]s",
			"Ich könnte %[6]s %[2]s", "Vielleicht sollte ich %[6]s %[2]s", "Ist es möglich, %[6]s zu %[2]s?",
			"Bob sagte, ich soll %[6]s %[2]s", "Sie hat gesagt, %[1]s %[6]s", "Bob bat mich, %[6]s zu %[2]s",
			"Laut Bob soll ich %[6]s %[2]s",
			"Mein Chef will %[6]s %[2]s", "Bob hat gesagt, %[1]s %[6]s", "Er meint, wir sollten %[6]s %[2]s",
			"Ich habe %[6]s %[4]s", "Wir haben gestern %[6]s %[4]s", "Ich werde %[6]s %[2]s",
			"Gestern habe ich %[6]s %[4]s",
			"Wenn es regnet, %[1]s %[6]s", "Wenn es regnet, dann %[1]s %[6]s",
			"Falls Bob anruft, %[1]s bitte %[6]s", "Sobald Bob anruft, %[1]s %[6]s",
			"%[1]s %[6]s, wenn es regnet", "%[1]s %[6]s, falls Bob anruft", "Sollte es regnen, %[1]s %[6]s",
			"Könntest du %[6]s %[2]s, wenn Bob anruft?",
			"„%[1]s %[6]s“", "»%[1]s %[6]s«", "Was heißt „%[1]s es“?"}},
	{"fr",
		[]string{"annule annuler annulais annulé annules", "supprime supprimer supprimais supprimé supprimes",
			"archive archiver archivais archivé archives",
			"réserve réserver réservais réservé réserves", "déplace déplacer déplaçais déplacé déplaces"},
		[]string{"la commande 4711", "le ticket", "tous les fichiers du dossier", "mon rendez-vous de demain",
			"la réunion avec Bob",
			"cette facture de 1.250,50 EUR", "les messages de a@b.de"},
		[]string{"%[1]s %[6]s", "Veuillez %[2]s %[6]s", "Pourrais-tu %[2]s %[6]s ?",
			"Pouvez-vous %[2]s %[6]s ?", "Je voudrais %[2]s %[6]s",
			"%[1]s %[6]s s'il te plaît", "%[2]s %[6]s", "Est-ce que tu peux %[2]s %[6]s ?"},
		[]string{"ne %[1]s pas %[6]s", "Ne %[1]s jamais %[6]s", "Ne pas %[2]s %[6]s",
			"Surtout, ne %[1]s pas %[6]s", "Je ne veux pas %[2]s %[6]s",
			"%[1]s pas %[6]s", "Je ne veux pas que tu %[5]s %[6]s", "Pourrais-tu ne pas %[2]s %[6]s ?",
			"Il ne faut pas %[2]s %[6]s",
			"Est-ce que je dois %[2]s %[6]s ?", "Dois-je %[2]s %[6]s ?", "Puis-je %[2]s %[6]s ?",
			"Comment %[2]s %[6]s ?", "Peut-on %[2]s %[6]s ?",
			"As-tu %[4]s %[6]s ?", "Faut-il %[2]s %[6]s ?", "Pourquoi %[2]s %[6]s ?",
			"Est-ce que tu as %[4]s %[6]s ?", "Qui peut %[2]s %[6]s ?",
			"Devrais-je %[2]s %[6]s ?", "Et si je %[3]s %[6]s ?", "Que se passe-t-il si je %[1]s %[6]s ?",
			"Supposons que je %[1]s %[6]s",
			"Je pensais %[2]s %[6]s", "Je pourrais %[2]s %[6]s", "Peut-être %[2]s %[6]s",
			"Il a dit de %[2]s %[6]s", "Bob m'a demandé de %[2]s %[6]s",
			"Elle veut %[2]s %[6]s", "Selon Bob, il faut %[2]s %[6]s", "Mon chef dit de %[2]s %[6]s",
			"On m'a dit de %[2]s %[6]s",
			"J'ai %[4]s %[6]s", "Nous avons %[4]s %[6]s", "Je vais %[2]s %[6]s", "Hier j'ai %[4]s %[6]s",
			"S'il pleut, %[1]s %[6]s", "Si Bob appelle, %[1]s %[6]s", "Dès que Bob appelle, %[1]s %[6]s",
			"%[1]s %[6]s si Bob appelle",
			"%[1]s %[6]s s'il pleut", "Quand Bob appelle, %[1]s %[6]s",
			"Pourrais-tu %[2]s %[6]s si Bob appelle ?", "Si Bob appelle, alors %[1]s %[6]s",
			"« %[1]s %[6]s »", "“%[1]s %[6]s”", "Que veut dire « %[1]s » ?"}},
	{"es",
		[]string{"cancela cancelar cancelo cancelado canceles", "borra borrar borro borrado borres",
			"archiva archivar archivo archivado archives",
			"reserva reservar reservo reservado reserves", "mueve mover muevo movido muevas"},
		[]string{"el pedido 4711", "la reserva", "todos los archivos de la carpeta", "mi cita de mañana",
			"la reunión con Bob",
			"esta factura de 1.250,50 EUR", "los mensajes de a@b.de"},
		[]string{"%[1]s %[6]s", "Por favor, %[1]s %[6]s", "¿Podrías %[2]s %[6]s?", "¿Puede usted %[2]s %[6]s?",
			"Quiero %[2]s %[6]s",
			"Me gustaría %[2]s %[6]s", "%[2]s %[6]s", "Quiero que %[5]s %[6]s", "Necesito %[2]s %[6]s"},
		[]string{"no %[5]s %[6]s", "Nunca %[5]s %[6]s", "No %[2]s %[6]s", "Por favor, no %[5]s %[6]s",
			"No quiero %[2]s %[6]s", "¿Podrías no %[2]s %[6]s?",
			"No quiero que %[5]s %[6]s", "Quiero que no %[5]s %[6]s", "Jamás %[5]s %[6]s", "No hay que %[2]s %[6]s",
			"¿Debería %[2]s %[6]s?", "¿Debo %[2]s %[6]s?", "¿Puedo %[2]s %[6]s?", "¿Cómo %[3]s %[6]s?",
			"¿Cómo puedo %[2]s %[6]s?",
			"¿Has %[4]s %[6]s?", "¿Tengo que %[2]s %[6]s?", "¿Es posible %[2]s %[6]s?",
			"¿Por qué debería %[2]s %[6]s?", "¿Quién puede %[2]s %[6]s?",
			"¿Y si %[3]s %[6]s?", "¿Qué pasa si %[3]s %[6]s?", "Supongamos que %[3]s %[6]s",
			"Estaba pensando en %[2]s %[6]s", "Quizás %[3]s %[6]s",
			"Tal vez debería %[2]s %[6]s", "Podría %[2]s %[6]s", "Bob dijo que %[5]s %[6]s",
			"Me pidió que %[5]s %[6]s", "Ella quiere %[2]s %[6]s",
			"Según Bob hay que %[2]s %[6]s", "Bob me dijo: %[1]s %[6]s", "Mi jefe ha dicho que %[5]s %[6]s",
			"He %[4]s %[6]s", "Ya hemos %[4]s %[6]s",
			"Voy a %[2]s %[6]s", "Ayer he %[4]s %[6]s", "%[3]s %[6]s",
			"Si llueve, %[1]s %[6]s", "Cuando Bob llame, %[1]s %[6]s", "En cuanto Bob llame, %[1]s %[6]s",
			"%[1]s %[6]s si llueve",
			"%[1]s %[6]s cuando Bob llame", "¿Podrías %[2]s %[6]s si llueve?",
			"Si Bob llama, entonces %[1]s %[6]s", "Si llueve %[1]s %[6]s",
			"«%[1]s %[6]s»", "\"%[1]s %[6]s\"", "¿Qué significa «%[1]s»?"}},
}

func (g grammar) each(templates []string, visit func(sentence, template string)) {
	for _, template := range templates {
		for _, verb := range g.verbs {
			for _, object := range g.objects {
				args := []any{}
				for _, form := range strings.Fields(verb) {
					args = append(args, form)
				}
				sentence := fmt.Sprintf(template+"%.0[7]s", append(args, object, "")...)
				visit(sentence, template)
				first, size := utf8.DecodeRuneInString(sentence)
				visit(string(unicode.ToUpper(first))+sentence[size:], template)
				visit(strings.TrimRight(sentence, ".?!")+".", template)
			}
		}
	}
}

func writes(sentence string) bool {
	for _, c := range Split(sentence) {
		if c.Act.MayWrite() {
			return true
		}
	}
	return false
}

func TestSplit_CommandsMayWrite(t *testing.T) {
	for _, g := range grammars {
		failed := map[string]bool{}
		g.each(g.commands, func(sentence, template string) {
			if !writes(sentence) && !failed[template] {
				failed[template] = true
				t.Errorf("Split(%q): got %s, want a clause that may write", sentence, describe(Split(sentence)))
			}
		})
	}
}

// TestSplit_WrappedCommandsMayNotWrite takes back, quotes, reports and questions every command.
func TestSplit_WrappedCommandsMayNotWrite(t *testing.T) {
	sentences := 0
	for _, g := range grammars {
		failed := map[string]bool{}
		g.each(g.wrapped, func(sentence, template string) {
			sentences++
			if writes(sentence) && !failed[template] {
				failed[template] = true
				t.Errorf("Split(%q): got %s, want no clause that may write", sentence, describe(Split(sentence)))
			}
		})
	}
	if sentences < 10000 {
		t.Errorf("got %d sentences, want thousands", sentences)
	}
}

// TestSplit_WrappedCommandsBesideOthers adds a command that is asked for before and behind: only that one may write.
func TestSplit_WrappedCommandsBesideOthers(t *testing.T) {
	sentences := 0
	add := map[string]string{"en": "Print the label", "de": "Drucke das Etikett", "fr": "Imprime la facture",
		"es": "Imprime la factura"}
	for _, g := range grammars {
		failed := map[string]bool{}
		extra := add[g.language]
		g.each(g.wrapped, func(sentence, template string) {
			covers := strings.ContainsAny(template, ":>") || strings.HasPrefix(strings.ToLower(template), "supp")
			if sentences++; covers || sentences%5 != 0 {
				return
			}
			for _, both := range []string{sentence + ". " + extra, extra + ". " + sentence, sentence + "\n\n" + extra} {
				for _, c := range Split(both) {
					if c.Act.MayWrite() && c.Verb != strings.ToLower(strings.Fields(extra)[0]) && !failed[template] {
						failed[template] = true
						t.Errorf("Split(%q): got %s, want only %q to write", both, describe(Split(both)), extra)
					}
				}
			}
		})
	}
}
