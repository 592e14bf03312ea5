package soak

import (
	"context"
	"os"
	"strconv"
	"testing"
	"time"
)

const (
	settling = 30 * time.Second // for what is left of load and faults to go away
	spare    = 8                // goroutines and descriptors that come and go without load
	slopeMin = 3 * time.Minute  // a slope over less time says nothing
	slopeMax = 3.0              // MiB a minute
)

func TestSoak(t *testing.T) {
	duration, callers := time.Second, 8
	var err error
	if s := os.Getenv("SOAK_DURATION"); s != "" {
		if duration, err = time.ParseDuration(s); err != nil {
			t.Fatalf("SOAK_DURATION: %v", err)
		}
	}
	if s := os.Getenv("SOAK_CALLERS"); s != "" {
		if callers, err = strconv.Atoi(s); err != nil || callers < 1 {
			t.Fatalf("SOAK_CALLERS: got %s, want a number of callers", s)
		}
	}
	s := newStage(t)
	l := newLoad(s)

	// A little of everything, so that what is made once is there before it is counted.
	s.run(l, min(duration, 5*time.Second), callers)
	before := s.quiet()
	began := time.Now()
	watch := s.watch()
	s.run(l, duration, callers)
	samples := watch()
	var after sample
	for end := time.Now().Add(settling); ; {
		after = s.quiet()
		if after.goroutines <= before.goroutines+spare && after.descriptors <= before.descriptors+spare || time.Now().After(end) {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	lost, duplicated := l.account()

	slope := slopeOf(samples)
	t.Logf("%v with %d callers: %d calls, %d faults", time.Since(began).Round(time.Second), callers, l.calls.Load(), s.faults)
	for _, line := range l.outcomes() {
		t.Log(line)
	}
	t.Logf("memory of the router: %.1f MiB before, %.1f MiB after, slope %+.2f MiB a minute", mib(before.memory), mib(after.memory), slope)
	t.Logf("goroutines: %.0f before, %.0f after; descriptors: %.0f before, %.0f after", before.goroutines, after.goroutines, before.descriptors, after.descriptors)
	t.Logf("lost calls: %d; duplicated writes: %d", lost, duplicated)

	if lost > 0 || duplicated > 0 {
		t.Errorf("got %d lost calls and %d duplicated writes, want none", lost, duplicated)
	}
	if after.goroutines > before.goroutines+spare || after.descriptors > before.descriptors+spare {
		t.Errorf("got %.0f goroutines and %.0f descriptors left, want %.0f and %.0f, and %d at most",
			after.goroutines, after.descriptors, before.goroutines, before.descriptors, spare)
	}
	if duration >= slopeMin && slope > slopeMax {
		t.Errorf("memory: got %+.2f MiB a minute, want %.0f at most", slope, slopeMax)
	}
	s.stop()
}

func mib(bytes float64) float64 { return bytes / (1 << 20) }

// slopeOf fits a line to the memory of the second half of the samples, in MiB a minute (least squares).
func slopeOf(samples []sample) float64 {
	samples = samples[len(samples)/2:]
	var n, sx, sy, sxx, sxy float64
	for _, s := range samples {
		x, y := s.at.Minutes(), mib(s.memory)
		n, sx, sy, sxx, sxy = n+1, sx+x, sy+y, sxx+x*x, sxy+x*y
	}
	if d := n*sxx - sx*sx; d > 0 {
		return (n*sxy - sx*sy) / d
	}
	return 0
}

// run has callers call and faults happen for a while.
func (s *stage) run(l *load, d time.Duration, callers int) {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.disturb(ctx)
	}()
	l.run(ctx, callers)
	<-done
}
