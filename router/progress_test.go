package router

import (
	"fmt"
	"math"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// sent collects what a Reporter sends.
type sent struct {
	mu     sync.Mutex
	values []float64
	texts  []string
}

func (s *sent) take(value float64, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.values = append(s.values, value)
	s.texts = append(s.texts, text)
}

func (s *sent) all() []float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.values)
}

// value is the n-th of 1,000 step values between the milestones.
func value(n int) float64 { return atExecuting + (atExecuted-atExecuting)*float64(n)/1001 }

func TestReporterBucket(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &sent{}
		r := NewReporter(s.take)
		defer r.Close()
		r.milestone(atPlanning, "plan")
		r.milestone(atExecuting, "go")
		for n := 1; n <= 200; n++ {
			r.step(value(n), fmt.Sprint(n))
		}
		if got := len(s.all()); got != 2+50 {
			t.Fatalf("a burst of 200: got %d values, want 2 milestones and 50 steps", got)
		}
		time.Sleep(99 * time.Millisecond)
		synctest.Wait()
		if got := len(s.all()); got != 52 {
			t.Fatalf("after 99 ms: got %d values, want 52", got)
		}
		time.Sleep(2 * time.Millisecond)
		synctest.Wait()
		if got := s.all(); len(got) != 53 || got[52] != value(200) || s.texts[52] != "200" {
			t.Fatalf("after 101 ms: got %d values, the last %v, want the newest, %v", len(got), got[len(got)-1], value(200))
		}
		// One event every 100 ms from now on, the newest of its time.
		for n := 201; n <= 300; n++ {
			r.step(value(n), fmt.Sprint(n))
			time.Sleep(10 * time.Millisecond)
		}
		synctest.Wait()
		if got := len(s.all()); got < 53+9 || got > 53+11 {
			t.Errorf("in another second: got %d more values, want 10", got-53)
		}
		// What was kept is void once a milestone is passed.
		r.step(value(400), "kept")
		r.milestone(atExecuted, "all")
		r.milestone(atSynthesizing, "say")
		r.milestone(atComplete, "done")
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := s.all(); !slices.Equal(got[len(got)-3:], []float64{0.8, 0.9, 1}) {
			t.Errorf("at the end: got %v, want 0.8, 0.9 and 1", got[len(got)-3:])
		}
		if got := s.all(); !slices.IsSorted(got) {
			t.Errorf("values: got %v, want them to increase", got)
		}
	})
}

// The bucket is full again after five quiet seconds, and holds no more than 50.
func TestReporterRefill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &sent{}
		r := NewReporter(s.take)
		defer r.Close()
		time.Sleep(time.Hour)
		for _, from := range []int{0, 100} {
			before := len(s.all())
			for n := 1; n <= 100; n++ {
				r.step(value(from+n), "")
			}
			if got := len(s.all()) - before; got != 50 {
				t.Errorf("a burst of 100 with a full bucket: got %d values, want 50", got)
			}
			time.Sleep(6 * time.Second)
			synctest.Wait()
		}
	})
}

func TestReporterDrops(t *testing.T) {
	for _, row := range []struct {
		name   string
		report func(r *Reporter)
		want   []float64
	}{
		{"what does not increase", func(r *Reporter) { r.step(0.5, ""); r.step(0.5, ""); r.step(0.4, ""); r.step(0.6, "") }, []float64{0.5, 0.6}},
		{"steps that reach 0.8", func(r *Reporter) { r.step(0.7, ""); r.step(0.8, ""); r.step(0.95, ""); r.milestone(0.8, "") }, []float64{0.7, 0.8}},
		{"milestones that were passed", func(r *Reporter) { r.milestone(0.9, ""); r.milestone(0.8, ""); r.milestone(0.9, "") }, []float64{0.9}},
		{"steps after a later milestone", func(r *Reporter) { r.milestone(0.9, ""); r.step(0.5, "") }, []float64{0.9}},
		{"no number", func(r *Reporter) {
			r.step(math.NaN(), "")
			r.step(math.Inf(1), "")
			r.step(math.Inf(-1), "")
			r.step(0.3, "")
		}, []float64{0.3}},
		{"what comes after the end", func(r *Reporter) {
			r.milestone(0.1, "")
			r.Close()
			r.milestone(0.9, "")
			r.step(0.3, "")
			r.answer("x")
		}, []float64{0.1}},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := &sent{}
			r := NewReporter(s.take)
			row.report(r)
			r.Close()
			if got := s.all(); !slices.Equal(got, row.want) {
				t.Errorf("got %v, want %v", got, row.want)
			}
		})
	}
}

// The growing answer stays below 1, however long it gets.
func TestReporterAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &sent{}
		r := NewReporter(s.take)
		defer r.Close()
		r.milestone(atSynthesizing, "say")
		for i := range 2000 {
			r.answer(fmt.Sprint(i))
			time.Sleep(50 * time.Millisecond)
		}
		r.milestone(atComplete, "done")
		got := s.all()
		if len(got) < 400 || got[len(got)-1] != 1 || got[len(got)-2] >= 1 || got[1] <= 0.9 {
			t.Errorf("got %d values that end with %v, want many between 0.9 and 1, then 1", len(got), got[len(got)-2:])
		}
		for i := 1; i < len(got); i++ {
			if got[i] <= got[i-1] {
				t.Fatalf("got %v after %v, want values that increase", got[i], got[i-1])
			}
		}
	})
}

func TestNoReporter(t *testing.T) {
	var r *Reporter
	r.milestone(0.1, "")
	r.step(0.3, "")
	r.answer("")
	r.Close()
}
