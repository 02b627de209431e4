package clean

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os/exec"
	"slices"

	"github.com/ralph-pool/ralph/internal/cli/screen"
	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/sandboxes/container"
)

// containers removes those of this state folder whose ralph has ended: it was killed, or its settings kept them.
func (c *cleaner) containers(ctx context.Context, ui *screen.Printer) (results []CleanedData) {
	ctx, cancel := context.WithTimeoutCause(ctx, engineLimit, fmt.Errorf("no answer within %s", engineLimit))
	defer cancel()
	for _, name := range slices.Sorted(maps.Keys(c.engines)) {
		provider, err := c.sandboxes.Lookup(name)
		engine, ok := sandboxes.As[*container.Provider](provider)
		if err != nil || !ok {
			continue
		}
		left, err := engine.Abandoned(ctx)
		if err != nil && !errors.Is(err, exec.ErrNotFound) {
			ui.Warn(err.Error())
		}
		for _, box := range slices.Sorted(maps.Keys(left)) {
			r := CleanedData{Issue: left[box], Container: box, Removed: true, Why: name + " container " + box + ", which nothing uses any more"}
			if key, ok := c.keys[left[box]]; ok {
				r.Issue = key
			}
			if !c.dry {
				if err := engine.Discard(ctx, box); err != nil {
					r.Removed, r.Why = false, err.Error()
				}
			}
			results = append(results, r)
		}
	}
	return results
}
