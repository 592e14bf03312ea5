package intent

var spanish = newLexicon("es", `
fillers: por favor simplemente ahora también luego después entonces primero rápidamente ya hola sí vale ok y gracias hoy mañana ayer siempre solo sólo mejor todavía aún inmediatamente
please: favor porfa porfavor
joins: y e o u pero luego después entonces sino & ni
or: o u ni
restarts: pero sino mejor favor solo sólo
dets: el la los las un una unos unas lo mi mis tu tus su sus nuestro nuestra nuestros este esta estos estas ese esa esos esas me nos le les todo toda todos todas cada algún alguna nada nadie ningún ninguna al
preps: a de en con sin para por sobre entre desde hasta hacia contra según durante del bajo ante tras
toward: a
clitics: me te se lo la los las le les nos
subjects: yo tú él ella usted nosotros ellos ellas ustedes vosotros
wh: qué quién quiénes cuál cuáles dónde cuándo cómo cuánto cuántos cuánta cuántas adónde que quien donde cuando como
inner: que quien quienes donde cuando cuyo cuya qué quién cuál dónde cuándo cómo porque si
aux: es son era eran fue fueron está están estaba ser estar ha han he has hemos había habían hay puede puedes puedo pueden podría podrías podríamos podemos debo debe debes debería deberías deberíamos debemos quiero quieres quiere quisiera va voy vas tengo tiene
negation: no nunca jamás nada nadie ningún ninguno ninguna tampoco ni
past: he ha has han hemos había fue fueron era
modal: puede puedo podría debe debo debería voy va quiero
reports: dijo dice dijeron pidió pide quiere quería escribió escribe sugirió sugiere recomendó recomienda preguntó ordenó cree piensa comentó exige
nominal: último última últimos últimas nuevo nueva nuevos nuevas próximo próxima mejor mejores
heads: estado
notVerb: ado ido ados idos ando iendo ción é ó í o aron ieron aste iste
verb: lo
words: si cuando aunque como que excepto salvo mientras supongamos`,
	`
Command: no te? olvides|olvide|olvidéis de? V
Retract: no END; olvídalo END; déjalo END; mejor no END; no importa
Hypothetical: y? qué si; y si; qué pasaría; supongamos|supón|supon|imagina|imaginemos|imagínate|suponiendo|pongamos que?; quizás|quizá|tal|acaso; yo? estaba|estoy|estábamos|he pensando|considerando|planeando; pensaba|pensábamos|podría|iba|íbamos .. V; sería; en teoría|teóricamente; me pregunto si; ojalá
ActionQuestion: qué pasa|sucede|ocurre; cómo puedo|podemos|se|hago|podría|debo|puede|~o|~ar|~er|~ir|~amos; por qué no; debería|deberíamos|debo|debemos|puedo|podemos|podríamos; tengo|tenemos|hay que; necesito|necesitamos ~ar .. ; has|habéis|han|ha usted? V; es|sería|está $any? posible|seguro|recomendable|bueno|mejor|bien|correcto|prudente; se puede|debe|podría; crees|piensas|recomiendas|aconsejas que?; hace falta
Negated: no; nunca|jamás|nada|nadie|ningún|ninguna|ni|tampoco; yo no; en|bajo ningún|ninguna; de ninguna; por nada; sin; evita|evite; puedes|podrías|puede|podría no; quiero|prefiero|quisiera que no
Question: puedes|podrías|puede|podría decirme|decirnos|mostrarme|indicarme|explicarme; me puedes|podrías|puede|podría decir|mostrar|indicar; dime|dígame|dinos|díganos|decidme; sabes|sabe; quiero|quisiera|necesito saber|ver|conocer|entender; me gustaría saber|ver|conocer; qué|quién|quiénes|cuál|cuáles|dónde|cuándo|cuánto|cuántos|cuánta|cuántas|adónde|cómo; a|de|en|con|para|por|desde qué|quién|cuál|dónde|cuándo
Conditional: si|cuando|siempre|salvo|excepto|apenas|mientras|una vez que?; en caso; a menos; con tal; en cuanto; tan pronto; solo|sólo si; después de que; hasta que; de lo contrario; a condición
Request: me|nos? puedes|podrías|puede|podría|podéis|pueden|podrían V; quiero|quisiera|necesito|queremos|necesitamos|deseo que V; quiero|quisiera|necesito|queremos|necesitamos|deseo V; me|nos gustaría que V; me|nos gustaría V; te|le pido que V; vamos a V; haz el favor de V; sería tan amable de V
Question: busco|quiero|necesito
Past: yo? he|hemos|había|habíamos|has|ha|han; ~é; ~aron; ~ieron; ~ó; ayer
Reported: según; al parecer|aparentemente; ella|él|ellos|usted|me|nos|le|les|se? dijo|dice|dijeron|dicen|pidió|pide|pidieron|quiere|quería|escribió|sugirió|recomendó|ordenó|preguntó; parece
Statement: yo|tú|él|ella|usted|nosotros|ellos|ellas; porque|aunque|como|antes|ya que
`, `
Hypothetical: como si
Conditional: si; cuando; en caso; a menos; en cuanto; tan pronto; siempre que|y; salvo|excepto si|que; una vez que; después de que; hasta que; con tal; a condición; mientras
`)
