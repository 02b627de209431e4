package compose

import "testing"

func TestStrongerThan(t *testing.T) {
	t.Parallel()
	if got := StrongerThan("podman"); got != "native, docker or sbx" {
		t.Errorf("besides podman: %s", got)
	}
}
