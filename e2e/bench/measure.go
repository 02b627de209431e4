package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// cost is the cost of one command: the CPU time includes all children that it waited for, the memory is that of the process itself.
type cost struct {
	elapsed, cpu time.Duration
	memory       int64 // peak in bytes; 0: unknown on this system
}

// memoryPoll is the interval at which the high-water mark is read. The mark never falls, so little is missed.
const memoryPoll = 5 * time.Millisecond

// measure runs the command to its end.
func measure(cmd *exec.Cmd) (cost, error) {
	var out bytes.Buffer
	if cmd.Stdout == nil {
		cmd.Stdout = &out
	}
	cmd.Stderr = &out
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return cost{}, err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	var c cost
	poll := time.NewTicker(memoryPoll)
	defer poll.Stop()
	for {
		select {
		case <-poll.C:
			c.memory = max(c.memory, highWater(cmd.Process.Pid))
		case err := <-ended:
			c.elapsed = time.Since(began)
			c.cpu = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
			if err != nil {
				err = fmt.Errorf("%s: %w: %s", cmd.Args[0], err, strings.TrimSpace(out.String()))
			}
			return c, err
		}
	}
}

// highWater returns the peak resident memory of a process in bytes, or 0 where /proc does not show it.
func highWater(pid int) int64 {
	status, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kib, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 10, 64)
			if err == nil {
				return kib << 10
			}
		}
	}
	return 0
}
