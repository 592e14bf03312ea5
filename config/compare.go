package config

import (
	"reflect"
	"slices"
)

// Compare returns the paths of the settings that differ, such as "limits.sessions", in the order of the
// documentation. A list is one setting, and so is a group that only one side sets.
func Compare(a, b Settings) []string {
	return compare("", reflect.ValueOf(a), reflect.ValueOf(b))
}

func compare(path string, a, b reflect.Value) (paths []string) {
	switch {
	case reflect.DeepEqual(a.Interface(), b.Interface()):
		return nil
	case a.Kind() == reflect.Pointer && !a.IsNil() && !b.IsNil():
		return compare(path, a.Elem(), b.Elem())
	case a.Kind() != reflect.Struct:
		return []string{path}
	}
	for i := range a.NumField() {
		if key := a.Type().Field(i).Tag.Get("yaml"); key != "-" {
			paths = slices.Concat(paths, compare(join(path, key), a.Field(i), b.Field(i)))
		}
	}
	return paths
}
