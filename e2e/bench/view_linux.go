package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/ralph-pool/ralph/internal/ptytest"
	"github.com/ralph-pool/ralph/internal/retry"
)

const (
	watched   = 3                // agents
	watchTime = 20 * time.Second // in which they act; the clock of /proc has a hundred ticks a second
)

// view measures the CPU of the ralph process alone while agents act, with the view on a terminal and beside it with --plain.
func (b *bench) view(ctx context.Context) error {
	for _, pause := range []string{"0.1", "1"} {
		var ours, bare samples
		for round := range b.few() {
			b.note("view of agents that act each %s s, round %d of %d", pause, round+1, b.few())
			for into, flags := range map[*samples][]string{&ours: nil, &bare: {"--plain"}} {
				c, err := b.watch(ctx, pause, flags...)
				if err != nil {
					return err
				}
				into.add(c)
			}
		}
		b.out.add(fmt.Sprintf("view of %d agents that act each %s s, beside --plain: CPU of a second", watched, pause), ours.cpu, bare.cpu, "+20 ms")
	}
	return nil
}

// watch is what a second costs of a sweep on a terminal whose agents act until it is over.
func (b *bench) watch(ctx context.Context, pause string, flags ...string) (c cost, err error) {
	s, err := b.newScene(ctx, watched, usual)
	if err != nil {
		return c, err
	}
	agent := fmt.Sprintf(`: >%[1]s/at-$RALPH_ISSUE_KEY; until [ -e %[1]s/go ]; do echo "this is what I do at $(date)"; sleep %[2]s; done; %[3]s`, s.dir, pause, commits)
	cmd := s.work(ctx, b.ralph, "none", agent, append([]string{fmt.Sprintf("--parallel=%d", watched)}, flags...)...)
	cmd.Env = append(cmd.Env, "TERM=xterm")
	end, err := onTerminal(cmd)
	if err != nil {
		return c, err
	}
	c, failed := second(ctx, s, cmd.Process.Pid)
	failed = errors.Join(failed, os.WriteFile(filepath.Join(s.dir, "go"), nil, 0o600))
	shown, err := end()
	if err = errors.Join(failed, err); err == nil {
		err = s.expect(ctx, "ralph/", watched)
	}
	if has := strings.Contains(shown, fmt.Sprint(watched, " working")); err == nil && has != (flags == nil) {
		err = fmt.Errorf("the view is shown: %v, with the flags %v", has, flags)
	}
	return c, err
}

// second waits until all agents are at work, and then for watchTime.
func second(ctx context.Context, s scene, pid int) (c cost, err error) {
	for limit := time.Now().Add(time.Minute); ; {
		if at, err := filepath.Glob(filepath.Join(s.dir, "at-*")); err != nil || len(at) == watched {
			break
		}
		if time.Now().After(limit) {
			return c, errors.New("the agents do not begin")
		}
		if err := retry.Sleep(ctx, 50*time.Millisecond); err != nil {
			return c, err
		}
	}
	before, began := cpuOf(pid), time.Now()
	if err := retry.Sleep(ctx, watchTime); err != nil {
		return c, err
	}
	c.elapsed = time.Second
	c.cpu = time.Duration(float64(cpuOf(pid)-before) / time.Since(began).Seconds())
	return c, nil
}

// cpuOf is the CPU time of a process, without what it has started.
func cpuOf(pid int) time.Duration {
	stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)) // it has ended: nothing
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	var ticks int64
	for i := 11; i <= 12 && i < len(fields); i++ { // utime and stime
		n, _ := strconv.ParseInt(fields[i], 10, 64)
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}

// onTerminal starts the command on a terminal of its own. The function that it returns waits for its end and gives what was shown.
func onTerminal(cmd *exec.Cmd) (end func() (string, error), err error) {
	terminal, person, err := ptytest.Open(40, 120)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, person.Close())
		}
	}()
	defer terminal.Close()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = terminal, terminal, terminal
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	var shown bytes.Buffer
	read := make(chan struct{})
	go func() {
		defer close(read)
		_, _ = io.Copy(&shown, person) // it ends with an error when nothing has the terminal open any more
	}()
	return func() (string, error) {
		err := cmd.Wait()
		<-read
		if err != nil {
			err = fmt.Errorf("%s: %w: %s", cmd.Args[0], err, shown.String())
		}
		return shown.String(), errors.Join(err, person.Close())
	}, nil
}
