package checks

import (
	"slices"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/loop"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/redact"
)

// Only the second consecutive failure as on the base, after new commits, means that no work changes it.
func TestUnchanged(t *testing.T) {
	t.Parallel()
	base := &journal.Verification{Checks: []loop.Check{{Command: "lint"}, {Command: "make x", ExitCode: 2, Tail: "no"}}}
	same, passed := base.Checks, []loop.Check{{Command: "lint"}, {Command: "make x", Tail: "no"}}
	type round struct {
		commits int
		gate    []loop.Check
	}
	for name, c := range map[string]struct {
		base   *journal.Verification
		rounds []round
		want   []bool
	}{
		"the same":               {base, []round{{1, same}, {3, same}}, []bool{false, true}},
		"something else between": {base, []round{{1, same}, {1, passed}, {1, same}, {1, same[:1]}, {1, same}}, []bool{false, false, false, false, false}},
		"without a commit":       {base, []round{{1, same}, {0, same}, {0, same}, {1, same}}, []bool{false, false, false, true}},
		"other exit status":      {base, []round{{1, []loop.Check{{Command: "make x", ExitCode: 1, Tail: "no"}}}, {1, []loop.Check{{Command: "make x", ExitCode: 1, Tail: "no"}}}}, []bool{false, false}},
		"passed on the base":     {&journal.Verification{Checks: passed}, []round{{1, same}, {1, same}}, []bool{false, false}},
		"not run on the base":    {nil, []round{{1, same}, {1, same}}, []bool{false, false}},
		"output not kept": {&journal.Verification{Checks: []loop.Check{{Command: "make x", ExitCode: 2, Tail: redact.Text}}},
			[]round{{1, same}, {1, same}}, []bool{false, false}},
		"no gate": {base, []round{{1, nil}}, []bool{false}},
	} {
		u := NewUnchanged(c.base, "/s/trees/r")
		var got []bool
		for _, r := range c.rounds {
			got = append(got, u.After(r.commits, r.gate))
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %t, want %t", name, got, c.want)
		}
	}
}

func TestSameFailure(t *testing.T) {
	t.Parallel()
	long := func(last string) string {
		all := strings.Repeat("line of output\n", 400) + last
		return all[len(all)-(4<<10):]
	}
	for name, c := range map[string]struct {
		base, now string
		want      bool
	}{
		"nothing":              {"", "", true},
		"the same":             {"x\n", "x", true},
		"another test":         {"FAIL: TestA (0.01s)", "FAIL: TestB (0.01s)", false},
		"another line":         {"a_test.go:12: no", "a_test.go:13: no", false},
		"fewer failures":       {"12 failed, 3 passed", "11 failed, 4 passed", false},
		"another file":         {"/s/trees/r-base/a.go: no", "/s/trees/r/b.go: no", false},
		"durations":            {"FAIL x 0.012s\nreal 1m2.5s, 3 ms", "FAIL x 2.3s\nreal 0m0.1s, 12 ms", true},
		"times":                {"2026-01-02T03:04:05.123Z no at 03:04:05", "2026-11-22T13:14:15Z no at 13:14:15", true},
		"logs":                 {"log: /h/_logs/2026-01-02T03_04_05_123Z-0.log", "log: /h/_logs/2026-01-02T03_04_06_456Z-0.log", true},
		"temporary paths":      {"cc /tmp/go-build123/b001/x.o: no", "cc /tmp/go-build98/b001/x.o: no", true},
		"worktrees":            {"make: Entering directory '/s/trees/r-base'", "make: Entering directory '/s/trees/r'", true},
		"runs":                 {"/h/20261126-051656-43f5a49095a1-base/.npmrc: no", "/h/20261126-061657-53f5a49095a2/.npmrc: no", true},
		"hexadecimal":          {"panic at 0xc000012 in 1f2e3d4c5b", "panic at 0xc0001f in 99aabbccdd", true},
		"colours":              {"\x1b[31mno\x1b[0m", "\x1b[31mno\x1b[0m", true},
		"cut at another place": {long("no after 123.45s"), long("no after 1s"), true},
	} {
		base, now := loop.Check{Command: "t", ExitCode: 1, Tail: c.base}, loop.Check{Command: "t", ExitCode: 1, Tail: c.now}
		if got := sameFailure(base, now, "/s/trees/r"); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
