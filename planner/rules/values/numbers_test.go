package values

import "testing"

func TestNumbers(t *testing.T) {
	check(t, Options{Language: "en"}, []row{
		{"add 3 and 4", "expression 3 + 4; number 3; number 4"},
		{"add one and two", "expression 1 + 2; number 1; number 2"},
		{"the value -3.5 is", "number -3.5"},
		{"minus 3", "number -3"},
		{"10 minus 3", "expression 10 - 3; number 10; number 3"},
		{"about 1,250.50 or 1,250 or 1.250 or 12,345,678", "number 1250.5; number 1250; number 1.25; number 12345678"},
		{"1.250,50 and 1'250.50 and 1 250,50", "number 1250.5; number 1250.5; number 1250.5"},
		{"the list 1,2,3", "number 1; number 2; number 3"},
		{"the list 1, 250, 3", "number 1; number 250; number 3"},
		{"6.67e-11 and 3e8", "number 0.0000000000667; number 300000000"},
		{"twenty-five, a hundred and five, two thousand and three", "number 25; number 105; number 2003"},
		{"three hundred forty-two thousand six hundred", "number 342600"},
		{"a dozen eggs", "number 12"},
		{"half a million people", "number 500000"},
		{"three and a half", "number 3.5"},
		{"at 298K", "number 298000 or quantity 298 K"},
		{"$298K", "money 298000 USD"},
		{"2.5k followers", "number 2500"},
		{"3 million users", "number 3000000"},
		{"3/4 of it", "number 0.75"},
		{"open 24/7", "number 7"},
		{"this one is the other one", ""},
		{"a file", ""},
		{"3 guests", "number 3"},
		{"3-5 people", "number 3; number 5"},
		{"the 3rd item", "ordinal 3"},
		{"the second item", "ordinal 2"},
		{"with a=1, b=-3", "number 1; number -3"},
		{"40.7128 N, 74.0060 W and 5 W", "number 40.7128; number -74.006; number 5; name W"},
		{"9007199254740993", "number 9007199254740993"},
		{"v1.2.3", "id v1.2.3"},
		{"192.168.0.1", "id 192.168.0.1"},
		{"0.2907590418481535", "number 0.2907590418481535"},
		{"a 49-year-old man, 7 years old", "duration 49 year; duration 7 year"},
		{"five six", "number 5; number 6"},
	})
	check(t, Options{Language: "de"}, []row{
		{"1.250,50 oder 1.250 oder 12,5", "number 1250.5; number 1250; number 12.5"},
		{"1,250", "number 1.25 or number 1250"},
		{"fünfundzwanzig", "number 25"},
		{"zweihundertfünfzig", "number 250"},
		{"dreitausendvierhundertzwölf", "number 3412"},
		{"einundzwanzig Gäste", "number 21"},
		{"ein Dutzend Eier", "number 12"},
		{"3 Mio. Euro", "money 3000000 EUR"},
		{"zwei Millionen", "number 2000000"},
		{"eine Datei und ein Ordner", ""},
		{"anderthalb", ""},
		{"zwei und drei", "number 2; number 3"},
	})
	check(t, Options{Language: "fr"}, []row{
		{"1 250,50 et 1 250", "number 1250.5; number 1250"},
		{"1.250", "number 1250 or number 1.25"},
		{"vingt-cinq", "number 25"},
		{"vingt et un", "number 21"},
		{"soixante-dix", "number 70"},
		{"soixante et onze", "number 71"},
		{"quatre-vingts", "number 80"},
		{"quatre-vingt-dix-sept", "number 97"},
		{"deux cent trois mille", "number 203000"},
		{"une douzaine", "number 12"},
		{"un fichier", ""},
		{"trois fichiers", "number 3"},
		{"deux et trois", "number 2; number 3"},
	})
	check(t, Options{Language: "es"}, []row{
		{"1.250,50", "number 1250.5"},
		{"1.250", "number 1250 or number 1.25"},
		{"veinticinco", "number 25"},
		{"veintidós", "number 22"},
		{"treinta y cinco", "number 35"},
		{"doscientos cuarenta y dos", "number 242"},
		{"quinientos mil", "number 500000"},
		{"setecientos", "number 700"},
		{"un archivo", ""},
		{"dos y tres", "number 2; number 3"},
	})
}

func TestAmounts(t *testing.T) {
	check(t, Options{Language: "en"}, []row{
		{"$2.5k or $3m or -$5", "money 2500 USD; money 3000000 USD; money -5 USD"},
		{"1.250,50 EUR", "money 1250.5 EUR"},
		{"EUR 1,250.50", "money 1250.5 EUR"},
		{"12,50 €", "money 12.5 EUR"},
		{"1.250 EUR", "money 1.25 EUR or money 1250 EUR"},
		{"twenty dollars", "money 20 USD"},
		{"150 Canadian dollars", "money 150 CAD"},
		{"in Swiss francs or CHF, try again", "money  CHF; money  CHF"},
		{"5 pounds", "quantity 5 lb or money 5 GBP"},
		{"5 lbs", "quantity 5 lb"},
		{"15% and 3.5 percent", "percent 15; percent 3.5"},
		{"5 km, 72km/h, 10GB, 20°C, 68 F, 5-mile run", "quantity 5 km; quantity 72 km/h; quantity 10 GB; quantity 20 °C; quantity 68 °F; quantity 5 mi"},
		{"2 hours, 90 min, 1 hour and 30 minutes, 2h30, 1h 5m", "duration 2 hour; duration 90 minute; duration 90 minute; duration 150 minute; duration 65 minute"},
		{"an hour and a half, half an hour, a week", "duration 1.5 hour; duration 0.5 hour; duration 1 week"},
		{"10-day trip for 3 months", "duration 10 day; duration 3 month"},
	})
	check(t, Options{Language: "de"}, []row{
		{"1.250,50 EUR", "money 1250.5 EUR"},
		{"15 Prozent", "percent 15"},
		{"zwei Stunden", "duration 2 hour"},
		{"eine halbe Stunde", "duration 0.5 hour"},
		{"5 Kilometer und 3 Meilen", "quantity 5 km; quantity 3 mi"},
	})
	check(t, Options{Language: "fr"}, []row{
		{"1 250,50 €", "money 1250.5 EUR"},
		{"15 pour cent", "percent 15"},
		{"une demi-heure", "duration 0.5 hour"},
		{"une heure et demie", "time 01:30 or time 13:30; duration 1.5 hour"},
		{"pour 3 jours", "duration 3 day"},
	})
	check(t, Options{Language: "es"}, []row{
		{"veinte euros", "money 20 EUR"},
		{"15 por ciento", "percent 15"},
		{"media hora", "duration 0.5 hour"},
		{"durante dos horas y media", "time 02:30 or time 14:30; duration 2.5 hour"},
	})
}

func TestExpressions(t *testing.T) {
	check(t, Options{Language: "en"}, []row{
		{"what is 3 * (4+5)?", "expression 3 * (4 + 5); number 3; number 4; number 5"},
		{"15% of $2500", "expression 2500 * 0.15; percent 15; money 2500 USD"},
		{`"15%" of 2500`, "expression 2500 * 0.15; quote 15%; percent 15; number 2500"},
		{`"15" of 2500`, "quote 15; number 15; number 2500"},
		{"20% off $50", "expression 50 * 0.8; percent 20; money 50 USD"},
		{"the square root of 144", "expression sqrt(144); number 144"},
		{"12 divided by 4", "expression 12 / 4; number 12; number 4"},
		{"10-3", "number 10; number 3"},
		{"2^10 - 1", "expression 2 ^ 10 - 1; number 2; number 10; number 1"},
		{"sqrt(16) + 2", "expression sqrt(16) + 2; number 16; number 2"},
		{"(1+2", "expression 1 + 2; number 1; number 2"},
		{"3 times a week", "number 3; duration 1 week"},
		{"the slope of 3x^2 - 2x + 1 at x = 1", "expression 3x ^ 2 - 2x + 1; number 2; id 2x; number 1; number 1"},
		{"x**2 and 3 x 4", "expression x ^ 2; number 2; expression 3 * 4; number 3; number 4"},
		{"(10/2)*3", "expression (10 / 2) * 3; number 2; number 3"},
		{"20% of 50 plus 10", "expression 50 * 0.2 + 10; percent 20; number 50; number 10"},
		{"15 % of 80 plus 5 % of 20", "expression 80 * 0.15 + 20 * 0.05; percent 15; number 80; percent 5; number 20"},
		{"100 minus 20% of 50", "expression 100 - (50 * 0.2); number 100; percent 20; number 50"},
		{"15% of the (100 + 60)", "expression 0.15 * (100 + 60); percent 15; number 100; number 60"},
		{"the square root of 16 plus 9", "expression sqrt(16) + 9; number 16; number 9"},
		{"square root of (16 + 9)", "expression sqrt(16 + 9); number 16; number 9"},
		{"5 plus 3 squared", "expression 5 + 3 ^ 2; number 5; number 3"},
		{"50 plus 2 minus 10%", "number 50; number 2; percent 10"},
		{"5 times 3 minus 2 and 7 divided by 2", "expression 5 * 3 - 2; number 5; number 3; number 2; expression 7 / 2; number 7; number 2"},
		{"10% of 50 squared", "expression 0.1 * 50 ^ 2; percent 10; number 50"},
		{"20% off 3 ^ 2", "expression 0.8 * 3 ^ 2; percent 20; number 3; number 2"},
		{"100 minus 10% of 50 squared", "expression 100 - 0.1 * 50 ^ 2; number 100; percent 10; number 50"},
		{"100 minus 20% of (50 + 10)", "expression 100 - 0.2 * (50 + 10); number 100; percent 20; number 50; number 10"},
		{"3,5 plus 2", "number 3; number 5; number 2"},
		{"3,5 % of 200", "number 3; percent 5; number 200"},
		{"a,5 plus 2", "expression 5 + 2; number 5; number 2"},
		{"15% of 2500 - and who?", "expression 2500 * 0.15; percent 15; number 2500"},
	})
	for _, language := range []string{"de", "fr", "es"} { // the words are of no language alone
		check(t, Options{Language: language}, []row{
			{"10 plus 5 minus 3", "expression 10 + 5 - 3; number 10; number 5; number 3"},
			{"5 times 3 divided by 2", "expression 5 * 3 / 2; number 5; number 3; number 2"},
			{"3 squared plus 4 cubed", "expression 3 ^ 2 + 4 ^ 3; number 3; number 4"},
		})
	}
	check(t, Options{Language: "de"}, []row{{"15 Prozent von 200", "expression 200 * 0.15; percent 15; number 200"}, {"3 mal 4", "expression 3 * 4; number 3; number 4"}})
	check(t, Options{Language: "fr"}, []row{{"15 % de 200", "expression 200 * 0.15; percent 15; number 200"}, {"3 fois 4", "expression 3 * 4; number 3; number 4"}})
	check(t, Options{Language: "es"}, []row{{"15 % de 200", "expression 200 * 0.15; percent 15; number 200"}, {"3 por 4", "expression 3 * 4; number 3; number 4"}})
}
