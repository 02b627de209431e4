package main

import (
	"runtime"
	"runtime/debug"
	"testing"
)

// TestCollectLate checks that the first collection restores the usual setting.
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
	ended := make(chan struct{})
	collectLate(func() { close(ended) })
	if now() != 400 {
		t.Errorf("at first %d", now())
	}
	runtime.GC()
	<-ended
	if now() != 100 {
		t.Errorf("afterwards %d", now())
	}
}
