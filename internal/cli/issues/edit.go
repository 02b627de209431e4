package issues

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ralph-pool/ralph/internal/cli/compose"
	"github.com/ralph-pool/ralph/internal/cli/config/keys"
	"github.com/ralph-pool/ralph/internal/cli/exit"
	"github.com/ralph-pool/ralph/internal/cli/screen"
	"github.com/ralph-pool/ralph/internal/proc"
	"github.com/ralph-pool/ralph/tracker"
)

const editLong = `Edit an issue of a backlog of files with your editor ($VISUAL or $EDITOR). The new text is checked before
it replaces the old one; a current run is told that the issue has changed. On a forge: print the issue's address, and open it
in the browser.`

// NewEdit returns `ralph edit`.
func NewEdit(a *compose.App) *cobra.Command {
	cmd := &cobra.Command{
		Use: "edit KEY", Short: "Edit an issue", Long: editLong,
		Example: "  ralph edit fix-login", GroupID: compose.GroupWork, Args: exit.OneIssue, ValidArgsFunction: a.CompleteKeys,
		RunE: a.InBacklog(func(ctx context.Context, p *compose.Parts, args []string) error { return editIssue(ctx, a, p, args[0]) }),
	}
	a.Bind(cmd, keys.ForIssue)
	return cmd
}

func editIssue(ctx context.Context, a *compose.App, p *compose.Parts, typed string) error {
	key := p.Key(ctx, typed)
	w, ok := tracker.As[tracker.Writer](p.Backlog)
	if ok { // Read also works for a file that is not a valid issue
		if old, err := w.Read(ctx, key); err == nil {
			return openEditor(a, old, func(text string) error {
				err := w.Rewrite(ctx, key, old, text)
				if err == nil {
					a.UI.Note("%s is saved", screen.CleanLine(typed))
				}
				return err
			})
		}
	}
	issue, err := p.Issue(ctx, typed)
	if err == nil {
		a.Browse(issue.URL)
	}
	return err
}

var errNoEditor = exit.Usagef("no editor: set VISUAL or EDITOR")

// asWrong turns the error of an invalid text into wrong usage.
func asWrong(err error) error {
	if _, wrong := errors.AsType[tracker.Problem](err); wrong && !errors.Is(err, tracker.ErrChanged) {
		return exit.Usagef("%w", err)
	}
	return err
}

// openEditor opens an editor on a text, and saves the result. A refused text stays in its file, which the error names.
func openEditor(a *compose.App, text string, save func(string) error) error {
	variable := "VISUAL"
	if strings.TrimSpace(a.Host.Getenv(variable)) == "" {
		variable = "EDITOR"
	}
	editor := strings.Fields(a.Host.Getenv(variable))
	if len(editor) == 0 {
		return errNoEditor
	}
	dir, err := os.MkdirTemp("", "ralph-edit-")
	if err != nil {
		return err
	}
	path := filepath.Join(dir, "issue.md")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		return err
	}
	kept := func(err error) error {
		return fmt.Errorf("%w; nothing was saved; your text is in %s", err, path)
	}
	ended := a.Foreground(a.Host.Env, append(editor, path)...)
	if ended != nil {
		ended = fmt.Errorf("%s: %w", variable, ended)
	}
	if _, not := errors.AsType[*proc.StartError](ended); not {
		ended = exit.Usagef("%w", ended)
	}
	now, err := os.ReadFile(path)
	switch {
	case ended != nil && err == nil && string(now) == text: // nothing was typed
		return cmp.Or(os.RemoveAll(dir), ended)
	case ended != nil || err != nil:
		return kept(cmp.Or(ended, err))
	case string(now) == text:
		a.UI.Note("nothing changed, nothing saved")
		return os.RemoveAll(dir)
	}
	if err := save(string(now)); err != nil {
		return kept(asWrong(err))
	}
	return os.RemoveAll(dir)
}
