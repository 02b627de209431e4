package proc

import (
	"os"
	"os/exec"
	"testing"
)

func TestAlive(t *testing.T) {
	t.Parallel()
	self, err := Started(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if !Alive(os.Getpid(), self) {
		t.Error("this process does not count as alive")
	}
	if again, err := Started(os.Getpid()); err != nil || again != self {
		t.Errorf("the token changes: %q, then %q, %v", self, again, err)
	}
	for _, token := range []string{"", "0", self + "0", "x" + self} {
		if Alive(os.Getpid(), token) {
			t.Errorf("token %q counts as this process's", token)
		}
	}
	for _, pid := range []int{-1, 0, 1 << 30} {
		if _, err := Started(pid); err == nil {
			t.Errorf("PID %d has a token", pid)
		}
		if Alive(pid, self) {
			t.Errorf("PID %d counts as alive", pid)
		}
	}
}

func TestZombieIsNotAlive(t *testing.T) {
	t.Parallel()
	cmd := exec.Command("cat")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	token, err := Started(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	if !Alive(cmd.Process.Pid, token) {
		t.Error("a running process does not count as alive")
	}
	_ = in.Close()
	awaitExit(cmd.Process.Pid)
	if Alive(cmd.Process.Pid, token) {
		t.Error("a zombie counts as alive")
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	if Alive(cmd.Process.Pid, token) {
		t.Error("a reaped process counts as alive")
	}
}
