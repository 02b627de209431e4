package git

import (
	"context"
	"fmt"
)

// The oldest git with `merge-tree --stdin`, the newest feature in use.
const oldestMajor, oldestMinor = 2, 39

// CheckVersion refuses a git that is too old.
func (g Runner) CheckVersion(ctx context.Context) error {
	out, err := g.Output(ctx, "version")
	if err != nil {
		return err
	}
	var major, minor int // a version that cannot be parsed counts as new enough
	if n, _ := fmt.Sscanf(out, "git version %d.%d", &major, &minor); n == 2 && (major < oldestMajor || major == oldestMajor && minor < oldestMinor) {
		return fmt.Errorf("ralph needs git %d.%d or newer; this is %s", oldestMajor, oldestMinor, Printable(out))
	}
	return nil
}
