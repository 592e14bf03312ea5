package expression

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// MaxValue limits the JSON bytes of a value that an expression reads, and of its result.
const MaxValue = 8 << 20

// Decode reads a JSON value for Eval. Integers that fit become int, other numbers float64. A number that neither
// represents exactly stays a json.Number, which can be copied but not used in calculations.
func Decode(raw json.RawMessage) (any, error) {
	if len(raw) > MaxValue {
		return nil, fmt.Errorf("the value has %d bytes, and expressions read at most %d", len(raw), MaxValue)
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, fmt.Errorf("reading the value: %w", err)
	}
	return numbers(v), nil
}

// numbers replaces the numbers in a value.
func numbers(v any) any {
	switch v := v.(type) {
	case []any:
		for i := range v {
			v[i] = numbers(v[i])
		}
	case map[string]any:
		for name, member := range v {
			v[name] = numbers(member)
		}
	case json.Number:
		text := v.String()
		if i, err := strconv.Atoi(text); err == nil {
			return i
		}
		const exact = 15 // decimal digits that every float64 keeps
		mantissa, _, _ := strings.Cut(strings.ToLower(text), "e")
		digits := strings.TrimLeft(strings.NewReplacer("-", "", ".", "").Replace(mantissa), "0")
		if f, err := v.Float64(); err == nil && len(digits) <= exact {
			return f
		}
	}
	return v
}

// Encode writes what Eval returned as JSON. Times are written as in RFC 3339 and durations as in "1h30m0s".
func Encode(v any) (json.RawMessage, error) {
	m := &meter{ctx: context.Background(), left: maxWork}
	if err := m.charge(v, 0); err != nil {
		return nil, err
	}
	v, err := plain(reflect.ValueOf(v))
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, fmt.Errorf("writing the value: %w", err)
	}
	if b.Len() > MaxValue {
		return nil, fmt.Errorf("the value has more than %d bytes", MaxValue)
	}
	return bytes.TrimSpace(b.Bytes()), nil
}

// plain converts a value of the language for encoding/json.
func plain(v reflect.Value) (any, error) {
	for v.Kind() == reflect.Interface {
		v = v.Elem()
	}
	if !v.IsValid() {
		return nil, nil
	}
	switch own := v.Interface().(type) {
	case json.Number, time.Time:
		return own, nil
	case time.Duration:
		return own.String(), nil
	case *time.Location:
		return own.String(), nil
	}
	switch v.Kind() {
	case reflect.Bool, reflect.String, reflect.Int, reflect.Int64, reflect.Uint, reflect.Uint64, reflect.Int32,
		reflect.Uint8:
		return v.Interface(), nil
	case reflect.Float64, reflect.Float32:
		if f := v.Float(); math.IsNaN(f) || math.IsInf(f, 0) {
			return nil, fmt.Errorf("the value is %v, which JSON cannot express", f)
		}
		return v.Interface(), nil
	case reflect.Slice, reflect.Array:
		list := make([]any, v.Len())
		for i := range list {
			element, err := plain(v.Index(i))
			if err != nil {
				return nil, err
			}
			list[i] = element
		}
		return list, nil
	case reflect.Map:
		object := make(map[string]any, v.Len())
		for it := v.MapRange(); it.Next(); {
			key, err := plain(it.Key())
			if err != nil {
				return nil, err
			}
			member, err := plain(it.Value())
			if err != nil {
				return nil, err
			}
			object[fmt.Sprint(key)] = member
		}
		return object, nil
	}
	return nil, fmt.Errorf("the value is a %s, which JSON cannot express", v.Type())
}
