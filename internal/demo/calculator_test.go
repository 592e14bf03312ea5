package demo

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestEvaluate(t *testing.T) {
	for expression, want := range map[string]string{
		"2500 * 0.15":                     "375",
		"15/100*2500":                     "375",
		"0.1 + 0.2":                       "0.3",
		"10 / 3":                          "3.33333333333333",
		"10 / 3 * 3":                      "10",
		"-2 ^ 2":                          "-4",
		"2 ^ -2":                          "0.25",
		"2 ** 3 ** 2":                     "512",
		"(1 + 2) * -3":                    "-9",
		"7 % 3 + mod(-7, 3)":              "0",
		"5.5 % 2":                         "1.5",
		"1e3 + 1":                         "1001",
		"1_000 + 1":                       "1001",
		"sqrt(16)":                        "4",
		"sqrt(2) ^ 2":                     "2",
		"cbrt(27) + abs(-3)":              "6",
		"round(2.5) + round(-2.5)":        "0",
		"round(2.5, 0)":                   "3",
		"floor(-1.5) + ceil(1.2)":         "0",
		"trunc(-1.5)":                     "-1",
		"min(3, 1, 2) + max(3, 1, 2)":     "4",
		"sum(1, 2, 3) / avg(1, 2, 3)":     "3",
		"pow(10, 3)":                      "1000",
		"ln(e) + log10(1000) + log2(8)":   "7",
		"round(sin(pi / 2) + cos(0), 10)": "2",
		"exp(0) + tan(0)":                 "1",
		"1000 * 1.05 ^ 10":                "1628.89462677744",
		"1e-9 / 3":                        "3.33333333333333e-10",
		"0 ^ 0":                           "1",
		"sum(0.5)":                        "0.5",
		"9007199254740993":                "9007199254740993",
		"-9007199254740993 - 1":           "-9007199254740994",
		"999999999999 * (1000000000 + 1)": "1000000000998999999999",
		"9007199254740993 / 1":            "9.00719925474099e+15",
	} {
		got, err := evaluate(expression)
		if err != nil || got != want {
			t.Errorf("evaluate(%q): got %q, %v, want %q", expression, got, err, want)
		}
	}
}

func TestEvaluateRefuses(t *testing.T) {
	for expression, want := range map[string]string{
		"1 +":                          "unexpected token",
		"15% of 2500":                  "unexpected token",
		"$2500 * 2":                    "unknown name $2500",
		"1 / 0":                        "division by zero",
		"5 % 0":                        "division by zero",
		"0 ^ -1":                       "division by zero",
		"sqrt(-1)":                     "not defined",
		"10 ^ 10000":                   "too large",
		"1e400":                        "",
		"price * 2":                    "unknown name price",
		"len(\"abc\")":                 "only numbers",
		"map(1..3, # * 2)":             "",
		"1..1000000000":                `operator ".." is not supported`,
		"[1, 2]":                       "only numbers",
		"{a: 1}":                       "only numbers",
		"\"a\" + \"b\"":                "only numbers",
		"true":                         "only numbers",
		"nil":                          "only numbers",
		"1 > 2":                        `operator ">" is not supported`,
		"not 1":                        `operator "not" is not supported`,
		"1 > 2 ? 3 : 4":                "not supported",
		"let x = 1; x":                 "",
		"sqrt":                         "expected float64",
		"sqrt + 1":                     "mismatched types",
		"min(sqrt, 1)":                 "cannot use",
		"99999999999999999999":         "",
		"sqrt()":                       "not enough arguments",
		"sqrt(1, 2)":                   "too many arguments",
		"$env":                         "",
		"(1).foo":                      "",
		"pi()":                         "",
		"foo(1)":                       "unknown name foo",
		strings.Repeat("1+", 499):      "",
		strings.Repeat("(", 900):       "",
		strings.Repeat("-", 900) + "1": "",
	} {
		got, err := evaluate(expression)
		if err == nil {
			t.Errorf("evaluate(%.40q): got %q, want an error with %q", expression, got, want)
			continue
		}
		if !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("evaluate(%.40q): got error %q, want one line with %q", expression, err, want)
		}
	}
}

func FuzzEvaluate(f *testing.F) {
	for _, seed := range []string{"2500 * 0.15", "-(1+2)^3 % 4", "round(pi, 3)", "9^9^9^9", "1e308*1e308", "$env", "map(1..9, #)", "let a=1;a", "sqrt", "a?.b", "\"\\u0000\"", "1;2", "pi()"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, expression string) {
		got, err := evaluate(expression)
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Fatalf("evaluate(%q): got the error %q, want one line", expression, err)
			}
			return
		}
		if !json.Valid([]byte(got)) {
			t.Fatalf("evaluate(%q): got %q, want a JSON number", expression, got)
		}
	})
}
