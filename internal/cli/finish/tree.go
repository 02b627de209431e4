package finish

import (
	"context"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/ralph-pool/ralph/internal/cli/compose"
	"github.com/ralph-pool/ralph/internal/cli/config/keys"
	"github.com/ralph-pool/ralph/internal/cli/exit"
	"github.com/ralph-pool/ralph/internal/cli/look"
	"github.com/ralph-pool/ralph/internal/cli/screen"
	"github.com/ralph-pool/ralph/worktree/git"
)

const treeLong = `Check out what an issue's runs have left as a new git worktree, at the branch's last commit, with a
detached HEAD. DIR defaults to a folder beside the repository. The checkout runs no hooks and no filter programs (such as Git
LFS): the agent may have chosen their input. Look before you build or run anything in it.`

// NewTree returns `ralph tree`.
func NewTree(a *compose.App) *cobra.Command {
	cmd := &cobra.Command{
		Use: "tree KEY [DIR]", Short: "Check out the work of an issue, to look into it", Long: treeLong,
		Example:     "  ralph tree fix-login\n  ralph tree fix-login /tmp/look",
		Annotations: compose.Marks(compose.Looks),
		GroupID:     compose.GroupLook, ValidArgsFunction: a.CompleteKeys,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) < 1 || len(args) > 2 {
				return exit.Usagef("%s takes a KEY and perhaps a DIR", cmd.CommandPath())
			}
			return nil
		},
		RunE: a.InBacklog(func(ctx context.Context, p *compose.Parts, args []string) error { return tree(ctx, a, p, args) }),
	}
	a.Bind(cmd, keys.ForIssue, "base")
	return cmd
}

func tree(ctx context.Context, a *compose.App, p *compose.Parts, args []string) error {
	key := args[0]
	w, err := look.LeftWork(ctx, p, key)
	if err != nil {
		return err
	}
	if w.Empty && w.Ahead == 0 && w.Merged { // its tip is a commit of the base
		a.UI.Note("nothing to check out: %s has no commits of its own", screen.CleanLine(key))
		if w.Uncommitted != "" {
			a.UI.Note("uncommitted changes are saved: git show %s", screen.ShortSHA(w.Uncommitted))
		}
		return nil
	}
	dir := p.Top + "-" + p.Key(ctx, key)
	if len(args) > 1 {
		dir = a.Path(args[1])
	}
	if _, err := os.Lstat(dir); err == nil {
		remove := ""
		if _, err := git.ReadLinked(filepath.Join(dir, ".git")); err == nil {
			remove = ", or remove this one: git worktree remove " + screen.CleanLine(git.Quote(dir))
		}
		return exit.Usagef("%s exists already; name another folder: ralph tree %s DIR%s", screen.CleanLine(dir), screen.CleanLine(key), remove)
	}
	if err := addPlain(ctx, p.Repo.Git(), dir, w.Tip); err != nil {
		return err
	}
	a.UI.Printf("%s\n", screen.CleanLine(dir))
	if w.Gone != "" {
		a.UI.Note("%s", screen.CleanLine(w.Gone))
	}
	if w.Uncommitted != "" {
		a.UI.Note("uncommitted changes are saved: git show %s", screen.ShortSHA(w.Uncommitted))
	}
	a.UI.Note("remove it with: git -C %s worktree remove %s", screen.CleanLine(git.Quote(p.Top)), screen.CleanLine(git.Quote(dir)))
	return nil
}

// addPlain adds a worktree for the user at a commit, with a detached HEAD. It runs no program of git's configuration, including the
// part that only applies to the new worktree.
func addPlain(ctx context.Context, g git.Runner, dir, commit string) error {
	if _, err := g.Output(ctx, "worktree", "add", "--quiet", "--no-checkout", "--detach", "--", dir, commit); err != nil {
		return err
	}
	gitDir, err := git.LinkedGitDir(dir)
	if err != nil {
		return err
	}
	g = g.Pin(gitDir, g.Common(), dir)
	config, err := g.Config(ctx)
	if err != nil {
		return err
	}
	return g.CheckOut(ctx, config, filepath.Join(gitDir, "index"), "", commit)
}
