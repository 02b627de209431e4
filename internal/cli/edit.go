package cli

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ralph-pool/ralph/internal/cli/config"
	"github.com/ralph-pool/ralph/internal/cli/exit"
	"github.com/ralph-pool/ralph/internal/cli/screen"
	"github.com/ralph-pool/ralph/tracker"
)

const editLong = `Edit an issue of a backlog of files with your editor ($VISUAL or $EDITOR). What you have written is checked before it takes the
place of the old text; a run that is on is told of it. On a forge: print the issue's address, and open it in the browser.`

func newEditCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use: "edit KEY", Short: "Edit an issue", Long: editLong,
		Example: "  ralph edit fix-login", GroupID: groupWork, Args: exit.OneIssue, ValidArgsFunction: a.completeKeys,
		RunE: a.inBacklog(func(ctx context.Context, p *parts, args []string) error { return a.editIssue(ctx, p, args[0]) }),
	}
	a.bind(cmd, config.ForIssue)
	return cmd
}

func (a *app) editIssue(ctx context.Context, p *parts, typed string) error {
	key := p.key(ctx, typed)
	w, ok := tracker.As[tracker.Writer](p.tracker)
	if ok { // its text may be what is wrong with it
		if old, err := w.Read(ctx, key); err == nil {
			return a.edit(old, func(text string) error {
				err := w.Rewrite(ctx, key, old, text)
				if err == nil {
					a.ui.Note("%s is saved", screen.CleanLine(typed))
				}
				return err
			})
		}
	}
	issue, err := p.issue(ctx, typed)
	if err == nil {
		a.browse(issue.URL)
	}
	return err
}

var errNoEditor = exit.Usagef("no editor: set VISUAL or EDITOR")

// edit opens the editor on a text, and saves what comes of it. A text that is refused is kept, and the error says where.
func (a *app) edit(text string, save func(string) error) error {
	editor := strings.Fields(cmp.Or(a.host.getenv("VISUAL"), a.host.getenv("EDITOR")))
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
		return fmt.Errorf("%w; nothing is saved, your text is in %s", err, path)
	}
	if err := a.foreground(append(editor, path)...); err != nil {
		return kept(err)
	}
	now, err := os.ReadFile(path)
	if err != nil {
		return kept(err)
	}
	if string(now) == text {
		a.ui.Note("you have changed nothing, so nothing is saved")
		return os.RemoveAll(dir)
	}
	if err := save(string(now)); err != nil {
		return kept(err)
	}
	return os.RemoveAll(dir)
}
