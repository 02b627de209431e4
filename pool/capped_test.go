package pool

import (
	"bytes"
	"strings"
	"testing"
)

type closer struct{ bytes.Buffer }

func (*closer) Close() error { return nil }

func TestStreamsAndTalkAreBounded(t *testing.T) {
	t.Parallel()
	var to closer
	c := &capped{to: &to, left: 10}
	for range 3 {
		if n, err := c.Write([]byte("12345678")); n != 8 || err != nil {
			t.Fatal(n, err)
		}
	}
	if err := c.Close(); err != nil || to.String() != "1234567812\n[ralph: 14 more bytes were not kept]\n" {
		t.Errorf("%q, %v", to.String(), err)
	}
	var talk talk
	shown, notices := 0, 0
	for range 3 * talkLimit {
		ok, last := talk.more(1)
		if ok {
			shown++
		}
		if last {
			notices++
		}
	}
	if ok, _ := talk.more(2); !ok || shown != talkLimit || notices != 1 {
		t.Errorf("%d shown, %d notices; the next iteration starts anew: %v", shown, notices, ok)
	}
	if !strings.Contains(to.String(), "more bytes") {
		t.Error("nothing says that there was more")
	}
}
