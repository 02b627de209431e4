package proc

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// family starts processes that escape a naive killer; each writes "ready" once.
const family = `
(echo ready >&9; exec sleep 100) &
(detach sh -c 'echo ready >&9; exec sleep 100' &)
detach sh -c 'env -i /bin/sh -c "echo ready >&9; sleep 100; sleep 100" & wait' &
(trap '' TERM HUP INT; echo ready >&9; exec sleep 100) </dev/null >/dev/null 2>&1 &
`

const familySize = 4

func mark(t *testing.T) string {
	return fmt.Sprintf("%s-%d-%d", t.Name(), os.Getpid(), time.Now().UnixNano())
}

func TestContextEndKillsTheTree(t *testing.T) {
	t.Parallel()
	life := newLifeline(t)
	s, _, _ := sh(life.hold(family + "trap '' TERM; wait; wait"))
	s.Mark = mark(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	done := startRun(ctx, s)
	life.ready(t, familySize)
	cancel(errStop)
	if got := await(t, done); got.err != errStop {
		t.Errorf("Run gives %+v, want the context's cause", got)
	}
	if !life.gone() {
		t.Error("a process has survived")
	}
}

func TestContextEndKillsTheGroupWithoutAMark(t *testing.T) {
	t.Parallel()
	life := newLifeline(t)
	s, _, _ := sh(life.hold("trap '' TERM; sleep 100 & echo ready >&9; wait"))
	ctx, cancel := context.WithCancelCause(t.Context())
	done := startRun(ctx, s)
	life.ready(t, 1)
	cancel(errStop)
	if got := await(t, done); got.err != errStop || got.exit.Signal != unix.SIGKILL {
		t.Errorf("Run gives %+v, want the context's cause", got)
	}
	if !life.gone() {
		t.Error("a process has survived")
	}
}

func TestExitTakesTheRestAlong(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		script, mark string
		size         int
	}{
		"marked": {family + "read -r x; echo done; exit 5", "m", familySize},
		"group":  {"(trap '' TERM; echo ready >&9; exec sleep 100) &\nread -r x; echo done; exit 5", "", 1},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			life := newLifeline(t)
			read, write := io.Pipe()
			s, out, _ := sh(life.hold(tt.script))
			s.Stdin = read
			if tt.mark != "" {
				s.Mark = mark(t)
			}
			done := startRun(t.Context(), s)
			life.ready(t, tt.size)
			_, _ = io.WriteString(write, "go\n")
			_ = write.Close()
			if got := await(t, done); got.err != nil || got.exit != (Exit{Code: 5}) {
				t.Errorf("ended with %+v", got)
			}
			if out.String() != "done\n" {
				t.Errorf("output is %q", out)
			}
			if !life.gone() {
				t.Error("a process has survived")
			}
		})
	}
}

// A process that escapes the killing, here for lack of a mark, and keeps the output open does not block Run.
func TestEscapedProcessDoesNotHold(t *testing.T) {
	t.Parallel()
	life := newLifeline(t)
	id := mark(t)
	s, out, _ := sh(life.hold(`detach sh -c 'echo ready >&9; while :; do echo noise; done' & read -r x; exit 6`))
	read, write := io.Pipe()
	s.Stdin = read
	s.Env = append(s.Env, "ESCAPED="+id)
	var returned bool
	s.Stdout = writerFunc(func(p []byte) (int, error) { // the race detector reports a late call
		if returned {
			t.Error("the writer is called after Run has returned")
		}
		return out.Write(p[:1])
	})
	done := startRun(t.Context(), s)
	life.ready(t, 1)
	_, _ = io.WriteString(write, "go\n")
	_ = write.Close()
	got := await(t, done)
	returned = true
	if got.err != nil || got.exit.Code != 6 {
		t.Errorf("ended with %+v", got)
	}
	escaped := tree{needle: "ESCAPED=" + id}
	if err := escaped.endUntil(t.Context()); err != nil {
		t.Error(err)
	}
	if !life.gone() {
		t.Error("a process has survived")
	}
}

func TestInterrupt(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		script string
		grace  time.Duration
		want   Exit
	}{
		"cleans up": {"trap 'exit 7' TERM; echo ready >&9; while :; do sleep 100 & wait; done", limit, Exit{Code: 7}},
		"dies":      {"echo ready >&9; exec sleep 100", limit, Exit{Code: 143, Signal: unix.SIGTERM}},
		"ignores": {
			"trap '' TERM; detach sh -c 'echo ready >&9; exec sleep 100' & wait; sleep 100", time.Millisecond,
			Exit{Code: 137, Signal: unix.SIGKILL},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			life := newLifeline(t)
			stop := make(chan struct{})
			s, _, _ := sh(life.hold(tt.script))
			s.Interrupt, s.Grace, s.Mark = stop, tt.grace, mark(t)
			done := startRun(t.Context(), s)
			life.ready(t, 1)
			close(stop)
			if got := await(t, done); got.err != nil || got.exit != tt.want {
				t.Errorf("ended with %+v, want %+v", got, tt.want)
			}
			if !life.gone() {
				t.Error("a process has survived")
			}
		})
	}
}

// The end of a process does not affect another process with the same mark.
func TestSameMarkSideBySide(t *testing.T) {
	t.Parallel()
	id := mark(t)
	life := newLifeline(t)
	read, write := io.Pipe()
	s, out, _ := sh(life.hold("echo ready >&9; cat; exit 8"))
	s.Stdin, s.Mark = read, id
	done := startRun(t.Context(), s)
	life.ready(t, 1)
	short, _, _ := sh("exit 0")
	short.Mark = id
	run(t, short)
	_, _ = io.WriteString(write, "still here")
	_ = write.Close()
	if got := await(t, done); got.err != nil || got.exit.Code != 8 || out.String() != "still here" {
		t.Errorf("ended with %+v, prints %q", got, out)
	}
}

// The killing catches up with processes that keep starting others outside the group. They stop by themselves at some point,
// so that a failed test does not exhaust the machine.
func TestStorm(t *testing.T) {
	t.Parallel()
	life := newLifeline(t)
	s, _, _ := sh(life.hold(`
		storm() { for i in 1 2 3 4 5 6 7 8 9; do for j in 1 2 3 4 5 6 7 8 9; do
			detach sh -c 'echo ready >&9; exec sleep 100' &
		done; done; wait; }
		storm & (detach sh -c 'for i in 1 2 3 4 5 6 7 8 9; do (echo ready >&9; exec sleep 100) & done; wait' &)
		wait`))
	s.Mark = mark(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	done := startRun(ctx, s)
	life.ready(t, 6)
	cancel(errStop)
	if got := await(t, done); got.err != errStop {
		t.Errorf("Run gives %+v, want the context's cause", got)
	}
	if !life.gone() {
		t.Error("a process has survived")
	}
}

func TestKillMarked(t *testing.T) {
	t.Parallel()
	id := mark(t)
	gone, stays := newLifeline(t), newLifeline(t)
	s, _, _ := sh(gone.hold(family + "trap '' TERM; wait; wait"))
	s.Mark = id
	done := startRun(t.Context(), s)
	read, write := io.Pipe()
	part, _, _ := sh(gone.hold("echo ready >&9; exec sleep 100"))
	part.Mark = id + "-part"
	partDone := startRun(t.Context(), part)
	other, _, _ := sh(stays.hold("echo ready >&9; read -r x; exit 3"))
	other.Mark, other.Stdin = id+"0", read // the first mark is a prefix of the second
	otherDone := startRun(t.Context(), other)
	gone.ready(t, familySize+1)
	stays.ready(t, 1)
	if err := KillMarked(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if pids, err := Parts(t.Context(), id); err != nil || len(pids) != 1 {
		t.Fatalf("left of it: %v, %v; want its part", pids, err)
	}
	for range 2 { // the second call finds nothing
		if err := KillParts(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		if !gone.gone() {
			t.Fatal("a process has survived")
		}
	}
	if got := await(t, partDone); got.err != nil || got.exit.Signal != unix.SIGKILL {
		t.Errorf("the part ended with %+v", got)
	}
	_ = write.Close()
	if got := await(t, otherDone); got.err != nil || got.exit.Code != 3 {
		t.Errorf("the other process ended with %+v", got)
	}
	if got := await(t, done); got.err != nil || got.exit.Signal != unix.SIGKILL {
		t.Errorf("the marked process ended with %+v", got)
	}
	if err := KillMarked(t.Context(), ""); err == nil {
		t.Error("an empty mark is accepted")
	}
}

// A member that starts others during a scan leaves none behind, although they have no mark and lose their parent.
func TestKillMarkedWhileOthersStart(t *testing.T) {
	t.Parallel()
	for range 10 {
		id, life := mark(t), newLifeline(t)
		s, _, _ := sh(life.hold(`detach sh -c 'env -i /bin/sh -c "echo ready >&9; i=0; while [ \$i -lt 300 ]; do sleep 100 & i=\$((i+1)); done; wait" & wait'`))
		s.Mark = id
		done := startRun(t.Context(), s)
		life.ready(t, 1)
		if err := KillMarked(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		if !life.gone() {
			t.Fatal("a process has survived")
		}
		await(t, done)
	}
}

// Orphans of ended members are identified by their session. A process that later gets the PID of a session leader is not a
// member.
func TestOrphansOfASession(t *testing.T) {
	t.Parallel()
	orphan := process{pid: 30, parent: 1, group: 20, session: 20, started: 300}
	other := process{pid: 40, parent: 1, group: 40, session: 40, started: 400}
	for _, c := range []struct {
		name  string
		known map[int]uint64
		all   []process
		want  bool
	}{
		{"the leader is gone", map[int]uint64{20: 200}, []process{orphan, other}, true},
		{"the leader lives", map[int]uint64{20: 200}, []process{{pid: 20, session: 20, started: 200}, orphan}, true},
		{"another has the PID", map[int]uint64{20: 200}, []process{{pid: 20, session: 20, started: 290}, orphan}, false},
		{"the session is older", map[int]uint64{20: 310}, []process{orphan}, false},
		{"no member began it", map[int]uint64{21: 200}, []process{orphan}, false},
	} {
		tr := tree{members: c.known, listOnly: true}
		now := map[int]process{}
		for _, p := range c.all {
			now[p.pid] = p
		}
		tr.addRelatives(c.all, now)
		if got := tr.isMember(30, now); got != c.want || tr.isMember(40, now) {
			t.Errorf("%s: a member: %v", c.name, got)
		}
	}
}

// A program with the mark, such as a ralph that an agent of ralph starts, does not kill itself.
func TestKillMarkedSparesItself(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	got := run(t, Spec{Argv: []string{self}, Env: []string{helper + "=kill-own-mark"}, Mark: mark(t), Stdout: &out})
	if got != (Exit{}) || out.String() != "alive\n" {
		t.Errorf("ended with %+v, prints %q", got, &out)
	}
}

func TestStubborn(t *testing.T) {
	t.Parallel()
	now := time.Now()
	seen := map[identity]time.Time{{1, 10}: now.Add(-2 * endLimit), {2, 10}: now.Add(-endLimit / 2), {3, 10}: now.Add(-2 * endLimit)}
	alive := []process{{pid: 1, started: 10}, {pid: 2, started: 10}, {pid: 3, started: 11}, {pid: 4, started: 10}}
	if left := longAlive(alive, seen); len(left) != 1 || left[0].pid != 1 {
		t.Errorf("stubborn are %+v, want only process 1", left)
	}
}

func TestSurvivorsAreNamed(t *testing.T) {
	t.Parallel()
	err := survivors([]process{{pid: 12}, {pid: 345}})
	if want := "2 processes outlive SIGKILL; look at them with: ps -fp 12,345"; err.Error() != want {
		t.Errorf("error is %q, want %q", err, want)
	}
}

func TestKillSparesAnotherWithThePID(t *testing.T) {
	t.Parallel()
	life := newLifeline(t)
	read, write := io.Pipe()
	s, _, _ := sh(life.hold("echo $$ ready >&9; read -r x; exit 4"))
	s.Stdin = read
	done := startRun(t.Context(), s)
	life.ready(t, 1)
	all, err := processes()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range all {
		if p.parent == os.Getpid() {
			p.started-- // simulates a scan of an earlier process
			p.signal(unix.SIGKILL)
		}
	}
	_ = write.Close()
	if got := await(t, done); got.err != nil || got.exit.Code != 4 {
		t.Errorf("ended with %+v", got)
	}
}
