package proc

import (
	"io"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"
)

// A process in the middle of an exec has no environment yet; Parts inspects it again.
func TestPartsOfNewProcess(t *testing.T) {
	t.Parallel()
	mark := "new-" + strconv.Itoa(os.Getpid())
	// While the kernel copies many entries, the new program has arguments and no environment.
	env := os.Environ()
	for i := range 20000 {
		env = append(env, strconv.Itoa(i)+"=")
	}
	for range 100 {
		cmd := exec.Command("sleep", "100")
		cmd.Env = append(env, "RALPH_MARK="+mark)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		pids, err := Parts(t.Context(), mark)
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if err != nil || len(pids) != 1 || pids[0] != cmd.Process.Pid {
			t.Fatalf("parts are %v, %v; want %d", pids, err, cmd.Process.Pid)
		}
	}
}

// Parts does not stop the processes that it lists.
func TestPartsAreNotStopped(t *testing.T) {
	t.Parallel()
	mark := "listed-" + strconv.Itoa(os.Getpid())
	cmd := exec.Command("cat")
	cmd.Env = append(os.Environ(), "RALPH_MARK="+mark)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	if pids, err := Parts(t.Context(), mark); err != nil || len(pids) != 1 {
		t.Fatalf("parts are %v, %v", pids, err)
	}
	_ = in.Close() // cat ends at the end of its input, unless it is stopped
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(limit):
		_ = cmd.Process.Kill()
		t.Errorf("the process was stopped, and killed: %v", <-ended)
	}
}

// Same compares writers of any type, and nil.
func TestSame(t *testing.T) {
	t.Parallel()
	type uncomparable struct {
		io.Writer
		_ []int
	}
	for name, c := range map[string]struct {
		a, b io.Writer
		want bool
	}{
		"none":         {nil, nil, false},
		"no first":     {nil, io.Discard, false},
		"no second":    {io.Discard, nil, false},
		"one":          {io.Discard, io.Discard, true},
		"uncomparable": {uncomparable{}, uncomparable{}, false},
	} {
		if got := Same(c.a, c.b); got != c.want {
			t.Errorf("%s: %t, want %t", name, got, c.want)
		}
	}
}
