package rules

import "strings"

var currencies = table(`
USD: usd, dollar, dollars, bucks
EUR: eur, euro, euros
GBP: gbp, pound, pounds, sterling
JPY: jpy, yen
CNY: cny, rmb, yuan, renminbi
INR: inr, rupee, rupees
CAD: cad
AUD: aud
CHF: chf, franc, francs
KRW: krw, won
BRL: brl, real, reais
MXN: mxn, peso, pesos
SEK: sek, krona
NOK: nok, krone
RUB: rub, ruble, rubles
ZAR: zar, rand
TRY: try, lira
SGD: sgd
HKD: hkd
NZD: nzd
THB: thb, baht
`)

// currencyCode is the ISO code of a currency by code, name, or nation and name.
func currencyCode(s string) string {
	lower := strings.ToLower(strings.TrimSpace(s))
	if code := currencies[lower]; code != "" {
		return code
	}
	if i := strings.LastIndexByte(lower, ' '); i > 0 {
		nation, unit := lower[:i], lower[i+1:]
		return nationalCurrency(nation, unit)
	}
	if len(s) == 3 && strings.ToUpper(s) == s {
		return s
	}
	return ""
}

// nationalCurrency is the code of "Canadian dollars" and the like.
func nationalCurrency(nation, unit string) string {
	base := currencies[unit]
	if base == "" {
		return ""
	}
	country := places.demonyms[nation]
	if country == "" {
		country = nation
	}
	code := places.countries[strings.ToLower(country)]
	for _, c := range []string{code + "D", code + base[2:], base} {
		for _, known := range currencies {
			if known == c && (c != base || c[:2] == code || base == "EUR") {
				return c
			}
		}
	}
	return base
}

// currencyAfter is the currency of a nation's name followed by a unit in lower case.
func (f *filler) currencyAfter(m mention) string {
	if m.end < len(f.r.tokens) && currencies[f.r.tokens[m.end].lower] != "" {
		return nationalCurrency(strings.ToLower(m.text), f.r.tokens[m.end].lower)
	}
	return ""
}

// unitSpan is where the unit of a quantity stands: after the number, or with it.
func (r reading) unitSpan(m mention) mention {
	if m.end < len(r.tokens) && currencies[r.tokens[m.end].lower] != "" {
		return mention{kind: kindPhrase, start: m.end, end: m.end + 1, text: r.tokens[m.end].text}
	}
	return mention{kind: kindPhrase, start: m.end, end: m.end, text: m.number.currency}
}

// sourceScore favours the currency of the amount as the one to convert from.
func sourceScore(q param) float64 {
	switch q.role() {
	case roleFrom:
		return 1
	case roleTo:
		return -1.5
	}
	return 0
}
