package intent

var english = newLexicon("en", `
fillers: please kindly just simply quickly now also then first next finally ok okay so well hi hello hey yes and really actually still already again today tomorrow yesterday immediately later even ever too instead rather only right maybe alright thanks thank always usually directly currently soon tonight
please: please pls plz
joins: and or then plus & but nor so yet
or: or nor
restarts: but instead rather only just so please
dets: a an the this that these those my your our his her its their me us him it them all any some each every both another more most no nothing nobody none neither everything everyone myself somebody someone something anything anyone what whatever today's tomorrow's
preps: in on at of from by with about into onto as over under between during for per through until till via within without before after since against among around near next behind beside across than like to
toward: to
subjects: i we you he she it they there one
wh: what who whom whose which where when why how whats wheres whos hows
inner: that which who whom whose what how where why whether because when while so
aux: is are was were am be been being do does did done has have had having can could will would shall should may might must ought
negation: not never no nothing nobody none neither nowhere hardly
past: was were had has have did been
modal: can could will would shall should may might must to do does did
reports: said says say asked asks told tells wrote writes wants wanted suggested suggests recommended recommends insisted insists claimed claims thinks thought believes mentioned demanded demands proposed proposes instructed ordered requested requests advised expects expected
nominal: latest last new recent upcoming current top best average total available max maximum min minimum previous past own many much few several first second third other same
heads: status number numbers details info information history total totals count date dates name names price prices summary overview report news weather forecast rate rates id ids list size time times notes conflicts confirmation review reviews policy logs failures fees statistics stats schedule hours type value values amount address addresses results entries items candidate candidates state settings
particles: up out off down away back over in on
phrasal: turn switch log sign
notVerb: ing ed s tion ness ity ly
verb: bring ping ring ss eed wed shed focus mention question position pply reply multiply fly rely comply
words: if unless once than let cannot else otherwise because although though while whereas`,
	`
Command: do not forget|fail to V; never forget|fail to V; make sure to V; make sure that? you V; be sure to V; feel free to V; go ahead and? V; go and V; try to V; help me|us|to V; help me|us to V; do me a favor|favour and? V; i do not mind END
Retract: do not END; no wait|do|not; never mind; not really|yet END; forget|scratch|disregard|ignore that|it|this; just kidding; on second thought|thoughts; or do not END; better not END; wait no
Hypothetical: what if; what would|might|could happen; suppose|supposing|imagine|pretend|assume|assuming|hypothetically|theoretically|perhaps|maybe; let is say|suppose|assume|imagine|pretend; let us say|suppose|assume|imagine|pretend; say i|we|you; would it|that|this; would .. if; i|we may|might|could; i|we am|are|was|were been? thinking|considering|contemplating|tempted|debating|planning|about; i|we have been thinking|considering|wondering; i|we had been? thinking|considering|planning; i|we wish; i wonder if|whether i|we; i am|was wondering if|whether i|we|to; if only; i|we thought about|of|i|we; in theory
Request: i|we am|was|were wondering if|whether you can|could|would|might V; i|we would appreciate it if you can|could|would V; it would be $any? great|nice|good|lovely|helpful|cool if you can|could|would V; i|we would be grateful if you can|could|would V; may|can|could i|we ask you to V; i|we ask you to V
ActionQuestion: what happens|happened; how|why can|could|do|does|did|should|shall|would|must|may|might|will|am|are i|we|you|one|people; how|where to; how come; how about|what|~ing; what about ~ing; why not; why do not; whether to
Question: can|could|may|might i|we see|get|have|know|find|view; can|could i|we please have|see
ActionQuestion: can|could|may|might|must|shall|should|would|will|need|ought i|we|one|anyone|somebody|someone|people; should|must|shall not? $subjects|$dets; do|did i|we have|need|want|get|dare to; am|are i|we allowed|supposed|able|right|permitted|going|free|authorized; is|was|would|will it|there $any? $any? to|if|that; is|was it $any for me|you|us|someone to; have|had|did|were|are you; do you think|recommend|want|advise|mean|plan|suggest|mind|ever|usually|automatically; is|are there a|any way|possibility|need|point|reason|harm|risk; is ~ing; is it worth ~ing; can you .. or not END
Negated: i|we do|did|would|will|can|could|must|should|may|have|am|are|was not; i|we never|cannot; i|we no longer; let is|us not; can|could|will|would|do|did|is|are|should|must you|we|it|he|she|they not; can|could|will|would|must|should|may|might|shall|do|does|did|need|dare not; not; never; no; neither|nobody|nothing|none|nowhere; under|in|by|at|on|for no; you must|should|may|can|shall|will|do|need|ought|could|are not|never; be careful|sure|certain not; it is not; $dets not; by no means; without
Question: can|could|would|will|do|please you? tell me|us; tell me|us who|what|where|when|why|how|which|whether|if|about|the|all|more; tell me|us; can|could|would|will|please you? let me|us know|see; let me|us; do you know|have|see|remember; can|could|would you know; i|we want|need|like|have to know|see|understand|learn; i|we would like|love to know|see|understand|learn; i|we wonder who|what|where|when|why|how|which; i|we am|was|are wondering|curious|interested|asking|looking|searching; which|what is|are|was the|my|our; $wh will|is|are|was|were|do|does|did|has|have|had|can|could|should|would|may
Conditional: if|unless|once|whenever|otherwise|else|provided|providing; when; as|so soon|long as; in case|the? event|case; only if|when|once|after|in; should|were|had $any $any .. ; until|till; every|each time i|we|you|it|he|she|they|the|a|an; depending on; after i|we|you|it|he|she|they|the|my|our|everyone|all|this|that; on condition; the moment|minute; even if
Request: will|would you mind ~ing; will|would|could|can you be so? kind|nice|good|able enough|and|as? to|and V; could|can|would|will you help me|us to? V; could|can|would|will you please? go ahead and V; could|can|would|will you V; i|we want|need|expect|ask|beg|request|require you to V; i|we would like|love|prefer|need|want you to V; i|we would like|love|want to V; i|we want|need|like|wish to V; let is|us V; do V; i|we want|need help ~ing
Question: i|we need|want|require; i|we would like|love; i|we am trying
Past: i|we have|had|was|were|did|just|already|recently; i|we already?; it|he|she|they|this|that has|have|had|was|were|did; you have|had|was|were|did
Reported: according; apparently|allegedly|supposedly|reportedly; i|we was|were|have|had been? told|asked|instructed|advised|ordered; he|she|they|it|you|everyone|somebody|someone|who|people say|says|said|asked|asks|told|tells|want|wants|wanted|wrote|need|needs|suggested|suggests|recommended|recommends|think|thinks|thought|insist|insisted|would|insists|asking|keep|keeps|expect|expects; rumor has
Statement: i|we|you|he|she|it|they|there; because|since|although|though|while|given|before|after|instead; that|this|these|those is|are
`, `
Hypothetical: as if|though
Conditional: if|unless; in case; in the event; provided|providing|assuming; as soon|long as; only when|after|once; whenever; every time; on condition; depending on; should it|he|she|they|the|there|this; until it|he|she|they|the|i|we|you|this; after|once it|he|she|they|i|we|you|this|everyone|all|the; when it|he|she|they|the|i|we|you|my|there|this; otherwise; even if; or else
`)
