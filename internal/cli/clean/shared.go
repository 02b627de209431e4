package clean

import (
	"context"
	"errors"
	"path/filepath"

	"github.com/ralph-pool/ralph/internal/cli/screen"
	"github.com/ralph-pool/ralph/internal/disk"
	"github.com/ralph-pool/ralph/pool/workspace/homes"
)

// layers removes caches shared by runs that no run uses now. The next run makes them again.
func (c *cleaner) layers(ctx context.Context, ui *screen.Printer) error {
	kept := homes.Store{Dir: filepath.Join(c.p.State, "homes"), Log: c.p.Log}
	size := func() int64 {
		return disk.Measure(ctx, c.p.State, kept.Dir, filepath.Join(c.p.State, "layers")).Bytes
	}
	before, what := size(), "removed"
	if c.dry {
		what = "would remove up to"
	} else {
		kept.Prune(ctx, 0)
		if err := c.p.Repo.PruneLayers(ctx, 0); err != nil {
			return err
		}
		before -= size()
	}
	if before > 1<<20 {
		ui.Note("%s %s of shared checkouts and homes", what, disk.Size(before))
	}
	return nil
}

// temp removes the temporary files of dead processes, unless runs of theirs are unfinished: parts of these may still be running.
func (c *cleaner) temp(ctx context.Context, ui *screen.Printer) (err error) {
	if _, dead := c.runs(); len(dead) > 0 {
		return nil
	}
	left, what, n := c.p.Repo.TempLeftovers(), "removed", 0
	if c.dry {
		what, n = "would remove", len(left)
	} else {
		for _, l := range left {
			_, failed := l.Remove(ctx)
			if err = errors.Join(err, failed); failed == nil {
				n++
			}
		}
	}
	if n > 0 {
		ui.Note("%s %s with temporary files of dead processes", what, screen.Plural(n, "folder"))
	}
	return err
}

// claims removes unheld claims from this repository if the claims are on a remote: they date from before the remote was added.
func (c *cleaner) claims(ctx context.Context, ui *screen.Printer) error {
	if c.p.Repo.Remote() == "" {
		return nil
	}
	n := 0
	for key, state := range c.jobs {
		if !state.Gone || state.Holder.Run != "" || state.Record.Pending != nil {
			continue
		}
		gone := c.dry
		if !c.dry {
			var err error
			if gone, err = c.local.ForgetClaim(ctx, key); err != nil {
				return err
			}
		}
		if gone {
			n++
		}
	}
	what := "removed"
	if c.dry {
		what = "would remove"
	}
	if n > 0 {
		ui.Note("%s %s from this repository: its claims are on %s now",
			what, screen.Plural(n, "claim"), screen.CleanLine(c.p.Repo.Remote()))
	}
	return nil
}
