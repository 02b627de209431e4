package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/ralph-pool/ralph/internal/cli/compose"
	"github.com/ralph-pool/ralph/internal/cli/config"
	"github.com/ralph-pool/ralph/internal/cli/exit"
	"github.com/ralph-pool/ralph/internal/cli/screen"
	"github.com/ralph-pool/ralph/internal/proc"
	"github.com/ralph-pool/ralph/pool/report"
)

const diffLong = `Show what an issue's branch changes, as ` + "`git diff BASE...BRANCH`" + ` does: with your pager, your colours and your settings.
Changes that a run saved without a commit are not in it; ralph show says where they are.`

func newDiffCommand(a *compose.App) *cobra.Command {
	var stat bool
	cmd := &cobra.Command{
		Use: "diff KEY", Short: "Show what an issue's branch changes", Long: diffLong,
		Example: "  ralph diff fix-login\n  ralph diff --stat fix-login",
		GroupID: compose.GroupLook, Args: exit.OneIssue, ValidArgsFunction: a.CompleteWorked,
		RunE: a.InBacklog(func(ctx context.Context, p *compose.Parts, args []string) error {
			return diff(ctx, a, p, args[0], stat)
		}),
	}
	cmd.Flags().BoolVar(&stat, "stat", false, "only name the files, with the lines added and removed")
	a.Bind(cmd, config.ForIssue, "base")
	return cmd
}

func diff(ctx context.Context, a *compose.App, p *compose.Parts, key string, stat bool) error {
	w, err := left(ctx, p, key)
	if err != nil {
		return err
	}
	switch {
	case w.running:
		a.UI.Note("%s is being worked; this is what has been imported so far", screen.CleanLine(key))
	case w.Merged && w.Ahead == 0:
		a.UI.Note("nothing differs: %s contains %s; see what it changed with: %s", screen.CleanLine(w.Base), screen.ShortSHA(w.tip), w.was)
		return nil
	case w.Merged:
		a.UI.Note("%s has these changes", screen.CleanLine(w.Base))
	}
	pager, err := throughPager(a, p.Top, "diff")
	if err != nil {
		return err
	}
	// The attributes that choose a program are the agent's.
	argv := slices.Concat([]string{"git", "-C", p.Top}, pager, []string{"diff", "--no-ext-diff", "--no-textconv"})
	if stat {
		argv = append(argv, "--stat")
	}
	if a.Color != "auto" {
		argv = append(argv, "--color="+a.Color)
	}
	return foreground(a, append(argv, w.base+"..."+w.tip, "--")...)
}

// left is where the work of an issue's runs is now. It fails where there is none.
func left(ctx context.Context, p *compose.Parts, key string) (workData, error) {
	runs, err := p.RunsOf(ctx, key)
	if err != nil {
		return workData{}, err
	}
	last := runs[len(runs)-1]
	w, err := workOf(ctx, p, stateOf(last))
	if err != nil {
		return w, err
	}
	w.tip = cmp.Or(w.tip, last.Tip)
	if w.tip != "" && w.Ahead == 0 && !w.running {
		if w.Merged, err = p.Repo.Git().Holds(ctx, w.base, w.tip); err != nil {
			return w, err
		}
		w.was = report.GitCommand("show", screen.ShortSHA(w.tip))
		if v := last.Verified; v.Base != "" && v.Tip == w.tip {
			w.was = report.GitCommand("diff", screen.ShortSHA(v.Base)+".."+screen.ShortSHA(v.Tip))
		}
	}
	switch {
	case w.unimported():
		err = fmt.Errorf("%s is being worked; none of its commits has been imported yet; follow it with: ralph logs -f %s", key, last.Key)
	case w.tip == "":
		err = fmt.Errorf("%s: its runs have left no commits", key)
	}
	return w, err
}

// foreground runs a program that talks to the person at the terminal.
func foreground(a *compose.App, argv ...string) error {
	exit, err := proc.Foreground(a.Hard, proc.Spec{
		Argv: argv, Dir: a.Host.Dir, Env: a.Host.Env, Stdin: a.Host.Stdin, Stdout: a.Host.Stdout, Stderr: a.Host.Stderr,
	})
	if err == nil && exit.Code != 0 && exit.Signal != syscall.SIGPIPE { // who leaves a pager has seen enough
		err = fmt.Errorf("%s ended with status %d", argv[0], exit.Code)
	}
	return err
}
