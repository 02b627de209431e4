package landlock

import (
	"bufio"
	"io"
	"os/exec"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/ralph-pool/ralph/sandboxes/native"
)

// forked starts a program that shares much memory with three children, and returns all four.
func forked(t *testing.T) (root int, all []int) {
	t.Helper()
	// Git needs perl too. It ends when its standard input does.
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
	children, err := family(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	return cmd.Process.Pid, append(children, cmd.Process.Pid)
}

// TestFamily: the cheap look sees what the look at all processes sees.
func TestFamily(t *testing.T) {
	t.Parallel()
	root, all := forked(t)
	want, err := native.Descendants(root)
	if err != nil {
		t.Fatal(err)
	}
	got := all[:len(all)-1]
	slices.Sort(got)
	slices.Sort(want)
	if len(want) != 3 || !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestForkedMemoryCountsOnce: else a build that forks would be killed for what it does not have.
func TestForkedMemoryCountsOnce(t *testing.T) {
	t.Parallel()
	_, all := forked(t)
	rough, exact := usesOf(all, roughly), usesOf(all, exactly)
	if sum(rough) < 4<<26 || sum(exact) < 1<<26 || sum(exact) > sum(rough)/3 {
		t.Errorf("roughly %v, exactly %v", rough, exact)
	}
	var killed []int
	w := &watcher{memory: sum(rough) / 2, pids: 10, dying: map[int]bool{}}
	w.look(func(int) ([]int, error) { return all, nil })
	for pid := range w.dying {
		killed = append(killed, pid)
	}
	if len(killed) > 0 {
		t.Errorf("%v were killed", killed)
	}
}

func TestPause(t *testing.T) {
	t.Parallel()
	half := time.Duration(runtime.NumCPU()) * 10 * time.Millisecond // which all processors need
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

func FuzzKilobytes(f *testing.F) {
	f.Add([]byte("Name:\tx\nRssAnon:\t     132 kB\nVmSwap:\t       0 kB\n"))
	f.Add([]byte("RssAnon:\t9223372036854775807 kB\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if n := kilobytes(text, "RssAnon", "VmSwap"); n < 0 {
			t.Errorf("%d bytes", n)
		}
	})
}
