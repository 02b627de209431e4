package proc

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// endLimit is how long one process may survive SIGKILL before it is an error. stormLimit bounds the whole killing when
	// processes start others faster than they die.
	endLimit   = 30 * time.Second
	stormLimit = 2 * time.Minute
	// firstPause and lastPause bound the pause between two scans. A killed process is usually gone after the first.
	firstPause = 200 * time.Microsecond
	lastPause  = 20 * time.Millisecond
	// unsureLimit bounds the scans that are repeated only for processes in the middle of an exec, which may be members.
	unsureLimit = time.Second
)

// KillMarked kills every process of this user with the mark, except this process, and waits until all have ended. It
// returns context.Cause(ctx) when ctx ends first, and an error that names the processes that survive SIGKILL.
func KillMarked(ctx context.Context, mark string) error { return killMarked(ctx, mark, false) }

// KillParts is like KillMarked, but also kills processes whose mark begins with mark and a "-".
func KillParts(ctx context.Context, mark string) error { return killMarked(ctx, mark, true) }

// Parts lists the processes that KillParts would kill. It does not stop them.
func Parts(ctx context.Context, mark string) (pids []int, err error) {
	t := tree{needle: markName + "=" + mark, parts: true, listOnly: true}
	var unsure map[int]uint64 // candidates of the first scan that may still turn out to be members
	began := time.Now()
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		alive, doubtful, err := t.scan()
		if err != nil {
			return nil, err
		}
		if unsure == nil {
			unsure = doubtful
		}
		maps.DeleteFunc(unsure, func(pid int, started uint64) bool { return doubtful[pid] != started })
		if len(alive) > 0 || len(unsure) == 0 || time.Since(began) > unsureLimit {
			for _, p := range alive {
				pids = append(pids, p.pid)
			}
			return pids, nil
		}
		if err := sleep(ctx, pause); err != nil {
			return nil, err
		}
	}
}

func killMarked(ctx context.Context, mark string, parts bool) error {
	if mark == "" {
		return errors.New("end marked processes: the mark is empty")
	}
	t := tree{needle: markName + "=" + mark, parts: parts}
	if err := t.endUntil(ctx); err != nil {
		return fmt.Errorf("end the processes of %s: %w", mark, err)
	}
	return nil
}

// end kills the tree and returns when a scan finds no living member. The root stays unreaped.
func (t *tree) end() error {
	if t.needle == "" {
		t.signalGroup(unix.SIGKILL)
		return nil
	}
	return t.endUntil(context.Background())
}

func (t *tree) endUntil(ctx context.Context) error {
	began := time.Now()
	seen := make(map[identity]time.Time)
	var unsure map[int]uint64 // candidates of the first scan without a living member: they may still turn out to be members
	var since time.Time       // time of that scan; on a busy machine the killing before it takes a while
	// Scan before killing: a child can only be identified while its parent lives. Stop the group first, so that it starts
	// no more processes.
	t.signalGroup(unix.SIGSTOP)
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		alive, doubtful, err := t.scan()
		if isResourceError(err) && time.Since(began) < endLimit { // other processes of ours will close files
			if err := sleep(ctx, pause); err != nil {
				return err
			}
			continue
		}
		t.signalGroup(unix.SIGKILL)
		if err != nil {
			return err
		}
		switch {
		case len(alive) > 0:
			unsure = nil
		case unsure == nil:
			unsure, since = doubtful, time.Now()
		default: // new candidates do not matter: no member was left to start them
			maps.DeleteFunc(unsure, func(pid int, started uint64) bool { return doubtful[pid] != started })
		}
		if len(alive) == 0 && (len(unsure) == 0 || time.Since(since) > unsureLimit) {
			return nil
		}
		for _, p := range alive {
			p.signal(unix.SIGKILL)
		}
		if left := longAlive(alive, seen); len(left) > 0 {
			return survivors(left)
		}
		if len(alive) > 0 && time.Since(began) > stormLimit {
			return survivors(alive)
		}
		if err := sleep(ctx, pause); err != nil {
			return err
		}
	}
}

// identity identifies a process even after its PID is reused.
type identity struct {
	pid     int
	started uint64
}

// longAlive returns the processes first seen alive more than endLimit ago. seen maps each to that time, and is updated.
func longAlive(alive []process, seen map[identity]time.Time) (left []process) {
	now := time.Now()
	for _, p := range alive {
		id := identity{p.pid, p.started}
		if first, ok := seen[id]; !ok {
			seen[id] = now
		} else if now.Sub(first) > endLimit {
			left = append(left, p)
		}
	}
	return left
}

// signalGroup signals the root's process group. The root must be unreaped, so that its PID is not reused.
func (t *tree) signalGroup(sig unix.Signal) {
	if t.root > 0 {
		_ = unix.Kill(-t.root, sig) // an error means that the group is empty, as intended
	}
}

// awaitGroup waits until the killed group of the reaped root is empty; nearly always it already is.
func (t *tree) awaitGroup() error {
	limit := time.Now().Add(endLimit)
	for pause := firstPause; unix.Kill(-t.root, 0) != unix.ESRCH; pause = min(2*pause, lastPause) {
		all, err := processes()
		if err != nil {
			return err
		}
		var alive []process
		for _, p := range all {
			if p.group == t.root && !p.zombie {
				alive = append(alive, p)
			}
		}
		if len(alive) == 0 {
			return nil
		}
		if time.Now().After(limit) {
			return survivors(alive)
		}
		time.Sleep(pause) //nolint:forbidigo // the death of a process that is no child of ours sends no event
	}
	return nil
}

// survivors returns the error for processes that cannot be killed: they hang on a dead disk, or belong to another user.
func survivors(alive []process) error {
	const most = 20
	var pids []string
	for _, p := range alive[:min(len(alive), most)] {
		pids = append(pids, strconv.Itoa(p.pid))
	}
	return fmt.Errorf("%d processes outlive SIGKILL; look at them with: ps -fp %s", len(alive), strings.Join(pids, ","))
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
