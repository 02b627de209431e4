package main

import (
	"runtime"
	"runtime/debug"
	"testing"
	"time"
)

// The first collection ends what collectLate has set.
func TestCollectLate(t *testing.T) {
	t.Setenv("GOGC", "50")
	collectLate()
	usual := debug.SetGCPercent(100)
	defer debug.SetGCPercent(usual)
	t.Setenv("GOGC", "")
	collectLate()
	if now := debug.SetGCPercent(400); now != 400 {
		t.Errorf("at first %d", now)
	}
	for range 200 {
		runtime.GC()
		now := debug.SetGCPercent(400)
		if debug.SetGCPercent(now); now == 100 {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Error("it does not end")
}
