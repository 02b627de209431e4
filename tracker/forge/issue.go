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

// Home is the project as its forge has it now.
type Home struct {
	Name     string // with that of its owner or groups
	NoIssues bool   // they are switched off
}

// Here says why the issues of the project cannot be used, whichever they are; nil: they can.
func (p *Project) Here(ctx context.Context) error {
	home, err := p.calls.Home(transport.Follow(transport.Fresh(ctx)))
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

// Listed explains an error of listing issues: it is about all of them. Some forges forbid the list where issues are switched off.
func (p *Project) Listed(ctx context.Context, err error) error {
	if !transport.Missing(err) && !transport.Elsewhere(err) && transport.Status(err) != http.StatusForbidden {
		return err
	}
	if why := p.Here(ctx); why != nil {
		return why
	}
	return &tracker.RefusedError{Err: err}
}

// Number reads an issue's key; a number has only one spelling that is a key.
func Number(key string) (int, bool) {
	n, err := strconv.ParseInt(key, 10, 32)
	return int(n), err == nil && n > 0 && strconv.FormatInt(n, 10) == key
}

// NotFound is the error for a key that names no issue.
func NotFound(key string) error { return fmt.Errorf("%w: %q", tracker.ErrNotFound, key) }

// Gone turns answers that say there is no such issue, or that it is elsewhere, into ErrNotFound. They tell of the issue only while
// the others of the project are there.
func (p *Project) Gone(ctx context.Context, key string, err error) error {
	if !transport.Missing(err) && !transport.Elsewhere(err) {
		return err
	}
	if why := p.Here(ctx); why != nil {
		return why
	}
	return fmt.Errorf("%w: %q: %w", tracker.ErrNotFound, key, err)
}
