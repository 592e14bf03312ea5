package limit

import (
	"fmt"
	"strconv"
	"strings"
)

// Bytes is an amount of bytes, written such as "4MiB".
type Bytes int64

var units = []struct {
	name string
	n    Bytes
}{
	{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10},
	{"GB", 1e9}, {"MB", 1e6}, {"kB", 1e3}, {"KB", 1e3}, {"B", 1},
}

// ParseBytes reads a whole, non-negative number with an optional unit: B, kB, MB, GB, KiB, MiB, GiB.
func ParseBytes(s string) (Bytes, error) {
	number, unit := strings.TrimSpace(s), Bytes(1)
	for _, u := range units {
		if rest, ok := strings.CutSuffix(number, u.name); ok {
			number, unit = strings.TrimSpace(rest), u.n
			break
		}
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || n < 0 || n > int64(1<<62/unit) {
		return 0, fmt.Errorf("%q is not an amount of bytes; write a whole number with a unit, such as 4MiB", s)
	}
	return Bytes(n) * unit, nil
}

// UnmarshalText implements encoding.TextUnmarshaler.
func (b *Bytes) UnmarshalText(text []byte) error {
	n, err := ParseBytes(string(text))
	if err == nil {
		*b = n
	}
	return err
}

// MarshalText implements encoding.TextMarshaler.
func (b Bytes) MarshalText() ([]byte, error) { return []byte(b.String()), nil }

// String writes the amount in the largest unit that divides it.
func (b Bytes) String() string {
	for _, u := range units[:3] {
		if b >= u.n && b%u.n == 0 {
			return strconv.FormatInt(int64(b/u.n), 10) + u.name
		}
	}
	return strconv.FormatInt(int64(b), 10) + "B"
}
