package rules

import "strings"

// This is common knowledge about places: the states of the USA with their capitals and the fifty most
// populous cities, and the countries of the world with their capitals and the cities of about three million
// people or more. Other places are recognised by how a question speaks of them.

// usStates has a state of the USA a line: postal code: name: cities.
const usStates = `
AL: alabama: montgomery
AK: alaska: juneau
AZ: arizona: phoenix, tucson, mesa
AR: arkansas: little rock
CA: california: sacramento, los angeles, san diego, san jose, san francisco, fresno, long beach, oakland, bakersfield
CO: colorado: denver, colorado springs
CT: connecticut: hartford
DE: delaware: dover
FL: florida: tallahassee, jacksonville, miami, tampa
GA: georgia: atlanta
HI: hawaii: honolulu
ID: idaho: boise
IL: illinois: springfield, chicago
IN: indiana: indianapolis
IA: iowa: des moines
KS: kansas: topeka, wichita
KY: kentucky: frankfort, louisville
LA: louisiana: baton rouge
ME: maine: augusta
MD: maryland: annapolis, baltimore
MA: massachusetts: boston
MI: michigan: lansing, detroit
MN: minnesota: saint paul, minneapolis
MS: mississippi: jackson
MO: missouri: jefferson city, kansas city
MT: montana: helena
NE: nebraska: lincoln, omaha
NV: nevada: carson city, las vegas
NH: new hampshire: concord
NJ: new jersey: trenton
NM: new mexico: santa fe, albuquerque
NY: new york: albany, new york, new york city, nyc
NC: north carolina: raleigh, charlotte
ND: north dakota: bismarck
OH: ohio: columbus
OK: oklahoma: oklahoma city, tulsa
OR: oregon: salem, portland
PA: pennsylvania: harrisburg, philadelphia
RI: rhode island: providence
SC: south carolina: columbia
SD: south dakota: pierre
TN: tennessee: nashville, memphis
TX: texas: austin, houston, san antonio, dallas, fort worth, el paso, arlington
UT: utah: salt lake city
VT: vermont: montpelier
VA: virginia: richmond, virginia beach
WA: washington: olympia, seattle
WV: west virginia: charleston
WI: wisconsin: madison, milwaukee
WY: wyoming: cheyenne
DC: district of columbia: washington, washington dc, washington d.c
`

// nations has a country a line: ISO 3166 code: names, the usual one first: adjectives and languages: cities,
// or a dash.
const nations = `
AF: Afghanistan: afghan: kabul
AL: Albania: albanian: tirana
DZ: Algeria: algerian: algiers
AD: Andorra: andorran: andorra la vella
AO: Angola: angolan: luanda
AG: Antigua and Barbuda: antiguan: saint john's
AR: Argentina: argentine, argentinian: buenos aires
AM: Armenia: armenian: yerevan
AU: Australia: australian: canberra, sydney, melbourne, brisbane
AT: Austria: austrian: vienna
AZ: Azerbaijan: azerbaijani: baku
BS: Bahamas, the bahamas: bahamian: nassau
BH: Bahrain: bahraini: manama
BD: Bangladesh: bangladeshi, bengali: dhaka, chittagong
BB: Barbados: barbadian: bridgetown
BY: Belarus: belarusian: minsk
BE: Belgium: belgian: brussels
BZ: Belize: belizean: belmopan
BJ: Benin: beninese: porto-novo
BT: Bhutan: bhutanese: thimphu
BO: Bolivia: bolivian: la paz, sucre
BA: Bosnia and Herzegovina, bosnia: bosnian: sarajevo
BW: Botswana: botswanan: gaborone
BR: Brazil: brazilian: brasilia, sao paulo, são paulo, rio de janeiro, belo horizonte, recife, fortaleza, porto alegre, salvador
BN: Brunei: bruneian: bandar seri begawan
BG: Bulgaria: bulgarian: sofia
BF: Burkina Faso: burkinabe: ouagadougou
BI: Burundi: burundian: gitega
KH: Cambodia: cambodian, khmer: phnom penh
CM: Cameroon: cameroonian: yaounde, douala
CA: Canada: canadian: ottawa, toronto, montreal, vancouver
CV: Cape Verde, cabo verde: cape verdean: praia
CF: Central African Republic: central african: bangui
TD: Chad: chadian: n'djamena
CL: Chile: chilean: santiago
CN: China: chinese, mandarin: beijing, shanghai, guangzhou, shenzhen, tianjin, chongqing, chengdu, wuhan, hangzhou, nanjing, xi'an, shenyang, qingdao, harbin, dalian, hong kong
CO: Colombia: colombian: bogota, bogotá, medellin
KM: Comoros: comorian: moroni
CG: Congo: congolese: brazzaville
CD: Democratic Republic of the Congo: congolese: kinshasa
CR: Costa Rica: costa rican: -
HR: Croatia: croatian: zagreb
CU: Cuba: cuban: havana
CY: Cyprus: cypriot: nicosia
CZ: Czech Republic, czechia: czech: prague
DK: Denmark: danish: copenhagen
DJ: Djibouti: djiboutian: -
DM: Dominica: dominican: roseau
DO: Dominican Republic: dominican: santo domingo
EC: Ecuador: ecuadorian: quito, guayaquil
EG: Egypt: egyptian: cairo, alexandria
SV: El Salvador: salvadoran: san salvador
GQ: Equatorial Guinea: equatoguinean: malabo
ER: Eritrea: eritrean: asmara
EE: Estonia: estonian: tallinn
SZ: Eswatini, swaziland: swazi: mbabane
ET: Ethiopia: ethiopian, amharic: addis ababa
FJ: Fiji: fijian: suva
FI: Finland: finnish: helsinki
FR: France: french: paris
GA: Gabon: gabonese: libreville
GM: Gambia, the gambia: gambian: banjul
GE: Georgia: georgian: tbilisi
DE: Germany: german: berlin
GH: Ghana: ghanaian: accra, kumasi
GR: Greece: greek: athens
GD: Grenada: grenadian: saint george's
GT: Guatemala: guatemalan: guatemala city
GN: Guinea: guinean: conakry
GW: Guinea-Bissau: bissau-guinean: bissau
GY: Guyana: guyanese: georgetown
HT: Haiti: haitian: port-au-prince
HN: Honduras: honduran: tegucigalpa
HU: Hungary: hungarian: budapest
IS: Iceland: icelandic: reykjavik
IN: India: indian, hindi: new delhi, delhi, mumbai, bangalore, bengaluru, hyderabad, ahmedabad, chennai, kolkata, surat, pune, jaipur, lucknow
ID: Indonesia: indonesian: jakarta, surabaya, bandung
IR: Iran: iranian, persian, farsi: tehran, mashhad
IQ: Iraq: iraqi: baghdad
IE: Ireland: irish: dublin
IL: Israel: israeli, hebrew: jerusalem, tel aviv
IT: Italy: italian: rome, milan, naples
CI: Ivory Coast, cote d'ivoire: ivorian: yamoussoukro, abidjan
JM: Jamaica: jamaican: kingston
JP: Japan: japanese: tokyo, osaka, nagoya, yokohama, fukuoka
JO: Jordan: jordanian: amman
KZ: Kazakhstan: kazakh: astana
KE: Kenya: kenyan, swahili: nairobi
KI: Kiribati: i-kiribati: tarawa
KP: North Korea: north korean: pyongyang
KR: South Korea, korea: south korean, korean: seoul, busan, incheon
KW: Kuwait: kuwaiti: kuwait city
KG: Kyrgyzstan: kyrgyz: bishkek
LA: Laos: laotian, lao: vientiane
LV: Latvia: latvian: riga
LB: Lebanon: lebanese: beirut
LS: Lesotho: basotho: maseru
LR: Liberia: liberian: monrovia
LY: Libya: libyan: tripoli
LI: Liechtenstein: liechtensteiner: vaduz
LT: Lithuania: lithuanian: vilnius
LU: Luxembourg: luxembourgish: -
MG: Madagascar: malagasy: antananarivo
MW: Malawi: malawian: lilongwe
MY: Malaysia: malaysian, malay: kuala lumpur
MV: Maldives: maldivian: malé
ML: Mali: malian: bamako
MT: Malta: maltese: valletta
MH: Marshall Islands: marshallese: majuro
MR: Mauritania: mauritanian: nouakchott
MU: Mauritius: mauritian: port louis
MX: Mexico: mexican: mexico city, guadalajara, monterrey, puebla, tijuana
FM: Micronesia: micronesian: palikir
MD: Moldova: moldovan: chisinau
MC: Monaco: monegasque: -
MN: Mongolia: mongolian: ulaanbaatar
ME: Montenegro: montenegrin: podgorica
MA: Morocco: moroccan: rabat, casablanca
MZ: Mozambique: mozambican: maputo
MM: Myanmar, burma: burmese: naypyidaw, yangon
NA: Namibia: namibian: windhoek
NR: Nauru: nauruan: yaren
NP: Nepal: nepali, nepalese: kathmandu
NL: Netherlands, the netherlands, holland: dutch: amsterdam
NZ: New Zealand: new zealander: wellington
NI: Nicaragua: nicaraguan: managua
NE: Niger: nigerien: niamey
NG: Nigeria: nigerian: abuja, lagos, kano, ibadan
MK: North Macedonia, macedonia: macedonian: skopje
NO: Norway: norwegian: oslo
OM: Oman: omani: muscat
PK: Pakistan: pakistani, urdu: islamabad, karachi, lahore, faisalabad
PW: Palau: palauan: ngerulmud
PA: Panama: panamanian: panama city
PG: Papua New Guinea: papua new guinean: port moresby
PY: Paraguay: paraguayan: asuncion
PE: Peru: peruvian: lima
PH: Philippines, the philippines: filipino, tagalog: manila, quezon city
PL: Poland: polish: warsaw
PS: Palestine: palestinian: ramallah
PT: Portugal: portuguese: lisbon
QA: Qatar: qatari: doha
RO: Romania: romanian: bucharest
RU: Russia: russian: moscow, saint petersburg, st. petersburg
RW: Rwanda: rwandan: kigali
KN: Saint Kitts and Nevis: kittitian: basseterre
LC: Saint Lucia: saint lucian: castries
VC: Saint Vincent and the Grenadines: vincentian: kingstown
WS: Samoa: samoan: apia
SM: San Marino: sammarinese: -
ST: Sao Tome and Principe: santomean: sao tome
SA: Saudi Arabia: saudi, saudi arabian, arabic: riyadh, jeddah
SN: Senegal: senegalese: dakar
RS: Serbia: serbian: belgrade
SC: Seychelles: seychellois: victoria
SL: Sierra Leone: sierra leonean: freetown
SG: Singapore: singaporean: -
SK: Slovakia: slovak: bratislava
SI: Slovenia: slovenian, slovene: ljubljana
SB: Solomon Islands: solomon islander: honiara
SO: Somalia: somali: mogadishu
ZA: South Africa: south african: pretoria, cape town, johannesburg, durban
SS: South Sudan: south sudanese: juba
ES: Spain: spanish: madrid, barcelona
LK: Sri Lanka: sri lankan, sinhala: colombo
SD: Sudan: sudanese: khartoum
SR: Suriname: surinamese: paramaribo
SE: Sweden: swedish: stockholm
CH: Switzerland: swiss: bern
SY: Syria: syrian: damascus
TW: Taiwan: taiwanese: taipei
TJ: Tajikistan: tajik: dushanbe
TZ: Tanzania: tanzanian: dodoma, dar es salaam
TH: Thailand: thai: bangkok
TL: Timor-Leste, east timor: timorese: dili
TG: Togo: togolese: lome
TO: Tonga: tongan: nuku'alofa
TT: Trinidad and Tobago: trinidadian: port of spain
TN: Tunisia: tunisian: tunis
TR: Turkey, türkiye: turkish: ankara, istanbul, izmir
TM: Turkmenistan: turkmen: ashgabat
TV: Tuvalu: tuvaluan: funafuti
UG: Uganda: ugandan: kampala
UA: Ukraine: ukrainian: kyiv, kiev
AE: United Arab Emirates, uae: emirati: abu dhabi, dubai
GB: United Kingdom, uk, u.k, great britain, britain, england, scotland, wales: british, english, scottish, welsh: london
US: United States, usa, us, u.s, u.s.a, america, united states of america: american, u.s.: -
UY: Uruguay: uruguayan: montevideo
UZ: Uzbekistan: uzbek: tashkent
VU: Vanuatu: vanuatuan: port vila
VA: Vatican City, holy see: vatican: -
VE: Venezuela: venezuelan: caracas
VN: Vietnam: vietnamese: hanoi, ho chi minh city
YE: Yemen: yemeni: sanaa
ZM: Zambia: zambian: lusaka
ZW: Zimbabwe: zimbabwean: harare
`

// atlas looks places up by their names in lower case.
type atlas struct {
	states    map[string]string // to postal code
	usCities  map[string]string // to postal code
	cities    map[string]string // elsewhere, to country
	countries map[string]string // to ISO code
	demonyms  map[string]string // adjectives and languages, to country
}

var places = readAtlas()

func readAtlas() atlas {
	a := atlas{map[string]string{}, map[string]string{}, map[string]string{}, map[string]string{}, map[string]string{}}
	fill := func(m map[string]string, names, value string) {
		for name := range strings.SplitSeq(names, ", ") {
			if name != "-" {
				m[strings.ToLower(name)] = value
			}
		}
	}
	for line := range strings.Lines(usStates) {
		if f := strings.Split(strings.TrimSpace(line), ": "); len(f) == 3 {
			fill(a.states, f[1], f[0])
			fill(a.usCities, f[2], f[0])
		}
	}
	for line := range strings.Lines(nations) {
		if f := strings.Split(strings.TrimSpace(line), ": "); len(f) == 4 {
			name, _, _ := strings.Cut(f[1], ", ")
			fill(a.countries, f[1], f[0])
			fill(a.demonyms, f[2], name)
			fill(a.cities, f[3], name)
		}
	}
	return a
}

// continents and the like need no country.
var continents = set("europe asia africa america antarctica oceania australia")

// knownPlace reports whether a name is a place by common knowledge.
func knownPlace(name string) bool {
	n := strings.ToLower(strings.Trim(name, "."))
	return places.states[n] != "" || knownCity(n) || places.countries[n] != "" || continents[n]
}

// knownCity reports whether a name is a city by common knowledge.
func knownCity(name string) bool {
	n := strings.ToLower(name)
	return places.usCities[n] != "" || places.cities[n] != ""
}

// notPlace reports whether a name is surely no place: a nation's adjective, a weekday or a month.
func notPlace(name string) bool {
	n := strings.ToLower(name)
	_, day := weekdays[n]
	return places.demonyms[n] != "" || day || monthNames[n] > 0
}
