package clean

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os/exec"
	"slices"

	"github.com/ralph-pool/ralph/internal/cli/screen"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/sandboxes/container"
)

// onEngines calls f for every container engine that runs have used. It skips engines that are not installed.
func (c *cleaner) onEngines(ctx context.Context, ui *screen.Printer, f func(context.Context, string, *container.Provider) error) {
	ctx, cancel := context.WithTimeoutCause(ctx, engineLimit, fmt.Errorf("no answer within %s", engineLimit))
	defer cancel()
	for _, name := range slices.Sorted(maps.Keys(c.engines)) {
		provider, err := c.sandboxes.Lookup(name)
		engine, ok := sandboxes.As[*container.Provider](provider)
		if err != nil || !ok {
			continue
		}
		if err := f(ctx, name, engine); err != nil && !errors.Is(err, exec.ErrNotFound) {
			ui.Warn(err.Error())
		}
	}
}

// containers removes containers of this state folder whose ralph process has exited. A killed process or container-keep left them.
func (c *cleaner) containers(ctx context.Context, ui *screen.Printer) (results []CleanedData) {
	c.onEngines(ctx, ui, func(ctx context.Context, name string, engine *container.Provider) error {
		left, err := engine.Abandoned(ctx)
		for _, box := range slices.Sorted(maps.Keys(left)) {
			r := CleanedData{
				Issue: cmp.Or(c.keys[left[box]], left[box]), Container: box, Removed: true,
				Why: name + " container " + box + ", which nothing uses any more",
			}
			if !c.dry {
				if err := engine.Discard(ctx, box); err != nil {
					r.Removed, r.Why = false, err.Error()
				}
			}
			results = append(results, r)
		}
		return err
	})
	return results
}

// leftDisk is the left disk of a run's sandbox.
type leftDisk struct {
	container.LeftDisk
	run, name string
	engine    *container.Provider
}

// disks adds to left the disks of this state folder whose run and ralph process have ended. It skips a run that died, because the
// next sweep imports its disk, and a run with a worktree, because the disk goes with it.
func (c *cleaner) disks(ctx context.Context, ui *screen.Printer, left []remains) []remains {
	treed := map[string]bool{}
	for _, l := range left {
		for _, t := range l.trees {
			treed[t.Spec().Run] = true
		}
	}
	c.onEngines(ctx, ui, func(ctx context.Context, name string, engine *container.Provider) error {
		disks, err := engine.AbandonedDisks(ctx)
		for _, run := range slices.Sorted(maps.Keys(disks)) {
			if _, open := c.open[run]; open || treed[run] {
				continue
			}
			key := run
			if found, err := c.p.Journal.Find(ctx, journal.Query{Run: run}); err == nil && len(found) > 0 {
				key = found[0].Key
			}
			i := slices.IndexFunc(left, func(l remains) bool { return l.key == key })
			if i < 0 {
				i, left = len(left), append(left, remains{key: key})
			}
			left[i].disks = append(left[i].disks, leftDisk{disks[run], run, name, engine})
		}
		return err
	})
	return left
}

// disk removes a disk. It keeps work that is not imported, because that is nowhere else.
func (c *cleaner) disk(ctx context.Context, key string, d leftDisk) CleanedData {
	r := CleanedData{Issue: key, Volumes: d.Volumes, Why: fmt.Sprintf("%s volumes %s of run %s, ", d.name, d.Volumes, d.run)}
	if d.Unsaved && !c.discard {
		r.drop = true
		r.Why += "which have work that is not imported; to look: " + d.Show
		return r
	}
	r.Removed = true
	r.Why += "which nothing uses any more"
	if !c.dry {
		if err := d.engine.RemoveDisk(ctx, d.run); err != nil {
			r.Removed, r.Why = false, err.Error()
		}
	}
	return r
}
