// Package issues has the commands that change issues, and control the runs of one: `ralph new`, `edit`, `close`, `reopen`, `retry`
// and `stop`.
package issues

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ralph-pool/ralph/internal/cli/compose"
	"github.com/ralph-pool/ralph/internal/cli/config/keys"
	"github.com/ralph-pool/ralph/internal/cli/exit"
	"github.com/ralph-pool/ralph/internal/cli/screen"
	"github.com/ralph-pool/ralph/tracker"
)

const newLong = `Write a new issue into a backlog of files, with the pick-up labels. Without TITLE, or with --edit, open your
editor ($VISUAL or $EDITOR). The text is checked before the issue is added. On a forge: print the address of the form for new
issues, with TITLE and the text of --body filled in, and open it in the browser.`

// NewCreate returns `ralph new`.
func NewCreate(a *compose.App) *cobra.Command {
	var (
		d    tracker.Draft
		edit bool
	)
	cmd := &cobra.Command{
		Use: "new [TITLE]", Short: "Write a new issue", Long: newLong,
		Example: "  ralph new 'Fix the login' --body 'It is slow.' --priority 1\n  ralph new", GroupID: compose.GroupWork,
		Args: exit.AtMostOne("TITLE"), ValidArgsFunction: cobra.NoFileCompletions,
		PreRunE: func(_ *cobra.Command, args []string) error { return checkDraft(args, d) },
		RunE: a.InBacklog(func(ctx context.Context, p *compose.Parts, args []string) error {
			d.Title = strings.Join(args, "")
			return newIssue(ctx, a, p, d, edit || d.Title == "")
		}),
	}
	flags := cmd.Flags()
	flags.StringVar(&d.Body, "body", "", "the `text` of the issue; - reads standard input")
	flags.StringSliceVar(&d.Labels, "label", nil, "`labels` besides the pick-up labels")
	flags.IntVar(&d.Priority, "priority", 0, "1 is the most urgent; 0: none")
	flags.StringSliceVar(&d.BlockedBy, "blocked-by", nil, "`KEYs` of the issues that block this one")
	for flag, value := range map[string]string{"label": "LABEL", "blocked-by": "KEY"} {
		f := flags.Lookup(flag)
		f.Value = names{f.Value, value}
	}
	flags.BoolVar(&edit, "edit", false, "open the editor")
	_ = cmd.RegisterFlagCompletionFunc("blocked-by", a.CompleteKeys)
	a.Bind(cmd, keys.ForIssue)
	return cmd
}

// names is the value of a list flag that refuses empty items.
type names struct {
	pflag.Value
	what string
}

// Set implements pflag.Value. It also refuses an empty text, which pflag would turn into an empty list.
func (n names) Set(s string) error {
	if err := n.Value.Set(s); err != nil {
		return err
	}
	if list, _ := n.Value.(pflag.SliceValue); blank(s) || slices.ContainsFunc(list.GetSlice(), blank) {
		return fmt.Errorf("an empty name; give %s, or remove the flag", n.what)
	}
	return nil
}

func blank(name string) bool { return strings.TrimSpace(name) == "" }

// checkDraft refuses an empty title and a negative priority.
func checkDraft(title []string, d tracker.Draft) error {
	if slices.ContainsFunc(title, blank) {
		return exit.Usagef("the title is empty; give one, or leave it out to write the issue in your editor")
	}
	if d.Priority < 0 {
		return exit.Usagef("--priority: %d is less than 0", d.Priority)
	}
	return nil
}

func newIssue(ctx context.Context, a *compose.App, p *compose.Parts, d tracker.Draft, edit bool) error {
	if d.Body == "-" {
		body, err := a.ReadInput(ctx, 0)
		if err != nil {
			return err
		}
		d.Body = string(body)
	}
	w, ok := tracker.As[tracker.Writer](p.Backlog)
	if !ok {
		return browseNew(ctx, a, p, d)
	}
	for i, typed := range d.BlockedBy {
		issue, err := p.Issue(ctx, typed)
		if errors.Is(err, tracker.ErrNotFound) {
			return exit.Usagef("--blocked-by: %w", err)
		}
		d.BlockedBy[i] = cmp.Or(issue.Key, typed) // an unreadable issue exists, too
	}
	d.Labels = compose.Union(slices.Clone(p.Labels), d.Labels)
	text := w.Text(d)
	create := func(text string) error {
		issue, err := w.Create(ctx, text)
		if err == nil {
			a.UI.Printf("%s\n", screen.CleanLine(issue.Key))
			a.UI.Note("%s", screen.CleanLine(issue.URL))
		}
		return err
	}
	if !edit {
		return asWrong(create(text))
	}
	err := openEditor(a, text, create)
	if errors.Is(err, errNoEditor) && d.Title == "" {
		return exit.Usagef("%w, or give a title: ralph new 'TITLE'", err)
	}
	return err
}

// browseNew opens the forge's page for a new issue, with the draft filled in.
func browseNew(ctx context.Context, a *compose.App, p *compose.Parts, d tracker.Draft) error {
	kind, err := a.Trackers.Lookup(p.Backlog.Name())
	if err != nil {
		return err
	}
	address, err := p.ProjectOn(ctx, kind)
	if err != nil {
		return err
	}
	at, err := tracker.ParseRemote(address)
	if err != nil {
		return err
	}
	query := url.Values{}
	for name, text := range map[string]string{kind.NewTitle: d.Title, kind.NewBody: d.Body} {
		if name != "" && text != "" {
			query.Set(name, text)
		}
	}
	where := url.URL{Scheme: "https", Host: at.Host, Path: "/" + at.Path + kind.NewIssue, RawQuery: query.Encode()}
	a.Browse(where.String())
	return nil
}
