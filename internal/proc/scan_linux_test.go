package proc

import (
	"fmt"
	"testing"
)

func TestParseStat(t *testing.T) {
	t.Parallel()
	// After the state: parent, group, session, terminal, its group, flags, eight counters, priority, nice.
	const rest = " 10 11 12 0 -1 4194560 1 2 3 4 5 6 7 8 -2 19"
	tests := []struct {
		name, stat string
		want       process
	}{
		{
			"plain", "100 (cat) S" + rest + " 1 0 77 5 5\n",
			process{pid: 100, parent: 10, group: 11, session: 12, started: 77},
		},
		{
			"a name that lies", "100 (a) Z 1 (b) R 2) S" + rest + " 1 0 77\n",
			process{pid: 100, parent: 10, group: 11, session: 12, started: 77},
		},
		{
			"zombie", "100 (cat) Z" + rest + " 1 0 77 0\n",
			process{pid: 100, parent: 10, group: 11, session: 12, started: 77, zombie: true},
		},
		{
			"only the first thread has ended", "100 (cat) Z" + rest + " 3 0 77 0\n",
			process{pid: 100, parent: 10, group: 11, session: 12, started: 77},
		},
		{
			"a session that began outside of this container", "100 (cat) S 10 11 0 0 -1 4194560 1 2 3 4 5 6 7 8 -2 19 1 0 77\n",
			process{pid: 100, parent: 10, group: 11, started: 77},
		},
		{
			"the kernel's own", "100 (kworker/0:1) S 2 0 0 0 -1 69238880 0 0 0 0 0 0 0 0 20 0 1 0 77\n",
			process{pid: 100, parent: 2, started: 77, kernel: true},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := parseStat([]byte(tt.stat))
			if err != nil || got != tt.want {
				t.Errorf("%q is %+v, %v, want %+v", tt.stat, got, err, tt.want)
			}
		})
	}
	for _, stat := range []string{"", "1", "1 (", "1 (a)", "1 (a) S", "x (a) S 1 2", "(a) S 1", ")(", "1 (a) S 1 2 3 x"} {
		if got, err := parseStat([]byte(stat)); err == nil {
			t.Errorf("%q is accepted as %+v", stat, got)
		}
	}
}

func FuzzParseStat(f *testing.F) {
	f.Add("100 (cat) S 10 11 12 0 -1 4194560 1 2 3 4 5 6 7 8 -2 19 1 0 77")
	f.Add("1 (a) b) R 1 2 3")
	f.Add(")(")
	f.Fuzz(func(t *testing.T, stat string) {
		p, err := parseStat([]byte(stat))
		if err == nil && (p.parent < 0 || p.group < 0 || p.session < 0) {
			t.Errorf("%q has negative ids: %+v", stat, p)
		}
		// No program name may change the fields after it.
		if q, again := parseStat(fmt.Appendf(nil, "7 (%s) S 1 2 3 0 0 0 0 0 0 0 0 0 0 0 0 0 1 0 9", stat)); again != nil ||
			q != (process{pid: 7, parent: 1, group: 2, session: 3, started: 9}) {
			t.Errorf("with the name %q: %+v, %v", stat, q, again)
		}
	})
}
