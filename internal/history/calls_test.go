package history

import (
	"reflect"
	"testing"
	"time"
)

// Calls are after a restart what they were before, whatever their texts, also beside those of older versions.
func TestCalls(t *testing.T) {
	folder := t.TempDir()
	log, lines := logger()
	l := Open(folder, Default(), log)
	at := time.Now()
	l.Add(Entry{Kind: KindCall, At: at, Caller: "key:old", Outcome: "timeout", Uses: []Use{{Server: "s", Tool: "old", Calls: 1, Failed: 1}}}, nil, 0)
	strange := Series{Caller: "key:\"a\"\n", Outcome: OutcomeOK, Server: "s", Tool: "<tool> \u2028 \x01 \xff"}
	for n := range 5 {
		l.AddCall(Call{Series: strange, At: at.Add(-time.Duration(n) * time.Minute), Duration: 12345 * time.Microsecond, Bytes: 1 << 40, Attempts: 2})
		l.AddCall(call(n))
	}
	closeLog(t, l)
	before, _ := l.Find(Filter{}, 0, 100)
	l = Open(folder, Default(), log)
	defer closeLog(t, l)
	after, _ := l.Find(Filter{}, 0, 100)
	if len(after) != 11 || len(before) != 11 || lines.String() != "" {
		t.Fatalf("got %d entries and %d after a restart, want 11: %s", len(before), len(after), lines)
	}
	for i := range after {
		if !after[i].At.Equal(before[i].At) {
			t.Errorf("got the time %v, want %v", after[i].At, before[i].At)
		}
		after[i].At = before[i].At
		if !reflect.DeepEqual(after[i], before[i]) {
			t.Errorf("got %+v, want %+v", after[i], before[i])
		}
	}
	got := after[1]
	want := Entry{ID: 10, Kind: KindCall, At: got.At, Caller: strange.Caller, Outcome: OutcomeOK, Duration: 12.345, Bytes: 1 << 40, Attempts: 2,
		Uses: []Use{{Server: "s", Tool: strange.Tool, Calls: 1, Time: 12.345}}}
	if !reflect.DeepEqual(got, want) || !got.At.Equal(at.Add(-4*time.Minute)) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if failed := after[0].Uses[0]; failed.Failed != 1 || after[10].Caller != "key:old" {
		t.Errorf("got %+v and %+v, want a failure and the call of an older version", failed, after[10])
	}
}

// What is no batch of calls is refused, and what is one is read and written the same.
func FuzzReadCalls(f *testing.F) {
	one := stored{id: 1, at: 5, series: &series{Series: Series{"a", "b", "c", "d"}}, took: 7, result: 8, attempts: 1}
	two := one
	two.id, two.at = 300, 2
	whole := batchOf([]stored{one, two}).bytes
	f.Add(whole)
	f.Add(whole[:len(whole)-1])
	f.Add([]byte{1, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1})
	f.Fuzz(func(t *testing.T, bytes []byte) {
		var calls, again []stored
		if readCalls(bytes, func(c *stored) { calls = append(calls, *c) }) != nil {
			return
		}
		err := readCalls(batchOf(calls).bytes, func(c *stored) { again = append(again, *c) })
		if err != nil || len(again) != len(calls) {
			t.Fatalf("got %d calls, %v, want %d", len(again), err, len(calls))
		}
		for i := range calls {
			if a, b := again[i], calls[i]; *a.series != *b.series || a.id != b.id || a.at != b.at || a.took != b.took {
				t.Fatalf("got %+v, want %+v", a, b)
			}
		}
	})
}
