package proc

import (
	"bytes"
	"errors"
	"testing"
)

type broken struct{ err error }

func (b broken) Write([]byte) (int, error) { return 0, b.err }

func TestLimit(t *testing.T) {
	t.Parallel()
	var to bytes.Buffer
	l := &Limit{To: &to, Room: 5, Full: make(chan struct{})}
	for _, text := range []string{"abc", "", "de", "fgh", "i"} {
		select {
		case <-l.Full:
			if text != "i" {
				t.Errorf("full before %q", text)
			}
		default:
			if text == "i" {
				t.Error("not full after more than its room")
			}
		}
		if n, err := l.Write([]byte(text)); n != len(text) || err != nil {
			t.Errorf("write %q: %d, %v", text, n, err)
		}
	}
	if to.String() != "abcde" || l.Dropped != 4 || l.Room != 0 || l.Err != nil {
		t.Errorf("%q, %+v", &to, l)
	}
	bad := errors.New("disk is full")
	l = &Limit{To: broken{bad}, Room: 10}
	for range 2 {
		_, _ = l.Write([]byte("abc"))
	}
	if !errors.Is(l.Err, bad) || l.Dropped != 6 {
		t.Errorf("%+v", l)
	}
}
