package main

import (
	"runtime"
	"runtime/debug"
	"testing"
)

// TestCollectLate checks that a small heap is collected late, and a large one as usual.
func TestCollectLate(t *testing.T) {
	usual := debug.SetGCPercent(100)
	defer debug.SetGCPercent(usual)
	now := func() int {
		percent := debug.SetGCPercent(100)
		debug.SetGCPercent(percent)
		return percent
	}
	t.Setenv("GOGC", "50")
	collectLate(func() {})
	if now() != 100 {
		t.Errorf("%d, although the user has said otherwise", now())
	}
	t.Setenv("GOGC", "")
	ended := make(chan struct{}, 1)
	collectLate(func() {
		select {
		case ended <- struct{}{}:
		default: // nobody waits for this one
		}
	})
	if now() != 400 {
		t.Errorf("at first %d", now())
	}
	var used []byte
	for _, tt := range []struct{ megabytes, least, most int }{{0, 400, 400}, {8, 50, 200}, {32, 100, 100}, {0, 400, 400}} {
		used = make([]byte, tt.megabytes<<20)
		select {
		case <-ended: // a collection of before
		default:
		}
		runtime.GC()
		<-ended
		if got := now(); got < tt.least || got > tt.most {
			t.Errorf("with %d MB in use: %d", tt.megabytes, got)
		}
		runtime.KeepAlive(used)
	}
}
