package supervisor

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"runtime"
	"testing"
	"time"

	"github.com/ralph-pool/ralph/internal/proc"
)

// forked starts a program that shares much memory with three children, and returns all four processes.
func forked(t *testing.T) (found []proc.Listed) {
	t.Helper()
	// Perl is available because git needs it. The program ends at the end of its standard input.
	cmd := exec.Command("perl", "-e", `$| = 1; my $n = 64 << 20; my $held = "a" x $n;
		for (1..3) { unless (fork) { print "ready\n"; <STDIN>; exit } } print "ready\n"; wait for 1..3`)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		_, _ = io.Copy(io.Discard, out)
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	})
	for lines, n := bufio.NewReader(out), 0; n < 4; n++ {
		if _, err := lines.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
	}
	list, err := proc.List()
	if err != nil {
		t.Fatal(err)
	}
	found = descendants(list, cmd.Process.Pid)
	if len(found) != 3 {
		t.Fatalf("its children are %+v", found)
	}
	return append(found, proc.Listed{PID: cmd.Process.Pid, Parent: os.Getpid()})
}

// TestForkedMemoryCountsOnce: otherwise a build that forks would be killed for memory that it does not use.
func TestForkedMemoryCountsOnce(t *testing.T) {
	t.Parallel()
	all := forked(t)
	var pids []int
	for _, p := range all {
		pids = append(pids, p.PID)
	}
	_, rough := measure(pids, fullUse)
	_, exact := measure(pids, proportionalUse)
	if rough < 4<<26 || exact < 1<<26 || exact > rough/3 {
		t.Errorf("roughly %v, exactly %v", rough, exact)
	}
	w := &watcher{memory: rough / 2, pids: 10, dying: map[int]bool{}, kill: func(pid int, cause string) {
		t.Errorf("%d was killed for %s", pid, cause)
	}}
	w.check(all)
}

func TestPause(t *testing.T) {
	t.Parallel()
	half := time.Duration(runtime.NumCPU()) * 10 * time.Millisecond // time in which all processors together fill the room
	for name, tt := range map[string]struct {
		room       int64
		cost, want time.Duration
	}{
		"nothing near":               {1 << 40, time.Millisecond, watchEvery},
		"a look that costs":          {1 << 40, 10 * time.Millisecond, 200 * time.Millisecond},
		"near":                       {int64(half.Seconds() * fillRate), time.Millisecond, 10 * time.Millisecond},
		"no room":                    {0, time.Millisecond, watchOften},
		"no room, a look that costs": {0, 10 * time.Millisecond, 10 * time.Millisecond},
	} {
		if got := pause(tt.room, tt.cost).Round(time.Microsecond); got != tt.want {
			t.Errorf("%s: %s, want %s", name, got, tt.want)
		}
	}
}
