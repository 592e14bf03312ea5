package downstream

import (
	"context"
	"strconv"
	"time"
)

// seconds formats a duration in seconds, without a fraction if it is whole.
func seconds(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'f', -1, 64) + "s" }

// sleep waits for d and returns true; it returns false if ctx or stop ends first.
func sleep(ctx context.Context, d time.Duration, stop <-chan struct{}) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
	case <-stop:
	}
	return false
}
