package github

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/tracker/forge"
)

// read reads the issue itself, or ErrNotFound.
func (t *Tracker) read(ctx context.Context, key string) (issue, error) {
	number, ok := numberOf(key)
	if !ok {
		return issue{}, notFound(key)
	}
	var i issue
	err := t.stack.Twice(ctx, func(ctx context.Context) error {
		ctx = forge.Into(ctx, func(body []byte) error {
			if err := forge.Decode(body, &i); err != nil {
				return err
			}
			if i.Number != number && t.here(i) {
				return fmt.Errorf("it is about #%d", i.Number)
			}
			return nil
		})
		_, err := t.call(ctx, http.MethodGet, t.repo("/issues/%d", number), nil, nil)
		return err
	})
	if err != nil {
		return issue{}, gone(key, err)
	}
	// An issue that was transferred is another project's now, and the API redirects there.
	if now := i.project(); !t.here(i) {
		return issue{}, fmt.Errorf("%w: %q has moved to %s#%d", tracker.ErrNotFound, key, now, i.Number)
	}
	if i.isPull() {
		return issue{}, notFound(key)
	}
	return i, nil
}

// here reports that an issue is one of this project.
func (t *Tracker) here(i issue) bool {
	p := i.project()
	return p == "" || strings.EqualFold(p, t.cfg.Project.String())
}

func notFound(key string) error { return fmt.Errorf("%w: %q", tracker.ErrNotFound, key) }

// gone makes ErrNotFound of answers that say there is no such issue.
func gone(key string, err error) error {
	switch forge.Status(err) {
	case http.StatusNotFound, http.StatusGone, http.StatusMovedPermanently:
		return fmt.Errorf("%w: %q: %w", tracker.ErrNotFound, key, err)
	}
	return err
}

// below is what it means that something of an issue is not there: that there is no such issue only when the issue itself
// is not there.
func (t *Tracker) below(ctx context.Context, key string, err error) error {
	if !forge.Missing(err) {
		return err
	}
	if _, look := t.read(ctx, key); look != nil {
		return look
	}
	return err
}
