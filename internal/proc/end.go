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
	// endLimit is how long one process may survive SIGKILL before it is reported, stormLimit how long processes that
	// start others faster than they die may keep us busy.
	endLimit   = 30 * time.Second
	stormLimit = 2 * time.Minute
	// firstPause and lastPause are between two scans; a killed process is usually gone after the first.
	firstPause = 200 * time.Microsecond
	lastPause  = 20 * time.Millisecond
	// unsureLimit is how long scans are repeated only because of processes in the middle of their exec, which may turn
	// out to be members.
	unsureLimit = time.Second
)

// KillMarked ends every process of this user that carries the mark, and waits until none is left. This process is
// never among them. It returns context.Cause(ctx) when ctx ends first, and an error that names what survives SIGKILL.
func KillMarked(ctx context.Context, mark string) error { return killMarked(ctx, mark, false) }

// KillParts is KillMarked for the mark and for all that begin with it and a "-".
func KillParts(ctx context.Context, mark string) error { return killMarked(ctx, mark, true) }

// Parts lists the processes that KillParts would end. It does not stop them.
func Parts(ctx context.Context, mark string) (pids []int, err error) {
	t := tree{needle: markName + "=" + mark, parts: true, spare: true}
	var unsure map[int]uint64 // after the first scan: who may yet turn out to be a part
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

// end kills the tree and returns when a scan finds nothing of it alive. The root stays unreaped.
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
	var unsure map[int]uint64 // after a scan that found nothing alive: who may yet turn out to be a member
	var since time.Time       // of that scan: on a busy machine the killing before it takes a while
	// Nothing is killed before it was scanned: it is the parents, while they live, that show whose a child is. But a
	// stopped one starts no more.
	t.signalGroup(unix.SIGSTOP)
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		alive, doubtful, err := t.scan()
		if exhausted(err) && time.Since(began) < endLimit { // other processes of ours give their files back
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
		default: // others that are new do not matter: no member was left to start them
			maps.DeleteFunc(unsure, func(pid int, started uint64) bool { return doubtful[pid] != started })
		}
		if len(alive) == 0 && (len(unsure) == 0 || time.Since(since) > unsureLimit) {
			return nil
		}
		for _, p := range alive {
			p.signal(unix.SIGKILL)
		}
		if left := stubborn(alive, seen); len(left) > 0 {
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

// identity names a process for good.
type identity struct {
	pid     int
	started uint64
}

// stubborn returns those that were seen alive endLimit ago or earlier. seen holds when each was seen first.
func stubborn(alive []process, seen map[identity]time.Time) (left []process) {
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

// signalGroup signals the root's process group. The root must not be reaped yet: its PID keeps the number ours.
func (t *tree) signalGroup(sig unix.Signal) {
	if t.root > 0 {
		_ = unix.Kill(-t.root, sig) // an empty group is what we want
	}
}

// awaitGroup waits until the killed group of the reaped root is empty; nearly always it is already.
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

// survivors is the error for what cannot be killed, such as a process that waits for a dead disk, or another user's.
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
