package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/ralph-pool/ralph/internal/tempdir"
	"github.com/ralph-pool/ralph/worktree"
)

const cleanLong = `Remove what is safe to remove: ralph's branches, saved changes and records whose commits the base contains, and
worktrees of runs that have ended. What holds work that is nowhere else stays, and is listed with the reason.`

func newCleanCommand(a *app) *cobra.Command {
	var dry bool
	cmd := &cobra.Command{
		Use: "clean", Short: "Remove worktrees and branches that are safe to remove", Long: cleanLong,
		Example: "  ralph clean --dry-run\n  ralph clean",
		GroupID: groupWork, Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runClean(cmd, a, dry) },
	}
	cmd.Flags().BoolVar(&dry, "dry-run", false, "say what would be removed; change nothing")
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

func runClean(cmd *cobra.Command, a *app, dry bool) (err error) {
	p, err := a.open(cmd)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.close()) }()
	ctx := cmd.Context()
	base, err := p.repo.Base(ctx, p.Base)
	if err != nil {
		return err
	}
	held, _, err := p.repo.Claims(ctx)
	if err != nil {
		return err
	}
	open, err := p.journal.Open(ctx)
	if err != nil {
		return err
	}
	unsettled := map[string]bool{}
	for _, r := range open {
		unsettled[r.Run] = true
	}
	results, err := cleanTrees(ctx, p.repo, held, unsettled, dry)
	if err != nil {
		return err
	}
	jobs, err := worktree.Open(ctx, p.top, worktree.Options{StateDir: filepath.Join(p.state, "jobs")})
	if err != nil {
		return err
	}
	more, err := cleanTrees(ctx, jobs, held, nil, dry)
	if err != nil {
		return err
	}
	results = append(results, more...)
	branches, err := p.repo.Branches(ctx, base)
	if err != nil {
		return err
	}
	for _, b := range branches {
		results = append(results, cleanBranch(p, cmd, b, base, held, dry))
	}
	return a.printCleaned(results, dry)
}

// cleanTrees removes the worktrees whose runs have ended.
func cleanTrees(ctx context.Context, repo *worktree.Repo, held map[string]worktree.ClaimState, unsettled map[string]bool, dry bool) ([]cleaned, error) {
	trees, err := repo.Trees(ctx)
	if err != nil {
		return nil, err
	}
	results := []cleaned{}
	for _, t := range trees {
		s := t.Spec()
		c, claimed := held[s.Key]
		switch {
		case claimed && !c.Gone:
			results = append(results, cleaned{s.Key, s.Branch, false, "it is being worked"})
			continue
		case unsettled[s.Run]: // its agent may still be at work
			results = append(results, cleaned{s.Key, s.Branch, false, "its run has not come to its end; `ralph work` goes on with it"})
			continue
		}
		r := cleaned{s.Key, s.Branch, true, "worktree of a run that has ended"}
		if !dry {
			err := t.Remove(ctx)
			if err == nil { // nothing else leads to it any more
				err = tempdir.RemoveRun(s.Run)
			}
			if err != nil {
				r = cleaned{s.Key, s.Branch, false, err.Error()}
			}
		}
		results = append(results, r)
	}
	return results, nil
}

func cleanBranch(p *parts, cmd *cobra.Command, b worktree.Branch, base worktree.Base, held map[string]worktree.ClaimState, dry bool) cleaned {
	keep := func(why string) cleaned { return cleaned{b.Key, b.Name, false, why} }
	c, claimed := held[b.Key]
	switch {
	case claimed && !c.Gone:
		return keep("it is being worked")
	case !b.Merged:
		return keep(fmt.Sprintf("%s not in %s; merge it, or delete it with: git branch -D %s", plural(b.Ahead, "commit"), base.Name, b.Name))
	case b.WIP != "":
		return keep(fmt.Sprintf("it has uncommitted changes saved; look with `git show %s`, delete with: git update-ref -d refs/ralph/wip/%s",
			shortSHA(b.WIP), b.Key))
	}
	if !dry {
		if err := p.repo.Drop(cmd.Context(), b.Key, b.Tip); err != nil {
			return keep(err.Error())
		}
	}
	return cleaned{b.Key, b.Name, true, "contained in " + base.Name}
}

func (a *app) printCleaned(results []cleaned, dry bool) error {
	if a.json {
		return a.ui.json(results)
	}
	if len(results) == 0 {
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
		rows = append(rows, []string{r.Issue, r.Branch, what, r.Why})
	}
	a.ui.table(rows)
	return nil
}
