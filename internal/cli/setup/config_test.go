package setup

import "testing"

// The shortened place of a value keeps its end, with the line number.
func TestNearPlaces(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"/home/me/shop/.ralph/config.yaml:3": ".ralph/config.yaml:3", "/home/me/.config/ralph/config.yaml:12": "~/.config/ralph/config.yaml:12",
		"/etc/config.yaml:1": "/etc/config.yaml:1", "default": "default", "flag --gate": "flag --gate", "RALPH_GATE": "RALPH_GATE",
	} {
		if got := near(in, "/home/me/shop", "/home/me"); got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
	if got := near("/a/b:1", "/c", ""); got != "/a/b:1" {
		t.Errorf("without a home: %s", got)
	}
}
