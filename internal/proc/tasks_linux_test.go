package proc

import (
	"os"
	"os/exec"
	"syscall"
	"testing"
)

// Tasks counts the processes and threads of one user. Root has no limit of them.
func TestTasks(t *testing.T) {
	t.Parallel()
	cat, user := exec.Command("cat"), os.Getuid()
	if user == 0 {
		user = 61234
		cat.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(user), Gid: uint32(user)}}
	}
	in, err := cat.StdinPipe()
	if err == nil {
		err = cat.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	if n := Tasks(user); n < 1 || os.Getuid() == 0 && n != 1 {
		t.Errorf("%d tasks", n)
	}
	if free, limited := FreeTasks(); os.Getuid() == 0 && limited {
		t.Errorf("root is limited to %d more", free)
	}
	_ = in.Close()
	if err := cat.Wait(); err != nil {
		t.Error(err)
	}
	if n := Tasks(user); os.Getuid() == 0 && n != 0 {
		t.Errorf("%d tasks after the end", n)
	}
}
