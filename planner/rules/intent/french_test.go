package intent

import "testing"

func TestSplit_French(t *testing.T) {
	check(t, "fr", `
Command:archive | Archive le ticket 88
Command:archivez | archivez le ticket 88
Command:archiver | Archiver le ticket 88
Command:supprime | Supprime-le
Command:envoie | Envoie-moi la liste
Command:montre | montre-moi les tickets ouverts
Command:trouve | Trouve le fichier qui n'est pas ouvert
Command:traduis | Traduis « supprime le fichier » en anglais
Command:traduis | Traduis en anglais : supprime le fichier
Command:envoyer | N'oublie pas d'envoyer le rapport
Command:trouve Command:paie | Trouve la facture et paie-la
Command:trouve Command:paie | Trouve la facture, puis paie-la
Command:archive Question | Archive le ticket et dis-moi qui travaille à Lyon
Request:archiver | Pourrais-tu archiver le ticket 88 ?
Request:archiver | Pouvez-vous archiver le ticket 88 ?
Request:archiver | Peux-tu archiver le ticket
Request:archiver | Est-ce que tu peux archiver le ticket 88 ?
Request:archiver | Je voudrais archiver le ticket 88
Request:archives | Je veux que tu archives le ticket
Request:archiver | J'aimerais archiver le ticket
Request:archiver | Veuillez archiver le ticket 88
Request:archive | Archive le ticket 88 s'il te plaît
Request:archiver | Merci d'archiver le ticket 88
Question | Qui travaille à Lyon ?
Question | Où est le ticket 88 ?
Question | Quelle est la taille du fichier notes.txt ?
Question | combien de tickets sont ouverts
Question | Est-ce que le ticket 88 est fermé ?
Question | Peux-tu me dire qui travaille à Lyon ?
Question | Dis-moi où est le fichier
Question | Je veux savoir qui a ouvert le ticket
Question | la météo à Paris
Question | Dernières nouvelles de la bourse
Question Command:envoie | Qui travaille à Lyon et envoie-leur l'agenda
ActionQuestion | Dois-je archiver le ticket 88 ?
ActionQuestion | Est-ce que je dois archiver le ticket ?
ActionQuestion | Est-ce que je peux supprimer le fichier ?
ActionQuestion | Puis-je supprimer le fichier ?
ActionQuestion | Peut-on supprimer le fichier ?
ActionQuestion | Faut-il archiver le ticket ?
ActionQuestion | Devrais-je archiver le ticket ?
ActionQuestion | Comment est-ce que je supprime un fichier ?
ActionQuestion | Comment archiver un ticket ?
ActionQuestion | Comment puis-je archiver un ticket ?
ActionQuestion | As-tu archivé le ticket ?
ActionQuestion | Est-ce que tu as archivé le ticket ?
ActionQuestion | Que se passe-t-il si j'archive le ticket ?
ActionQuestion | Est-il possible de supprimer le fichier ?
Negated | N'archive pas le ticket 88
Negated | n’archive pas le ticket 88
Negated | N'archivez jamais le ticket
Negated | Ne pas archiver le ticket
Negated | Ne supprime rien
Negated | Surtout ne supprime pas le fichier
Negated | archive pas le ticket
Negated | Je ne veux pas archiver le ticket
Negated | Je ne veux pas que tu archives le ticket
Negated | Pourrais-tu ne pas archiver le ticket ?
Negated Negated | Ne supprime pas le fichier et n'archive pas le ticket
Negated Command:liste | N'archive pas le ticket, liste les fichiers
Negated Command:montre | N'archive pas le ticket mais montre-le
Conditional Conditional:archive | Si le ticket est vieux, archive-le
Conditional Conditional:archive | S'il pleut, archive le ticket
Conditional Conditional:archive | Dès que Bob répond, archive le ticket
Conditional Conditional:archive | Quand Bob répond, archive le ticket
Conditional:archive | Archive le ticket s'il est vieux
Conditional:archive | Archive le ticket si Bob est d'accord
Conditional:archiver | Pourrais-tu archiver le ticket si Bob est d'accord ?
Question:vérifie Conditional:annule | Vérifie si le ticket est vieux et annule-le
Command:archive | Archive le ticket dès que possible
Negated Command:montre | Avant de supprimer le fichier, montre-le
Conditional Conditional:archive | Demande-moi, puis archive le ticket
Statement | Archiver le ticket serait une erreur
Conditional:archive | Archive le ticket seulement après son accord
ActionQuestion | Pourquoi as-tu archivé le ticket 88 ?
Negated | Je ne sais pas si je dois archiver le ticket
Statement | Il faut archiver le ticket
Statement | Le ticket ne doit pas être archivé
Hypothetical | Et si j'archivais le ticket ?
Hypothetical | Supposons que j'archive le ticket
Hypothetical | Je pensais archiver le ticket
Hypothetical | Je pourrais archiver le ticket
Hypothetical | Peut-être archiver le ticket
Hypothetical:fais | Fais comme si tu archivais le ticket
Reported | Il a dit d'archiver le ticket
Reported | Elle m'a demandé de supprimer le fichier
Reported | Bob dit d'archiver le ticket
Reported Reported:archive | Selon Bob, archive le ticket
Reported | Mon chef veut archiver le ticket
Quoted | « Archive le ticket »
Past | J'ai archivé le ticket
Past | Nous avons supprimé le fichier
Past | Je l'ai supprimé hier
Past | Le ticket a été archivé hier
Statement | Je travaille à Lyon
Statement | Le ticket est vieux
Statement Command:archive | Le ticket est vieux, archive-le
`)
}
