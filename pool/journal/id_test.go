package journal

import (
	"testing"
	"time"
)

func TestIsID(t *testing.T) {
	t.Parallel()
	id := NewID(time.Now())
	for text, want := range map[string]bool{
		id: true, NewID(time.Unix(1, 999_999_999)): true, "": false, id[:8]: false, id[:15]: false, id + "0": false, id[1:] + "0": false,
		id[:15] + "+" + id[16:]: false, id[:16] + "xxxxxxxxxxxx": false, id + "-verify": false,
	} {
		if IsID(text) != want {
			t.Errorf("%q: %t", text, !want)
		}
	}
}
