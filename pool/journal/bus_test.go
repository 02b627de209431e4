package journal

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// All events arrive in order, from any number of goroutines.
func TestBusKeepsOrder(t *testing.T) {
	t.Parallel()
	var got []Event // used only by the observer's goroutine until Flush
	b := NewBus(func(e Event) { got = append(got, e) })
	const emitters, each = 4, 200
	var all sync.WaitGroup
	for i := range emitters {
		all.Go(func() {
			for n := range each {
				b.Emit(Event{Kind: EventWarning, Run: fmt.Sprint(i), Seq: uint64(n)})
			}
		})
	}
	all.Wait()
	b.Flush(t.Context(), t.Context())
	next := map[string]uint64{}
	for _, e := range got {
		if e.Seq != next[e.Run] {
			t.Fatalf("emitter %s: event %d, want %d", e.Run, e.Seq, next[e.Run])
		}
		next[e.Run]++
	}
	if len(got) != emitters*each {
		t.Errorf("%d events", len(got))
	}
}

// hanging returns a bus whose observer hangs at the first event until goOn is called.
func hanging(got *[]Event) (b *Bus, goOn func()) {
	hang := make(chan struct{})
	b = NewBus(func(e Event) {
		if len(*got) == 0 {
			<-hang
		}
		*got = append(*got, e)
	})
	b.Emit(Event{Kind: EventSweep})
	synctest.Wait() // the observer hangs on this event
	return b, func() { close(hang) }
}

// A hanging observer blocks no sender. Events that only show progress are dropped first, oldest first, and the observer
// gets their number.
func TestBusDropsProgressFirst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var got []Event
		b, goOn := hanging(&got)
		const important, progress = 100, maxWaiting + 50
		for n := range progress {
			if n < important {
				b.Emit(Event{Kind: EventEnded, Seq: uint64(n)})
			}
			b.Emit(Event{Kind: EventAgent, Seq: uint64(n)})
		}
		goOn()
		b.Flush(t.Context(), t.Context())
		if len(got) != 1+1+maxWaiting || got[1].Kind != EventDropped || got[1].Count != important+progress-maxWaiting {
			t.Fatalf("%d events, the second %+v", len(got), got[1])
		}
		got = got[2:]
		ended := slices.DeleteFunc(slices.Clone(got), func(e Event) bool { return e.Kind != EventEnded })
		if len(ended) != important || !slices.IsSortedFunc(ended, func(a, b Event) int { return int(a.Seq) - int(b.Seq) }) {
			t.Errorf("%d important events", len(ended))
		}
		if last := got[len(got)-1]; last.Kind != EventAgent || last.Seq != progress-1 {
			t.Errorf("the last event is %+v", last)
		}
	})
}

// If all events are important, memory stays bounded nevertheless, and the drops are reported.
func TestBusStaysBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var got []Event
		b, goOn := hanging(&got)
		for n := range maxWaiting + 7 {
			b.Emit(Event{Kind: EventEnded, Seq: uint64(n)})
		}
		goOn()
		b.Flush(t.Context(), t.Context())
		if len(got) != 2+maxWaiting || got[1].Count != 7 || got[2].Seq != 7 {
			t.Errorf("%d events, %+v, %+v", len(got), got[1], got[2])
		}
	})
}

// An observer may emit events, and an idle bus starts again.
func TestBusStartsAnew(t *testing.T) {
	t.Parallel()
	var b *Bus
	var got []uint64
	b = NewBus(func(e Event) {
		got = append(got, e.Seq)
		if e.Seq%10 == 0 {
			b.Emit(Event{Seq: e.Seq + 1})
		}
	})
	for n := range uint64(3) {
		b.Emit(Event{Seq: (n + 1) * 10})
		b.Flush(t.Context(), t.Context())
	}
	if want := []uint64{10, 11, 20, 21, 30, 31}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// A stuck observer does not delay the end of others.
func TestBusWithStuckObserver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var got []Event
		b, goOn := hanging(&got)
		b.Emit(Event{Kind: EventEnded})
		over, end := context.WithCancelCause(t.Context())
		end(nil)
		began := time.Now()
		b.Flush(over, t.Context())
		b.Flush(t.Context(), over)
		if took := time.Since(began); took != 2*observerTimeout { // by the bubble's clock
			t.Errorf("it took %s", took)
		}
		goOn()
		b.Flush(t.Context(), t.Context())
	})
}
