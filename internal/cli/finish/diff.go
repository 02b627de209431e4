package finish

import (
	"context"
	"errors"
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
	unseen, err := unseen(ctx, p, w, spec, related)
	if err != nil {
		return err
	}
	if links := unseen.Submodules; len(links) > 0 {
		a.UI.Warn("submodules have other commits, whose changes are not in the diff: " + screen.CleanLine(strings.Join(links, ", ")))
	}
	pager, env, err := throughPager(a, p.Top)
	if err != nil {
		return err
	}
	// Run no external diff and no textconv: the agent's .gitattributes could choose it.
	argv := slices.Concat([]string{"git", "-C", p.Top}, pager, []string{"diff", "--no-ext-diff", "--no-textconv", "--ignore-submodules=none"})
	if len(unseen.Texts) > 0 {
		a.UI.Warn("git takes text or programs for data, because of their bytes: " + screen.CleanLine(strings.Join(unseen.Texts, ", ")) +
			"; without --stat they are shown as text, like all other data")
		argv = append(argv, "--text")
	}
	if stat {
		argv = append(argv, "--stat")
	}
	if a.Color != "auto" {
		argv = append(argv, "--color="+a.Color)
	}
	return a.Foreground(env, append(argv, spec, "--")...)
}

// unseen finds what git would not show of the work, also because of attributes.
func unseen(ctx context.Context, p *compose.Parts, w look.WorkData, spec string, related bool) (u checks.Unseen, err error) {
	g, from := p.Repo.Git().WithDir(p.Top), w.Begin
	if related {
		if from, err = p.Repo.Spans().Fork(ctx, w.Begin, w.Tip); err != nil {
			return u, err
		}
	}
	files, err := differ.Files(ctx, g, from, w.Tip)
	if err != nil {
		return u, err
	}
	if u, err = checks.FindUnseen(ctx, g, files); errors.Is(err, differ.ErrTooMuch) {
		err = nil // no name of a text is known
	}
	if binary, failed := differ.Binary(ctx, g, spec); failed == nil {
		u.Texts = append(u.Texts, slices.DeleteFunc(binary, func(file string) bool { return !ecosystem.IsSource(file) })...)
		slices.Sort(u.Texts)
		u.Texts = slices.Compact(u.Texts)
	}
	return u, err
}
