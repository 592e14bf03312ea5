package rules

import "testing"

// TestOneCallForEachTime: a question that goes through what a tool requires more than once wants it as often.
func TestOneCallForEachTime(t *testing.T) {
	tax := tool("sales_tax", "Calculate the sales tax on a purchase", `{"properties":{"amount":{"type":"number","description":"Amount of the purchase"},"state":{"type":"string","description":"State"}},"required":["amount","state"]}`)
	recipe := tool("find_recipe", "Find a recipe for a dish", `{"properties":{"dish":{"type":"string","description":"Name of the dish"},"people":{"type":"integer","description":"Number of people"}},"required":["dish","people"]}`)
	bmi := tool("calculate_bmi", "Calculate the body mass index of a person", `{"properties":{"weight":{"type":"number","description":"Weight in kilograms"},"height":{"type":"number","description":"Height in centimeters"}},"required":["weight","height"]}`)
	for _, tc := range []struct{ question, want string }{
		{"What is the sales tax on a purchase of $30 in Ohio, $52 in Texas and $11 in Utah?",
			`sales_tax{"amount":30,"state":"Ohio"} sales_tax{"amount":52,"state":"Texas"} sales_tax{"amount":11,"state":"Utah"}`},
		{"Find a recipe for 'Lasagne' for 4 people and another one for 'Borscht' for 2 people",
			`find_recipe{"dish":"Lasagne","people":4} find_recipe{"dish":"Borscht","people":2}`},
		{"Calculate the body mass index of two persons. The first has a weight of 75 kilograms and a height of 180 centimeters. The second has a weight of 60 kilograms and a height of 165 centimeters.",
			`calculate_bmi{"height":180,"weight":75} calculate_bmi{"height":165,"weight":60}`},
		{"Calculate the body mass index for a weight of 75 kilograms and a height of 180 centimeters. Then calculate it again for a weight of 60 kilograms and the same height.",
			`calculate_bmi{"height":180,"weight":75} calculate_bmi{"height":180,"weight":60}`},
		{"Get the weather forecast for Rome, then do the same for Milan.", `get_weather{"city":"Rome"} get_weather{"city":"Milan"}`},
		{"Get the weather forecast for Rome and Milan on 2025-06-03 and 2025-06-05 respectively",
			`get_weather{"city":"Rome","date":"2025-06-03"} get_weather{"city":"Milan","date":"2025-06-05"}`},
		// Once is enough.
		{"Get the weather forecast for Rome, then tell me another joke about Milan.", `get_weather{"city":"Rome"}`},
		{"Get the weather forecast for Rome, then sing the same song for Milan.", `get_weather{"city":"Rome"}`},
		{"Calculate the body mass index for a weight of 75 kilograms and a height of 180 centimeters", `calculate_bmi{"height":180,"weight":75}`},
		{"What is the sales tax on a purchase of $30 in Ohio? I am a fan of the malls like the ones in Texas.", `sales_tax{"amount":30,"state":"Ohio"}`},
		{"Get the weather forecast for Rome tomorrow. I was in Milan last week.", `get_weather{"city":"Rome","date":"2025-06-03"}`},
	} {
		if got := calls(t, tc.question, tax, recipe, bmi, weather); got != tc.want {
			t.Errorf("%q:\n got %s\nwant %s", tc.question, got, tc.want)
		}
	}
	// A question in quotation marks is read like any other.
	want := `get_weather{"city":"Rome"} sales_tax{"amount":30,"state":"Ohio"}`
	if got := calls(t, `"Get the weather forecast for Rome, and what is the sales tax on a purchase of $30 in Ohio?"`, tax, weather); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
