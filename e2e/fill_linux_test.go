package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// smallDisk mounts a new file system with a size in MiB at dir.
func smallDisk(t *testing.T, dir, mib string) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("only root may mount; CI is root")
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "mode=0700,size="+mib+"m"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
}

// fillers are agents that commit something of value and then fill the disk in different ways.
var fillers = map[string]string{
	"one file":       `exec cat /dev/urandom >junk`,
	"many files":     `i=0; while :; do i=$((i+1)); head -c 1000000 /dev/urandom >junk-$i; done`,
	"the repository": `cat /dev/urandom >$(git rev-parse --git-dir)/junk`,
	"what git takes": `i=0; while :; do i=$((i+1)); head -c 8000000 /dev/urandom >junk-$i; git add junk-$i && git commit -qm junk; done`,
	"an open file":   `exec 3>junk; rm junk; exec env -i /bin/sh -c "cat /dev/urandom >&3; exec sleep 1000"`,
	"going on after": `trap "" TERM; while :; do cat /dev/urandom >>junk; done 2>/dev/null`,
}

// An agent fills the disk that all runs share. Its run is ended and its work kept, the other run finishes, and the issue
// says what happened.
func TestFilledDisk(t *testing.T) {
	t.Parallel()
	for name, fill := range fillers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, r := newScene(t, doIt), newRepository(t)
			smallDisk(t, s.path("state"), "96")
			keys := r.backlog(t, 2)
			filler, steady := keys[0], keys[1]
			agent := `if [ $RALPH_ISSUE_KEY = ` + filler + ` ]; then
				echo good >good.txt; git add good.txt; git commit -qm Good; echo draft >draft.txt
				` + fill + `
			fi
			mkfifo go; read go <go; rm go
			echo done >done.txt; git add done.txt; git commit -qm Done; echo "<promise>COMPLETE</promise>"`
			p := s.start(t, r, []string{
				"RALPH_SANDBOX=native", "RALPH_MIN_FREE_MB=40", "RALPH_AGENT_COMMAND=sh -c '" + agent + "'",
			}, "work", "--parallel", "2")
			await(t, "the run that fills the disk to be reported", func() bool {
				return strings.Contains(r.issue(t, filler), "**ralph: over-budget**")
			})
			release(t, s.path("state/ralph/*/worktrees/"+steady+"-*/files/go"))
			if got := p.end(t); got != 3 {
				t.Errorf("status %d, want 3: one of two did not succeed", got)
			}
			report := r.issue(t, filler)
			for _, want := range []string{"the run was filling the disk: it wrote ", "40 MiB must stay free", "needs-human", "free disk space"} {
				if !strings.Contains(report, want) {
					t.Errorf("the report does not say %q:\n%s", want, report)
				}
			}
			if report := r.issue(t, steady); !strings.Contains(report, "**ralph: succeeded**") || strings.Contains(report, "disk") {
				t.Errorf("the other run:\n%s", report)
			}
			if name == "what git takes" { // its commits do not fit into the remaining space, so they stay where they are
				if !strings.Contains(report, " stays: import ") {
					t.Errorf("the report does not say where the commits are:\n%s", report)
				}
			} else if got := r.lines(t, "show", "ralph/"+filler+":good.txt"); len(got) != 1 || got[0] != "good" {
				t.Errorf("the commit is not kept: %q", got)
			}
			if got := s.start(t, r, nil, "status").end(t); got != 0 {
				t.Errorf("ralph status: %d", got)
			}
			noneLeft(t, s.mark)
		})
	}
}

// release writes a line into the pipe on which the agent waits.
func release(t *testing.T, pattern string) {
	t.Helper()
	var at []string
	await(t, pattern, func() bool {
		var err error
		at, err = filepath.Glob(pattern)
		return err == nil && len(at) == 1
	})
	f, err := os.OpenFile(at[0], os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString("go\n"); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// Below the minimum of free space nothing starts: the sweep reports it and ends. It works again when space is free or the
// minimum is lower.
func TestNoRoomToStart(t *testing.T) {
	t.Parallel()
	s, r := newScene(t, doIt), newRepository(t)
	smallDisk(t, s.path("state"), "32")
	key := r.backlog(t, 1)[0]
	floor := []string{"RALPH_MIN_FREE_MB=40"}
	p := s.start(t, r, floor, "work")
	if got := p.end(t); got != 4 {
		t.Errorf("status %d, want 4: all parked", got)
	}
	if out := p.out.String(); strings.Count(out, "less than 40 MiB is free in ") != 1 || !strings.Contains(out, "state-dir") {
		t.Errorf("it says:\n%s", out)
	}
	if n := len(s.starts(t)); n != 0 || strings.Contains(r.issue(t, key), "ralph:") {
		t.Errorf("%d agents were started, the issue says:\n%s", n, r.issue(t, key))
	}
	doctor := s.start(t, r, floor, "doctor")
	if got := doctor.end(t); got != 1 || !strings.Contains(doctor.out.String(), "fail  disk") {
		t.Errorf("doctor: status %d", got)
	}
	s.sweep(t, r, 0, "--min-free-mb", "4")
	s.clean(t, r)
}

// A run without an issue is ended in the same way.
func TestJobFillsDisk(t *testing.T) {
	t.Parallel()
	s, r := newScene(t, doIt), newRepository(t)
	smallDisk(t, s.path("state"), "96")
	p := s.start(t, r, []string{
		"RALPH_SANDBOX=native", "RALPH_MIN_FREE_MB=40", "RALPH_AGENT_COMMAND=sh -c '" + fillers["one file"] + "'",
	}, "run", "--branch-strategy", "merge-to-head", "--prompt", "Do it")
	if got := p.end(t); got == 0 || !strings.Contains(p.out.String(), "the run was filling the disk: it wrote ") {
		t.Errorf("status %d: %s", got, p.out.String())
	}
	noneLeft(t, s.mark)
}
