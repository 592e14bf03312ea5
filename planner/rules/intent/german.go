package intent

var german = newLexicon("de", `
fillers: bitte mal doch eben einfach kurz jetzt nun auch dann zuerst zunächst danach anschließend schnell sofort gleich noch hallo hi ja ok okay also und schon gern gerne freundlicherweise heute morgen gestern nur wirklich vielleicht überhaupt wohl lieber stattdessen immer wieder so
please: bitte
joins: und oder dann aber sondern sowie & danach anschließend
or: oder
restarts: aber sondern stattdessen bitte nur lieber
dets: der die das den dem des ein eine einen einem einer eines mein meine meinen meinem meiner meines dein deine deinen deinem deiner unser unsere unseren unserem unserer ihr ihre ihren ihrem ihrer sein seine seinen seinem seiner dieser diese dieses diesen diesem jeder jede jedes jeden jedem alle alles allen beide mir mich uns dir dich ihm ihn ihnen es sie welche welcher welches etwas jemand jemanden niemand niemanden nichts kein keine keinen keinem keiner keines sich
preps: in im ins an am ans auf aus bei beim mit nach von vom zu zum zur über um für durch gegen ohne bis seit vor hinter neben zwischen unter während wegen trotz laut ab
toward: an auf nach
subjects: ich wir du ihr er man sie
wh: wer was wo wann warum wieso weshalb wie wohin woher wem wen wessen welche welcher welches welchen welchem wieviel wieviele womit wofür
inner: dass daß ob weil wenn falls damit wer was wo wann warum wie wohin welche welcher welches welchen sobald sofern solange nachdem bevor indem obwohl während
aux: ist sind war waren bin bist sein wird werden wurde wurden werde hat haben habe hast hatte hatten kann können kannst könnte könnten könntest könnt soll sollen sollte sollten muss müssen musst muß darf dürfen dürfte will wollen willst würde würden würdest würdet magst mag möchte möchtest möchten mochte
negation: nicht nie niemals nichts kein keine keinen keinem keiner keines niemand niemanden keinesfalls keineswegs
past: habe hat haben hast hatte hatten war waren wurde wurden
modal: kann können soll sollen sollte muss müssen darf dürfen will wollen könnte werde wird
reports: sagte sagt sagten meinte meint bat bittet fragte fragt schrieb schreibt will wollte möchte verlangt verlangte empfahl empfiehlt behauptet behauptete glaubt denkt forderte fordert
nominal: neueste neuesten neue letzte letzten aktuelle aktuellen nächste nächsten beste besten offene offenen
heads: status
particles: ab an auf aus ein mit vor zu nach her hin los weg zurück um fest frei herunter hoch runter raus rein durch an bei
notVerb: ung heit keit tion schaft ste t
verb: richt acht arbeit antwort wart bericht leit red st beantrag
final: en eln ern
words: wenn falls sobald sofern außer als ob dass weil angenommen sonst ansonsten solange nachdem bevor damit`,
	`
Command: vergiss|vergesst|vergessen sie? nicht F; denk|denke|denkt daran F; bitte? nicht vergessen .. zu V
Retract: doch nicht END; lieber nicht END; vergiss es|das END; nein END; nein nicht|doch; schon gut; egal END; war nur
Hypothetical: was wäre|passiert|passierte|geschieht|würde wenn|falls|passieren|geschehen; was ist|wäre wenn; angenommen|gesetzt|nehmen|stell|stellen wir|den|dir|sie|ich|es?; angenommen; ich|wir überlege|überlegen|dachte|dachten|denke|erwäge|könnte|könnten|überlegte|spiele; vielleicht; wäre|würde es|das; würde .. wenn; als ob; theoretisch|hypothetisch; ich|wir würde|würden; wenn|falls ich|wir nur; ich frage mich ob; ich|wir hätte|hätten|wäre
Request: ich|wir möchte|möchten|hätte|hätten|würde|würden gern|gerne wissen|sehen|erfahren; ich|wir wäre|wären dankbar wenn F
ActionQuestion: was passiert|geschieht; wie|warum|wieso|weshalb|wozu|wann $aux|storniere|mache ich|wir|man|du; wie ~e ich|man; wie ~en wir|sie; warum nicht; soll|sollen|sollte|sollten|darf|dürfen|dürfte|muss|müssen|kann|können|könnte|könnten|brauche ich|wir|man; ist es|das .. zu F; ist es|das $any? möglich|okay|ok|sinnvoll|sicher|ratsam|richtig|erlaubt; hast|habt|hattest|bist|warst|wirst du|ihr; haben|hatten|werden|sind sie; denkst|meinst|findest|empfiehlst|rätst|glaubst du; soll
Negated: nicht; nie|niemals|keinesfalls|keineswegs; auf|in|unter keinen|keinem; kein|keine|keinen; weder; niemand|nichts; ohne; ich|wir möchte|will|wollen|möchten|brauche|kann nicht|nie|kein|keine|keinen; könntest|kannst|würdest|würden|können|könnten du|sie|ihr .. nicht|nie|niemals|kein|keine|keinen; lass|lassen|lasst uns .. nicht; lass das|es; hör|höre auf
Question: kannst|könntest|können|könnten|würdest|würden|magst|wollt du|sie|ihr mir|uns? .. sagen|zeigen|verraten|erklären; sag|sage|sagen|verrat|zeig|erzähl sie? mir|uns wer|was|wo|wann|wie|warum|ob|welche|welcher|welches|wieviele; sag|sage|verrate mir|uns; weißt|wisst|hast du|ihr; wissen sie; ich|wir möchte|möchten|will|wollen|muss|würde gern|gerne? .. wissen|erfahren|verstehen
Conditional: wenn|falls|sobald|sofern|solange|sonst|ansonsten|andernfalls|nachdem|sooft; außer wenn; es sei denn; nur|erst wenn|falls; im fall|falle; für den fall; sollte|sollten der|die|das|es|er|sie|ein|eine|bob; immer wenn; bis der|die|das|es|er
Request: könntest|kannst|würdest|könntet|könnt|willst|magst du|ihr nicht? F; können|könnten|würden|wollen sie F; ich|wir möchte|möchten|will|wollen .. dass F; ich|wir möchte|möchten|hätte|will|wollen F; lass|lasst uns F; lassen sie uns F; ich|wir bitte|bitten dich|sie|euch F; es wäre $any? nett|toll|schön|super|gut wenn du|sie F; sei|seien sie? so? nett|gut|lieb|freundlich und V
Question: ich|wir brauche|brauchen|suche|suchen|benötige|benötigen; $wh
Past: ich|wir|er|sie|es|man|du|ihr habe|haben|hat|hatte|hatten|war|waren|wurde|wurden|bin|sind|ist
Reported: laut|angeblich|anscheinend; er|sie|man|jemand|es sagt|sagte|sagten|meint|meinte|bat|bittet|fragte|schrieb|schreibt|will|wollte|möchte|verlangt|behauptet|empfiehlt|heißt|soll; mir|uns wurde|wurden; ich soll|sollte
Statement: ich|wir|du|ihr|er|man; sie|es $aux; weil|da|obwohl|bevor|während|damit|statt|anstatt|dass; als
`, `
Hypothetical: als ob|wenn; so als
Conditional: wenn|falls|sobald|sofern|solange|nachdem; außer|es sei|wenn denn|wenn; sollte|sollten es|er|sie|die|der|das; im falle; bis er|sie|es|die|der|das
`)
