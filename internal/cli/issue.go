package cli

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/ralph-pool/ralph/pool"
	"github.com/ralph-pool/ralph/tracker"
)

// onIssue makes cmd a command about one issue of the backlog.
func (a *app) onIssue(cmd *cobra.Command, run func(ctx context.Context, p *parts, issue tracker.Issue) error) {
	cmd.Args, cmd.ValidArgsFunction = oneIssue, a.completeKeys
	cmd.RunE = func(cmd *cobra.Command, args []string) (err error) {
		p, err := a.open(cmd)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, p.close()) }()
		issue, err := p.issue(cmd.Context(), args[0])
		if err != nil {
			return err
		}
		return run(cmd.Context(), p, issue)
	}
}

// issue reads the issue that a person typed.
func (p *parts) issue(ctx context.Context, typed string) (tracker.Issue, error) {
	issue, err := p.tracker.Get(ctx, p.key(ctx, typed))
	if !errors.Is(err, tracker.ErrNotFound) {
		return issue, err
	}
	list, err := p.tracker.List(ctx, tracker.Query{})
	if err != nil {
		return issue, err
	}
	return issue, asUsage(&pool.UnknownKeyError{Key: typed, Nearest: list.Nearest(typed)})
}
