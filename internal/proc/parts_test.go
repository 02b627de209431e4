package proc

import (
	"os"
	"os/exec"
	"strconv"
	"testing"
)

// A process that is in the middle of its exec shows no environment yet; it is looked at again.
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
