package finish

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ralph-pool/ralph/internal/cli/compose"
	"github.com/ralph-pool/ralph/internal/cli/config/keys"
	"github.com/ralph-pool/ralph/internal/cli/exit"
	"github.com/ralph-pool/ralph/internal/cli/look"
	"github.com/ralph-pool/ralph/internal/cli/screen"
	"github.com/ralph-pool/ralph/internal/ecosystem"
	"github.com/ralph-pool/ralph/pool/checks"
	differ "github.com/ralph-pool/ralph/worktree/diff"
)

const diffLong = `Show what an issue's branch changes, as ` +
	"`git diff BASE...BRANCH`" + ` does: with your pager, your colours and your settings.
Changes that a run saved without a commit are not in it; ralph show says where they are.`

// NewDiff returns `ralph diff`.
func NewDiff(a *compose.App) *cobra.Command {
	var stat bool
	cmd := &cobra.Command{
		Use: "diff KEY", Short: "Show what an issue's branch changes", Long: diffLong,
		Example:     "  ralph diff fix-login\n  ralph diff --stat fix-login",
		Annotations: compose.Marks(compose.Looks),
		GroupID:     compose.GroupLook, Args: exit.OneIssue, ValidArgsFunction: a.CompleteWorked,
		RunE: a.InBacklog(func(ctx context.Context, p *compose.Parts, args []string) error {
			return diff(ctx, a, p, args[0], stat)
		}),
	}
	cmd.Flags().BoolVar(&stat, "stat", false, "only name the files, with the lines added and removed")
	a.Bind(cmd, keys.ForIssue, "base")
	return cmd
}

func diff(ctx context.Context, a *compose.App, p *compose.Parts, key string, stat bool) error {
	w, err := look.LeftWork(ctx, p, key)
	if err != nil {
		return err
	}
	switch {
	case w.Running:
		a.UI.Note("%s is being worked; this is what has been imported so far", screen.CleanLine(key))
	case w.Merged && w.Ahead == 0 && w.Empty: // otherwise people would think that it was merged
		a.UI.Note("nothing differs: %s has no commits of its own", screen.CleanLine(key))
		return nil
	case w.Merged && w.Ahead == 0:
		a.UI.Note("nothing differs: %s contains %s; to see what it changed: %s", screen.CleanLine(w.Base), screen.ShortSHA(w.Tip), w.Was)
		return nil
	case w.Merged:
		a.UI.Note("%s already has these changes", screen.CleanLine(w.Base))
	case w.Gone != "":
		a.UI.Note("%s; this is what it changed", screen.CleanLine(w.Gone))
	}
	spec, related, err := w.Range(ctx, p)
	if err != nil {
		return err
	}
	if !related {
		a.UI.Note("%s and %s have no common history; this is how their files differ", screen.CleanLine(key), screen.CleanLine(w.Base))
	}
	if files, err := changed(ctx, p, w, related); err == nil {
		if links := checks.Gitlinks(files); len(links) > 0 {
			a.UI.Warn("submodules have other commits, whose changes are not in the diff: " + screen.CleanLine(strings.Join(links, ", ")))
		}
	}
	pager, env, err := throughPager(a, p.Top)
	if err != nil {
		return err
	}
	// Run no external diff and no textconv: the agent's .gitattributes could choose it.
	argv := slices.Concat([]string{"git", "-C", p.Top}, pager, []string{"diff", "--no-ext-diff", "--no-textconv", "--ignore-submodules=none"})
	if binary, err := differ.Binary(ctx, p.Repo.Git().WithDir(p.Top), spec); err == nil {
		if hidden := slices.DeleteFunc(binary, func(file string) bool { return !ecosystem.IsSource(file) }); len(hidden) > 0 {
			a.UI.Warn("git takes source code for data, because of its bytes: " + screen.CleanLine(strings.Join(hidden, ", ")) +
				"; without --stat it is shown as text, like all other data")
			argv = append(argv, "--text")
		}
	}
	if stat {
		argv = append(argv, "--stat")
	}
	if a.Color != "auto" {
		argv = append(argv, "--color="+a.Color)
	}
	return a.Foreground(env, append(argv, spec, "--")...)
}

// changed lists the files that the work changes.
func changed(ctx context.Context, p *compose.Parts, w look.WorkData, related bool) ([]differ.File, error) {
	from := w.Begin
	if related {
		var err error
		if from, err = p.Repo.Spans().Fork(ctx, w.Begin, w.Tip); err != nil {
			return nil, err
		}
	}
	return differ.Files(ctx, p.Repo.Git().WithDir(p.Top), from, w.Tip)
}
