package git

import "testing"

func TestOlderVersion(t *testing.T) {
	t.Parallel()
	for have, want := range map[string]bool{
		"2.35.9": true, "1.99": true, "2.36.0": false, "2.39.5 (Apple Git-154)": false, "3.0": false, "2.100.1": false, "weird": false,
	} {
		if got := OlderVersion(have, "2.36"); got != want {
			t.Errorf("OlderVersion(%q) = %v", have, got)
		}
	}
}
