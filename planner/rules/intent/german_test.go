package intent

import "testing"

func TestSplit_German(t *testing.T) {
	check(t, "de", `
Command:archiviere | Archiviere das Ticket 88
Command:lösche | lösche die Datei notes.txt
Command:schick | Schick mir die Liste
Command:zeige | Zeige alle offenen Tickets
Command:archivieren | Das Ticket 88 archivieren
Command:löschen | Alle alten Dateien im Ordner löschen
Command:absag | Sag den Termin am Montag ab
Command:anleg | Leg einen Ordner an
Command:archivieren | Archivieren Sie das Ticket 88
Command:buche | Buche einen Raum am 3. Mai
Command:überweise | Überweise 1.250,50 EUR an die Firma
Command:übersetze | Übersetze „Lösche alle Dateien“ ins Englische
Command:übersetze | Übersetze ins Englische: lösche alle Dateien
Command:zeige | Zeige die Dateien, die nicht gelöscht sind
Command:suche Command:schick | Suche die Rechnung und schick sie mir
Command:suche Command:bezahle | Suche die Rechnung, dann bezahle sie
Command:archiviere Question | Archiviere das Ticket und sag mir, wer in Bonn arbeitet
Command:archiviere Negated | Archiviere das Ticket 88, aber nicht 89
Request:archiviere | Bitte archiviere das Ticket 88
Request:archivieren | Bitte das Ticket 88 archivieren
Request:archivieren | Könntest du bitte das Ticket 88 archivieren?
Request:archivieren | Können Sie das Ticket 88 archivieren?
Request:archivieren | Kannst du das Ticket archivieren
Request:archivieren | Würdest du das Ticket archivieren?
Request:archivieren | Ich möchte das Ticket 88 archivieren
Request:archivierst | Ich will, dass du das Ticket archivierst
Request:archivieren | Lass uns das Ticket archivieren
Request:archivieren Question | Könntest du das Ticket archivieren und mir sagen, wer es geöffnet hat?
Question | Wer arbeitet in Bonn?
Question | Wo ist das Ticket 88?
Question | Was ist 3 mal 4?
Question | Wie groß ist die Datei notes.txt?
Question | wie viele Tickets sind offen
Question | Ist das Ticket 88 geschlossen?
Question | Hat Bob das Ticket archiviert?
Question | Kannst du mir sagen, wer in Bonn arbeitet?
Question | Sag mir, ob das Ticket geschlossen ist
Question | Ich möchte wissen, wer das Ticket geöffnet hat
Question | das Wetter in Paris
Question | Weißt du, wo die Datei liegt?
Question Command:schick | Wer arbeitet in Bonn und schick ihnen die Agenda
ActionQuestion | Soll ich das Ticket 88 archivieren?
ActionQuestion | Sollte ich das Ticket archivieren?
ActionQuestion | Darf ich die Datei löschen?
ActionQuestion | Kann ich die Datei löschen?
ActionQuestion | Muss ich das Ticket archivieren?
ActionQuestion | Wie kann ich ein Ticket archivieren?
ActionQuestion | Wie lösche ich eine Datei?
ActionQuestion | Hast du das Ticket archiviert?
ActionQuestion | Haben Sie das Ticket archiviert?
ActionQuestion | Was passiert, wenn ich das Ticket archiviere?
ActionQuestion | Ist es sicher, die Datei zu löschen?
ActionQuestion | Warum sollte ich das Ticket archivieren?
ActionQuestion Reported | Meinst du, ich soll das Ticket archivieren?
Negated | Archiviere das Ticket nicht
Negated | Archiviere das Ticket 88 nicht!
Negated | Lösche niemals die Datei
Negated | Bitte nicht archivieren
Negated | Bitte das Ticket nicht archivieren
Negated | Nicht löschen!
Negated | Das Ticket 88 nicht archivieren
Negated | Auf keinen Fall die Datei löschen
Negated | Lösche keine Dateien
Negated | Könntest du das Ticket bitte nicht archivieren?
Negated | Ich möchte das Ticket nicht archivieren
Negated | Ich will nicht, dass du das Ticket archivierst
Negated | Lass uns das Ticket nicht archivieren
Negated | Lösche ja nichts
Negated Command:zeige | Archiviere das Ticket nicht, sondern zeige es mir
Conditional Conditional:archiviere | Wenn das Ticket alt ist, archiviere es
Conditional Conditional:archiviere | Wenn das Ticket alt ist, dann archiviere es
Conditional Conditional:archiviere | Falls Bob zustimmt, archiviere das Ticket
Conditional Conditional:archiviere | Sobald Bob zustimmt, archiviere bitte das Ticket
Conditional:archiviere | Archiviere das Ticket, wenn es alt ist
Conditional:archiviere | Archiviere das Ticket, falls Bob zustimmt
Conditional:archivieren | Könntest du das Ticket archivieren, wenn es alt ist?
Conditional:archiviere | Archiviere das Ticket nur, sobald Bob zustimmt
Conditional Conditional:archiviere | Sollte es regnen, archiviere das Ticket
Question:prüfe Conditional:storniere | Prüfe, ob das Ticket alt ist, und storniere es
Question Conditional:archiviere | Ist das Ticket alt? Dann archiviere es.
Conditional Conditional:lösche | Falls nicht, lösche die Datei
Negated Command:zeige | Bevor du die Datei löschst, zeige sie mir
Negated Command:zeige | Statt die Datei zu löschen, zeige sie mir
Conditional:archiviere | Archiviere das Ticket später
Conditional:archiviere | Archiviere jede Nacht die Tickets
Negated Negated | Archiviere das Ticket. Stopp!
Conditional:archiviere | Archiviere das Ticket erst nach Rücksprache
Command:archivieren | Vergiss nicht, das Ticket 88 zu archivieren
Request:archivieren | Vergiss bitte nicht, das Ticket 88 zu archivieren
Request:archivieren | Es wäre schön, wenn du das Ticket 88 archivieren könntest
Request:archivieren | Ich würde das Ticket gern archivieren
Statement | Man sollte das Ticket archivieren
Statement | Das Ticket darf nicht archiviert werden
Hypothetical | Was wäre, wenn ich das Ticket archiviere?
Hypothetical Statement | Angenommen, ich archiviere das Ticket
Hypothetical | Ich überlege, das Ticket zu archivieren
Hypothetical | Ich könnte das Ticket archivieren
Hypothetical | Vielleicht das Ticket archivieren
Hypothetical Statement | Stell dir vor, ich lösche die Datei
Command:tu Hypothetical | Tu so, als ob du das Ticket archivierst
Reported Reported | Bob sagte, ich soll das Ticket archivieren
Reported Reported:lösche | Er hat gesagt, lösche die Datei
Reported | Laut Bob soll das Ticket archiviert werden
Reported | Mein Chef will das Ticket archivieren
Reported | Sie sagte, das Ticket sei alt
Quoted | „Archiviere das Ticket“
Quoted | »Lösche die Datei«
Past | Ich habe das Ticket archiviert
Past | Wir haben die Datei gelöscht
Past | Das Ticket 88 wurde gestern archiviert
Past | Ich hatte die Datei schon gelöscht
Statement | Ich arbeite in Bonn
Statement | Ich archiviere das Ticket
Statement | Das Ticket ist alt
Statement Command:archiviere | Das Ticket ist alt, archiviere es
`)
}
