package workspace

import (
	"context"
	"errors"

	"github.com/ralph-pool/ralph/internal/tempdir"
)

// Tidy removes leftovers of killed processes and of a lost state folder, if no work is lost with them. busy reports whether an
// issue is being worked. Tidy calls say for each removal.
func (c *Config) Tidy(ctx context.Context, busy func(ctx context.Context, key string) (bool, error), say func(key, text string)) error {
	tempdir.Sweep()
	left, err := c.Repo.Leftovers(ctx, false)
	for _, l := range left {
		if !l.Safe {
			continue
		}
		worked, errBusy := busy(ctx, l.Key)
		if worked || errBusy != nil {
			err = errors.Join(err, errBusy)
			continue
		}
		became, errRemove := l.Remove(ctx)
		if errRemove != nil {
			err = errors.Join(err, errRemove)
			continue
		}
		text := string(l.Kind) + " removed: " + l.Where
		if became != "" {
			text += "; " + became
		}
		say(l.Key, text)
	}
	return err
}
