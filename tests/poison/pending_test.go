package poison

import (
	"flag"
	"strings"
	"testing"
)

var withPending = flag.Bool("pending", false, "run what is pending, too")

// pending are the variants that what they test is not there yet for, by a part of their names.
var pending = []string{
	"each by expression", // each is a reference alone
	// What the user has stated carries nothing, and is compared too loosely.
	"later round, name of an argument", "later round, words of the question", "later round, case of the question",
	"later round, spaces in the question", "later round, number of empty texts",
	"address in an answer",
}

func skipPending(t *testing.T, name string) {
	t.Helper()
	for _, part := range pending {
		if !*withPending && strings.Contains(name, part) {
			t.Skip("pending: " + part)
		}
	}
}
