package intent

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

func TestTry(t *testing.T) {
	b, _ := os.ReadFile("/tmp/try.txt")
	for _, l := range strings.Split(strings.TrimSpace(string(b)), "\n") {
		fmt.Println(l)
		for _, c := range Split(l) {
			fmt.Printf("      %s %s %q bare=%v | %s\n", c.Language, c.Act, c.Verb, c.Bare, c.Text)
		}
	}
}
