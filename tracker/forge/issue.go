package forge

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/tracker/forge/transport"
)

// Home is the current state of the project on its forge.
type Home struct {
	Name     string // full name, including the owner or groups
	NoIssues bool   // issues are disabled
}

// CheckUsable returns the reason why no issue of the project can be used, or nil.
func (p *Project) CheckUsable(ctx context.Context) error {
	home, err := p.calls.Home(transport.Follow(transport.WithoutCache(ctx)))
	switch {
	case transport.Missing(err):
		return &tracker.RefusedError{Err: err}
	case err != nil:
		return err
	case !strings.EqualFold(home.Name, p.Profile.Name):
		return &tracker.RefusedError{Err: fmt.Errorf("the project %s is %.200q now; %s", p.Profile.Name, home.Name, transport.HintMoved)}
	case home.NoIssues:
		return &tracker.RefusedError{Err: fmt.Errorf("the project %s has no issues; switch them on in its settings", p.Profile.Name)}
	}
	return nil
}

// Listed explains an error of listing issues by the state of the project: some forges forbid the list if issues are disabled.
func (p *Project) Listed(ctx context.Context, err error) error {
	if !transport.Missing(err) && !transport.IsMoved(err) && transport.Status(err) != http.StatusForbidden {
		return err
	}
	if why := p.CheckUsable(ctx); why != nil {
		return why
	}
	return &tracker.RefusedError{Err: err}
}

// Number parses an issue's key. Only the canonical spelling of a number is a key.
func Number(key string) (int, bool) {
	n, err := strconv.ParseInt(key, 10, 32)
	return int(n), err == nil && n > 0 && strconv.FormatInt(n, 10) == key
}

// NotFound returns the error for a key without an issue.
func NotFound(key string) error { return fmt.Errorf("%w: %q", tracker.ErrNotFound, key) }

// ExplainMissing turns a "not found" or "moved" answer about an issue into ErrNotFound, unless the whole project is affected.
func (p *Project) ExplainMissing(ctx context.Context, key string, err error) error {
	if !transport.Missing(err) && !transport.IsMoved(err) {
		return err
	}
	if why := p.CheckUsable(ctx); why != nil {
		return why
	}
	return fmt.Errorf("%w: %q: %w", tracker.ErrNotFound, key, err)
}
