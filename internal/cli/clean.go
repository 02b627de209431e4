package cli

import (
	"context"
	"errors"
	"path"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/worktree"
)

const cleanLong = `Remove what is safe to remove: ralph's branches, saved changes and records whose commits the base (or a branch of yours)
contains, and worktrees of runs that have ended. Changes that a run saved go with its branch once later commits of
the same issue were merged. What holds work that is nowhere else stays, and is listed with the reason.

With KEYs only these are looked at; a KEY may be a pattern, such as 'run-shell-*'. --discard removes what they name with the
work that is nowhere else.`

const cleanExample = `  ralph clean --dry-run
  ralph clean
  ralph clean --discard fix-login
  ralph clean --discard 'run-shell-*'`

func newCleanCommand(a *app) *cobra.Command {
	var dry, discard bool
	cmd := &cobra.Command{
		Use: "clean [KEY...]", Short: "Remove worktrees and branches that are safe to remove", Long: cleanLong,
		Example: cleanExample,
		GroupID: groupWork, ValidArgsFunction: a.completeKeys,
		RunE: func(cmd *cobra.Command, args []string) error {
			if discard && len(args) == 0 {
				return usagef("--discard loses work, so it needs the KEYs; `ralph clean --dry-run` lists them")
			}
			return runClean(cmd, a, args, dry, discard)
		},
	}
	cmd.Flags().BoolVar(&dry, "dry-run", false, "say what would be removed; change nothing")
	cmd.Flags().BoolVar(&discard, "discard", false, "remove what the KEYs name, with the work that is nowhere else")
	a.addJSON(cmd)
	a.bind(cmd, "tracker", "local.dir", "remote", "state-dir", "base")
	return cmd
}

// cleaned is what became of one thing that could be removed.
type cleaned struct {
	Issue   string `json:"issue"`
	Branch  string `json:"branch"`
	Removed bool   `json:"removed"`
	Why     string `json:"why"`
}

func runClean(cmd *cobra.Command, a *app, args []string, dry, discard bool) (err error) {
	p, err := a.open(cmd)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.close()) }()
	ctx := cmd.Context()
	c := cleaner{p: p, dry: dry, discard: discard}
	if c.base, err = p.base(ctx); err != nil {
		return err
	}
	if c.jobs, err = worktree.Open(ctx, p.top, worktree.Options{StateDir: filepath.Join(p.state, "jobs"), Log: p.log}); err != nil {
		return err
	}
	// What is there comes first: whoever has made it since then holds its claim by now.
	left, err := c.find(ctx)
	if err != nil {
		return err
	}
	if left, err = named(ctx, p, left, args); err != nil {
		return err
	}
	if err := c.look(ctx); err != nil {
		return err
	}
	results := []cleaned{}
	for _, l := range left {
		results = append(results, c.clean(ctx, l)...)
	}
	return a.printCleaned(results, p.names(ctx), dry)
}

// named keeps what the arguments name: by key, by the name of its issue or branch, or by a pattern.
func named(ctx context.Context, p *parts, left []leftover, args []string) ([]leftover, error) {
	if len(args) == 0 {
		return left, nil
	}
	var out []leftover
	for _, arg := range args {
		if _, err := path.Match(arg, ""); err != nil {
			return nil, usagef("%q is not a pattern: %v", arg, err)
		}
		found := false
		for _, l := range left {
			matches, _ := path.Match(arg, l.key) // checked above
			if !matches && l.key != p.key(ctx, arg) && l.key != tracker.Key(known(arg)) {
				continue
			}
			found = true
			if !slices.ContainsFunc(out, func(o leftover) bool { return o.key == l.key }) {
				out = append(out, l)
			}
		}
		if !found {
			return nil, usagef("nothing of ralph's is left for %q; `ralph clean --dry-run` lists what there is", arg)
		}
	}
	return out, nil
}

func (a *app) printCleaned(results []cleaned, name func(key string) string, dry bool) error {
	if a.json {
		return a.ui.json(results)
	}
	if len(results) == 0 {
		if a.quiet {
			return nil
		}
		a.ui.printf("Nothing to clean.\n")
		return nil
	}
	rows := [][]string{{"ISSUE", "BRANCH", "STATE", "WHY"}}
	for _, r := range results {
		what := "kept"
		switch {
		case r.Removed && dry:
			what = "would go"
		case r.Removed:
			what = "removed"
		}
		rows = append(rows, []string{name(r.Issue), r.Branch, what, r.Why})
	}
	a.ui.table(rows)
	return nil
}
