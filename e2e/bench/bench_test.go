package main

import (
	"io"
	"os/exec"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestTable(t *testing.T) {
	t.Parallel()
	var b table
	ms := func(n ...float64) durations {
		d := durations(n)
		for i := range d {
			d[i] *= float64(time.Millisecond)
		}
		return d
	}
	b.add("both", ms(6, 4, 5), ms(2, 2, 8, 4), "1.5")
	b.add("ours only", sizes{10e6}, nil, "60 MB")
	b.add("not measured here", sizes(nil), nil, "")
	var out strings.Builder
	if err := b.print(&out); err != nil {
		t.Fatal(err)
	}
	const want = `what               ralph min  median   bare min  median   ratio min  median  aim
both               4.00 ms    5.00 ms  2.00 ms   3.00 ms  2.00       1.67    1.5
ours only          10.0 MB    10.0 MB  -         -        -          -       60 MB
not measured here  -          -        -         -        -          -       
`
	if out.String() != want {
		t.Errorf("the table is\n%s\nwant\n%s", out.String(), want)
	}
}

// TestFloor checks that the bare operation, with which ralph is compared, does its work.
func TestFloor(t *testing.T) {
	t.Parallel()
	b := &bench{dir: t.TempDir(), notes: io.Discard}
	s, err := b.newScene(t.Context(), 3, usualFiles)
	if err != nil {
		t.Fatal(err)
	}
	c, err := measure(s.floor(t.Context(), 3, 2, commitAgent))
	if err != nil {
		t.Fatal(err)
	}
	if c.elapsed <= 0 || c.cpu <= 0 {
		t.Errorf("it cost %+v", c)
	}
	if err := s.expect(t.Context(), "floor/", 3); err != nil {
		t.Error(err)
	}
	for _, branch := range []string{"floor/1", "floor/2", "floor/3"} {
		out, err := s.command(t.Context(), "git", "rev-list", "--count", "main.."+branch).Output()
		if err != nil || strings.TrimSpace(string(out)) != "1" {
			t.Errorf("%s has %s commits, %v", branch, out, err)
		}
	}
	if out, err := s.command(t.Context(), "git", "worktree", "list").Output(); err != nil || strings.Count(string(out), "\n") != 1 {
		t.Errorf("worktrees are left: %s, %v", out, err)
	}
}

// A run of the floor uses the disk space of a checkout.
func TestWeighed(t *testing.T) {
	t.Parallel()
	b := &bench{dir: t.TempDir(), notes: io.Discard}
	s, err := b.newScene(t.Context(), 0, 100)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := measure(s.floor(t.Context(), 1, 1, weighAgent)); err != nil {
		t.Fatal(err)
	}
	if got, err := s.committedSize(t.Context(), "floor/1"); err != nil || len(got) != 1 || got[0] < 100 || got[0] > 10<<20 {
		t.Errorf("%v, %v", got, err)
	}
	if got, err := s.committedSize(t.Context(), "floor/2"); err == nil {
		t.Errorf("of a branch that is not there: %v", got)
	}
}

func TestMeasureFailure(t *testing.T) {
	t.Parallel()
	_, err := measure(exec.CommandContext(t.Context(), "sh", "-c", "echo why >&2; exit 3"))
	if err == nil || !strings.Contains(err.Error(), "exit status 3: why") {
		t.Error(err)
	}
}

func TestUsage(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"-ralph /nowhere/ralph":      "make build",
		"-ralph /bin/sh -only speed": `no section "speed"`,
	} {
		if err := run(t.Context(), strings.Fields(args), io.Discard, io.Discard); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", args, err, want)
		}
	}
}
