package proc

import (
	"strings"
	"testing"
)

// The memory limit applies to a process and its children before they get any input.
func TestMemory(t *testing.T) {
	t.Parallel()
	for memory, whole := range map[uint64]bool{32 << 20: false, 0: true} {
		s, out, _ := sh(`read x; head -c 67108864 /dev/zero | tail -n 1 | wc -c`)
		s.Stdin, s.Memory = strings.NewReader("go\n"), memory
		if exit := run(t, s); exit.Code != 0 || (out.String() == "67108864\n") != whole {
			t.Errorf("with %d: %+v %q", memory, exit, out)
		}
	}
}
