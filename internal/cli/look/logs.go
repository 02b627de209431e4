package look

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/ralph-pool/ralph/internal/cli/compose"
	"github.com/ralph-pool/ralph/internal/cli/config/keys"
	"github.com/ralph-pool/ralph/internal/cli/exit"
	"github.com/ralph-pool/ralph/internal/cli/screen"
	"github.com/ralph-pool/ralph/pool/journal"
)

// NewLogs returns `ralph logs`.
func NewLogs(a *compose.App) *cobra.Command {
	var follow, all bool
	cmd := &cobra.Command{
		Use: "logs KEY", Short: "Print what happened in an issue's latest run",
		Long: "Print what happened in an issue's latest run: what the agent said and did, commits, checks. The raw streams and\n" +
			"the checks' full output are files in the folder that `ralph show KEY` names.",
		Example:     "  ralph logs fix-login\n  ralph logs -f fix-login\n  ralph logs --all --json fix-login",
		Annotations: compose.Marks(compose.Looks, compose.Reads),
		GroupID:     compose.GroupLook, Args: exit.OneIssue, ValidArgsFunction: a.CompleteWorked,
		RunE: a.InBacklog(func(ctx context.Context, p *compose.Parts, args []string) error {
			return runLogs(ctx, a, p, args[0], follow, all)
		}),
	}
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "keep printing until the run ends")
	cmd.Flags().BoolVar(&all, "all", false, "print all runs of the issue, not only the latest")
	a.AddJSON(cmd)
	a.Bind(cmd, keys.ForIssue)
	return cmd
}

func runLogs(ctx context.Context, a *compose.App, p *compose.Parts, key string, follow, all bool) error {
	runs, err := p.RunsOf(ctx, key)
	if err != nil {
		return err
	}
	if n := len(runs); n > 1 && !all {
		runs = runs[n-1:]
		a.UI.Note("run %s, the latest of %d; for all: ralph logs --all %s", runs[0].ID, n, runs[0].Key)
	}
	for i, r := range runs {
		if err := logRun(ctx, a, r, follow && i == len(runs)-1); err != nil {
			return err
		}
	}
	return nil
}

// logIndent is the column of a log entry's text, and of its further lines.
const logIndent = 22

// logPoll is the interval at which a followed log is read.
const logPoll = 200 * time.Millisecond

// logRun prints a run's events. With follow it waits for more until the run has ended.
func logRun(ctx context.Context, a *compose.App, r journal.Record, follow bool) error {
	open := func() (*os.File, error) { return os.Open(filepath.Join(r.Dir, journal.EventsFile)) }
	f, err := open()
	for follow && errors.Is(err, os.ErrNotExist) && StateOf(r).State == "running" && logWait(ctx, a) {
		f, err = open()
	}
	switch {
	case errors.Is(err, os.ErrNotExist) && StateOf(r).State == "running":
		a.UI.Note("run %s has just been claimed and has no log yet", r.ID)
		return nil
	case errors.Is(err, os.ErrNotExist):
		a.UI.Note("the log of run %s is gone; only the latest runs are kept (keep-runs)", r.ID)
		return nil
	case err != nil:
		return err
	}
	defer f.Close()
	var out *output
	if follow && !a.JSON {
		out = &output{ui: a.UI, dir: r.Dir}
		defer out.end()
	}
	in := bufio.NewReaderSize(f, 64<<10)
	var line []byte
	for {
		part, err := in.ReadBytes('\n')
		line = append(line, part...)
		switch {
		case err == nil:
			ended, err := logLine(a, line, out)
			if err != nil || ended {
				return err
			}
			line = line[:0]
		case !errors.Is(err, io.EOF):
			return err
		case !follow || StateOf(r).State != "running":
			return nil
		default:
			out.more()
			if !logWait(ctx, a) {
				return context.Cause(ctx)
			}
		}
	}
}

// logWait waits until there may be more to print. It returns false if nobody reads any more.
func logWait(ctx context.Context, a *compose.App) bool {
	select {
	case <-ctx.Done():
		return false
	case <-a.UI.Out.Unread:
		return false
	case <-time.After(logPoll):
		return true
	}
}

// logLine prints one event, and reports whether it is the run's last. out is nil unless the output of checks is followed.
func logLine(a *compose.App, line []byte, out *output) (ended bool, err error) {
	if a.JSON {
		_, err := a.UI.Out.Write(screen.EscapeJSON(line))
		return false, err
	}
	var e journal.Event
	if err := json.Unmarshal(line, &e); err != nil {
		return false, nil //nolint:nilerr // written by a later ralph, or cut off by a crash
	}
	if e.Kind == journal.EventStage && !a.UI.Verbose {
		return false, nil
	}
	if e.Check != nil && out.end() { // its output was printed already
		e.Check.Tail = ""
	}
	said, ended := LogText(e)
	at := e.Time.Local().Format(time.TimeOnly)
	a.UI.Printf("%s  %s\n", a.UI.Paint(screen.Dim, at), a.UI.Hang(said, len(at)+2, logIndent))
	out.begin(e)
	return ended, nil
}
