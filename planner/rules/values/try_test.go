package values
import "testing"
func TestTry(t *testing.T) {
	for _, q := range []struct{ l, s string }{
		{"en", "Do not cancel order 4711"}, {"en", "How big is notes.txt?"}, {"en", "Who is in the Berlin office?"},
		{"en", "convert 5 kg to lb"}, {"en", "Book a table for 4 people at Luigi's on Friday at 7:30 pm under the name Miller"},
		{"en", "Schedule a meeting with Anna and Bob next Tuesday from 2 to 3:30pm titled Budget review"},
		{"en", "Create an invoice for ACME Corp over 1,200 USD due 30 days from now"},
		{"en", "Show me the last 5 commits in golang/go"}, {"en", "what's the weather in New York and San Francisco tomorrow?"},
		{"en", "Transfer $500 from savings to checking"}, {"en", "Find flights from JFK to LAX on December 24th for two adults"},
		{"en", "calculate the area of a triangle with base 6 and height 10"}, {"en", "solve x^2 - 3x + 2 = 0 with a=1, b=-3 and c=2"},
		{"en", "what is the distance between 40.7128 N, 74.0060 W and 34.05, -118.25"}, {"en", "invest $10000 at 5% for 10 years"},
		{"en", "remind me in 20 minutes to call mom"}, {"en", "set the temperature to 72 degrees"}, {"en", "list files in /tmp larger than 10 MB"},
		{"en", "Search for 'machine learning' papers since 2020"}, {"en", "Move report.pdf to the archive folder"},
		{"en", "what happened on July 4, 1776?"}, {"en", "employee id 12345 salary in 2023"}, {"en", "play Bohemian Rhapsody by Queen at volume 80"},
		{"de", "Erstelle einen Termin am Montag um 10 Uhr mit Herrn Schmidt"}, {"de", "Wie viel sind 100 Euro in Dollar?"},
		{"de", "Überweise 250 € an Anna bis zum 15. Mai"}, {"de", "Suche Flüge von München nach Hamburg am 24. Dezember für zwei Personen"},
		{"de", "Lösche die Datei alt.txt im Ordner Archiv"}, {"de", "Wie wird das Wetter morgen in Köln?"},
		{"fr", "Réserve une table pour quatre personnes demain à 20h"}, {"fr", "Quel temps fera-t-il à Lyon lundi ?"}, {"fr", "Convertis 100 euros en dollars"},
		{"es", "Reserva una mesa para cuatro personas el viernes a las 9 de la noche"}, {"es", "¿Qué tiempo hará mañana en Sevilla?"}, {"es", "Convierte 10 millas a kilómetros"},
		{"es", "Envía un correo a ana@x.es con el asunto \"Hola\""},
	} {
		for _, v := range Extract(q.s, Options{Now: now(), Language: q.l}) {
			t.Logf("%s | %q cue=%s label=%s | %s", show(v), v.Text, v.Cue, v.Label, q.s)
		}
	}
}
