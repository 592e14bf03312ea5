package intent

var french = newLexicon("fr", `
fillers: s'il svp stp veuillez donc aussi puis ensuite alors maintenant vite simplement juste d'abord enfin bonjour salut merci oui ok et déjà encore aujourd'hui demain hier toujours gentiment plutôt seulement immédiatement
please: svp stp veuillez plaît plait
joins: et ou puis mais ensuite alors & donc ni
or: ou ni
restarts: mais plutôt seulement svp stp
dets: le la les l un une des du au aux mon ma mes ton ta tes son sa ses notre nos votre vos leur leurs ce cet cette ces moi toi lui nous tout toute tous toutes chaque quelque quelques aucun aucune rien personne ça cela
preps: à de d en dans sur sous avec sans pour par chez vers entre pendant depuis avant après contre selon dès
toward: à
clitics: me m te t se s le la les l lui leur nous vous y en
subjects: je j tu il elle on nous vous ils elles c ce
wh: qui que qu quoi quel quelle quels quelles où quand pourquoi comment combien
inner: qui que qu dont où quand pourquoi comment parce quoi lequel laquelle si s
aux: est sont était étaient suis es sommes êtes être a ont ai as avons avez avait avaient avais aurait peut peux pouvez peuvent pourrais pourriez pourrait doit dois devez devrais devrait veux veut voulez voudrais voudrait va vais vas faut
negation: ne n pas jamais rien aucun aucune personne ni guère non
past: ai as a avons avez ont avais avait était étaient
modal: peut peux dois doit veux pourrais devrais vais va faut
reports: dit disait demande demandait veut voulait écrit souhaite suggère recommande pense affirme exige propose conseillé demandé
nominal: dernier dernière derniers dernières nouveau nouvelle nouveaux nouvelles prochain prochaine meilleur meilleurs
heads: statut
notVerb: tion té tés
words: si jusqu lorsque lorsqu puisque puisqu sauf sinon vous plaît quand est-ce supposons imaginons`,
	`
Command: n|ne oublie|oubliez|oublions|oublier pas? pas? de|d V; veuillez V
Retract: non END; laisse|laissez tomber; oublie|oubliez ça END; finalement|non non|pas END
Hypothetical: et? si on|je|j|nous|tu ~ais; et si; que se passerait t? il?; qu arriverait; supposons|imaginons|admettons|imagine|imaginez|suppose|supposez que|qu|si?; peut-être; je|j|on|nous pensais|songeais|songe|réfléchis|envisage|envisageais|pourrais|pourrait|pourrions|allais|hésite|aurais; théoriquement; ce|cela|ça serait|ferait; serait ce|il
ActionQuestion: que|qu|ce se|arrive passe? t? il? si?; comment $any? je|on|nous|tu|vous|faire|puis|peut|dois|~er; comment est ce que? qu? je|on; pourquoi ne|n; est ce que je|j|on|nous|c; est ce que|qu je|j|on|nous|il; dois|puis|peux|devrais|pourrais|devons|pouvons je|nous; peut|doit|devrait|pourrait on; faut il; est ce que|qu tu|vous as|avez|es; est ce que|qu il? est? $any? possible|faut; as|avez|aviez tu|vous; est ce|il possible|utile|prudent|mieux|ok|permis|raisonnable; penses|crois|conseilles|recommandes tu; pensez|croyez|conseillez|recommandez vous; est ce que c
Negated: ne|n; pas|jamais|surtout|rien|aucun|aucune|ni; je|j|on|nous|tu|vous ne|n; en aucun; sous aucun; sans; peux|pourrais|pouvez|pourriez tu|vous ne|n; évite|évitez; je préfère|préférerais ne|que
Question: peux|pourrais|pouvez|pourriez tu|vous me|nous? dire|montrer|expliquer|indiquer; est ce que tu|vous peux|pourrais|pouvez|pourriez me|nous? dire|montrer; dis|dites moi|nous; sais|savez tu|vous; je|nous veux|voudrais|voulons|aimerais|souhaite savoir|voir|connaître|comprendre; qui|que|qu|quoi|quel|quelle|quels|quelles|où|quand|pourquoi|combien|comment
Conditional: si|s|sinon|lorsque|lorsqu|dès|quand|sauf|tant; à condition; au cas; en cas; à moins; une fois; après que|qu; seulement|uniquement si; aussitôt; pourvu
Request: peux|pourrais|pouvez|pourriez|veux|voulez tu|vous bien? V; est ce que tu|vous peux|pourrais|pouvez|pourriez V; tu|vous peux|pourrais|pouvez|pourriez V; je|j|nous veux|voudrais|voulons|aimerais|aimerions|souhaite|souhaiterais|voudrions que|qu tu|vous V; je|j|nous veux|voudrais|voulons|aimerais|aimerions|souhaite|souhaiterais|voudrions V; merci de|d V; je|nous vous|te|t prie|demande|prions de|d V; auriez vous l amabilité|la? gentillesse? de|d V
Question: j ai besoin; je cherche|veux|voudrais; il me faut
Past: je|j|on|nous|tu|vous|il|elle|ils|elles l|les|le|la|m|t|y? ai|as|a|avons|avez|ont|avais|avait|avions|suis|es|est|sommes
Reported: selon|apparemment; d après; il|elle|ils|elles|on m|me|nous|t|lui? a|ont|avait|avaient? dit|demandé|écrit|demande|veut|voulait|souhaite|suggère|suggéré|pense|veulent|conseillé|recommandé|proposé|exige; il|elle paraît|paraîtrait
Statement: je|j|on|nous|tu|vous|il|elle|ils|elles|c|ce; parce|puisque|comme|bien|avant|afin
`, `
Hypothetical: comme si
Conditional: si|s; sinon; à condition; au cas; en cas; à moins; dès que|qu; lorsque|lorsqu; quand; sauf si; tant que; une fois que|qu; pourvu que; après que|qu; jusqu à ce
`)
