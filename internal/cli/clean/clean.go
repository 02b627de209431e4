// Package clean is the command `ralph clean`: it removes the remains of ended runs, and repairs damage.
package clean

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ralph-pool/ralph/internal/cli/compose"
	"github.com/ralph-pool/ralph/internal/cli/config/keys"
	"github.com/ralph-pool/ralph/internal/cli/exit"
	"github.com/ralph-pool/ralph/internal/cli/look"
	"github.com/ralph-pool/ralph/internal/cli/progress"
	"github.com/ralph-pool/ralph/internal/cli/screen"
	"github.com/ralph-pool/ralph/pool/review"
	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/worktree"
	"github.com/ralph-pool/ralph/worktree/git"
)

const cleanLong = `Remove what ralph no longer needs: worktrees of ended runs, and branches, saved changes and records whose
work is elsewhere. Work is elsewhere when the base (here or on the remote) or one of your branches contains its commits or
the same changes. Work that exists nowhere else stays, and is listed with the reason.

Saved changes of a run go with its branch once later commits of the same issue are merged. An issue in review whose branch
you have merged is closed. Checkouts and homes that runs share stay for the next runs; --caches removes those that are not in
use.

Clean also removes containers whose ralph process has exited (it was killed, or container-keep kept them), and volumes of
container-files copy. Volumes with work that could not be imported stay, and are listed with the command that shows it.

With KEYs only these issues are cleaned, and no containers. A KEY may be a pattern, such as 'run-shell-*'. --discard removes
these issues' work even if it exists nowhere else, and ends their unfinished runs on which no process of this host works.

--repair removes what killed processes, lost folders and damage have left: stale locks, ralph's broken refs, worktree entries
without a folder, unreadable records, temporary files, and processes of dead runs. Files that may hold work are moved aside,
and their new place is printed.`

const cleanExample = `  ralph clean --dry-run
  ralph clean
  ralph clean --caches
  ralph clean --discard fix-login
  ralph clean --discard 'run-shell-*'
  ralph clean --repair`

// NewCommand returns `ralph clean`.
func NewCommand(a *compose.App) *cobra.Command {
	var dry, discard, caches, repair bool
	cmd := &cobra.Command{
		Use: "clean [KEY...]", Short: "Remove worktrees and branches that are safe to remove", Long: cleanLong,
		Example:     cleanExample,
		Annotations: compose.Marks(compose.Looks, compose.Waits),
		GroupID:     compose.GroupWork, ValidArgsFunction: a.CompleteKeys,
		Args: func(_ *cobra.Command, args []string) error {
			switch {
			case discard && len(args) == 0:
				return exit.Usagef("--discard loses work, so it needs the KEYs; `ralph clean --dry-run` lists them")
			case repair && (discard || caches || len(args) > 0):
				return exit.Usagef("--repair looks at the whole repository; leave out --discard, --caches and the KEYs")
			case caches && len(args) > 0:
				return exit.Usagef("--caches removes what all issues share; leave out the KEYs")
			}
			return nil
		},
		RunE: a.InBacklog(func(ctx context.Context, p *compose.Parts, args []string) error {
			if repair {
				return repairAll(ctx, a, p, dry)
			}
			return clean(ctx, a, p, args, dry, discard, caches)
		}),
	}
	cmd.Flags().BoolVarP(&dry, "dry-run", "n", false, "print what would be removed; change nothing")
	cmd.Flags().BoolVar(&discard, "discard", false, "remove the issues' work, even if it exists nowhere else")
	cmd.Flags().BoolVar(&caches, "caches", false, "also remove shared checkouts and homes that are not in use")
	cmd.Flags().BoolVar(&repair, "repair", false, "remove remains of killed processes, and damaged files")
	a.AddJSON(cmd)
	a.Bind(cmd, keys.ForIssue, "base")
	return cmd
}

// CleanedData is the result for one thing that could be removed.
type CleanedData struct {
	Issue   string `json:"issue"`
	Branch  string `json:"branch"`
	Removed bool   `json:"removed"`
	Why     string `json:"why"`
	// Container is the name of the container, if it is one.
	Container string `json:"container"`
	// Volumes is a pattern for volume names, if it is the rest of a sandbox's disk.
	Volumes string `json:"volumes"`
	drop    bool   // --discard removes it, if it was kept
}

func clean(ctx context.Context, a *compose.App, p *compose.Parts, args []string, dry, discard, caches bool) (err error) {
	c := cleaner{p: p, sandboxes: a.SandboxRegistry(p), dry: dry, discard: discard, gone: map[string]string{}}
	if c.base, err = p.ForeignBase(ctx); err != nil {
		return err
	}
	if c.local, err = worktree.Open(ctx, p.Top, p.Repository()); err != nil {
		return err
	}
	if !dry && !discard {
		if err := progress.RecoverJobs(ctx, a, p); err != nil {
			return err
		}
	}
	if err := closeMerged(ctx, a, p, c.base, args, dry); err != nil {
		return err
	}
	var apart bool
	if c.base, apart = look.OnRemote(ctx, p, c.base); apart {
		a.UI.Note("%s", screen.CleanLine(fmt.Sprintf("%s here and on %s have diverged, "+
			"so what was merged there does not count yet; on that branch: git pull --rebase --autostash %s %s",
			c.base.Name, p.Repo.Remote(), git.Quote(p.Repo.Remote()), git.Quote(strings.TrimPrefix(c.base.Name, p.Repo.Remote()+"/")))))
	}
	// List the remains before the claims: a run that adds something in between holds its claim already.
	left, err := c.find(ctx)
	if err != nil {
		return err
	}
	if err := c.look(ctx); err != nil {
		return err
	}
	if left, err = named(ctx, p, c.disks(ctx, a.UI, c.unfinished(left)), args); err != nil {
		return err
	}
	results := []CleanedData{}
	if len(args) == 0 {
		results = append(results, c.containers(ctx, a.UI)...)
	}
	for _, l := range left {
		if len(l.trees) > 0 || l.branch.Key != "" || len(c.openRuns(l.key)) > 0 {
			results = append(results, c.clean(ctx, l)...)
		}
		for _, d := range l.disks {
			results = append(results, c.disk(ctx, l.key, d))
		}
	}
	if len(args) == 0 {
		err = errors.Join(c.claims(ctx, a.UI), c.temp(ctx, a.UI))
	}
	if caches {
		err = errors.Join(err, c.layers(ctx, a.UI))
	}
	err = errors.Join(printCleaned(a, results, p.Names(ctx), dry), c.broken, err)
	n := 0
	for _, r := range results {
		if !r.Removed {
			n++
		}
	}
	if discard && n > 0 && err == nil {
		err = exit.Incompletef("%d of %d not removed", n, len(results))
	}
	c.noteOnRemote(ctx, a.UI)
	return err
}

// closeMerged closes the issues whose branches a person has merged, before the branches are removed.
func closeMerged(ctx context.Context, a *compose.App, p *compose.Parts, base worktree.Base, args []string, dry bool) error {
	b := review.Backlog{Repo: p.Repo, Tracker: p.Backlog, Store: p.Journal, Labels: p.StateLabels(), Claims: p.Repo.Claims}
	if len(p.Labels) > 0 {
		b.PickUp = p.Labels[0]
	}
	for _, arg := range args {
		b.Keys = append(b.Keys, p.Key(ctx, arg))
	}
	merged, err := b.Merged(ctx, base)
	if err != nil {
		return err
	}
	name := p.Names(ctx)
	for _, i := range merged {
		what := "closed"
		if dry {
			what = "would be closed"
		} else if err := p.Backlog.Change(ctx, i.Key, b.Change()); err != nil {
			return err
		}
		a.UI.Note("%s %s: its commits are in %s", screen.CleanLine(name(i.Key)), what, screen.CleanLine(base.Name))
	}
	return nil
}

// named selects the entries that match an argument: a key, an issue's or branch's name, or a pattern.
func named(ctx context.Context, p *compose.Parts, left []remains, args []string) ([]remains, error) {
	if len(args) == 0 {
		return left, nil
	}
	var out []remains
	for _, arg := range args {
		if _, err := path.Match(arg, ""); err != nil {
			return nil, exit.Usagef("%q is not a pattern: %v", arg, err)
		}
		found := false
		for _, l := range left {
			matches, _ := path.Match(arg, l.key) // the pattern was checked above
			if !matches && l.key != p.Key(ctx, arg) && l.key != tracker.Key(compose.KeyOfFile(arg)) {
				continue
			}
			found = true
			if !slices.ContainsFunc(out, func(o remains) bool { return o.key == l.key }) {
				out = append(out, l)
			}
		}
		if !found {
			var keys []string
			for _, l := range left {
				keys = append(keys, l.key)
			}
			return nil, exit.Usagef("nothing to clean for %q%s",
				arg, exit.Suggest(arg, keys, "", "`ralph clean --dry-run` lists what is left"))
		}
	}
	return out, nil
}

func printCleaned(a *compose.App, results []CleanedData, name func(key string) string, dry bool) error {
	rows := [][]string{{"ISSUE", "STATE", "WHY"}}
	for _, r := range results {
		rows = append(rows, []string{name(r.Issue), removal(r.Removed && !dry, r.Removed), r.Why})
	}
	if err := printRemoved(a, results, rows, "Nothing to clean."); err != nil || a.JSON {
		return err
	}
	if slices.ContainsFunc(results, func(r CleanedData) bool { return r.drop }) {
		a.UI.Printf("To see kept work: git show ID; to remove it: ralph clean --discard KEY\n")
	}
	return nil
}

// removal returns the text of the column STATE.
func removal(removed, would bool) string {
	switch {
	case removed:
		return "removed"
	case would:
		return "would remove"
	}
	return "kept"
}

// printRemoved prints the results as JSON or as a table; none replaces an empty table.
func printRemoved(a *compose.App, results any, rows [][]string, none string) error {
	switch {
	case a.JSON:
		return a.UI.JSON(results)
	case len(rows) > 1:
		a.UI.Table(rows)
	case !a.UI.Quiet:
		a.UI.Printf("%s\n", none)
	}
	return nil
}
