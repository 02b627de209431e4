package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

func TestOnTerminal(t *testing.T) {
	t.Parallel()
	end, err := onTerminal(exec.CommandContext(t.Context(), "sh", "-c", "test -t 0 && test -t 1 && stty size"))
	if err != nil {
		t.Fatal(err)
	}
	if shown, err := end(); err != nil || strings.TrimSpace(shown) != "40 120" {
		t.Errorf("%q, %v", shown, err)
	}
	if end, err = onTerminal(exec.CommandContext(t.Context(), "sh", "-c", "echo why; exit 3")); err != nil {
		t.Fatal(err)
	}
	if _, err := end(); err == nil || !strings.Contains(err.Error(), "exit status 3: why") {
		t.Error(err)
	}
}

// The CPU time of a process leaves out what its children use, and that of one that has ended is nothing.
func TestCPUOf(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), "sh", "-c", "sh -c 'i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done'; echo; read x")
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
	if _, err := out.Read(make([]byte, 1)); err != nil {
		t.Error(err)
	}
	alone := cpuOf(cmd.Process.Pid)
	_ = in.Close()
	_ = cmd.Wait() // the read fails
	if all := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(); alone > all/2 {
		t.Errorf("%s of %s", alone, all)
	}
	if got := cpuOf(cmd.Process.Pid); got != 0 {
		t.Errorf("after its end: %s", got)
	}
	for until := time.Now().Add(time.Minute); cpuOf(os.Getpid()) == 0; {
		if time.Now().After(until) {
			t.Fatal("no time of this process is seen")
		}
	}
}
