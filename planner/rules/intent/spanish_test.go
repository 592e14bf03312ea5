package intent

import "testing"

func TestSplit_Spanish(t *testing.T) {
	check(t, "es", `
Command:archiva | Archiva el ticket 88
Command:archive | Archive el ticket 88
Command:archivar | Archivar el ticket 88
Command:envíame | Envíame la lista
Command:archívalo | Archívalo ahora
Command:muestra | muestra los tickets abiertos
Command:busca | Busca el archivo que no está abierto
Command:traduce | Traduce «borra el archivo» al inglés
Command:traduce | Traduce al inglés: borra el archivo
Command:enviar | No olvides enviar el informe
Command:busca Command:paga | Busca la factura y paga el total
Command:busca Command:págala | Busca la factura y luego págala ahora
Command:archiva Question | Archiva el ticket y dime quién trabaja en Madrid
Request:archivar | ¿Podrías archivar el ticket 88?
Request:archivar | ¿Puedes archivar el ticket 88?
Request:archivar | ¿Me puedes archivar el ticket?
Request:archivar | Quiero archivar el ticket 88
Request:archives | Quiero que archives el ticket
Request:archivar | Quisiera archivar el ticket
Request:archivar | Me gustaría archivar el ticket
Request:archiva | Por favor, archiva el ticket 88
Request:archiva | Archiva el ticket 88, por favor
Question | ¿Quién trabaja en Madrid?
Question | ¿Dónde está el ticket 88?
Question | ¿Cuál es el tamaño del archivo notes.txt?
Question | cuántos tickets están abiertos
Question | ¿Está cerrado el ticket 88?
Question | ¿Puedes decirme quién trabaja en Madrid?
Question | Dime dónde está el archivo
Question | Quiero saber quién abrió el ticket
Question | el tiempo en París
Question | Últimas noticias de la bolsa
Question Command:envíales | ¿Quién trabaja en Madrid? Envíales la agenda
ActionQuestion | ¿Debería archivar el ticket 88?
ActionQuestion | ¿Debo archivar el ticket?
ActionQuestion | ¿Puedo borrar el archivo?
ActionQuestion | ¿Podemos borrar el archivo?
ActionQuestion | ¿Tengo que archivar el ticket?
ActionQuestion | ¿Cómo archivo un ticket?
ActionQuestion | ¿Cómo puedo borrar un archivo?
ActionQuestion | ¿Has archivado el ticket?
ActionQuestion | ¿Es posible borrar el archivo?
ActionQuestion | ¿Es seguro borrar el archivo?
ActionQuestion | ¿Se puede borrar el archivo?
ActionQuestion | ¿Qué pasa si archivo el ticket?
ActionQuestion | ¿Por qué no archivas el ticket?
Negated | No archives el ticket 88
Negated | no archive el ticket
Negated | Nunca archives el ticket
Negated | Por favor, no archives el ticket
Negated | No borres nada
Negated | No archivar el ticket
Negated | No quiero archivar el ticket
Negated | No quiero que archives el ticket
Negated | ¿Podrías no archivar el ticket?
Negated | Quiero que no archives el ticket
Negated | Bajo ninguna circunstancia borres el archivo
Negated Negated | No archives ni borres el ticket
Negated Command:lista | No archives el ticket, lista los archivos
Negated Command:muestra | No archives el ticket, sino muestra los archivos
Conditional Conditional:archiva | Si el ticket es viejo, archiva el ticket
Conditional Conditional:archívalo | Si llueve, archívalo ahora
Conditional Conditional:archiva | Cuando Bob responda, archiva el ticket
Conditional Conditional:archiva | En cuanto Bob responda, archiva el ticket
Conditional:archiva | Archiva el ticket si es viejo
Conditional:archiva | Archiva el ticket a menos que llueva
Conditional:archivar | ¿Podrías archivar el ticket si es viejo?
Question:comprueba Conditional:ciérralo | Comprueba si el ticket es viejo y ciérralo
Negated Command:muéstralo | Antes de borrar el archivo, muéstralo
Conditional:archiva | Archiva el ticket más tarde
Conditional Conditional:archiva | Pregúntame y luego archiva el ticket
Statement | Archivar el ticket sería un error
Conditional:archiva | Archiva el ticket solo tras su respuesta
Negated | Deja de borrar los archivos
ActionQuestion | ¿Por qué archivaste el ticket 88?
Command:archiva | Archiva el ticket lo antes posible
Negated | No sé si debo archivar el ticket
ActionQuestion | Hay que archivar el ticket
Statement | El ticket no debe ser archivado
Command:haz | haz una copia del archivo
Hypothetical | ¿Y si archivo el ticket?
Hypothetical | ¿Qué pasaría si archivo el ticket?
Hypothetical | Supongamos que archivo el ticket
Hypothetical | Estaba pensando en archivar el ticket
Hypothetical | Quizás archivar el ticket
Hypothetical | Tal vez archivar el ticket
Reported | Bob dijo que archives el ticket
Reported | Me pidió que archive el ticket
Reported | Ella dijo que el ticket es viejo
Reported | Mi jefe quiere archivar el ticket
Quoted | «Archiva el ticket»
Past | He archivado el ticket
Past | Archivé el ticket ayer
Past | Ya hemos borrado el archivo
Past | El ticket fue archivado ayer
Past | Archivaron el ticket
Statement | Yo trabajo en Madrid
Statement | El ticket es viejo
Statement Command:archiva | El ticket es viejo, archiva el ticket
`)
}
